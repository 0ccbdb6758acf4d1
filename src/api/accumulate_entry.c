/* MPI_Accumulate, MPI_Get_accumulate and their request-based and large-count forms (MPI-4.1,
 * 13.3.3, 13.3.4, 13.3.6). Accumulate of one element has the fast path; all others share one body.
 */
#include "api/api.h"
#include "api/argument_checks.h"
#include "api/atomic_fast.h"
#include "api/requests.h"
#include "window/handle.h"

/* One of the eight functions. */
struct form {
    const char *call;
    bool has_result;
    bool large;
    bool has_request;
};

static enum oriel_status accumulate_execute(struct oriel_window *window, const struct form *form,
                                            const struct oriel_accumulate_arguments *given)
{
    struct oriel_accumulate_operands operands;
    enum oriel_status status =
        oriel_check_accumulate(window, given, form->has_result, ORIEL_ISSUE_NOW, &operands);
    if (status != ORIEL_OK)
        return status;
    oriel_check_passed(window);
    oriel_element_remember(operands.target.side.type, given->sides.target_datatype, given->op,
                           operands.op);
    return oriel_accumulate(window, &operands.target, operands.elements, operands.op,
                            &operands.origin, form->has_result ? &operands.result : NULL);
}

static int accumulate_checked(struct oriel_window *window, const struct form *form,
                              const struct oriel_accumulate_arguments *given)
{
    if (given->sides.target_rank == MPI_PROC_NULL)
        return MPI_SUCCESS;
    return oriel_error_raise(window, form->call, accumulate_execute(window, form, given));
}

static int host_accumulate_large(const struct form *form,
                                 const struct oriel_accumulate_arguments *g, MPI_Win win,
                                 MPI_Request *request)
{
    const struct oriel_host_calls *host = oriel_host();
    const struct oriel_sides *s = &g->sides;
    if (form->has_result)
        return form->has_request
                   ? host->Rget_accumulate_c(g->origin, s->origin_count, s->origin_datatype,
                                             g->result, g->result_count, g->result_datatype,
                                             s->target_rank, s->target_disp, s->target_count,
                                             s->target_datatype, g->op, win, request)
                   : host->Get_accumulate_c(g->origin, s->origin_count, s->origin_datatype,
                                            g->result, g->result_count, g->result_datatype,
                                            s->target_rank, s->target_disp, s->target_count,
                                            s->target_datatype, g->op, win);
    return form->has_request ? host->Raccumulate_c(g->origin, s->origin_count, s->origin_datatype,
                                                   s->target_rank, s->target_disp, s->target_count,
                                                   s->target_datatype, g->op, win, request)
                             : host->Accumulate_c(g->origin, s->origin_count, s->origin_datatype,
                                                  s->target_rank, s->target_disp, s->target_count,
                                                  s->target_datatype, g->op, win);
}

static int host_accumulate_int(const struct form *form, const struct oriel_accumulate_arguments *g,
                               MPI_Win win, MPI_Request *request)
{
    const struct oriel_host_calls *host = oriel_host();
    const struct oriel_sides *s = &g->sides;
    int here = (int)s->origin_count;
    int there = (int)s->target_count;
    int back = (int)g->result_count;
    if (form->has_result)
        return form->has_request
                   ? host->Rget_accumulate(g->origin, here, s->origin_datatype, g->result, back,
                                           g->result_datatype, s->target_rank, s->target_disp,
                                           there, s->target_datatype, g->op, win, request)
                   : host->Get_accumulate(g->origin, here, s->origin_datatype, g->result, back,
                                          g->result_datatype, s->target_rank, s->target_disp, there,
                                          s->target_datatype, g->op, win);
    return form->has_request
               ? host->Raccumulate(g->origin, here, s->origin_datatype, s->target_rank,
                                   s->target_disp, there, s->target_datatype, g->op, win, request)
               : host->Accumulate(g->origin, here, s->origin_datatype, s->target_rank,
                                  s->target_disp, there, s->target_datatype, g->op, win);
}

static bool host_has_large_accumulate(const struct form *form)
{
    const struct oriel_host_calls *host = oriel_host();
    if (form->has_result)
        return form->has_request ? host->Rget_accumulate_c != NULL : host->Get_accumulate_c != NULL;
    return form->has_request ? host->Raccumulate_c != NULL : host->Accumulate_c != NULL;
}

/* A window of the host, or no window. */
static int accumulate_forward(const struct form *form,
                              const struct oriel_accumulate_arguments *given, MPI_Win win,
                              MPI_Request *request)
{
    if (!oriel_handle_is_forwarded(win))
        return oriel_error_not_a_window(form->call);
    if (form->large && host_has_large_accumulate(form))
        return host_accumulate_large(form, given, win, request);
    if (form->large && !oriel_counts_fit_int(given->sides.origin_count, given->sides.target_count,
                                             given->result_count))
        return oriel_error_large_count(form->call);
    return host_accumulate_int(form, given, win, request);
}

static int accumulate_dispatch(const struct form *form,
                               const struct oriel_accumulate_arguments *given, MPI_Win win,
                               MPI_Request *request)
{
    struct oriel_window *window = oriel_handle_find(win);
    if (oriel_unlikely(window == NULL))
        return accumulate_forward(form, given, win, request);
    if (!form->has_request)
        return accumulate_checked(window, form, given);
    if (oriel_unlikely(request == NULL))
        return oriel_error_no_request(window, form->call);
    struct oriel_request_state *asked;
    int code =
        oriel_request_begin(window, form->call, given->sides.target_rank, form->has_result, &asked);
    if (code != MPI_SUCCESS)
        return code;
    return oriel_request_give(window, form->call, asked, accumulate_checked(window, form, given),
                              request);
}

