/* MPI_Put, MPI_Get and their request-based and large-count forms (MPI-4.1, 13.3.1, 13.3.2, 13.3.6).
 * The plain form with one datatype on both sides has the fast path. A transfer that repeats
 * datatypes and counts is nearly as fast. All others share one body. */
#include "api/api.h"
#include "api/argument_checks.h"
#include "api/put_get_fast.h"
#include "api/requests.h"
#include "rma/deferred.h"
#include "rma/transfer_cache.h"
#include "transport/shared/copy.h"
#include "window/handle.h"

/* One of the eight functions. */
struct form {
    const char *call;
    bool to_target;
    bool large;
    bool has_request;
};

/* Lets the next such transfer skip most of the checks. */
static void transfer_remember(uint64_t generation, const struct form *form,
                              const struct oriel_sides *sides, const struct oriel_span *target,
                              const struct oriel_side *here)
{
    const struct oriel_items at_origin = oriel_side_items(here);
    const struct oriel_items at_target = oriel_side_items(&target->side);
    oriel_transfer_cache_store(generation, oriel_type_key(sides->origin_datatype), &at_origin,
                               oriel_type_key(sides->target_datatype), &at_target, form->to_target);
}

static int transfer_checked(struct oriel_window *window, const struct form *form, void *origin_addr,
                            const struct oriel_sides *sides)
{
    struct oriel_span target;
    struct oriel_side here;
    const uint64_t generation = oriel_tls_cache_begin();
    if (sides->target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    enum oriel_status status =
        oriel_check_transfer(window, sides, form->to_target, ORIEL_ISSUE_NOW, &target, &here);
    if (status == ORIEL_OK)
        status = oriel_check_buffer("origin", origin_addr, &here);
    if (status != ORIEL_OK)
        return oriel_error_raise(window, form->call, status);
    oriel_check_passed(window);
    status = form->to_target ? oriel_put(window, &target, origin_addr, &here)
                             : oriel_get(window, &target, origin_addr, &here);
    if (status == ORIEL_OK)
        transfer_remember(generation, form, sides, &target, &here);
    return oriel_error_raise(window, form->call, status);
}

static int host_transfer_large(const struct form *form, void *origin, const struct oriel_sides *s,
                               MPI_Win win, MPI_Request *request)
{
    const struct oriel_host_calls *host = oriel_host();
    if (form->to_target)
        return form->has_request
                   ? host->Rput_c(origin, s->origin_count, s->origin_datatype, s->target_rank,
                                  s->target_disp, s->target_count, s->target_datatype, win, request)
                   : host->Put_c(origin, s->origin_count, s->origin_datatype, s->target_rank,
                                 s->target_disp, s->target_count, s->target_datatype, win);
    return form->has_request
               ? host->Rget_c(origin, s->origin_count, s->origin_datatype, s->target_rank,
                              s->target_disp, s->target_count, s->target_datatype, win, request)
               : host->Get_c(origin, s->origin_count, s->origin_datatype, s->target_rank,
                             s->target_disp, s->target_count, s->target_datatype, win);
}

static int host_transfer_int(const struct form *form, void *origin, const struct oriel_sides *s,
                             MPI_Win win, MPI_Request *request)
{
    const struct oriel_host_calls *host = oriel_host();
    int here = (int)s->origin_count;
    int there = (int)s->target_count;
    if (form->to_target)
        return form->has_request
                   ? host->Rput(origin, here, s->origin_datatype, s->target_rank, s->target_disp,
                                there, s->target_datatype, win, request)
                   : host->Put(origin, here, s->origin_datatype, s->target_rank, s->target_disp,
                               there, s->target_datatype, win);
    return form->has_request ? host->Rget(origin, here, s->origin_datatype, s->target_rank,
                                          s->target_disp, there, s->target_datatype, win, request)
                             : host->Get(origin, here, s->origin_datatype, s->target_rank,
                                         s->target_disp, there, s->target_datatype, win);
}

static bool host_has_large_transfer(const struct form *form)
{
    const struct oriel_host_calls *host = oriel_host();
    if (form->to_target)
        return form->has_request ? host->Rput_c != NULL : host->Put_c != NULL;
    return form->has_request ? host->Rget_c != NULL : host->Get_c != NULL;
}

/* A window of the host, or no window. */
static int transfer_forward(const struct form *form, void *origin_addr,
                            const struct oriel_sides *sides, MPI_Win win, MPI_Request *request)
{
    if (!oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window(form->call);
    if (form->large && host_has_large_transfer(form))
        return host_transfer_large(form, origin_addr, sides, win, request);
    if (form->large && !oriel_counts_fit_int(sides->origin_count, sides->target_count, 0))
        return oriel_error_large_count(form->call);
    return host_transfer_int(form, origin_addr, sides, win, request);
}

static int transfer_dispatch(const struct form *form, void *origin_addr,
                             const struct oriel_sides *sides, MPI_Win win, MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return transfer_forward(form, origin_addr, sides, win, request);
    if (!form->has_request)
        return transfer_checked(window, form, origin_addr, sides);
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, form->call);
    struct oriel_request_state *asked;
    int code =
        oriel_request_begin(window, form->call, sides->target_rank, !form->to_target, &asked);
    if (code != MPI_SUCCESS)
        return code;
    code = transfer_checked(window, form, origin_addr, sides);
    if (code == MPI_SUCCESS)
        code = oriel_error_raise(window, form->call, oriel_deferred_copies_end(window));
    return oriel_request_give(window, form->call, asked, code, request);
}

/* Separate, so that words of 8 bytes need no stack frame. */
static __attribute__((noinline)) int get_bytes(void *to, const void *from, uint64_t len_bytes)
{
    oriel_copy(to, from, len_bytes);
    return MPI_SUCCESS;
}

static __attribute__((noinline)) int put_bytes(void *to, const void *from, uint64_t len_bytes)
{
    oriel_copy_premap(to, len_bytes);
    oriel_copy(to, from, len_bytes);
    return MPI_SUCCESS;
}

static inline __attribute__((always_inline)) int copy_inline(void *to, const void *from,
                                                             uint64_t len_bytes, bool to_target)
{
    if (oriel_unlikely(len_bytes != 8))
        return to_target ? put_bytes(to, from, len_bytes) : get_bytes(to, from, len_bytes);
    oriel_copy(to, from, 8);
    return MPI_SUCCESS;
}

static const struct form put = {"MPI_Put", true, false, false};
static const struct form get = {"MPI_Get", false, false, false};

/* The prepared transfer with these datatypes and counts, and its address on the recent window in
 * *there. NULL if there is none, or if the call is invalid or merely unusual. */
static inline __attribute__((always_inline)) const struct oriel_transfer_cache_entry *
find_repeated(bool to_target, const void *origin, int origin_count, MPI_Datatype origin_datatype,
              int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
              MPI_Win win, char **there)
{
    uint64_t span_bytes;
    const uint64_t origin_key = oriel_type_key(origin_datatype),
                   target_key = oriel_type_key(target_datatype);
    const struct oriel_transfer_cache_entry *repeated =
        oriel_transfer_cache_slot(origin_key, target_key, to_target);
    if (oriel_fast_window(win) &&
        oriel_transfer_cache_matches(repeated, oriel_tls_cache.generation, origin_key, origin_count,
                                     target_key, target_count, to_target) &&
        repeated->ready && origin != NULL &&
        oriel_fast_range(target_rank, target_disp, repeated->low_bytes, 1, &repeated->span_bytes,
                         there, &span_bytes))
        return repeated;
    return NULL;
}

static __attribute__((noinline)) int copy_without_loop(const struct oriel_copy_prepared *prepared,
                                                       char *to, const char *from, const char *call)
{
    if (oriel_copy_general(prepared, to, from))
        return MPI_SUCCESS;
    return oriel_error_raise(oriel_tls_cache.window, call,
                             oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype"));
}

/* A tail call: no register must be preserved across the copy. */
static inline __attribute__((always_inline)) int
copy_prepared(const struct oriel_copy_prepared *prepared, char *to, const char *from,
              const char *call)
{
    if (oriel_unlikely(prepared->loop == NULL))
        return copy_without_loop(prepared, to, from, call);
    oriel_copy_loop(prepared, to, from);
    return MPI_SUCCESS;
}

static __attribute__((noinline)) int put_uncached(const void *origin_addr, int origin_count,
                                                  MPI_Datatype origin_datatype, int target_rank,
                                                  MPI_Aint target_disp, int target_count,
                                                  MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&put, (void *)(uintptr_t)origin_addr, &sides, win, NULL);
}

static __attribute__((noinline)) int get_uncached(void *origin_addr, int origin_count,
                                                  MPI_Datatype origin_datatype, int target_rank,
                                                  MPI_Aint target_disp, int target_count,
                                                  MPI_Datatype target_datatype, MPI_Win win)
{
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&get, origin_addr, &sides, win, NULL);
}

