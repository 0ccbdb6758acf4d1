/* src/transport/ucx/: edge cases. Calls while the net stops and starts, messages and answers
 * without memory, and UCX's own puts, gets and atomics. */
#include "message_service.h"
#include "no_memory.h"

#include "transport/ucx/internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { STARTS = 12, STAY_US = 200 };

static _Atomic bool is_over;

/* As a call does that takes long: the net does not stop meanwhile. */
static void stay_in_a_call(void)
{
    if (!oriel_net_enter(&oriel_net.agent))
        return;
    usleep(STAY_US);
    team_expect(oriel_net_is_started());
    pthread_mutex_unlock(&oriel_net.agent.mutex);
}

/* As a thread in MPI_Wait does, which does not use windows. */
static void *go_on(void *unused)
{
    const struct oriel_net_requester no_process = {{0}};
    (void)unused;
    while (!atomic_load(&is_over)) {
        oriel_net_progress();
        oriel_net_answer(&no_process, &(struct oriel_net_bytes){.pieces = 0});
        stay_in_a_call();
    }
    return NULL;
}

static void stop_during_progress_of_others(struct oriel_window *window)
{
    pthread_t threads[2];
    struct question question;
    atomic_store(&is_over, false);
    for (int i = 0; i < 2; i++)
        team_expect(pthread_create(&threads[i], NULL, go_on, NULL) == 0);
    for (int i = 0; i < STARTS; i++) {
        service_start(window);
        struct stream stream = service_stream(1 - team_rank, 0);
        service_send(&stream, ECHO, 100, &question);
        service_await(&question);
        free(stream.data);
        service_stop();
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void net_progress_during_stops_and_starts_is_harmless(void **state)
{
    (void)state;
    team_run(2, stop_during_progress_of_others);
}

/* An answer arrives while this process has no memory for it, and UCX has put it at an odd
 * address. */
static void answer_oneself(struct question *question, uint64_t from)
{
    struct oriel_wire wire = {.version = ORIEL_WIRE_VERSION,
                              .kind = ORIEL_WIRE_ANSWER,
                              .head_bytes = sizeof question->note,
                              .from = from,
                              .to = oriel_net.session,
                              .number = question->net.number};
    char header[sizeof wire + sizeof question->note];
    const ucp_am_recv_param_t how = {.recv_attr = 0};
    memcpy(header, &wire, sizeof wire);
    memcpy(header + sizeof wire, &question->note, sizeof question->note);
    char *data = malloc(question->len_bytes + 1);
    team_expect(data != NULL);
    service_fill(data + 1, question->len_bytes, question->note.seed);
    pthread_mutex_lock(&oriel_net.origin.mutex);
    no_buffers_here = true;
    team_expect(oriel_net_receive_reply(NULL, header, sizeof header, data + 1, question->len_bytes,
                                        &how) == UCS_OK);
    no_buffers_here = false;
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    free(data);
}

static void receive_without_memory(struct oriel_window *window)
{
    struct question question;
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    service_send(&stream, STORE, 60001, &question);
    question.len_bytes = 60001;
    answer_oneself(&question, stream.peer->session);
    service_await(&question);
    free(stream.data);
    service_stop();
}

static void net_answer_is_received_without_memory(void **state)
{
    (void)state;
    team_run(2, receive_without_memory);
}

/* A message that cannot be sent returns an error; the peer is unaffected and receives the next
 * message. */
static void begin_in_poverty(struct oriel_window *window)
{
    struct question question;
    const struct oriel_net_bytes nothing = {.pieces = 0};
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    for (int i = 0; i < 2; i++) {
        no_buffers_here = true;
        team_expect(oriel_net_tell(stream.peer, &nothing) == ORIEL_E_NO_MEM);
        team_expect(oriel_net_tell_later(stream.peer, &nothing) == ORIEL_E_NO_MEM);
        no_buffers_here = false;
        service_send(&stream, ECHO, 100, &question);
        service_await(&question);
    }
    free(stream.data);
    service_stop();
}

static void net_lack_of_memory_is_reported_and_ends_with_memory(void **state)
{
    (void)state;
    team_run(2, begin_in_poverty);
}

/* Rank 0 has no memory for rank 1's message, so it closes the connection. Rank 1 lives, answers,
 * and makes no calls. A rank that waits at rank 0 for that message would wait forever. */
static void wait_for_unreachable(struct oriel_window *window, bool is_open_before)
{
    struct question question;
    enum oriel_status status = ORIEL_OK;
    struct stream stream = {.data = NULL};
    service_begin(window);
    if (team_rank == 1 || is_open_before)
        service_open(1 - team_rank);
    if (team_rank == 1)
        oriel_net.timeout_ns =
            UINT64_C(2) * 1000000000; /* it also learns it from rank 0's silence */
    atomic_store(&service_shared->lost[team_rank], 0);
    team_barrier();
    if (team_rank == 1 || is_open_before) {
        stream = service_stream(1 - team_rank, 0);
        service_send(&stream, ECHO, 100, &question);
        service_await(&question);
    }
    team_barrier();
    atomic_store(&no_buffers_of_agent, team_rank == 0);
    team_barrier();
    if (team_rank == 1) {
        service_send(&stream, PASS, 100, NULL);
        team_flag_await(0, 1);
    }
    while (team_rank == 0 && atomic_load(&service_shared->lost[0]) == 0)
        usleep(1000);
    atomic_store(&no_buffers_of_agent, false);
    if (team_rank == 0 && !is_open_before) {
        usleep(100000); /* all messages that could be lost are lost */
        service_open(1);
        stream = service_stream(1, 0);
    }
    while (status == ORIEL_OK) {
        status = oriel_net_check(stream.peer);
        usleep(1000);
    }
    team_expect(status == ORIEL_E_PEER);
    team_flag_set(0, 1);
    free(stream.data);
    service_stop();
}

static void wait_until_given_up(struct oriel_window *window)
{
    wait_for_unreachable(window, true);
}
static void wait_after_given_up(struct oriel_window *window)
{
    wait_for_unreachable(window, false);
}

static void net_unreachable_process_is_lost_for_waits(void **state)
{
    (void)state;
    team_run(2, wait_until_given_up);
}

static void net_unreachable_process_is_lost_for_later_requests(void **state)
{
    (void)state;
    team_run(2, wait_after_given_up);
}

/* Rank 1's net stops and starts repeatedly, while rank 0 keeps its own: rank 1 sends with a new
 * session each time. */
enum { AGAIN = 24 };

static unsigned count_known(void)
{
    unsigned count = 0;
    pthread_mutex_lock(&oriel_net.agent.mutex);
    pthread_mutex_lock(&oriel_net.origin.mutex);
    for (const struct oriel_net_sender *sender = oriel_net.senders; sender != NULL;
         sender = sender->next)
        count++;
    for (const struct oriel_net_peer *peer = oriel_net.peers; peer != NULL; peer = peer->next)
        count++;
    pthread_mutex_unlock(&oriel_net.origin.mutex);
    pthread_mutex_unlock(&oriel_net.agent.mutex);
    return count;
}

static void echo_by(struct stream *stream, int32_t to)
{
    struct question question;
    stream->peer = service_peers[to];
    service_send(stream, ECHO, 100, &question);
    service_await(&question);
}

static void start_during_another_that_stays(struct oriel_window *window)
{
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    for (uint32_t i = 0; i < AGAIN; i++) {
        /* Now and then one rank has sent nothing; at the end rank 1 never has. */
        if (team_rank == 0 ? i % 4 != 0 : i < 8)
            echo_by(&stream, 1 - team_rank);
        team_barrier();
        if (team_rank == 1) {
            oriel_net_stop();
            team_expect(oriel_net_start(&team->members[1].process, NULL, &service_functions) ==
                        ORIEL_OK);
            memcpy(service_shared->bytes[1], oriel_net_address(&service_shared->len_bytes[1]),
                   service_shared->len_bytes[1]);
        } else if (i % 4 != 1) {
            for (int turns = 0; turns < 100 && !atomic_load(&service_peers[1]->is_shunned);
                 turns++) {
                oriel_net_progress(); /* this finds the other's connections broken */
                usleep(500);
            }
        }
        team_barrier();
        service_open(1 - team_rank);
        team_expect(team_rank == 1 || count_known() <= 6);
    }
    free(stream.data);
    service_stop();
}

static void net_knows_no_more_of_one_that_starts_again_and_again(void **state)
{
    (void)state;
    team_run(2, start_during_another_that_stays);
}

/* Messages that rank 1 has sent before it stops are served, though that takes seconds. */
static void stop_before_a_slow_one(struct oriel_window *window)
{
    enum { MANY = 400 };
    service_start(window);
    struct stream stream = service_stream(0, 0);
    uint64_t before = atomic_load(&service_shared->served[0]);
    team_barrier();
    for (int i = 0; team_rank == 1 && i < MANY; i++)
        service_send(&stream, VERY_SLOWLY, 8, NULL);
    if (team_rank == 1)
        oriel_net_stop();
    team_barrier();
    team_expect(atomic_load(&service_shared->served[0]) == before + MANY);
    free(stream.data);
    oriel_net_stop();
}

static void net_stop_waits_for_a_slow_receiver(void **state)
{
    (void)state;
    team_run(2, stop_before_a_slow_one);
}

/* Without hardware for it, UCX's workers execute another process's puts, gets and atomic
 * operations, at any address in the request and with any key. Rank 1 tries to reach memory of rank
 * 0 in this way; rank 0's net must accept only messages. */
enum { WORDS = 3, WORKERS = 2, BEFORE = 1, MEANT = 2, REACH_NS = 400000000 };

static struct victim {
    uint64_t words[WORKERS][WORDS]; /* targets of puts, gets and atomic adds */
    size_t len_bytes[WORKERS];
    char addresses[WORKERS][ORIEL_NET_ADDRESS_BYTES];
} * victim; /* shared by the team */

/* UCX functions that the net itself does not call. */
#define CALL(name) ((__typeof__(&name))find(#name))

static void *find(const char *name)
{
    void *library = dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_NOW);
    void *call = library != NULL ? dlsym(library, name) : NULL;
    team_expect(call != NULL);
    dlclose(library);
    return call;
}

static void break_off(void *unused, ucp_ep_h ep, ucs_status_t status)
{
    (void)unused;
    (void)ep;
    (void)status;
}

/* A key as UCX makes it, of memory unrelated to the address in the request. */
static ucp_rkey_h make_key(ucp_context_h context, ucp_ep_h ep)
{
    static char other[64];
    const ucp_mem_map_params_t wanted = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                                       UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                                         .address = other,
                                         .length = sizeof other};
    ucp_mem_h memory;
    ucp_rkey_h key;
    void *packed;
    size_t packed_bytes;
    team_expect(CALL(ucp_mem_map)(context, &wanted, &memory) == UCS_OK);
    team_expect(CALL(ucp_rkey_pack)(context, memory, &packed, &packed_bytes) == UCS_OK);
    team_expect(CALL(ucp_ep_rkey_unpack)(ep, packed, &key) == UCS_OK);
    return key;
}

