/* Common functions of both workers: executing turns, packing and validating messages, sending,
 * connecting. A sent message stays in a buffer of the net until UCX has completed it. Called with
 * the worker's mutex held. */
#include "transport/ucx/internal.h"

#include "base/delay.h"
#include "base/log.h"

#include <string.h>

enum { TURNS = 64 };

static bool worker_progress(struct oriel_net_worker *worker)
{
    unsigned done = oriel_ucp()->ucp_worker_progress(worker->ucp);
    if (worker->devices != NULL)
        done += oriel_ucp()->ucp_worker_progress(worker->devices);
    return done != 0;
}

bool oriel_net_turn_until(struct oriel_net_worker *worker, bool (*is_enough)(void))
{
    bool any = false;
    for (int i = 0; i < TURNS && worker_progress(worker); i++) {
        any = true;
        if (is_enough != NULL && is_enough())
            break;
    }
    return any;
}

bool oriel_net_turn(struct oriel_net_worker *worker)
{
    return oriel_net_turn_until(worker, NULL);
}

/* A verbs device signals only completions that occur after it is armed, not existing ones: UCX
 * reports an event only if the device has created one. So the worker is polled once more after
 * arming. */
bool oriel_net_arm(struct oriel_net_worker *worker)
{
    oriel_delay();
    return oriel_ucp()->ucp_worker_arm(worker->ucp) == UCS_OK &&
           (worker->devices == NULL || oriel_ucp()->ucp_worker_arm(worker->devices) == UCS_OK) &&
           !worker_progress(worker);
}

static void send_done(void *request, ucs_status_t status, void *user_data)
{
    struct oriel_ucx_buffer *buffer = user_data;
    buffer->end->pending--;
    if (status == UCS_OK) /* a broken connection has its own handler */
        buffer->end->is_up = true;
    atomic_fetch_sub_explicit(&buffer->worker->pending, 1, memory_order_relaxed);
    oriel_pool_give(&buffer->worker->pool, buffer);
    oriel_ucp()->ucp_request_free(request);
}

ucs_status_t oriel_net_send(struct oriel_net_worker *worker, struct oriel_net_end *end,
                            struct oriel_ucx_buffer *buffer)
{
    const ucp_request_param_t how = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = send_done,
        .user_data = buffer,
    };
    buffer->worker = worker;
    buffer->end = end;
    ucs_status_ptr_t request = oriel_ucp()->ucp_am_send_nbx(
        end->ep, 0, buffer->front, buffer->front_bytes, buffer->data, buffer->len_bytes, &how);
    if (UCS_PTR_IS_PTR(request)) {
        atomic_fetch_add_explicit(&worker->pending, 1, memory_order_relaxed);
        end->pending++;
        return UCS_OK;
    }
    oriel_pool_give(&worker->pool, buffer);
    if (request == NULL)
        end->is_up = true;
    return UCS_PTR_STATUS(request);
}

struct oriel_ucx_buffer *oriel_net_pack(struct oriel_net_worker *worker,
                                        const struct oriel_wire *wire,
                                        const struct oriel_net_bytes *bytes)
{
    size_t len_bytes = 0;
    for (unsigned i = 0; i < bytes->pieces; i++)
        len_bytes += bytes->data[i].iov_len;
    if (bytes->head_bytes > ORIEL_NET_HEAD_BYTES || len_bytes > ORIEL_NET_DATA_BYTES)
        return NULL;
    struct oriel_ucx_buffer *buffer = oriel_pool_take(&worker->pool, len_bytes);
    if (buffer == NULL)
        return NULL;
    memcpy(buffer->front, wire, sizeof *wire);
    if (bytes->head_bytes != 0)
        memcpy(buffer->front + sizeof *wire, bytes->head, bytes->head_bytes);
    buffer->front_bytes = (uint32_t)(sizeof *wire + bytes->head_bytes);
    buffer->len_bytes = len_bytes;
    char *to = buffer->data;
    for (unsigned i = 0; i < bytes->pieces; i++) {
        if (bytes->data[i].iov_len != 0)
            memcpy(to, bytes->data[i].iov_base, bytes->data[i].iov_len);
        to += bytes->data[i].iov_len;
    }
    return buffer;
}

bool oriel_net_unpack(const struct oriel_net_raw *raw, struct oriel_wire *out)
{
    const bool is_gathered = raw->header_bytes == 0;
    const size_t front_bytes = is_gathered ? raw->len_bytes : raw->header_bytes;
    bool fits = front_bytes >= sizeof *out && raw->len_bytes <= ORIEL_NET_DATA_BYTES &&
                (raw->parameters->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    if (fits) {
        memcpy(out, is_gathered ? raw->data : raw->header, sizeof *out);
        fits = out->version == ORIEL_WIRE_VERSION && out->to == oriel_net.session;
    }
    if (fits && is_gathered)
        out->kind = ORIEL_WIRE_COALESCED;
    else if (fits)
        fits = out->head_bytes == raw->header_bytes - sizeof *out &&
               out->head_bytes <= ORIEL_NET_HEAD_BYTES;
    if (!fits)
        oriel_warn(
            "dropped %zu bytes from another node that are not a message for this process [O19]",
            raw->header_bytes + raw->len_bytes);
    return fits;
}

ucp_ep_h oriel_net_connect(ucp_worker_h worker, const void *address, ucp_err_handler_cb_t broken,
                           void *user_data, ucs_status_t *status)
{
    const ucp_ep_params_t how = {
        .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .address = address,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {broken, user_data},
    };
    ucp_ep_h ep = NULL;
    *status = oriel_ucp()->ucp_ep_create(worker, &how, &ep);
    return *status == UCS_OK ? ep : NULL;
}

static void close_done(void *request, ucs_status_t status, void *user_data)
{
    struct oriel_net_worker *worker = user_data;
    (void)status;
    worker->closing--;
    oriel_ucp()->ucp_request_free(request);
}

bool oriel_net_is_free(const struct oriel_net_end *end)
{
    return end->ep == NULL && end->pending == 0 && !end->stays_open;
}

/* UCX 1.13 ends the process if it closes an endpoint whose first message still waits for the other
 * end. That happens between RDMA devices if that process was stopped or died before. Such an
 * endpoint stays open, and so does its worker, for the life of this process. */
bool oriel_net_disconnect(struct oriel_net_worker *worker, struct oriel_net_end *end)
{
    const ucp_request_param_t how = {
        .op_attr_mask =
            UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_EP_CLOSE_FLAG_FORCE,
        .cb.send = close_done,
        .user_data = worker,
    };
    ucp_ep_h ep = end->ep;
    bool is_up = end->is_up;
    end->ep = NULL;
    end->is_up = false; /* for the next endpoint */
    if (ep != NULL && oriel_net.has_verbs && !is_up) {
        worker->left_open++;
        end->stays_open = true;
    } else if (ep != NULL && UCS_PTR_IS_PTR(oriel_ucp()->ucp_ep_close_nbx(ep, &how))) {
        worker->closing++;
    }
    return oriel_net_is_free(end);
}