static __attribute__((noinline)) int put_general(const void *origin_addr, int origin_count,
                                                 MPI_Datatype origin_datatype, int target_rank,
                                                 MPI_Aint target_disp, int target_count,
                                                 MPI_Datatype target_datatype, MPI_Win win)
{
    char *there;
    const struct oriel_transfer_cache_entry *repeated =
        find_repeated(true, origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                      target_count, target_datatype, win, &there);
    if (oriel_unlikely(repeated == NULL))
        return put_uncached(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                            target_count, target_datatype, win);
    oriel_tls_cache_mark();
    if (repeated->copy.loop != NULL && repeated->copy.count == 1)
        oriel_copy_premap(oriel_at(there, repeated->copy.to_bytes), repeated->copy.len_bytes);
    return copy_prepared(&repeated->copy, there, origin_addr, put.call);
}

static __attribute__((noinline)) int get_general(void *origin_addr, int origin_count,
                                                 MPI_Datatype origin_datatype, int target_rank,
                                                 MPI_Aint target_disp, int target_count,
                                                 MPI_Datatype target_datatype, MPI_Win win)
{
    char *there;
    const struct oriel_transfer_cache_entry *repeated =
        find_repeated(false, origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                      target_count, target_datatype, win, &there);
    if (oriel_unlikely(repeated == NULL))
        return get_uncached(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                            target_count, target_datatype, win);
    return copy_prepared(&repeated->copy, origin_addr, there, get.call);
}