static void reach_for(ucp_context_h context, struct oriel_net_worker *worker, uint64_t *words,
                      const void *address)
{
    static uint64_t meant = MEANT;
    static uint64_t got;
    const ucp_request_param_t plain = {.op_attr_mask = 0};
    const ucp_request_param_t typed = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
                                       .datatype = ucp_dt_make_contig(sizeof meant)};
    ucs_status_t status;
    ucp_ep_h ep = oriel_net_connect(worker->ucp, address, break_off, NULL, &status);
    team_expect(ep != NULL);
    ucp_rkey_h key = make_key(context, ep);
    got = 0;
    CALL(ucp_put_nbx)(ep, &meant, sizeof meant, (uintptr_t)&words[0], key, &plain);
    CALL(ucp_get_nbx)(ep, &got, sizeof got, (uintptr_t)&words[1], key, &plain);
    CALL(ucp_atomic_op_nbx)(ep, UCP_ATOMIC_OP_ADD, &meant, 1, (uintptr_t)&words[2], key, &typed);
    for (uint64_t begin_ns = oriel_now_ns(); oriel_now_ns() - begin_ns < REACH_NS; usleep(100))
        oriel_net_turn(worker);
    team_expect(got == 0);
}

static void reach_by_ucx(void)
{
    ucp_config_t *config;
    struct oriel_net_worker worker = {.closing = 0};
    ucp_context_h context;
    const ucp_params_t wanted = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64};
    const ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SINGLE};
    team_expect(oriel_ucp()->ucp_config_read(NULL, NULL, &config) == UCS_OK);
    oriel_ucp()->ucp_config_modify(config, "TLS", "^sm,self");
    team_expect(oriel_ucp()->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &wanted, config,
                                              &context) == UCS_OK);
    oriel_ucp()->ucp_config_release(config);
    team_expect(oriel_ucp()->ucp_worker_create(context, &single, &worker.ucp) == UCS_OK);
    for (int i = 0; i < WORKERS; i++)
        reach_for(context, &worker, victim->words[i], victim->addresses[i]);
}

