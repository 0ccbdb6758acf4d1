/* src/transport/polled/: a polling thread of the target or a copy executes each request once, with
 * the right bytes. This holds whether or not any thread polls, and when memory disappears or other
 * ranks die. */
#include "agent_memory.h"
#include "memory/polled_area.h"
#include "sync/accumulate_mutex.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum {
    ROUNDS = 4000,
    WORDS = 4,
    PAGE_BYTES = 4096,
    PLACE_BYTES = 256,
    DONE = 2,
    ANSWERED = 3,
    TRIES = 100000,
    FEW_TRIES = 100
};

/* Of this process, private: a page of words, then a slot for each rank, then an unmapped page. */
static char *memory;
static uint32_t answered; /* requests of this rank */

static uint64_t own_word(void)
{
    return oriel_file_identity()->start_time << 22 | (uint64_t)getpid();
}

static void open_memory(struct oriel_window *window)
{
    const size_t len_bytes = 3 * PAGE_BYTES;
    memory = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    team_expect(memory != MAP_FAILED);
    team_expect(mprotect(memory + 2 * PAGE_BYTES, PAGE_BYTES, PROT_NONE) == 0);
    team_expect(oriel_polled_open());
    window_memory(window, window->rank)[0] = (uint64_t)(uintptr_t)memory;
    answered = 0;
    team_barrier();
}

static struct oriel_remote place_at(const struct oriel_window *window, int32_t target,
                                    uint64_t offset_bytes)
{
    const struct oriel_peer *peer = window->group->peers[target];
    return (struct oriel_remote){.address = window_memory(window, target)[0] + offset_bytes,
                                 .pid = peer->identity.pid,
                                 .writers = oriel_file_remote_writers(peer->base),
                                 .polled = oriel_polled_of(peer)};
}

/* As rma/ does it. */
static bool ask(const struct oriel_remote *there, const struct oriel_polled_request *wanted)
{
    enum oriel_status status = ORIEL_OK;
    bool is_answered = oriel_polled_submit(there, wanted, &status);
    team_expect(status == ORIEL_OK);
    answered += is_answered;
    return is_answered;
}

static void put(const struct oriel_remote *there, const void *from, uint64_t len_bytes)
{
    struct oriel_polled_request wanted = {
        .operation = ORIEL_POLLED_WRITE, .in = from, .len_bytes = len_bytes};
    if (!ask(there, &wanted))
        team_expect(oriel_transport_cma.write(there, from, len_bytes) == ORIEL_OK);
}

static void get(const struct oriel_remote *there, void *to, uint64_t len_bytes)
{
    struct oriel_polled_request wanted = {
        .operation = ORIEL_POLLED_READ, .out = to, .len_bytes = len_bytes};
    if (!ask(there, &wanted))
        team_expect(oriel_transport_cma.read(there, to, len_bytes) == ORIEL_OK);
}

/* Returns the previous value. */
static int64_t add(struct oriel_window *window, int32_t target, uint64_t word, int64_t operand)
{
    int64_t old = -1, sum;
    struct oriel_remote there = place_at(window, target, word * sizeof old);
    struct oriel_polled_request wanted = {.operation = ORIEL_POLLED_UPDATE,
                                          .kind = ORIEL_KIND_INT64,
                                          .operator= ORIEL_OPERATOR_SUM,
                                          .in = &operand,
                                          .out = &old,
                                          .len_bytes = sizeof old};
    team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
    if (!ask(&there, &wanted)) {
        team_expect(oriel_transport_cma.read(&there, &old, sizeof old) == ORIEL_OK);
        oriel_delay();
        sum = old + operand;
        team_expect(oriel_transport_cma.write(&there, &sum, sizeof sum) == ORIEL_OK);
    }
    oriel_accumulate_mutex_unlock(window, target);
    return old;
}

