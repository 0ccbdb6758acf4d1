/* The server of a node's checker and its clients. A client that stalls, announces an impossible
 * length or lacks the key delays no other client. A stopped or dead server is given up. A server
 * without a free descriptor waits for one. A history in use stays until its users have left. */
#include "check/remote/remote.h"
#include "check/remote/remote_validate.h"
#include "check/remote/remote_auth.h"
#include "check/remote/remote_socket.h"
#include "check/remote/remote_waits.h"
#include "check/report/finding.h"
#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/remote/history_proxy.h"
#include "check/order/rank_clocks.h"
#include "check/order/word_clocks.h"
#include "check/report/call_sites.h"
#include "base/deadlock_set.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check_team.h"
#include "many_signals.h"

enum { BOARD = 8 << 20, SERVER = 0, KEY = 0, PORTS = 2, PROCESS = 3, SERVES = 1, DONE = 2 };

/* Replaces summary.c, member_state.c and remote_waits.c: no rank ends with findings here, has a
 * window, or waits in MPI. */
void oriel_finding_end_alone(void)
{
    abort();
}

bool oriel_member_state_answer(uint64_t window, const struct oriel_member_state_ask *ask,
                               struct oriel_member_state_answer *answer)
{
    (void)window, (void)ask, (void)answer;
    abort();
}

size_t oriel_check_remote_waits_bytes(void)
{
    return 0;
}

size_t oriel_check_remote_waits_answer(const struct oriel_check_remote_request *request, void *data,
                                       uint64_t *word)
{
    (void)request, (void)data, (void)word;
    abort();
}

static void serve_begin(void)
{
    struct oriel_check_remote_address address;
    EXPECT(oriel_order_start(SERVER, team->n) == ORIEL_OK);
    EXPECT(oriel_check_remote_serve(&address));
    memcpy((void *)&team->words[KEY], address.key, sizeof address.key);
    team->words[PORTS] = (uint64_t)address.ports[0] | (uint64_t)address.ports[1] << 16;
    team->words[PROCESS] = (uint64_t)getpid();
    team_step(SERVES);
}

static void serve_until_done(bool dies)
{
    serve_begin();
    while (atomic_load(&team->step) < DONE)
        usleep(1000);
    if (!dies)
        oriel_check_remote_serve_stop();
}

static struct oriel_check_remote_address server(void)
{
    struct oriel_check_remote_address address = {
        .count = 1, .families = {AF_INET}, .addresses = {{127, 0, 0, 1}}};
    team_await(SERVES);
    address.key[0] = team->words[KEY];
    address.key[1] = team->words[KEY + 1];
    address.ports[0] = (uint16_t)team->words[PORTS];
    address.ports[1] = (uint16_t)(team->words[PORTS] >> 16);
    return address;
}

static bool has_lost_some; /* as the server reported last */

/* Asks for the number of members with an unused property: none. */
static bool is_answered(const struct oriel_check_remote_address *address)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_COUNT,
                                                 .key = {{ORIEL_ORDER_COUNT}}};
    struct oriel_check_remote_answer answer = {.word = 77};
    struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
    int fd = oriel_check_remote_connect(address, 0);
    bool answered = fd >= 0 && oriel_check_remote_write(fd, &part, 1) &&
                    oriel_check_remote_read(fd, &answer, sizeof answer);
    close(fd);
    has_lost_some = answer.word >> 32 != 0;
    return answered && (uint32_t)answer.word == 0 && answer.len_bytes == 0;
}

static void ask_half(int rank)
{
    if (rank == SERVER) {
        serve_until_done(false);
        return;
    }
    struct oriel_check_remote_address address = server();
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_GIVE,
                                                 .len_bytes = 1000};
    struct iovec part = {.iov_base = &request, .iov_len = sizeof request};
    int fd = oriel_check_remote_connect(&address, 0);
    EXPECT(is_answered(&address) && !has_lost_some);
    EXPECT(fd >= 0 && oriel_check_remote_write(fd, &part, 1));
    EXPECT(is_answered(&address));
    EXPECT(!oriel_check_remote_read(fd, &request, 1)); /* it has been dropped */
    EXPECT(is_answered(&address) &&
           has_lost_some); /* the events that it would have counted are lost */
    close(fd);
    team_step(DONE);
}

