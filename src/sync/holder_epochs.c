/* Epochs on a memory handle. The holder locks the owner's words as a rank of the owner's window
 * does (sync/lock.c): an exclusive lock passes the window's gate and the owner's ticket lock, a
 * shared one and lock_all the ticket lock alone, since the holder's window has one rank.
 *
 * The holder, in its entry:
 *
 *   H1: state = WAITING (seq_cst)
 *   H2: loads withdrawn (seq_cst); if it is 1, goes to H6
 *   H3: acquires the lock
 *   H4: state = SHARED, EXCLUSIVE or NOCHECK (seq_cst)
 *   H5: loads withdrawn (seq_cst); if it is 1, releases the lock and goes to H6. Else the epoch is
 *       open, and operations may follow.
 *   H6: at the end of the epoch, after the lock's release: state = NONE (seq_cst); loads withdrawn
 *       (seq_cst); if it is 1, signals left
 *
 * The owner, which withdraws the handle:
 *
 *   W1: withdrawn = 1 (seq_cst)
 *   W2: loads left, then the state of every entry (seq_cst). If one is SHARED, EXCLUSIVE or NOCHECK
 *       and its process alive, waits until left differs, and repeats W2. Before the window ends,
 *       also for WAITING.
 *
 *   P1: no epoch is open after W2. In the one order of seq_cst operations, H5 precedes W1, and so
 *       H4 precedes W2, which waits for that entry; or H5 follows W1 and loads 1.
 *   P2: no holder touches the window's words after W2 for WAITING: the same for H1, H2 and H3.
 *   P3: W2 does not sleep for ever. If it finds an epoch open, H6's store follows that load, and so
 *       H6's load follows W1. It finds 1, and changes left after W2 has loaded it.
 *   P4: H6 is a release, and W2 acquires: what the epoch has stored is visible to the owner.
 *
 * Entries. A process enters: process = itself, by compare-and-swap from 0 (seq_cst); raises used;
 * then finds its key, and withdrawn at 0, or leaves again. The owner uses an area again if it is
 * withdrawn, its key is 0 (seq_cst), and all used entries are free or of dead processes. While the
 * window exists, these must have died outside an epoch. As in P1, either the process does not find
 * its key, or the owner sees the entry.
 *
 * Other nodes. The owner's agent takes the steps of a holder on another node, when its messages
 * arrive and when its lock's turn comes (internode/target/target_sync.c). Its entry is the owner's,
 * with is_far set. If that process is lost, H6 is replaced by state = LOST, which W2 ignores and
 * processes that wait for the lock find.
 *
 * Death. W2 asks every 100 ms whether the holders that it waits for are alive, and ignores dead
 * ones. The entry of a process that died in an epoch keeps its state. Its lock is lost, as that of
 * a dead rank, and processes that wait for the lock find the entry (window/holders.c). A holder
 * that waits checks the owner, other holders, and all processes of the owner's window on the node.
 * It does not see their access words, so it also fails for a dead rank that had no lock. A lock
 * that need not wait, and the end of an epoch, report an owner whose life word shows its death, as
 * a flush does (api/flush.c). H6 has a fence before that. */
#include "sync/holder_epochs.h"

#include "base/delay.h"
#include "internode/origin/liveness.h"
#include "internode/origin/origin_sync.h"
#include "sync/lock_all_gate.h"
#include "sync/ticket.h"

#include <errno.h>
#include <string.h>

/* --- entries --- */

static bool entry_claim(struct oriel_holder *entry, uint64_t own)
{
    uint64_t process = 0;
    if (atomic_compare_exchange_strong_explicit(&entry->process, &process, own,
                                                memory_order_seq_cst, memory_order_relaxed))
        return true;
    /* of a process that died outside an epoch */
    return process != own && oriel_load_acquire(&entry->state) == ORIEL_ACCESS_STATE_NONE &&
           !oriel_identity_word_alive(process) &&
           atomic_compare_exchange_strong_explicit(&entry->process, &process, own,
                                                   memory_order_seq_cst, memory_order_relaxed);
}

