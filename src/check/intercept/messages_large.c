/* The message functions of MPI-4 that are modelled, of hosts that have them: those with counts of
 * MPI_Count, from the same rows as the others, and sends that receive with the same request. */
#include <mpi.h>

#ifdef MPI_SESSION_NULL
#include "check/intercept/messages_collective.h"
#include "check/intercept/messages_point.h"

#if MPI_VERSION >= 4
#define Count                     MPI_Count
#define Displ                     MPI_Aint
#define ORIEL_ROWS_WITHOUT_COUNTS 0

#define COLLECTIVE(name, parameters, arguments, flow, root, buffers)                               \
    ORIEL_COLLECTIVE(name##_c, name, parameters, arguments, flow, root, buffers)
#define COLLECTIVE_REQUEST(name, parameters, arguments, flow, root, buffers)                       \
    ORIEL_COLLECTIVE_REQUEST(name##_c, name, parameters, arguments, flow, root, buffers)
#include "check/intercept/messages.def"

ORIEL_POINT_TO_POINT(_c, MPI_Count)
#endif

/* --- both halves with one request --- */

#define BOTH_PARAMETERS(Count)                                                                     \
    (const void *sendbuf, Count sendcount, MPI_Datatype sendtype, int dest, int sendtag,           \
     void *recvbuf, Count recvcount, MPI_Datatype recvtype, int source, int recvtag,               \
     MPI_Comm comm, MPI_Request *request)
#define BOTH_ARGUMENTS                                                                             \
    (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,   \
     comm, request)
#define REPLACE_PARAMETERS(Count)                                                                  \
    (void *buf, Count count, MPI_Datatype datatype, int dest, int sendtag, int source,             \
     int recvtag, MPI_Comm comm, MPI_Request *request)
#define REPLACE_ARGUMENTS (buf, count, datatype, dest, sendtag, source, recvtag, comm, request)

/* The call writes what it receives into the buffer that it sends, so that buffer has no other use
 * meanwhile. */
#define BOTH_REQUEST(name, base, parameters, arguments, sent_buffer, received_buffer)              \
    ORIEL_MESSAGE_REQUEST(name, base, parameters, arguments, .comm = comm, .sends = true,          \
                          .receives = true, .destination = dest, .send_tag = sendtag,              \
                          .source = source, .receive_tag = recvtag, .sent = sent_buffer,           \
                          .received = received_buffer)
#define BOTH(suffix, Count)                                                                        \
    BOTH_REQUEST(Isendrecv##suffix, Isendrecv, BOTH_PARAMETERS(Count), BOTH_ARGUMENTS,             \
                 BUFFER(sendbuf, sendcount, sendtype), BUFFER(recvbuf, recvcount, recvtype))       \
    BOTH_REQUEST(Isendrecv_replace##suffix, Isendrecv_replace, REPLACE_PARAMETERS(Count),          \
                 REPLACE_ARGUMENTS, BUFFER(buf, source == MPI_PROC_NULL ? count : 0, datatype),    \
                 BUFFER(buf, count, datatype))
BOTH(, int)
#if MPI_VERSION >= 4
BOTH(_c, MPI_Count)
#endif
#endif
