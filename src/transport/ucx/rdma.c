/* Puts and gets with RDMA devices (InfiniBand, RoCE), on memory that a process exposes to them. A
 * second context has UCX's put and get, restricted to transports that execute both in the device
 * (library.c). Each of the two workers of the net has a companion worker in that context: the
 * agent's accepts connections, the origin's uses them.
 *
 * Put data are copied into a buffer of the net, and get data arrive in one: pages of the program
 * may move, and a device would still access the old ones. A get, and the query whether all puts
 * have arrived, are ordinary requests, looked up by number when UCX has completed them. A request
 * whose peer was lost meanwhile has already ended.
 *
 * RDMA is not ordered with messages: a process that sends a message about put data first requests
 * their arrival (internode/origin/origin_sync.c, D1). */
#include "transport/ucx/internal.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { OUTSTANDING_MOST_BYTES = 8 << 20 };

struct oriel_net_exposed {
    struct oriel_net_exposed *next; /* list of all, used at shutdown */
    ucp_mem_h memory;
    size_t text_bytes;
    char text[]; /* struct key_text, the key, the address of the agent's second worker */
};

struct key_text {
    uint64_t address; /* of the memory, in the target */
    uint64_t len_bytes;
    uint64_t key_bytes;
};

struct oriel_net_key {
    struct oriel_net_peer *peer;
    ucp_ep_h ep; /* the endpoint for which UCX has unpacked the key */
    ucp_rkey_h key;
    uint64_t address; /* in the target */
};

bool oriel_net_has_devices(void)
{
    return oriel_net_is_started() && oriel_net.devices != NULL;
}

/* --- at the target --- */

static struct oriel_net_exposed *exposed_create(ucp_mem_h memory, const struct key_text *text,
                                                const void *key)
{
    const size_t text_bytes = sizeof *text + text->key_bytes + oriel_net.devices_address_bytes;
    struct oriel_net_exposed *exposed =
        text_bytes <= ORIEL_NET_KEY_BYTES ? malloc(sizeof *exposed + text_bytes) : NULL;
    if (exposed == NULL)
        return NULL;
    *exposed = (struct oriel_net_exposed){.memory = memory, .text_bytes = text_bytes};
    memcpy(exposed->text, text, sizeof *text);
    memcpy(exposed->text + sizeof *text, key, text->key_bytes);
    memcpy(exposed->text + sizeof *text + text->key_bytes, oriel_net.devices_address,
           oriel_net.devices_address_bytes);
    return exposed;
}

struct oriel_net_exposed *oriel_net_expose(void *base, size_t len_bytes)
{
    const ucp_mem_map_params_t wanted = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                         .address = base,
                                         .length = len_bytes};
    struct key_text text = {.address = (uint64_t)(uintptr_t)base, .len_bytes = len_bytes};
    struct oriel_net_exposed *exposed = NULL;
    ucp_mem_h memory;
    void *key;
    size_t key_bytes;
    if (!oriel_net_has_devices() || len_bytes == 0 ||
        oriel_ucp()->ucp_mem_map(oriel_net.devices, &wanted, &memory) != UCS_OK)
        return NULL; /* for example, the limit of locked memory is reached */
    if (oriel_ucp()->ucp_rkey_pack(oriel_net.devices, memory, &key, &key_bytes) == UCS_OK) {
        text.key_bytes = key_bytes;
        exposed = exposed_create(memory, &text, key);
        oriel_ucp()->ucp_rkey_buffer_release(key);
    }
    if (exposed == NULL) {
        oriel_ucp()->ucp_mem_unmap(oriel_net.devices, memory);
        return NULL;
    }
    pthread_mutex_lock(&oriel_net.agent.mutex);
    exposed->next = oriel_net.exposed;
    oriel_net.exposed = exposed;
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    return exposed;
}

const void *oriel_net_exposed_key(const struct oriel_net_exposed *exposed, size_t *len_bytes)
{
    *len_bytes = exposed->text_bytes;
    return exposed->text;
}

void oriel_net_unexpose(struct oriel_net_exposed *exposed)
{
    if (!oriel_net_enter(&oriel_net.agent))
        return;
    struct oriel_net_exposed **link = &oriel_net.exposed;
    while (*link != exposed)
        link = &(*link)->next;
    *link = exposed->next;
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    oriel_ucp()->ucp_mem_unmap(oriel_net.devices, exposed->memory);
    free(exposed);
}

void oriel_net_unexpose_all(void)
{
    while (oriel_net.exposed != NULL) {
        struct oriel_net_exposed *exposed = oriel_net.exposed;
        oriel_net.exposed = exposed->next;
        oriel_ucp()->ucp_mem_unmap(oriel_net.devices, exposed->memory);
        free(exposed);
    }
}

/* --- at the origin --- */

static void device_connection_broken(void *user_data, ucp_ep_h ep, ucs_status_t status)
{
    struct oriel_net_peer *peer = user_data;
    if (peer->device_end.ep == ep)
        oriel_net_note_broken(peer, "lost the RDMA connection", status);
}