static void half_a_question_delays_no_other_answer(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, ask_half);
}

/* A connection without the key, at the server's first message. */
static int connect_strange(const struct oriel_check_remote_address *address)
{
    struct sockaddr_in name = {.sin_family = AF_INET,
                               .sin_addr = {htonl(INADDR_LOOPBACK)},
                               .sin_port = htons(address->ports[0])};
    struct oriel_check_remote_challenge challenge;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT(connect(fd, (struct sockaddr *)&name, sizeof name) == 0);
    EXPECT(oriel_check_remote_read(fd, &challenge, sizeof challenge));
    return fd;
}

/* A client that answers wrongly, asks at once, or stays silent. */
static void ask_as_stranger(int rank)
{
    if (rank == SERVER) {
        serve_until_done(false);
        return;
    }
    struct oriel_check_remote_address address = server();
    struct oriel_check_remote_claim claim = {.digest = 1};
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_COUNT,
                                                 .key = {{ORIEL_ORDER_COUNT}}};
    struct iovec wrong[2] = {{.iov_base = &claim, .iov_len = sizeof claim},
                             {.iov_base = &request, .iov_len = sizeof request}};
    int silent = connect_strange(&address);
    for (int first = 0; first < 2; first++) {
        char byte;
        int fd = connect_strange(&address);
        EXPECT(oriel_check_remote_write(fd, wrong + first, 1));
        EXPECT(!oriel_check_remote_read(fd, &byte, 1)); /* it has been dropped */
        close(fd);
    }
    EXPECT(is_answered(&address) && !has_lost_some); /* none of them would have counted anything */
    address.key[0]++;
    EXPECT(oriel_check_remote_connect(&address, 0) == -1);
    close(silent);
    team_step(DONE);
}

static void strangers_are_refused_and_not_missed(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, ask_as_stranger);
}

enum { ASKS = 2, IS_ANSWERED = 3, REFUSAL_US = 300000, MOST_PROCESSOR_NS = 100000000 };

/* Sets the limit of descriptors; the server uses no processor time while a client waits for one. */
static void idle_with(rlim_t descriptors)
{
    struct rlimit limit;
    struct timespec before, after;
    EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = descriptors;
    EXPECT(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    usleep(REFUSAL_US);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    EXPECT((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec <
           MOST_PROCESSOR_NS);
}

/* The kernel refuses to accept, and then to poll as many connections as there are: at the end, also
 * while the server stops. */
static void ask_without_descriptors(int rank)
{
    if (rank == SERVER) {
        struct rlimit limit;
        EXPECT(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        serve_begin();
        team_await(ASKS);
        idle_with(3);
        idle_with(1);
        idle_with(limit.rlim_cur);
        team_await(IS_ANSWERED);
        idle_with(1);
        oriel_check_remote_serve_stop();
        return;
    }
    struct oriel_check_remote_address address = server();
    team_step(ASKS);
    usleep(REFUSAL_US / 10);
    EXPECT(is_answered(&address));
    team_step(IS_ANSWERED);
}

static void server_without_descriptors_waits_for_some(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, ask_without_descriptors);
}

static void ask_too_much(int rank)
{
    static char much[1 << 16];
    if (rank == SERVER) {
        serve_until_done(false);
        return;
    }
    struct oriel_check_remote_address address = server();
    struct oriel_check_remote_request request = {
        .kind = ORIEL_CHECK_REMOTE_GIVE, .len_bytes = UINT64_MAX - ORIEL_SITE_SLOT_BYTES + 1};
    struct iovec parts[2] = {{.iov_base = &request, .iov_len = sizeof request},
                             {.iov_base = much, .iov_len = sizeof much}};
    EXPECT(is_answered(&address)); /* so the server has some descriptors for requests */
    memset(much, 0x5a, sizeof much);
    int fd = oriel_check_remote_connect(&address, 0);
    EXPECT(fd >= 0 && oriel_check_remote_write(fd, parts, 2));
    EXPECT(!oriel_check_remote_read(fd, &request, 1));
    close(fd);
    EXPECT(is_answered(&address));
    team_step(DONE);
}

static void length_that_wraps_is_refused(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, ask_too_much);
}

/* With ORIEL_TIMEOUT=1; the server is on node 1, this process on node 0. The signal ends the
 * server's answers. */
static void ask_until_lost(int rank, int signal)
{
    struct oriel_check_remote_address addresses[2] = {{.count = 0}, {.count = 0}};
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_COUNT,
                                                 .key = {{ORIEL_ORDER_COUNT}}};
    struct oriel_check_remote_answer answer;
    if (rank == SERVER) {
        serve_until_done(true);
        return;
    }
    addresses[1] = server();
    EXPECT(oriel_check_remote_start((int[]){1, 0}, 2, 0, addresses, 2));
    EXPECT(oriel_check_remote_ask(1, &request, NULL, 0, &answer, NULL, 0));
    kill((pid_t)team->words[PROCESS], signal);
    while (oriel_check_remote_ask(1, &request, NULL, 0, &answer, NULL,
                                  0)) /* stopping may need some time */
        continue;
    EXPECT(oriel_check_remote_is_lost());
    EXPECT(!oriel_check_remote_ask(1, &request, NULL, 0, &answer, NULL, 0)); /* at once */
    oriel_check_remote_stop();
}

