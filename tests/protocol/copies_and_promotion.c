/* Copies by the kernel (src/transport/cma/) and by the target's agent, into pages that are promoted
 * and demoted continuously. No write of any length is lost, and a page move never waits for long.
 * Rank 0 is the target; the others write into separate parts. */
#include "make_window.h"

#include "memory/agent_area.h"
#include "memory/promote/promote.h"
#include "transport/remote_writers.h"
#include "transport/transport.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { PART_BYTES = 512 << 10, PIECES = 20 };

static enum oriel_barrier_method means;
static const struct oriel_transport *by;
static bool only_reads;
static struct oriel_remote_writers *writers_of_target;

/* The part that this rank writes. */
static struct oriel_remote part_of(const struct oriel_window *window)
{
    struct oriel_peer *peer = window->group->peers[0];
    writers_of_target = oriel_file_remote_writers(peer->base);
    return (struct oriel_remote){
        .address = window_memory(window, 0)[0] + (uint64_t)(window->rank - 1) * PART_BYTES,
        .pid = peer->identity.pid,
        .agent = by == &oriel_transport_agent ? oriel_agent_of(peer) : NULL,
        .writers = writers_of_target};
}

/* Instead of the C library's: the kernel copies only while this process owns a slot of the target
 * (E4 in remote_writers.h). A move that begins then does not end before; it may only give up, after
 * 100 ms. Some copies take long enough for that. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count,
                          const struct iovec *remote, unsigned long remote_count,
                          unsigned long flags)
{
    const _Atomic uint32_t *moving = &writers_of_target->moving.value;
    const uint64_t begin_ns = oriel_now_ns();
    const uint32_t before = atomic_load(moving);
    bool is_owner = false;
    for (int i = 0; i < ORIEL_REMOTE_WRITERS_SLOTS; i++)
        is_owner = is_owner ||
                   atomic_load(&writers_of_target->slots[i].owner) == oriel_identity_own_word();
    team_expect(is_owner);
    bool is_long = team_random() % 4 == 0;
    while (is_long && atomic_load(moving) == before && oriel_now_ns() - begin_ns < 5000000)
        sched_yield();
    if (is_long && atomic_load(moving) != before)
        usleep(1000);
    long moved =
        syscall(SYS_process_vm_writev, (long)pid, local, local_count, remote, remote_count, flags);
    bool has_ended = before % 2 == 0 && atomic_load(moving) - before >= 2;
    team_expect(!has_ended || oriel_now_ns() - begin_ns > 50000000);
    return moved;
}

static void fill(uint64_t *words, uint64_t len_bytes)
{
    uint64_t first = team_random();
    for (uint64_t i = 0; i < len_bytes / sizeof *words; i++)
        words[i] = first + i;
}

/* Long writes pin their pages for long. */
static void write_and_look(const struct oriel_remote *there, uint64_t *out, uint64_t *in)
{
    static const uint64_t lengths[] = {8, 4096, 40960, PART_BYTES};
    uint64_t len_bytes = lengths[team_random() % 4];
    fill(out, len_bytes);
    team_expect(by->write(there, out, len_bytes) == ORIEL_OK);
    team_expect(by->read(there, in, len_bytes) == ORIEL_OK);
    team_expect(memcmp(out, in, len_bytes) == 0);
}

static void write_pieces_and_look(const struct oriel_remote *there, uint64_t *out, uint64_t *in)
{
    struct oriel_piece pieces[PIECES];
    uint64_t step_bytes = PART_BYTES / PIECES / 8 * 8;
    fill(out, PART_BYTES);
    for (unsigned i = 0; i < PIECES; i++)
        pieces[i] = (struct oriel_piece){(int64_t)(i * step_bytes),
                                         oriel_at(out, (int64_t)(i * step_bytes)), step_bytes};
    team_expect(by->write_pieces(there, pieces, PIECES) == ORIEL_OK);
    team_expect(by->read(there, in, PIECES * step_bytes) == ORIEL_OK);
    team_expect(memcmp(out, in, PIECES * step_bytes) == 0);
}

/* Unchanged memory reads as it is, never from the location that its pages have left. */
static void read_and_look(const struct oriel_remote *there, uint64_t *in)
{
    team_expect(by->read(there, in, PART_BYTES) == ORIEL_OK);
    for (uint64_t i = 0; i < PART_BYTES / sizeof *in; i++)
        team_expect(in[i] == UINT64_MAX);
}

/* Whether the kernel lets this process copy from the target. */
static bool may_copy(const struct oriel_remote *there)
{
    char byte;
    if (by->read(there, &byte, 1) == ORIEL_OK)
        return true;
    printf("not tried: %s\n", oriel_fail_message());
    return false;
}

/* For half a second. A promotion may be refused if a writer is without a processor for longer than
 * the limit. */
