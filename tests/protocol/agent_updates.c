/* src/transport/agent/: the target computes the updates of origins in as few requests as the slots
 * allow. Results equal those of the kernels, and only the addressed elements change. The target
 * refuses invalid requests and survives them. */
#include "agent_memory.h"
#include "sync/accumulate_mutex.h"

#include <errno.h>
#include <float.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 400, PAGE_BYTES = 4096, MOST_BYTES = 3 * ORIEL_AGENT_DATA_BYTES, PADDING = 0x5c };

static char contents[MOST_BYTES]; /* the expected contents of the target's elements */
static char operands[MOST_BYTES];
static char olds[MOST_BYTES];
static char found[MOST_BYTES];

static void write_remote(const struct oriel_remote *there, const char *bytes, uint64_t len_bytes)
{
    team_expect(oriel_transport_agent.write(there, bytes, len_bytes) == ORIEL_OK);
}

static void read_remote(const struct oriel_remote *there, uint64_t len_bytes)
{
    team_expect(oriel_transport_agent.read(there, found, len_bytes) == ORIEL_OK);
}

/* One piece with its operands and old contents. */
static enum oriel_status ask(const struct oriel_remote *there, enum oriel_kind kind,
                             enum oriel_operator operator, uint64_t len_bytes)
{
    struct oriel_piece in = {0, operands, len_bytes};
    struct oriel_piece out = {0, olds, len_bytes};
    return oriel_agent_update(there, kind, operator, operator!= ORIEL_OPERATOR_NO_OP ? &in : NULL,
                              &out, 1);
}

/* A long double does not fill its element: arithmetic leaves the remaining bytes undefined. */
static bool same_elements(enum oriel_kind kind, enum oriel_operator operator, const char * a,
                          const char *b, uint64_t len_bytes)
{
    const bool is_padded = operator<
                           ORIEL_OPERATOR_REPLACE &&(kind == ORIEL_KIND_LONG_DOUBLE ||
                                                     kind == ORIEL_KIND_LONG_DOUBLE_COMPLEX) &&
                           LDBL_MANT_DIG == 64;
    const uint64_t step_bytes = is_padded ? sizeof(long double) : len_bytes;
    for (uint64_t at = 0; at < len_bytes; at += step_bytes)
        if (memcmp(a + at, b + at, is_padded ? 10 : step_bytes) != 0)
            return false;
    return true;
}

/* Misaligned, compared with the kernel's result on the same elements in this process. */
static void compare_with_kernel(struct oriel_remote there, enum oriel_kind kind,
                                enum oriel_operator operator, uint64_t count)
{
    static char before[MOST_BYTES];
    static char result[MOST_BYTES];
    uint64_t len_bytes = count * oriel_kinds[kind].extent_bytes;
    there.address += 1 + team_random() % 40;
    agent_memory_fill(contents, len_bytes);
    agent_memory_fill(operands, len_bytes);
    memcpy(before, contents, len_bytes);
    memset(olds, PADDING, len_bytes);
    memset(result, PADDING, len_bytes);
    write_remote(&there, contents, len_bytes);
    team_expect(ask(&there, kind, operator, len_bytes) == ORIEL_OK);
    oriel_kinds[kind].plain[operator](contents, operands, result, count);
    read_remote(&there, len_bytes);
    team_expect(same_elements(kind, operator, olds, result, len_bytes));
    team_expect(same_elements(kind, operator, found, contents, len_bytes));
    team_expect(operator!= ORIEL_OPERATOR_NO_OP || memcmp(found, before, len_bytes) == 0);
}

static void update_all_kinds(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 1 - window->rank);
    for (int kind = 0; kind < ORIEL_KIND_COUNT; kind++)
        for (int operator= 0; operator<ORIEL_OPERATOR_COUNT; operator++)
            if (oriel_kinds[kind].plain[operator] != NULL) {
                compare_with_kernel(there, (enum oriel_kind)kind, (enum oriel_operator) operator,
                                    1);
                compare_with_kernel(there, (enum oriel_kind)kind, (enum oriel_operator) operator,
                                    2 + team_random() % 300);
            }
    compare_with_kernel(there, ORIEL_KIND_INT32, ORIEL_OPERATOR_PROD, 20000);
    compare_with_kernel(there, ORIEL_KIND_SHORT_INT, ORIEL_OPERATOR_MAXLOC, 10000);
    team_barrier();
}

