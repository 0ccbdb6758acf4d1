/* What is believed of messages from the checkers of other machines: whatever is in them, nothing is read or written but what they
 * are about.  Who sends one has shown the number that the job's ranks have told each other, and may err in all the rest.
 * remote_answer.c asks about questions, those who ask other machines about answers. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_VALIDATE_H
#define ORIEL_CHECK_REMOTE_REMOTE_VALIDATE_H

#include "check/access/history.h"
#include "check/deadlock/wait_internal.h"
#include "check/remote/remote.h"

/* Kind, length and key of a question go together. */
bool oriel_check_remote_request_holds(const struct oriel_check_remote_request *request);

/* An operation of a rank that there is, not complete, and bytes that a process can have. */
bool oriel_check_remote_access_holds(const struct oriel_access *access,
                                     const struct oriel_access_extent *extents, size_t count);

/* Likewise, of answers; len_bytes: of all that came. */
bool oriel_check_remote_conflicts_hold(const struct oriel_conflict *conflicts, size_t len_bytes);
bool oriel_check_remote_reports_hold(const struct oriel_wait_report *reports, size_t len_bytes);
bool oriel_check_remote_gathering_holds(const struct oriel_collective_progress *gathering,
                                        size_t len_bytes);

#endif
