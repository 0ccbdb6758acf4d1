/* The gate between lock_all epochs and exclusive locks of one window (lock_all_gate.c has the
 * argument). The uncontended steps of a writer are here, inlined in the caller. Thread-safe. */
#ifndef ORIEL_SYNC_LOCK_ALL_GATE_H
#define ORIEL_SYNC_LOCK_ALL_GATE_H

#include "window/shared.h"

/* For lock_all. The watch ends a waiter's patience by ORIEL_E_AGAIN. */
enum oriel_status oriel_gate_enter_reader(struct oriel_lock_all_gate *gate,
                                          const struct oriel_watch *watch);
void oriel_gate_leave_reader(struct oriel_lock_all_gate *gate);

/* For an exclusive lock. nested: the caller holds another lock of this window, so waiting readers
 * may wait for it. After an error the caller has not entered. */
enum oriel_status oriel_gate_enter_writer(struct oriel_lock_all_gate *gate, bool nested,
                                          const struct oriel_watch *watch);
void oriel_gate_leave_writer(struct oriel_lock_all_gate *gate);

/* The steps of the two above, for writers. */
#define ORIEL_GATE_READER (UINT64_C(1) << 32)
#define ORIEL_GATE_WRITER UINT64_C(1)

/* Whether courtesy is due: only a writer without another lock must observe it. */
static inline bool oriel_gate_has_waiting_readers(struct oriel_lock_all_gate *gate)
{
    return atomic_load_explicit(&gate->readers_waiting, memory_order_seq_cst) > 0;
}

/* G3. False: readers are inside, and oriel_gate_await_readers must follow. */
static inline bool oriel_gate_push_writer(struct oriel_lock_all_gate *gate)
{
    return atomic_fetch_add_explicit(&gate->word, ORIEL_GATE_WRITER, memory_order_seq_cst) <
           ORIEL_GATE_READER;
}

/* G4; after an error the caller has left again. */
enum oriel_status oriel_gate_await_readers(struct oriel_lock_all_gate *gate,
                                           const struct oriel_watch *watch);

/* G5; a seq_cst read-modify-write, and oriel_gate_wake_readers must follow. */
static inline void oriel_gate_pull_writer(struct oriel_lock_all_gate *gate)
{
    atomic_fetch_sub_explicit(&gate->word, ORIEL_GATE_WRITER, memory_order_seq_cst); /* G5 */
}

static inline bool oriel_gate_has_sleeping_readers(struct oriel_lock_all_gate *gate)
{
    return atomic_load_explicit(&gate->reader_sleepers, memory_order_seq_cst) != 0;
}

static inline void oriel_gate_wake_readers(struct oriel_lock_all_gate *gate)
{
    oriel_wake(&gate->half.writers, &gate->reader_sleepers);
}

#endif
