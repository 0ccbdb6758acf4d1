/* src/memory/promote/syscall_restart.c: stopping a thread does not shorten its wait, and does not
 * restart its time limit forever. */
#include "promote_common.h"

#include "memory/promote/syscall_restart.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

enum { WAIT_MS = 300, STOPS_LEAST = 2, TRIES = 20 };

static _Atomic int done;
static int ends[2]; /* a pipe without a writer until the threads should end */

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Promotes and demotes a page by stopping threads until the waiter is done; returns the count. */
static int stop_all_the_time(void)
{
    struct oriel_promoted promoted;
    int stops = 0;
    char *page = map_private(PAGE);
    while (atomic_load(&done) == 0) {
        promote(page, PAGE, &quiesce, &promoted);
        oriel_promote_release(&promoted);
        stops++;
        usleep(5000);
    }
    munmap(page, PAGE);
    return stops;
}

/* A wait of WAIT_MS that nothing ends: 0, or the error. */
typedef int wait_for(void);

struct waiter {
    wait_for *wait;
    int error;
    int64_t took_ms;
};

static void *run_waiter(void *context)
{
    struct waiter *waiter = context;
    int64_t begin = now_ms();
    waiter->error = waiter->wait();
    waiter->took_ms = now_ms() - begin;
    atomic_store(&done, 1);
    return NULL;
}

static void expect_whole_wait(wait_for *wait)
{
    int stops = 0;
    for (int tries = 0; stops < STOPS_LEAST && tries < TRIES;
         tries++) { /* other programs use the cores */
        struct waiter waiter = {.wait = wait};
        pthread_t thread;
        atomic_store(&done, 0);
        assert_int_equal(pthread_create(&thread, NULL, run_waiter, &waiter), 0);
        stops = stop_all_the_time();
        pthread_join(thread, NULL);
        assert_int_equal(waiter.error, 0);
        assert_true(waiter.took_ms >= WAIT_MS - 1);
    }
    assert_true(stops >= STOPS_LEAST);
}

static int result(int code)
{
    return code < 0 ? errno : code > 0 ? -1 : 0;
}

static int by_nanosleep(void)
{
    struct timespec limit = {.tv_nsec = WAIT_MS * 1000000L};
    return result(nanosleep(&limit, NULL));
}

static int by_nanosleep_with_rest(void)
{
    struct timespec limit = {.tv_nsec = WAIT_MS * 1000000L};
    struct timespec rest;
    return result(nanosleep(&limit, &rest));
}

static int by_usleep(void)
{
    return result(usleep(WAIT_MS * 1000));
}

static int by_absolute_sleep(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_nsec += WAIT_MS * 1000000L;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &limit, NULL);
}

/* Interposed before libc's, as by a sanitiser or a tool. */
int __poll(struct pollfd *fds, nfds_t count, int limit_ms);

int poll(struct pollfd *fds, nfds_t count, int limit_ms)
{
    return __poll(fds, count, limit_ms);
}

static int by_poll(void)
{
    struct pollfd nothing = {.fd = ends[0], .events = POLLIN};
    return result(poll(&nothing, 1, WAIT_MS));
}

static int by_ppoll(void)
{
    struct pollfd nothing = {.fd = ends[0], .events = POLLIN};
    struct timespec limit = {.tv_nsec = WAIT_MS * 1000000L};
    return result(ppoll(&nothing, 1, &limit, NULL));
}

static int by_select(void)
{
    struct timeval limit = {.tv_usec = WAIT_MS * 1000};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    return result(select(ends[0] + 1, &set, NULL, NULL, &limit));
}

static int by_epoll(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event);
    int code = result(epoll_wait(fd, &event, 1, WAIT_MS));
    close(fd);
    return code;
}

static int by_epoll_with_a_mask(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    sigset_t none;
    sigemptyset(&none);
    int fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event);
    int code = result(epoll_pwait(fd, &event, 1, WAIT_MS, &none));
    close(fd);
    return code;
}

/* Many short waits: each is a call of its own, however often the last one was interrupted. */
static int by_short_polls(void)
{
    int code = 0;
    for (int i = 0; i < WAIT_MS && code == 0; i++)
        code = result(poll(NULL, 0, 1));
    return code;
}

static int by_short_sleeps(void)
{
    int code = 0;
    for (int i = 0; i < WAIT_MS && code == 0; i++)
        code = result(usleep(1000));
    return code;
}

