/* The requests of request-based operations: complete ones, and pending ones where an operation brings something from another
 * machine (internode/origin/rma_requests.h).  A pending one is a generalised request of the host, which is told of its end in the calls that
 * complete requests, by the thread that calls.  put_get.c and accumulate.c make them, completion.c completes them. */
#ifndef ORIEL_API_REQUESTS_H
#define ORIEL_API_REQUESTS_H

#include "api/api.h"
#include "base/atomic.h"

#include <stdatomic.h>

struct oriel_asked;

/* Before an operation with a request; *asked is NULL where nothing of it will be outstanding.  give must follow, unless there is
 * an error: then it has been raised. */
int oriel_request_begin(struct oriel_window *window, const char *call, int target_rank, bool reads,
                        struct oriel_asked **asked);

/* After the operation, with its code: the request, or the code where it failed; *request is then not touched. */
int oriel_request_give(struct oriel_window *window, const char *call, struct oriel_asked *asked,
                       int code, MPI_Request *request);

/* Requests of this process that a completion function must care for: not yet told to the host, or failed and not yet told to the
 * program.  Hidden, so that the compiler knows that it is the library's own. */
extern _Atomic uint32_t oriel_requests_open __attribute__((visibility("hidden")));

/* A thread that has a request has seen that it was counted. */
static inline bool oriel_requests_are_open(void)
{
    return oriel_unlikely(atomic_load_explicit(&oriel_requests_open, memory_order_relaxed) != 0);
}

/* Takes what has come and tells the host of the operations that have ended. */
void oriel_requests_progress(void);

/* The failures that the host's function has met in this thread since the last call, one for each call: false when there is none
 * left.  Raised on the window's handler, or nowhere when that is freed; its class, and its request's handle as it was. */
bool oriel_requests_failed(const char *call, int *error_class, MPI_Request *request);

/* They are no concern of this function. */
void oriel_requests_ignore_failed(void);

#endif
