/* The harness of the MPI tests: runs the table of cases, combines the verdicts of all ranks, prints
 * one line for each case. The verdict is a collective call, so no rank is still in the previous
 * case; an alarm ends a case that hangs. */
#include "harness.h"
#include "../busy.h"
#include "one_node.h"
#include "skip_finalize.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WHY_BYTES = 600, MESSAGES_COST = 10 };

int world_rank;
int world_size;

static struct {
    pthread_mutex_t mutex;
    bool failed;
    char why[WHY_BYTES];
    const char *skip_reason;
    char deadline_text[WHY_BYTES];
    char crash_text[WHY_BYTES];
    uint64_t seed;
    int thread_level;
    bool shares_memory;
    MPI_Errhandler handler;
} harness = {.mutex = PTHREAD_MUTEX_INITIALIZER};

__attribute__((weak)) const char *oriel_last_error(void);

const char *oriel_error_text(void)
{
    return oriel_last_error != NULL ? oriel_last_error() : "";
}

bool through_oriel(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    return strstr(version, "windows by Oriel") != NULL;
}

bool harness_check(bool condition, const char *file, int line, const char *format, ...)
{
    if (condition)
        return true;
    pthread_mutex_lock(&harness.mutex);
    if (!harness.failed) {
        const char *slash = strrchr(file, '/');
        va_list arguments;
        va_start(arguments, format);
        int used = vsnprintf(harness.why, sizeof harness.why, format, arguments);
        va_end(arguments);
        if (used < 0 || used > WHY_BYTES - 100)
            used = WHY_BYTES - 100;
        snprintf(harness.why + used, sizeof harness.why - (size_t)used, " (rank %d, %s:%d)",
                 world_rank, slash ? slash + 1 : file, line);
        harness.failed = true;
    }
    pthread_mutex_unlock(&harness.mutex);
    return false;
}

bool harness_check_class(int code, int wanted_class, const char *file, int line, const char *call)
{
    int class = code;
    char text[MPI_MAX_ERROR_STRING] = "";
    char wanted_text[MPI_MAX_ERROR_STRING] = "success";
    int length = 0;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    if (class == wanted_class)
        return true;
    MPI_Error_string(code, text, &length);
    if (wanted_class != MPI_SUCCESS)
        MPI_Error_string(wanted_class, wanted_text, &length);
    return harness_check(false, file, line, "%.80s gave class %d (%.90s), wanted %d (%.60s) %.160s",
                         call, class, text, wanted_class, wanted_text,
                         code != MPI_SUCCESS ? oriel_error_text() : "");
}

void harness_skip(const char *reason)
{
    harness.skip_reason = reason;
}
bool harness_failed(void)
{
    return harness.failed;
}
int harness_thread_level(void)
{
    return harness.thread_level;
}
bool ranks_share_memory(void)
{
    return harness.shares_memory;
}

MPI_Comm node_comm(void)
{
    const char *text = getenv("ORIEL_NODE_SIZE");
    int node_size = text ? atoi(text) : 0;
    MPI_Comm host_node = one_node_comm(MPI_COMM_WORLD), node;
    MPI_Comm_split(host_node, node_size > 0 ? world_rank / node_size : 0, 0, &node);
    MPI_Comm_free(&host_node);
    return node;
}

/* Takes over the communicator of this rank's node. */
static bool has_all_ranks(MPI_Comm node)
{
    int ranks_here;
    MPI_Comm_size(node, &ranks_here);
    MPI_Comm_free(&node);
    return ranks_here == world_size;
}

/* The host may know better: containers have process namespaces of their own, too. */
static void find_nodes(void)
{
    MPI_Comm host_node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host_node);
    const bool host_has_all = has_all_ranks(host_node);
    harness.shares_memory =
        has_all_ranks(node_comm()) || (host_has_all && getenv("ORIEL_NODE_SIZE") == NULL);
}

static void note_window_error(MPI_Win *win, int *code, ...)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)win;
    MPI_Error_string(*code, text, &length);
    harness_check(false, "window", 0, "unexpected error: %.120s: %.180s", text, oriel_error_text());
}

void window_watch(MPI_Win win)
{
    MPI_Win_set_errhandler(win, harness.handler);
}