static void updates_equal_those_of_the_kernels(void **state)
{
    (void)state;
    team_run(2, update_all_kinds);
}

/* A slot is released once for each request. */
static uint32_t requests_of(const struct oriel_remote *there)
{
    return atomic_load(&there->agent->freed.value);
}

static void count_requests(struct oriel_window *window)
{
    enum { RUNS = ORIEL_AGENT_RUNS + 1 };
    struct oriel_piece in[RUNS], out[RUNS];
    int64_t one = 1;
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 1) {
        uint32_t before = requests_of(&there);
        memset(operands, 0, sizeof operands);
        team_expect(ask(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 8) == ORIEL_OK);
        team_expect(requests_of(&there) - before == 1);
        team_expect(oriel_agent_swap(&there, &one, operands, found, 8) == ORIEL_OK);
        team_expect(requests_of(&there) - before == 2);
        team_expect(ask(&there, ORIEL_KIND_DOUBLE, ORIEL_OPERATOR_SUM, ORIEL_AGENT_DATA_BYTES) ==
                    ORIEL_OK);
        team_expect(requests_of(&there) - before == 3);
        team_expect(ask(&there, ORIEL_KIND_DOUBLE, ORIEL_OPERATOR_SUM,
                        2 * ORIEL_AGENT_DATA_BYTES + 8) == ORIEL_OK);
        team_expect(requests_of(&there) - before == 6);
        for (unsigned i = 0; i < RUNS; i++) {
            in[i] = (struct oriel_piece){(int64_t)i * 24, operands, 8};
            out[i] = (struct oriel_piece){(int64_t)i * 24, found + i * 8, 8};
        }
        team_expect(oriel_agent_update(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, in, out,
                                       RUNS - 1) == ORIEL_OK);
        team_expect(requests_of(&there) - before == 7);
        team_expect(oriel_agent_update(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, in, NULL,
                                       RUNS) == ORIEL_OK);
        team_expect(requests_of(&there) - before == 9);
    }
    team_barrier();
}

static void update_is_one_request_while_a_slot_holds_it(void **state)
{
    (void)state;
    team_run(2, count_requests);
}

static bool is_padding(const struct oriel_kind_properties *kind, uint64_t at)
{
    at %= kind->extent_bytes;
    return at >= kind->value_bytes &&
           (at < kind->index_offset || at >= kind->index_offset + kind->index_bytes);
}

/* Pages that end where mapped memory ends. */
static char *map_end(void)
{
    char *pages = mmap(NULL, MOST_BYTES + PAGE_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    team_expect(pages != MAP_FAILED && munmap(pages + MOST_BYTES, PAGE_BYTES) == 0);
    return pages + MOST_BYTES;
}

/* The last pair ends where mapped memory ends: no byte after its last field is mapped, neither at
 * the target nor at the origin. */
static void update_pairs(const struct oriel_window *window, enum oriel_kind number, uint64_t count)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[number];
    uint64_t len_bytes = count * kind->extent_bytes;
    uint64_t most_bytes = len_bytes - oriel_kind_tail_bytes(kind);
    static char *end;
    end = end != NULL ? end : map_end();
    window_memory(window, window->rank)[1] = (uint64_t)(uintptr_t)(end - most_bytes);
    memset(end - most_bytes, PADDING, most_bytes);
    for (uint64_t i = 0; i < most_bytes; i++)
        if (!is_padding(kind, i))
            (end - most_bytes)[i] = 0;
    team_barrier();
    if (window->rank == 1) {
        struct oriel_remote there = agent_memory_share(window, 0);
        there.address = window_memory(window, 0)[1];
        char *old = end - most_bytes;
        memset(old, PADDING, most_bytes);
        char *operand = map_end() - most_bytes;
        memset(operand, 1, most_bytes);
        struct oriel_piece in = {0, operand, len_bytes}, out = {0, old, len_bytes};
        team_expect(oriel_agent_update(&there, number, ORIEL_OPERATOR_REPLACE, &in, &out, 1) ==
                    ORIEL_OK);
        for (uint64_t i = 0; i < most_bytes; i++)
            team_expect(old[i] == (is_padding(kind, i) ? PADDING : 0));
        memset(old, PADDING, most_bytes);
        team_expect(oriel_agent_update(&there, number, ORIEL_OPERATOR_NO_OP, NULL, &out, 1) ==
                    ORIEL_OK);
        for (uint64_t i = 0; i < most_bytes; i++)
            team_expect(old[i] == (is_padding(kind, i) ? PADDING : 1));
    }
    team_barrier();
    if (window->rank == 0)
        for (uint64_t i = 0; i < most_bytes; i++)
            team_expect((end - most_bytes)[i] == (is_padding(kind, i) ? PADDING : 1));
    team_barrier();
}

