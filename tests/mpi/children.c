/* Rights of a rank's forked child with windows and their memory. Its MPI calls fail with
 * MPI_ERR_OTHER and end no process. Its writes are private, except to memory of
 * MPI_Win_allocate_shared; the parent's windows continue to work. A plain MPI program, run by the
 * test rows. */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 40000 }; /* of a rank's memory: whole pages, and pages shared with other data */

static int64_t *words_of(const struct window *window)
{
    return (int64_t *)window->base;
}

/* A child that waits for a command to continue: both ends of two pipes. */
struct child {
    pid_t pid;
    int to_child[2];
    int to_parent[2];
};

static bool signal_end(int end)
{
    return write(end, "", 1) == 1;
}

static bool await_end(int end)
{
    char byte;
    return read(end, &byte, 1) == 1;
}

/* Returns true in the child. */
static bool child_fork(struct child *child)
{
    if (!CHECK(pipe(child->to_child) == 0 && pipe(child->to_parent) == 0, "no pipe"))
        MPI_Abort(MPI_COMM_WORLD, 1);
    fflush(stdout);
    child->pid = fork();
    if (child->pid != 0)
        return false;
    close(child->to_child[1]); /* the child then notices when the parent's end closes */
    close(child->to_parent[0]);
    return true;
}

static void child_ends_with(struct child *child, int wanted)
{
    int status = -1;
    CHECK(child->pid > 0 && waitpid(child->pid, &status, 0) == child->pid,
          "fork or waitpid failed: %s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        close(child->to_child[i]);
        close(child->to_parent[i]);
    }
    int got = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    CHECK_EQUAL(got, wanted);
}

static void calls_in_a_child_fail_without_harm(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    struct child child;
    long value = 7;
    MPI_Win_lock_all(0, window.win);
    if (child_fork(&child)) {
        MPI_Win other;
        void *base;
        int failed = 0;
        failed += MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win) == MPI_ERR_OTHER;
        failed += MPI_Win_flush(0, window.win) == MPI_ERR_OTHER;
        failed += MPI_Win_unlock_all(window.win) == MPI_ERR_OTHER;
        failed +=
            MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &base, &other) == MPI_ERR_OTHER;
        _exit(failed);
    }
    child_ends_with(&child, 4);
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, world_rank, 0, 1, MPI_LONG, window.win));
    CHECK_OK(MPI_Win_unlock_all(window.win));
    CHECK_EQUAL(*(long *)window.base, 7);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* All of a neighbour's words have the value. */
static void neighbour_has(const struct window *window, int64_t value)
{
    static int64_t seen[WORDS];
    int target = (world_rank + 1) % world_size;
    memset(seen, 0xff, sizeof seen);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window->win);
    MPI_Get(seen, WORDS, MPI_INT64_T, target, 0, WORDS, MPI_INT64_T, window->win);
    MPI_Win_unlock(target, window->win);
    for (int i = 0; i < WORDS; i++)
        if (!CHECK_EQUAL(seen[i], value))
            return;
}

static void neighbour_fill(const struct window *window, int64_t value)
{
    static int64_t words[WORDS];
    int target = (world_rank + 1) % world_size;
    for (int i = 0; i < WORDS; i++)
        words[i] = value;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window->win);
    MPI_Put(words, WORDS, MPI_INT64_T, target, 0, WORDS, MPI_INT64_T, window->win);
    MPI_Win_unlock(target, window->win);
}

static void own_has(const struct window *window, int64_t value)
{
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window->win);
    for (int i = 0; i < WORDS; i++)
        if (!CHECK_EQUAL(words_of(window)[i], value))
            break;
    MPI_Win_unlock(world_rank, window->win);
}

/* Writes everywhere while the parents continue; later reads return its own writes. */
static void child_of_its_own(const struct child *child, int64_t *words)
{
    bool right = true;
    for (int i = 0; i < WORDS; i++)
        words[i] = 100 + i;
    right = signal_end(child->to_parent[1]) && await_end(child->to_child[0]);
    for (int i = 0; i < WORDS; i++)
        right = right && words[i] == 100 + i;
    _exit(right ? 0 : 1);
}