static void ask_silent(int rank)
{
    ask_until_lost(rank, SIGSTOP);
    if (rank != SERVER)
        kill((pid_t)team->words[PROCESS], SIGKILL);
}

static void ask_dead(int rank)
{
    ask_until_lost(rank, SIGKILL);
}

static void server_that_has_stopped_is_given_up(void **state)
{
    (void)state;
    team_run(2, BOARD, 1u << SERVER, ask_silent);
}

static void server_that_has_died_is_given_up(void **state)
{
    (void)state;
    team_run(2, BOARD, 1u << SERVER, ask_dead);
}

static void ask_with_wrong_values(int rank)
{
    const size_t clock_bytes = (size_t)team->n * sizeof(oriel_tick);
    const size_t access_bytes = sizeof(struct oriel_access) + clock_bytes;
    const struct {
        struct oriel_check_remote_request request;
        bool holds;
    } requests[] = {
        {{.kind = ORIEL_CHECK_REMOTE_KINDS}, false},
        {{.kind = ORIEL_CHECK_REMOTE_GIVE, .key = {{ORIEL_ORDER_LOCK}}, .len_bytes = clock_bytes},
         true},
        {{.kind = ORIEL_CHECK_REMOTE_GIVE,
          .key = {{ORIEL_ORDER_LOCK}},
          .len_bytes = clock_bytes - 1},
         false},
        {{.kind = ORIEL_CHECK_REMOTE_GIVE, .key = {{ORIEL_ORDER_COUNT}}, .len_bytes = clock_bytes},
         false},
        {{.kind = ORIEL_CHECK_REMOTE_TAKE, .key = {{ORIEL_ORDER_CLOCKS}}}, false},
        {{.kind = ORIEL_CHECK_REMOTE_TAKE, .key = {{ORIEL_ORDER_LOCK}}, .len_bytes = 1}, false},
        {{.kind = ORIEL_CHECK_REMOTE_FORGET, .key = {{ORIEL_ORDER_COUNT}}}, true},
        {{.kind = ORIEL_CHECK_REMOTE_FORGET, .key = {{ORIEL_ORDER_CLOCKS}}}, false},
        {{.kind = ORIEL_CHECK_REMOTE_COUNT, .key = {{ORIEL_ORDER_LOCK}}}, false},
        {{.kind = ORIEL_CHECK_REMOTE_ADD,
          .len_bytes = access_bytes + sizeof(struct oriel_access_extent)},
         true},
        {{.kind = ORIEL_CHECK_REMOTE_ADD, .len_bytes = access_bytes - 1}, false},
        {{.kind = ORIEL_CHECK_REMOTE_ADD, .len_bytes = access_bytes + 1}, false},
        {{.kind = ORIEL_CHECK_REMOTE_COMPLETE, .words = {0, 0, 1}}, true},
        {{.kind = ORIEL_CHECK_REMOTE_COMPLETE, .words = {0, 0, ORIEL_TICK_PENDING}}, false},
        {{.kind = ORIEL_CHECK_REMOTE_COMPLETE_ONE, .words = {0, 0, ORIEL_TICK_PENDING}}, false},
        {{.kind = ORIEL_CHECK_REMOTE_FLAG, .words = {0, 0, ORIEL_ACCESS_FLUSHED_OTHER}}, true},
        {{.kind = ORIEL_CHECK_REMOTE_FLAG, .words = {0, 0, ORIEL_ACCESS_ALONE}}, false},
        {{.kind = ORIEL_CHECK_REMOTE_REQUEST_DONE, .words = {0, ORIEL_ACCESS_GROUP}}, true},
        {{.kind = ORIEL_CHECK_REMOTE_HANDLE, .key = {{ORIEL_PART_HANDLE}}}, true},
        {{.kind = ORIEL_CHECK_REMOTE_HANDLE, .key = {{ORIEL_ORDER_LOCK}}}, false},
        {{.kind = ORIEL_CHECK_REMOTE_MEMBER_STATE,
          .len_bytes = sizeof(struct oriel_member_state_ask) - 1},
         false},
        {{.kind = ORIEL_CHECK_REMOTE_SITE, .len_bytes = ORIEL_SITE_SLOT_BYTES + 1}, false},
    };
    (void)rank;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
        EXPECT(oriel_check_remote_request_is_valid(&requests[i].request) == requests[i].holds);
}