static void promote_all_the_time(char *memory, uint64_t len_bytes)
{
    struct oriel_promote_options how = {
        .method = means, .huge_allowed = true, .pins_allowed = true};
    struct oriel_promoted promoted;
    int refusals = 0;
    for (uint64_t begin_ns = oriel_now_ns(); oriel_now_ns() - begin_ns < 500000000;) {
        if (oriel_promote((uintptr_t)memory, len_bytes, &how, &promoted) != ORIEL_OK) {
            printf("refused: %s\n", oriel_fail_message());
            if (strstr(oriel_fail_message(), "userfaultfd") != NULL)
                return;
            team_expect(strstr(oriel_fail_message(), "do not end") != NULL && ++refusals < 4);
        }
        usleep((useconds_t)(team_random() % 300));
        oriel_promote_release(&promoted);
        usleep((useconds_t)(team_random() % 300));
    }
}

static void move_and_write(struct oriel_window *window)
{
    uint64_t len_bytes = (uint64_t)(window->n - 1) * PART_BYTES;
    char *memory =
        mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *out = malloc(PART_BYTES);
    uint64_t *in = malloc(PART_BYTES);
    team_expect(memory != MAP_FAILED && out != NULL && in != NULL);
    if (window->rank == 0) {
        window_memory(window, 0)[0] = (uint64_t)(uintptr_t)memory;
        memset(memory, 0xff, len_bytes);
    }
    team_expect(by != &oriel_transport_agent || oriel_agent_open() == ORIEL_OK);
    team_barrier();
    if (window->rank == 0) {
        promote_all_the_time(memory, len_bytes);
        team_flag_set(0, 1);
    } else {
        struct oriel_remote there = part_of(window);
        while (may_copy(&there) && atomic_load(&team->flags[0]) == 0) {
            if (only_reads) {
                read_and_look(&there, in);
            } else {
                write_and_look(&there, out, in);
                write_pieces_and_look(&there, out, in);
            }
        }
    }
    team_barrier();
    free(out);
    free(in);
    munmap(memory, len_bytes);
}

static void no_copy_is_lost_where_pages_are_protected(void **state)
{
    (void)state;
    by = &oriel_transport_cma;
    means = ORIEL_BARRIER_UFFD;
    team_run(2, move_and_write);
    team_run(4, move_and_write);
}

static void no_copy_is_lost_where_threads_are_stopped(void **state)
{
    (void)state;
    by = &oriel_transport_cma;
    means = ORIEL_BARRIER_STOP_THREADS;
    team_run(2, move_and_write);
    team_run(4, move_and_write);
}

static void no_copy_reads_unmapped_pages_by_either_means(void **state)
{
    (void)state;
    by = &oriel_transport_cma;
    only_reads = true;
    for (means = ORIEL_BARRIER_UFFD; means <= ORIEL_BARRIER_STOP_THREADS; means++)
        team_run(3, move_and_write);
    only_reads = false;
}

/* The agent's thread blocks all signals; it is excluded in the same way as other processes. */
static void no_request_to_the_agent_is_lost_by_either_means(void **state)
{
    (void)state;
    by = &oriel_transport_agent;
    for (means = ORIEL_BARRIER_UFFD; means <= ORIEL_BARRIER_STOP_THREADS; means++)
        team_run(4, move_and_write);
}

/* Writers are killed in the middle of long copies; the target moves its pages nevertheless. */
static void kill_copying(struct oriel_window *window)
{
    enum { BYTES = 64 << 20 };
    char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    team_expect(memory != MAP_FAILED);
    if (window->rank == 0)
        window_memory(window, 0)[0] = (uint64_t)(uintptr_t)memory;
    team_barrier();
    struct oriel_remote there = part_of(window);
    if (window->rank == 1) {
        while (may_copy(&there))
            team_expect(by->write(&there, memory, BYTES) == ORIEL_OK);
        for (;;)
            pause();
    } else if (window->rank == 2) {
        usleep(3000 + (useconds_t)(team_random() % 40000));
        team_kill(1);
        team_flag_set(0, 1);
    } else {
        struct oriel_promote_options how = {
            .method = means, .huge_allowed = true, .pins_allowed = true};
        struct oriel_promoted promoted;
        team_flag_await(0, 1);
        team_expect(oriel_promote((uintptr_t)memory, ORIEL_PAGE_BYTES, &how, &promoted) ==
                    ORIEL_OK);
        oriel_promote_release(&promoted);
        team_flag_set(1, 1);
    }
    team_flag_await(1, 1);
}

static void writers_killed_in_a_copy_block_no_other_rank(void **state)
{
    (void)state;
    by = &oriel_transport_cma;
    means = ORIEL_BARRIER_AUTO;
    for (int i = 0; i < 4; i++)
        team_run(3, kill_copying);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_copy_is_lost_where_pages_are_protected),
        cmocka_unit_test(no_copy_is_lost_where_threads_are_stopped),
        cmocka_unit_test(no_copy_reads_unmapped_pages_by_either_means),
        cmocka_unit_test(no_request_to_the_agent_is_lost_by_either_means),
        cmocka_unit_test(writers_killed_in_a_copy_block_no_other_rank),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: the kernel copies between processes");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
