/* What the wrappers of window functions share: changes of the table of windows, and the steps of a
 * call, which several files implement. */
#ifndef ORIEL_CHECK_WINDOW_WINDOW_STEPS_H
#define ORIEL_CHECK_WINDOW_WINDOW_STEPS_H

#include "base/atomic.h"
#include "check/common/reentrancy.h"
#include "check/window/checked_window.h"

#define ORIEL_EXPORT __attribute__((visibility("default")))

/* The program's call site, in an exported function. */
#define ORIEL_CALLER __builtin_return_address(0)

/* True: a call of the program that the checker looks at; oriel_check_leave must follow. address: to
 * which the call returns; frame: the upper end of the exported function's. */
ORIEL_CHECK_INLINE bool oriel_window_look_from(const char *name, const void *address,
                                               uintptr_t frame)
{
    if (!oriel_check_looks_from(address, frame))
        return false;
    oriel_check_enter_from(name, address);
    return true;
}

/* in an exported function only */
#define oriel_window_look()                                                                        \
    oriel_window_look_from(__func__, ORIEL_CALLER, (uintptr_t)__builtin_dwarf_cfa())

/* The window's lock, taken only where the program may call from several threads. */
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

/* Bits of `touched` in struct oriel_checked. */
enum oriel_touched {
    ORIEL_TOUCHED_HISTORY = 1, /* it has outstanding accesses of this process */
    ORIEL_TOUCHED_BUFFERS = 2, /* operations on it still need buffers of this process */
    /* its outstanding accesses are flagged: another target was flushed since */
    ORIEL_TOUCHED_FLAGGED = 4,
    ORIEL_TOUCHED_TREE = 8, /* some of the accesses are in the tree, not in cells */
};

/* Sets the marks of an outstanding access with its buffers; more: ORIEL_TOUCHED_TREE or nothing. */
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

/* Creates the entry of a window that the program has just created, and inserts it. The entry owns
 * `members` from now on, and finds or creates the part in shared memory. NULL: no memory. */
struct oriel_checked *oriel_checked_make(MPI_Win win, struct oriel_checked_member *members, int n,
                                         int rank, const void *base,
                                         enum oriel_check_flavour flavour);
void oriel_checked_free(struct oriel_checked *window);

/* Gives up the part in shared memory, which another member could not find. All members agree on
 * this. */
void oriel_checked_part(struct oriel_checked *window);
void oriel_common_drop(uint64_t id);

/* The target's memory is mapped here: this process's loads and stores there are watched. */
void oriel_window_map(struct oriel_checked *window, int32_t target, const void *base,
                      MPI_Aint size);

/* Stops watching loads and stores of this window's memory. */
void oriel_window_unmap_all(struct oriel_checked *window);

/* Calls visit for every window; it must not change the table. */
void oriel_checked_visit(void (*visit)(void *window, void *context), void *context);

/* The ticket that completes this process's gets in every history: a get is complete where it is
 * complete locally. */
uint64_t oriel_window_local_ticket(void);

/* Takes the clock that the word of the target's memory has received. */
void oriel_window_take_word(const struct oriel_checked *window, int32_t target, int64_t offset);

/* Flags this process's outstanding accesses to the target's memory. */
void oriel_window_flag(struct oriel_checked *window, int32_t target, uint8_t flags);

/* Completes this process's gets from the target. */
void oriel_window_complete_gets(struct oriel_checked *window, int32_t target);

/* A flush has completed the operations with requests on the target (-1: on all). */
void oriel_window_requests_flushed(struct oriel_checked *window, int32_t target);

/* Reports a wrong verdict, and replaces a fatal error handler for the call. True: pass the call
 * on. */
bool oriel_window_judge(struct oriel_checked *window, enum oriel_verdict verdict,
                        struct oriel_finding *finding, const struct oriel_site *site,
                        struct oriel_quiet *quiet);

/* Enters a collective call on the window (last: the one that frees it). True: the wait for the
 * other members is recorded. */
bool oriel_window_wait_for_call(const struct oriel_checked *window, bool last,
                                const struct oriel_site *site);

/* Ends this process's locks and starts without the program, so that a collective call succeeds. The
 * program's own ends of these epochs are ignored later. */
void oriel_window_end_epochs(struct oriel_checked *window);

/* Make the call that others wait for and that this process, which is in MPI_Win_free, does not
 * make: a fence; the exposure epoch that an origin has started; an access epoch without operations
 * for a target that has posted. */
void oriel_window_fence_for(struct oriel_checked *window, const struct oriel_site *site);
void oriel_window_post_for(struct oriel_checked *window, int32_t origin,
                           const struct oriel_site *site);
void oriel_window_start_for(struct oriel_checked *window, int32_t target,
                            const struct oriel_site *site);

/* --- windows_groups.c --- */

/* The members of a group as ranks of the window, freed by oriel_group_free; NULL: not all are
 * members. */
int32_t *oriel_group_ranks(struct oriel_checked *window, MPI_Group group, int32_t *count);
void oriel_group_free(struct oriel_checked *window, int32_t *ranks);

