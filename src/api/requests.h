/* The requests of request-based operations. They are complete, or outstanding if an operation
 * returns data from another node (internode/origin/rma_requests.h). An outstanding one is a
 * generalised request of the host. The calls that complete requests notify the host of its end, in
 * the calling thread. */
#ifndef ORIEL_API_REQUESTS_H
#define ORIEL_API_REQUESTS_H

#include "api/api.h"
#include "base/atomic.h"
#include "host/persistent.h"

#include <stdatomic.h>

struct oriel_request_state;

/* The window of an extension that returns a request. Otherwise the error is raised: NULL, and its
 * class in *code. */
struct oriel_window *oriel_request_window(const char *call, MPI_Win win, const MPI_Request *request,
                                          int *code);

/* Before an operation with a request. *asked is NULL if it leaves nothing outstanding. give must
 * follow, unless this returns an error, which has been raised. */
int oriel_request_begin(struct oriel_window *window, const char *call, int target_rank, bool reads,
                        struct oriel_request_state **asked);

/* After the operation, with its code: sets the request, or returns the code of a failure; then
 * *request is unchanged. */
int oriel_request_give(struct oriel_window *window, const char *call,
                       struct oriel_request_state *asked, int code, MPI_Request *request);

/* The same for an operation that returns data from another node, for a caller that asks for its
 * end: NULL without memory. oriel_request_sent must follow the operation. The caller drops it when
 * it no longer asks. */
struct oriel_request_state *oriel_request_begin_polled(const struct oriel_window *window,
                                                       int target_rank);
void oriel_request_sent(struct oriel_request_state *asked);
bool oriel_request_has_ended(const struct oriel_request_state *asked);
/* After its end: the failure, with the thread's message, which the next flush of the window then
 * does not report again. window may be NULL. */
enum oriel_status oriel_request_failure(const struct oriel_request_state *asked,
                                        struct oriel_window *window);
void oriel_request_drop(struct oriel_request_state *asked);

/* A flush of an internode target, or of all for -1, that ends with the request. */
int oriel_request_flush(struct oriel_window *window, const char *call, int32_t target,
                        MPI_Request *request);

/* Ends the window's flushes before it is freed: another thread that completes requests finds the
 * window by them. */
void oriel_requests_window_ends(const struct oriel_window *window);

/* Whether completion functions must poll. A thread that has a request has seen it counted. */
static inline bool oriel_requests_are_open(void)
{
    return oriel_unlikely(atomic_load_explicit(&oriel_requests_open, memory_order_relaxed) != 0);
}

/* Whether they must look at their requests: also if persistent ones exist. */
static inline bool oriel_requests_are_special(void)
{
    return oriel_unlikely((atomic_load_explicit(&oriel_requests_open, memory_order_relaxed) |
                           atomic_load_explicit(&oriel_persistent_count, memory_order_relaxed)) !=
                          0);
}

/* Processes messages and notifies the host of the operations that have ended. */
void oriel_requests_progress(void);

/* Returns one failure that the host's function met in this thread since the last call; false if
 * there is none left. The error is raised on the window's handler, or without an object if the
 * window is freed. Outputs its class and its request's former handle. */
bool oriel_requests_failed(const char *call, int *error_class, MPI_Request *request);

/* Discards this thread's failures: the caller's MPI function does not report them. */
void oriel_requests_ignore_failed(void);

#endif
