/* Liveness: a process is alive until it has ended, reaped or not, and is never mistaken for another
 * process with its id. The tests create and reap their own children. */
#include "base/identity.h"

#include "base/reserve_fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "use_up_descriptors.h"

enum { SIGNALS = 5000 };

/* A child that has reported its identity and waits to be killed. */
static struct oriel_identity child_start(void)
{
    int channel[2];
    struct oriel_identity identity;
    assert_int_equal(pipe(channel), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!oriel_identity_make(&identity) ||
            write(channel[1], &identity, sizeof identity) != (ssize_t)sizeof identity)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(channel[0], &identity, sizeof identity), sizeof identity);
    close(channel[0]);
    close(channel[1]);
    assert_int_equal(identity.pid, pid);
    return identity;
}

/* Ends the child but leaves it a zombie. */
static void child_kill(const struct oriel_identity *identity)
{
    siginfo_t info;
    assert_int_equal(kill(identity->pid, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)identity->pid, &info, WEXITED | WNOWAIT), 0);
}

static void child_reap(const struct oriel_identity *identity)
{
    assert_int_equal(waitpid(identity->pid, NULL, 0), identity->pid);
}

static void self_is_alive(void **state)
{
    (void)state;
    struct oriel_identity identity;
    assert_true(oriel_identity_make(&identity));
    assert_int_equal(identity.pid, getpid());
    assert_int_equal(identity.memory_fd, -1);
    assert_true(identity.start_time > 0);
    assert_true(oriel_identity_alive(&identity));
}

static void identities_differ_even_of_one_process(void **state)
{
    (void)state;
    struct oriel_identity one;
    struct oriel_identity two;
    assert_true(oriel_identity_make(&one));
    assert_true(oriel_identity_make(&two));
    assert_true(oriel_identity_equal(&one, &one));
    assert_false(oriel_identity_equal(&one, &two));
    assert_int_equal(one.start_time, two.start_time);
}

static void child_is_alive_until_it_ends(void **state)
{
    (void)state;
    struct oriel_identity identity = child_start();
    assert_true(oriel_identity_alive(&identity));
    child_kill(&identity);
    assert_int_equal(kill(identity.pid, 0), 0); /* a signal number 0 still reaches the zombie */
    assert_false(oriel_identity_alive(&identity));
    child_reap(&identity);
    assert_false(oriel_identity_alive(&identity));
}