static void writes_of_a_child_are_its_own(enum window_kind kind)
{
    struct window window =
        window_make(kind, WORDS * (MPI_Aint)sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    struct child child;
    if (child_fork(&child))
        child_of_its_own(&child, words_of(&window));
    CHECK(await_end(child.to_parent[0]), "the child has ended");
    barrier(MPI_COMM_WORLD);
    own_has(&window, 0);
    neighbour_has(&window, 0);
    barrier(MPI_COMM_WORLD);
    neighbour_fill(&window, 5); /* the parents share as before */
    barrier(MPI_COMM_WORLD);
    own_has(&window, 5);
    neighbour_has(&window, 5);
    CHECK(signal_end(child.to_child[1]), "the child has ended");
    child_ends_with(&child, 0);
    barrier(MPI_COMM_WORLD);
    own_has(&window, 5);
    window_free(&window);
}

/* A child that writes on command and sees the writes of parents and peers. */
static void child_that_shares(const struct child *child, int64_t *words)
{
    bool right = await_end(child->to_child[0]);
    for (int i = 0; i < WORDS; i++)
        right = right && words[i] == 6;
    for (int i = 0; i < WORDS; i++)
        words[i] = 7;
    _exit(right ? 0 : 1);
}

static void shared_memory_in_a_child(const char *noncontig)
{
    struct window window = {MPI_WIN_NULL, NULL, KIND_SHARED};
    struct child child;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "alloc_shared_noncontig", noncontig);
    CHECK_OK(MPI_Win_allocate_shared(WORDS * (MPI_Aint)sizeof(int64_t), sizeof(int64_t), info,
                                     MPI_COMM_WORLD, &window.base, &window.win));
    MPI_Info_free(&info);
    window_watch(window.win);
    memset(window.base, 0, WORDS * sizeof(int64_t));
    barrier(MPI_COMM_WORLD);
    if (child_fork(&child))
        child_that_shares(&child, words_of(&window));
    barrier(MPI_COMM_WORLD);
    neighbour_fill(&window, 6);
    barrier(MPI_COMM_WORLD);
    CHECK(signal_end(child.to_child[1]), "the child has ended");
    child_ends_with(&child, 0);
    barrier(MPI_COMM_WORLD);
    own_has(&window, 7);
    neighbour_has(&window, 7);
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&window.win);
}

static void shared_memory_is_shared_with_a_child(enum window_kind kind)
{
    (void)kind;
    shared_memory_in_a_child("false");
    shared_memory_in_a_child("true");
}

static void memory_freed_in_a_child_still_exists_in_the_parent(enum window_kind kind)
{
    struct window window =
        window_make(kind, WORDS * (MPI_Aint)sizeof(int64_t), sizeof(int64_t), MPI_COMM_WORLD);
    struct child child;
    neighbour_fill(&window, 8);
    barrier(MPI_COMM_WORLD);
    if (child_fork(&child))
        _exit(MPI_Free_mem(window.base) == MPI_SUCCESS ? 0 : 1);
    child_ends_with(&child, 0);
    barrier(MPI_COMM_WORLD);
    own_has(&window, 8);
    neighbour_has(&window, 8);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Memory, in KiB, that the process alone maps from a memory file. */
static long own_kib(void)
{
    char line[512];
    long kib = 0, value;
    bool inside = false;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    while (smaps && fgets(line, sizeof line, smaps)) {
        unsigned long low, high;
        if (sscanf(line, "%lx-%lx ", &low, &high) == 2)
            inside = strstr(line, "memfd:") != NULL;
        else if (inside && sscanf(line, "Anonymous: %ld", &value) == 1)
            kib += value;
    }
    if (smaps)
        fclose(smaps);
    return kib;
}

static void child_of_a_large_window_copies_nothing(enum window_kind kind)
{
    MPI_Aint size_bytes = (MPI_Aint)4 << 30, step_bytes = (MPI_Aint)64 << 20;
    struct child child;
    char *base = NULL;
    MPI_Win win = MPI_WIN_NULL;
    (void)kind;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int made = MPI_Win_allocate(size_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (made != MPI_SUCCESS) {
        harness_skip("no room for 4 GiB of address space and memory on each rank");
        return;
    }
    for (MPI_Aint at = 0; at < size_bytes; at += step_bytes)
        base[at] = 1;
    if (child_fork(&child)) {
        if (own_kib() > 64)
            _exit(1);
        for (int i = 0; i < 2; i++)
            base[i * step_bytes] = 2; /* two private pages */
        if (own_kib() > 64)
            _exit(2);
        execl("/bin/true", "true", (char *)NULL);
        _exit(errno == ENOENT ? 0 : 3);
    }
    child_ends_with(&child, 0);
    for (MPI_Aint at = 0; at < size_bytes; at += step_bytes)
        CHECK_EQUAL(base[at], 1);
    MPI_Win_free(&win);
}

static const struct test_case cases[] = {
    CASE(calls_in_a_child_fail_without_harm, KIND_ALLOCATE, 1),
    CASE(writes_of_a_child_are_its_own, KIND_ALLOCATE | KIND_ARENA | KIND_HEAP, 1),
    CASE(shared_memory_is_shared_with_a_child, KIND_ONE_NODE, 1),
    CASE(memory_freed_in_a_child_still_exists_in_the_parent, KIND_ARENA, 1),
    CASE(child_of_a_large_window_copies_nothing, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
