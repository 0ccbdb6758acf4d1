/* Promotion while the program's threads, the kernel and other processes write: nothing is lost, no
 * call fails, and no wait is endless. The test's time limit ends a case that hangs. */
#include "promote_common.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { WRITERS = 3, PAGES = 24, ROUNDS = 1500, LEAST_ROUNDS = 25, CASE_SECONDS = 4 };

static atomic_bool stop;
static time_t case_end;

static void begin_rounds(void)
{
    case_end = time(NULL) + CASE_SECONDS;
}

/* Busy nodes run fewer rounds, so the case still ends in time. */
static bool goes_on(int round, int rounds)
{
    return round < LEAST_ROUNDS || (round < rounds && time(NULL) < case_end);
}

struct writer {
    pthread_t thread;
    int number;
    char *memory;
    uint64_t written[PAGES];
};

static _Atomic uint64_t *word_of(char *memory, int page, int number)
{
    return (_Atomic uint64_t *)(memory + (uint64_t)page * PAGE + (uint64_t)number * 64);
}

/* Increments random pages by a load and a store. The last pages are touched rarely: most rounds
 * find them empty. */
static void *write_pages(void *context)
{
    struct writer *writer = context;
    uint32_t random = 77u + (uint32_t)writer->number;
    while (!atomic_load(&stop)) {
        for (int i = 0; i < 200; i++) {
            random = random * 1103515245u + 12345u;
            int page = (int)((random >> 10) % (random % 1024 < 1020 ? PAGES / 2 : PAGES));
            _Atomic uint64_t *word = word_of(writer->memory, page, writer->number);
            uint64_t value = atomic_load_explicit(word, memory_order_relaxed);
            if (value != writer->written[page]++)
                return writer; /* lost */
            atomic_store_explicit(word, value + 1, memory_order_relaxed);
        }
        sched_yield();
    }
    return NULL;
}

static void threads_lose_no_write(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    static struct writer writers[WRITERS];
    char *memory = map_private(PAGES * PAGE);
    atomic_store(&stop, false);
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.number = i, .memory = memory};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_pages, &writers[i]), 0);
    }
    begin_rounds();
    for (int round = 0; goes_on(round, ROUNDS); round++) {
        struct oriel_promoted promoted;
        promote(memory, PAGES * PAGE, how, &promoted);
        if (round % 16 == 0)
            sched_yield();
        oriel_promote_release(&promoted);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < WRITERS; i++) {
        void *lost;
        pthread_join(writers[i].thread, &lost);
        assert_null(lost);
        for (int page = 0; page < PAGES; page++)
            assert_int_equal(atomic_load(word_of(memory, page, i)), writers[i].written[page]);
    }
    munmap(memory, PAGES * PAGE);
}

enum { FULL_PAGES = 700, EMPTY_PAGES = 300 };

struct toucher {
    char *_Atomic memory; /* NULL when there is nothing to do */
    uint32_t delay;
};

static void *touch_pages(void *context)
{
    struct toucher *toucher = context;
    while (!atomic_load(&stop)) {
        char *memory = atomic_load(&toucher->memory);
        if (memory == NULL) {
            sched_yield();
            continue;
        }
        for (uint32_t i = 0; i < toucher->delay; i++)
            atomic_signal_fence(memory_order_seq_cst);
        for (uint64_t page = 0; page < EMPTY_PAGES; page++)
            *(volatile char *)(memory + page * PAGE) = 1;
        atomic_store(&toucher->memory, NULL);
    }
    return NULL;
}

