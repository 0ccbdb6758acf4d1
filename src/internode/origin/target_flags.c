/* A byte of flags per rank, and a list of the ranks with a flag, so that a flush visits no others
 * (internode->mutex). */
#include "internode/origin/target_flags.h"

void oriel_internode_flag_set(struct oriel_internode *internode, int32_t target,
                              enum oriel_internode_target_flag mark)
{
    if (atomic_load_explicit(&internode->target_flags[target], memory_order_seq_cst) & mark)
        return;
    pthread_mutex_lock(&internode->mutex);
    if (atomic_fetch_or_explicit(&internode->target_flags[target], (uint8_t)mark,
                                 memory_order_seq_cst) == 0)
        internode->flagged[internode->flagged_count++] = target;
    pthread_mutex_unlock(&internode->mutex);
}

int32_t oriel_internode_flag_take(struct oriel_internode *internode, int32_t target,
                                  enum oriel_internode_target_flag mark)
{
    int32_t found = -1;
    /* a release of the lock also flushes */
    uint8_t taken = (uint8_t)(mark == ORIEL_INTERNODE_LOCKED ? mark | ORIEL_INTERNODE_SENT : mark);
    pthread_mutex_lock(&internode->mutex);
    for (int32_t i = 0; i < internode->flagged_count && found < 0; i++) {
        int32_t rank = internode->flagged[i];
        if ((target >= 0 && rank != target) ||
            !(atomic_load_explicit(&internode->target_flags[rank], memory_order_relaxed) & mark))
            continue;
        found = rank;
        if ((atomic_fetch_and_explicit(&internode->target_flags[rank], (uint8_t)~taken,
                                       memory_order_seq_cst) &
             ~taken) == 0)
            internode->flagged[i] = internode->flagged[--internode->flagged_count];
    }
    pthread_mutex_unlock(&internode->mutex);
    return found;
}

int32_t oriel_internode_flag_next(struct oriel_internode *internode, int32_t above,
                                  enum oriel_internode_target_flag mark)
{
    int32_t next = -1;
    pthread_mutex_lock(&internode->mutex);
    for (int32_t i = 0; i < internode->flagged_count; i++) {
        int32_t rank = internode->flagged[i];
        if (rank > above && (next < 0 || rank < next) &&
            (atomic_load_explicit(&internode->target_flags[rank], memory_order_relaxed) & mark))
            next = rank;
    }
    pthread_mutex_unlock(&internode->mutex);
    return next;
}
