/* Memory that programs and allocators discard (MADV_DONTNEED) reads as zeros afterwards: memory of
 * an open window, memory that had to stay shared after its window, and memory of a forked child.
 * Also with a preloaded allocator whose calloc relies on it. A plain MPI program, run by the test
 * rows. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK_BYTES = 256 << 10, AREA_BYTES = 16 * PAGE, CALLOCS = 12 };

static size_t count_others(const char *memory, size_t len_bytes, char value)
{
    size_t count = 0;
    for (size_t i = 0; i < len_bytes; i++)
        count += memory[i] != value;
    return count;
}

/* Counts nonzero bytes in blocks from calloc. Before that, the allocator has time and reason to
 * purge. */
static size_t calloc_dirt(size_t len_bytes)
{
    size_t dirt = 0;
    char *blocks[CALLOCS];
    for (int i = 0; i < 200; i++)
        free(malloc(1 << 14));
    malloc_trim(0);
    for (int i = 0; i < CALLOCS; i++) {
        blocks[i] = calloc(1, len_bytes);
        dirt += count_others(blocks[i], len_bytes, 0);
    }
    for (int i = 0; i < CALLOCS; i++)
        free(blocks[i]);
    return dirt;
}

/* --- conditions that keep memory shared after its window --- */

enum hindrance {
    HINDRANCE_RING,
    HINDRANCE_DIRECT,
    HINDRANCE_WAITER,
    HINDRANCE_BLOCKER,
    HINDRANCES
};

static const char *const names[] = {"an io_uring ring", "an O_DIRECT file", "a thread in sigwait",
                                    "a thread that blocks signals"};

struct hindrance_now {
    enum hindrance what;
    int fd;
    pthread_t thread;
    bool has_thread;
};

/* The thread inherits the blocked signal, which must not come before it is blocked. */
static void *wait_for_signal(void *set)
{
    int got;
    sigwait(set, &got);
    return NULL;
}

static int pipe_ends[2]; /* the blocker reads */

static void *block_signals(void *unused)
{
    (void)unused;
    char word;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return read(pipe_ends[0], &word, 1) == 1 ? NULL : pipe_ends;
}

static int open_direct(void)
{
    char path[] = "/tmp/oriel-advice-XXXXXX";
    int plain = mkstemp(path);
    int fd = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
    unlink(path);
    close(plain);
    return fd;
}

static struct hindrance_now hinder(enum hindrance what)
{
    struct io_uring_params parameters = {.flags = 0};
    struct hindrance_now now = {.what = what, .fd = -1};
    if (what == HINDRANCE_RING)
        now.fd = (int)syscall(SYS_io_uring_setup, 4, &parameters); /* some kernels lack it */
    if (what == HINDRANCE_DIRECT)
        now.fd = open_direct();
    if (what == HINDRANCE_BLOCKER)
        CHECK(pipe(pipe_ends) == 0, "pipe: %s", strerror(errno));
    if (what == HINDRANCE_WAITER || what == HINDRANCE_BLOCKER) {
        void *(*body)(void *) = what == HINDRANCE_WAITER ? wait_for_signal : block_signals;
        static sigset_t set;
        sigset_t before;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR2);
        pthread_sigmask(SIG_BLOCK, &set, &before);
        now.has_thread = CHECK(pthread_create(&now.thread, NULL, body, &set) == 0, "no thread");
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        usleep(10000);
    }
    return now;
}

static void hinder_no_more(struct hindrance_now *now)
{
    if (now->fd >= 0)
        close(now->fd);
    if (now->what == HINDRANCE_WAITER)
        pthread_kill(now->thread, SIGUSR2);
    if (now->what == HINDRANCE_BLOCKER)
        CHECK(write(pipe_ends[1], "\n", 1) == 1, "write: %s", strerror(errno));
    if (now->has_thread)
        pthread_join(now->thread, NULL);
    if (now->what == HINDRANCE_BLOCKER) {
        close(pipe_ends[0]);
        close(pipe_ends[1]);
    }
}

static void freed_memory_is_zero_when_reused(enum window_kind kind)
{
    (void)kind;
    for (enum hindrance what = 0; what < HINDRANCES; what++) {
        char *memory = malloc(BLOCK_BYTES);
        memset(memory, 7, BLOCK_BYTES);
        MPI_Win win = window_over(memory, BLOCK_BYTES);
        struct hindrance_now now = hinder(what);
        MPI_Win_free(&win);
        CHECK(count_others(memory, BLOCK_BYTES, 7) == 0, "%s: the contents have changed",
              names[what]);
        free(memory);
        CHECK_EQUAL(calloc_dirt(BLOCK_BYTES), 0);
        hinder_no_more(&now);
        barrier(MPI_COMM_WORLD);
    }
}