static void update_padded(struct oriel_window *window)
{
    static const enum oriel_kind padded[] = {ORIEL_KIND_SHORT_INT, ORIEL_KIND_DOUBLE_INT,
                                             ORIEL_KIND_LONG_INT, ORIEL_KIND_LONG_DOUBLE_INT};
    agent_memory_open(window);
    for (size_t i = 0; i < sizeof padded / sizeof padded[0]; i++) {
        team_expect(oriel_kinds[padded[i]].padded);
        update_pairs(window, padded[i], 1);
        update_pairs(window, padded[i], 129 + i); /* more fields than one kernel call takes */
        update_pairs(window, padded[i], 2500);
    }
}

static void update_leaves_padding_alone(void **state)
{
    (void)state;
    team_run(2, update_padded);
}

/* Where memory is read-only, reading succeeds. Where a part is unmapped, nothing of the request is
 * written. */
static void update_where_it_cannot(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    char *page = (char *)(((uintptr_t)agent_memory + SHARE_BYTES + PAGE_BYTES) &
                          ~(uintptr_t)(PAGE_BYTES - 1));
    window_memory(window, window->rank)[1] = (uint64_t)(uintptr_t)page;
    if (window->rank == 0) {
        memset(page, 1, 2 * PAGE_BYTES);
        team_expect(mprotect(page, PAGE_BYTES, PROT_READ) == 0 &&
                    munmap(page + 2 * PAGE_BYTES, PAGE_BYTES) == 0);
    }
    team_barrier();
    if (window->rank == 1) {
        there.address = window_memory(window, 0)[1];
        memset(operands, 1, sizeof operands);
        memset(contents, 1, sizeof contents);
        team_expect(ask(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_NO_OP, PAGE_BYTES) == ORIEL_OK);
        team_expect(memcmp(olds, contents, PAGE_BYTES) == 0);
        team_expect(oriel_agent_swap(&there, contents, operands + 1, found, 8) == ORIEL_E_RANGE);
        memset(operands, 2, 8);
        team_expect(oriel_agent_swap(&there, contents, operands, found, 8) ==
                    ORIEL_OK); /* another one has it */
        team_expect(ask(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 8) == ORIEL_E_RANGE);
        there.address += PAGE_BYTES;
        team_expect(ask(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, PAGE_BYTES + 8) ==
                    ORIEL_E_RANGE);
        team_expect(ask(&there, ORIEL_KIND_DOUBLE_INT, ORIEL_OPERATOR_REPLACE, PAGE_BYTES + 16) ==
                    ORIEL_E_RANGE);
        read_remote(&there, PAGE_BYTES);
        team_expect(memcmp(found, contents, PAGE_BYTES) == 0);
        there.address = UINT64_MAX - 7;
        team_expect(ask(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 16) == ORIEL_E_RANGE);
    }
    team_barrier();
}

