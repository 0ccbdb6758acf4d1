/* src/rma/deferred.c: deferred operations execute once, in order and completely, and change nothing
 * else, before any rank is notified. Each rank has memory that the others reach only by copies; a
 * page of it may be unmapped. */
#include "make_window.h"
#include "rma/deferred.h"
#include "rma/path_select.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

enum { ROUNDS = 3000, PAGE_BYTES = 4096, PAGES = 16, MEMORY_BYTES = PAGES * PAGE_BYTES };

static _Thread_local char *memory; /* of this rank */
static _Thread_local struct oriel_target targets[TEAM_MOST];

static void open_memory(struct oriel_window *window)
{
    memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    team_expect(memory != MAP_FAILED);
    window_memory(window, window->rank)[0] = (uint64_t)(uintptr_t)memory;
    team_barrier();
    for (int32_t i = 0; i < window->n; i++) {
        targets[i] = window->targets[i];
        targets[i].placement = ORIEL_PLACEMENT_COPY;
        targets[i].address = window_memory(window, i)[0];
        targets[i].size_bytes = MEMORY_BYTES;
        targets[i].direct_bytes = 0;
    }
    window->targets = targets;
    oriel_deferred_make(window);
    team_expect(window->deferred != NULL);
    team_barrier();
}

static void close_memory(struct oriel_window *window)
{
    team_barrier();
    oriel_deferred_free(window);
    munmap(memory, MEMORY_BYTES);
}

static void put(struct oriel_window *window, int32_t target, uint64_t offset_bytes,
                const void *here, uint64_t len_bytes)
{
    team_expect(oriel_deferred_takes(window, target, len_bytes));
    oriel_deferred_put(window, target, offset_bytes, here, len_bytes);
}

static void add(struct oriel_window *window, int32_t target, uint64_t word, int64_t operand,
                enum oriel_operator operator)
{
    oriel_deferred_accumulate(window, target, word * sizeof operand,
                              ORIEL_KIND_INT64, operator, & operand, 1);
}

static void complete(struct oriel_window *window, int32_t target)
{
    team_expect(oriel_deferred_complete(window, target) == ORIEL_OK);
}

static void get(const struct oriel_window *window, int32_t target, uint64_t offset_bytes,
                void *here, uint64_t len_bytes)
{
    const struct oriel_path path =
        oriel_path_find(window, target, offset_bytes, 0, (int64_t)len_bytes);
    team_expect(oriel_path_read(&path, here, len_bytes) == ORIEL_OK);
}

/* --- puts --- */

/* The next target's memory, which only this rank writes, against a model: after each completion
 * both are equal. */
static void put_at_random(struct oriel_window *window)
{
    static _Thread_local char model[MEMORY_BYTES], found[MEMORY_BYTES], data[ORIEL_DEFERRED_BYTES];
    int32_t target = (window->rank + 1) % window->n;
    uint64_t at = 0;
    memset(model, 0, sizeof model);
    open_memory(window);
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        const uint64_t len_bytes = 1 + team_random() % (team_random() % 8 == 0 ? sizeof data : 16);
        if (team_random() % 4 == 0 ||
            at + len_bytes > MEMORY_BYTES) /* else it continues where the last one ended */
            at = team_random() % (MEMORY_BYTES - len_bytes);
        for (uint64_t byte = 0; byte < len_bytes; byte++)
            data[byte] = (char)team_random();
        put(window, target, at, data, len_bytes);
        memcpy(model + at, data, len_bytes);
        at += len_bytes;
        if (i > 1 && team_random() % 400 != 0)
            continue;
        complete(window, team_random() % 2 == 0 ? -1 : target);
        get(window, target, 0, found, MEMORY_BYTES);
        team_expect(memcmp(found, model, MEMORY_BYTES) == 0);
    }
    complete(window, -1);
    close_memory(window);
}

static void deferred_p2_loses_no_put(void **state)
{
    (void)state;
    team_run_sizes(put_at_random);
}

/* Two targets in turn: operations queued for one execute before any are queued for the other, and
 * never at the wrong target. */
