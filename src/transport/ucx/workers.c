/* The context and the two workers of the process, which exist from start to stop. A forked child
 * has neither: UCX's threads and connections stay the parent's. */
#include "transport/ucx/internal.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/options.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define STACK_BYTES (UINT64_C(1) << 20)

enum { CLOSE_NS = 2000000000, FLUSH_NS = 500000000, EXIT_NS = 1000000000, OPEN_ATTEMPTS = 3 };

#define FOREVER_NS (UINT64_C(1) << 60)

/* The mutexes exist before the first start and persist between starts, so late threads can lock
 * them. */
struct oriel_net oriel_net = {.origin.mutex = PTHREAD_MUTEX_INITIALIZER,
                              .agent.mutex = PTHREAD_MUTEX_INITIALIZER};
static _Atomic bool is_started; /* reset with both mutexes held */
static _Atomic bool in_child;   /* child of a process that had started */
static _Atomic bool watches_fork;

static void net_disable_in_child(void)
{
    atomic_store_explicit(&in_child, in_child || is_started, memory_order_relaxed);
    atomic_store_explicit(&is_started, false, memory_order_relaxed);
}

static enum oriel_status ucx_error(const char *call, ucs_status_t status)
{
    return oriel_fail(ORIEL_E_OTHER, "no UCX: %s: %s", call, oriel_ucp_status_text(status));
}

static ucs_status_t worker_create(ucp_context_h context, ucp_worker_h *out)
{
    const ucp_worker_params_t wanted = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
        .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK,
    };
    return oriel_ucp()->ucp_worker_create(context, &wanted, out);
}

/* Combines the descriptors of both workers in one. */
static bool worker_combine_fds(struct oriel_net_worker *worker, int devices_fd)
{
    struct epoll_event readable = {.events = EPOLLIN};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return false;
    if (epoll_ctl(fd, EPOLL_CTL_ADD, worker->fd, &readable) != 0 ||
        epoll_ctl(fd, EPOLL_CTL_ADD, devices_fd, &readable) != 0) {
        close(fd);
        return false;
    }
    worker->fd = fd;
    worker->owns_fd = true;
    return true;
}

static bool worker_add_devices(struct oriel_net_worker *worker)
{
    int devices_fd;
    if (worker_create(oriel_net.devices, &worker->devices) != UCS_OK)
        worker->devices = NULL;
    if (worker->devices != NULL &&
        oriel_ucp()->ucp_worker_get_efd(worker->devices, &devices_fd) == UCS_OK &&
        worker_combine_fds(worker, devices_fd))
        return true;
    if (worker->devices != NULL)
        oriel_ucp()->ucp_worker_destroy(worker->devices);
    worker->devices = NULL;
    return false;
}

static enum oriel_status worker_open(struct oriel_net_worker *worker, ucp_am_recv_callback_t take)
{
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = 0,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = take,
    };
    ucs_status_t status = worker_create(oriel_net.context, &worker->ucp);
    worker->devices = NULL;
    worker->owns_fd = false;
    if (status != UCS_OK)
        return ucx_error("ucp_worker_create", status);
    status = oriel_ucp()->ucp_worker_set_am_recv_handler(worker->ucp, &handler);
    if (status == UCS_OK)
        status = oriel_ucp()->ucp_worker_get_efd(worker->ucp, &worker->fd);
    if (status == UCS_OK && !oriel_pool_open(&worker->pool))
        status = UCS_ERR_NO_MEMORY;
    if (status != UCS_OK) {
        oriel_ucp()->ucp_worker_destroy(worker->ucp);
        return ucx_error("a worker with a wait descriptor", status);
    }
    worker->coalesce = (struct oriel_coalesce){.destination = NULL};
    worker->pending = 0;
    worker->closing = 0;
    worker->left_open = 0;
    return ORIEL_OK;
}

/* A worker with endpoints that stay open also stays, with everything to which these may refer. */
static void worker_close(struct oriel_net_worker *worker)
{
    if (worker->left_open != 0)
        return;
    if (worker->owns_fd)
        close(worker->fd);
    if (worker->devices != NULL)
        oriel_ucp()->ucp_worker_destroy(worker->devices);
    oriel_ucp()->ucp_worker_destroy(worker->ucp);
    if (worker->coalesce.destination != NULL) /* for a lost one */
        oriel_pool_give(&worker->pool, oriel_coalesce_take(&worker->coalesce));
    oriel_pool_close(&worker->pool);
}

