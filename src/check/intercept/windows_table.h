/* What the files of windows*.c share among themselves: the table of windows, and the parts of a call.  Nobody else calls. */
#ifndef ORIEL_CHECK_INTERCEPT_WINDOWS_TABLE_H
#define ORIEL_CHECK_INTERCEPT_WINDOWS_TABLE_H

#include "base/atomic.h"
#include "check/intercept/reentrancy.h"
#include "check/intercept/windows.h"

#define ORIEL_EXPORT __attribute__((visibility("default")))

/* Where the program called an exported function. */
#define ORIEL_CALLER __builtin_return_address(0)

/* True: a call of the program's to look at, oriel_check_leave must follow.  address: to which it returns. */
ORIEL_CHECK_INLINE bool oriel_window_look_from(const char *name, const void *address)
{
    if (!oriel_check_looks_from(address))
        return false;
    oriel_check_enter_from(name, address);
    return true;
}

#define oriel_window_look()                                                                        \
    oriel_window_look_from(__func__, ORIEL_CALLER) /* of an exported function itself */

/* The window's lock, where the program may call from several threads. */
static inline void oriel_window_enter(struct oriel_checked *window)
{
    if (oriel_unlikely(window->threaded))
        pthread_mutex_lock(&window->mutex);
}

static inline void oriel_window_leave(struct oriel_checked *window)
{
    if (oriel_unlikely(window->threaded))
        pthread_mutex_unlock(&window->mutex);
}

enum oriel_touched {                            /* bits of struct oriel_checked's touched */
                     ORIEL_TOUCHED_HISTORY = 1, /* accesses of this process are pending there */
                     ORIEL_TOUCHED_BUFFERS =
                         2, /* buffers of this process are needed by operations on it */
                     ORIEL_TOUCHED_FLAGGED =
                         4, /* the pending ones are flagged: another target was flushed since */
                     ORIEL_TOUCHED_TREE = 8, /* some of the accesses do not stand in cells */
};

/* Accesses of this process are pending there, and buffers needed; more: ORIEL_TOUCHED_TREE or nothing. */
static inline void oriel_window_touch(struct oriel_checked *window, int32_t target, unsigned more)
{
    uint8_t had = window->touched[target];
    window->touched_histories += (had & ORIEL_TOUCHED_HISTORY) == 0;
    window->touched[target] = (uint8_t)((had & ORIEL_TOUCHED_TREE) | more | ORIEL_TOUCHED_HISTORY |
                                        ORIEL_TOUCHED_BUFFERS);
    window->touched_any = true;
}

bool oriel_checked_add(struct oriel_checked *window);
void oriel_checked_remove(struct oriel_checked *window);

/* Makes the entry of a window that the program has just made, and adds it: members are its own from now on, the board's part is
 * found or made. NULL: there is no memory for it. */
struct oriel_checked *oriel_checked_make(MPI_Win win, struct oriel_checked_member *members, int n,
                                         int rank, const void *base,
                                         enum oriel_check_flavour flavour);
void oriel_checked_free(struct oriel_checked *window);

/* Does without the board's part, which another member could not find; all members have come to it. */
void oriel_checked_part(struct oriel_checked *window);
void oriel_common_drop(uint64_t id);

/* The target's memory is mapped here: loads and stores of it are this process's. */
void oriel_window_map(struct oriel_checked *window, int32_t target, const void *base,
                      MPI_Aint size);

/* No load or store is looked at for this window any more. */
void oriel_window_unmap_all(struct oriel_checked *window);

/* Calls visit for every window; it must not change the table. */
void oriel_checked_visit(void (*visit)(void *window, void *context), void *context);

/* The number by which this process's gets are completed in every history: they are complete where they are locally. */
uint64_t oriel_window_local_ticket(void);

/* What has been given to the word of the target's memory is taken. */
void oriel_window_take_word(const struct oriel_checked *window, int32_t target, int64_t offset);

/* Flags pending accesses of this process to the target's memory. */
void oriel_window_flag(struct oriel_checked *window, int32_t target, uint8_t flags);

/* This process's gets from the target are complete. */
void oriel_window_complete_gets(struct oriel_checked *window, int32_t target);

/* A flush has completed what requests on the target (-1: on all) are for. */
void oriel_window_requests_flushed(struct oriel_checked *window, int32_t target);

/* Beginning of a call that knows its verdict: a wrong one is told, and where the program's handler is fatal the call is made
 * quiet. True: pass the call on. */
bool oriel_window_judge(struct oriel_checked *window, enum oriel_verdict verdict,
                        struct oriel_finding *finding, const struct oriel_site *site,
                        struct oriel_quiet *quiet);

/* Comes to a collective call on the window (last: the one that frees it); true: the wait for the other members is noted. */
bool oriel_window_wait_for_call(const struct oriel_checked *window, bool last,
                                const struct oriel_site *site);

/* Ends this process's locks and starts behind the program's back, so that a collective call succeeds.  Their ends are echoes. */
void oriel_window_end_epochs(struct oriel_checked *window);