#define FULL_WAIT(call)                                                                            \
    static void by_##call##_waits_as_long_as_asked(void **state)                                   \
    {                                                                                              \
        skip_where_nothing_moves();                                                                \
        means_of(state);                                                                           \
        expect_whole_wait(by_##call);                                                              \
    }

FULL_WAIT(nanosleep)
FULL_WAIT(nanosleep_with_rest)
FULL_WAIT(usleep)
FULL_WAIT(absolute_sleep)
FULL_WAIT(poll)
FULL_WAIT(ppoll)
FULL_WAIT(select)
FULL_WAIT(epoll)
FULL_WAIT(epoll_with_a_mask)
FULL_WAIT(short_polls)
FULL_WAIT(short_sleeps)

/* Of the program's own; it ends a wait as usual. */
static void on_signal(int signal)
{
    (void)signal;
}

#if defined(__x86_64__)
/* A wait without a limit, interrupted after an instruction that calls the kernel, in a thread that
 * was never observed in it. It continues, as its number requires. */
static void expect_continues(const unsigned char *after, int number)
{
    static const struct oriel_syscall unseen = {.number = -1};
    ucontext_t context = {.uc_flags = 0};
    greg_t *now = context.uc_mcontext.gregs;
    now[REG_RIP] = (greg_t)(uintptr_t)after;
    now[REG_RAX] = -EINTR;
    now[REG_RSI] = TIMER_ABSTIME;
    now[REG_RDX] = now[REG_R10] = -1;
    oriel_syscall_restart_resume(&unseen, &context);
    assert_int_equal(now[REG_RAX], number);
    assert_int_equal(now[REG_RIP], (greg_t)(uintptr_t)after - 2);
}

/* A wait of a thread that is interrupted, and was not observed in it. */
struct unobserved {
    wait_for *wait;
    int cancel; /* with cancellation disabled, libc calls the kernel elsewhere */
    int error;
    int number;
};

static _Atomic int restarted; /* the number of the call that continues; -1 before */

static void restart_unobserved(int signal, siginfo_t *info, void *context)
{
    static const struct oriel_syscall unseen = {.number = -1};
    const greg_t *now = ((const ucontext_t *)context)->uc_mcontext.gregs;
    (void)signal;
    (void)info;
    oriel_syscall_restart_resume(&unseen, context);
    atomic_store(&restarted, (int)now[REG_RAX]);
}

static int endless_poll(void)
{
    struct pollfd bytes = {.fd = ends[0], .events = POLLIN};
    return poll(&bytes, 1, -1) == 1 ? 0 : errno;
}

static int endless_ppoll(void)
{
    struct pollfd bytes = {.fd = ends[0], .events = POLLIN};
    return ppoll(&bytes, 1, NULL, NULL) == 1 ? 0 : errno;
}

static int endless_epoll(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event);
    int error = epoll_wait(fd, &event, 1, -1) == 1 ? 0 : errno;
    close(fd);
    return error;
}

/* A signal of the program ends it. */
static int endless_sleep(void)
{
    struct timespec limit;
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += 3600;
    return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &limit, NULL) == EINTR ? 0 : -1;
}

static _Atomic pid_t unobserved_tid;

static void *run_unobserved(void *context)
{
    struct unobserved *call = context;
    pthread_setcancelstate(call->cancel, NULL);
    atomic_store(&unobserved_tid, gettid());
    call->error = call->wait();
    return NULL;
}

static void expect_number_found(struct unobserved *call)
{
    struct sigaction action = {.sa_sigaction = restart_unobserved, .sa_flags = SA_SIGINFO};
    struct oriel_syscall blocked = {.number = -1};
    pthread_t thread;
    char byte;
    sigaction(SIGUSR2, &action, NULL);
    atomic_store(&restarted, -1);
    atomic_store(&unobserved_tid, 0);
    assert_int_equal(pthread_create(&thread, NULL, run_unobserved, call), 0);
    while (blocked.number != call->number) {
        usleep(1000);
        if (atomic_load(&unobserved_tid) != 0)
            oriel_syscall_restart_read_call(atomic_load(&unobserved_tid), &blocked);
    }
    pthread_kill(thread, SIGUSR2);
    while (atomic_load(&restarted) == -1)
        usleep(1000);
    if (call->wait == endless_sleep)
        pthread_kill(thread, SIGUSR1);
    assert_int_equal(write(ends[1], "x", 1), 1);
    pthread_join(thread, NULL);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(atomic_load(&restarted), call->number);
    assert_int_equal(call->error, 0);
}

