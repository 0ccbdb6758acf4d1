/* The host MPI as Oriel sees it: one table of its functions, found behind Oriel in the program's libraries, and the few
 * things that only a host can give (carrier windows, collectives at creation, completed requests).  This folder alone
 * knows which host it is; api/, window/ and rma/ call. */
#ifndef ORIEL_HOST_HOST_H
#define ORIEL_HOST_HOST_H

#include "base/wait.h"
#include "oriel/mpi_rma.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oriel_host_calls {
#define FUNCTION(name, parameters, arguments) __typeof__(PMPI_##name) *name;
#define FORWARD                               FUNCTION
#define LARGE                                 FUNCTION
#define CALL(name)                            __typeof__(PMPI_##name) *name;
#include "host/functions.def"
#include "host/calls.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
#undef CALL
};

/* The table; filled at the first call.  A slot is NULL where the host lacks the function. */
const struct oriel_host_calls *oriel_host(void);

/* The same for those that have been asked for it already. */
extern struct oriel_host_calls oriel_host_calls __attribute__((visibility("hidden")));

/* A function of the host by name, behind Oriel; NULL when it has none. */
void *oriel_host_symbol(const char *name);

/* Whether threads of the program may call at the same time (MPI_THREAD_MULTIPLE); the host is initialised. */
static inline bool oriel_host_has_threads(void)
{
    int level = MPI_THREAD_MULTIPLE;
    oriel_host()->Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

/* The host's name as in `oriel run --host`. */
const char *oriel_host_name(void);

/* How many ranks of the job run on this machine, as the host's launcher says; 0 where another has started them. */
uint32_t oriel_host_ranks_here(void);

/* Gathers len_bytes of every rank of comm on every rank, in rank order, yielding while it waits.  what names the call for
 * the line that is written when a rank does not answer within 10 s.  The watch's error ends the wait, and the collective is
 * given up; it may be NULL.  out may be NULL, too: who has no memory for it takes part, or all others would wait.  Collective. */
enum oriel_status oriel_host_gather(MPI_Comm comm, const char *what, const void *in,
                                    size_t len_bytes, void *out, const struct oriel_watch *watch);

/* The same, of lens_bytes[i] of rank i, at starts_bytes[i]; in is this rank's. */
enum oriel_status oriel_host_gather_some(MPI_Comm comm, const char *what, const void *in,
                                         const int *lens_bytes, const int *starts_bytes, void *out,
                                         const struct oriel_watch *watch);

/* The bits that every rank of comm has set.  Collective, waits like oriel_host_gather. */
enum oriel_status oriel_host_agree(MPI_Comm comm, const char *what, uint32_t bits, uint32_t *agreed,
                                   const struct oriel_watch *watch);

/* Whether all ranks of comm share memory, as the host sees it; true where it does not say.  Collective. */
bool oriel_host_shares_memory(MPI_Comm comm);

/* Makes a host window whose handle carries an Oriel window: on a communicator of this process alone, so that it costs
 * microseconds and concerns nobody else.  ORIEL_E_NO_MEM when the host has no handle left.  comm is the user's. */
enum oriel_status oriel_host_carrier(MPI_Comm comm, uint32_t live_windows, MPI_Win *out);

/* Gives a carrier back.  is_as_made: the program has given it no attribute, name or error handler, so that another window may
 * have it.  False where a delete callback failed: it stays. */
bool oriel_host_carrier_free(MPI_Win *carrier, bool is_as_made);

/* Makes what carriers stand on, for those that need it without one (the checker).  comm is the user's. */
enum oriel_status oriel_host_alone(MPI_Comm comm);

/* The communicator that carriers stand on; there is one as long as there is a carrier. */
MPI_Comm oriel_host_singleton(void);

/* Lets the host's pending communication go on; for a thread that is inside an MPI call. */
void oriel_host_progress(void);

/* Has the host call turn again and again while a thread waits in it, until the process ends.  turn returns how much it has done.
 * A second call, with the same turn, does nothing. */
void oriel_host_poll(int (*turn)(void));

/* Gives up what carriers stood on; no window has one any more. */
void oriel_host_carrier_stop(void);

/* A request that is complete already, for MPI_Wait and all its kind; there must be a carrier. */
enum oriel_status oriel_host_completed_request(MPI_Request *out);

/* A request that is complete once oriel_host_request_end is called.  query: a function that was asked for its status has found it
 * complete, in this thread, perhaps not for the last time; drop: the host will not name whose again. */
enum oriel_status oriel_host_open_request(MPI_Grequest_query_function *query,
                                          MPI_Grequest_free_function *drop, void *whose,
                                          MPI_Request *out);
void oriel_host_request_end(MPI_Request request);

/* The status of an operation of this library, for query. */
void oriel_host_fill_status(MPI_Status *status);

/* Whether the host takes this datatype for communication; there must be a carrier. */
bool oriel_host_type_is_committed(MPI_Datatype datatype);

/* Whether live_windows more than a thousand need a look at what the host has left (src/host/<host>). */
bool oriel_host_windows_scarce(uint32_t live_windows);

#endif