static void questions_that_do_not_hold_are_refused(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, ask_with_wrong_values);
}

static void add_with_wrong_values(int rank)
{
    const struct oriel_access right = {.kind = ORIEL_ACCESS_PUT};
    const struct oriel_access wrong[] = {
        {.kind = ORIEL_ACCESS_STORE},
        {.kind = ORIEL_ACCESS_ACCUMULATE + 1},
        {.kind = ORIEL_ACCESS_PUT, .flags = ORIEL_ACCESS_SANITIZER},
        {.kind = ORIEL_ACCESS_PUT, .origin = -1},
        {.kind = ORIEL_ACCESS_PUT, .origin = team->n},
        {.kind = ORIEL_ACCESS_PUT, .complete = 5},
        {.kind = ORIEL_ACCESS_PUT, .group = 5}};
    const int64_t far = INT64_C(1) << 57;
    const struct oriel_access_extent fits[] = {
        {0, 1, 1, 0}, {far - 1, 1, 1, 0}, {100, 1, 101, -1}, {0, 0, 1, INT64_MIN}};
    const struct oriel_access_extent astray[] = {
        {-1, 1, 1, 0},       {far, 1, 1, 0},        {0, (uint64_t)far + 1, 1, 0},
        {100, 1, 102, -1},   {0, 1, UINT64_MAX, 1}, {0, 1, 3, INT64_MAX},
        {0, 1, 1, INT64_MIN}};
    (void)rank;
    EXPECT(oriel_check_remote_access_is_valid(&right, fits, sizeof fits / sizeof fits[0]));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT(!oriel_check_remote_access_is_valid(&wrong[i], fits, 1));
    for (size_t i = 0; i < sizeof astray / sizeof astray[0]; i++)
        EXPECT(!oriel_check_remote_access_is_valid(&right, &astray[i], 1));
}