/* The recent window and datatype with an unusual target, displacement or buffer. It has fewer
 * arguments than the functions above, so the path to it preserves fewer registers. */
static __attribute__((noinline)) int put_unusual(const void *origin_addr, int count,
                                                 int target_rank, MPI_Aint target_disp)
{
    MPI_Datatype datatype = oriel_fast_datatype();
    struct oriel_sides sides = {count, datatype, target_rank, target_disp, count, datatype};
    return transfer_checked(oriel_tls_cache.window, &put, (void *)(uintptr_t)origin_addr, &sides);
}

static __attribute__((noinline)) int get_unusual(void *origin_addr, int count, int target_rank,
                                                 MPI_Aint target_disp)
{
    MPI_Datatype datatype = oriel_fast_datatype();
    struct oriel_sides sides = {count, datatype, target_rank, target_disp, count, datatype};
    return transfer_checked(oriel_tls_cache.window, &get, origin_addr, &sides);
}

int oriel_entry_Put(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                    int target_rank, MPI_Aint target_disp, int target_count,
                    MPI_Datatype target_datatype, MPI_Win win)
{
    char *there;
    uint64_t len_bytes;
    if (oriel_unlikely(!oriel_fast_known(win, origin_datatype)) ||
        oriel_unlikely(origin_datatype != target_datatype) ||
        oriel_unlikely(origin_count != target_count))
        return put_general(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                           target_count, target_datatype, win);
    if (oriel_unlikely(origin_addr == NULL) ||
        oriel_unlikely(
            !oriel_fast_place(target_count, target_rank, target_disp, &there, &len_bytes)))
        return put_unusual(origin_addr, target_count, target_rank, target_disp);
    oriel_tls_cache_mark();
    return copy_inline(there, origin_addr, len_bytes, true);
}

int oriel_entry_Put_c(const void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                      int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                      MPI_Datatype target_datatype, MPI_Win win)
{
    static const struct form form = {"MPI_Put_c", true, true, false};
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&form, (void *)(uintptr_t)origin_addr, &sides, win, NULL);
}

int oriel_entry_Rput(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, int target_count,
                     MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    static const struct form form = {"MPI_Rput", true, false, true};
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&form, (void *)(uintptr_t)origin_addr, &sides, win, request);
}

int oriel_entry_Rput_c(const void *origin_addr, MPI_Count origin_count,
                       MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                       MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win,
                       MPI_Request *request)
{
    static const struct form form = {"MPI_Rput_c", true, true, true};
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&form, (void *)(uintptr_t)origin_addr, &sides, win, request);
}

int oriel_entry_Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                    int target_rank, MPI_Aint target_disp, int target_count,
                    MPI_Datatype target_datatype, MPI_Win win)
{
    char *there;
    uint64_t len_bytes;
    if (oriel_unlikely(!oriel_fast_known(win, origin_datatype)) ||
        oriel_unlikely(origin_datatype != target_datatype) ||
        oriel_unlikely(origin_count != target_count))
        return get_general(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                           target_count, target_datatype, win);
    if (oriel_unlikely(origin_addr == NULL) ||
        oriel_unlikely(
            !oriel_fast_place(target_count, target_rank, target_disp, &there, &len_bytes)))
        return get_unusual(origin_addr, target_count, target_rank, target_disp);
    return copy_inline(origin_addr, there, len_bytes, false);
}

int oriel_entry_Get_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                      int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                      MPI_Datatype target_datatype, MPI_Win win)
{
    static const struct form form = {"MPI_Get_c", false, true, false};
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&form, origin_addr, &sides, win, NULL);
}

int oriel_entry_Rget(void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                     int target_rank, MPI_Aint target_disp, int target_count,
                     MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    static const struct form form = {"MPI_Rget", false, false, true};
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&form, origin_addr, &sides, win, request);
}

int oriel_entry_Rget_c(void *origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                       int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                       MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request)
{
    static const struct form form = {"MPI_Rget_c", false, true, true};
    struct oriel_sides sides = {origin_count, origin_datatype, target_rank,
                                target_disp,  target_count,    target_datatype};
    return transfer_dispatch(&form, origin_addr, &sides, win, request);
}
