/* The program's requests that the checker waits for: one table for messages, collectives and
 * operations on windows. request_completion.c exports the functions that complete requests
 * (MPI_Wait* and MPI_Test*, MPI_Request_get_status, MPI_Request_free) and start persistent ones.
 * The owner of a request gets one call when it is complete. Thread-safe. */
#ifndef ORIEL_CHECK_INTERCEPT_REQUEST_TABLE_H
#define ORIEL_CHECK_INTERCEPT_REQUEST_TABLE_H

#include "check/common/access_types.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Called after the call that found the request complete, in that thread, with no lock held; exactly
 * once for each add. status: of the request; NULL when its end was not seen (MPI_Request_free, a
 * handle that the host used again). */
typedef void oriel_request_done_fn(void *closure, const MPI_Status *status);

/* A kind of requests, as its owner defines it. */
struct oriel_request_kind {
    oriel_request_done_fn *done;
    /* returns its buffers to the program; `done` follows later; NULL: no buffers */
    void (*release)(void *closure);
};

/* After the call that made the request has succeeded. The handle belongs to this request alone, so
 * an older request with that handle has ended unseen. MPI_REQUEST_NULL is done at once; so is any
 * request when memory is exhausted. kind: must stay valid. */
void oriel_checked_request_add(MPI_Request request, const struct oriel_request_kind *kind,
                               void *closure);

/* The same for a request whose status shows nothing: of a send, a collective, an operation. If it
 * is complete already, *request becomes a handle of its own. Without memory it is done at once. */
void oriel_checked_request_add_own(MPI_Request *request, const struct oriel_request_kind *kind,
                                   void *closure);

/* A persistent request; the first member of its owner's struct. */
struct oriel_startable {
    /* before MPI_Start or MPI_Startall (call, an enum oriel_call), which returns to the address */
    void (*begin)(struct oriel_startable *startable, const void *address, uint16_t call);
    /* after it, with its code; returns the program's code */
    int (*started)(struct oriel_startable *startable, int code);
    const struct oriel_request_kind *kind;           /* of each start; closure: the startable */
    void (*drop)(struct oriel_startable *startable); /* the request is freed */
    const MPI_Win *win;     /* its window, where another start of an active one fails; NULL: none */
    struct oriel_site init; /* the call that made it; call 0: not kept */
};
void oriel_checked_request_add_persistent(MPI_Request request, struct oriel_startable *startable);

/* The closure of an active request of that kind; NULL: none. */
void *oriel_checked_request_closure(MPI_Request request, const struct oriel_request_kind *kind);

/* --- claims by calls that complete requests --- */

struct oriel_request_record;

/* Whether any record exists. */
bool oriel_request_records_exist(void);

/* Begins and ends the claims of the call that this thread is in; begin returns their number. */
uint64_t oriel_claim_begin(void);
void oriel_claim_end(void);

/* Claims the record of an active request for this call, until the call returns the claim, removes
 * the record, or fails. NULL: no record. request: must stay valid during the call. */
struct oriel_request_record *oriel_request_claim(const MPI_Request *request);
void oriel_request_unclaim(struct oriel_request_record *record, uint64_t claim);

/* The call with that claim (0: none) has failed with that code, and has not returned. Buffers of
 * its finished requests are the program's at once where one thread makes all calls. Otherwise (the
 * host may hold a lock of its own) they are at the error handler's first call. Another call may
 * claim the unfinished requests. */
void oriel_claimed_requests_failed(uint64_t claim, int code);
void oriel_claimed_requests_release(uint64_t claim);

/* Whether the request of a failed call is over. Hosts keep the handle of a persistent one, and the
 * error handler may have put another in its place. */
bool oriel_request_is_over(MPI_Request request, const struct oriel_request_record *record,
                           int class);

/* A claimed request is complete. `done` is called in the order in which the requests were made. */
struct oriel_request_end {
    struct oriel_request_record *record;
    const MPI_Status *status;
    bool is_own; /* set by oriel_requests_end: no error handler inside the call has completed it */
};
void oriel_requests_end(struct oriel_request_end *ends, int count, uint64_t claim);

/* The closure of a record of that kind; NULL: it is of another kind. */
void *oriel_request_closure(const struct oriel_request_record *record,
                            const struct oriel_request_kind *kind);

/* A persistent request, before a start; NULL: it is not in this table. If the last start is still
 * active, it has ended unseen, as after a wait that failed; of a window's request *last is its call
 * then, and the next start fails if it has not. Else *last is call 0. */
struct oriel_startable *oriel_request_restart(MPI_Request request, struct oriel_site *last);

/* After the start, by the call at the site. */
void oriel_request_activate(MPI_Request request, const struct oriel_site *site);

/* After MPI_Request_free of this request. */
void oriel_request_freed(struct oriel_request_record *record, uint64_t claim);
struct oriel_request_record *oriel_request_claim_any(const MPI_Request *request);

#endif