static void stopped_process_is_alive(void **state)
{
    (void)state;
    siginfo_t info;
    struct oriel_identity identity = child_start();
    assert_int_equal(kill(identity.pid, SIGSTOP), 0);
    assert_int_equal(waitid(P_PID, (id_t)identity.pid, &info, WSTOPPED), 0);
    assert_true(oriel_identity_alive(&identity));
    child_kill(&identity);
    child_reap(&identity);
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

static void signals_kill_no_process(void **state)
{
    (void)state;
    const struct sigaction counts = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    const struct itimerval often = {{0, 20}, {0, 20}}, never = {{0, 0}, {0, 0}};
    struct oriel_identity identity = child_start();
    unsigned dead = 0;
    assert_int_equal(sigaction(SIGALRM, &counts, NULL), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    while (signals < SIGNALS)
        dead += !oriel_identity_alive(&identity);
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(dead, 0);
    child_kill(&identity);
    child_reap(&identity);
}

/* The id belongs to a living process, but was reused: the start time differs. */
static void reused_number_is_not_the_process(void **state)
{
    (void)state;
    struct oriel_identity identity = child_start();
    struct oriel_identity before = identity;
    before.start_time--;
    assert_true(oriel_identity_alive(&identity));
    assert_false(oriel_identity_alive(&before));
    child_kill(&identity);
    child_reap(&identity);
}

static void start_time_does_not_depend_on_the_command_name(void **state)
{
    (void)state;
    struct oriel_identity before;
    struct oriel_identity after;
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    assert_true(oriel_identity_make(&before));
    assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (2 3"), 0);
    assert_true(oriel_identity_make(&after));
    prctl(PR_SET_NAME, name);
    assert_int_equal(before.start_time, after.start_time);
}

/* A program that has used up its descriptors must not consider its peers dead. */
static void missing_descriptors_are_no_deaths(void **state)
{
    (void)state;
    struct oriel_identity dead = child_start();
    struct oriel_identity living = child_start();
    struct rlimit limit;
    child_kill(&dead);
    child_reap(&dead);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    bool living_alive = oriel_identity_alive(&living);
    bool dead_alive = oriel_identity_alive(&dead);
    setrlimit(RLIMIT_NOFILE, &limit);
    child_kill(&living);
    child_reap(&living);
    assert_true(living_alive);
    assert_false(dead_alive);
}

enum spare { STAYS, IS_CLOSED, IS_CLOSED_AND_MADE_ANEW };

/* A process that can check detects the dead; a process that cannot check considers all alive. */
static void ask_without_descriptors(enum spare spare)
{
    struct rlimit limit;
    struct oriel_identity zombie = child_start();
    struct oriel_identity living = child_start();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit few = {.rlim_cur = 600, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int first = open("/dev/null", O_RDONLY | O_CLOEXEC);
    oriel_reserve_fd_reserve();
    if (spare != STAYS)
        closefrom(first + 1);
    bool living_alive = spare != IS_CLOSED_AND_MADE_ANEW || oriel_identity_alive(&living);
    int last = descriptors_use_up();
    child_kill(&zombie);
    bool zombie_alive = false;
    for (int turn = 0; turn < 3; turn++) { /* the reserve is replenished */
        living_alive = living_alive && oriel_identity_alive(&living);
        zombie_alive = zombie_alive || oriel_identity_alive(&zombie);
    }
    bool all_are_alive = fcntl(last, F_GETFD) >= 0 && open("/dev/null", O_RDONLY) < 0;
    closefrom(first);
    setrlimit(RLIMIT_NOFILE, &limit);
    child_kill(&living);
    child_reap(&living);
    child_reap(&zombie);
    assert_true(all_are_alive);
    assert_true(living_alive);
    assert_int_equal(zombie_alive, spare == IS_CLOSED);
}

/* The parent has not reaped it, so its id still exists, for as long as the job's launcher lives. */
static void zombies_are_dead_without_descriptors(void **state)
{
    (void)state;
    ask_without_descriptors(STAYS);
}

/* The program's own file at that descriptor is left alone. */
static void spare_that_the_program_has_closed_is_not_spent(void **state)
{
    (void)state;
    ask_without_descriptors(IS_CLOSED);
}

static void spare_that_the_program_has_closed_is_made_anew(void **state)
{
    (void)state;
    ask_without_descriptors(IS_CLOSED_AND_MADE_ANEW);
}

static int descriptors_count(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

static void asking_leaves_no_descriptor(void **state)
{
    (void)state;
    struct oriel_identity identity = child_start();
    int before = descriptors_count();
    assert_true(oriel_identity_alive(&identity));
    child_kill(&identity);
    assert_false(oriel_identity_alive(&identity));
    child_reap(&identity);
    assert_false(oriel_identity_alive(&identity));
    assert_int_equal(descriptors_count(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_is_alive),
        cmocka_unit_test(identities_differ_even_of_one_process),
        cmocka_unit_test(child_is_alive_until_it_ends),
        cmocka_unit_test(stopped_process_is_alive),
        cmocka_unit_test(signals_kill_no_process),
        cmocka_unit_test(reused_number_is_not_the_process),
        cmocka_unit_test(start_time_does_not_depend_on_the_command_name),
        cmocka_unit_test(missing_descriptors_are_no_deaths),
        cmocka_unit_test(asking_leaves_no_descriptor),
        cmocka_unit_test(zombies_are_dead_without_descriptors),
        cmocka_unit_test(spare_that_the_program_has_closed_is_not_spent),
        cmocka_unit_test(spare_that_the_program_has_closed_is_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