struct window window_make_with(MPI_Info info, enum window_kind kind, MPI_Aint size_bytes,
                               int disp_unit, MPI_Comm comm)
{
    struct window window = {MPI_WIN_NULL, NULL, kind};
    switch (kind) {
    case KIND_ALLOCATE:
        MPI_Win_allocate(size_bytes, disp_unit, info, comm, &window.base, &window.win);
        break;
    case KIND_SHARED:
        MPI_Win_allocate_shared(size_bytes, disp_unit, info, comm, &window.base, &window.win);
        break;
    case KIND_ARENA:
        if (size_bytes > 0)
            MPI_Alloc_mem(size_bytes, MPI_INFO_NULL, &window.base);
        MPI_Win_create(window.base, size_bytes, disp_unit, info, comm, &window.win);
        break;
    default:
        if (size_bytes > 0)
            window.base = malloc((size_t)size_bytes);
        MPI_Win_create(window.base, size_bytes, disp_unit, info, comm, &window.win);
        break;
    }
    window_watch(window.win);
    if (size_bytes > 0)
        memset(window.base, 0, (size_t)size_bytes);
    barrier(comm);
    return window;
}

struct window window_make(enum window_kind kind, MPI_Aint size_bytes, int disp_unit, MPI_Comm comm)
{
    return window_make_with(MPI_INFO_NULL, kind, size_bytes, disp_unit, comm);
}

void window_free(struct window *window)
{
    MPI_Win_free(&window->win);
    if (window->kind == KIND_ARENA && window->base)
        MPI_Free_mem(window->base);
    if (window->kind == KIND_HEAP)
        free(window->base);
    window->base = NULL;
}

void sleep_us(unsigned us)
{
    struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        ;
}

double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void request_await(MPI_Request *request)
{
    int done = 0;
    for (unsigned turn = 0; !done; turn++) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (!done && turn > 20)
            sleep_us(20);
        else if (!done)
            sched_yield();
    }
}

void barrier(MPI_Comm comm)
{
    MPI_Request request;
    MPI_Ibarrier(comm, &request);
    request_await(&request);
}

int scaled_rounds(int full)
{
    int rounds = world_size <= 2 ? full : world_size <= 4 ? full / 2 : full / (2 * world_size);
    if (!harness.shares_memory)
        rounds /= MESSAGES_COST;
    return rounds > 0 ? rounds : 1;
}

struct random random_start(uint64_t stream)
{
    struct random random = {harness.seed * 0x9E3779B97F4A7C15u ^
                            (stream + 1) * 0xD1B54A32D192ED03u};
    random_next(&random);
    return random;
}

