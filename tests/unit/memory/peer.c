/* Two processes that open each other's memory files. Both are children, because a process has one
 * memory file and fork copies none: each test forks both before either starts its file. They
 * exchange identities and steps in a shared page. A child that finds an error prints it and exits
 * with status 1. */
#include "memory/peer.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "open_watch.h"

static struct shared {
    struct oriel_identity identities[2];
    uint64_t offsets[2];
    int ends[2];
    _Atomic int step[2];
} * shared;

#define EXPECT(condition)                                                                          \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition), _exit(1)))

static void reach_step(int me, int step)
{
    atomic_store(&shared->step[me], step);
}

static void await_step(int other, int step)
{
    while (atomic_load(&shared->step[other]) < step)
        sched_yield();
}

typedef void side(int me);

static pid_t child_start(side *body, int me)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    EXPECT(oriel_file_start() == ORIEL_OK);
    EXPECT(oriel_file_alloc(4096, 64, &shared->offsets[me]) == ORIEL_OK);
    shared->identities[me] = *oriel_file_identity();
    reach_step(me, 1);
    await_step(1 - me, 1);
    body(me);
    oriel_file_finalise();
    _exit(0);
}

/* Runs both sides; the second may be killed intentionally and stays a zombie until the first has
 * ended. */
static void run(side *first, side *second, bool second_dies)
{
    int status;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(shared, MAP_FAILED);
    pid_t one = child_start(first, 0);
    pid_t two = child_start(second, 1);
    assert_int_equal(waitpid(one, &status, 0), one);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(two, &status, 0), two);
    assert_int_equal(status, second_dies ? SIGKILL : 0);
    munmap(shared, sizeof *shared);
}

static struct oriel_peer *open_other(int me)
{
    struct oriel_peer *peer = NULL;
    EXPECT(oriel_peer_open(&shared->identities[1 - me], &peer) == ORIEL_OK);
    return peer;
}

static void exchange_words(int me)
{
    struct oriel_peer *peer = open_other(me);
    struct oriel_peer *again = NULL;
    struct oriel_peer *own = NULL;
    EXPECT(oriel_peer_open(&shared->identities[1 - me], &again) == ORIEL_OK && again == peer);
    EXPECT(oriel_peer_open(&shared->identities[me], &own) == ORIEL_OK &&
           own->base == oriel_file_base());
    EXPECT(peer->base != oriel_file_base());
    uint64_t *there = (uint64_t *)(peer->base + shared->offsets[1 - me]);
    const uint64_t *here = (uint64_t *)(oriel_file_base() + shared->offsets[me]);
    EXPECT(there[0] == 0);
    reach_step(me, 2);
    await_step(1 - me, 2);
    there[0] = 100 + (uint64_t)me;
    reach_step(me, 3);
    await_step(1 - me, 3);
    EXPECT(here[0] == 100 + (uint64_t)(1 - me));
    EXPECT(there[0] == 100 + (uint64_t)me);
}

static void each_writes_into_the_other_file(void **state)
{
    (void)state;
    run(exchange_words, exchange_words, false);
}

/* The file grows after the peer has mapped it: the peer reaches memory beyond its old end. */
static void growing_side(int me)
{
    uint64_t offset = 0;
    await_step(1 - me, 2);
    EXPECT(oriel_file_alloc(UINT64_C(40) << 20, 64, &offset) == ORIEL_OK);
    oriel_file_base()[offset + (UINT64_C(39) << 20)] = 42;
    shared->offsets[me] = offset + (UINT64_C(39) << 20);
    reach_step(me, 2);
    await_step(1 - me, 3);
}

static void reading_side(int me)
{
    struct oriel_peer *peer = open_other(me);
    reach_step(me, 2);
    await_step(1 - me, 2);
    EXPECT(peer->base[shared->offsets[1 - me]] == 42);
    reach_step(me, 3);
}

static void growth_is_reached_without_opening_again(void **state)
{
    (void)state;
    run(reading_side, growing_side, false);
}

/* That descriptor of another process may refer to a device or a pipe. */
static void refuse_a_pipe(int me)
{
    int ends[2];
    EXPECT(pipe(ends) == 0);
    shared->ends[me] = ends[0];
    reach_step(me, 2);
    await_step(1 - me, 2);
    struct oriel_identity wrong = shared->identities[1 - me];
    wrong.memory_fd = shared->ends[1 - me];
    struct oriel_peer *peer = NULL;
    int watch = opened_watch(wrong.pid, wrong.memory_fd);
    EXPECT(watch >= 0);
    reach_step(me, 3);
    await_step(1 - me, 3);
    EXPECT(oriel_peer_open(&wrong, &peer) == ORIEL_E_OTHER);
    EXPECT(strstr(oriel_fail_message(), "is not the peer") != NULL);
    EXPECT(!opened_since(watch));
    reach_step(me, 4);
    await_step(1 - me, 4);
}

static void other_files_than_memory_files_are_not_opened(void **state)
{
    (void)state;
    run(refuse_a_pipe, refuse_a_pipe, false);
}

