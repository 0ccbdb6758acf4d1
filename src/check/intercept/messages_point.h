/* The wrappers of point-to-point functions as macros over the type of their counts.
 * messages_point.c makes those of int; messages_large.c makes those of
 * MPI_Count. */
#ifndef ORIEL_CHECK_INTERCEPT_MESSAGES_POINT_H
#define ORIEL_CHECK_INTERCEPT_MESSAGES_POINT_H

#include "check/intercept/messages.h"
#include "check/intercept/messages_waits.h"
#include "check/intercept/request_table.h"
#include "check/intercept/wrap.h"

#include <stdlib.h>

struct oriel_message_buffer {
    const void *address;
    MPI_Count count;
    MPI_Datatype datatype;
};

/* The two halves of a message; a call has one or both. */
struct oriel_send_half {
    struct oriel_comm *comm; /* NULL: gives nothing */
    struct oriel_sending *sending;
    uint64_t id; /* of the communicator */
    int tag;
    int destination; /* the world rank, of a synchronous send, whose completion takes from it; -1 */
    bool is_unknown; /* the communicator is not modelled */
    bool is_synchronous;
};

struct oriel_receive_half {
    struct oriel_comm *comm; /* NULL: takes nothing */
    struct oriel_receiving *receiving;
    int source, tag; /* as passed to the call */
    bool is_unknown;
    bool has_vague_status; /* MPICH 4.0 does not fill in the status of MPI_Isendrecv */
};

void oriel_send_half_begin(struct oriel_send_half *half, MPI_Comm comm, int destination, int tag,
                           bool synchronous, const char *name);
void oriel_send_half_posted(struct oriel_send_half *half, bool failed);
void oriel_send_half_done(struct oriel_send_half *half);

void oriel_receive_half_begin(struct oriel_receive_half *half, MPI_Comm comm, int source, int tag,
                              const char *name);
void oriel_receive_half_posted(struct oriel_receive_half *half);
/* code: the code of the call; status: NULL when the end was not seen. */
void oriel_receive_half_done(struct oriel_receive_half *half, int code, const MPI_Status *status);
/* The error class of a code. */
int oriel_class_of(int code);
/* Whether a call with that code has received a message, if a too long one. */
bool oriel_something_came(int code);
/* No message: a probe that found nothing. */
void oriel_receive_half_none(struct oriel_receive_half *half);

/* The status of a blocking receive: the program's, or `own`; marked, to show whether the host fills
 * it in. */
MPI_Status *oriel_status_prepare(MPI_Status *status, MPI_Status *own);

/* How many elements of a receive's buffer are written. */
MPI_Count oriel_received_count(int code, const MPI_Status *status, MPI_Count count,
                               MPI_Datatype datatype);

/* A call with a request: what it does once, or (MPI_*_init) at each start. */
struct oriel_message {
    struct oriel_startable startable;
    MPI_Comm comm;
    const char *called;
    bool sends, receives, synchronous, persists;
    int destination, send_tag, source, receive_tag;
    struct oriel_message_buffer sent, received;
    struct oriel_send_half send;
    struct oriel_receive_half receive;
    struct oriel_uses uses;
    const void *address;
    uint16_t call;
    bool counted; /* counted as an active message: */
    int sends_to, receives_from;
};

/* A copy of the description, begun unless it is persistent. NULL when memory is exhausted; all
 * order is then in doubt. */
struct oriel_message *oriel_message_begin(const struct oriel_message *description);
/* After the call. */
void oriel_message_started(struct oriel_message *message, bool failed, MPI_Request *request);

#define BUFFER(...) ((struct oriel_message_buffer){__VA_ARGS__})
#define SEND_PARAMETERS(Count)                                                                     \
    const void *buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm
#define RECV_PARAMETERS(Count)                                                                     \
    void *buf, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm

