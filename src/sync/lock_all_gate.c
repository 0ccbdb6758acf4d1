/* Group mutual exclusion between readers (lock_all epochs) and writers (exclusive locks of any
 * target), in one 64-bit word.
 *
 *     reader   G1: if writers == 0, readers++ in one compare-and-swap; else wait for that, retry
 *              G2 (unlock_all): readers--
 *              G6 (after a long wait): if readers > 0, readers++ in one compare-and-swap
 *     writer   G3: writers++                     G4: wait for readers == 0
 *              G5 (unlock): writers--
 *
 * G6 ignores writers.
 *
 * Exclusion. A reader enters only while writers == 0, or to join another reader. A writer passes G4
 * only after readers == 0 with its own writers++ in the same word, so no reader enters after it
 * until G5. All are read-modify-writes of one word and have one order, so none can miss another.
 * Writers exclude each other by the target's ticket lock, not here. G2 release -> G4 acquire and G5
 * release -> G1, G6 acquire: the stores of the previous epoch are visible.
 *
 * Progress of readers. Writers overtake readers at G3. A stream of writers must not starve readers.
 * So a writer that holds no lock of this window yet lets waiting readers enter first: it waits
 * before G3 until one of them has entered since (admissions). Then it continues even if new readers
 * arrived, so both sides advance. This courtesy ends after 100 ms: the reader may be waiting for a
 * process that waits for this writer by other means, which MPI allows.
 *
 * Nor may a waiting reader wait for a writer forever. That writer waits for readers inside, and
 * these may wait for this reader: by a message, or by the gate of another window that two of them
 * enter in opposite order. Their locks do not conflict, so MPI requires progress. Therefore the
 * watch ends a reader's patience after 100 ms, and it joins the readers inside (G6).
 *
 * Progress of writers. Readers that keep arriving must not starve writers. joins counts the joins
 * since a waiting writer last entered. A reader's patience is 100 ms longer for each join that it
 * found on arrival. In the end patience exceeds the duration of the epochs inside: they end, and
 * the writer enters. All readers that arrived before the first join enter at the same time.
 *
 * Death: a dead reader or writer stays counted; the watch of a waiter finds it. */
#include "sync/lock_all_gate.h"

#include "base/delay.h"

static bool try_enter_reader(struct oriel_lock_all_gate *gate) /* G1 */
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);
    while ((uint32_t)word == 0) {
        oriel_delay();
        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER,
                                                  memory_order_seq_cst, memory_order_relaxed))
            return true;
    }
    return false;
}

static bool try_join_readers(struct oriel_lock_all_gate *gate) /* G6 */
{
    uint64_t word = atomic_load_explicit(&gate->word, memory_order_relaxed);
    while (word >= ORIEL_GATE_READER) {
        oriel_delay();
        if (atomic_compare_exchange_weak_explicit(&gate->word, &word, word + ORIEL_GATE_READER,
                                                  memory_order_seq_cst, memory_order_relaxed)) {
            atomic_fetch_add_explicit(&gate->joins, 1, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

enum oriel_status oriel_gate_enter_reader(struct oriel_lock_all_gate *gate,
                                          const struct oriel_watch *watch)
{
    if (try_enter_reader(gate))
        return ORIEL_OK;
    enum oriel_status status = ORIEL_OK;
    bool inside = false;
    atomic_fetch_add_explicit(&gate->readers_waiting, 1, memory_order_seq_cst);
    while (!inside && status == ORIEL_OK) {
        status =
            oriel_wait(&gate->half.writers, &gate->reader_sleepers, ORIEL_WAIT_EQUAL, 0, watch);
        if (status == ORIEL_E_AGAIN) {
            status = ORIEL_OK;
            inside = try_join_readers(gate);
        }
        inside = inside || (status == ORIEL_OK && try_enter_reader(gate));
    }
    atomic_fetch_sub_explicit(&gate->readers_waiting, 1, memory_order_seq_cst);
    oriel_event_signal(&gate->admissions);
    return status;
}

void oriel_gate_leave_reader(struct oriel_lock_all_gate *gate)
{
    atomic_fetch_sub_explicit(&gate->word, ORIEL_GATE_READER, memory_order_seq_cst); /* G2 */
    oriel_wake(&gate->half.readers, &gate->writer_sleepers);
}

static enum oriel_status end_courtesy(void *context)
{
    (void)context;
    return ORIEL_E_AGAIN;
}

static void let_readers_first(struct oriel_lock_all_gate *gate)
{
    static const struct oriel_watch courtesy = {end_courtesy, NULL, ORIEL_WAITING_NOTHING};
    uint32_t admissions = oriel_load_acquire(&gate->admissions.value);
    if (oriel_unlikely(oriel_gate_has_waiting_readers(gate)))
        (void)oriel_event_wait(&gate->admissions, admissions + 1, &courtesy);
}

enum oriel_status oriel_gate_await_readers(struct oriel_lock_all_gate *gate,
                                           const struct oriel_watch *watch)
{
    enum oriel_status status = oriel_wait(&gate->half.readers, &gate->writer_sleepers,
                                          ORIEL_WAIT_EQUAL, 0, watch); /* G4 */
    /* C11 orders it after G2, a release of the whole word */
    (void)atomic_load_explicit(&gate->word, memory_order_acquire);
    if (status != ORIEL_OK)
        oriel_gate_leave_writer(gate);
    else
        atomic_store_explicit(&gate->joins, 0, memory_order_relaxed);
    return status;
}

enum oriel_status oriel_gate_enter_writer(struct oriel_lock_all_gate *gate, bool nested,
                                          const struct oriel_watch *watch)
{
    if (!nested)
        let_readers_first(gate);
    oriel_delay();
    return oriel_likely(oriel_gate_push_writer(gate)) ? ORIEL_OK
                                                      : oriel_gate_await_readers(gate, watch);
}

void oriel_gate_leave_writer(struct oriel_lock_all_gate *gate)
{
    oriel_gate_pull_writer(gate);
    oriel_gate_wake_readers(gate);
}