static void increment(struct oriel_window *window, int32_t target, uint64_t word)
{
    int64_t found = -1, wanted, desired;
    struct oriel_remote there = place_at(window, target, word * sizeof found);
    team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
    get(&there, &wanted, sizeof wanted);
    desired = wanted + 1;
    struct oriel_polled_request swap = {.operation = ORIEL_POLLED_SWAP,
                                        .in = &wanted,
                                        .desired = &desired,
                                        .out = &found,
                                        .len_bytes = sizeof found};
    if (ask(&there, &swap))
        team_expect(found == wanted);
    else
        put(&there, &desired, sizeof desired);
    oriel_accumulate_mutex_unlock(window, target);
}

static void write_and_read(struct oriel_window *window, int32_t target)
{
    char out[PLACE_BYTES], in[PLACE_BYTES];
    uint64_t len_bytes = 1 + team_random() % PLACE_BYTES;
    struct oriel_remote there =
        place_at(window, target, PAGE_BYTES + (uint64_t)window->rank * PLACE_BYTES);
    agent_memory_fill(out, len_bytes);
    memset(in, 0, sizeof in);
    put(&there, out, len_bytes);
    get(&there, in, len_bytes);
    team_expect(memcmp(in, out, len_bytes) == 0);
}

/* Takes all but two slots of this rank, so that origins compete for those. */
static void take_most_slots(const struct oriel_window *window)
{
    struct oriel_remote here = place_at(window, window->rank, 0);
    for (unsigned i = 2; i < ORIEL_POLLED_SLOTS; i++)
        atomic_store(&here.polled->owners[i].word, own_word());
    team_barrier();
}

/* Rank 0 polls at varying rates; the others send requests to it, and to the next rank, which polls
 * now and then. */
static void ask_all_the_time(struct oriel_window *window)
{
    int64_t mine = 0;
    open_memory(window);
    take_most_slots(window);
    for (int i = team_rounds(ROUNDS); window->rank != 0 && i > 0 && !team_time_is_up(); i--) {
        int32_t target = team_random() % 4 == 0 ? 1 + window->rank % (window->n - 1) : 0;
        uint64_t word = team_random() % WORDS;
        write_and_read(window, target);
        if (team_random() % 2 == 0)
            (void)add(window, 0, word, 1);
        else
            increment(window, 0, word);
        mine++;
        (void)oriel_polled_poll();
    }
    atomic_fetch_add(&team->flags[0], (uint32_t)mine);
    atomic_fetch_add(&team->flags[ANSWERED], answered);
    atomic_fetch_add(&team->flags[DONE], 1);
    while (window->rank == 0 && atomic_load(&team->flags[DONE]) < (uint32_t)window->n) {
        for (int i = 0; i < 1000; i++)
            (void)oriel_polled_poll();
        sched_yield();
        if (team_random() % 64 == 0)
            usleep(50);
    }
    team_barrier();
    if (window->rank == 0) {
        int64_t sum = 0;
        for (unsigned i = 0; i < WORDS; i++)
            sum += ((volatile int64_t *)(void *)memory)[i];
        team_expect(sum == atomic_load(&team->flags[0]));
        team_expect(atomic_load(&team->flags[ANSWERED]) > 0);
    }
    team_barrier();
    oriel_polled_close();
}

static void polled_p1_p2_p3_p4_done_once(void **state)
{
    (void)state;
    team_run_sizes(ask_all_the_time);
}

/* --- deaths --- */

static uint32_t left_in; /* the state in which the victim leaves its slots */

static bool ask_for_word(const struct oriel_remote *there, int64_t *word, enum oriel_status *status)
{
    struct oriel_polled_request wanted = {
        .operation = ORIEL_POLLED_READ, .out = word, .len_bytes = sizeof *word};
    return oriel_polled_submit(there, &wanted, status);
}

/* The victim owns all slots. Those that no thread executes are reused, and the victim's
 * requests are not executed. */
