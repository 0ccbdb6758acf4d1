/* One mutex makes the steps of an issue, and those of a completion, one step each: a completion
 * either meets the operation in the history, and the issuer's bit here, or neither. */
#include "check/window/thread_debts.h"

#include "check/order/order.h"
#include "check/order/thread_order.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct oriel_thread_debts {
    pthread_mutex_t mutex;
    uint32_t issuers[]; /* for each member, slots with operations to it */
};

/* For each slot, the slots that have completed for it, on any window: a request may outlive its
 * window. */
static _Atomic uint32_t owed[ORIEL_CLOCK_THREADS];
/* Of threads that pay for the first slot, which several may share: none goes on while another still
 * takes the clocks that it relies on. */
static pthread_mutex_t paying = PTHREAD_MUTEX_INITIALIZER;

bool oriel_debts_make(int n, struct oriel_thread_debts **out)
{
    *out = NULL;
    if (!oriel_threads_are_tracked())
        return true;
    struct oriel_thread_debts *debts =
        calloc(1, sizeof *debts + (size_t)(unsigned)n * sizeof debts->issuers[0]);
    if (debts != NULL)
        pthread_mutex_init(&debts->mutex, NULL);
    *out = debts;
    return debts != NULL;
}

void oriel_debts_free(struct oriel_thread_debts *debts)
{
    if (debts != NULL)
        pthread_mutex_destroy(&debts->mutex);
    free(debts);
}

void oriel_debts_issue_begin(struct oriel_thread_debts *debts, int32_t target)
{
    if (debts == NULL)
        return;
    pthread_mutex_lock(&debts->mutex);
    debts->issuers[target] |= UINT32_C(1) << oriel_threads_slot();
}

void oriel_debts_issue_end(struct oriel_thread_debts *debts)
{
    if (debts != NULL)
        pthread_mutex_unlock(&debts->mutex);
}

void oriel_debts_complete_begin(struct oriel_thread_debts *debts)
{
    if (debts != NULL)
        pthread_mutex_lock(&debts->mutex);
}

void oriel_debts_complete_end(struct oriel_thread_debts *debts, int32_t target, bool all)
{
    if (debts == NULL)
        return;
    unsigned own = oriel_threads_slot();
    uint32_t others = debts->issuers[target] & ~(UINT32_C(1) << own);
    for (; others != 0; others &= others - 1)
        atomic_fetch_or(&owed[__builtin_ctz(others)], UINT32_C(1) << own);
    if (all)
        debts->issuers[target] = 0;
    pthread_mutex_unlock(&debts->mutex);
    oriel_debts_pay();
}

void oriel_debts_pay(void)
{
    if (!oriel_threads_are_tracked())
        return;
    unsigned own = oriel_threads_slot();
    if (own != 0 && atomic_load(&owed[own]) == 0)
        return;
    pthread_mutex_lock(&paying);
    oriel_order_take_threads(atomic_exchange(&owed[own], 0));
    pthread_mutex_unlock(&paying);
}