/* The addresses of network devices only: Oriel itself handles shared memory, and several simulated
 * nodes on one machine must be distinct. */
static ucs_status_t worker_address(ucp_worker_h worker, ucp_address_t **address, size_t *len_bytes)
{
    ucp_worker_attr_t asked = {
        .field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS,
        .address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY,
    };
    ucs_status_t status = oriel_ucp()->ucp_worker_query(worker, &asked);
    *address = asked.address;
    *len_bytes = asked.address_length;
    return status;
}

static enum oriel_status net_address_create(void)
{
    ucp_address_t *agent = NULL;
    size_t agent_bytes = 0;
    ucs_status_t status = worker_address(oriel_net.agent.ucp, &agent, &agent_bytes);
    if (status != UCS_OK)
        return ucx_error("the address of a worker", status);
    struct oriel_wire_address head = {ORIEL_WIRE_VERSION, (uint32_t)agent_bytes, oriel_net.session};
    oriel_net.address_bytes = sizeof head + agent_bytes;
    enum oriel_status fits = ORIEL_OK;
    if (oriel_net.address_bytes > sizeof oriel_net.address) {
        fits = oriel_fail(ORIEL_E_OTHER,
                          "no UCX: this node's network addresses have %zu bytes: "
                          "UCX_NET_DEVICES can select fewer",
                          agent_bytes);
    } else {
        memcpy(oriel_net.address, &head, sizeof head);
        memcpy(oriel_net.address + sizeof head, agent, agent_bytes);
    }
    oriel_ucp()->ucp_worker_release_address(oriel_net.agent.ucp, agent);
    if (fits != ORIEL_OK)
        return fits;
    status = worker_address(oriel_net.origin.ucp, &oriel_net.origin_address,
                            &oriel_net.origin_address_bytes);
    return status == UCS_OK ? ORIEL_OK : ucx_error("the address of a worker", status);
}

/* As in transport/agent/agent_thread.c: if static thread-local memory needs more than this, the
 * default size is used. */
static enum oriel_status net_thread_start(void)
{
    pthread_attr_t small;
    int error = pthread_attr_init(&small);
    if (error == 0) {
        pthread_attr_setstacksize(&small, STACK_BYTES);
        error = pthread_create(&oriel_net.thread, &small, oriel_net_serve, NULL);
        pthread_attr_destroy(&small);
    }
    if (error == EINVAL)
        error = pthread_create(&oriel_net.thread, NULL, oriel_net_serve, NULL);
    if (error != 0)
        return oriel_fail(ORIEL_E_OTHER, "no thread for messages from other nodes: %s",
                          strerror(error));
    pthread_setname_np(oriel_net.thread, "oriel-net");
    return ORIEL_OK;
}

/* False if the thread has not ended in that time. */
static bool net_thread_end(uint64_t limit_ns)
{
    const uint64_t end_ns = oriel_now_ns() + limit_ns;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / UINT64_C(1000000000)),
                                 .tv_nsec = (long)(end_ns % UINT64_C(1000000000))};
    atomic_store_explicit(&oriel_net.is_ending, true, memory_order_release);
    oriel_net_wake_agent();
    if (!oriel_net.has_joined)
        oriel_net.has_joined =
            pthread_clockjoin_np(oriel_net.thread, NULL, CLOCK_MONOTONIC, &end) == 0;
    return oriel_net.has_joined;
}

/* A process that exits without MPI_Finalize, or with one that failed. UCX's destructors, which must
 * not run while the thread uses UCX, follow this one: UCX is what the host needs, or was loaded
 * later. The limit is for an exit in a signal handler, which may have interrupted a call that holds
 * a mutex. */
__attribute__((destructor)) static void net_end_at_exit(void)
{
    if (oriel_net_is_started())
        (void)net_thread_end(EXIT_NS);
}

static void devices_close(void)
{
    if (oriel_net.devices == NULL)
        return;
    oriel_net_unexpose_all();
    if (oriel_net.devices_address != NULL)
        oriel_ucp()->ucp_worker_release_address(oriel_net.agent.devices, oriel_net.devices_address);
    oriel_net.devices_address = NULL;
}

