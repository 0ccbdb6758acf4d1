/* When waits spin, yield and sleep. The clock, yields and system calls are simulated, with
 * durations that each case sets. */
#include "base/options.h"
#include "base/wait.h"

#include <sched.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"

enum { READING_NS = 25, WAITS = 10, LAST_YIELD = 300 };

/* The simulated environment of the calling process. */
static struct {
    bool is_played;
    uint64_t now_ns, yield_ns, call_ns;
    int readings, yields;
    int readings_before_yield; /* of the clock, in the present wait */
    _Atomic uint32_t *word;    /* set by the yield of this number, or by the first sleep */
    int setting_yield;
    int sleeps;
} simulated;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __real_sched_yield(void);
pid_t __real_getppid(void);
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_sched_yield(void);
pid_t __wrap_getppid(void);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!simulated.is_played)
        return __real_clock_gettime(clock, now);
    simulated.readings++;
    simulated.now_ns += READING_NS;
    *now = (struct timespec){.tv_sec = (time_t)(simulated.now_ns / 1000000000),
                             .tv_nsec = (long)(simulated.now_ns % 1000000000)};
    return 0;
}

int __wrap_sched_yield(void)
{
    if (!simulated.is_played)
        return __real_sched_yield();
    if (simulated.yields++ == 0)
        simulated.readings_before_yield = simulated.readings;
    simulated.now_ns += simulated.yield_ns;
    if (simulated.yields == simulated.setting_yield)
        oriel_store_release(simulated.word, 1);
    return 0;
}

/* Futex calls, the only ones that waits make. */
long __wrap_syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    _Atomic uint32_t *word = va_arg(list, _Atomic uint32_t *);
    int operation = va_arg(list, int);
    uint32_t value = va_arg(list, uint32_t);
    const struct timespec *limit = va_arg(list, const struct timespec *);
    va_end(list);
    if (!simulated.is_played)
        return __real_syscall(number, word, operation, value, limit, NULL, 0);
    simulated.sleeps++;
    oriel_store_release(simulated.word, 1);
    return 0;
}

pid_t __wrap_getppid(void)
{
    if (simulated.is_played)
        simulated.now_ns += simulated.call_ns;
    return __real_getppid();
}

/* A wait whose word is set by the yield of this number, or when the wait sleeps. */
static void wait_played(uint64_t yield_ns, int setting_yield)
{
    struct oriel_event event = {.value = 0};
    simulated.is_played = true;
    simulated.yield_ns = yield_ns;
    simulated.readings = simulated.yields = simulated.sleeps = 0;
    simulated.word = &event.value;
    simulated.setting_yield = setting_yield;
    (void)oriel_event_wait(&event, 1, NULL);
    simulated.is_played = false;
}

/* A wait that ends with its first yield: whether it has spun before, that is, has read the clock
 * repeatedly. */
static bool spins(uint64_t yield_ns)
{
    wait_played(yield_ns, 1);
    return simulated.yields == 1 && simulated.readings_before_yield > 20;
}

/* In a separate process, where no wait has yielded before. Calls last call_ns; yields last idle_ns
 * on an idle core and busy_ns on a busy one. */
static void waits_know_crowds(uint64_t call_ns, uint64_t idle_ns, uint64_t busy_ns)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int failed = 0;
        (void)oriel_options(); /* the first wait would read them, with system calls */
        simulated.call_ns = call_ns;
        for (int i = 0; i < WAITS; i++)
            failed |= spins(idle_ns) ? 0 : 1; /* the core is idle */
        (void)spins(busy_ns);                 /* now the core is busy */
        for (int i = 0; i < WAITS; i++)
            failed |= spins(busy_ns) ? 2 : 0;
        failed |= spins(idle_ns) || spins(busy_ns) || spins(idle_ns) || spins(idle_ns)
                      ? 4
                      : 0; /* not four in a row */
        (void)spins(idle_ns);
        (void)spins(idle_ns);
        for (int i = 0; i < WAITS; i++)
            failed |= spins(idle_ns) ? 0 : 8; /* idle again */
        _exit(failed);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Yields that let others run, and then some that do not although the others are still there. */
static int failed_in_demand(void)
{
    int failed = 0, naps = 0;
    for (int i = 0; i < WAITS; i++)
        wait_played(3000, 2);
    wait_played(300, LAST_YIELD);
    failed |= simulated.sleeps == 1 && simulated.yields < LAST_YIELD
                  ? 0
                  : 1; /* sleeps before its millisecond is over */
    for (int i = 0; i < 100; i++) {
        wait_played(300, LAST_YIELD);
        failed |= simulated.sleeps == 1 ? 0 : 2;
        naps += simulated.yields == 0;
    }
    failed |= naps > 90 ? 0 : 4; /* and most of the next ones at once */
    for (int i = 0; i < 1000; i++)
        wait_played(300, 1);
    failed |= simulated.sleeps == 0 && simulated.yields == 1
                  ? 0
                  : 8; /* but not forever, if yields help */
    return failed;
}

static void waits_sleep_after_vain_yields(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    if (child == 0)
        _exit(failed_in_demand());
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The awaited thread works on another core: a sleep would force it to make a wake call. */
static void waits_with_a_processor_of_their_own_do_not_sleep_soon(void **state)
{
    (void)state;
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int failed = 0;
        for (int i = 0; i < WAITS; i++) {
            wait_played(300, LAST_YIELD);
            failed |= simulated.sleeps != 0;
            wait_played(3000, 1); /* now and then another thread uses the core */
        }
        _exit(failed);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void waits_spin_but_where_yields_let_others_run(void **state)
{
    (void)state;
    waits_know_crowds(100, 300, 3000);
}

static void slow_system_calls_are_no_crowd(void **state)
{
    (void)state;
    waits_know_crowds(4000, 5000, 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            waits_spin_but_where_yields_let_others_run), /* before this process has yielded */
        cmocka_unit_test(slow_system_calls_are_no_crowd),
        cmocka_unit_test(waits_sleep_after_vain_yields),
        cmocka_unit_test(waits_with_a_processor_of_their_own_do_not_sleep_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