enum oriel_status oriel_holder_enter(struct oriel_handle_area *area, struct oriel_holder **holder)
{
    const uint64_t own = oriel_identity_own_word();
    *holder = NULL;
    if (own == 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot read this process's start time: %s",
                          strerror(errno));
    for (uint32_t i = 0; i < ORIEL_HOLDERS_MOST && *holder == NULL; i++)
        if (entry_claim(&area->holders[i], own)) {
            *holder = &area->holders[i];
            oriel_store_relaxed(&area->holders[i].is_far, 0);
            uint32_t used = oriel_load_relaxed(&area->used);
            while (used <= i && !atomic_compare_exchange_weak_explicit(&area->used, &used, i + 1,
                                                                       memory_order_seq_cst,
                                                                       memory_order_relaxed))
                continue;
        }
    oriel_delay();
    return *holder != NULL
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_NO_MEM, "the handle is open %d times", ORIEL_HOLDERS_MOST);
}

void oriel_holder_leave(struct oriel_holder *holder)
{
    atomic_store_explicit(&holder->process, 0, memory_order_release);
}

bool oriel_handle_is_unused(struct oriel_handle_area *area)
{
    const uint32_t used = atomic_load_explicit(&area->used, memory_order_seq_cst);
    const bool has_window = atomic_load_explicit(&area->control_offset, memory_order_relaxed) != 0;
    for (uint32_t i = 0; i < used; i++) {
        const struct oriel_holder *entry = &area->holders[i];
        uint64_t process = atomic_load_explicit(&entry->process, memory_order_seq_cst);
        if (process == 0)
            continue;
        const uint32_t state = oriel_load_acquire(&entry->state);
        if ((oriel_identity_word_alive(process) && state != ORIEL_ACCESS_STATE_LOST) ||
            (state != ORIEL_ACCESS_STATE_NONE && has_window))
            return false;
    }
    return true;
}

/* --- the owner --- */

static bool is_in_the_way(const struct oriel_holder *entry, bool waiting_too)
{
    uint32_t state = atomic_load_explicit(&entry->state, memory_order_seq_cst);
    return state != ORIEL_ACCESS_STATE_LOST && (state >= ORIEL_ACCESS_STATE_SHARED ||
                                                (waiting_too && state != ORIEL_ACCESS_STATE_NONE));
}

/* W2's search. alive_only: asks the kernel, too. */
static bool any_epoch(struct oriel_handle_area *area, bool waiting_too, bool alive_only)
{
    const uint32_t used = atomic_load_explicit(&area->used, memory_order_seq_cst);
    for (uint32_t i = 0; i < used; i++) {
        const struct oriel_holder *entry = &area->holders[i];
        if (is_in_the_way(entry, waiting_too) &&
            (!alive_only || oriel_identity_word_alive(
                                atomic_load_explicit(&entry->process, memory_order_relaxed))))
            return true;
    }
    return false;
}

struct withdrawal {
    struct oriel_handle_area *area;
    bool waiting_too;
};

static enum oriel_status withdrawal_watch(void *context)
{
    const struct withdrawal *wanted = context;
    return any_epoch(wanted->area, wanted->waiting_too, true) ? ORIEL_OK : ORIEL_E_AGAIN;
}

void oriel_handle_withdraw(struct oriel_handle_area *area, bool waiting_too)
{
    struct withdrawal wanted = {area, waiting_too};
    const struct oriel_watch watch = {withdrawal_watch, &wanted, ORIEL_WAITING_NOTHING};
    atomic_store_explicit(&area->withdrawn, 1, memory_order_seq_cst); /* W1 */
    for (enum oriel_status status = ORIEL_OK; status == ORIEL_OK;) {
        oriel_delay();
        const uint32_t left = oriel_load_acquire(&area->left.value); /* W2 */
        oriel_delay();
        if (!any_epoch(area, waiting_too, false))
            return;
        status =
            oriel_wait(&area->left.value, &area->left.sleepers, ORIEL_WAIT_NOT_EQUAL, left, &watch);
    }
}

