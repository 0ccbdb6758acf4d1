/* The program's requests that the checker waits for: one table for messages, collectives and operations on windows.  completion.c
 * exports the functions that complete requests (MPI_Wait* and MPI_Test*, MPI_Request_get_status, MPI_Request_free) and start
 * persistent ones; each request's owner is told once that it is complete.  messages*.c and windows*.c add; thread-safe. */
#ifndef ORIEL_CHECK_INTERCEPT_REQUEST_TABLE_H
#define ORIEL_CHECK_INTERCEPT_REQUEST_TABLE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Told behind the call that found the request complete, in that thread, with no lock held; exactly once for each add.  status:
 * of the request; NULL when its end was not seen (MPI_Request_free, a handle that came up again). */
typedef void oriel_request_done_fn(void *closure, const MPI_Status *status);

/* What a kind of requests is to its owner. */
struct oriel_request_kind {
    oriel_request_done_fn *done;
    void (*release)(
        void *
            closure); /* its buffers are the program's again, before done says more, which follows; NULL: has none */
};

/* After the call that made the request has succeeded.  A host gives one handle to several requests that were complete at once:
 * done may be called here.  MPI_REQUEST_NULL is done at once; so is any request when memory is exhausted.  kind: stays. */
void oriel_checked_request_add(MPI_Request request, const struct oriel_request_kind *kind,
                               void *closure);

/* The same for a request that has something to say when it ends (a receive): its handle is no other's, so that an older request
 * of that handle has ended unseen. */
void oriel_checked_request_add_own(MPI_Request request, const struct oriel_request_kind *kind,
                                   void *closure);

/* What stands for a persistent request; the first member of its owner's struct. */
struct oriel_startable {
    void (*begin)(struct oriel_startable *startable);                /* before MPI_Start */
    void (*started)(struct oriel_startable *startable, bool failed); /* behind it */
    const struct oriel_request_kind *kind;           /* of each start; closure: the startable */
    void (*drop)(struct oriel_startable *startable); /* it is freed */
};
void oriel_checked_request_add_persistent(MPI_Request request, struct oriel_startable *startable);

/* The closure of a request that is under way and of that kind; NULL when there is none. */
void *oriel_checked_request_closure(MPI_Request request, const struct oriel_request_kind *kind);

/* --- for completion.c --- */

struct oriel_request_record;

/* Whether there is any record. */
bool oriel_request_records_exist(void);

/* A number for the call that this thread is in, for its claims; behind all that it does with them: no more. */
uint64_t oriel_claim_begin(void);
void oriel_claim_end(void);

/* The record of a request that is under way, for this call alone until it is put back or taken out, or the call
 * fails; NULL when there is none.  request: stays as long as the call. */
struct oriel_request_record *oriel_request_claim(const MPI_Request *request);
void oriel_request_unclaim(struct oriel_request_record *record, uint64_t claim);

/* The call with that claim (0: none) has failed with that error code, and is still under way.  Buffers of those that are over are
 * the program's at once where one thread makes all calls; else (a host may have called the error handler with a lock of its own)
 * at the handler's first call.  Those that are not over may be claimed by another. */
void oriel_claimed_requests_failed(uint64_t claim, int code);
void oriel_claimed_requests_release(uint64_t claim);

/* Whether the request of a call that has failed is over: hosts leave the handle of one that persists, and the error handler may
 * have put another in its place. */
bool oriel_request_is_over(MPI_Request request, const struct oriel_request_record *record,
                           int class);

/* Of a claimed one: it is complete.  In the order of their making the functions done are called. */
struct oriel_request_end {
    struct oriel_request_record *record;
    const MPI_Status *status;
    bool
        is_own; /* oriel_requests_end's: the call's still, which no error handler inside it has completed */
};
void oriel_requests_end(struct oriel_request_end *ends, int count, uint64_t claim);

/* The closure of one of that kind; NULL when it is of another. */
void *oriel_request_closure(const struct oriel_request_record *record,
                            const struct oriel_request_kind *kind);

/* Persistent ones, before a start; NULL when it is none of this table.  Should the last start be under way still, it has ended
 * unseen. */
struct oriel_startable *oriel_request_restart(MPI_Request request);
void oriel_request_activate(MPI_Request request);

/* Behind MPI_Request_free of what was this request. */
void oriel_request_freed(struct oriel_request_record *record, uint64_t claim);
struct oriel_request_record *oriel_request_claim_any(const MPI_Request *request);

#endif
