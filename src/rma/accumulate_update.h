/* One accumulate in progress: its lock, its mode, and the runs that are queued for an agent.
 * Private to accumulates. */
#ifndef ORIEL_RMA_ACCUMULATE_UPDATE_H
#define ORIEL_RMA_ACCUMULATE_UPDATE_H

#include "rma/path_select.h"
#include "rma/rma.h"

/* Runs queued for one request to an agent. */
struct oriel_update_queue {
    unsigned count;
    struct oriel_remote there; /* base of the offsets */
    struct oriel_piece in[ORIEL_AGENT_RUNS];
    struct oriel_piece out[ORIEL_AGENT_RUNS];
};

/* One accumulate in progress. The first run that needs the target's lock acquires it. */
struct oriel_update {
    struct oriel_window *window;
    int32_t rank;
    uint64_t offset_bytes; /* of the first item in the target's window */
    enum oriel_kind kind;
    enum oriel_operator op;
    bool many; /* enough elements for a bulk update, even where native kernels exist */
    bool locked;
    bool in_bulk;        /* while locked: single updates are excluded */
    uint64_t held_bytes; /* updated since the lock was acquired */
    bool returns;        /* the operation returns a result */
    /* NULL: no queue, since elements may overlap; an agent reads all runs before it writes one */
    struct oriel_update_queue *queue;
};

/* --- accumulate.c --- */

/* Acquires the target's accumulate lock unless this update has it. */
enum oriel_status oriel_update_lock(struct oriel_update *update);

/* After a run: a long update releases the lock for others, unless runs are queued for an agent. */
void oriel_update_unlock(struct oriel_update *update, bool for_good);

/* For elements with native kernels, while locked: excludes single updates from here on. */
void oriel_update_begin_bulk(struct oriel_update *update);

/* For elements without native kernels that the CPU reaches, while locked: the same if single
 * updates may touch parts of them (W2 of sync/atomic_mode.h). */
void oriel_update_begin_plain(struct oriel_update *update);

/* Updates count elements in one run, at_bytes from the first item. */
enum oriel_status oriel_update_run(struct oriel_update *update, int64_t at_bytes,
                                   const char *origin, char *result, uint64_t count);

/* Sends the queued runs to the agent. */
enum oriel_status oriel_update_flush(const struct oriel_update *update);

/* --- accumulate_layouts.c --- */

/* Many elements in short blocks. Under the lock and in bulk mode no other update touches them,
 * whatever their alignment. Returns false without side effects if another path is better. */
bool oriel_update_scattered(struct oriel_update *update, const struct oriel_side *target,
                            uint64_t count, const struct oriel_operand *origin,
                            const struct oriel_operand *result, enum oriel_status *status);

/* At least one side has holes. */
enum oriel_status oriel_update_layouts(struct oriel_update *update, const struct oriel_side *target,
                                       uint64_t count, const struct oriel_operand *origin,
                                       const struct oriel_operand *result);

#endif
