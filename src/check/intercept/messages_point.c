/* Point-to-point functions (MPI-4.1, chapter 3): the wrappers, and the halves of messages. A send
 * gives its clock before it is posted, a receive takes after its completion. A synchronous send
 * takes all that its receiver has done, because the time of the matching receive is not recorded.
 */
#include "check/intercept/messages_point.h"

#include <string.h>

/* --- halves --- */

void oriel_send_half_begin(struct oriel_send_half *half, MPI_Comm comm, int destination, int tag,
                           bool synchronous, const char *name)
{
    struct oriel_comm *entry = oriel_comm_find(comm);
    *half = (struct oriel_send_half){.tag = tag, .destination = -1, .is_synchronous = synchronous};
    if (destination == MPI_PROC_NULL || comm == MPI_COMM_NULL ||
        (entry != NULL && !oriel_comm_has(entry, destination)))
        return;
    int world_rank = entry == NULL ? -1 : oriel_comm_world_rank(entry, destination);
    if (entry == NULL || !oriel_order_reaches(world_rank)) {
        half->is_unknown = true;
        oriel_order_unknown_begin(name);
        return;
    }
    oriel_comm_retain(entry);
    half->comm = entry;
    half->destination = world_rank;
    half->id = entry->id;
    half->sending = oriel_send_begin(&entry->matching, (struct oriel_envelope){world_rank, tag});
}

void oriel_send_half_posted(struct oriel_send_half *half, bool failed)
{
    if (half->comm == NULL)
        return;
    oriel_send_end(&half->comm->matching, half->sending, failed);
    oriel_comm_release(half->comm);
    half->comm = NULL;
}

void oriel_send_half_done(struct oriel_send_half *half)
{
    if (half->is_synchronous && half->is_unknown)
        oriel_order_unknown_end();
    else if (half->is_synchronous && half->destination >= 0)
        oriel_order_take_rank(half->destination);
}

void oriel_receive_half_begin(struct oriel_receive_half *half, MPI_Comm comm, int source, int tag,
                              const char *name)
{
    struct oriel_comm *entry = oriel_comm_find(comm);
    struct oriel_envelope from = {ORIEL_ANY, tag == MPI_ANY_TAG ? ORIEL_ANY : tag};
    *half = (struct oriel_receive_half){.source = source, .tag = tag};
    if (source == MPI_PROC_NULL || comm == MPI_COMM_NULL)
        return;
    if (entry == NULL) {
        half->is_unknown = true;
        oriel_order_unknown_begin(name);
        return;
    }
    if (source != MPI_ANY_SOURCE) {
        if (!oriel_comm_has(entry, source))
            return;
        from.peer = oriel_comm_world_rank(entry, source);
    }
    oriel_comm_retain(entry);
    half->comm = entry;
    half->receiving = oriel_receive_post(&entry->matching, from);
}

void oriel_receive_half_posted(struct oriel_receive_half *half)
{
    if (half->receiving != NULL)
        oriel_receive_posted(&half->comm->matching, half->receiving);
}

int oriel_class_of(int code)
{
    static _Atomic(void *) slot;
    int class = code;
    if (!oriel_host_has_code(code))
        return code;
    ((__typeof__(&PMPI_Error_class))oriel_host_symbol_kept(&slot, "PMPI_Error_class"))(code,
                                                                                       &class);
    return class;
}

bool oriel_something_came(int code)
{
    return code == MPI_SUCCESS || oriel_class_of(code) == MPI_ERR_TRUNCATE;
}

/* A message came from that rank of the communicator. */
static void receive_half_got(struct oriel_receive_half *half, int source, int tag)
{
    struct oriel_comm *comm = half->comm;
    int world_rank = oriel_comm_world_rank(comm, source);
    if (half->receiving != NULL)
        oriel_receive_got(&comm->matching, half->receiving,
                          (struct oriel_envelope){world_rank, tag});
    else
        oriel_order_take_rank(world_rank);
    if (!oriel_order_reaches(world_rank)) {
        oriel_order_unknown_begin("messages from other nodes");
        oriel_order_unknown_end();
    }
}

static void receive_half_release(struct oriel_receive_half *half)
{
    if (half->comm != NULL)
        oriel_comm_release(half->comm);
    half->comm = NULL;
    half->receiving = NULL;
}

