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

enum { CLOSE_NS = 2000000000, FLUSH_NS = 500000000 };

/* The mutexes exist before the first start and persist between starts, so late callers can lock
 * them. */
struct oriel_net oriel_net = {.origin.mutex = PTHREAD_MUTEX_INITIALIZER,
                              .agent.mutex = PTHREAD_MUTEX_INITIALIZER};
static _Atomic bool is_started; /* reset with both mutexes held */
static _Atomic bool in_child;   /* child of a process that had started */
static _Atomic bool watches_fork;

static void enter_child(void)
{
    atomic_store_explicit(&in_child, in_child || is_started, memory_order_relaxed);
    atomic_store_explicit(&is_started, false, memory_order_relaxed);
}

static enum oriel_status refuse(const char *what, ucs_status_t status)
{
    return oriel_fail(ORIEL_E_OTHER, "no UCX: %s: %s", what, oriel_ucp_text(status));
}

static ucs_status_t create_worker(ucp_context_h context, ucp_worker_h *out)
{
    const ucp_worker_params_t wanted = {
        .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS,
        .thread_mode = UCS_THREAD_MODE_SERIALIZED,
        .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK,
    };
    return oriel_ucp()->ucp_worker_create(context, &wanted, out);
}

/* Combines the descriptors of both workers in one. */
static bool watch_both(struct oriel_net_worker *worker, int devices_fd)
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

static bool add_devices(struct oriel_net_worker *worker)
{
    int devices_fd;
    if (create_worker(oriel_net.devices, &worker->devices) != UCS_OK)
        worker->devices = NULL;
    if (worker->devices != NULL &&
        oriel_ucp()->ucp_worker_get_efd(worker->devices, &devices_fd) == UCS_OK &&
        watch_both(worker, devices_fd))
        return true;
    if (worker->devices != NULL)
        oriel_ucp()->ucp_worker_destroy(worker->devices);
    worker->devices = NULL;
    return false;
}

static enum oriel_status open_worker(struct oriel_net_worker *worker, ucp_am_recv_callback_t take)
{
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = 0,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = take,
    };
    ucs_status_t status = create_worker(oriel_net.context, &worker->ucp);
    worker->devices = NULL;
    worker->owns_fd = false;
    if (status != UCS_OK)
        return refuse("ucp_worker_create", status);
    status = oriel_ucp()->ucp_worker_set_am_recv_handler(worker->ucp, &handler);
    if (status == UCS_OK)
        status = oriel_ucp()->ucp_worker_get_efd(worker->ucp, &worker->fd);
    if (status == UCS_OK && !oriel_pool_open(&worker->pool))
        status = UCS_ERR_NO_MEMORY;
    if (status != UCS_OK) {
        oriel_ucp()->ucp_worker_destroy(worker->ucp);
        return refuse("a worker that can be waited for", status);
    }
    worker->gather = (struct oriel_gather){.whose = NULL};
    worker->pending = 0;
    worker->closing = 0;
    worker->left_open = 0;
    return ORIEL_OK;
}

/* A worker with endpoints that stay open also stays, with everything to which these may refer. */
static void close_worker(struct oriel_net_worker *worker)
{
    if (worker->left_open != 0)
        return;
    if (worker->owns_fd)
        close(worker->fd);
    if (worker->devices != NULL)
        oriel_ucp()->ucp_worker_destroy(worker->devices);
    oriel_ucp()->ucp_worker_destroy(worker->ucp);
    if (worker->gather.whose != NULL) /* for a lost one */
        oriel_pool_give(&worker->pool, oriel_gather_take(&worker->gather));
    oriel_pool_close(&worker->pool);
}

/* The addresses of network devices only: Oriel itself handles shared memory, and several simulated
 * nodes on one machine must be distinct. */
static ucs_status_t ask_address(ucp_worker_h worker, ucp_address_t **address, size_t *len_bytes)
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

static enum oriel_status make_address(void)
{
    ucp_address_t *agent = NULL;
    size_t agent_bytes = 0;
    ucs_status_t status = ask_address(oriel_net.agent.ucp, &agent, &agent_bytes);
    if (status != UCS_OK)
        return refuse("the address of a worker", status);
    struct oriel_wire_address head = {ORIEL_WIRE_VERSION, (uint32_t)agent_bytes, oriel_net.session};
    oriel_net.address_bytes = sizeof head + agent_bytes;
    enum oriel_status fits = ORIEL_OK;
    if (oriel_net.address_bytes > sizeof oriel_net.address) {
        fits = oriel_fail(ORIEL_E_OTHER,
                          "no UCX: this machine's network addresses have %zu bytes: "
                          "UCX_NET_DEVICES chooses fewer",
                          agent_bytes);
    } else {
        memcpy(oriel_net.address, &head, sizeof head);
        memcpy(oriel_net.address + sizeof head, agent, agent_bytes);
    }
    oriel_ucp()->ucp_worker_release_address(oriel_net.agent.ucp, agent);
    if (fits != ORIEL_OK)
        return fits;
    status = ask_address(oriel_net.origin.ucp, &oriel_net.origin_address,
                         &oriel_net.origin_address_bytes);
    return status == UCS_OK ? ORIEL_OK : refuse("the address of a worker", status);
}