static void put_in_turn(struct oriel_window *window)
{
    open_memory(window);
    for (uint64_t i = 1; i < 300 && window->rank == 0; i++) {
        const int32_t target = 1 + (int32_t)(team_random() % 2);
        uint64_t value = 0;
        put(window, target, i * sizeof i, &i, sizeof i);
        if (team_random() % 2 == 0)
            continue;
        complete(window, target);
        get(window, target, i * sizeof i, &value, sizeof value);
        team_expect(value == i);
        get(window, 3 - target, i * sizeof i, &value, sizeof value);
        team_expect(value == 0);
    }
    complete(window, -1);
    close_memory(window);
}

static void deferred_d4_is_for_one_target_at_a_time(void **state)
{
    (void)state;
    team_run(3, put_in_turn);
}

/* --- accumulates --- */

/* All ranks count in the same few words of rank 0, which also counts itself. Words between them are
 * put by one rank each. */
static void count_together(struct oriel_window *window)
{
    enum { WORDS = 4, APART = 32 };
    uint64_t sum = 0, mine = 0;
    const uint64_t own_word =
        1 + (uint64_t)window->rank; /* of APART, after the one that all count in */
    open_memory(window);
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        const uint64_t word = team_random() % WORDS * APART;
        const int64_t one = 1;
        if (window->rank == 0) {
            team_expect(oriel_accumulate_run(window, 0, word * sizeof one, ORIEL_KIND_INT64,
                                             ORIEL_OPERATOR_SUM, (const char *)&one,
                                             1) == ORIEL_OK);
        } else {
            add(window, 0, word, 1, ORIEL_OPERATOR_SUM);
        }
        mine++;
        if (window->rank != 0 && team_random() % 16 == 0) {
            uint64_t found = 0;
            put(window, 0, own_word * sizeof mine, &mine, sizeof mine);
            complete(window, 0);
            oriel_delay();
            get(window, 0, own_word * sizeof mine, &found, sizeof found);
            team_expect(found == mine);
        }
    }
    complete(window, -1);
    atomic_fetch_add(&team->flags[0], (uint32_t)mine);
    team_barrier();
    for (uint64_t i = 0; i < WORDS && window->rank == 0; i++)
        sum += ((uint64_t *)(void *)memory)[i * APART];
    team_expect(window->rank != 0 || sum == atomic_load(&team->flags[0]));
    close_memory(window);
}

static void deferred_p3_p4_accumulates_are_atomic_and_alone(void **state)
{
    (void)state;
    team_run(2, count_together);
    team_run(4, count_together);
    team_run(8, count_together);
}

/* Operators that do not commute, and types with different orders, on adjacent and distant words, by
 * one rank. */
static void accumulate_in_order(struct oriel_window *window)
{
    static const enum oriel_operator operators[] = {ORIEL_OPERATOR_SUM, ORIEL_OPERATOR_REPLACE,
                                                    ORIEL_OPERATOR_MAX, ORIEL_OPERATOR_BXOR};
    enum { WORDS = MEMORY_BYTES / sizeof(int64_t) };
    static _Thread_local int64_t model[WORDS], found[WORDS];
    const int32_t target = (window->rank + 1) % window->n;
    enum oriel_operator operator= ORIEL_OPERATOR_SUM;
    uint64_t word = 0;
    memset(model, 0, sizeof model);
    open_memory(window);
    for (int i = team_rounds(ROUNDS); i > 0 && !team_time_is_up(); i--) {
        const enum oriel_kind kind = team_random() % 8 == 0 ? ORIEL_KIND_UINT64 : ORIEL_KIND_INT64;
        const int64_t operand = (int64_t)(team_random() % 1000) - 500;
        if (team_random() % 8 == 0)
            operator= operators[team_random() % 4];
        if (team_random() % 4 == 0)
            word = team_random() % (team_random() % 16 == 0 ? WORDS : 64);
        if (team_random() % 32 == 0) { /* a put between them */
            put(window, target, word * sizeof operand, &operand, sizeof operand);
            model[word] = operand;
        } else {
            oriel_deferred_accumulate(window, target, word * sizeof operand,
                                      kind, operator, & operand, 1);
            oriel_kinds[kind].plain[operator]((char *)&model[word], (const char *)&operand,
                                                NULL, 1);
        }
        if (i > 1 && team_random() % 300 != 0)
            continue;
        complete(window, target);
        get(window, target, 0, found, sizeof found);
        team_expect(memcmp(found, model, sizeof model) == 0);
    }
    complete(window, -1);
    close_memory(window);
}

