/* Children that outlive the windows of the process that forked them. They read the contents as of
 * the latest MPI_Win_free, whatever the parent does with its memory afterwards. The memory that
 * they held is released when they end. A plain MPI program, run by the test rows. */
#define _GNU_SOURCE
#include "memory_file.h"
#include "memory_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LARGE_KIB = 8 << 10,
    LARGE_BYTES = LARGE_KIB << 10,
    AREA_BYTES = 20 * PAGE,
    BEFORE = 7,
    AFTER = 9
};

/* A child that waits for a word of its parent. */
struct child {
    pid_t pid;
    int resume[2];
};

static bool is_filled(const char *memory, size_t len_bytes, int value)
{
    for (size_t i = 0; i < len_bytes; i++)
        if (memory[i] != value)
            return false;
    return true;
}

static bool child_prepare(struct child *child)
{
    fflush(stdout);
    return CHECK(pipe(child->resume) == 0, "pipe: %s", strerror(errno));
}

static void child_await(const struct child *child)
{
    char word;
    close(child->resume[1]);
    if (read(child->resume[0], &word, 1) != 1)
        _exit(2);
}

static void child_resume(const struct child *child, const char *what)
{
    int status = -1;
    CHECK(write(child->resume[1], "\n", 1) == 1, "write: %s", strerror(errno));
    close(child->resume[0]);
    close(child->resume[1]);
    CHECK(child->pid > 0 && waitpid(child->pid, &status, 0) == child->pid, "%s: no child: %s", what,
          strerror(errno));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: the child's status is %#x", what,
          status);
}

/* Makes and frees other windows, over other memory, with contents of their own. Returns whether any
 * of it was promoted. */
static bool use_other_windows(size_t len_bytes)
{
    bool promoted = false;
    char *other = pages_map(len_bytes);
    memset(other, 3, len_bytes);
    for (int i = 0; i < 3; i++) {
        MPI_Win win = window_over(other, len_bytes);
        memset(other, 4 + i, len_bytes);
        barrier(MPI_COMM_WORLD);
        window_exercise(win, other, len_bytes);
        promoted = promoted || is_promoted(win);
        MPI_Win_free(&win);
    }
    munmap(other, len_bytes);
    return promoted;
}

/* Whole pages, parts of pages, and two windows of which one stays open. */
static void a_child_preserves_inherited_memory_when_windows_are_freed(enum window_kind kind)
{
    static const size_t begins[] = {0, 100, 5000},
                        lengths[] = {AREA_BYTES, AREA_BYTES - 300, 10 * PAGE};
    (void)kind;
    for (int sort = 0; sort < 3; sort++) {
        struct child child;
        char *area = pages_map(AREA_BYTES);
        memset(area, BEFORE, AREA_BYTES);
        MPI_Win win = window_over(area + begins[sort], lengths[sort]);
        MPI_Win second = window_over(area + 2 * PAGE, 4 * PAGE);
        if (!child_prepare(&child))
            return;
        child.pid = fork();
        if (child.pid == 0) {
            child_await(&child);
            _exit(is_filled(area, AREA_BYTES, BEFORE) ? 0 : 3);
        }
        MPI_Win_free(&win);
        MPI_Win_free(&second);
        memset(area, AFTER, AREA_BYTES);
        use_other_windows(AREA_BYTES);
        child_resume(&child, "a child that reads late");
        CHECK(is_filled(area, AREA_BYTES, AFTER), "the parent's memory has changed");
        munmap(area, AREA_BYTES);
    }
}

/* Between the fork and the end of the window the child may see either. */
static void a_child_reads_old_or_new_contents_and_nothing_else(enum window_kind kind)
{
    struct child child;
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    memset(area, BEFORE, AREA_BYTES);
    MPI_Win win = window_over(area, AREA_BYTES);
    if (!child_prepare(&child))
        return;
    child.pid = fork();
    if (child.pid == 0) {
        child_await(&child);
        for (size_t i = 0; i < AREA_BYTES; i++)
            if (area[i] != BEFORE && area[i] != AFTER)
                _exit(3);
        _exit(0);
    }
    memset(area, AFTER, AREA_BYTES);
    MPI_Win_free(&win);
    memset(area, 1, AREA_BYTES);
    use_other_windows(AREA_BYTES);
    child_resume(&child, "a child that reads late");
    munmap(area, AREA_BYTES);
}

/* Returns when the other program runs. */
static pid_t child_that_waits(const struct child *child, bool by_another_program)
{
    int running[2];
    char none;
    if (!CHECK(pipe2(running, O_CLOEXEC) == 0, "pipe: %s", strerror(errno)))
        return -1;
    pid_t pid = fork();
    if (pid != 0) {
        close(running[1]);
        if (by_another_program)
            CHECK(read(running[0], &none, 1) == 0, "a word from nowhere");
        close(running[0]);
        return pid;
    }
    if (by_another_program) {
        dup2(child->resume[0], 0);
        execl("/bin/sh", "sh", "-c", "read word", (char *)NULL);
        _exit(127);
    }
    child_await(child);
    _exit(0);
}

/* The memory is released while the child lives if it executes another program, which does not
 * access that memory; otherwise after its end. */
static void memory_of_ended_children_is_released(enum window_kind kind)
{
    (void)kind;
    for (int by_another_program = 0; by_another_program < 2; by_another_program++) {
        struct child child;
        char *area = pages_map(LARGE_BYTES);
        memset(area, BEFORE, LARGE_BYTES);
        use_other_windows(AREA_BYTES);
        long before_kib = memory_file_kib();
        MPI_Win win = window_over(area, LARGE_BYTES);
        bool promoted = is_promoted(win);
        if (!child_prepare(&child))
            return;
        child.pid = child_that_waits(&child, by_another_program);
        MPI_Win_free(&win);
        if (promoted && !by_another_program)
            CHECK(memory_file_kib() - before_kib >=
                      LARGE_KIB / 2, /* memory of other windows may be released meanwhile */
                  "the child's pages are missing from the memory file");
        if (!by_another_program)
            child_resume(&child, "a child that waits");
        if (use_other_windows(AREA_BYTES)) /* else no promotion has checked the child's memory */
            CHECK(memory_file_kib() - before_kib < LARGE_KIB / 2,
                  "%ld KiB are left in the memory file", memory_file_kib() - before_kib);
        if (by_another_program)
            child_resume(&child, "a child that runs a program");
        munmap(area, LARGE_BYTES);
    }
}

static const struct test_case cases[] = {
    CASE(a_child_preserves_inherited_memory_when_windows_are_freed, KIND_ANY, 2),
    CASE(a_child_reads_old_or_new_contents_and_nothing_else, KIND_ANY, 2),
    CASE(memory_of_ended_children_is_released, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
