/* What the wrappers of messages and collectives share: buffers as uses of local memory, and calls
 * on communicators that are not modelled. A call has three steps: begin, the call itself, end. With
 * a request, the end is the request's completion. */
#ifndef ORIEL_CHECK_INTERCEPT_MESSAGES_H
#define ORIEL_CHECK_INTERCEPT_MESSAGES_H

#include "check/intercept/communicators.h"
#include "check/local/local_accesses.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"

/* What the call that this thread is in has begun, for error handlers inside it. */
struct oriel_begun {
    bool is_collective; /* it has a number, which is void if it meets no member */
    uint64_t claim;     /* its claim on the requests that it completes or frees; 0: none */
};
extern _Thread_local struct oriel_begun oriel_begun __attribute__((visibility("hidden")));

/* --- buffers --- */

/* The buffers of one call. A blocking call uses what it reads before it, and what it writes after
 * it. With a request, all buffers are in use from before the call until its completion. */
struct oriel_uses {
    struct oriel_site site;
    oriel_local_group group; /* 0: blocking */
    bool is_after;
    bool is_root;
    int rank, size; /* in the communicator; size 0: not modelled, no buffer is checked */
};

void oriel_uses_begin(struct oriel_uses *uses, const void *address, uint16_t call, bool pends);
void oriel_use(const struct oriel_uses *uses, bool writes, const void *buffer, MPI_Count count,
               MPI_Datatype datatype);
/* displacement: in extents of the datatype. */
void oriel_use_at(const struct oriel_uses *uses, bool writes, const void *buffer,
                  MPI_Aint displacement, MPI_Count count, MPI_Datatype datatype);

/* --- collectives --- */

enum oriel_flow {
    ORIEL_FLOW_ALL,       /* from all to all */
    ORIEL_FLOW_FROM_ROOT, /* from the root to all */
    ORIEL_FLOW_TO_ROOT,   /* from all to the root */
    ORIEL_FLOW_UP,        /* from lower ranks to higher */
};

/* comm: NULL when it is not modelled, or has members on nodes that are not reached. */
struct oriel_collective {
    struct oriel_comm *comm;
    bool is_unknown;
    enum oriel_flow flow;
    int root;
    uint64_t number;
    uint64_t arrival; /* number of the call in the communicator's collective progress */
    uint16_t call;
};

void oriel_collective_begin(struct oriel_collective *collective, MPI_Comm comm,
                            enum oriel_flow flow, int root, const char *name);
/* The same for a communicator that is known. */
void oriel_collective_begin_in(struct oriel_collective *collective, struct oriel_comm *comm,
                               enum oriel_flow flow, int root, const char *name);
/* failed: the call may have met no member, and then the others' next call has its number. */
void oriel_collective_end(struct oriel_collective *collective, bool failed);

/* One with a request, in memory of its own from begin on. NULL when memory is exhausted: the call
 * then counts as not modelled. */
struct oriel_collective_request;
struct oriel_collective_request *oriel_collective_request_begin(MPI_Comm comm, enum oriel_flow flow,
                                                                int root, const char *name,
                                                                oriel_local_group buffers);
/* Before the call. */
void oriel_collective_request_arrived(struct oriel_collective_request *pending,
                                      const struct oriel_site *site, MPI_Comm comm);
/* After the call that started it. */
void oriel_collective_request_started(struct oriel_collective_request *pending, bool failed,
                                      MPI_Request *request);

/* A call that is not modelled whose request completes later. */
void oriel_unknown_started(bool failed, MPI_Request request);

#endif
