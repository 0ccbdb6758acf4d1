/* What the persistent requests of all operations share: their record, the checks at each start, and
 * the end of operations that return data from another node. */
#ifndef ORIEL_API_PERSISTENT_OPERATION_H
#define ORIEL_API_PERSISTENT_OPERATION_H

#include "api/argument_checks.h"
#include "host/persistent.h"

struct oriel_request_state;

/* Embedded first in the record of each kind of operation. */
struct oriel_persistent_operation {
    struct oriel_persistent request; /* first */
    /* Issues the operation by its general path, after the checks. */
    enum oriel_status (*issue)(struct oriel_persistent_operation *operation,
                               struct oriel_window *window);
    struct oriel_span target; /* the offset in a dynamic window is that of the last start */
    bool returns_data;
    bool moves;    /* something, or there is only a notification */
    bool notifies; /* the target; by the counter of the next number */
    int number;
    struct oriel_request_state *asked; /* started, and returns data from another node; else NULL */
    const struct oriel_type *types[3]; /* retained; NULL for sides that do not exist */
};

/* The last step of the creation, with the status of the checks: creates the request of a record
 * from calloc, or frees the record. The caller has set all but asked, and of the request kind,
 * counted and len_bytes. For MPI_PROC_NULL it need not set more than the types. The number of a
 * notification is checked here. */
enum oriel_status oriel_persistent_operation_create(struct oriel_persistent_operation *operation,
                                                    const struct oriel_window *window,
                                                    int target_rank, MPI_Aint target_disp,
                                                    enum oriel_status status, MPI_Request *request);

/* A start by the general path, with all its checks. */
enum oriel_status oriel_persistent_operation_start(struct oriel_persistent_operation *operation,
                                                   struct oriel_window *window);

/* This process's address of the operation's target, if the CPU reaches span_bytes from low_bytes
 * around it; else NULL. */
char *oriel_persistent_direct(const struct oriel_window *window, const struct oriel_span *target,
                              int64_t low_bytes, int64_t span_bytes);

/* For struct oriel_persistent_kind. */
enum oriel_persistent_state oriel_persistent_operation_poll(struct oriel_persistent *request);
enum oriel_status oriel_persistent_operation_failure(struct oriel_persistent *request,
                                                     struct oriel_window *window);
void oriel_persistent_operation_release(struct oriel_persistent *request);

#define ORIEL_PERSISTENT_OPERATION_KIND(begin)                                                     \
    {                                                                                              \
        .start = begin, .poll = oriel_persistent_operation_poll,                                   \
        .failure = oriel_persistent_operation_failure,                                             \
        .release = oriel_persistent_operation_release                                              \
    }

#endif
