/* What a machine's server answers to a question.  remote_serve.c calls, each of its threads with a desk of its own. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_ANSWER_H
#define ORIEL_CHECK_REMOTE_REMOTE_ANSWER_H

#include "check/order/clock.h"

#include <stdbool.h>
#include <stddef.h>

struct oriel_check_remote_desk {
    bool leaf;  /* for the questions from ORIEL_CHECK_REMOTE_LEAVES on, and no others */
    char *data; /* of the question */
    size_t data_bytes;
    oriel_tick *clock; /* of the answer */
};

/* False: there is no memory. */
bool oriel_check_remote_desk_open(struct oriel_check_remote_desk *desk, bool leaf);
void oriel_check_remote_desk_close(struct oriel_check_remote_desk *desk);

/* Reads a question and answers it.  False: nothing that comes by this connection is to be believed any more. */
bool oriel_check_remote_answer(struct oriel_check_remote_desk *desk, int fd);

#endif