static void reuse_memory(struct oriel_window *window)
{
    service_start(window);
    if (team_rank == 0) {
        const struct oriel_wire_address *agent = oriel_net_address(&victim->len_bytes[0]);
        memcpy(victim->addresses[0], agent + 1, agent->agent_bytes);
        memcpy(victim->addresses[1], oriel_net.origin_address, oriel_net.origin_address_bytes);
        for (int i = 0; i < WORKERS * WORDS; i++)
            victim->words[i / WORDS][i % WORDS] = BEFORE;
    }
    team_barrier();
    if (team_rank == 1) {
        reach_by_ucx(); /* its resources end with the process */
        team_flag_set(0, 1);
    }
    for (; atomic_load(&team->flags[0]) == 0; usleep(100))
        oriel_net_progress();
    for (int i = 0; i < WORKERS * WORDS; i++)
        team_expect(victim->words[i / WORDS][i % WORDS] == BEFORE);
    service_stop();
}

static void net_serves_no_put_get_or_atomic_of_ucx(void **state)
{
    (void)state;
    team_run(2, reuse_memory);
}

static void start_without_a_device(struct oriel_window *window)
{
    setenv("UCX_TLS", "sm", 1);
    team_expect(oriel_net_start(&team->members[0].process, NULL, &service_functions) ==
                ORIEL_E_OTHER);
    team_expect(strstr(oriel_fail_message(), "no network device") != NULL &&
                !oriel_net_is_started());
    unsetenv("UCX_TLS");
    service_start(window);
    service_stop();
}