/* A report is accepted only for an existing rank, in one of two states, with a terminated name. */
static void report_with_wrong_values(int rank)
{
    struct oriel_wait_report right = {.rank = team->n - 1, .state = ORIEL_DEADLOCK_SET_WAITS};
    struct oriel_wait_report wrong[5] = {right, right, right, right, right};
    (void)rank;
    wrong[0].rank = -1;
    wrong[1].rank = team->n;
    wrong[2].state = ORIEL_DEADLOCK_SET_COMPUTES;
    wrong[3].record.noted.count = ORIEL_WAIT_NEEDS + 1;
    memset(wrong[4].record.noted.name, 'x', sizeof wrong[4].record.noted.name);
    EXPECT(oriel_check_remote_reports_are_valid(&right, sizeof right));
    EXPECT(!oriel_check_remote_reports_are_valid(&right, sizeof right - 1));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT(!oriel_check_remote_reports_are_valid(&wrong[i], sizeof wrong[i]));
}

static void reports_that_do_not_hold_are_refused(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, report_with_wrong_values);
}

/* A collective call's report is as long as its members require, and those are existing ranks. */
static void gather_with_wrong_values(int rank)
{
    size_t room = oriel_collective_progress_bytes(team->n + 1, true);
    size_t right = oriel_collective_progress_bytes(team->n, true);
    struct oriel_collective_progress *progress =
        aligned_alloc(_Alignof(struct oriel_collective_progress), (room + 63) / 64 * 64);
    (void)rank;
    memset(progress, 0, room);
    progress->n = team->n;
    progress->has_locks = 1;
    for (int i = 0; i < team->n; i++)
        progress->slots[i].world_rank = i + 1;
    EXPECT(oriel_check_remote_progress_is_valid(progress, right));
    EXPECT(!oriel_check_remote_progress_is_valid(progress, right - 1));
    EXPECT(!oriel_check_remote_progress_is_valid(progress, room));
    EXPECT(!oriel_check_remote_progress_is_valid(progress, sizeof *progress - 1));
    progress->slots[1].world_rank = 0;
    EXPECT(!oriel_check_remote_progress_is_valid(progress, right));
    progress->slots[1].world_rank = team->n + 1;
    EXPECT(!oriel_check_remote_progress_is_valid(progress, right));
    progress->slots[1].world_rank = 2;
    progress->slots[team->n].world_rank = 1;
    progress->n = team->n + 1;
    EXPECT(!oriel_check_remote_progress_is_valid(progress, room));
    progress->n = 0;
    EXPECT(!oriel_check_remote_progress_is_valid(progress, sizeof *progress));
    free(progress);

    /* If it ends with the number of members, nothing after that is read. */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    progress = (struct oriel_collective_progress *)(void *)(pages + page - 8);
    progress->n = 1;
    EXPECT(mprotect(pages + page, page, PROT_NONE) == 0);
    EXPECT(!oriel_check_remote_progress_is_valid(progress, 8));
    munmap(pages, 2 * page);
}

static void progress_that_is_inconsistent_is_refused(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, gather_with_wrong_values);
}

static void accesses_that_do_not_hold_are_refused(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, add_with_wrong_values);
}

static void close_while_another_works(int rank)
{
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    oriel_shm_offset part = oriel_part_of(oriel_part_open());
    EXPECT(part != 0 && oriel_part_enter(part));
    oriel_part_close(part);
    EXPECT(!oriel_part_enter(part));
    oriel_shm_offset other = oriel_history_make(0);
    EXPECT(other != 0 && other != part);
    oriel_part_leave(part);
    EXPECT(oriel_history_make(0) == part); /* its memory is free */
}

