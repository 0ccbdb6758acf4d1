/* Order by notified access (include/oriel/ext.h). A notified operation gives its process's clock to
 * the target's counter, and the call that takes the notification takes it. */
#ifndef ORIEL_CHECK_WINDOW_NOTIFIED_H
#define ORIEL_CHECK_WINDOW_NOTIFIED_H

#include "check/window/checked_window.h"

struct oriel_notified;

/* The value of the info key oriel_notifications. */
uint32_t oriel_notified_counters(MPI_Info info);

/* The group of the operation as an access of the target's history. 0: it counts as complete at
 * once. */
struct oriel_operation;
uint64_t oriel_notified_group(const struct oriel_operation *operation);

/* Before the operation is passed on, after its access is recorded. Without effect unless it
 * notifies and is allowed. */
void oriel_notified_give(const struct oriel_operation *operation);

/* After the operation, with its code: one that has failed has not notified. */
void oriel_notified_ended(const struct oriel_operation *operation, int code);

/* A flush or the end of an epoch completes the notified operations on the target. */
void oriel_notified_complete(struct oriel_checked *window, int32_t target);

/* After a call that has taken count notifications of this process's counter. */
void oriel_notified_take(struct oriel_checked *window, int number, uint64_t count);

/* All members are in MPI_Win_free: drops the clocks, and frees the counts. */
void oriel_notified_close(struct oriel_checked *window);

#endif