struct oriel_net_key *oriel_net_key_open(struct oriel_net_peer *peer, const void *bytes,
                                         size_t len_bytes)
{
    struct key_text text = {.key_bytes = 0};
    ucs_status_t status = UCS_OK;
    if (!oriel_net_has_devices() || len_bytes <= sizeof text)
        return NULL;
    memcpy(&text, bytes, sizeof text);
    if (text.key_bytes >= len_bytes - sizeof text)
        return NULL;
    struct oriel_net_key *key = calloc(1, sizeof *key);
    if (key == NULL)
        return NULL;
    *key = (struct oriel_net_key){peer, NULL, NULL, text.address};
    const char *packed = (const char *)bytes + sizeof text;
    pthread_mutex_lock(&oriel_net.origin.mutex);
    if (!peer->is_lost && peer->device_end.ep == NULL)
        peer->device_end.ep = oriel_net_connect(oriel_net.origin.devices, packed + text.key_bytes,
                                                device_connection_broken, peer, &status);
    bool is_open =
        peer->device_end.ep != NULL &&
        oriel_ucp()->ucp_ep_rkey_unpack(peer->device_end.ep, packed, &key->key) == UCS_OK;
    key->ep = peer->device_end.ep;
    oriel_net_leave();
    if (is_open)
        return key;
    free(key);
    return NULL;
}

void oriel_net_key_close(struct oriel_net_key *key)
{
    if (oriel_net_enter(&oriel_net.origin)) {
        oriel_ucp()->ucp_rkey_destroy(key->key);
        pthread_mutex_unlock(&oriel_net.origin.mutex);
    }
    free(key);
}

/* With the origin's mutex held: waits until few enough bytes are outstanding. Returns true if the
 * key is still valid for its peer. A peer that is silent meanwhile is lost (N4). */
static bool key_enter(const struct oriel_net_key *key)
{
    struct oriel_net_peer *peer = key->peer;
    pthread_mutex_lock(&oriel_net.origin.mutex);
    while (!peer->is_lost && peer->device_bytes >= OUTSTANDING_MOST_BYTES) {
        oriel_net_leave();
        (void)oriel_net_check(peer);
        sched_yield();
        pthread_mutex_lock(&oriel_net.origin.mutex);
    }
    return !peer->is_lost && peer->device_end.ep == key->ep;
}

static enum oriel_status device_leave(struct oriel_net_peer *peer, enum oriel_status status)
{
    if (oriel_net.any_broken)
        oriel_net_lose_broken_peers();
    if (peer->is_lost)
        status = oriel_fail(ORIEL_E_PEER, "%s", peer->why);
    oriel_net_leave();
    return status;
}

/* The peer has restarted since it sent the key. If it is lost, device_leave sets the message
 * instead. */
static enum oriel_status key_is_stale(void)
{
    return oriel_fail(ORIEL_E_PEER,
                      "the process on another node has restarted since it sent its RDMA key");
}

/* Stored before an operation's data. */
struct rdma_operation {
    struct oriel_net_peer *peer;
    uint64_t number; /* of the request; unused for a put */
};

static struct rdma_operation *operation_of(struct oriel_ucx_buffer *buffer)
{
    return (struct rdma_operation *)(void *)buffer->front;
}

static void operation_start(struct oriel_ucx_buffer *buffer)
{
    atomic_fetch_add_explicit(&oriel_net.origin.pending, 1, memory_order_relaxed);
    operation_of(buffer)->peer->device_bytes += buffer->len_bytes;
}

static void operation_end(void *request, struct oriel_ucx_buffer *buffer, ucs_status_t status)
{
    if (status == UCS_OK) /* a broken connection has its own handler */
        operation_of(buffer)->peer->device_end.is_up = true;
    atomic_fetch_sub_explicit(&oriel_net.origin.pending, 1, memory_order_relaxed);
    operation_of(buffer)->peer->device_bytes -= buffer->len_bytes;
    oriel_ucp()->ucp_request_free(request);
}

static struct oriel_ucx_buffer *operation_buffer_take(struct oriel_net_peer *peer, size_t len_bytes)
{
    struct oriel_ucx_buffer *buffer = oriel_pool_take(&oriel_net.origin.pool, len_bytes);
    if (buffer == NULL)
        return NULL;
    buffer->len_bytes = len_bytes;
    *operation_of(buffer) = (struct rdma_operation){.peer = peer};
    return buffer;
}

static enum oriel_status rdma_no_memory(void)
{
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for an RDMA transfer");
}

static void put_done(void *request, ucs_status_t status, void *user_data)
{
    operation_end(request, user_data, status);
    oriel_pool_give(&oriel_net.origin.pool, user_data);
}

static ucp_request_param_t request_params(struct oriel_ucx_buffer *buffer,
                                          ucp_send_nbx_callback_t done)
{
    return (ucp_request_param_t){.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = done,
                                 .user_data = buffer};
}