/* The first write to a page occurs while other pages of its chunk are copied. */
static void first_writes_to_untouched_pages_are_preserved(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct toucher toucher = {.delay = 0};
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, touch_pages, &toucher), 0);
    begin_rounds();
    for (int round = 0; goes_on(round, 200); round++) {
        struct oriel_promoted promoted;
        char *memory = map_private((FULL_PAGES + EMPTY_PAGES) * PAGE);
        char *empty = memory + FULL_PAGES * PAGE;
        memset(memory, 1, FULL_PAGES * PAGE);
        toucher.delay = (uint32_t)round % 50 * 20000;
        atomic_store(&toucher.memory, empty);
        promote(memory, (FULL_PAGES + EMPTY_PAGES) * PAGE, how, &promoted);
        if (round % 2 == 0)
            while (atomic_load(&toucher.memory) != NULL)
                sched_yield();
        oriel_promote_release(&promoted);
        while (atomic_load(&toucher.memory) != NULL)
            sched_yield();
        for (uint64_t page = 0; page < EMPTY_PAGES; page++)
            assert_int_equal(empty[page * PAGE], 1);
        munmap(memory, (FULL_PAGES + EMPTY_PAGES) * PAGE);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* A counter that threads increment continuously, and another process while the memory is
 * promoted. */
struct exchange {
    _Atomic uint64_t offset; /* the offset to increment; 0: nothing to do, UINT64_MAX: end */
};

static _Noreturn void be_peer(struct exchange *exchange, uint64_t adds)
{
    char *file = mmap(NULL, oriel_file_reserve(), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, oriel_file_identity()->memory_fd, 0);
    for (;;) {
        uint64_t offset = atomic_load(&exchange->offset);
        if (offset == UINT64_MAX || file == MAP_FAILED)
            _exit(file == MAP_FAILED);
        if (offset == 0) {
            sched_yield();
            continue;
        }
        for (uint64_t i = 0; i < adds; i++)
            atomic_fetch_add((_Atomic uint64_t *)(file + offset + i % 2 * PAGE), 1);
        atomic_store(&exchange->offset, 0);
    }
}

static void *add_always(void *context)
{
    uint64_t added = 0;
    for (; !atomic_load(&stop); added++) {
        atomic_fetch_add(word_of(context, (int)(added % 2), 0), 1);
        if (added % 1024 == 0)
            sched_yield();
    }
    return (void *)(uintptr_t)added;
}

static void peers_and_threads_add_up(void **state)
{
    enum { TURNS = 400, ADDS = 50 };
    const struct oriel_promote_options *how = means_of(state);
    struct exchange *exchange =
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(exchange != MAP_FAILED);
    char *memory = map_private(2 * PAGE);
    pid_t peer = fork();
    if (peer == 0)
        be_peer(exchange, ADDS);
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, add_always, memory), 0);
    for (int turn = 0; turn < TURNS; turn++) {
        struct oriel_promoted promoted;
        uint64_t offset, held_bytes;
        promote(memory, 2 * PAGE, how, &promoted);
        assert_true(oriel_promote_find((uintptr_t)memory, 2 * PAGE, &offset, &held_bytes));
        atomic_store(&exchange->offset, offset);
        while (atomic_load(&exchange->offset) != 0)
            sched_yield();
        oriel_promote_release(&promoted);
    }
    atomic_store(&exchange->offset, UINT64_MAX);
    atomic_store(&stop, true);
    void *added;
    int status;
    pthread_join(thread, &added);
    assert_int_equal(waitpid(peer, &status, 0), peer);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(word_of(memory, 0, 0)) + atomic_load(word_of(memory, 1, 0)),
                     (uintptr_t)added + (uint64_t)TURNS * ADDS);
    munmap(memory, 2 * PAGE);
    munmap(exchange, PAGE);
}

struct pipeline {
    int ends[2];
    char *memory;
    uint64_t bytes;
};

/* Writes counted words, with occasional pauses in which the reader sleeps in the kernel. */
static void *feed(void *context)
{
    struct pipeline *pipeline = context;
    uint64_t words[128];
    for (uint64_t next = 0; !atomic_load(&stop);) {
        for (int i = 0; i < 128; i++)
            words[i] = next++;
        if (write(pipeline->ends[1], words, sizeof words) != (ssize_t)sizeof words)
            return pipeline;
        if (next % 4096 == 0)
            usleep(200);
    }
    close(pipeline->ends[1]);
    return NULL;
}

/* The kernel writes into the memory: read. */
static void *drain(void *context)
{
    struct pipeline *pipeline = context;
    for (;;) {
        uint64_t at = pipeline->bytes % (4 * PAGE);
        ssize_t got = read(pipeline->ends[0], pipeline->memory + at, 1024);
        if (got == 0)
            return NULL;
        if (got < 0 || got % 8 != 0)
            return pipeline;
        for (uint64_t i = 0; i < (uint64_t)got; i += 8) {
            uint64_t word;
            memcpy(&word, pipeline->memory + at + i, sizeof word);
            if (word != (pipeline->bytes + i) / 8)
                return pipeline;
        }
        pipeline->bytes += (uint64_t)got;
    }
}