/* Makes the call that others wait for and that this process, which is in MPI_Win_free, does not make: a fence; the exposure
 * epoch that an origin has started; an access epoch without operations for a target that has posted. */
void oriel_window_fence_for(struct oriel_checked *window, const struct oriel_site *site);
void oriel_window_post_for(struct oriel_checked *window, int32_t origin,
                           const struct oriel_site *site);
void oriel_window_start_for(struct oriel_checked *window, int32_t target,
                            const struct oriel_site *site);

/* --- windows_groups.c --- */

/* The members of a group as ranks of the window, for oriel_group_free; NULL where the group is not one of members. */
int32_t *oriel_group_ranks(struct oriel_checked *window, MPI_Group group, int32_t *count);
void oriel_group_free(struct oriel_checked *window, int32_t *ranks);

/* --- arguments.c --- */

/* Tells what is wrong with the assertion, or the rank, of a call that takes these; true when right. */
bool oriel_argument_assert(struct oriel_checked *window, int assert, int taken,
                           const struct oriel_site *site);
bool oriel_argument_rank(struct oriel_checked *window, int rank, const struct oriel_site *site);
bool oriel_argument_lock_type(struct oriel_checked *window, int lock_type,
                              const struct oriel_site *site);

struct oriel_operation;

/* The arguments of an operation apart from its epoch: counts, datatypes, operator, sizes.  Fills in types and bytes. */
bool oriel_argument_operation(struct oriel_operation *operation);

/* Says in a finding which bytes at the target the operation is about, as far as they can be told. */
void oriel_argument_place(const struct oriel_operation *operation, struct oriel_finding *finding);

/* The bytes at the target; fills in the offset. */
bool oriel_argument_range(struct oriel_operation *operation);

/* --- promises.c --- */

/* What an info object promises. */
uint64_t oriel_hint_promises(MPI_Info info);

/* Promises and arguments of creation that all members have told each other. */
void oriel_hint_creation(struct oriel_checked *window, const struct oriel_site *site);

/* This process has begun a fence, with the number that it has now: assertions that must be alike, numbers of fences. */
void oriel_hint_fence(struct oriel_checked *window, int assert, const struct oriel_site *site);

/* The fence that was told of last has failed, and still has its number. */
void oriel_hint_fence_failed(struct oriel_checked *window);

/* A synchronisation that promises that this process has not stored into its memory since the last one. */
void oriel_hint_no_store(struct oriel_checked *window, const struct oriel_site *site);

/* What this process stores from now on comes after a synchronisation; before it gives its clock. */
void oriel_hint_synchronised(struct oriel_checked *window);

/* A lock is wanted. */
void oriel_hint_lock(struct oriel_checked *window, int32_t target, const struct oriel_site *site);

/* The lock is held, of target -1: of all; and it is given back. */
void oriel_hint_hold(struct oriel_checked *window, int32_t target, bool exclusive, bool no_check,
                     const struct oriel_site *site);
void oriel_hint_unhold(struct oriel_checked *window, int32_t target);

/* An operation that changes the target's memory. */
void oriel_hint_no_put(const struct oriel_operation *operation);

/* --- paired_calls.c --- */

/* A post for the origin, before its order is given; a start of the target, before the post's is taken. */
void oriel_hint_post(struct oriel_checked *window, int32_t origin, int assert,
                     const struct oriel_site *site);
void oriel_hint_start(struct oriel_checked *window, int32_t target, int assert,
                      const struct oriel_site *site);

/* The post for other, or the start of it, that was told of last has failed. */
void oriel_hint_call_failed(struct oriel_checked *window, int32_t other, bool starts);

/* This process is in MPI_Win_free; all members are. */
void oriel_hint_end(struct oriel_checked *window, const struct oriel_site *site);
void oriel_hint_ended(struct oriel_checked *window, const struct oriel_site *site);

/* What another member waits for in vain while this process is in MPI_Win_free, told by now. */
enum oriel_wanted oriel_hint_wanted(struct oriel_checked *window, const struct oriel_site *site,
                                    int32_t *rank);

/* The wrapper of a synchronisation: code_of is evaluated with window and site where the window is looked at; nothing: the call
 * does nothing. */
#define SYNCHRONISE(name, parameters, arguments, nothing, code_of, site_of)                        \
    ORIEL_EXPORT int PMPI_##name parameters                                                        \
    {                                                                                              \
        if (!oriel_window_look())                                                                  \
            return oriel_host()->name arguments;                                                   \
        struct oriel_checked *window = nothing ? NULL : oriel_checked_find(win);                   \
        int code;                                                                                  \
        if (window == NULL) {                                                                      \
            code = oriel_host()->name arguments;                                                   \
        } else {                                                                                   \
            struct oriel_site site = site_of(ORIEL_CALLER, ORIEL_CALL_##name);                     \
            code = code_of;                                                                        \
        }                                                                                          \
        oriel_check_leave();                                                                       \
        return code;                                                                               \
    }                                                                                              \
    ORIEL_EXPORT int MPI_##name parameters __attribute__((weak, alias("PMPI_" #name)));

#endif