/* A word that local processes have in a table has one clock for those of other nodes, too. */
static void lend_words(int rank)
{
    enum { WINDOW = 7, OFFSET = 16 };
    const struct oriel_key key = {{ORIEL_ORDER_WORD, WINDOW, (uint64_t)rank, OFFSET}};
    EXPECT(oriel_order_start(rank, team->n) == ORIEL_OK);
    const oriel_shm_offset words = oriel_word_clocks_make(64);
    oriel_tick *clock = calloc((size_t)oriel_order_width(), sizeof *clock);
    EXPECT(words != 0 && clock != NULL);
    EXPECT(!oriel_word_join_by_key(&key, clock)); /* not lent */
    EXPECT(oriel_word_clocks_lend(words, WINDOW, rank));
    EXPECT(!oriel_word_take_by_key(&key, clock)); /* not given yet */
    const oriel_tick own = oriel_order_now();
    EXPECT(oriel_word_give(words, OFFSET, true));
    EXPECT(oriel_word_take_by_key(&key, clock) && clock[rank] >= own);
    clock[1 - rank] = 5;
    EXPECT(oriel_word_join_by_key(&key, clock));
    EXPECT(oriel_word_give(words, OFFSET, false)); /* is not its only giver any more */
    EXPECT(oriel_word_take(words, OFFSET) && oriel_order_known(1 - rank) == 5);
    oriel_word_clocks_withdraw(WINDOW, rank);
    EXPECT(!oriel_word_take_by_key(&key, clock));
    oriel_word_clocks_free(words);
    free(clock);
}

static void lent_words_are_those_of_the_node(void **state)
{
    (void)state;
    team_run(2, BOARD, 0, lend_words);
}

static void closed_part_stays_until_its_users_have_left(void **state)
{
    (void)state;
    team_run(1, BOARD, 0, close_while_another_works);
}

static void site_is_asked_before_there_are_any(void **state)
{
    struct oriel_check_remote_answer answer = {.word = 1};
    char entry[ORIEL_SITE_SLOT_BYTES];
    (void)state;
    assert_int_equal(oriel_site_slot(0, 0, entry, 0, &answer.word), 0);
    assert_int_equal(answer.word, 0);
}

enum { SIGNAL_US = 1000, SIGNALS = 15000 };

/* Connections wait in it forever. */
static int silent_listener(struct oriel_check_remote_address *address)
{
    *address = (struct oriel_check_remote_address){
        .count = 1, .families = {AF_INET}, .addresses = {{127, 0, 0, 1}}};
    int listener = oriel_check_remote_listen(&address->ports[0]);
    assert_true(listener >= 0);
    return listener;
}

static void a_silent_server_is_given_up_despite_signals(void **state)
{
    (void)state;
    struct oriel_check_remote_address address;
    int listener = silent_listener(&address);
    many_signals_begin(SIGNAL_US, SIGNALS);
    assert_int_equal(oriel_check_remote_connect(&address, 0), -1);
    assert_true(many_signals_end());
    close(listener);
}

static void a_silent_connection_is_given_up_despite_signals(void **state)
{
    (void)state;
    static char much[1 << 20];
    struct iovec part = {.iov_base = much, .iov_len = sizeof much};
    int ends[2];
    char byte;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    oriel_check_remote_limit(ends[0], 1);
    many_signals_begin(SIGNAL_US, SIGNALS);
    assert_false(oriel_check_remote_read(ends[0], &byte, 1));
    assert_true(many_signals_end());
    many_signals_begin(SIGNAL_US, SIGNALS);
    assert_false(oriel_check_remote_write(ends[0], &part, 1));
    assert_true(many_signals_end());
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(site_is_asked_before_there_are_any),
        cmocka_unit_test(questions_that_do_not_hold_are_refused),
        cmocka_unit_test(accesses_that_do_not_hold_are_refused),
        cmocka_unit_test(reports_that_do_not_hold_are_refused),
        cmocka_unit_test(progress_that_is_inconsistent_is_refused),
        cmocka_unit_test(lent_words_are_those_of_the_node),
        cmocka_unit_test(closed_part_stays_until_its_users_have_left),
        cmocka_unit_test(half_a_question_delays_no_other_answer),
        cmocka_unit_test(strangers_are_refused_and_not_missed),
        cmocka_unit_test(server_without_descriptors_waits_for_some),
        cmocka_unit_test(length_that_wraps_is_refused),
        cmocka_unit_test(server_that_has_stopped_is_given_up),
        cmocka_unit_test(server_that_has_died_is_given_up),
        cmocka_unit_test(a_silent_server_is_given_up_despite_signals),
        cmocka_unit_test(a_silent_connection_is_given_up_despite_signals),
    };
    setenv("ORIEL_TIMEOUT", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
