/* Children of a process with promoted memory: their writes are private, their reads return the
 * contents at the fork, and the parent continues with its peers. Untouched memory costs a child
 * nothing. A plain MPI program with threads, run by the test rows. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { AREA_BYTES = 6 * PAGE, KINDS_OF_MEMORY = 5, GUARD = 0x6b };

static _Alignas(4096) char static_area[AREA_BYTES];

/* An area of the program, part of which is the window. */
struct area {
    const char *name;
    char *memory;
    size_t at;
    size_t len_bytes;
    MPI_Win win;
};

static void areas_make(struct area *areas)
{
    char *heap = malloc(AREA_BYTES);
    areas[0] =
        (struct area){"mapped, whole pages", pages_map(AREA_BYTES), 0, AREA_BYTES, MPI_WIN_NULL};
    areas[1] = (struct area){"mapped, parts of pages", pages_map(AREA_BYTES), 100, AREA_BYTES - 300,
                             MPI_WIN_NULL};
    areas[2] = (struct area){"heap", heap, 8, AREA_BYTES - 16, MPI_WIN_NULL};
    areas[3] = (struct area){"static", static_area, PAGE, 4 * PAGE, MPI_WIN_NULL};
    areas[4] = (struct area){"a part of one page", pages_map(AREA_BYTES), 2 * PAGE + 8, 1000,
                             MPI_WIN_NULL};
    for (int i = 0; i < KINDS_OF_MEMORY; i++) {
        struct area *area = &areas[i];
        memset(area->memory, GUARD + i, AREA_BYTES);
        area->win = window_over(area->memory + area->at, area->len_bytes);
        check_promoted(area->win, area->memory + area->at, area->len_bytes);
    }
    barrier(MPI_COMM_WORLD);
}

static void areas_free(struct area *areas)
{
    for (int i = 0; i < KINDS_OF_MEMORY; i++) {
        MPI_Win_free(&areas[i].win);
        if (i == 2)
            free(areas[i].memory);
        else if (i != 3)
            munmap(areas[i].memory, AREA_BYTES);
    }
}

/* Reads only: a child of a process with threads may do little else. */
static bool is_filled(const char *memory, size_t len_bytes, int value)
{
    for (size_t i = 0; i < len_bytes; i++)
        if ((unsigned char)memory[i] != (unsigned char)value)
            return false;
    return true;
}

static void child_check(pid_t child, const char *what)
{
    int status = -1;
    if (!CHECK(child > 0, "%s: no child: %s", what, strerror(errno)))
        return;
    if (!CHECK(waitpid(child, &status, 0) == child, "%s: waitpid: %s", what, strerror(errno)))
        return;
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0,
          "%s: the child's status is %#x (exit %d, signal %d)", what, status, WEXITSTATUS(status),
          WTERMSIG(status));
}

static void areas_exercise(struct area *areas)
{
    for (int i = 0; i < KINDS_OF_MEMORY; i++) {
        struct area *area = &areas[i];
        window_exercise(area->win, area->memory + area->at, area->len_bytes);
        CHECK(is_filled(area->memory, area->at, GUARD + i),
              "%s: a byte before the window has changed", area->name);
        CHECK(is_filled(area->memory + area->at + area->len_bytes,
                        AREA_BYTES - area->at - area->len_bytes, GUARD + i),
              "%s: a byte after the window has changed", area->name);
    }
}

static void a_child_reads_the_contents_at_the_fork_and_writes_privately(enum window_kind kind)
{
    struct area areas[KINDS_OF_MEMORY];
    (void)kind;
    areas_make(areas);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < KINDS_OF_MEMORY; i++)
            memset(areas[i].memory, GUARD + i, AREA_BYTES);
        barrier(MPI_COMM_WORLD);
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < KINDS_OF_MEMORY; i++) {
                if (!is_filled(areas[i].memory, AREA_BYTES, GUARD + i))
                    _exit(10 + i);
                memset(areas[i].memory, 0x11, AREA_BYTES);
                if (!is_filled(areas[i].memory, AREA_BYTES, 0x11))
                    _exit(20 + i);
            }
            _exit(0);
        }
        child_check(child, "a child that writes");
        for (int i = 0; i < KINDS_OF_MEMORY; i++)
            CHECK(is_filled(areas[i].memory, AREA_BYTES, GUARD + i),
                  "%s: the child has written here", areas[i].name);
        barrier(MPI_COMM_WORLD);
        areas_exercise(areas);
    }
    areas_free(areas);
}