static void die_with_slots(struct oriel_window *window)
{
    int64_t word = -1;
    enum oriel_status status = ORIEL_OK;
    open_memory(window);
    struct oriel_remote there = place_at(window, 0, 0);
    if (window->rank == 1) {
        atomic_store(&there.polled->used, ORIEL_POLLED_SLOTS);
        for (unsigned i = 0; i < ORIEL_POLLED_SLOTS; i++) {
            struct oriel_polled_slot *slot = &there.polled->slots[i];
            slot->operation = ORIEL_POLLED_WRITE;
            slot->address = there.address;
            slot->len_bytes = 1;
            slot->data[0] = 'x';
            atomic_store(&there.polled->owners[i].word, own_word());
            atomic_store(&slot->state, left_in);
        }
        team_flag_set(0, 1);
        team_die();
    }
    team_flag_await(0, 1);
    if (window->rank == 2) {
        bool is_answered = false;
        team_expect(
            !ask_for_word(&there, &word, &status)); /* no thread polls: this takes a slot over */
        team_flag_set(1, 1);
        const int tries = left_in != ORIEL_POLLED_TAKEN ? 100000 : 200;
        for (int i = 0; i < tries && !is_answered; i++)
            is_answered = ask_for_word(&there, &word, &status);
        team_expect(is_answered == (left_in != ORIEL_POLLED_TAKEN));
        team_expect(status == ORIEL_OK);
        team_flag_set(DONE, 1);
    }
    if (window->rank == 0) {
        team_flag_await(1, 1);
        while (atomic_load(&team->flags[DONE]) == 0) {
            (void)oriel_polled_poll();
            sched_yield();
        }
    }
    team_flag_await(DONE, 1);
}

static void polled_slots_of_the_dead_are_reused(void **state)
{
    (void)state;
    for (left_in = ORIEL_POLLED_IDLE; left_in <= ORIEL_POLLED_DONE; left_in++)
        team_run(3, die_with_slots);
}

/* Slots that a living process owns, and leaves with a request in them. */
static void hold_slots(struct oriel_window *window)
{
    int64_t word = -1;
    enum oriel_status status = ORIEL_OK;
    open_memory(window);
    struct oriel_remote there = place_at(window, 0, 0);
    if (window->rank == 1)
        for (unsigned i = 0; i < ORIEL_POLLED_SLOTS; i++)
            atomic_store(&there.polled->owners[i].word, own_word());
    team_barrier();
    for (int i = 0; window->rank == 2 && i < 1000; i++)
        team_expect(!ask_for_word(&there, &word, &status));
    team_barrier();
    for (unsigned i = 0; i < ORIEL_POLLED_SLOTS; i++)
        team_expect(window->rank != 1 || atomic_load(&there.polled->owners[i].word) == own_word());
    team_barrier();
}

static void polled_slots_of_the_living_are_theirs(void **state)
{
    (void)state;
    team_run(3, hold_slots);
}

/* The target dies before T1, where the origin withdraws, and after it. */
static void die_asked(struct oriel_window *window)
{
    int64_t word = -1;
    enum oriel_status status = ORIEL_OK;
    open_memory(window);
    if (window->rank == 1) {
        team_flag_await(0, 1);
        team_die();
    }
    struct oriel_remote there = place_at(window, 1, 0);
    if (left_in == ORIEL_POLLED_TAKEN) {
        if (fork() == 0) { /* instead of a thread of the target, and reaches T1 */
            uint32_t asked = ORIEL_POLLED_ASKED;
            for (unsigned i = 0;
                 !atomic_compare_exchange_weak(&there.polled->slots[i % ORIEL_POLLED_SLOTS].state,
                                               &asked, ORIEL_POLLED_TAKEN);
                 i++)
                asked = ORIEL_POLLED_ASKED;
            team_flag_set(0, 1);
            _exit(0);
        }
        bool is_answered = false;
        for (int i = 0; i < 100000000 && !is_answered; i++)
            is_answered = ask_for_word(&there, &word, &status);
        team_expect(is_answered && status == ORIEL_E_PEER);
        return;
    }
    team_flag_set(0, 1);
    team_expect(!ask_for_word(&there, &word, &status));
}