static const struct form accumulate_form = {"MPI_Accumulate", false, false, false};

static int accumulate_bulk(char *there, const void *origin, int count, int target_rank)
{
    struct oriel_window *window = oriel_tls_cache.window;
    oriel_kernel *kernel = (oriel_kernel *)oriel_tls_cache.plain;
    const uint32_t extent_bytes = (uint32_t)oriel_tls_cache.element_mask + 1;
    const enum oriel_status status = oriel_accumulate_bulk(
        window, target_rank, kernel, extent_bytes, there, origin, (uint64_t)count);
    return oriel_likely(status == ORIEL_OK)
               ? MPI_SUCCESS
               : oriel_error_raise(window, accumulate_form.call, status);
}

static __attribute__((noinline)) int
accumulate_general(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                   int target_rank, MPI_Aint target_disp, int target_count,
                   MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    char *there;
    if (oriel_element_known(win, op, target_datatype) && origin_datatype == target_datatype &&
        origin_count == target_count && op != MPI_NO_OP &&
        oriel_element_bulk(origin_addr, origin_count, target_rank, target_disp, &there))
        return accumulate_bulk(there, origin_addr, origin_count, target_rank);
    return accumulate_dispatch(&accumulate_form, &given, win, NULL);
}

/* One element with the most recent window, operator and datatype, if another argument is
 * unusual. */
static __attribute__((noinline)) int accumulate_unusual(const void *origin_addr, int target_rank,
                                                        MPI_Aint target_disp)
{
    MPI_Datatype datatype = oriel_element_datatype();
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .sides = {1, datatype, target_rank, target_disp, 1, datatype},
        .op = oriel_element_operator(),
    };
    return accumulate_checked(oriel_tls_cache.window, &accumulate_form, &given);
}

int oriel_entry_Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                           int target_rank, MPI_Aint target_disp, int target_count,
                           MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    if (oriel_unlikely(!oriel_element_known(win, op, target_datatype)) ||
        oriel_unlikely(origin_datatype != target_datatype) || oriel_unlikely(origin_count != 1) ||
        oriel_unlikely(target_count != 1) || oriel_unlikely(op == MPI_NO_OP))
        return accumulate_general(origin_addr, origin_count, origin_datatype, target_rank,
                                  target_disp, target_count, target_datatype, op, win);
    char *there = oriel_element_enter(origin_addr, target_rank, target_disp);
    return oriel_likely(there != NULL) ? oriel_element_update(there, origin_addr, NULL)
                                       : accumulate_unusual(origin_addr, target_rank, target_disp);
}

int oriel_entry_Accumulate_c(const void *origin_addr, MPI_Count origin_count,
                             MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                             MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
                             MPI_Win win)
{
    static const struct form form = {"MPI_Accumulate_c", false, true, false};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_dispatch(&form, &given, win, NULL);
}

int oriel_entry_Raccumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                            int target_rank, MPI_Aint target_disp, int target_count,
                            MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                            MPI_Request *request)
{
    static const struct form form = {"MPI_Raccumulate", false, false, true};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_dispatch(&form, &given, win, request);
}

int oriel_entry_Raccumulate_c(const void *origin_addr, MPI_Count origin_count,
                              MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                              MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op,
                              MPI_Win win, MPI_Request *request)
{
    static const struct form form = {"MPI_Raccumulate_c", false, true, true};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_dispatch(&form, &given, win, request);
}

int oriel_entry_Get_accumulate(const void *origin_addr, int origin_count,
                               MPI_Datatype origin_datatype, void *result_addr, int result_count,
                               MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                               int target_count, MPI_Datatype target_datatype, MPI_Op op,
                               MPI_Win win)
{
    static const struct form form = {"MPI_Get_accumulate", true, false, false};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .result = result_addr,
        .result_count = result_count,
        .result_datatype = result_datatype,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_dispatch(&form, &given, win, NULL);
}

int oriel_entry_Get_accumulate_c(const void *origin_addr, MPI_Count origin_count,
                                 MPI_Datatype origin_datatype, void *result_addr,
                                 MPI_Count result_count, MPI_Datatype result_datatype,
                                 int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                                 MPI_Datatype target_datatype, MPI_Op op, MPI_Win win)
{
    static const struct form form = {"MPI_Get_accumulate_c", true, true, false};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .result = result_addr,
        .result_count = result_count,
        .result_datatype = result_datatype,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_dispatch(&form, &given, win, NULL);
}

int oriel_entry_Rget_accumulate(const void *origin_addr, int origin_count,
                                MPI_Datatype origin_datatype, void *result_addr, int result_count,
                                MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                                int target_count, MPI_Datatype target_datatype, MPI_Op op,
                                MPI_Win win, MPI_Request *request)
{
    static const struct form form = {"MPI_Rget_accumulate", true, false, true};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .result = result_addr,
        .result_count = result_count,
        .result_datatype = result_datatype,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_dispatch(&form, &given, win, request);
}

int oriel_entry_Rget_accumulate_c(const void *origin_addr, MPI_Count origin_count,
                                  MPI_Datatype origin_datatype, void *result_addr,
                                  MPI_Count result_count, MPI_Datatype result_datatype,
                                  int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                                  MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                                  MPI_Request *request)
{
    static const struct form form = {"MPI_Rget_accumulate_c", true, true, true};
    struct oriel_accumulate_arguments given = {
        .origin = origin_addr,
        .result = result_addr,
        .result_count = result_count,
        .result_datatype = result_datatype,
        .sides = {origin_count, origin_datatype, target_rank, target_disp, target_count,
                  target_datatype},
        .op = op,
    };
    return accumulate_dispatch(&form, &given, win, request);
}