/* The child waits until the peers have changed everything: its earlier writes remain. */
static void a_childs_pages_stay_its_own_while_peers_put(enum window_kind kind)
{
    struct area areas[KINDS_OF_MEMORY];
    int resume[2];
    (void)kind;
    areas_make(areas);
    CHECK(pipe(resume) == 0, "pipe");
    barrier(MPI_COMM_WORLD);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char word;
        for (int i = 0; i < KINDS_OF_MEMORY; i++)
            memset(areas[i].memory, 0x22 + i, AREA_BYTES);
        close(resume[1]);
        if (read(resume[0], &word, 1) != 1)
            _exit(2);
        for (int i = 0; i < KINDS_OF_MEMORY; i++)
            if (!is_filled(areas[i].memory, AREA_BYTES, 0x22 + i))
                _exit(10 + i);
        _exit(0);
    }
    areas_exercise(areas);
    areas_free(areas);
    CHECK(write(resume[1], "x", 1) == 1, "write");
    child_check(child, "a child that has written");
    close(resume[0]);
    close(resume[1]);
}

/* Bytes that share a page with a window and belong to other data: the allocator's and the program's
 * own. */
static void memory_next_to_a_window_is_as_at_the_fork_in_a_child(enum window_kind kind)
{
    int resume[2];
    (void)kind;
    char *area = pages_map(3 * PAGE);
    memset(area, GUARD, 3 * PAGE);
    MPI_Win win = window_over(area + PAGE + 500, 600);
    CHECK(pipe(resume) == 0, "pipe");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        char word;
        bool has_word = read(resume[0], &word, 1) == 1;
        _exit(!has_word ? 2
              : is_filled(area + PAGE, 500, GUARD) &&
                      is_filled(area + PAGE + 1100, PAGE - 1100, GUARD)
                  ? 0
                  : 3);
    }
    memset(area + PAGE, 1, 500);
    memset(area + PAGE + 1100, 1, PAGE - 1100);
    CHECK(write(resume[1], "x", 1) == 1, "write");
    child_check(child, "a child that reads next to the window");
    window_exercise(win, area + PAGE + 500, 600);
    MPI_Win_free(&win);
    close(resume[0]);
    close(resume[1]);
    munmap(area, 3 * PAGE);
}

static void a_child_may_free_and_reallocate_heap_memory(enum window_kind kind)
{
    enum { BLOCKS = 6, BLOCK_BYTES = 30000 };
    char *blocks[BLOCKS];
    MPI_Win wins[BLOCKS];
    (void)kind;
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BLOCK_BYTES);
        memset(blocks[i], i, BLOCK_BYTES);
        wins[i] = window_over(blocks[i], BLOCK_BYTES);
    }
    barrier(MPI_COMM_WORLD);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < BLOCKS; i++) {
            if (i % 2)
                blocks[i] = realloc(blocks[i], BLOCK_BYTES * 5);
            if (!is_filled(blocks[i], BLOCK_BYTES, i))
                _exit(10 + i);
            free(blocks[i]);
        }
        for (int i = 0; i < 100; i++) {
            char *fresh = calloc(1, 500 + 700 * (size_t)i);
            if (!is_filled(fresh, 500 + 700 * (size_t)i, 0))
                _exit(30);
            memset(fresh, 0x33, 500 + 700 * (size_t)i);
            if (i % 3)
                free(fresh);
        }
        _exit(0);
    }
    child_check(child, "a child that frees");
    for (int i = 0; i < BLOCKS; i++)
        CHECK(is_filled(blocks[i], BLOCK_BYTES, i), "block %d was changed by the child", i);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < BLOCKS; i++) {
        window_exercise(wins[i], blocks[i], BLOCK_BYTES);
        MPI_Win_free(&wins[i]);
        free(blocks[i]);
    }
}

/* --- cost --- */

static long private_dirty_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    while (file && fgets(line, sizeof line, file))
        sscanf(line, "Private_Dirty: %ld", &kib);
    if (file)
        fclose(file);
    return kib;
}

