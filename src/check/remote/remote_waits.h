/* What is asked of other machines when deadlocks are looked for, and what this one answers.  A machine that does not answer has
 * ended, or others notice: it is not told here.  deadlock_thread.c asks, remote_serve.c answers. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_WAITS_H
#define ORIEL_CHECK_REMOTE_REMOTE_WAITS_H

#include "check/deadlock/wait_snapshot.h"
#include "check/remote/remote.h"

const struct oriel_wait_snapshot_remote *oriel_check_remote_look(void);

/* The most that an answer takes. */
size_t oriel_check_remote_waits_bytes(void);

/* What follows the answer, in data, which has room for it behind the request's own; word: the answer's. */
size_t oriel_check_remote_waits_answer(const struct oriel_check_remote_request *request, void *data,
                                       uint64_t *word);

#endif
