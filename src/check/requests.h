/* The program's requests that the checker waits for: one table for messages, collectives and operations on windows.  completion.c
 * exports the functions that complete requests (MPI_Wait* and MPI_Test*, MPI_Request_get_status, MPI_Request_free) and start
 * persistent ones; each request's owner is told once that it is complete.  messages*.c and windows*.c add; thread-safe. */
#ifndef ORIEL_CHECK_REQUESTS_H
#define ORIEL_CHECK_REQUESTS_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Told behind the call that found the request complete, in that thread, with no lock held; exactly once for each add.  status:
 * of the request; NULL when its end was not seen (MPI_Request_free, a handle that came up again). */
typedef void oriel_request_done_fn(void *closure, const MPI_Status *status);

/* What a kind of requests is to its owner. */
struct oriel_request_kind {
    oriel_request_done_fn *done;
    void (*release)(void *closure); /* its buffers are the program's again, before done says more, which follows; NULL: has none */
};

/* After the call that made the request has succeeded.  A host gives one handle to several requests that were complete at once:
 * done may be called here.  MPI_REQUEST_NULL is done at once; so is any request when memory is exhausted.  kind: stays. */
void oriel_checked_request_add(MPI_Request request, const struct oriel_request_kind *kind, void *closure);

/* The same for a request that has something to say when it ends (a receive): its handle is no other's, so that an older request
 * of that handle has ended unseen. */
void oriel_checked_request_add_own(MPI_Request request, const struct oriel_request_kind *kind, void *closure);

/* What stands for a persistent request; the first member of its owner's struct. */
struct oriel_startable {
    void (*begin)(struct oriel_startable *startable);                /* before MPI_Start */
    void (*started)(struct oriel_startable *startable, bool failed); /* behind it */
    const struct oriel_request_kind *kind;                           /* of each start; closure: the startable */
    void (*drop)(struct oriel_startable *startable);                 /* it is freed */
};
void oriel_checked_request_add_persistent(MPI_Request request, struct oriel_startable *startable);

/* The closure of a request that is under way and of that kind; NULL when there is none. */
void *oriel_checked_request_closure(MPI_Request request, const struct oriel_request_kind *kind);

/* --- for completion.c --- */

struct oriel_request_record;

/* Whether there is any record. */
bool oriel_request_records_exist(void);

/* The record of a request that is under way, for this thread alone until it is put back or taken out; NULL when there is none.
 * request: stays until then, unless the call is left. */
struct oriel_request_record *oriel_request_claim(const MPI_Request *request);
void oriel_request_unclaim(struct oriel_request_record *record);

/* The call in which this thread has claimed some, inside so many of its error handlers, has failed with an error of that class, and
 * is still under way.  Buffers of those that are over are the program's, in the error handler, too. */
void oriel_claimed_requests_failed(uint32_t handlers, int class);

/* That call was left, and nothing is known of it: so are the buffers of all that it was given. */
void oriel_claimed_requests_release(uint32_t handlers);

/* Whether the request of such a call is over: hosts leave the handle of one that persists. */
bool oriel_request_is_over(const MPI_Request *request, const struct oriel_request_record *record, int class);

/* This thread has left the calls in which it has claimed some, inside so many of its error handlers or more, and will not come
 * back to them. */
void oriel_claimed_requests_let_go(uint32_t handlers);

/* Of a claimed one: it is complete.  In the order of their making the functions done are called. */
struct oriel_request_end {
    struct oriel_request_record *record;
    const MPI_Status *status;
};
void oriel_requests_end(struct oriel_request_end *ends, int count);

/* The closure of one of that kind; NULL when it is of another. */
void *oriel_request_closure(const struct oriel_request_record *record, const struct oriel_request_kind *kind);

/* Persistent ones: NULL when it is none of this table. */
struct oriel_startable *oriel_request_startable(MPI_Request request);
void oriel_request_activate(MPI_Request request);

/* Behind MPI_Request_free of what was this request. */
void oriel_request_freed(struct oriel_request_record *record);
struct oriel_request_record *oriel_request_claim_any(const MPI_Request *request);

#endif