static void devices_cleanup(void)
{
    if (oriel_net.devices != NULL)
        oriel_ucp()->ucp_cleanup(oriel_net.devices);
    oriel_net.devices = NULL;
}

/* If it fails, messages are used instead. */
static void devices_open(const char *found)
{
    if (oriel_options()->net == ORIEL_NET_MESSAGES ||
        !oriel_ucp_open_devices(found, &oriel_net.devices))
        return;
    if (worker_add_devices(&oriel_net.origin) && worker_add_devices(&oriel_net.agent) &&
        worker_address(oriel_net.agent.devices, &oriel_net.devices_address,
                       &oriel_net.devices_address_bytes) == UCS_OK)
        return;
    oriel_note("RDMA devices without a wait descriptor are not used: messages replace them");
    oriel_net.devices_address = NULL;
    for (int i = 0; i < 2; i++) {
        struct oriel_net_worker *worker = i == 0 ? &oriel_net.origin : &oriel_net.agent;
        if (worker->devices != NULL)
            oriel_ucp()->ucp_worker_destroy(worker->devices);
        worker->devices = NULL; /* the descriptor over both still works for the remaining one */
    }
    devices_cleanup();
}

/* The context, and both workers in it. An interface that UCX has listed may have vanished when a
 * worker opens it, as when a container starts on the node: then they are opened anew. */
static enum oriel_status workers_open(char *devices, size_t devices_bytes)
{
    enum oriel_status status = ORIEL_E_OTHER;
    for (int i = 0; i < OPEN_ATTEMPTS && status != ORIEL_OK; i++) {
        status = oriel_ucp_open(&oriel_net.context, devices, devices_bytes);
        if (status != ORIEL_OK)
            break;
        status = worker_open(&oriel_net.origin, oriel_net_receive_reply);
        if (status == ORIEL_OK) {
            status = worker_open(&oriel_net.agent, oriel_net_receive_message);
            if (status != ORIEL_OK)
                worker_close(&oriel_net.origin);
        }
        if (status != ORIEL_OK)
            oriel_ucp()->ucp_cleanup(oriel_net.context);
    }
    return status;
}

static enum oriel_status net_open(void)
{
    char devices[4096];
    enum oriel_status status = workers_open(devices, sizeof devices);
    if (status != ORIEL_OK)
        return status;
    oriel_net.has_verbs = oriel_ucp_has_verbs(devices);
    devices_open(devices);
    status = net_address_create();
    if (status != ORIEL_OK)
        goto no_address;
    oriel_net.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (oriel_net.wake_fd < 0) {
        status = oriel_fail(ORIEL_E_OTHER, "no event descriptor: %s", strerror(errno));
        goto no_event;
    }
    if (!oriel_net_gate_create()) {
        status = oriel_fail(ORIEL_E_OTHER, "no epoll descriptor: %s", strerror(errno));
        goto no_gate;
    }
    status = net_thread_start();
    if (status == ORIEL_OK)
        return ORIEL_OK;
    close(oriel_net.gate_fd);
no_gate:
    close(oriel_net.wake_fd);
no_event:
    oriel_ucp()->ucp_worker_release_address(oriel_net.origin.ucp, oriel_net.origin_address);
no_address:
    devices_close();
    worker_close(&oriel_net.agent);
    worker_close(&oriel_net.origin);
    devices_cleanup();
    oriel_ucp()->ucp_cleanup(oriel_net.context);
    return status;
}

/* Resets everything except the workers, which worker_open reinitialises around their mutexes. */
static void net_reset(void)
{
    const size_t workers_end = offsetof(struct oriel_net, service);
    memset((char *)&oriel_net + workers_end, 0, sizeof oriel_net - workers_end);
    oriel_net.by_identity = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    oriel_net.by_session = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    oriel_net.ready_end = &oriel_net.ready;
}

/* Allocates in advance what must be available later. */
static enum oriel_status net_preallocate(void)
{
    bool is_there = oriel_net_has_request_room() && oriel_net_has_spare_sender();
    return is_there ? ORIEL_OK
                    : oriel_fail(ORIEL_E_NO_MEM, "no memory for messages to other nodes");
}

static void peers_free(void)
{
    while (oriel_net.peers != NULL) {
        struct oriel_net_peer *peer = oriel_net.peers;
        oriel_net.peers = peer->next;
        free(peer);
    }
    oriel_hash_table_close(&oriel_net.by_identity);
    free(oriel_net.requests);
}

