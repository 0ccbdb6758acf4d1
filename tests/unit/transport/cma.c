/* Copies by the kernel to and from another process: complete, partial, and after its end. The other
 * process is a child with one page mapped and a hole after it, at addresses that this process
 * knows. */
#include "transport/transport.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

enum { PAGE_BYTES = 4096, FILL = 0x5a };

static char *page; /* private: the child's copy is its own */

/* A child whose page is filled, with an unmapped page after it. */
static pid_t child_start(void)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    page = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        memset(page, FILL, PAGE_BYTES);
        munmap(page + PAGE_BYTES, PAGE_BYTES);
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void child_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    munmap(page, 2 * PAGE_BYTES);
}

static struct oriel_remote remote_at(pid_t pid, uint64_t offset_bytes)
{
    return (struct oriel_remote){.address = (uint64_t)(uintptr_t)page + offset_bytes, .pid = pid};
}

static void writes_are_read_back(void **state)
{
    (void)state;
    pid_t pid = child_start();
    char out[300];
    char in[300];
    memset(out, 1, sizeof out);
    struct oriel_remote there = remote_at(pid, 100);
    assert_int_equal(oriel_transport_cma.read(&there, in, sizeof in), ORIEL_OK);
    assert_int_equal(in[0], FILL);
    assert_int_equal(in[299], FILL);
    assert_int_equal(oriel_transport_cma.write(&there, out, sizeof out), ORIEL_OK);
    assert_int_equal(oriel_transport_cma.read(&there, in, sizeof in), ORIEL_OK);
    assert_memory_equal(in, out, sizeof in);
    there = remote_at(pid, 99);
    assert_int_equal(oriel_transport_cma.read(&there, in, 1), ORIEL_OK);
    assert_int_equal(in[0], FILL);
    there = remote_at(pid, 400);
    assert_int_equal(oriel_transport_cma.read(&there, in, 1), ORIEL_OK);
    assert_int_equal(in[0], FILL);
    assert_int_equal(page[100], 0); /* this process's own page is another one */
    child_end(pid);
}

static void nothing_moves_for_length_zero(void **state)
{
    (void)state;
    pid_t pid = child_start();
    struct oriel_remote there = remote_at(pid, PAGE_BYTES);
    char byte = 3;
    assert_int_equal(oriel_transport_cma.write(&there, &byte, 0), ORIEL_OK);
    assert_int_equal(oriel_transport_cma.read(&there, &byte, 0), ORIEL_OK);
    assert_int_equal(byte, 3);
    child_end(pid);
}

static void range_that_ends_in_a_hole_is_a_range_error(void **state)
{
    (void)state;
    pid_t pid = child_start();
    char buffer[PAGE_BYTES] = {0};
    struct oriel_remote there = remote_at(pid, PAGE_BYTES / 2);
    assert_int_equal(oriel_transport_cma.read(&there, buffer, PAGE_BYTES), ORIEL_E_RANGE);
    assert_int_equal(oriel_transport_cma.write(&there, buffer, PAGE_BYTES), ORIEL_E_RANGE);
    there = remote_at(pid, PAGE_BYTES);
    assert_int_equal(oriel_transport_cma.read(&there, buffer, 8), ORIEL_E_RANGE);
    there = (struct oriel_remote){.address = 0, .pid = pid};
    assert_int_equal(oriel_transport_cma.write(&there, buffer, 8), ORIEL_E_RANGE);
    child_end(pid);
}

static void dead_process_is_a_peer_error(void **state)
{
    (void)state;
    pid_t pid = child_start();
    char buffer[8] = {0};
    struct oriel_remote there = remote_at(pid, 0);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(oriel_transport_cma.read(&there, buffer, sizeof buffer), ORIEL_E_PEER);
    assert_non_null(strstr(oriel_fail_message(), "has died"));
    assert_int_equal(oriel_transport_cma.write(&there, buffer, sizeof buffer), ORIEL_E_PEER);
    munmap(page, 2 * PAGE_BYTES);
}

/* A zombie has no memory any more, but its id is still in use. */
static void zombie_is_an_error(void **state)
{
    (void)state;
    siginfo_t info;
    pid_t pid = child_start();
    char buffer[8] = {0};
    struct oriel_remote there = remote_at(pid, 0);
    kill(pid, SIGKILL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(oriel_transport_cma.read(&there, buffer, sizeof buffer), ORIEL_E_PEER);
    assert_int_equal(oriel_transport_cma.write(&there, buffer, sizeof buffer), ORIEL_E_PEER);
    child_end(pid);
}

/* One call for all stops early, and does not report where. */
static void piece_in_a_hole_is_a_range_error_and_those_before_it_arrive(void **state)
{
    (void)state;
    pid_t pid = child_start();
    char in[3][100] = {{0}};
    const struct oriel_piece pieces[] = {
        {.here = in[0], .len_bytes = 100, .offset_bytes = 7},
        {.here = in[1], .len_bytes = 100, .offset_bytes = PAGE_BYTES},
        {.here = in[2], .len_bytes = 100, .offset_bytes = 0},
    };
    struct oriel_remote there = remote_at(pid, 0);
    assert_int_equal(oriel_transport_cma.read_pieces(&there, pieces, 3), ORIEL_E_RANGE);
    assert_int_equal(in[0][99], FILL);
    assert_int_equal(in[1][0], 0);
    assert_int_equal(oriel_transport_cma.write_pieces(&there, pieces, 3), ORIEL_E_RANGE);
    child_end(pid);
}

/* More than the kernel gets in one call, so others need not wait for long. */
static void long_pieces_are_moved_alone(void **state)
{
    (void)state;
    enum { LONG_BYTES = 17 << 20, SHORT_BYTES = 5 };
    char *from = mmap(NULL, LONG_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *to = mmap(NULL, LONG_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(from != MAP_FAILED && to != MAP_FAILED);
    const struct oriel_piece pieces[] = {
        {.here = to, .len_bytes = SHORT_BYTES, .offset_bytes = 0},
        {.here = to + SHORT_BYTES, .len_bytes = LONG_BYTES, .offset_bytes = SHORT_BYTES},
    };
    struct oriel_remote there = {.address = (uint64_t)(uintptr_t)from, .pid = getpid()};
    memset(from, FILL, LONG_BYTES + SHORT_BYTES);
    assert_int_equal(oriel_transport_cma.read_pieces(&there, pieces, 2), ORIEL_OK);
    assert_memory_equal(to, from, LONG_BYTES + PAGE_BYTES); /* and nothing after them */
    munmap(from, LONG_BYTES + PAGE_BYTES);
    munmap(to, LONG_BYTES + PAGE_BYTES);
}

static void more_pieces_than_the_kernel_accepts_are_refused(void **state)
{
    (void)state;
    enum { TOO_MANY = 1025 };
    static const struct oriel_piece pieces[TOO_MANY];
    struct oriel_remote there = {.pid = getpid()};
    assert_int_equal(oriel_transport_cma.read_pieces(&there, pieces, TOO_MANY), ORIEL_E_OTHER);
    assert_non_null(strstr(oriel_fail_message(), "1025 pieces"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_are_read_back),
        cmocka_unit_test(nothing_moves_for_length_zero),
        cmocka_unit_test(range_that_ends_in_a_hole_is_a_range_error),
        cmocka_unit_test(dead_process_is_a_peer_error),
        cmocka_unit_test(zombie_is_an_error),
        cmocka_unit_test(piece_in_a_hole_is_a_range_error_and_those_before_it_arrive),
        cmocka_unit_test(long_pieces_are_moved_alone),
        cmocka_unit_test(more_pieces_than_the_kernel_accepts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