enum oriel_status oriel_net_put(struct oriel_net_key *key, uint64_t offset_bytes, const void *from,
                                size_t len_bytes)
{
    enum oriel_status status = ORIEL_OK;
    bool leads = key_enter(key);
    struct oriel_ucx_buffer *buffer = leads ? operation_buffer_take(key->peer, len_bytes) : NULL;
    if (buffer == NULL)
        status = leads ? rdma_no_memory() : key_is_stale();
    if (buffer != NULL) {
        memcpy(buffer->data, from, len_bytes);
        const ucp_request_param_t how = request_params(buffer, put_done);
        ucs_status_ptr_t put = oriel_ucp()->ucp_put_nbx(
            key->ep, buffer->data, len_bytes, key->address + offset_bytes, key->key, &how);
        if (UCS_PTR_IS_PTR(put))
            operation_start(buffer);
        else
            oriel_pool_give(&oriel_net.origin.pool, buffer);
        if (put == NULL)
            key->peer->device_end.is_up = true;
        if (UCS_PTR_IS_ERR(put))
            oriel_net_note_broken(key->peer, "cannot put", UCS_PTR_STATUS(put));
    }
    return device_leave(key->peer, status);
}

/* Removes the request of this number. Returns NULL if its peer was lost meanwhile. */
static struct oriel_net_request *request_remove(uint64_t number)
{
    struct oriel_net_request *request = oriel_net.requests[number & (oriel_net.request_room - 1)];
    if (request == NULL || request->number != number)
        return NULL;
    request->peer->silence_ns = 0;
    oriel_net.answered++;
    oriel_net_remove_request(request);
    return request;
}

/* After an error the connection is broken, and the request ends with it. */
static void get_finish(struct oriel_ucx_buffer *buffer, ucs_status_t status)
{
    struct oriel_net_request *request =
        status == UCS_OK ? request_remove(operation_of(buffer)->number) : NULL;
    if (request != NULL) {
        request->take(request,
                      &(struct oriel_net_received){"", 0, buffer->data, buffer->len_bytes});
        oriel_net_end_request(request, ORIEL_OK);
    }
    oriel_pool_give(&oriel_net.origin.pool, buffer);
}

static void get_done(void *request, ucs_status_t status, void *user_data)
{
    operation_end(request, user_data, status);
    get_finish(user_data, status);
}

enum oriel_status oriel_net_get(struct oriel_net_key *key, uint64_t offset_bytes, size_t len_bytes,
                                struct oriel_net_request *request)
{
    enum oriel_status status = ORIEL_OK;
    request->peer = key->peer;
    bool leads = key_enter(key);
    struct oriel_ucx_buffer *buffer = leads ? operation_buffer_take(key->peer, len_bytes) : NULL;
    if (buffer == NULL)
        status = leads ? rdma_no_memory() : key_is_stale();
    if (buffer != NULL && !oriel_net_add_request(key->peer, request)) {
        oriel_pool_give(&oriel_net.origin.pool, buffer);
        status = rdma_no_memory();
    }
    if (status != ORIEL_OK)
        return device_leave(key->peer, status);
    const ucp_request_param_t how = request_params(buffer, get_done);
    operation_of(buffer)->number = request->number;
    ucs_status_ptr_t get = oriel_ucp()->ucp_get_nbx(key->ep, buffer->data, len_bytes,
                                                    key->address + offset_bytes, key->key, &how);
    if (UCS_PTR_IS_PTR(get))
        operation_start(buffer);
    else
        get_finish(buffer, UCS_PTR_STATUS(get));
    if (UCS_PTR_IS_ERR(get))
        oriel_net_note_broken(key->peer, "cannot get", UCS_PTR_STATUS(get));
    (void)device_leave(key->peer, ORIEL_OK); /* a started request ends in its callback */
    return ORIEL_OK;
}

static void arrival_finish(uint64_t number, ucs_status_t status)
{
    struct oriel_net_request *request = status == UCS_OK ? request_remove(number) : NULL;
    if (request != NULL)
        oriel_net_end_request(request, ORIEL_OK);
}

static void arrival_done(void *request, ucs_status_t status, void *user_data)
{
    arrival_finish((uint64_t)(uintptr_t)user_data, status);
    oriel_ucp()->ucp_request_free(request);
}

enum oriel_status oriel_net_request_arrival(struct oriel_net_peer *peer,
                                            struct oriel_net_request *request)
{
    enum oriel_status status = ORIEL_OK;
    request->peer = peer;
    pthread_mutex_lock(&oriel_net.origin.mutex);
    if (!peer->is_lost && (peer->device_end.ep == NULL || !oriel_net_add_request(peer, request)))
        status = rdma_no_memory();
    if (peer->is_lost || status != ORIEL_OK)
        return device_leave(peer, status);
    const ucp_request_param_t how = {.op_attr_mask =
                                         UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                     .cb.send = arrival_done,
                                     .user_data = (void *)(uintptr_t)request->number};
    ucs_status_ptr_t flush = oriel_ucp()->ucp_ep_flush_nbx(peer->device_end.ep, &how);
    if (!UCS_PTR_IS_PTR(flush))
        arrival_finish(request->number, UCS_PTR_STATUS(flush));
    if (UCS_PTR_IS_ERR(flush))
        oriel_net_note_broken(peer, "cannot flush", UCS_PTR_STATUS(flush));
    (void)device_leave(peer, ORIEL_OK);
    return ORIEL_OK;
}