static void calls_of_libc_continue_in_threads_that_just_entered_them(void **state)
{
    static const int cancel[] = {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE};
    struct sigaction action = {.sa_handler = on_signal};
    (void)state;
    if (THREAD_SANITIZER) {
        print_message("skipped: ThreadSanitizer calls handlers after the wait\n");
        skip();
    }
    sigaction(SIGUSR1, &action, NULL);
    oriel_syscall_restart_prepare();
    for (int i = 0; i < 2; i++) {
        expect_number_found(&(struct unobserved){endless_poll, cancel[i], 0, SYS_poll});
        expect_number_found(&(struct unobserved){endless_ppoll, cancel[i], 0, SYS_ppoll});
        expect_number_found(&(struct unobserved){endless_epoll, cancel[i], 0, SYS_epoll_wait});
        expect_number_found(&(struct unobserved){endless_sleep, cancel[i], 0, SYS_clock_nanosleep});
    }
}

static void calls_of_libc_are_known_by_the_code_before_them(void **state)
{
    static const struct {
        const char *name;
        int number;
    } functions[] = {{"poll", SYS_poll},
                     {"ppoll", SYS_ppoll},
                     {"epoll_wait", SYS_epoll_wait},
                     {"epoll_pwait", SYS_epoll_pwait},
                     {"clock_nanosleep", SYS_clock_nanosleep}};
    (void)state;
    oriel_syscall_restart_prepare();
    void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        const unsigned char *code = dlsym(libc, functions[i].name);
        const ElfW(Sym) *symbol = NULL;
        Dl_info info;
        int calls = 0;
        assert_true(code != NULL && dladdr1(code, &info, (void **)&symbol, RTLD_DL_SYMENT) != 0 &&
                    symbol != NULL);
        for (size_t at = 0; at + 2 <= symbol->st_size; at++)
            if (code[at] == 0x0f && code[at + 1] == 0x05) {
                expect_continues(code + at + 2, functions[i].number);
                calls++;
            }
        /* for programs with one thread, and with several; none where all share one place */
        assert_true(calls == 2 || calls == 0);
    }
    dlclose(libc);
}

/* Whether a call of the program's own, observed before its interruption, continues with the same
 * arguments. */
static bool goes_on(int number, uintptr_t first, uintptr_t second)
{
    const struct oriel_syscall seen = {.number = number,
                                       .arguments = {first, second},
                                       .stack = (uintptr_t)&number,
                                       .next = (uintptr_t)goes_on};
    ucontext_t context = {.uc_flags = 0};
    greg_t *now = context.uc_mcontext.gregs;
    now[REG_RIP] = (greg_t)seen.next;
    now[REG_RSP] = (greg_t)seen.stack;
    now[REG_RDI] = (greg_t)first;
    now[REG_RSI] = (greg_t)second;
    now[REG_RAX] = -EINTR;
    oriel_syscall_restart_resume(&seen, &context);
    bool again = now[REG_RAX] == number;
    assert_int_equal(now[REG_RAX], again ? number : -EINTR);
    assert_int_equal(now[REG_RIP], (greg_t)seen.next - (again ? 2 : 0));
    assert_true(now[REG_RDI] == (greg_t)first && now[REG_RSI] == (greg_t)second);
    return again;
}

static void calls_of_the_program_continue_where_they_end_in_time(void **state)
{
    const struct timespec limit = {.tv_sec = 1};
    const uintptr_t at = (uintptr_t)&limit;
    (void)state;
    oriel_syscall_restart_prepare();
    /* the kernel has written the remaining time there */
    assert_true(goes_on(SYS_nanosleep, at, at));
    assert_false(goes_on(SYS_nanosleep, at, 0));
    assert_true(goes_on(SYS_futex, at, FUTEX_WAIT_BITSET_PRIVATE));
    assert_false(goes_on(SYS_futex, at, FUTEX_WAIT_PRIVATE));
    assert_false(goes_on(SYS_close, 0, 0));
}
#else
static void calls_of_the_program_continue_where_they_end_in_time(void **state)
{
    (void)state;
    skip();
}

static void calls_of_libc_are_known_by_the_code_before_them(void **state)
{
    (void)state;
    skip(); /* the context contains the call's number there */
}

static void calls_of_libc_continue_in_threads_that_just_entered_them(void **state)
{
    (void)state;
    skip(); /* likewise */
}
#endif

/* Only the awaited bytes end it. */
static void *wait_for_bytes(void *context)
{
    struct pollfd bytes = {.fd = ends[0], .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    int *error = context;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &event);
    *error = epoll_wait(fd, &event, 1, -1) == 1 ? 0 : errno;
    if (*error == 0)
        *error = poll(&bytes, 1, -1) == 1 ? 0 : errno;
    close(fd);
    atomic_store(&done, 1);
    return NULL;
}

static void *write_after_a_while(void *context)
{
    (void)context;
    struct timespec limit = {.tv_nsec = WAIT_MS * 1000000L};
    nanosleep(&limit, NULL);
    assert_int_equal(write(ends[1], "x", 1), 1);
    return NULL;
}