bool oriel_handle_has_own_epoch(struct oriel_handle_area *area)
{
    const uint32_t used = oriel_load_acquire(&area->used);
    for (uint32_t i = 0; i < used; i++)
        if (is_in_the_way(&area->holders[i], false) &&
            atomic_load_explicit(&area->holders[i].process, memory_order_relaxed) ==
                oriel_identity_own_word() &&
            oriel_load_relaxed(&area->holders[i].is_far) == 0)
            return true;
    return false;
}

/* --- the holder --- */

static enum oriel_status withdrawn_error(void)
{
    return oriel_fail(ORIEL_E_ATTACH, "the memory handle of the window has been withdrawn");
}

static enum oriel_status check_owner(const struct oriel_window *window)
{
    const struct oriel_peer *owner = window->group->peers[0];
    return oriel_peer_alive(owner)
               ? ORIEL_OK
               : oriel_fail(ORIEL_E_PEER, "the memory's owner (process %d) has died [O18]",
                            (int)owner->identity.pid);
}

/* Asks the kernel only if the owner's life word shows a death. */
static enum oriel_status check_owner_life(const struct oriel_window *window)
{
    return oriel_load_has(&oriel_file_life(window->control_bases[0])->word, ORIEL_LIFE_DIED)
               ? check_owner(window)
               : ORIEL_OK;
}

enum oriel_status oriel_holder_watch(void *context)
{
    const struct oriel_window *window = ((const struct oriel_watched *)context)->window;
    const struct oriel_control *control = oriel_window_control(window, 0);
    enum oriel_status status = check_owner(window);
    if (status != ORIEL_OK)
        return status;
    if (oriel_load_acquire(&control->remote_lost) != 0)
        return oriel_fail(ORIEL_E_PEER, "a rank of the owner's window on another node has died "
                                        "[O18]");
    if (oriel_load_acquire(&control->abandoned) != 0)
        return oriel_fail(ORIEL_E_PEER, "a rank of the owner's window has died [O18]");
    status = oriel_holding_check_members(window->holding, -1);
    return status == ORIEL_OK ? oriel_holders_check_queue(window, 0, false) : status;
}

static void entry_set(const struct oriel_holding *holding, enum oriel_access_state state)
{
    atomic_store_explicit(&holding->entry->state, state, memory_order_seq_cst);
    oriel_delay();
}

static void signal_withdrawal(const struct oriel_holding *holding)
{
    if (atomic_load_explicit(&holding->area->withdrawn, memory_order_seq_cst) != 0)
        oriel_event_signal(&holding->area->left);
}

enum oriel_status oriel_holder_epoch_ask(const struct oriel_holding *holding)
{
    entry_set(holding, ORIEL_ACCESS_STATE_WAITING);         /* H1 */
    if (oriel_handle_is_valid(holding->area, holding->key)) /* H2 */
        return ORIEL_OK;
    oriel_holder_epoch_end(holding);
    return withdrawn_error();
}

enum oriel_status oriel_holder_epoch_open(const struct oriel_holding *holding,
                                          enum oriel_access_state state)
{
    oriel_delay();
    entry_set(holding, state);                                /* H4 */
    return oriel_handle_is_valid(holding->area, holding->key) /* H5 */
               ? ORIEL_OK
               : withdrawn_error();
}

void oriel_holder_epoch_end(const struct oriel_holding *holding)
{
    entry_set(holding, ORIEL_ACCESS_STATE_NONE); /* H6 */
    signal_withdrawal(holding);
    oriel_fence_full();
}

void oriel_holder_epoch_lose(const struct oriel_holding *holding)
{
    entry_set(holding, ORIEL_ACCESS_STATE_LOST);
    signal_withdrawal(holding);
}