#define ORIEL_SEND(name, base, Count, is_sync)                                                     \
    ORIEL_CHECK_WRAP(name, (SEND_PARAMETERS(Count)))                                               \
    {                                                                                              \
        struct oriel_send_half half;                                                               \
        struct oriel_uses uses;                                                                    \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name)(buf, count, datatype, dest, tag, comm);                              \
        oriel_uses_begin(&uses, __builtin_return_address(0), ORIEL_CALL_##base, false);            \
        if (dest != MPI_PROC_NULL)                                                                 \
            oriel_use(&uses, false, buf, count, datatype);                                         \
        oriel_send_half_begin(&half, comm, dest, tag, is_sync, "MPI_" #base);                      \
        bool waits = oriel_wait_message(&uses.site, &half, NULL);                                  \
        ORIEL_CHECK_PASS(code, name, (buf, count, datatype, dest, tag, comm));                     \
        oriel_wait_done(waits);                                                                    \
        oriel_send_half_posted(&half, code != MPI_SUCCESS);                                        \
        oriel_send_half_done(&half);                                                               \
        return code;                                                                               \
    }

/* A call with a request: its name, parameters and arguments, then the fields of the struct
 * oriel_message that describes it. */
#define ORIEL_MESSAGE_REQUEST(name, base, parameters, arguments, ...)                              \
    ORIEL_CHECK_WRAP(name, parameters)                                                             \
    {                                                                                              \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name) arguments;                                                           \
        struct oriel_message description = {.called = "MPI_" #base,                                \
                                            .address = __builtin_return_address(0),                \
                                            .call = ORIEL_CALL_##base,                             \
                                            __VA_ARGS__};                                          \
        struct oriel_message *message = oriel_message_begin(&description);                         \
        ORIEL_CHECK_PASS(code, name, arguments);                                                   \
        oriel_message_started(message, code != MPI_SUCCESS, request);                              \
        return code;                                                                               \
    }

#define ORIEL_SEND_REQUEST(name, base, Count, is_sync, is_persistent)                              \
    ORIEL_MESSAGE_REQUEST(name, base, (SEND_PARAMETERS(Count), MPI_Request * request),             \
                          (buf, count, datatype, dest, tag, comm, request), .comm = comm,          \
                          .sends = true, .synchronous = is_sync, .persists = is_persistent,        \
                          .destination = dest, .send_tag = tag,                                    \
                          .sent = BUFFER(buf, count, datatype))

