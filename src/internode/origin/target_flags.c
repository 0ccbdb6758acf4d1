/* A byte of flags per rank, and a list of the ranks with a flag, so that a flush visits no others
 * (far->mutex). */
#include "internode/origin/target_flags.h"

void oriel_internode_set_mark(struct oriel_internode *far, int32_t target,
                              enum oriel_internode_mark mark)
{
    if (atomic_load_explicit(&far->marks[target], memory_order_seq_cst) & mark)
        return;
    pthread_mutex_lock(&far->mutex);
    if (atomic_fetch_or_explicit(&far->marks[target], (uint8_t)mark, memory_order_seq_cst) == 0)
        far->marked[far->marked_count++] = target;
    pthread_mutex_unlock(&far->mutex);
}

int32_t oriel_internode_take_mark(struct oriel_internode *far, int32_t target,
                                  enum oriel_internode_mark mark)
{
    int32_t found = -1;
    /* a release of the lock also flushes */
    uint8_t taken = (uint8_t)(mark == ORIEL_INTERNODE_HELD ? mark | ORIEL_INTERNODE_TOLD : mark);
    pthread_mutex_lock(&far->mutex);
    for (int32_t i = 0; i < far->marked_count && found < 0; i++) {
        int32_t rank = far->marked[i];
        if ((target >= 0 && rank != target) ||
            !(atomic_load_explicit(&far->marks[rank], memory_order_relaxed) & mark))
            continue;
        found = rank;
        if ((atomic_fetch_and_explicit(&far->marks[rank], (uint8_t)~taken, memory_order_seq_cst) &
             ~taken) == 0)
            far->marked[i] = far->marked[--far->marked_count];
    }
    pthread_mutex_unlock(&far->mutex);
    return found;
}

int32_t oriel_internode_next_marked(struct oriel_internode *far, int32_t above,
                                    enum oriel_internode_mark mark)
{
    int32_t next = -1;
    pthread_mutex_lock(&far->mutex);
    for (int32_t i = 0; i < far->marked_count; i++) {
        int32_t rank = far->marked[i];
        if (rank > above && (next < 0 || rank < next) &&
            (atomic_load_explicit(&far->marks[rank], memory_order_relaxed) & mark))
            next = rank;
    }
    pthread_mutex_unlock(&far->mutex);
    return next;
}