static void a_child_of_a_process_with_a_large_window_costs_no_copy(enum window_kind kind)
{
    const size_t len_bytes = (size_t)1 << 30, touched_bytes = (size_t)32 << 20;
    struct rusage before, after;
    (void)kind;
    char *area = pages_map(len_bytes + 2 * PAGE);
    madvise(area, len_bytes + 2 * PAGE, MADV_NOHUGEPAGE);
    memset(area + 500, 3, touched_bytes);
    MPI_Win win = window_over(area + 500, len_bytes);
    check_promoted(win, area + 500, len_bytes);
    barrier(MPI_COMM_WORLD);
    fflush(stdout);
    getrusage(RUSAGE_SELF, &before);
    pid_t child = fork();
    if (child == 0)
        _exit(private_dirty_kib() > 100000 ? 3 : is_filled(area + 500, touched_bytes, 3) ? 0 : 4);
    child_check(child, "a child that reads");
    pid_t other = fork();
    if (other == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    child_check(other, "a child that runs another program");
    getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_minflt - before.ru_minflt < 30000, "the parent took %ld page faults",
          after.ru_minflt - before.ru_minflt);
    CHECK(area[500 + touched_bytes / 2] == 3 && area[600 + touched_bytes] == 0,
          "the contents have changed");
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    munmap(area, len_bytes + 2 * PAGE);
}

/* --- children of all kinds while windows are made and freed --- */

static void run_programs(void)
{
    char text[64] = "";
    char *const arguments[] = {"true", NULL};
    pid_t child = -1;
    CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0, "posix_spawn");
    child_check(child, "posix_spawn");
    CHECK_EQUAL(system("exit 5") >> 8, 5);
    FILE *out = popen("echo from the child", "r");
    CHECK(out && fgets(text, sizeof text, out) && strcmp(text, "from the child\n") == 0,
          "popen gave \"%s\"", text);
    if (out)
        pclose(out);
    child = vfork();
    if (child == 0)
        _exit(0);
    child_check(child, "vfork");
}

static void programs_may_be_run_while_windows_are_open(enum window_kind kind)
{
    struct area areas[KINDS_OF_MEMORY];
    (void)kind;
    for (int turn = 0; turn < 3; turn++) {
        areas_make(areas);
        run_programs();
        areas_exercise(areas);
        run_programs();
        areas_free(areas);
        run_programs();
    }
}

static atomic_bool stop;
static atomic_int forked, failed_children;

static void *fork_all_the_time(void *context)
{
    const char *area = context;
    while (!atomic_load(&stop)) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(is_filled(area, 300, GUARD) && is_filled(area + AREA_BYTES - 300, 300, GUARD)
                      ? 0
                      : 1);
        if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
            atomic_fetch_add(&failed_children, 1);
        atomic_fetch_add(&forked, 1);
        sleep_us(2000);
    }
    return NULL;
}

static void a_thread_may_fork_while_windows_are_made_and_freed(enum window_kind kind)
{
    pthread_t thread;
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    memset(area, GUARD, AREA_BYTES);
    atomic_store(&stop, false);
    atomic_store(&forked, 0);
    atomic_store(&failed_children, 0);
    fflush(stdout);
    pthread_create(&thread, NULL, fork_all_the_time, area);
    int rounds = scaled_rounds(300);
    for (int64_t round = 0; round < rounds; round++) {
        MPI_Win win = window_over(area + 300, AREA_BYTES - 600);
        MPI_Win_lock(MPI_LOCK_SHARED, (world_rank + 1) % world_size, 0, win);
        for (int page = 0; page < 5; page++)
            MPI_Put(&round, 1, MPI_INT64_T, (world_rank + 1) % world_size, 100 + page * PAGE, 1,
                    MPI_INT64_T, win);
        MPI_Win_unlock((world_rank + 1) % world_size, win);
        MPI_Win_free(&win);
        for (int page = 0; page < 5; page++) {
            int64_t word;
            memcpy(&word, area + 400 + page * PAGE, sizeof word);
            CHECK_EQUAL(word, round);
        }
    }
    while (atomic_load(&forked) < 5)
        sleep_us(1000);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    CHECK_EQUAL(atomic_load(&failed_children), 0);
    munmap(area, AREA_BYTES);
}

/* --- memory of a thread's own arena --- */

enum { FIRST_BYTES = 600 };

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SANITISERS_MALLOC = 1 };
#else
enum { SANITISERS_MALLOC = 0 };
#endif

struct lender {
    pthread_barrier_t turn;
    char *memory;
};

/* Its first allocation is next to its arena's state, if malloc is glibc's; glibc reads that state
 * when the thread ends. */
static void *pass_memory(void *context)
{
    struct lender *lender = context;
    lender->memory = malloc(FIRST_BYTES);
    pthread_barrier_wait(&lender->turn);
    pthread_barrier_wait(&lender->turn);
    free(malloc(FIRST_BYTES));
    return NULL;
}