#define ORIEL_RECV(name, base, Count)                                                              \
    ORIEL_CHECK_WRAP(name, (RECV_PARAMETERS(Count), MPI_Status * status))                          \
    {                                                                                              \
        struct oriel_receive_half half;                                                            \
        struct oriel_uses uses;                                                                    \
        MPI_Status own;                                                                            \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name)(buf, count, datatype, source, tag, comm, status);                    \
        oriel_uses_begin(&uses, __builtin_return_address(0), ORIEL_CALL_##base, false);            \
        status = oriel_status_prepare(status, &own);                                               \
        oriel_receive_half_begin(&half, comm, source, tag, "MPI_" #base);                          \
        bool waits = oriel_wait_message(&uses.site, NULL, &half);                                  \
        ORIEL_CHECK_PASS(code, name, (buf, count, datatype, source, tag, comm, status));           \
        oriel_wait_done(waits);                                                                    \
        oriel_receive_half_done(&half, code, status);                                              \
        uses.is_after = true;                                                                      \
        if (source != MPI_PROC_NULL)                                                               \
            oriel_use(&uses, true, buf, oriel_received_count(code, status, count, datatype),       \
                      datatype);                                                                   \
        return code;                                                                               \
    }

#define ORIEL_RECV_REQUEST(name, base, Count, is_persistent)                                       \
    ORIEL_MESSAGE_REQUEST(name, base, (RECV_PARAMETERS(Count), MPI_Request * request),             \
                          (buf, count, datatype, source, tag, comm, request), .comm = comm,        \
                          .receives = true, .persists = is_persistent, .source = source,           \
                          .receive_tag = tag, .received = BUFFER(buf, count, datatype))

/* Both halves in one call: buffers for what it sends and receives, then the call with its own
 * arguments. */
#define ORIEL_BOTH(name, base, parameters, arguments, sent_buffer, received_buffer)                \
    ORIEL_CHECK_WRAP(name, parameters)                                                             \
    {                                                                                              \
        struct oriel_send_half send;                                                               \
        struct oriel_receive_half receive;                                                         \
        struct oriel_message_buffer sent = sent_buffer, received = received_buffer;                \
        struct oriel_uses uses;                                                                    \
        MPI_Status own;                                                                            \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name) arguments;                                                           \
        oriel_uses_begin(&uses, __builtin_return_address(0), ORIEL_CALL_##base, false);            \
        status = oriel_status_prepare(status, &own);                                               \
        if (dest != MPI_PROC_NULL)                                                                 \
            oriel_use(&uses, false, sent.address, sent.count, sent.datatype);                      \
        oriel_receive_half_begin(&receive, comm, source, recvtag, "MPI_" #base);                   \
        oriel_send_half_begin(&send, comm, dest, sendtag, false, NULL);                            \
        bool waits = oriel_wait_message(&uses.site, &send, &receive);                              \
        ORIEL_CHECK_PASS(code, name, arguments);                                                   \
        oriel_wait_done(waits);                                                                    \
        oriel_send_half_posted(&send, !oriel_something_came(code));                                \
        oriel_send_half_done(&send);                                                               \
        oriel_receive_half_done(&receive, code, status);                                           \
        uses.is_after = true;                                                                      \
        if (source != MPI_PROC_NULL)                                                               \
            oriel_use(&uses, true, received.address,                                               \
                      oriel_received_count(code, status, received.count, received.datatype),       \
                      received.datatype);                                                          \
        return code;                                                                               \
    }

#define ORIEL_SENDRECV(name, Count)                                                                \
    ORIEL_BOTH(name, Sendrecv,                                                                     \
               (const void *sendbuf, Count sendcount, MPI_Datatype sendtype, int dest,             \
                int sendtag, void *recvbuf, Count recvcount, MPI_Datatype recvtype, int source,    \
                int recvtag, MPI_Comm comm, MPI_Status *status),                                   \
               (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, \
                recvtag, comm, status),                                                            \
               BUFFER(sendbuf, sendcount, sendtype), BUFFER(recvbuf, recvcount, recvtype))

#define ORIEL_SENDRECV_REPLACE(name, Count)                                                        \
    ORIEL_BOTH(name, Sendrecv_replace,                                                             \
               (void *buf, Count count, MPI_Datatype datatype, int dest, int sendtag, int source,  \
                int recvtag, MPI_Comm comm, MPI_Status *status),                                   \
               (buf, count, datatype, dest, sendtag, source, recvtag, comm, status),               \
               BUFFER(buf, count, datatype), BUFFER(buf, count, datatype))

/* A message that is matched already: only its buffer counts. */
#define ORIEL_MRECV(name, Count)                                                                   \
    ORIEL_CHECK_WRAP(name, (void *buf, Count count, MPI_Datatype datatype, MPI_Message *handle,    \
                            MPI_Status *status))                                                   \
    {                                                                                              \
        struct oriel_uses uses;                                                                    \
        MPI_Status own;                                                                            \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name)(buf, count, datatype, handle, status);                               \
        oriel_uses_begin(&uses, __builtin_return_address(0), ORIEL_CALL_Mrecv, false);             \
        status = oriel_status_prepare(status, &own);                                               \
        ORIEL_CHECK_PASS(code, name, (buf, count, datatype, handle, status));                      \
        uses.is_after = true;                                                                      \
        oriel_use(&uses, true, buf, oriel_received_count(code, status, count, datatype),           \
                  datatype);                                                                       \
        return code;                                                                               \
    }

#define ORIEL_IMRECV(name, Count)                                                                  \
    ORIEL_MESSAGE_REQUEST(name, Imrecv,                                                            \
                          (void *buf, Count count, MPI_Datatype datatype, MPI_Message *handle,     \
                           MPI_Request *request),                                                  \
                          (buf, count, datatype, handle, request), .comm = MPI_COMM_NULL,          \
                          .source = *handle == MPI_MESSAGE_NO_PROC ? MPI_PROC_NULL : 0,            \
                          .received = BUFFER(buf, count, datatype))

/* All functions of one type of counts; suffix: of their names. */
#define ORIEL_POINT_TO_POINT(suffix, Count)                                                        \
    ORIEL_SEND(Send##suffix, Send, Count, false)                                                   \
    ORIEL_SEND(Bsend##suffix, Bsend, Count, false)                                                 \
    ORIEL_SEND(Ssend##suffix, Ssend, Count, true)                                                  \
    ORIEL_SEND(Rsend##suffix, Rsend, Count, false)                                                 \
    ORIEL_SEND_REQUEST(Isend##suffix, Isend, Count, false, false)                                  \
    ORIEL_SEND_REQUEST(Ibsend##suffix, Ibsend, Count, false, false)                                \
    ORIEL_SEND_REQUEST(Issend##suffix, Issend, Count, true, false)                                 \
    ORIEL_SEND_REQUEST(Irsend##suffix, Irsend, Count, false, false)                                \
    ORIEL_SEND_REQUEST(Send_init##suffix, Send_init, Count, false, true)                           \
    ORIEL_SEND_REQUEST(Bsend_init##suffix, Bsend_init, Count, false, true)                         \
    ORIEL_SEND_REQUEST(Ssend_init##suffix, Ssend_init, Count, true, true)                          \
    ORIEL_SEND_REQUEST(Rsend_init##suffix, Rsend_init, Count, false, true)                         \
    ORIEL_RECV(Recv##suffix, Recv, Count)                                                          \
    ORIEL_RECV_REQUEST(Irecv##suffix, Irecv, Count, false)                                         \
    ORIEL_RECV_REQUEST(Recv_init##suffix, Recv_init, Count, true)                                  \
    ORIEL_SENDRECV(Sendrecv##suffix, Count)                                                        \
    ORIEL_SENDRECV_REPLACE(Sendrecv_replace##suffix, Count)                                        \
    ORIEL_MRECV(Mrecv##suffix, Count)                                                              \
    ORIEL_IMRECV(Imrecv##suffix, Count)

#endif