static void refuse_strangers(int me)
{
    struct oriel_peer *peer = NULL;
    struct oriel_identity wrong = shared->identities[1 - me];
    wrong.id[1] ^= 1;
    EXPECT(oriel_peer_open(&wrong, &peer) == ORIEL_E_OTHER);
    EXPECT(strstr(oriel_fail_message(), "is not the peer") != NULL);
    wrong = shared->identities[1 - me];
    wrong.id[0] ^= 1;
    EXPECT(oriel_peer_open(&wrong, &peer) == ORIEL_E_OTHER);
    wrong = shared->identities[1 - me];
    wrong.start_time++;
    EXPECT(oriel_peer_open(&wrong, &peer) == ORIEL_E_OTHER);
    wrong = shared->identities[1 - me];
    wrong.memory_fd = 1000;
    EXPECT(oriel_peer_open(&wrong, &peer) == ORIEL_E_OTHER);
    EXPECT(strstr(oriel_fail_message(), "cannot open") != NULL);
    EXPECT(open_other(me) != NULL); /* a refusal is not cached */
    reach_step(me, 2);
    await_step(1 - me, 2);
}

static void wrong_identity_is_refused(void **state)
{
    (void)state;
    run(refuse_strangers, refuse_strangers, false);
}

static void find_addresses(int me)
{
    struct oriel_peer *peer = open_other(me);
    uint64_t offset = 5;
    int variable = 0;
    EXPECT(oriel_peer_find(peer->base + 77, 10, &offset) == peer && offset == 77);
    EXPECT(oriel_peer_find(peer->base, peer->reserve_bytes + 1, &offset) == NULL);
    EXPECT(oriel_peer_find(&variable, sizeof variable, &offset) == NULL);
    EXPECT(oriel_peer_find(oriel_file_base(), 1, &offset) == NULL); /* not open as a peer */
    EXPECT(offset == 77);
    reach_step(me, 2);
    await_step(1 - me, 2);
}

static void find_knows_peers_by_address(void **state)
{
    (void)state;
    run(find_addresses, find_addresses, false);
}

static void notice_death(int me)
{
    struct oriel_peer *peer = open_other(me);
    EXPECT(oriel_peer_alive(peer));
    reach_step(me, 2);
    for (int i = 0; i < 2000 && oriel_peer_alive(peer); i++)
        usleep(1000);
    EXPECT(!oriel_peer_alive(peer)); /* a zombie: its parent has not reaped it yet */
    EXPECT(kill(peer->identity.pid, 0) == 0);
    EXPECT(peer->base[shared->offsets[1 - me]] == 9); /* its memory stays mapped */
}

static void die(int me)
{
    oriel_file_base()[shared->offsets[me]] = 9;
    await_step(1 - me, 2);
    raise(SIGKILL);
}

static void dead_process_is_noticed(void **state)
{
    (void)state;
    run(notice_death, die, true);
}

/* The linker's --wrap: a check that began while the peer still ran returns after its end. */
bool __real_oriel_identity_alive(const struct oriel_identity *who);
bool __wrap_oriel_identity_alive(const struct oriel_identity *who);

static bool answers_late;

bool __wrap_oriel_identity_alive(const struct oriel_identity *who)
{
    if (answers_late)
        reach_step(0, 2);
    while (answers_late && __real_oriel_identity_alive(who))
        usleep(1000);
    return __real_oriel_identity_alive(who);
}

static void watch_departure(int me)
{
    struct oriel_peer *peer = open_other(me);
    reach_step(me, 2);
    while (oriel_identity_alive(&peer->identity))
        usleep(1000);
    EXPECT(oriel_peer_alive(peer));
}

static void ask_during_departure(int me)
{
    struct oriel_peer *peer = open_other(me);
    answers_late = true;
    EXPECT(oriel_peer_alive(peer));
    EXPECT(atomic_load(&shared->step[me]) == 2); /* the check began while the peer still ran */
}

static void depart(int me)
{
    await_step(1 - me, 2);
}

static void departure_in_good_order_raises_no_alarm(void **state)
{
    (void)state;
    run(watch_departure, depart, false);
    run(ask_during_departure, depart, false);
}

/* The kernel's check of /proc/PID/fd, through which the file is opened, excludes other users. */
static void another_user_cannot_open_the_file(void **state)
{
    enum { NOBODY = 65534 };
    char path[64];
    int status;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    assert_int_equal(oriel_file_start(), ORIEL_OK);
    const struct oriel_identity *own = oriel_file_identity();
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getpid(), (int)own->memory_fd);
    pid_t child = fork();
    if (child == 0) {
        if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
            _exit(2);
        _exit(open(path, O_RDONLY) < 0 && errno == EACCES ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_writes_into_the_other_file),
        cmocka_unit_test(growth_is_reached_without_opening_again),
        cmocka_unit_test(wrong_identity_is_refused),
        cmocka_unit_test(other_files_than_memory_files_are_not_opened),
        cmocka_unit_test(find_knows_peers_by_address),
        cmocka_unit_test(dead_process_is_noticed),
        cmocka_unit_test(departure_in_good_order_raises_no_alarm),
        cmocka_unit_test(
            another_user_cannot_open_the_file), /* the last: this process has a file from here on */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