/* SplitMix64: any state is a good state. */
uint64_t random_next(struct random *random)
{
    uint64_t z = (random->state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t random_below(struct random *random, uint64_t limit)
{
    return random_next(random) % limit;
}

void random_pause(struct random *random, unsigned max_us)
{
    uint64_t choice = random_below(random, 16);
    if (choice < 8)
        return;
    if (choice < 13) {
        for (uint64_t left = random_below(random, 300); left > 0; left--)
            __asm__ volatile("" ::: "memory");
    } else if (choice < 15 || max_us == 0) {
        sched_yield();
    } else {
        sleep_us((unsigned)random_below(random, max_us) + 1);
    }
}

static void on_alarm(int number)
{
    const char *text = number == SIGALRM ? harness.deadline_text : harness.crash_text;
    ssize_t written = write(STDOUT_FILENO, text, strlen(text));
    (void)written;
    if (number == SIGALRM)
        _exit(1);
    signal(number, SIG_DFL);
    raise(number);
}

static atomic_ulong signals_caught;

static void count_signal(int number)
{
    (void)number;
    atomic_fetch_add_explicit(&signals_caught, 1, memory_order_relaxed);
}

/* TEST_SIGNALS: sends a signal at this interval in microseconds, to any thread, whose handler
 * interrupts calls (no SA_RESTART). Starts after MPI_Init, since the hosts fail on signals while
 * they connect. */
static void begin_signals(void)
{
    const long every_us = getenv("TEST_SIGNALS") ? atol(getenv("TEST_SIGNALS")) : 0;
    const struct sigaction action = {.sa_handler = count_signal};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    const struct timespec every = {every_us / 1000000, every_us % 1000000 * 1000};
    const struct itimerspec times = {every, every};
    timer_t timer;
    if (every_us <= 0)
        return;
    sigaction(SIGUSR1, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &times, NULL);
}

static void case_begin(const char *name)
{
    harness.failed = false;
    harness.skip_reason = NULL;
    const char *text =
        getenv("TEST_SECONDS"); /* a case's limit, for slower runs (tests/memcheck) */
    const unsigned seconds = busy_limit_s(text != NULL ? (unsigned)atoi(text) : 60);
    snprintf(harness.deadline_text, sizeof harness.deadline_text,
             "not ok %s: no end after %u s (rank %d)\n", name, seconds, world_rank);
    snprintf(harness.crash_text, sizeof harness.crash_text,
             "not ok %s: killed by a signal (rank %d)\n", name, world_rank);
    alarm(seconds);
}

/* The lowest rank that failed prints its message. Returns 'o' (ok), 's' (skipped) or 'n' (not ok),
 * the same on every rank. */
static char case_end(const char *name)
{
    int mine = harness.failed ? world_rank : world_size;
    int first = world_size;
    MPI_Request request;
    MPI_Iallreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
    request_await(&request);
    alarm(0);
    if (first < world_size) {
        MPI_Bcast(harness.why, WHY_BYTES, MPI_CHAR, first, MPI_COMM_WORLD);
        if (world_rank == 0)
            printf("not ok %s: %s\n", name, harness.why);
        return 'n';
    }
    if (world_rank == 0 && harness.skip_reason)
        printf("skip %s: %s\n", name, harness.skip_reason);
    else if (world_rank == 0)
        printf("ok %s\n", name);
    return harness.skip_reason ? 's' : 'o';
}

static const char *kind_name(int kind)
{
    switch (kind) {
    case KIND_ALLOCATE: return "/allocate";
    case KIND_SHARED: return "/shared";
    case KIND_ARENA: return "/arena";
    case KIND_HEAP: return "/heap";
    default: return "";
    }
}

static bool name_selected(const char *only, const char *case_name, const char *full_name)
{
    return !only || strcmp(only, case_name) == 0 || strcmp(only, full_name) == 0;
}

static char case_run(const struct test_case *test, int kind, const char *name)
{
    static char few_ranks[64];
    case_begin(name);
    if (world_size < test->min_ranks) {
        snprintf(few_ranks, sizeof few_ranks, "needs %d ranks", test->min_ranks);
        harness_skip(few_ranks);
    } else if ((kind == KIND_SHARED || (test->kinds & KIND_ONE_NODE)) && !harness.shares_memory) {
        harness_skip("needs ranks that all share memory");
    } else {
        test->run((enum window_kind)kind);
    }
    char verdict = case_end(name);
    fflush(stdout);
    return verdict;
}

static int table_run(const struct test_case *cases, size_t case_count, bool list, const char *only)
{
    int passed = 0, failed = 0, skipped = 0;
    for (size_t i = 0; i < case_count; i++) {
        for (int kind = (cases[i].kinds & KINDS_ALL) == KIND_ANY ? KIND_ANY : 1; kind <= KIND_HEAP;
             kind = kind ? kind * 2 : 99) {
            char name[160];
            if (kind && !(cases[i].kinds & kind))
                continue;
            snprintf(name, sizeof name, "%s%s", cases[i].name, kind_name(kind));
            if (!name_selected(only, cases[i].name, name))
                continue;
            if (list) {
                if (world_rank == 0)
                    puts(name);
                passed++;
                continue;
            }
            char verdict = case_run(&cases[i], kind, name);
            passed += verdict == 'o';
            failed += verdict == 'n';
            skipped += verdict == 's';
        }
    }
    if (world_rank == 0 && !list)
        printf("# %d passed, %d failed, %d skipped\n", passed, failed, skipped);
    if (passed + failed + skipped == 0 && world_rank == 0)
        fprintf(stderr, "no case of that name\n");
    if (failed || passed + failed + skipped == 0)
        return 1;
    return passed ? 0 : 77;
}

static void seed_agree(void)
{
    const char *text = getenv("TEST_SEED");
    harness.seed = text ? strtoull(text, NULL, 0) : (uint64_t)(seconds_now() * 1e6);
    MPI_Bcast(&harness.seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (world_rank == 0)
        printf("# %d ranks, TEST_SEED=%llu\n", world_size, (unsigned long long)harness.seed);
}

/* The launcher of another host starts jobs of one rank each, without the cases that need more. */
static bool job_is_whole(void)
{
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    const char *text = getenv("TEST_RANKS");
    if (parent != MPI_COMM_NULL || text == NULL || atoi(text) == world_size)
        return true;
    fprintf(stderr, "The job was started with %s ranks, and MPI_COMM_WORLD has %d\n", text,
            world_size);
    return false;
}

int harness_main(int argc, char **argv, int thread_level, const struct test_case *cases,
                 size_t case_count)
{
    bool list = false;
    const char *only = NULL;
    MPI_Init_thread(&argc, &argv, thread_level, &harness.thread_level);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            list = true;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
    }
    if (!job_is_whole())
        MPI_Abort(MPI_COMM_WORLD, 1);
    signal(SIGALRM, on_alarm);
    signal(SIGSEGV, on_alarm);
    signal(SIGBUS, on_alarm);
    begin_signals();
    MPI_Win_create_errhandler(note_window_error, &harness.handler);
    find_nodes();
    if (!list)
        seed_agree();
    int status = table_run(cases, case_count, list, only);
    if (world_rank == 0 && signals_caught > 0)
        printf("# %lu signals\n", signals_caught);
    MPI_Errhandler_free(&harness.handler);
    leave_without_finalize(status);
    MPI_Finalize();
    return status;
}