/* --- arguments.c --- */

/* Check the assertion, the rank or the lock type of a call; true: right, else they report it. */
bool oriel_argument_assert(struct oriel_checked *window, int assert, int taken,
                           const struct oriel_site *site);
bool oriel_argument_rank(struct oriel_checked *window, int rank, const struct oriel_site *site);
bool oriel_argument_lock_type(struct oriel_checked *window, int lock_type,
                              const struct oriel_site *site);

struct oriel_operation;

/* Checks the arguments of an operation apart from its epoch: counts, datatypes, operator, sizes.
 * Fills in types and bytes. */
bool oriel_argument_operation(struct oriel_operation *operation);

/* Fills in a finding's bytes at the target, as far as they are known. */
void oriel_argument_place(const struct oriel_operation *operation, struct oriel_finding *finding);

/* Checks the bytes at the target; fills in the offset. */
bool oriel_argument_range(struct oriel_operation *operation);

/* --- promises.c --- */

/* The promises in an info object. */
uint64_t oriel_promises_read(MPI_Info info);

/* Compares the promises and arguments that all members have sent at creation. */
void oriel_promises_creation(struct oriel_checked *window, const struct oriel_site *site);

/* This process begins a fence with its current number: compares assertions, and numbers of
 * fences. */
void oriel_promises_fence(struct oriel_checked *window, int assert, const struct oriel_site *site);

/* The last fence has failed, and its number is used again. */
void oriel_promises_fence_failed(struct oriel_checked *window);

/* A synchronisation promises that this process has not stored into its memory since the last
 * one. */
void oriel_promises_no_store(struct oriel_checked *window, const struct oriel_site *site);

/* Stores from now on come after a synchronisation. Called before it gives its clock. */
void oriel_promises_synchronised(struct oriel_checked *window);

/* The program asks for a lock. */
void oriel_promises_no_locks(struct oriel_checked *window, int32_t target,
                             const struct oriel_site *site);

/* The lock is acquired (target -1: of all targets), or released. */
void oriel_promises_lock_held(struct oriel_checked *window, int32_t target, bool exclusive,
                              bool no_check, const struct oriel_site *site);
void oriel_promises_lock_released(struct oriel_checked *window, int32_t target);

/* An operation that changes the target's memory. */
void oriel_promises_no_put(const struct oriel_operation *operation);

/* --- windows_passive.c --- */

/* False: the target is not locked (-1: none is), which is reported. */
bool oriel_window_flush_allowed(struct oriel_checked *window, int target,
                                const struct oriel_site *site, struct oriel_quiet *quiet);

/* This process has found what another one has written: it may go on with all that the others have
 * completed so far. Of a window with order. */
void oriel_window_take_all(struct oriel_checked *window);

/* Takes what each process has done so far that may access memory of this window: the members, or
 * all ranks if there are memory handles of it. */
void oriel_window_take_ranks(const struct oriel_checked *window);

/* Takes the clocks of those who have unlocked this process's memory, opened from a handle. */
void oriel_window_take_holders(const struct oriel_checked *window);

/* --- windows_free.c --- */

/* Adds to a count of the members and returns the sum: in shared memory if all are on this node,
 * else at the first member's node. */
uint32_t oriel_window_count(const struct oriel_checked *window, enum oriel_ending_count which,
                            uint32_t more);

/* --- windows_create.c --- */

/* An entry that is not in the table yet and shares nothing. It owns `members` from now on, of which
 * n are targets. NULL: no memory. */
struct oriel_checked *oriel_checked_alloc(MPI_Win win, struct oriel_checked_member *members, int n,
                                          int rank, const void *base,
                                          enum oriel_check_flavour flavour);

/* A number that no other window of the job has. */
uint64_t oriel_window_next_id(void);

/* --- windows_opened.c --- */

/* The window ends, and with it the handles of this process's memory. After the call. */
void oriel_window_withdraw_handles(struct oriel_checked *window);

/* --- paired_calls.c --- */

/* A post for the origin, before it gives its clock; a start of the target, before it takes the
 * post's clock. */
void oriel_paired_post(struct oriel_checked *window, int32_t origin, int assert,
                       const struct oriel_site *site);
void oriel_paired_start(struct oriel_checked *window, int32_t target, int assert,
                        const struct oriel_site *site);

/* The last post for `other`, or start of it, has failed. */
void oriel_paired_call_failed(struct oriel_checked *window, int32_t other, bool starts);

/* _end: this process is in MPI_Win_free. _ended: all members are. */
void oriel_paired_window_end(struct oriel_checked *window, const struct oriel_site *site);
void oriel_paired_window_ended(struct oriel_checked *window, const struct oriel_site *site);

/* Returns what another member waits for in vain while this process is in MPI_Win_free; reports
 * it. */
enum oriel_wanted oriel_paired_wanted(struct oriel_checked *window, const struct oriel_site *site,
                                      int32_t *rank);

/* The wrapper of a synchronisation call. code_of is evaluated with window and site where the window
 * is known; nothing: the call does nothing. */
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