/* Releases the messages in buffers of the agent's pool. */
static void messages_release(void)
{
    while (oriel_net.ready != NULL) { /* arrived after the last turn of the agent's thread */
        struct oriel_net_message *held = oriel_net.ready;
        oriel_net.ready = held->next;
        oriel_net_free_message(held);
    }
    for (struct oriel_net_sender *sender = oriel_net.senders; sender != NULL; sender = sender->next)
        oriel_net_drop_early(sender);
}

static void senders_free_list(struct oriel_net_sender **list)
{
    while (*list != NULL) {
        struct oriel_net_sender *sender = *list;
        *list = sender->next;
        free(sender);
    }
}

static void senders_free(void)
{
    senders_free_list(&oriel_net.senders);
    senders_free_list(&oriel_net.forgotten);
    free(oriel_net.spare_sender);
    oriel_hash_table_close(&oriel_net.by_session);
}

enum oriel_status oriel_net_start(const struct oriel_identity *self,
                                  struct oriel_remote_writers *writers,
                                  const struct oriel_net_service *service)
{
    if (oriel_net_is_started())
        return ORIEL_OK;
    if (in_child)
        return oriel_fail(ORIEL_E_OTHER, "no UCX in a forked process whose parent uses it");
    if (oriel_options()->net == ORIEL_NET_OFF)
        return oriel_fail(ORIEL_E_OTHER, "ORIEL_NET=off");
    enum oriel_status status = oriel_ucp_load();
    if (status != ORIEL_OK)
        return status;
    status = oriel_fork_register(&watches_fork, NULL, NULL, net_disable_in_child);
    if (status != ORIEL_OK)
        return status;
    net_reset();
    oriel_net.service = *service;
    oriel_net.self = *self;
    oriel_net.writers = writers;
    oriel_net.timeout_ns = oriel_timeout_ns();
    if (getrandom(&oriel_net.session, sizeof oriel_net.session, 0) !=
        (ssize_t)sizeof oriel_net.session)
        return oriel_fail(ORIEL_E_OTHER, "no random number for a session: %s", strerror(errno));
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    /* for the agent's thread and UCX's own: handlers run only in the program's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    oriel_net_threads_record();
    status = net_preallocate();
    if (status == ORIEL_OK)
        status = net_open();
    if (status == ORIEL_OK)
        oriel_net_threads_exempt();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == ORIEL_OK) {
        atomic_store_explicit(&is_started, true, memory_order_release);
    } else {
        peers_free();
        senders_free();
    }
    return status;
}

bool oriel_net_is_started(void)
{
    return atomic_load_explicit(&is_started, memory_order_acquire);
}

bool oriel_net_enter(struct oriel_net_worker *worker)
{
    if (!oriel_net_is_started()) /* in a forked child, whose parent may have held the mutex */
        return false;
    pthread_mutex_lock(&worker->mutex);
    if (oriel_net_is_started())
        return true;
    pthread_mutex_unlock(&worker->mutex);
    return false;
}

const void *oriel_net_address(size_t *len_bytes)
{
    *len_bytes = oriel_net.address_bytes;
    return oriel_net.address;
}

void oriel_net_wake_agent(void)
{
    uint64_t one = 1;
    ssize_t written = write(oriel_net.wake_fd, &one, sizeof one);
    (void)written; /* a full counter wakes, too */
}

/* --- stop --- */

static enum oriel_status deadline_check(void *end_ns)
{
    return oriel_now_ns() < *(const uint64_t *)end_ns ? ORIEL_OK : ORIEL_E_OTHER;
}

/* With the origin's mutex held, which it releases meanwhile. */
static void sync_wait(struct oriel_net_peer *peer, uint64_t *end_ns)
{
    const struct oriel_watch watch = {.check = deadline_check, .context = end_ns};
    if (peer->is_lost || peer->sync.done || deadline_check(end_ns) != ORIEL_OK)
        return;
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    (void)oriel_net_await(&peer->sync, &watch);
    pthread_mutex_lock(&oriel_net.origin.mutex);
}

/* Sends BYE. A peer that has already left is not asked for an answer: it may be gone, and if the
 * connection does not show that, as between InfiniBand devices, the wait would last until the
 * timeout. */