static void net_does_not_start_where_ucx_is_limited_to_the_node(void **state)
{
    (void)state;
    team_run(1, start_without_a_device);
}

static __typeof__(&ucp_worker_create) create_worker; /* UCX's */
static int creations_left;                           /* before the interface that vanished */

static ucs_status_t create_worker_or_fail(ucp_context_h context, const ucp_worker_params_t *wanted,
                                          ucp_worker_h *out)
{
    return creations_left-- == 0 ? UCS_ERR_NO_DEVICE : create_worker(context, wanted, out);
}

/* The first or the second worker of the start cannot be created. */
static void start_while_an_interface_vanishes(struct oriel_window *window)
{
    team_expect(oriel_ucp_load() == ORIEL_OK);
    create_worker = oriel_ucp_calls.ucp_worker_create;
    oriel_ucp_calls.ucp_worker_create = create_worker_or_fail;
    for (int i = 0; i < 2; i++) {
        creations_left = i;
        service_start(window);
        team_expect(creations_left < 0);
        service_stop();
    }
}

static void net_starts_while_an_interface_vanishes(void **state)
{
    (void)state;
    team_run(1, start_while_an_interface_vanishes);
}

/* Connections of this process that the kernel would close after a timeout. */
static int count_watched_by_the_kernel(int *all)
{
    int watched = 0;
    for (int fd = *all = 0; fd < 1024; fd++) {
        int domain = 0, type = 0, listens = 0, watches = 0;
        socklen_t size = sizeof(int);
        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
            (domain != AF_INET && domain != AF_INET6) ||
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_STREAM ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens ||
            getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &watches, &size) != 0)
            continue;
        ++*all;
        watched += watches != 0;
    }
    return watched;
}