static void kernel_writes_arrive(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct pipeline pipeline = {.memory = map_private(5 * PAGE)};
    assert_int_equal(pipe(pipeline.ends), 0);
    pthread_t feeder, drainer;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&feeder, NULL, feed, &pipeline), 0);
    assert_int_equal(pthread_create(&drainer, NULL, drain, &pipeline), 0);
    begin_rounds();
    for (int round = 0; goes_on(round, ROUNDS); round++) {
        struct oriel_promoted promoted;
        promote(pipeline.memory, 5 * PAGE, how, &promoted);
        oriel_promote_release(&promoted);
    }
    atomic_store(&stop, true);
    void *failed;
    pthread_join(feeder, &failed);
    assert_null(failed);
    pthread_join(drainer, &failed);
    assert_null(failed);
    assert_true(pipeline.bytes > 0);
    close(pipeline.ends[0]);
    munmap(pipeline.memory, 5 * PAGE);
}

static void *add_and_end(void *context)
{
    atomic_fetch_add(word_of(context, 1, 0), 1);
    return NULL;
}

static void *make_threads(void *context)
{
    uint64_t made = 0;
    while (!atomic_load(&stop)) {
        pthread_t thread[4];
        for (int i = 0; i < 4; i++)
            made += pthread_create(&thread[i], NULL, add_and_end, context) == 0;
        for (int i = 0; i < 4; i++)
            pthread_join(thread[i], NULL);
    }
    return (void *)(uintptr_t)made;
}

static void starting_and_ending_threads_lose_nothing(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    char *memory = map_private(4 * PAGE);
    pthread_t maker;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&maker, NULL, make_threads, memory), 0);
    begin_rounds();
    for (int round = 0; goes_on(round, ROUNDS); round++) {
        struct oriel_promoted promoted;
        promote(memory, 4 * PAGE, how, &promoted);
        oriel_promote_release(&promoted);
    }
    atomic_store(&stop, true);
    void *made;
    pthread_join(maker, &made);
    assert_int_equal(atomic_load(word_of(memory, 1, 0)), (uintptr_t)made);
    munmap(memory, 4 * PAGE);
}

static char *handled_memory;
static atomic_ulong handled;

static void on_alarm(int signal)
{
    (void)signal;
    atomic_fetch_add(word_of(handled_memory, 0, 0), 1);
    atomic_fetch_add(&handled, 1);
}

/* A handler that writes into the range also runs in the thread that promotes. */
static void signal_handlers_of_the_program_lose_nothing(void **state)
{
    const struct oriel_promote_options *how = means_of(state);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval often = {.it_interval = {.tv_usec = 100}, .it_value = {.tv_usec = 100}};
    struct itimerval never = {.it_value = {.tv_usec = 0}};
    handled_memory = map_private(64 * PAGE);
    memset(handled_memory + PAGE, 1, 63 * PAGE);
    atomic_store(&handled, 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    begin_rounds();
    for (int round = 0; goes_on(round, ROUNDS); round++) {
        struct oriel_promoted promoted;
        promote(handled_memory, 64 * PAGE, how, &promoted);
        oriel_promote_release(&promoted);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    action.sa_handler = SIG_DFL;
    sigaction(SIGALRM, &action, NULL);
    assert_true(atomic_load(&handled) > 0);
    assert_int_equal(atomic_load(word_of(handled_memory, 0, 0)), atomic_load(&handled));
    munmap(handled_memory, 64 * PAGE);
}

static void *promote_always(void *context)
{
    for (int round = 0; round < 300; round++) {
        struct oriel_promoted promoted;
        if (oriel_promote((uintptr_t)context, 3 * PAGE, NULL, &promoted) != ORIEL_OK)
            return context;
        char *memory = context;
        memory[0]++;
        oriel_promote_release(&promoted);
    }
    return NULL;
}

static void threads_promote_overlapping_ranges(void **state)
{
    if (THREAD_SANITIZER)
        means_of(state);
    char *memory = map_private(8 * PAGE);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, promote_always, memory + (uint64_t)i * 2 * PAGE), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal((unsigned char)memory[(uint64_t)i * 2 * PAGE], 300 % 256);
    munmap(memory, 8 * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BY_BOTH(threads_lose_no_write),
        BY_BOTH(first_writes_to_untouched_pages_are_preserved),
        BY_BOTH(peers_and_threads_add_up),
        BY_BOTH(kernel_writes_arrive),
        BY_BOTH(starting_and_ending_threads_lose_nothing),
        BY_BOTH(signal_handlers_of_the_program_lose_nothing),
        {"threads_promote_overlapping_ranges", threads_promote_overlapping_ranges, NULL, NULL,
         &protect},
    };
    setenv("CMOCKA_TEST_ABORT", "1", 1); /* threads of a failed case would continue in the next */
    return cmocka_run_group_tests(tests, promote_setup, NULL);
}