static void pages_given_up_after_the_window_are_zero(enum window_kind kind)
{
    (void)kind;
    for (enum hindrance what = 0; what < HINDRANCES; what++) {
        char *area = pages_map(AREA_BYTES);
        memset(area, 7, AREA_BYTES);
        MPI_Win win = window_over(area, AREA_BYTES);
        struct hindrance_now now = hinder(what);
        MPI_Win_free(&win);
        CHECK(madvise(area + PAGE, 3 * PAGE, MADV_DONTNEED) == 0, "madvise: %s", strerror(errno));
        CHECK(count_others(area + PAGE, 3 * PAGE, 0) == 0, "%s: MADV_DONTNEED leaves contents",
              names[what]);
        CHECK(count_others(area + 4 * PAGE, AREA_BYTES - 4 * PAGE, 7) == 0,
              "%s: neighbouring pages have changed", names[what]);
        CHECK(posix_madvise(area, AREA_BYTES, POSIX_MADV_DONTNEED) == 0 && area[0] == 7,
              "posix_madvise frees nothing");
        CHECK(madvise(area, AREA_BYTES, MADV_FREE) == 0, "MADV_FREE: %s", strerror(errno));
        CHECK(madvise(area, AREA_BYTES, MADV_REMOVE) != 0 && errno == EINVAL,
              "MADV_REMOVE of private memory");
        hinder_no_more(&now);
        munmap(area, AREA_BYTES);
        barrier(MPI_COMM_WORLD);
    }
}

/* The memory file continues with another window's pages. libc grows blocks that are mappings of
 * their own, also after it has shrunk them. */
static void a_reallocated_block_is_not_lengthened_into_other_windows(enum window_kind kind)
{
    (void)kind;
    mallopt(M_MMAP_THRESHOLD, BLOCK_BYTES / 2);
    for (int turn = 0; turn < 2 * HINDRANCES; turn++) {
        enum hindrance what = turn % HINDRANCES;
        size_t first_bytes = turn < HINDRANCES ? BLOCK_BYTES : BLOCK_BYTES / 2;
        char *memory = malloc(BLOCK_BYTES), *other = malloc(BLOCK_BYTES);
        memset(memory, 7, BLOCK_BYTES);
        memset(other, 9, BLOCK_BYTES);
        MPI_Win win = window_over(memory, BLOCK_BYTES), other_win = window_over(other, BLOCK_BYTES);
        struct hindrance_now now = hinder(what);
        MPI_Win_free(&win);
        memory = realloc(memory, first_bytes);
        memory = realloc(memory, 4 * BLOCK_BYTES);
        CHECK(count_others(memory, first_bytes, 7) == 0, "%s: realloc loses contents", names[what]);
        memset(memory, 5, 4 * BLOCK_BYTES);
        CHECK(count_others(other, BLOCK_BYTES, 9) == 0, "%s: the other window has changed",
              names[what]);
        MPI_Win_free(&other_win);
        hinder_no_more(&now);
        free(memory);
        free(other);
        barrier(MPI_COMM_WORLD);
    }
}

/* A part of a range, of one page. */
static void a_page_is_not_lengthened_into_the_next_part_of_the_file(enum window_kind kind)
{
    (void)kind;
    for (enum hindrance what = 0; what < HINDRANCES; what++) {
        char *area = pages_map(AREA_BYTES), *other = pages_map(AREA_BYTES);
        memset(area, 7, AREA_BYTES);
        memset(other, 9, AREA_BYTES);
        MPI_Win win = window_over(area, AREA_BYTES), other_win = window_over(other, AREA_BYTES);
        struct hindrance_now now = hinder(what);
        MPI_Win_free(&win);
        char *longer = mremap(area, PAGE, 2 * AREA_BYTES, MREMAP_MAYMOVE);
        if (longer != MAP_FAILED) {
            CHECK(count_others(longer, PAGE, 7) == 0, "%s: mremap loses contents", names[what]);
            CHECK(count_others(longer + PAGE, 2 * AREA_BYTES - PAGE, 0) == 0,
                  "%s: the new part is not zero", names[what]);
            memset(longer, 5, 2 * AREA_BYTES);
            munmap(longer, 2 * AREA_BYTES);
        } else {
            CHECK(errno == EFAULT, "%s: mremap: %s", names[what], strerror(errno));
        }
        CHECK(count_others(other, AREA_BYTES, 9) == 0, "%s: the other window has changed",
              names[what]);
        MPI_Win_free(&other_win);
        hinder_no_more(&now);
        munmap(area, AREA_BYTES);
        munmap(other, AREA_BYTES);
        barrier(MPI_COMM_WORLD);
    }
}

/* Its heap does not use the program break, and libc trims it without a hook. */
static void *use_arena(void *context)
{
    char **blocks = context;
    for (int i = 0; i < CALLOCS; i++) {
        blocks[i] = malloc(AREA_BYTES);
        memset(blocks[i], 7, AREA_BYTES);
    }
    return NULL;
}

static void *free_arena(void *context)
{
    char **blocks = context;
    for (int i = CALLOCS - 1; i >= 0; i--)
        free(blocks[i]);
    return calloc_dirt(AREA_BYTES) == 0 ? NULL : context;
}