/* H3 */
static enum oriel_status lock_acquire(struct oriel_window *window, enum oriel_access_state state)
{
    struct oriel_lock_all_gate *gate = &window->holding->owner_common->gate;
    struct oriel_ticket *lock = &oriel_window_control(window, 0)->lock;
    struct oriel_watched watched = {.window = window, .win_rank = 0};
    const struct oriel_watch watch = {oriel_holder_watch, &watched, ORIEL_WAITING_LOCK};
    const bool exclusive = state == ORIEL_ACCESS_STATE_EXCLUSIVE;
    if (state == ORIEL_ACCESS_STATE_NOCHECK)
        return ORIEL_OK;
    enum oriel_status status = exclusive ? oriel_gate_enter_writer(gate, false, &watch) : ORIEL_OK;
    if (status != ORIEL_OK)
        return status;
    status = oriel_ticket_lock(lock, exclusive, &watch);
    if (status != ORIEL_OK && exclusive)
        oriel_gate_leave_writer(gate);
    return status;
}

static void lock_release(struct oriel_window *window, enum oriel_access_state state)
{
    struct oriel_ticket *lock = &oriel_window_control(window, 0)->lock;
    if (state == ORIEL_ACCESS_STATE_NOCHECK)
        return;
    oriel_ticket_unlock(lock, state == ORIEL_ACCESS_STATE_EXCLUSIVE);
    if (state == ORIEL_ACCESS_STATE_EXCLUSIVE)
        oriel_gate_leave_writer(&window->holding->owner_common->gate);
}

/* H1 to H5 */
static enum oriel_status epoch_begin(struct oriel_window *window, enum oriel_access_state state)
{
    const struct oriel_holding *holding = window->holding;
    enum oriel_status status = oriel_holder_epoch_ask(holding);
    if (status != ORIEL_OK)
        return status;
    status = check_owner_life(window);
    if (status == ORIEL_OK)
        status = lock_acquire(window, state);
    if (status == ORIEL_OK) {
        status = oriel_holder_epoch_open(holding, state);
        if (status == ORIEL_OK)
            return ORIEL_OK;
        lock_release(window, state);
    }
    oriel_holder_epoch_end(holding);
    return status;
}

/* The epoch ends whatever the result. */
static enum oriel_status epoch_close(struct oriel_window *window)
{
    const struct oriel_holding *holding = window->holding;
    lock_release(window, (enum oriel_access_state)oriel_load_relaxed(&holding->entry->state));
    oriel_holder_epoch_end(holding);
    return check_owner_life(window);
}

/* --- the holder on another node: its owner's agent takes the steps --- */

static enum oriel_status far_begin(struct oriel_window *window, enum oriel_access_state state)
{
    return oriel_internode_begin(
        window, state == ORIEL_ACCESS_STATE_NOCHECK     ? ORIEL_INTERNODE_WANTS_NOTHING
                : state == ORIEL_ACCESS_STATE_EXCLUSIVE ? ORIEL_INTERNODE_WANTS_EXCLUSIVE
                                                        : ORIEL_INTERNODE_WANTS_SHARED);
}

static enum oriel_status any_begin(struct oriel_window *window, enum oriel_access_state state)
{
    return window->internode != NULL ? far_begin(window, state) : epoch_begin(window, state);
}

/* *is_closed: false if memory was short for the message, and the epoch continues. */
static enum oriel_status any_close(struct oriel_window *window, bool *is_closed)
{
    *is_closed = true;
    return window->internode != NULL ? oriel_internode_unlock(window, 0, false, is_closed)
                                     : epoch_close(window);
}

/* --- both --- */

static bool access_exchange(struct oriel_window *window, enum oriel_access_state from,
                            enum oriel_access_state to)
{
    uint8_t before = (uint8_t)from;
    return atomic_compare_exchange_strong_explicit(&window->holding->access[0], &before,
                                                   (uint8_t)to, memory_order_seq_cst,
                                                   memory_order_relaxed);
}