static void deferred_p1_preserves_the_order(void **state)
{
    (void)state;
    team_run_sizes(accumulate_in_order);
}

/* --- failures --- */

/* Words around both ends of an unmapped page, in runs of four that cross them: operations on it
 * fail, and all others succeed. */
static void lose_a_page(struct oriel_window *window)
{
    enum {
        LOST = 4 * PAGE_BYTES / 8,
        IN_PAGE = PAGE_BYTES / 8,
        BESIDE = 32,
        NEAR = LOST - 2 * BESIDE
    }; /* in words */
    open_memory(window);
    if (window->rank == 1)
        team_expect(mprotect(memory + LOST * 8, PAGE_BYTES, PROT_NONE) == 0);
    team_barrier();
    for (int round = 0; round < 2 && window->rank == 0;
         round++) { /* puts, then accumulates of the same words */
        for (uint64_t i = 0; i < 4 * BESIDE; i++) {
            const uint64_t word = LOST - BESIDE + i + (i < 2 * BESIDE ? 0 : IN_PAGE - 2 * BESIDE);
            const int64_t value = (int64_t)word;
            if (round == 0)
                put(window, 1, word * 8, &value, 8);
            else
                add(window, 1, word, value, ORIEL_OPERATOR_SUM);
            if (round == 0 && i % 4 == 1)
                put(window, 1, NEAR * 8, &value, 8);
            else if (i % 4 == 1)
                add(window, 1, NEAR, 1, ORIEL_OPERATOR_SUM);
        }
        if (round == 0)
            oriel_deferred_do(window, 1);
        team_expect(oriel_deferred_complete(window, 1) == ORIEL_E_RANGE);
        team_expect(strstr(oriel_fail_message(), "rank 1") != NULL);
        team_expect(oriel_deferred_complete(window, 1) == ORIEL_OK);
        for (uint64_t i = 0; i < 2 * BESIDE; i++) {
            const uint64_t word = i < BESIDE ? LOST - BESIDE + i : LOST + IN_PAGE + i - BESIDE;
            int64_t found = 0;
            get(window, 1, word * 8, &found, 8);
            team_expect(found == (int64_t)word * (1 + round));
        }
    }
    close_memory(window);
}

static void deferred_p5_fails_alone(void **state)
{
    (void)state;
    team_run(2, lose_a_page);
}

/* --- threads --- */

struct other {
    struct oriel_window *window;
    _Atomic uint64_t deferred; /* by the other thread */
    _Atomic uint64_t completed;
};

static void *defer_for_another(void *argument)
{
    struct other *other = argument;
    for (uint64_t i = 1; i <= 500; i++) {
        oriel_deferred_put(other->window, 1, i * sizeof i, &i, sizeof i);
        atomic_store(&other->deferred, i);
        if (i % 16 == 0)
            while (atomic_load(&other->completed) < i)
                sched_yield();
    }
    return NULL;
}

/* One thread completes operations that another has deferred. */
static void complete_for_another(struct oriel_window *window)
{
    open_memory(window);
    struct other other = {.window = window};
    pthread_t thread;
    if (window->rank == 0) {
        team_expect(pthread_create(&thread, NULL, defer_for_another, &other) == 0);
        for (uint64_t known = 0; known < 500;) {
            uint64_t found = 0;
            known = atomic_load(&other.deferred);
            complete(window, 1);
            get(window, 1, known * sizeof known, &found, sizeof found);
            team_expect(found == known);
            atomic_store(&other.completed, known);
        }
        pthread_join(thread, NULL);
    }
    close_memory(window);
}

static void deferred_p2_is_completed_by_any_thread(void **state)
{
    (void)state;
    team_run(2, complete_for_another);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deferred_p2_loses_no_put),
        cmocka_unit_test(deferred_d4_is_for_one_target_at_a_time),
        cmocka_unit_test(deferred_p3_p4_accumulates_are_atomic_and_alone),
        cmocka_unit_test(deferred_p1_preserves_the_order),
        cmocka_unit_test(deferred_p5_fails_alone),
        cmocka_unit_test(deferred_p2_is_completed_by_any_thread),
    };
    return team_main(tests, argc, argv);
}