static void endless_waits_end_by_their_event(void **state)
{
    pthread_t waiter, writer;
    char byte;
    int error = -1;
    skip_where_nothing_moves();
    means_of(state);
    atomic_store(&done, 0);
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_bytes, &error), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_after_a_while, NULL), 0);
    stop_all_the_time();
    pthread_join(waiter, NULL);
    pthread_join(writer, NULL);
    assert_int_equal(error, 0);
    assert_int_equal(read(ends[0], &byte, 1), 1);
}

static void *sleep_long(void *context)
{
    struct timespec limit = {.tv_sec = 60};
    int *error = context;
    *error = nanosleep(&limit, NULL) < 0 ? errno : 0;
    atomic_store(&done, 1);
    return NULL;
}

static void *signal_after_a_while(void *context)
{
    struct timespec limit = {.tv_nsec = WAIT_MS * 1000000L};
    nanosleep(&limit, NULL);
    while (atomic_load(&done) == 0) {
        pthread_kill(*(pthread_t *)context, SIGUSR1);
        usleep(20000);
    }
    return NULL;
}

static void signals_of_the_program_still_end_waits(void **state)
{
    pthread_t sleeper, sender;
    int error = -1;
    struct sigaction action = {.sa_handler = on_signal};
    skip_where_nothing_moves();
    means_of(state);
    sigaction(SIGUSR1, &action, NULL);
    atomic_store(&done, 0);
    assert_int_equal(pthread_create(&sleeper, NULL, sleep_long, &error), 0);
    assert_int_equal(pthread_create(&sender, NULL, signal_after_a_while, &sleeper), 0);
    stop_all_the_time();
    pthread_join(sleeper, NULL);
    pthread_join(sender, NULL);
    assert_int_equal(error, EINTR);
}

/* All signals that a waiting thread received, as bits; SIGUSR1 ends it. */
static void *receive_signals(void *context)
{
    uint64_t *taken = context;
    int signal = 0;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    atomic_store(&done, 1);
    while (signal != SIGUSR1 && sigwait(&all, &signal) == 0)
        *taken |= UINT64_C(1) << (signal - 1);
    return NULL;
}

static void threads_that_wait_for_signals_get_none(void **state)
{
    struct oriel_promoted promoted;
    pthread_t waiter;
    uint64_t taken = 0;
    skip_where_nothing_moves();
    means_of(state);
    char *page = map_private(PAGE);
    atomic_store(&done, 0);
    assert_int_equal(pthread_create(&waiter, NULL, receive_signals, &taken), 0);
    while (atomic_load(&done) == 0)
        usleep(1000);
    usleep(50000); /* it waits now */
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(oriel_promote((uintptr_t)page, PAGE, &quiesce, &promoted), ORIEL_OK);
        assert_non_null(strstr(oriel_fail_message(), "waits for signals"));
    }
    pthread_kill(waiter, SIGUSR1);
    pthread_join(waiter, NULL);
    assert_int_equal(taken, UINT64_C(1) << (SIGUSR1 - 1));
    munmap(page, PAGE);
}

#define BY_STOPPING(test)                                                                          \
    {                                                                                              \
#test, test, NULL, NULL, &quiesce                                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_STOPPING(by_nanosleep_waits_as_long_as_asked),
        BY_STOPPING(by_nanosleep_with_rest_waits_as_long_as_asked),
        BY_STOPPING(by_usleep_waits_as_long_as_asked),
        BY_STOPPING(by_absolute_sleep_waits_as_long_as_asked),
        BY_STOPPING(by_poll_waits_as_long_as_asked),
        BY_STOPPING(by_ppoll_waits_as_long_as_asked),
        BY_STOPPING(by_select_waits_as_long_as_asked),
        BY_STOPPING(by_epoll_waits_as_long_as_asked),
        BY_STOPPING(by_epoll_with_a_mask_waits_as_long_as_asked),
        BY_STOPPING(by_short_polls_waits_as_long_as_asked),
        BY_STOPPING(by_short_sleeps_waits_as_long_as_asked),
        cmocka_unit_test(calls_of_libc_are_known_by_the_code_before_them),
        cmocka_unit_test(calls_of_libc_continue_in_threads_that_just_entered_them),
        cmocka_unit_test(calls_of_the_program_continue_where_they_end_in_time),
        BY_STOPPING(endless_waits_end_by_their_event),
        BY_STOPPING(signals_of_the_program_still_end_waits),
        BY_STOPPING(threads_that_wait_for_signals_get_none),
    };
    if (oriel_file_start() != ORIEL_OK || pipe(ends) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