static bool status_is_cancelled(const MPI_Status *status)
{
    static _Atomic(void *) slot;
    int flag = 0;
    ((__typeof__(&PMPI_Test_cancelled))oriel_host_symbol_kept(&slot, "PMPI_Test_cancelled"))(status,
                                                                                             &flag);
    return flag != 0;
}

/* The receive is complete, or will complete unseen, with an unknown message: it takes from all
 * ranks, and may still count among its receives. */
static void receive_half_got_unknown(struct oriel_receive_half *half)
{
    if (half->receiving != NULL)
        oriel_receive_abandoned(&half->comm->matching, half->receiving);
    oriel_order_unknown_end();
}

void oriel_receive_half_done(struct oriel_receive_half *half, int code, const MPI_Status *status)
{
    struct oriel_comm *comm = half->comm;
    if (half->is_unknown)
        oriel_order_unknown_end();
    if (comm == NULL)
        return;
    bool named = half->source != MPI_ANY_SOURCE && half->tag != MPI_ANY_TAG;
    bool clear = status != NULL && !half->has_vague_status;
    bool came = oriel_something_came(code) &&
                !(clear && code == MPI_SUCCESS && status_is_cancelled(status));
    if (!came && half->receiving != NULL)
        oriel_receive_cancelled(&comm->matching, half->receiving);
    else if (came && status != NULL && named)
        receive_half_got(half, half->source, half->tag);
    else if (came && clear && oriel_comm_has(comm, status->MPI_SOURCE))
        receive_half_got(half, status->MPI_SOURCE, status->MPI_TAG);
    else if (came)
        receive_half_got_unknown(half);
    receive_half_release(half);
}

void oriel_receive_half_none(struct oriel_receive_half *half)
{
    if (half->receiving != NULL)
        oriel_receive_cancelled(&half->comm->matching, half->receiving);
    if (half->is_unknown)
        oriel_order_unknown_end();
    receive_half_release(half);
}

/* MPICH does not reset the mark of a cancelled receive in a status. */
MPI_Status *oriel_status_prepare(MPI_Status *status, MPI_Status *own)
{
    static _Atomic(void *) slot;
    if (status == MPI_STATUS_IGNORE)
        status = own;
    status->MPI_SOURCE = MPI_UNDEFINED;
    ((__typeof__(&PMPI_Status_set_cancelled))oriel_host_symbol_kept(
        &slot, "PMPI_Status_set_cancelled"))(status, 0);
    return status;
}

MPI_Count oriel_received_count(int code, const MPI_Status *status, MPI_Count count,
                               MPI_Datatype datatype)
{
    static _Atomic(void *) slot;
    int elements = 0;
    if (code != MPI_SUCCESS)
        return 0;
    if (((__typeof__(&PMPI_Get_count))oriel_host_symbol_kept(&slot, "PMPI_Get_count"))(
            status, datatype, &elements) != MPI_SUCCESS ||
        elements == MPI_UNDEFINED)
        return count;
    return elements < count ? elements : count;
}

/* --- with requests --- */

/* While it is active, calls of the other side that it may match are not stuck. */
static void message_count_in(struct oriel_message *message)
{
    message->counted = true;
    message->sends_to = message->sends ? message->send.destination : -1;
    message->receives_from = -1;
    if (message->receive.receiving != NULL)
        message->receives_from = message->receive.receiving->wanted.peer;
    oriel_wait_sending(message->sends_to, 1);
    if (message->receives)
        oriel_wait_receiving(message->receives_from, 1);
}

static void message_count_out(struct oriel_message *message)
{
    if (!message->counted)
        return;
    message->counted = false;
    oriel_wait_sending(message->sends_to, -1);
    if (message->receives)
        oriel_wait_receiving(message->receives_from, -1);
}

static void message_begin(struct oriel_message *message)
{
    oriel_uses_begin(&message->uses, message->address, message->call, true);
    if (!message->sends || message->destination != MPI_PROC_NULL)
        oriel_use(&message->uses, false, message->sent.address, message->sent.count,
                  message->sent.datatype);
    if (message->source != MPI_PROC_NULL)
        oriel_use(&message->uses, true, message->received.address, message->received.count,
                  message->received.datatype);
    if (message->receives)
        oriel_receive_half_begin(&message->receive, message->comm, message->source,
                                 message->receive_tag, message->called);
    message->receive.has_vague_status = message->sends;
    if (message->sends)
        oriel_send_half_begin(&message->send, message->comm, message->destination,
                              message->send_tag, message->synchronous,
                              message->receives ? NULL : message->called);
    message_count_in(message);
}

