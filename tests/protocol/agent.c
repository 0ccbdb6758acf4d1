/* src/transport/agent/: an agent executes each request once, with the right bytes. No request is
 * lost when memory disappears, when the program closes descriptors, or when the agent stops. */
#include "agent_memory.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 2000, SLEEPS = 40, PIECES = 700 };

/* All ranks send requests to one rank, which sends requests to all others. Bits that are set
 * without a request have no effect. */
static void ask_one(struct oriel_window *window)
{
    agent_memory_open(window);
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        int32_t another = 1 + (int32_t)(team_random() % (uint64_t)(window->n - 1));
        struct oriel_remote there = agent_memory_share(window, window->rank == 0 ? another : 0);
        atomic_fetch_or(&there.agent->asked, UINT32_C(1) << team_random() % ORIEL_AGENT_SLOTS);
        agent_memory_write_and_read(&there);
    }
    team_barrier();
    oriel_agent_close();
}

static void agent_p1_p2_p3_p5_bytes_arrive(void **state)
{
    (void)state;
    team_run_sizes(ask_one);
}

/* Pieces out of order, with gaps, of length 0, and more than one request can hold. The gaps keep
 * their contents. */
static void ask_in_pieces(struct oriel_window *window)
{
    static char out[SHARE_BYTES];
    static char in[SHARE_BYTES];
    struct oriel_piece pieces[PIECES];
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 1 - window->rank);
    agent_memory_fill(out, SHARE_BYTES);
    for (unsigned i = 0; i < PIECES; i++) {
        uint64_t len_bytes = team_random() % 141;
        uint64_t at = (uint64_t)((i * 13) % PIECES) * 141;
        pieces[i] = (struct oriel_piece){(int64_t)at, out + at, len_bytes};
    }
    team_expect(oriel_transport_agent.write_pieces(&there, pieces, PIECES) == ORIEL_OK);
    team_expect(oriel_transport_agent.read(&there, in, SHARE_BYTES) == ORIEL_OK);
    for (unsigned i = 0; i < PIECES; i++) {
        team_expect(memcmp(in + pieces[i].offset_bytes, pieces[i].here, pieces[i].len_bytes) == 0);
        for (uint64_t hole = pieces[i].len_bytes; hole < 141; hole++)
            team_expect(in[(uint64_t)pieces[i].offset_bytes + hole] == 0);
        pieces[i].here = in + pieces[i].offset_bytes;
    }
    memset(in, 0, sizeof in);
    team_expect(oriel_transport_agent.read_pieces(&there, pieces, PIECES) == ORIEL_OK);
    team_barrier();
    for (unsigned i = 0; i < PIECES; i++)
        team_expect(memcmp(in + pieces[i].offset_bytes, out + pieces[i].offset_bytes,
                           pieces[i].len_bytes) == 0);
    team_barrier();
}

static void agent_moves_pieces_and_leaves_holes(void **state)
{
    (void)state;
    team_run(2, ask_in_pieces);
}

/* The agent sleeps between two requests. If it misses a request, the origin waits forever. */
static void ask_asleep(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank != 0) {
        for (int i = 0; i < SLEEPS; i++) {
            usleep((useconds_t)(team_random() % 400));
            agent_memory_write_and_read(&there);
        }
        team_expect(team_timeouts <= SLEEPS / 4); /* answers also wake sleepers */
    }
    team_barrier();
}

static void agent_p4_forgets_no_request(void **state)
{
    (void)state;
    team_run(2, ask_asleep);
    team_run(4, ask_asleep);
}

/* Requests for unmapped memory: the origin gets an error, and the agent continues. */
static void ask_for_unmapped_memory(struct oriel_window *window)
{
    static char buffer[SHARE_BYTES];
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 0) {
        char *hole = (char *)(((uintptr_t)agent_memory + SHARE_BYTES + 50000) & ~UINT64_C(4095));
        munmap(hole, 4096);
    }
    team_barrier();
    if (window->rank == 1) {
        team_expect(oriel_transport_agent.write(&there, buffer, SHARE_BYTES) == ORIEL_E_RANGE);
        team_expect(oriel_transport_agent.read(&there, buffer, SHARE_BYTES) == ORIEL_E_RANGE);
        struct oriel_remote nowhere = there;
        nowhere.address = 0;
        team_expect(oriel_transport_agent.write(&nowhere, buffer, 8) == ORIEL_E_RANGE);
        nowhere.address = UINT64_MAX - 100;
        team_expect(oriel_transport_agent.write(&nowhere, buffer, 8) == ORIEL_E_RANGE);
        team_expect(oriel_transport_agent.write(&there, buffer, 1000) == ORIEL_OK);
        team_expect(oriel_transport_agent.read(&there, buffer, 1000) == ORIEL_OK);
    }
    team_barrier();
}