static void update_of_unmapped_memory_is_a_range_error(void **state)
{
    (void)state;
    team_run(2, update_where_it_cannot);
}

static void swap_some(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 1 - window->rank);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t len_bytes = UINT64_C(1) << team_random() % 5;
        char wanted[16];
        there.address += team_random() % 3;
        agent_memory_fill(contents, len_bytes);
        agent_memory_fill(operands, len_bytes);
        write_remote(&there, contents, len_bytes);
        memcpy(wanted, contents, len_bytes);
        if (i % 2 == 1)
            wanted[team_random() % len_bytes] ^= 1;
        team_expect(oriel_agent_swap(&there, operands, wanted, olds, len_bytes) == ORIEL_OK);
        team_expect(memcmp(olds, contents, len_bytes) == 0);
        read_remote(&there, len_bytes);
        team_expect(memcmp(found, i % 2 == 0 ? operands : contents, len_bytes) == 0);
    }
    team_barrier();
}

static void swap_writes_if_all_bytes_are_as_wanted(void **state)
{
    (void)state;
    team_run(2, swap_some);
}

/* All ranks add to the words of rank 0, including rank 0 itself; odd rounds swap. */
static void add_together(struct oriel_window *window)
{
    enum { WORDS = 3, BYTES = WORDS * 8 };
    int64_t ones[WORDS] = {1, 1, 1}, old[WORDS], last = -1;
    struct oriel_piece in = {0, ones, BYTES}, out = {0, old, BYTES};
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    there.address = window_memory(window, 0)[0];
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
        if (window->rank == 0) {
            oriel_kinds[ORIEL_KIND_INT64].plain[ORIEL_OPERATOR_SUM](agent_memory, (char *)ones,
                                                                    (char *)old, WORDS);
        } else if (i % 2 == 0) {
            team_expect(oriel_agent_update(&there, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, &in, &out,
                                           1) == ORIEL_OK);
        } else {
            int64_t next[WORDS];
            team_expect(oriel_transport_agent.read(&there, next, BYTES) == ORIEL_OK);
            memcpy(old, next, BYTES);
            for (int k = 0; k < WORDS; k++)
                next[k]++;
            team_expect(oriel_agent_swap(&there, next, old, found, BYTES) == ORIEL_OK);
            team_expect(memcmp(found, old, BYTES) == 0);
        }
        oriel_accumulate_mutex_unlock(window, 0);
        team_expect(old[0] > last && old[1] == old[0] && old[2] == old[0]);
        last = old[0];
        atomic_fetch_add(&team->flags[0], 1);
    }
    team_barrier();
    if (window->rank == 0)
        team_expect(*(int64_t *)(void *)agent_memory == (int64_t)atomic_load(&team->flags[0]));
}

static void agent_u_updates_add_up(void **state)
{
    (void)state;
    team_run_sizes(add_together);
}

/* Fills the slot by hand, as a broken origin would. */
struct bad {
    const char *why;
    uint32_t operation, kind, operator, run_count;
    uint64_t first_bytes, second_bytes, data_bytes;
};