static void polled_target_that_dies_is_reported(void **state)
{
    (void)state;
    left_in = ORIEL_POLLED_ASKED;
    team_run(2, die_asked);
    left_in = ORIEL_POLLED_TAKEN;
    team_run(2, die_asked);
}

/* --- unmapped memory --- */

enum { NOTHING = 0, READS = 1 << ORIEL_POLLED_READ, EVERYTHING = 15 };

/* Each operation on a word, while the target polls, and the operations that the target must
 * execute. */
static void expect_served(const struct oriel_remote *there, unsigned operations)
{
    for (unsigned operation = ORIEL_POLLED_WRITE; operation <= ORIEL_POLLED_SWAP; operation++) {
        int64_t one = 1, old;
        enum oriel_status status = ORIEL_OK;
        struct oriel_polled_request wanted = {.operation = (enum oriel_polled_operation)operation,
                                              .kind = ORIEL_KIND_INT64,
                                              .operator= ORIEL_OPERATOR_SUM,
                                              .in = &one,
                                              .desired = &one,
                                              .out = &old,
                                              .len_bytes = sizeof one};
        const bool must = operations >> operation & 1;
        bool is_served = false;
        for (int i = 0; i < (must ? TRIES : FEW_TRIES) && !is_served; i++)
            is_served = oriel_polled_submit(there, &wanted, &status);
        team_expect(is_served == must && status == ORIEL_OK);
    }
}

/* What the target does to its last page before each step, and the operations that it then executes
 * there. */
static const struct {
    int protection;
    unsigned served;
} steps[] = {{PROT_NONE, NOTHING},
             {PROT_READ | PROT_WRITE, EVERYTHING},
             {PROT_READ, READS},
             {PROT_READ | PROT_WRITE, EVERYTHING},
             {PROT_NONE, NOTHING}};
enum { STEPS = sizeof steps / sizeof steps[0] };

static bool target_waits; /* for the origin between two steps, not vice versa */

/* A wait that ends at once. */
static void begin_wait(void)
{
    _Atomic uint32_t word = 1, sleepers = 0;
    team_expect(oriel_wait_slow(&word, &sleepers, ORIEL_WAIT_EQUAL, 1, NULL) == ORIEL_OK);
}

/* Memory that is unmapped or becomes read-only: the target refuses, survives, and serves on. */
static void ask_for_nothing(struct oriel_window *window)
{
    open_memory(window);
    const struct oriel_remote unmapped = place_at(window, 0, 2 * PAGE_BYTES + 8),
                              half = place_at(window, 0, 2 * PAGE_BYTES - 4),
                              there = place_at(window, 0, 2 * PAGE_BYTES - 16);
    oriel_polled_install();
    for (uint32_t i = 0; i < STEPS; i++) {
        if (window->rank == 0) {
            team_expect(mprotect(memory + 2 * PAGE_BYTES, PAGE_BYTES, steps[i].protection) == 0);
            if (target_waits)
                begin_wait();
            team_flag_set(0, i + 1);
            while (atomic_load(&team->flags[DONE]) <= i)
                (void)oriel_polled_poll();
            continue;
        }
        team_flag_await(0, i + 1);
        if (!target_waits)
            (void)oriel_polled_poll(); /* the host's, which delivers a message */
        expect_served(&unmapped, steps[i].served);
        expect_served(&half, steps[i].served);
        expect_served(&there, EVERYTHING);
        team_flag_set(DONE, i + 1);
    }
    team_barrier();
    oriel_polled_close();
}

static void polled_p6_unmapped_memory_is_refused(void **state)
{
    (void)state;
    target_waits = true;
    team_run(2, ask_for_nothing);
    target_waits = false;
    team_run(2, ask_for_nothing);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polled_p1_p2_p3_p4_done_once),
        cmocka_unit_test(polled_slots_of_the_dead_are_reused),
        cmocka_unit_test(polled_slots_of_the_living_are_theirs),
        cmocka_unit_test(polled_target_that_dies_is_reported),
        cmocka_unit_test(polled_p6_unmapped_memory_is_refused),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: a process serves its own area, which the ranks would share");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