static void unmapped_memory_is_a_range_error(void **state)
{
    (void)state;
    team_run(2, ask_for_unmapped_memory);
}

/* The agent has its own descriptors, so the program may close or replace any of its own. */
static void close_descriptors(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 1 - window->rank);
    agent_memory_write_and_read(&there);
    int fd = oriel_file_identity()->memory_fd;
    int other = memfd_create("other", MFD_CLOEXEC);
    team_expect(other >= 0 && dup2(other, fd) == fd);
    team_barrier();
    for (int i = 0; i < 20; i++)
        agent_memory_write_and_read(&there);
    team_barrier();
    team_expect(lseek(other, 0, SEEK_END) == 0);
    oriel_agent_close();
    team_expect(oriel_agent_open() == ORIEL_E_OTHER); /* another file by now */
    team_expect(strstr(oriel_fail_message(), "not the memory file") != NULL);
}

static void agent_reopens_its_file_when_the_program_closes_it(void **state)
{
    (void)state;
    team_run(2, close_descriptors);
}

/* Errors name the agent that has no free slot or does not answer. */
static const struct oriel_agent *asked;

static bool publish_rank(const struct oriel_watch *watch, uint64_t since_ns, bool is_published)
{
    (void)since_ns, (void)is_published;
    kill(team->members[0].process.pid, SIGCONT);
    team_expect(watch->what == ORIEL_WAITING_AGENT &&
                *(struct oriel_agent *const *)watch->context == asked);
    team_flag_set(0, 1);
    return false;
}

static void wait_for_an_agent(struct oriel_window *window)
{
    static const struct oriel_wait_publisher teller = {.lasts = publish_rank};
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    for (int i = 0; window->rank == 0 && i < ORIEL_AGENT_SLOTS; i++)
        atomic_store(&there.agent->slots[i].owner, oriel_identity_own_word());
    team_barrier();
    if (window->rank == 1) {
        asked = there.agent;
        oriel_wait_set_publisher(&teller);
        agent_memory_write_and_read(&there);
        team_expect(atomic_exchange(&team->flags[0], 0) == 1);
        while (atomic_load(&team->flags[0]) == 0) { /* stopping needs time */
            kill(team->members[0].process.pid, SIGSTOP);
            agent_memory_write_and_read(&there);
        }
        oriel_wait_set_publisher(NULL);
    } else {
        team_flag_await(0, 1);
        for (int i = 0; i < ORIEL_AGENT_SLOTS; i++)
            atomic_store(&there.agent->slots[i].owner, 0);
        oriel_event_signal(&there.agent->freed);
    }
    team_barrier();
}

static void a_wait_for_an_agent_names_its_rank(void **state)
{
    (void)state;
    team_run(2, wait_for_an_agent);
}

static void close_and_open(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, (window->rank + 1) % window->n);
    for (int i = 0; i < 10; i++) {
        agent_memory_write_and_read(&there);
        team_barrier();
        team_expect(oriel_agent_is_open());
        oriel_agent_close();
        team_expect(!oriel_agent_is_open());
        oriel_agent_close();
        team_expect(oriel_agent_open() == ORIEL_OK);
        team_expect(oriel_agent_open() == ORIEL_OK);
        team_barrier();
    }
    oriel_agent_close();
    team_barrier();
    char byte = 0;
    team_expect(oriel_transport_agent.write(&there, &byte, 1) == ORIEL_E_PEER);
}

static void agent_ends_in_good_order_and_starts_again(void **state)
{
    (void)state;
    team_run(3, close_and_open);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agent_p1_p2_p3_p5_bytes_arrive),
        cmocka_unit_test(agent_moves_pieces_and_leaves_holes),
        cmocka_unit_test(agent_p4_forgets_no_request),
        cmocka_unit_test(unmapped_memory_is_a_range_error),
        cmocka_unit_test(agent_reopens_its_file_when_the_program_closes_it),
        cmocka_unit_test(a_wait_for_an_agent_names_its_rank),
        cmocka_unit_test(agent_ends_in_good_order_and_starts_again),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: the agent belongs to a process, which the ranks would share");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
