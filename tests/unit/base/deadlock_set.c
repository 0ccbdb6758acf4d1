/* The greatest set of ranks that cannot continue, against its definition. The definition examines
 * all subsets in which each rank is blocked by others of the subset or by finished ones, and takes
 * their union. */
#include "base/deadlock_set.h"

#include "cmocka_all.h"

#include <stdlib.h>

enum { MOST = 7, GRAPHS = 20000 };

static struct oriel_deadlock_set_graph graph;

static int setup(void **state)
{
    (void)state;
    return oriel_deadlock_set_open(&graph, MOST) ? 0 : 1;
}

static int teardown(void **state)
{
    (void)state;
    oriel_deadlock_set_close(&graph);
    return 0;
}

static void everyone(bool *set)
{
    for (int rank = 0; rank < graph.n; rank++)
        set[rank] = true;
}

static void wait_for_one(int rank, int other)
{
    oriel_deadlock_set_wait(&graph, rank, false);
    oriel_deadlock_set_clause(&graph, rank, 0, false, false);
    oriel_deadlock_set_member(&graph, other);
}

/* --- the definition --- */

static bool clause_holds(const struct oriel_deadlock_set_clause *clause, unsigned subset)
{
    unsigned doing_nothing = 0;
    for (uint32_t i = 0; i < clause->count; i++) {
        int member = graph.members[clause->first + i];
        doing_nothing +=
            (subset >> member & 1) != 0 || graph.ranks[member].state == ORIEL_DEADLOCK_SET_FINISHED;
    }
    return clause->any ? clause->count > 0 && doing_nothing == clause->count : doing_nothing > 0;
}

/* In any order of its needs: one need that is certainly unfulfilled blocks it, or all of them
 * do. */
static bool rank_is_blocked(int rank, unsigned subset)
{
    const struct oriel_deadlock_set_rank *of = &graph.ranks[rank];
    unsigned holding = 0;
    bool certain = false;
    for (uint32_t i = 0; i < of->count; i++) {
        const struct oriel_deadlock_set_clause *clause = &graph.clauses[of->first + i];
        bool holds = clause_holds(clause, subset);
        holding += holds;
        certain = certain || (holds && !clause->maybe && !of->any);
    }
    return of->state == ORIEL_DEADLOCK_SET_WAITS &&
           (certain || (of->count > 0 && holding == of->count));
}

static unsigned greatest_by_definition(void)
{
    unsigned all = 0;
    for (unsigned subset = 0; subset < 1U << graph.n; subset++) {
        bool closed = true;
        for (int rank = 0; rank < graph.n && closed; rank++)
            closed = (subset >> rank & 1) == 0 || rank_is_blocked(rank, subset);
        if (closed)
            all |= subset;
    }
    return all;
}

static void draw_graph(unsigned *seed)
{
    oriel_deadlock_set_clear(&graph);
    for (int rank = 0; rank < graph.n; rank++) {
        int kind = rand_r(seed) % 8;
        if (kind == 0)
            graph.ranks[rank].state = ORIEL_DEADLOCK_SET_FINISHED;
        if (kind < 2)
            continue;
        oriel_deadlock_set_wait(&graph, rank, rand_r(seed) % 3 == 0);
        for (int clauses = rand_r(seed) % 3 + (rand_r(seed) % 8 != 0); clauses > 0; clauses--) {
            oriel_deadlock_set_clause(&graph, rank, 0, rand_r(seed) % 2 == 0,
                                      rand_r(seed) % 3 == 0);
            for (int members = rand_r(seed) % 4; members > 0; members--)
                oriel_deadlock_set_member(&graph, rand_r(seed) % graph.n);
        }
    }
}

static void random_graphs_have_the_set_of_the_definition(void **state)
{
    unsigned seed = 1;
    int found = 0;
    (void)state;
    for (int i = 0; i < GRAPHS; i++) {
        bool set[MOST];
        unsigned subset = 0;
        draw_graph(&seed);
        everyone(set);
        int count = oriel_deadlock_set_find(&graph, set);
        for (int rank = 0; rank < graph.n; rank++)
            subset |= (unsigned)set[rank] << rank;
        assert_int_equal(subset, greatest_by_definition());
        assert_int_equal(count, __builtin_popcount(subset));
        found += count > 0 && count < graph.n;
    }
    assert_true(found > GRAPHS / 20); /* enough graphs have a deadlock */
}

/* --- by hand --- */