/* As in transport/agent/agent_thread.c: if static thread-local memory needs more than this, the
 * default size is used. */
static enum oriel_status start_thread(void)
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
        return oriel_fail(ORIEL_E_OTHER, "no thread for messages from other machines: %s",
                          strerror(error));
    pthread_setname_np(oriel_net.thread, "oriel-net");
    return ORIEL_OK;
}

static void close_devices(void)
{
    if (oriel_net.devices == NULL)
        return;
    oriel_net_withdraw_all();
    if (oriel_net.devices_address != NULL)
        oriel_ucp()->ucp_worker_release_address(oriel_net.agent.devices, oriel_net.devices_address);
    oriel_net.devices_address = NULL;
}

static void clean_devices(void)
{
    if (oriel_net.devices != NULL)
        oriel_ucp()->ucp_cleanup(oriel_net.devices);
    oriel_net.devices = NULL;
}

/* If it fails, messages are used instead. */
static void open_devices(const char *found)
{
    if (oriel_options()->net == ORIEL_NET_MESSAGES ||
        !oriel_ucp_open_devices(found, &oriel_net.devices))
        return;
    if (add_devices(&oriel_net.origin) && add_devices(&oriel_net.agent) &&
        ask_address(oriel_net.agent.devices, &oriel_net.devices_address,
                    &oriel_net.devices_address_bytes) == UCS_OK)
        return;
    oriel_note("devices that put and get by themselves cannot be waited for: all goes by messages");
    oriel_net.devices_address = NULL;
    for (int i = 0; i < 2; i++) {
        struct oriel_net_worker *worker = i == 0 ? &oriel_net.origin : &oriel_net.agent;
        if (worker->devices != NULL)
            oriel_ucp()->ucp_worker_destroy(worker->devices);
        worker->devices = NULL; /* the descriptor over both still works for the remaining one */
    }
    clean_devices();
}

static enum oriel_status open_all(void)
{
    char devices[4096];
    enum oriel_status status = oriel_ucp_open(&oriel_net.context, devices, sizeof devices);
    if (status != ORIEL_OK)
        return status;
    status = open_worker(&oriel_net.origin, oriel_net_take_reply);
    if (status != ORIEL_OK)
        goto no_origin;
    status = open_worker(&oriel_net.agent, oriel_net_take_message);
    if (status != ORIEL_OK)
        goto no_agent;
    oriel_net.has_verbs = oriel_ucp_has_verbs(devices);
    open_devices(devices);
    status = make_address();
    if (status != ORIEL_OK)
        goto no_address;
    oriel_net.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (oriel_net.wake_fd < 0) {
        status = oriel_fail(ORIEL_E_OTHER, "no event descriptor: %s", strerror(errno));
        goto no_event;
    }
    if (!oriel_net_make_gate()) {
        status = oriel_fail(ORIEL_E_OTHER, "no epoll descriptor: %s", strerror(errno));
        goto no_gate;
    }
    status = start_thread();
    if (status == ORIEL_OK)
        return ORIEL_OK;
    close(oriel_net.gate_fd);
no_gate:
    close(oriel_net.wake_fd);
no_event:
    oriel_ucp()->ucp_worker_release_address(oriel_net.origin.ucp, oriel_net.origin_address);
no_address:
    close_devices();
    close_worker(&oriel_net.agent);
no_agent:
    close_worker(&oriel_net.origin);
    clean_devices();
no_origin:
    oriel_ucp()->ucp_cleanup(oriel_net.context);
    return status;
}

/* Resets everything except the workers, which open_worker reinitialises around their mutexes. */
static void forget_all(void)
{
    const size_t workers_end = offsetof(struct oriel_net, service);
    memset((char *)&oriel_net + workers_end, 0, sizeof oriel_net - workers_end);
    oriel_net.by_identity = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    oriel_net.by_session = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
    oriel_net.ready_end = &oriel_net.ready;
}

/* Allocates in advance what must be available later. */
static enum oriel_status put_by(void)
{
    bool is_there = oriel_net_has_request_room() && oriel_net_has_spare_caller();
    return is_there ? ORIEL_OK
                    : oriel_fail(ORIEL_E_NO_MEM, "no memory for messages to other machines");
}

