/* Which threads have completed operations of others on a window (thread_order.c, T5). A call that
 * completes operations to a target completes those of all threads, with the number of its own
 * thread. A thread whose operations were completed so owes a look at that thread's clock, and takes
 * it in its own next call that completes something. NULL debts: the order of threads is not
 * tracked, and all functions do nothing. */
#ifndef ORIEL_CHECK_WINDOW_THREAD_DEBTS_H
#define ORIEL_CHECK_WINDOW_THREAD_DEBTS_H

#include <stdbool.h>
#include <stdint.h>

struct oriel_thread_debts;

/* For a window of n members. False: no memory. */
bool oriel_debts_make(int n, struct oriel_thread_debts **out);
void oriel_debts_free(struct oriel_thread_debts *debts);

/* Around the steps that record an operation to the target. */
void oriel_debts_issue_begin(struct oriel_thread_debts *debts, int32_t target);
void oriel_debts_issue_end(struct oriel_thread_debts *debts);

/* Around the steps that complete operations to the target; all: no other ones are left. Pays this
 * thread's debts. */
void oriel_debts_complete_begin(struct oriel_thread_debts *debts);
void oriel_debts_complete_end(struct oriel_thread_debts *debts, int32_t target, bool all);

/* Pays this thread's debts. */
void oriel_debts_pay(void);

#endif