static void message_buffers_release(void *closure)
{
    const struct oriel_message *message = closure;
    oriel_local_complete(message->uses.group);
}

static void message_done(void *closure, const MPI_Status *status)
{
    struct oriel_message *message = closure;
    int code = MPI_SUCCESS;
    message_count_out(message);
    if (message->receives)
        oriel_receive_half_done(&message->receive, code, status);
    if (message->sends)
        oriel_send_half_done(&message->send);
    oriel_local_complete(message->uses.group);
    if (!message->persists)
        free(message);
}

static const struct oriel_request_kind kind = {message_done, message_buffers_release};

static void message_posted(struct oriel_message *message, bool failed)
{
    if (message->sends)
        oriel_send_half_posted(&message->send, failed);
    if (message->receives && !failed)
        oriel_receive_half_posted(&message->receive);
    if (!failed)
        return;
    message_count_out(message);
    if (message->receives)
        oriel_receive_half_none(&message->receive);
    oriel_local_complete(message->uses.group);
}

static void startable_begin(struct oriel_startable *startable, const void *address, uint16_t call)
{
    (void)address;
    (void)call;
    message_begin((struct oriel_message *)startable);
}

static int startable_started(struct oriel_startable *startable, int code)
{
    message_posted((struct oriel_message *)startable, code != MPI_SUCCESS);
    return code;
}

static void startable_drop(struct oriel_startable *startable)
{
    struct oriel_message *message = (struct oriel_message *)startable;
    free(message);
}

struct oriel_message *oriel_message_begin(const struct oriel_message *description)
{
    struct oriel_message *message = malloc(sizeof *message);
    if (message == NULL) {
        oriel_order_set_doubtful();
        return NULL;
    }
    *message = *description;
    message->startable = (struct oriel_startable){.begin = startable_begin,
                                                  .started = startable_started,
                                                  .kind = &kind,
                                                  .drop = startable_drop};
    if (!message->persists)
        message_begin(message);
    return message;
}

void oriel_message_started(struct oriel_message *message, bool failed, MPI_Request *request)
{
    if (message == NULL)
        return;
    if (!message->persists)
        message_posted(message, failed);
    if (failed)
        free(message);
    else if (message->persists)
        oriel_checked_request_add_persistent(*request, &message->startable);
    else if (message->sends && (!message->receives || message->source == MPI_PROC_NULL))
        oriel_checked_request_add_own(request, &kind, message);
    else if (message->source != MPI_PROC_NULL)
        oriel_checked_request_add(*request, &kind, message);
    else
        message_done(message, NULL);
}

ORIEL_POINT_TO_POINT(, int)

int oriel_message_needs(const struct oriel_request_record *record, struct oriel_wait_need *needs)
{
    const struct oriel_message *message = oriel_request_closure(record, &kind);
    if (message == NULL)
        return 0;
    return oriel_half_needs(message->sends ? &message->send : NULL,
                            message->receives ? &message->receive : NULL, needs);
}

/* --- cancelling --- */

/* Hosts cancel a receive in the call or not at all. The wrapper asks at once, while the receive's
 * number can still go to the next ones. */
static void message_receive_cancelled(struct oriel_message *message, MPI_Request request)
{
    static _Atomic(void *) slot;
    MPI_Status status;
    int flag = 0;
    int code = ((__typeof__(&PMPI_Request_get_status))oriel_host_symbol_kept(
        &slot, "PMPI_Request_get_status"))(request, &flag, &status);
    if (code == MPI_SUCCESS && flag && status_is_cancelled(&status))
        oriel_receive_half_none(&message->receive);
}

ORIEL_CHECK_WRAP(Cancel, (MPI_Request * request))
{
    struct oriel_message *message = oriel_check_looks() && request != NULL
                                        ? oriel_checked_request_closure(*request, &kind)
                                        : NULL;
    int code;
    if (message != NULL && message->sends)
        oriel_order_set_doubtful(); /* a message that the receiver has counted may never arrive */
    ORIEL_CHECK_PASS(code, Cancel, (request));
    if (code == MPI_SUCCESS && message != NULL && message->receives && !message->sends) {
        oriel_check_enter();
        message_receive_cancelled(message, *request);
        oriel_check_leave();
    }
    return code;
}