static const struct bad bad_requests[] = {
    {"an operation that is none", 77, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 1, 8, 0, 8},
    {"a kind that is none", ORIEL_AGENT_UPDATE, ORIEL_KIND_COUNT, ORIEL_OPERATOR_SUM, 1, 8, 0, 8},
    {"a distant kind", ORIEL_AGENT_UPDATE, 0x7fffffff, ORIEL_OPERATOR_SUM, 1, 8, 0, 8},
    {"an operator that is none", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, ORIEL_OPERATOR_COUNT, 1, 8,
     0, 8},
    {"a distant operator", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, 0x7fffffff, 1, 8, 0, 8},
    {"an operator not for this kind", ORIEL_AGENT_UPDATE, ORIEL_KIND_DOUBLE, ORIEL_OPERATOR_BXOR, 1,
     8, 0, 8},
    {"half an element", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 1, 12, 0, 12},
    {"halves of elements", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 2, 12, 4, 16},
    {"less than a padded pair", ORIEL_AGENT_UPDATE, ORIEL_KIND_DOUBLE_INT, ORIEL_OPERATOR_MINLOC, 1,
     2, 0, 2},
    {"more runs than there are", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM,
     ORIEL_AGENT_RUNS + 1, 0, 0, 0},
    {"more data than there is room", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 2,
     ORIEL_AGENT_DATA_BYTES, 8, ORIEL_AGENT_DATA_BYTES + 8},
    {"a length that wraps around", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 2, 16,
     UINT64_MAX - 7, 8},
    {"another sum of lengths", ORIEL_AGENT_UPDATE, ORIEL_KIND_INT64, ORIEL_OPERATOR_SUM, 1, 8, 0,
     16},
    {"a swap of two runs", ORIEL_AGENT_SWAP, 0, 0, 2, 8, 8, 16},
    {"a swap of nothing", ORIEL_AGENT_SWAP, 0, 0, 0, 0, 0, 0},
    {"a swap that has no room", ORIEL_AGENT_SWAP, 0, 0, 1, ORIEL_AGENT_DATA_BYTES / 2 + 8, 0,
     ORIEL_AGENT_DATA_BYTES / 2 + 8},
};

static void ask_badly(const struct oriel_remote *there, const struct bad *bad)
{
    struct oriel_agent_slot *slot = &there->agent->slots[0];
    uint64_t mine = oriel_file_identity()->start_time << 22 | (uint64_t)getpid();
    atomic_store(&slot->owner, mine);
    memset(slot->data, 0, sizeof slot->data);
    slot->operation = bad->operation;
    slot->kind = bad->kind;
    slot->operator= bad->operator;
    slot->returns = 1;
    slot->run_count = bad->run_count;
    memset(slot->runs, 0, sizeof slot->runs);
    slot->runs[0] = (struct oriel_agent_run){there->address, bad->first_bytes};
    slot->runs[1] = (struct oriel_agent_run){there->address, bad->second_bytes};
    slot->data_bytes = bad->data_bytes;
    slot->error = 0;
    atomic_store(&slot->answer.value, ORIEL_AGENT_ASKED);
    atomic_fetch_or(&there->agent->asked, 1);
    oriel_wake(&there->agent->asked, &there->agent->sleepers);
    team_expect(oriel_wait(&slot->answer.value, &slot->answer.sleepers, ORIEL_WAIT_EQUAL,
                           ORIEL_AGENT_DONE, NULL) == ORIEL_OK);
    if (slot->error != EINVAL)
        fprintf(stderr, "not refused: %s\n", bad->why);
    team_expect(slot->error == EINVAL);
    atomic_store(&slot->owner, 0);
}

static void ask_all_badly(struct oriel_window *window)
{
    agent_memory_open(window);
    struct oriel_remote there = agent_memory_share(window, 0);
    if (window->rank == 1) {
        agent_memory_fill(contents, MOST_BYTES);
        write_remote(&there, contents, MOST_BYTES);
        for (size_t i = 0; i < sizeof bad_requests / sizeof bad_requests[0]; i++)
            ask_badly(&there, &bad_requests[i]);
        read_remote(&there, MOST_BYTES);
        team_expect(memcmp(found, contents, MOST_BYTES) == 0);
    }
    team_barrier();
}

static void bad_requests_are_refused(void **state)
{
    (void)state;
    team_run(2, ask_all_badly);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_equal_those_of_the_kernels),
        cmocka_unit_test(update_is_one_request_while_a_slot_holds_it),
        cmocka_unit_test(update_leaves_padding_alone),
        cmocka_unit_test(update_of_unmapped_memory_is_a_range_error),
        cmocka_unit_test(swap_writes_if_all_bytes_are_as_wanted),
        cmocka_unit_test(agent_u_updates_add_up),
        cmocka_unit_test(bad_requests_are_refused),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: the agent belongs to a process, which the ranks would share");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
