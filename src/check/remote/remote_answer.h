/* The answers of a node's server. Each of its threads has a worker of its own. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_ANSWER_H
#define ORIEL_CHECK_REMOTE_REMOTE_ANSWER_H

#include "check/common/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct oriel_check_remote_worker {
    bool leaf;  /* for the requests from ORIEL_CHECK_REMOTE_LEAVES on, and no others */
    char *data; /* of the request */
    size_t data_bytes;
    oriel_tick *clock; /* of the answer */
};

/* Returns false when memory is exhausted. */
bool oriel_check_remote_worker_open(struct oriel_check_remote_worker *worker, bool leaf);
void oriel_check_remote_worker_close(struct oriel_check_remote_worker *worker);

/* Reads a request and answers it. Returns false if nothing on this connection can be trusted any
 * more. */
bool oriel_check_remote_answer(struct oriel_check_remote_worker *worker, int fd);

#endif