static void bye_send(struct oriel_net_peer *peer)
{
    if (peer->end.ep == NULL || peer->is_lost || !peer->sync.done)
        return;
    if (peer->has_left)
        (void)oriel_net_send_to(peer, ORIEL_WIRE_BYE, 0, &(struct oriel_net_bytes){.pieces = 0});
    else
        (void)oriel_net_ask_internal(peer, ORIEL_WIRE_BYE, &peer->sync);
}

/* Sends BYE to all peers, then waits for all. A peer that answers has received everything, and does
 * not mistake the end of the connection for a death. A slow peer is awaited as at any other time:
 * otherwise the last messages to it would be lost, and it may wait for these. A peer that sends BYE
 * itself waits for nothing. */
static void bye_send_all(void)
{
    uint64_t end_ns = oriel_now_ns() + oriel_net.timeout_ns;
    pthread_mutex_lock(&oriel_net.origin.mutex);
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next) {
        if (peer->end.ep != NULL)
            sync_wait(peer, &end_ns);
        bye_send(peer);
    }
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next)
        sync_wait(peer, &end_ns);
    pthread_mutex_unlock(&oriel_net.origin.mutex);
}

static bool is_flushing(ucs_status_ptr_t request)
{
    return UCS_PTR_IS_PTR(request) &&
           oriel_ucp()->ucp_request_check_status(request) == UCS_INPROGRESS;
}

/* Flushes the last answers of the agent's thread, and BYEs without an answer: a device discards
 * unsent data when its connection ends. A connection that was just being established may never
 * complete, because its other end stops, too; so the time is limited. */
static void flush_remaining(void)
{
    const ucp_request_param_t how = {.op_attr_mask = 0};
    uint64_t begin_ns = oriel_now_ns();
    ucs_status_ptr_t requests[] = {oriel_ucp()->ucp_worker_flush_nbx(oriel_net.agent.ucp, &how),
                                   oriel_ucp()->ucp_worker_flush_nbx(oriel_net.origin.ucp, &how)};
    while ((is_flushing(requests[0]) || is_flushing(requests[1])) &&
           oriel_now_ns() - begin_ns < FLUSH_NS) {
        oriel_net_turn(&oriel_net.agent);
        oriel_net_turn(&oriel_net.origin);
        sched_yield();
    }
    for (int i = 0; i < 2; i++)
        if (UCS_PTR_IS_PTR(requests[i]))
            oriel_ucp()->ucp_request_free(requests[i]);
}

/* A worker must not end before its endpoints: UCX would abort the process. */
static void endpoints_finish_closing(void)
{
    uint64_t begin_ns = oriel_now_ns();
    while (oriel_net.agent.closing + oriel_net.origin.closing != 0 &&
           oriel_now_ns() - begin_ns < CLOSE_NS) {
        oriel_net_turn(&oriel_net.agent);
        oriel_net_turn(&oriel_net.origin);
        sched_yield();
    }
}

/* From here on only this thread accesses the net. */
static void net_exclude_threads(void)
{
    pthread_mutex_lock(&oriel_net.agent.mutex);
    pthread_mutex_lock(&oriel_net.origin.mutex);
    atomic_store_explicit(&is_started, false, memory_order_release);
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

void oriel_net_stop(void)
{
    if (!oriel_net_is_started())
        return;
    bye_send_all();
    (void)net_thread_end(FOREVER_NS);
    net_exclude_threads();
    oriel_net_threads_forget();
    flush_remaining();
    for (struct oriel_net_sender *sender = oriel_net.senders; sender != NULL; sender = sender->next)
        (void)oriel_net_disconnect(&oriel_net.agent, &sender->end);
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next)
        (void)oriel_net_disconnect_peer(peer);
    endpoints_finish_closing();
    oriel_ucp()->ucp_worker_release_address(oriel_net.origin.ucp, oriel_net.origin_address);
    messages_release();
    devices_close();
    worker_close(&oriel_net.agent);
    worker_close(&oriel_net.origin);
    senders_free();
    peers_free();
    if (oriel_net.agent.left_open + oriel_net.origin.left_open == 0) {
        devices_cleanup();
        oriel_ucp()->ucp_cleanup(oriel_net.context);
    }
    close(oriel_net.gate_fd);
    close(oriel_net.wake_fd);
}
