/* What the wrappers of messages and collectives share: buffers as uses of local memory, and calls on communicators that are not
 * modelled.  A call's life is begin, the call behind, end; with a request, end comes with its completion.  messages_*.c call. */
#ifndef ORIEL_CHECK_INTERCEPT_MESSAGES_H
#define ORIEL_CHECK_INTERCEPT_MESSAGES_H

#include "check/local/local_accesses.h"
#include "check/order/communicators.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"

/* What the call that this thread is in has begun, for error handlers inside it. */
struct oriel_begun {
    bool is_collective; /* it has a number, which is none if it meets nobody */
    uint64_t claim; /* with which it has claimed the requests that it completes or frees; 0: none */
};
extern _Thread_local struct oriel_begun oriel_begun __attribute__((visibility("hidden")));

/* --- buffers --- */

/* The buffers of one call.  Of a blocking one, what it reads is used before it and what it writes behind it; of one with a
 * request all are in use from before it until it is complete. */
struct oriel_uses {
    struct oriel_site site;
    oriel_local_group group; /* 0: blocking */
    bool is_behind;
    bool is_root;
    int rank, size; /* in the communicator; size 0: it is not modelled, no buffer is looked at */
};

void oriel_uses_begin(struct oriel_uses *uses, const void *address, uint16_t call, bool pends);
void oriel_use(const struct oriel_uses *uses, bool writes, const void *buffer, MPI_Count count,
               MPI_Datatype datatype);
/* Displaced by so many extents of the datatype. */
void oriel_use_at(const struct oriel_uses *uses, bool writes, const void *buffer,
                  MPI_Aint displacement, MPI_Count count, MPI_Datatype datatype);

/* --- collectives --- */

enum oriel_flow {
    ORIEL_FLOW_ALL,       /* from all to all */
    ORIEL_FLOW_FROM_ROOT, /* from the root to all */
    ORIEL_FLOW_TO_ROOT,   /* from all to the root */
    ORIEL_FLOW_UP,        /* from lower ranks to higher */
};

/* comm: NULL when it is not modelled, or reaches machines that are not reached. */
struct oriel_collective {
    struct oriel_comm *comm;
    bool is_unknown;
    enum oriel_flow flow;
    int root;
    uint64_t number;
    uint64_t arrival; /* in the communicator's gathering */
    uint16_t call;
};

void oriel_collective_begin(struct oriel_collective *collective, MPI_Comm comm,
                            enum oriel_flow flow, int root, const char *name);
/* Of a communicator that the caller knows. */
void oriel_collective_begin_in(struct oriel_collective *collective, struct oriel_comm *comm,
                               enum oriel_flow flow, int root, const char *name);
/* failed: it may have met nobody, and then has a number that the others' next call has. */
void oriel_collective_end(struct oriel_collective *collective, bool failed);

/* One with a request, from begin on in memory of its own; NULL when that is exhausted: then the call is taken as not modelled. */
struct oriel_collective_request;
struct oriel_collective_request *oriel_collective_request_begin(MPI_Comm comm, enum oriel_flow flow,
                                                                int root, const char *name,
                                                                oriel_local_group buffers);
/* Before it. */
void oriel_collective_request_arrived(struct oriel_collective_request *pending,
                                      const struct oriel_site *site, MPI_Comm comm);
/* Behind the call that started it. */
void oriel_collective_request_started(struct oriel_collective_request *pending, bool failed,
                                      MPI_Request request);

/* A call that is not modelled whose request completes later. */
void oriel_unknown_started(bool failed, MPI_Request request);

#endif
