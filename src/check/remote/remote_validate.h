/* Validation of messages from the checkers of other nodes: whatever a message contains, only the
 * memory that it names is read or written. The sender has proven that it has the job's key, but
 * everything else may be wrong. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_VALIDATE_H
#define ORIEL_CHECK_REMOTE_REMOTE_VALIDATE_H

#include "check/common/access_types.h"
#include "check/deadlock/wait_internal.h"
#include "check/remote/remote.h"

/* Whether kind, length and key of a request fit together. */
bool oriel_check_remote_request_is_valid(const struct oriel_check_remote_request *request);

/* Whether it is an operation of an existing rank, not complete, on bytes that a process can
 * have. */
bool oriel_check_remote_access_is_valid(const struct oriel_access *access,
                                        const struct oriel_access_extent *extents, size_t count);

/* The same for answers; len_bytes: of the whole answer. */
bool oriel_check_remote_conflicts_are_valid(const struct oriel_conflict *conflicts,
                                            size_t len_bytes);
bool oriel_check_remote_reports_are_valid(const struct oriel_wait_report *reports,
                                          size_t len_bytes);
bool oriel_check_remote_progress_is_valid(const struct oriel_collective_progress *progress,
                                          size_t len_bytes);

#endif