static void access_set(struct oriel_window *window, enum oriel_access_state state)
{
    atomic_store_explicit(&window->holding->access[0], (uint8_t)state, memory_order_release);
}

/* One thread at a time has the entry: the access word admits it. */
static enum oriel_status lock_begin(struct oriel_window *window)
{
    if (oriel_load_relaxed(&window->epoch) & ORIEL_EPOCH_LOCK_ALL)
        return oriel_fail(ORIEL_E_SYNC, "a lock inside lock_all");
    if (!access_exchange(window, ORIEL_ACCESS_STATE_ABSENT, ORIEL_ACCESS_STATE_WAITING))
        return oriel_fail(ORIEL_E_SYNC, "rank 0 is already locked by this process");
    return ORIEL_OK;
}

enum oriel_status oriel_holder_lock(struct oriel_window *window, enum oriel_access_state state)
{
    enum oriel_status status = lock_begin(window);
    if (status != ORIEL_OK)
        return status;
    status = any_begin(window, state);
    access_set(window, status == ORIEL_OK ? ORIEL_ACCESS_STATE_SHARED : ORIEL_ACCESS_STATE_ABSENT);
    return status;
}

enum oriel_status oriel_holder_unlock(struct oriel_window *window)
{
    if (!access_exchange(window, ORIEL_ACCESS_STATE_SHARED, ORIEL_ACCESS_STATE_WAITING))
        return oriel_fail(ORIEL_E_SYNC, "rank 0 is not locked by this process");
    bool is_closed;
    enum oriel_status status = any_close(window, &is_closed);
    access_set(window, is_closed ? ORIEL_ACCESS_STATE_ABSENT : ORIEL_ACCESS_STATE_SHARED);
    return status;
}

/* Operations acquire no lock: this call has it, whatever the epoch's assertion. */
#define LOCK_ALL_EPOCH ((uint32_t)(ORIEL_EPOCH_LOCK_ALL | ORIEL_EPOCH_NOCHECK))

/* The access word stays WAITING during lock_all: window->epoch allows the operations. */
enum oriel_status oriel_holder_lock_all(struct oriel_window *window, bool trusted)
{
    enum oriel_status status = lock_begin(window);
    if (status != ORIEL_OK)
        return status;
    status = any_begin(window, trusted ? ORIEL_ACCESS_STATE_NOCHECK : ORIEL_ACCESS_STATE_SHARED);
    if (status == ORIEL_OK)
        atomic_fetch_or_explicit(&window->epoch, LOCK_ALL_EPOCH, memory_order_relaxed);
    else
        access_set(window, ORIEL_ACCESS_STATE_ABSENT);
    return status;
}

enum oriel_status oriel_holder_unlock_all(struct oriel_window *window)
{
    if (!(atomic_fetch_and_explicit(&window->epoch, ~LOCK_ALL_EPOCH, memory_order_relaxed) &
          ORIEL_EPOCH_LOCK_ALL))
        return oriel_fail(ORIEL_E_SYNC, "unlock_all without lock_all");
    bool is_closed;
    enum oriel_status status = any_close(window, &is_closed);
    if (is_closed)
        access_set(window, ORIEL_ACCESS_STATE_ABSENT);
    else
        atomic_fetch_or_explicit(&window->epoch, LOCK_ALL_EPOCH, memory_order_relaxed);
    return status;
}

/* --- accumulates --- */

enum oriel_status oriel_holder_check_update(struct oriel_window *window, int32_t target,
                                            uint32_t name)
{
    struct oriel_watched watched = {.window = window, .win_rank = (int32_t)name - 1};
    if ((name & ORIEL_HOLDER_NAME) != 0)
        return oriel_holders_check_name(window, target, name);
    return oriel_window_is_opened(window)
               ? oriel_holding_check_members(window->holding, (int32_t)name - 1)
               : oriel_liveness_rank(&watched);
}