static void a_thread_whose_memory_is_a_window_ends_after_a_fork(enum window_kind kind)
{
    struct lender lender = {.memory = NULL};
    pthread_t thread;
    (void)kind;
    pthread_barrier_init(&lender.turn, NULL, 2);
    pthread_create(&thread, NULL, pass_memory, &lender);
    pthread_barrier_wait(&lender.turn);
    memset(lender.memory, GUARD, FIRST_BYTES);
    MPI_Win win = window_over(lender.memory, FIRST_BYTES);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(is_filled(lender.memory, FIRST_BYTES, GUARD) ? 0 : 1);
    child_check(child, "a child that has a thread's memory");
    pthread_barrier_wait(&lender.turn);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&lender.turn);
    window_exercise(win, lender.memory, FIRST_BYTES);
    MPI_Win_free(&win);
    free(lender.memory);
}

/* --- streams next to a window --- */

struct holder {
    pthread_barrier_t turn;
    FILE *stream;
};

static void *hold_stream(void *context)
{
    struct holder *holder = context;
    flockfile(holder->stream);
    pthread_barrier_wait(&holder->turn);
    pthread_barrier_wait(&holder->turn);
    funlockfile(holder->stream);
    return NULL;
}

/* Allocates until a block is next to a stream's lock, both from malloc; NULL if that never
 * happens. */
static char *block_next_to(FILE **stream)
{
    enum { TRIES = 64 };
    FILE *streams[TRIES];
    char *blocks[TRIES], *found = NULL;
    int count = 0;
    while (found == NULL && count < TRIES && (*stream = fopen("/dev/null", "w")) != NULL) {
        char *block = calloc(1, FIRST_BYTES);
        if ((uintptr_t)block / PAGE == (uintptr_t)(*stream)->_lock / PAGE) {
            found = block;
        } else {
            streams[count] = *stream;
            blocks[count++] = block;
        }
    }
    for (int i = 0; i < count; i++) {
        fclose(streams[i]);
        free(blocks[i]);
    }
    return found;
}

/* libc's fork releases the locks of all streams in the child. */
static void a_stream_next_to_a_window_stays_locked_in_a_fork(enum window_kind kind)
{
    struct holder holder;
    pthread_t thread;
    char *block = block_next_to(&holder.stream);
    (void)kind;
    if (block == NULL && SANITISERS_MALLOC) {
        harness_skip("the sanitiser separates sizes");
        return;
    }
    if (!CHECK(block != NULL, "no block of %d bytes is next to a stream", FIRST_BYTES))
        return;
    memset(block, GUARD, FIRST_BYTES);
    MPI_Win win = window_over(block, FIRST_BYTES);
    pthread_barrier_init(&holder.turn, NULL, 2);
    pthread_create(&thread, NULL, hold_stream, &holder);
    pthread_barrier_wait(&holder.turn);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(is_filled(block, FIRST_BYTES, GUARD) ? 0 : 1);
    child_check(child, "a child with a stream next to the window");
    bool is_free = ftrylockfile(holder.stream) == 0;
    CHECK(!is_free, "a stream that another thread has locked is free after a fork");
    pthread_barrier_wait(&holder.turn);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&holder.turn);
    window_exercise(win, block, FIRST_BYTES);
    MPI_Win_free(&win);
    free(block);
    if (!is_free)
        fclose(holder.stream);
}

static const struct test_case cases[] = {
    CASE(a_child_reads_the_contents_at_the_fork_and_writes_privately, KIND_ANY, 2),
    CASE(a_childs_pages_stay_its_own_while_peers_put, KIND_ANY, 2),
    CASE(memory_next_to_a_window_is_as_at_the_fork_in_a_child, KIND_ANY, 2),
    CASE(a_child_may_free_and_reallocate_heap_memory, KIND_ANY, 2),
    CASE(a_child_of_a_process_with_a_large_window_costs_no_copy, KIND_ANY, 2),
    CASE(programs_may_be_run_while_windows_are_open, KIND_ANY, 2),
    CASE(a_thread_may_fork_while_windows_are_made_and_freed, KIND_ANY, 2),
    CASE(a_thread_whose_memory_is_a_window_ends_after_a_fork, KIND_ANY, 2),
    CASE(a_stream_next_to_a_window_stays_locked_in_a_fork, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
