/* Flushes of several targets and windows at once, flushes that do not wait, and order without a
 * flush. */
#ifndef ORIEL_INTERNODE_ORIGIN_FLUSH_SEVERAL_H
#define ORIEL_INTERNODE_ORIGIN_FLUSH_SEVERAL_H

#include "internode/internode.h"

/* oriel_internode_flush for each of n ranks, in one round trip. Ranks on this node and outside the
 * window are skipped. Returns the first failure of any. */
enum oriel_status oriel_internode_flush_list(struct oriel_window *window, int n, const int ranks[]);

/* The same for all targets of n windows that span nodes, in ascending order of their serial
 * numbers, each once. All are flushed; *failed is the window of the first failure. */
enum oriel_status oriel_internode_flush_windows(struct oriel_window *const windows[], int n,
                                                struct oriel_window **failed);

/* A flush in progress. */
struct oriel_internode_flush {
    int32_t target; /* -1: all */
    uint64_t until; /* number of the last open request that it awaits */
    uint64_t checked_ns;
};

/* Sends the requests of a flush and does not wait for their replies. */
enum oriel_status oriel_internode_flush_begin(struct oriel_window *window, int32_t target,
                                              struct oriel_internode_flush *flush);

/* Whether it has ended, with its failure or ORIEL_OK. Checks from time to time whether the target
 * lives. Does not wait; the caller processes messages. */
bool oriel_internode_flush_has_ended(struct oriel_window *window,
                                     struct oriel_internode_flush *flush,
                                     enum oriel_status *status);

/* Later operations on the target take effect after those that this process has issued. */
enum oriel_status oriel_internode_order(struct oriel_window *window, int32_t target);

/* --- origin_sync.c: the steps of a flush, with flushing held --- */

/* F2, F3: sends requests to target, or to all with the flag for -1. *is_asked: false if memory was
 * short. */
void oriel_flush_send(struct oriel_window *window, int32_t target,
                      enum oriel_internode_target_flag mark, enum oriel_internode_kind kind,
                      struct oriel_first_failure *first, bool *is_asked);

/* Waits for the open requests of a target, or of all for -1, oldest first: those with numbers of at
 * most until. */
void oriel_flush_await(struct oriel_window *window, int32_t target, uint64_t until,
                       struct oriel_first_failure *first);

#endif