static void a_cycle_is_stuck_and_so_are_waits_for_it(void **state)
{
    bool set[MOST];
    (void)state;
    oriel_deadlock_set_clear(&graph);
    wait_for_one(0, 1);
    wait_for_one(1, 2);
    wait_for_one(2, 0);
    wait_for_one(3, 0);
    wait_for_one(4, 5); /* which computes */
    everyone(set);
    assert_int_equal(oriel_deadlock_set_find(&graph, set), 4);
    assert_true(set[0] && set[1] && set[2] && set[3] && !set[4] && !set[5] && !set[6]);
}

static void a_wait_for_a_finished_rank_is_stuck(void **state)
{
    bool set[MOST];
    (void)state;
    oriel_deadlock_set_clear(&graph);
    graph.ranks[1].state = ORIEL_DEADLOCK_SET_FINISHED;
    wait_for_one(0, 1);
    everyone(set);
    assert_int_equal(oriel_deadlock_set_find(&graph, set), 1);
    assert_true(set[0]);
}

static void any_of_many_is_stuck_only_by_all(void **state)
{
    bool set[MOST];
    (void)state;
    oriel_deadlock_set_clear(&graph);
    wait_for_one(1, 0);
    oriel_deadlock_set_wait(&graph, 0, false);
    oriel_deadlock_set_clause(&graph, 0, 0, true, false);
    oriel_deadlock_set_member(&graph, 1);
    oriel_deadlock_set_member(&graph, 2);
    everyone(set);
    assert_int_equal(oriel_deadlock_set_find(&graph, set), 0);
    graph.ranks[2].state = ORIEL_DEADLOCK_SET_FINISHED;
    everyone(set);
    assert_int_equal(oriel_deadlock_set_find(&graph, set), 2);
}

static void a_need_that_may_be_fulfilled_does_not_hold_alone(void **state)
{
    bool set[MOST];
    (void)state;
    oriel_deadlock_set_clear(&graph);
    wait_for_one(1, 0);
    oriel_deadlock_set_wait(&graph, 0, false);
    oriel_deadlock_set_clause(&graph, 0, 0, false, true); /* a send that may be complete */
    oriel_deadlock_set_member(&graph, 1);
    oriel_deadlock_set_clause(&graph, 0, 1, false, false); /* a receive from a rank that computes */
    oriel_deadlock_set_member(&graph, 2);
    everyone(set);
    assert_int_equal(oriel_deadlock_set_find(&graph, set), 0);
}

static void an_excluded_rank_blocks_no_other(void **state)
{
    bool set[MOST];
    (void)state;
    oriel_deadlock_set_clear(&graph);
    wait_for_one(0, 1);
    wait_for_one(1, 0);
    everyone(set);
    set[1] = false;
    assert_int_equal(oriel_deadlock_set_find(&graph, set), 0);
}

static void the_cycle_begins_at_its_lowest_rank(void **state)
{
    const struct oriel_deadlock_set_clause *clause;
    bool set[MOST];
    (void)state;
    oriel_deadlock_set_clear(&graph);
    wait_for_one(0, 3); /* into the cycle */
    wait_for_one(3, 1);
    wait_for_one(1, 4);
    wait_for_one(4, 3);
    everyone(set);
    assert_int_equal(oriel_deadlock_set_find(&graph, set), 4);
    assert_int_equal(oriel_deadlock_set_cycle(&graph, set), 1);
    const int next[] = {[1] = 4, [4] = 3, [3] = 1};
    for (int rank = 1, i = 0; i < 3; i++, rank = next[rank])
        assert_int_equal(
            oriel_deadlock_set_next(&graph, set, rank, ORIEL_DEADLOCK_SET_WAITS, &clause),
            next[rank]);
    assert_int_equal(oriel_deadlock_set_next(&graph, set, 0, ORIEL_DEADLOCK_SET_FINISHED, &clause),
                     -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs_have_the_set_of_the_definition),
        cmocka_unit_test(a_cycle_is_stuck_and_so_are_waits_for_it),
        cmocka_unit_test(a_wait_for_a_finished_rank_is_stuck),
        cmocka_unit_test(any_of_many_is_stuck_only_by_all),
        cmocka_unit_test(a_need_that_may_be_fulfilled_does_not_hold_alone),
        cmocka_unit_test(an_excluded_rank_blocks_no_other),
        cmocka_unit_test(the_cycle_begins_at_its_lowest_rank),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