static void free_peers(void)
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
static void release_held(void)
{
    while (oriel_net.ready != NULL) { /* arrived after the last turn of the agent's thread */
        struct oriel_net_held *held = oriel_net.ready;
        oriel_net.ready = held->next;
        oriel_net_release(held);
    }
    for (struct oriel_net_caller *caller = oriel_net.callers; caller != NULL; caller = caller->next)
        oriel_net_drop_early(caller);
}

static void free_list(struct oriel_net_caller **list)
{
    while (*list != NULL) {
        struct oriel_net_caller *caller = *list;
        *list = caller->next;
        free(caller);
    }
}

static void free_callers(void)
{
    free_list(&oriel_net.callers);
    free_list(&oriel_net.forgotten);
    free(oriel_net.spare_caller);
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
    status = oriel_fork_watch(&watches_fork, NULL, NULL, enter_child);
    if (status != ORIEL_OK)
        return status;
    forget_all();
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
    pthread_sigmask(
        SIG_SETMASK, &all,
        /* for the agent's thread and UCX's own: handlers run only in the program's threads */
        &before);
    oriel_net_threads_note();
    status = put_by();
    if (status == ORIEL_OK)
        status = open_all();
    if (status == ORIEL_OK)
        oriel_net_threads_exempt();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (status == ORIEL_OK) {
        atomic_store_explicit(&is_started, true, memory_order_release);
    } else {
        free_peers();
        free_callers();
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

static enum oriel_status is_in_time(void *end_ns)
{
    return oriel_now_ns() < *(const uint64_t *)end_ns ? ORIEL_OK : ORIEL_E_OTHER;
}

/* With the origin's mutex held, which it releases meanwhile. */
static void await_sync(struct oriel_net_peer *peer, uint64_t *end_ns)
{
    const struct oriel_watch watch = {.check = is_in_time, .context = end_ns};
    if (peer->is_lost || peer->sync.done || is_in_time(end_ns) != ORIEL_OK)
        return;
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    (void)oriel_net_await(&peer->sync, &watch);
    pthread_mutex_lock(&oriel_net.origin.mutex);
}

/* Sends BYE. A peer that has already left is not asked for an answer: it may be gone, and if the
 * connection does not show that, as between InfiniBand devices, the wait would last until the
 * timeout. */
static void say_goodbye_to(struct oriel_net_peer *peer)
{
    if (peer->end.ep == NULL || peer->is_lost || !peer->sync.done)
        return;
    if (peer->has_left)
        (void)oriel_net_send_to(peer, ORIEL_WIRE_BYE, 0, &(struct oriel_net_bytes){.pieces = 0});
    else
        (void)oriel_net_ask_own(peer, ORIEL_WIRE_BYE, &peer->sync);
}

/* Sends BYE to all peers, then waits for all. A peer that answers has received everything, and does
 * not take the end of the connection for a death. A slow peer is awaited as at any other time:
 * otherwise the last messages to it would be lost, and it may wait for these. A peer that sends BYE
 * itself waits for nothing. */
static void say_goodbye(void)
{
    uint64_t end_ns = oriel_now_ns() + oriel_net.timeout_ns;
    pthread_mutex_lock(&oriel_net.origin.mutex);
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next) {
        if (peer->end.ep != NULL)
            await_sync(peer, &end_ns);
        say_goodbye_to(peer);
    }
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next)
        await_sync(peer, &end_ns);
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
static void flush_last(void)
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
static void finish_closing(void)
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
static void shut_out(void)
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
    say_goodbye();
    atomic_store_explicit(&oriel_net.is_ending, true, memory_order_release);
    oriel_net_wake_agent();
    pthread_join(oriel_net.thread, NULL);
    shut_out();
    oriel_net_threads_forget();
    flush_last();
    for (struct oriel_net_caller *caller = oriel_net.callers; caller != NULL; caller = caller->next)
        (void)oriel_net_disconnect(&oriel_net.agent, &caller->end);
    for (struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next)
        (void)oriel_net_disconnect_peer(peer);
    finish_closing();
    oriel_ucp()->ucp_worker_release_address(oriel_net.origin.ucp, oriel_net.origin_address);
    release_held();
    close_devices();
    close_worker(&oriel_net.agent);
    close_worker(&oriel_net.origin);
    free_callers();
    free_peers();
    if (oriel_net.agent.left_open + oriel_net.origin.left_open == 0) {
        clean_devices();
        oriel_ucp()->ucp_cleanup(oriel_net.context);
    }
    close(oriel_net.gate_fd);
    close(oriel_net.wake_fd);
}