static void look_at_sockets(struct oriel_window *window)
{
    struct question question;
    int all;
    service_start(window);
    struct stream stream = service_stream(1 - team_rank, 0);
    service_send(&stream, ECHO, 100, &question);
    service_await(&question);
    team_expect(count_watched_by_the_kernel(&all) == 0 && all > 0);
    free(stream.data);
    service_stop();
}

/* Otherwise a link failure would close them after UCX's timeout although no rank waits, and not
 * after ORIEL_TIMEOUT. */
static void net_idle_connections_are_left_alone(void **state)
{
    (void)state;
    team_run(2, look_at_sockets);
}

/* An InfiniBand device does not report that the other end of a connection has closed, nor
 * completions that were there before it was armed. Messages that rank 1 leaves unserved when it
 * stops remain, as if the device knew nothing of them. */
static ucs_status_ptr_t close_nothing(ucp_ep_h ep, const ucp_request_param_t *how)
{
    (void)ep;
    (void)how;
    return NULL;
}

static void destroy_nothing(ucp_worker_h worker)
{
    (void)worker;
}

static void clean_nothing(ucp_context_h context)
{
    (void)context;
}

static void stop_unnoticed(struct oriel_window *window)
{
    struct question question;
    service_start(window);
    oriel_net.timeout_ns = UINT64_C(600) * 1000000000;
    struct stream stream = service_stream(1 - team_rank, 0);
    service_send(&stream, ECHO, 100, &question);
    service_await(&question);
    free(stream.data);
    team_barrier();
    if (team_rank == 1) {
        oriel_ucp_calls.ucp_ep_close_nbx = close_nothing;
        oriel_ucp_calls.ucp_worker_destroy = destroy_nothing;
        oriel_ucp_calls.ucp_cleanup = clean_nothing;
        oriel_net_stop();
        team_flag_set(0, 1);
        team_flag_await(1, 1);
        return;
    }
    team_flag_await(0, 1);
    oriel_net_stop(); /* the team's limit ends one that waits until rank 1 is declared dead */
    team_flag_set(1, 1);
}

static void net_goodbye_of_a_process_that_has_left_is_not_awaited(void **state)
{
    (void)state;
    team_run(2, stop_unnoticed);
}

static unsigned stored_words;

static ucs_status_t arm_blindly(ucp_worker_h worker)
{
    (void)worker;
    return UCS_OK;
}

static unsigned swap_stored_word(ucp_worker_h worker)
{
    (void)worker;
    return stored_words > 0 ? stored_words-- : 0;
}

static void arm_where_something_lies(struct oriel_window *window)
{
    struct oriel_net_worker worker = {.closing = 0};
    (void)window;
    oriel_ucp_calls.ucp_worker_arm = arm_blindly;
    oriel_ucp_calls.ucp_worker_progress = swap_stored_word;
    stored_words = 1;
    team_expect(!oriel_net_arm(&worker)); /* nothing would wake a sleeper now */
    team_expect(oriel_net_arm(&worker));
}

static void net_worker_is_looked_at_once_more_when_it_is_armed(void **state)
{
    (void)state;
    team_run(1, arm_where_something_lies);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(net_progress_during_stops_and_starts_is_harmless),
        cmocka_unit_test(net_answer_is_received_without_memory),
        cmocka_unit_test(net_lack_of_memory_is_reported_and_ends_with_memory),
        cmocka_unit_test(net_unreachable_process_is_lost_for_waits),
        cmocka_unit_test(net_unreachable_process_is_lost_for_later_requests),
        cmocka_unit_test(net_stop_waits_for_a_slow_receiver),
        cmocka_unit_test(net_knows_no_more_of_one_that_starts_again_and_again),
        cmocka_unit_test(net_serves_no_put_get_or_atomic_of_ucx),
        cmocka_unit_test(net_does_not_start_where_ucx_is_limited_to_the_node),
        cmocka_unit_test(net_starts_while_an_interface_vanishes),
        cmocka_unit_test(net_idle_connections_are_left_alone),
        cmocka_unit_test(net_goodbye_of_a_process_that_has_left_is_not_awaited),
        cmocka_unit_test(net_worker_is_looked_at_once_more_when_it_is_armed),
    };
    service_prepare(argc, argv);
    victim = mmap(NULL, sizeof *victim, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (victim == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
