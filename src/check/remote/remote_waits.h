/* Requests to other nodes for the deadlock finder, and this node's answers. A node that does not
 * answer has ended, or other requests notice it: nothing is reported here. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_WAITS_H
#define ORIEL_CHECK_REMOTE_REMOTE_WAITS_H

#include "check/deadlock/wait_snapshot.h"
#include "check/remote/remote.h"

const struct oriel_wait_snapshot_remote *oriel_check_remote_waits(void);

/* The maximum size of an answer. */
size_t oriel_check_remote_waits_bytes(void);

/* Writes the data after the answer to data, which has room for oriel_check_remote_waits_bytes(),
 * and sets word of the answer. */
size_t oriel_check_remote_waits_answer(const struct oriel_check_remote_request *request, void *data,
                                       uint64_t *word);

#endif
