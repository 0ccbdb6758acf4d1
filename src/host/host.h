/* The host MPI: a table of its functions, found after Oriel in the program's libraries, and the few
 * services that only a host can provide (carrier windows, collectives at creation, completed
 * requests). Only this folder and the folders named after a host, in api/, know which host it
 * is. */
#ifndef ORIEL_HOST_HOST_H
#define ORIEL_HOST_HOST_H

#include "base/wait.h"
#include "oriel/mpi_rma.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether this is compiled with the mpi.h of MPI's standard ABI. The host is then any MPI that
 * offers the ABI. */
#if defined(MPI_ABI_VERSION) && !defined(MPICH_VERSION) && !defined(OMPI_MAJOR_VERSION)
#define ORIEL_HOST_IS_ABI 1
#else
#define ORIEL_HOST_IS_ABI 0
#endif

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

/* The table, filled by the first call. A slot is NULL if the host lacks the function. */
const struct oriel_host_calls *oriel_host(void);

/* The same table, for callers that run after the first call. */
extern struct oriel_host_calls oriel_host_calls __attribute__((visibility("hidden")));

/* The host's function of that name, after Oriel, or NULL. */
void *oriel_host_symbol(const char *name);

/* Called before each lookup by dlsym with a library's handle, which may follow its dlopen. NULL:
 * nothing is. */
extern void (*oriel_dlsym_watch)(void) __attribute__((visibility("hidden")));

/* Whether this thread is in a function of the host's library, or of Oriel's. Takes microseconds. */
bool oriel_host_is_on_stack(void);

/* The same; slot, NULL at first, keeps it. */
static inline void *oriel_host_symbol_kept(_Atomic(void *) *slot, const char *name)
{
    void *function = atomic_load_explicit(slot, memory_order_acquire);
    if (function == NULL) {
        function = oriel_host_symbol(name);
        atomic_store_explicit(slot, function, memory_order_release);
    }
    return function;
}

/* True if several threads of the program may call MPI concurrently (MPI_THREAD_MULTIPLE). The host
 * must be initialised. */
static inline bool oriel_host_has_threads(void)
{
    int level = MPI_THREAD_MULTIPLE;
    oriel_host()->Query_thread(&level);
    return level == MPI_THREAD_MULTIPLE;
}

/* The host's name as in `oriel run --host`. */
const char *oriel_host_name(void);

/* Writes the name and version of the MPI, "MPICH 5.0.2", for the standard ABI too. */
void oriel_host_version(char *out, size_t room);

/* Whether MPI_COMM_WORLD exists: programs with only sessions have none, and some hosts crash if
 * asked for it. */
bool oriel_host_has_world(void);

/* Number of ranks of the job on this node according to the host's launcher; 0 if another launcher
 * started them. */
uint32_t oriel_host_node_ranks(void);

/* Gathers len_bytes of every rank of comm on every rank, in rank order. While it waits it yields
 * the processor, then sleeps for short times. call is the name of the MPI call in the warning about
 * a rank that does not answer within 10 s. An error of the watch ends the wait and abandons the
 * collective; watch may be NULL. out may also be NULL: a rank without memory for the result still
 * takes part, or all others would wait. Collective. */
enum oriel_status oriel_host_allgather(MPI_Comm comm, const char *call, const void *in,
                                       size_t len_bytes, void *out,
                                       const struct oriel_watch *watch);

/* The same for lens_bytes[i] bytes of rank i, at starts_bytes[i]; in is this rank's part. */
enum oriel_status oriel_host_allgatherv(MPI_Comm comm, const char *call, const void *in,
                                        const int *lens_bytes, const int *starts_bytes, void *out,
                                        const struct oriel_watch *watch);

/* The bits that are set on every rank of comm. Collective; waits like oriel_host_allgather. */
enum oriel_status oriel_host_agree(MPI_Comm comm, const char *call, uint32_t bits, uint32_t *agreed,
                                   const struct oriel_watch *watch);

/* True if the host reports that all ranks of comm share memory, and true if it does not report.
 * Collective. */
bool oriel_host_shares_memory(MPI_Comm comm);

/* Creates a host window whose handle represents an Oriel window. It uses a communicator of only
 * this process, so it takes microseconds and involves no other rank. Returns ORIEL_E_NO_MEM if the
 * host has no handle left. comm is the user's communicator. */
enum oriel_status oriel_host_carrier(MPI_Comm comm, uint32_t live_windows, MPI_Win *out);

/* What the program has set on a carrier, as bits. */
enum oriel_carrier_change {
    ORIEL_CARRIER_NAMED = 1,     /* a name or an error handler: no other window may reuse it */
    ORIEL_CARRIER_ATTRIBUTED = 2 /* an attribute, whose callback runs when it is freed */
};

/* Frees a carrier. Returns false if a delete callback failed; the carrier then still exists. */
bool oriel_host_carrier_free(MPI_Win *carrier, uint32_t changes);

/* Creates the carriers' communicator for a caller that needs it without a carrier (the checker).
 * comm is the user's communicator. */
enum oriel_status oriel_host_singleton_create(MPI_Comm comm);

/* The carriers' communicator. It exists while any carrier exists. */
MPI_Comm oriel_host_singleton(void);

/* Makes the host progress its outstanding communication. The calling thread is inside an MPI
 * call. */
void oriel_host_progress(void);

/* Registers turn with hosts that call it repeatedly while a thread waits in them; turn returns the
 * number of events that it handled. Only one function is registered at a time: later
 * calls have no effect until it is unregistered. */
void oriel_host_progress_register(int (*turn)(void));
void oriel_host_progress_unregister(void);

/* Removes the progress hook of waits, and frees the spare carriers and the carriers' communicator.
 * No window may have a carrier any more. */
void oriel_host_carrier_stop(void);

/* A request that is already complete, for MPI_Wait and related functions. A carrier must exist. */
enum oriel_status oriel_host_completed_request(MPI_Request *out);

/* A request that completes when oriel_host_request_complete is called. The host calls query with
 * extra_state in a completion function that finds the request complete, in its thread, possibly
 * more than once. It calls drop when it makes no further call with extra_state. */
enum oriel_status oriel_host_request_start(MPI_Grequest_query_function *query,
                                           MPI_Grequest_free_function *drop, void *extra_state,
                                           MPI_Request *out);
void oriel_host_request_complete(MPI_Request request);

/* Number of requests that a completion function must handle: not yet reported to the host, or
 * failed and not yet reported to the program. Hidden, so the compiler knows that it is local to the
 * library. */
extern _Atomic uint32_t oriel_requests_open __attribute__((visibility("hidden")));

/* The status of an operation of this library, for query. */
void oriel_host_fill_status(MPI_Status *status);

/* True if the host accepts this datatype for communication. A carrier must exist. */
bool oriel_host_type_is_committed(MPI_Datatype datatype);

/* False for error codes that may be the program's own and unknown to the host: with some hosts
 * MPI_Error_class of these is an error. */
bool oriel_host_has_code(int code);

/* True if this number of live windows (above a thousand) requires a check of the host's remaining
 * handles. */
bool oriel_host_windows_scarce(uint32_t live_windows);

#endif
