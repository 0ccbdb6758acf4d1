/* What the notified operations and their persistent forms share (notify_entry.c). */
#ifndef ORIEL_API_NOTIFIED_OPERATION_H
#define ORIEL_API_NOTIFIED_OPERATION_H

#include "api/argument_checks.h"

/* Before a notified operation, after its checks: checks the number and sets target->notifies. A
 * target on another node checks the number itself. */
enum oriel_status oriel_notified_begin(const struct oriel_window *window, int number,
                                       struct oriel_span *target);

/* After the operation, which moved something or not: notifies the target. */
enum oriel_status oriel_notified_end(struct oriel_window *window, const struct oriel_span *target,
                                     bool moves);

/* The arguments of a call that takes notifications of the calling rank. */
enum oriel_status oriel_notified_check_taking(const struct oriel_window *window, int number,
                                              MPI_Count count);

#endif