static void trimmed_heaps_of_threads_are_zero(enum window_kind kind)
{
    (void)kind;
    for (enum hindrance what = 0; what < HINDRANCES; what++) {
        pthread_t thread;
        MPI_Win wins[CALLOCS];
        char *blocks[CALLOCS];
        void *dirty = blocks;
        CHECK(pthread_create(&thread, NULL, use_arena, blocks) == 0 &&
                  pthread_join(thread, NULL) == 0,
              "no thread");
        for (int i = 0; i < CALLOCS; i++)
            wins[i] = window_over(blocks[i], AREA_BYTES);
        struct hindrance_now now = hinder(what);
        for (int i = 0; i < CALLOCS; i++)
            MPI_Win_free(&wins[i]);
        CHECK(pthread_create(&thread, NULL, free_arena, blocks) == 0 &&
                  pthread_join(thread, &dirty) == 0,
              "no thread");
        CHECK(dirty == NULL, "%s: calloc returns dirty memory", names[what]);
        hinder_no_more(&now);
        barrier(MPI_COMM_WORLD);
    }
}

/* --- while the window is open --- */

static void pages_given_up_in_an_open_window_are_zero_for_all(enum window_kind kind)
{
    (void)kind;
    int target = (world_rank + 1) % world_size;
    char *area = pages_map(AREA_BYTES), got[2];
    memset(area, 7, AREA_BYTES);
    MPI_Win win = window_over(area, AREA_BYTES);
    check_promoted(win, area, AREA_BYTES);
    for (int round = 0; round < 3; round++) {
        barrier(MPI_COMM_WORLD);
        CHECK(madvise(area + (1 + round) * PAGE, PAGE, MADV_DONTNEED) == 0, "madvise: %s",
              strerror(errno));
        CHECK(count_others(area + (1 + round) * PAGE, PAGE, 0) == 0,
              "MADV_DONTNEED leaves contents");
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        MPI_Get(&got[0], 1, MPI_BYTE, target, (1 + round) * PAGE, 1, MPI_BYTE, win);
        MPI_Get(&got[1], 1, MPI_BYTE, target, (2 + round) * PAGE, 1, MPI_BYTE, win);
        MPI_Win_unlock(target, win);
        CHECK(got[0] == 0 && got[1] == 7, "a neighbour reads %d and %d", got[0], got[1]);
    }
    barrier(MPI_COMM_WORLD);
    window_exercise(win, area, AREA_BYTES);
    MPI_Win_free(&win);
    munmap(area, AREA_BYTES);
}

/* --- children --- */

/* Returns 0, or the number of the failed check. */
static int discard_in_child(char *area, char *memory)
{
    if (madvise(area, AREA_BYTES / 2, MADV_DONTNEED) != 0 ||
        count_others(area, AREA_BYTES / 2, 0) != 0)
        return 1;
    if (count_others(area + AREA_BYTES / 2, AREA_BYTES / 2, 7) != 0)
        return 2;
    memset(area, 3, AREA_BYTES);
    if (madvise(area, AREA_BYTES, MADV_DONTNEED) != 0 || count_others(area, AREA_BYTES, 0) != 0)
        return 3;
    free(memory);
    return calloc_dirt(BLOCK_BYTES) == 0 ? 0 : 4;
}

static void a_child_gets_zeroes_and_its_parent_has_its_memory(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(AREA_BYTES), *memory = malloc(BLOCK_BYTES);
    memset(area, 7, AREA_BYTES);
    memset(memory, 7, BLOCK_BYTES);
    MPI_Win win = window_over(area, AREA_BYTES), second = window_over(memory, BLOCK_BYTES);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        int status = 0;
        if (grandchild == 0)
            _exit(discard_in_child(area, memory));
        if (waitpid(grandchild, &status, 0) != grandchild || status != 0)
            _exit(9);
        _exit(discard_in_child(area, memory));
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no child: %s", strerror(errno));
    CHECK(status == 0, "the child's status is %#x", status);
    CHECK(count_others(area, AREA_BYTES, 7) == 0 && count_others(memory, BLOCK_BYTES, 7) == 0,
          "the child has changed its parent");
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&second);
    MPI_Win_free(&win);
    free(memory);
    munmap(area, AREA_BYTES);
}

static const struct test_case cases[] = {
    CASE(freed_memory_is_zero_when_reused, KIND_ANY, 2),
    CASE(pages_given_up_after_the_window_are_zero, KIND_ANY, 2),
    CASE(a_reallocated_block_is_not_lengthened_into_other_windows, KIND_ANY, 2),
    CASE(a_page_is_not_lengthened_into_the_next_part_of_the_file, KIND_ANY, 2),
    CASE(trimmed_heaps_of_threads_are_zero, KIND_ANY, 2),
    CASE(pages_given_up_in_an_open_window_are_zero_for_all, KIND_ANY, 2),
    CASE(a_child_gets_zeroes_and_its_parent_has_its_memory, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
