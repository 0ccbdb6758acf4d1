/* The diagnoses over made-up sums of four ranks that ran for 1 s: each is found where it is
 * planted, names who and where, and is absent just below its threshold. */
#include "cli/verdict.h"

#include <string.h>

#include "tests/unit/cmocka_all.h"

enum { RANKS = 4, WINDOWS = 2, SITES = 8 };

#define MS      UINT64_C(1000000)
#define CALL(x) (ORIEL_TRACE_CALL + ORIEL_CALL_OF_##x)

static struct oriel_statistics_head head;
static uint8_t has_reported[RANKS];
static struct oriel_window_sum windows[WINDOWS];
static struct oriel_member_sum members[WINDOWS][RANKS];
static struct oriel_code_address places[SITES];
static struct oriel_site_sum sites[SITES];
static struct oriel_job_sum job;
static struct oriel_verdict verdict;

/* One window, "halo", made in main at app.c:1. */
static int job_make(void **state)
{
    (void)state;
    head = (struct oriel_statistics_head){.ranks = RANKS, .ran_ns = 1000 * MS};
    memset(has_reported, ORIEL_REPORTED_ALL, sizeof has_reported);
    memset(members, 0, sizeof members);
    memset(places, 0, sizeof places);
    for (int w = 0; w < WINDOWS; w++) {
        windows[w] = (struct oriel_window_sum){
            .name = "halo", .site = "main at app.c:1", .n = RANKS, .members = members[w]};
        for (int32_t i = 0; i < RANKS; i++)
            members[w][i] = (struct oriel_member_sum){.world_rank = i, .reason = ""};
    }
    job = (struct oriel_job_sum){.head = &head,
                                 .has_reported = has_reported,
                                 .windows = windows,
                                 .windows_count = 1,
                                 .sites = {.places = places, .places_count = 1, .list = sites}};
    return 0;
}

static void site_add(uint8_t kind, uint32_t window, unsigned line, uint64_t time_ns,
                     uint64_t waiting_ns)
{
    struct oriel_code_address *place = &places[job.sites.places_count];
    snprintf(place->function, sizeof place->function, "step");
    snprintf(place->file, sizeof place->file, "app.c");
    place->line = line;
    sites[job.sites.count++] = (struct oriel_site_sum){.place = (uint32_t)job.sites.places_count++,
                                                       .kind = kind,
                                                       .window = window,
                                                       .time_ns = time_ns,
                                                       .waiting_ns = waiting_ns};
}

static void caused(int window, int32_t rank, enum oriel_counted_cause cause, uint64_t ns)
{
    members[window][rank].caused_ns[cause] += ns;
    windows[window].causes_ns[cause] += ns;
}

static void operations(enum oriel_counted_operation kind, uint64_t count, uint64_t bytes,
                       uint64_t time_ns)
{
    windows[0].operations[kind] =
        (struct oriel_sum){.count = count, .bytes = bytes, .time_ns = time_ns};
}

static void calls(enum oriel_counted_call call, uint64_t count, uint64_t time_ns,
                  uint64_t waiting_ns, uint64_t waited)
{
    windows[0].calls[call] = (struct oriel_time_sum){
        .count = count, .time_ns = time_ns, .waiting_ns = waiting_ns, .waited = waited};
}

static void judge(void)
{
    oriel_verdict_free(&verdict);
    oriel_verdict_make(&job, &verdict);
}

/* The only diagnosis. */
static const struct oriel_diagnosis *only(const char *name)
{
    judge();
    assert_int_equal(verdict.count, 1);
    assert_string_equal(verdict.diagnoses[0].name, name);
    return &verdict.diagnoses[0];
}

static void assert_nothing(void)
{
    judge();
    assert_int_equal(verdict.count, 0);
}

static void a_late_rank_is_named(void **state)
{
    (void)state;
    calls(ORIEL_CALL_OF_fence, 100, 1100 * MS, 1000 * MS, 90);
    caused(0, 3, ORIEL_CAUSE_late_fence, 900 * MS);
    caused(0, 1, ORIEL_CAUSE_late_fence, 100 * MS);
    site_add(CALL(fence), 0, 61, 1000 * MS, 950 * MS);
    site_add(CALL(fence), 0, 70, 100 * MS, 50 * MS);
    const struct oriel_diagnosis *late = only("late_rank");
    assert_int_equal(late->rank, 3);
    assert_int_equal(late->cost_ns, 900 * MS);
    assert_string_equal(late->site, "step at app.c:61");
    assert_string_equal(late->problem, "Rank 3 is late: the others wait 900 ms for it, most in "
                                       "MPI_Win_fence of \"halo\", in step at app.c:61");
    assert_string_equal(late->remedy, "Load imbalance: give rank 3 less work");
    assert_int_equal(verdict.all_ns, 4000 * MS);
    assert_int_equal(verdict.calls_ns, 1100 * MS);
    assert_int_equal(verdict.waiting_ns, 1000 * MS);
}

static void ranks_that_are_late_in_turns_are_not_named(void **state)
{
    (void)state;
    calls(ORIEL_CALL_OF_start, 100, 1000 * MS, 1000 * MS, 90);
    caused(0, 3, ORIEL_CAUSE_late_post, 590 * MS);
    caused(0, 1, ORIEL_CAUSE_late_complete, 410 * MS);
    const struct oriel_diagnosis *late = only("late_rank");
    assert_int_equal(late->rank, -1);
    assert_int_equal(late->cost_ns, 1000 * MS);
    assert_non_null(strstr(late->problem, "no single rank more than 59 % of it"));
    assert_non_null(strstr(late->problem, "MPI_Win_start"));
    caused(0, 3, ORIEL_CAUSE_late_post, 50 * MS);
    assert_int_equal(only("late_rank")->rank, 3);
}

static void what_costs_little_is_left_out(void **state)
{
    (void)state;
    caused(0, 3, ORIEL_CAUSE_late_fence, 200 * MS - 1); /* 5 % of 4 s */
    assert_nothing();
    caused(0, 3, ORIEL_CAUSE_late_fence, 1);
    only("late_rank");
    has_reported[0] = has_reported[1] = has_reported[2] = ORIEL_REPORTED_NOTHING;
    head.ran_ns = 100 * MS;
    members[0][3].caused_ns[ORIEL_CAUSE_late_fence] = 10 * MS - 1;
    windows[0].causes_ns[ORIEL_CAUSE_late_fence] = 10 * MS - 1;
    assert_nothing();
    caused(0, 3, ORIEL_CAUSE_late_fence, 1);
    only("late_rank");
    head.ran_ns = 0; /* unknown */
    only("late_rank");
}

static void contended_locks_have_their_figures(void **state)
{
    (void)state;
    calls(ORIEL_CALL_OF_lock, 8, 410 * MS, 400 * MS, 4);
    caused(0, 0, ORIEL_CAUSE_busy_lock, 400 * MS);
    site_add(CALL(lock), 0, 5, 410 * MS, 400 * MS);
    const struct oriel_diagnosis *locks = only("lock_contention");
    assert_int_equal(locks->rank, 0);
    assert_string_equal(locks->problem, "Locks of \"halo\" are contended: 4 of 8 wait, 100 ms each "
                                        "and 400 ms in all, most for rank 0, in step at app.c:5");
    calls(ORIEL_CALL_OF_lock, 8, 10 * MS, 0, 0);
    assert_non_null(strstr(only("lock_contention")->problem, "Atomic operations on \"halo\" wait"));
    windows[0].causes_ns[ORIEL_CAUSE_busy_lock] = 199 * MS;
    assert_nothing();
}

static void a_slow_path_has_reason_and_remedy(void **state)
{
    (void)state;
    operations(ORIEL_COUNTS_put, 1000, 1000000, 500 * MS);
    windows[0].paths[ORIEL_PATH_cma].count = 600;
    windows[0].paths[ORIEL_PATH_polled].count = 20;
    windows[0].paths[ORIEL_PATH_direct].count = 380;
    members[0][2].path = ORIEL_PATH_cma;
    members[0][2].reason = "promotion: the memory at 0x1000 /tmp/table is already shared";
    site_add(ORIEL_TRACE_OPERATION + ORIEL_COUNTS_put, 0, 9, 500 * MS, 0);
    const struct oriel_diagnosis *slow = only("slow_path");
    assert_int_equal(slow->cost_ns, 310 * MS);
    assert_string_equal(
        slow->problem, "62 % of the puts on \"halo\" are slow, by cma, and take 310 ms, in step at "
                       "app.c:9 (promotion: the memory at 0x1000 /tmp/table is already shared)");
    assert_string_equal(slow->remedy, "Allocate the memory with MPI_Win_allocate or MPI_Alloc_mem");
    windows[0].flavour = 3;
    assert_string_equal(only("slow_path")->remedy, "Attach memory of MPI_Alloc_mem");
    members[0][2].reason = "promotion: ORIEL_PROMOTE=never";
    assert_non_null(strstr(only("slow_path")->remedy, "run without ORIEL_PROMOTE=never"));
    windows[0].paths[ORIEL_PATH_cma].count = 300; /* 160 ms */
    windows[0].paths[ORIEL_PATH_direct].count = 680;
    assert_nothing();
    windows[0].paths[ORIEL_PATH_cma].count = 600;
    members[0][2].path = ORIEL_PATH_ucx; /* another node has no better path */
    assert_nothing();
}

static void tiny_operations_could_be_one(void **state)
{
    (void)state;
    operations(ORIEL_COUNTS_put, 16000, 64 * 16000, 300 * MS);
    calls(ORIEL_CALL_OF_unlock, 1000, MS, 0, 0);
    assert_non_null(strstr(only("tiny_operations")->problem,
                           "16,000 puts of 64 B on \"halo\" take 300 ms, 16 for each call"));
    operations(ORIEL_COUNTS_put, 16000, 65 * 16000, 300 * MS);
    assert_nothing();
    operations(ORIEL_COUNTS_put, 15000, 8 * 15000, 300 * MS);
    assert_nothing();
    operations(ORIEL_COUNTS_put, 0, 0, 0);
    operations(ORIEL_COUNTS_fetch_and_op, 16000, 8 * 16000, 300 * MS); /* one by nature */
    assert_nothing();
}

static void windows_of_a_loop_are_counted(void **state)
{
    (void)state;
    calls(ORIEL_CALL_OF_create, 10 * RANKS, 150 * MS, 0, 0);
    calls(ORIEL_CALL_OF_free, 10 * RANKS, 180 * MS, 100 * MS, 5);
    site_add(CALL(create), 0, 1, 150 * MS, 0);
    const struct oriel_diagnosis *loop = only("create_in_loop");
    assert_int_equal(loop->cost_ns, 230 * MS);
    assert_string_equal(loop->problem, "Creating and freeing 10 windows on each rank takes 230 ms, "
                                       "in step at app.c:1");
    calls(ORIEL_CALL_OF_create, 10 * RANKS - 1, 150 * MS, 0, 0);
    assert_nothing();
    calls(ORIEL_CALL_OF_create, 10 * RANKS, 100 * MS, 0, 0);
    assert_nothing();
}

static void a_flush_after_each_operation_is_found(void **state)
{
    (void)state;
    operations(ORIEL_COUNTS_put, 1000, 8000, 10 * MS);
    calls(ORIEL_CALL_OF_flush, 900, 250 * MS, 0, 0);
    assert_non_null(strstr(only("flush_after_each")->problem,
                           "900 flushes for 1,000 puts on \"halo\" take 250 ms"));
    calls(ORIEL_CALL_OF_flush, 899, 250 * MS, 0, 0);
    assert_nothing();
    calls(ORIEL_CALL_OF_flush, 1000, 250 * MS, 0, 0);
    operations(ORIEL_COUNTS_fetch_and_op, 1001, 8008, 10 * MS); /* whose results are needed */
    assert_nothing();
}

static void a_busy_target_is_named(void **state)
{
    (void)state;
    calls(ORIEL_CALL_OF_flush, 3000, 250 * MS, 250 * MS, 2000);
    windows[0].operations[ORIEL_COUNTS_get].waited = 500;
    site_add(CALL(flush), 0, 8, 250 * MS, 250 * MS);
    caused(0, 1, ORIEL_CAUSE_busy_target, 250 * MS);
    const struct oriel_diagnosis *busy = only("busy_target");
    assert_int_equal(busy->rank, 1);
    assert_non_null(strstr(busy->problem, "Rank 1 is slow to reply: operations on \"halo\" wait "
                                          "250 ms, 100 us each time"));
    assert_string_equal(busy->site, "step at app.c:8");
    calls(ORIEL_CALL_OF_flush, 3000, 100 * MS, 100 * MS, 2000); /* most is in the gets */
    site_add(ORIEL_TRACE_OPERATION + ORIEL_COUNTS_get, 0, 7, 150 * MS, 150 * MS);
    windows[0].operations[ORIEL_COUNTS_get].time_ns = 150 * MS;
    assert_string_equal(only("busy_target")->site, "step at app.c:7");
    windows[0].operations[ORIEL_COUNTS_get].waited = 501;
    assert_nothing();
}

static void the_highest_cost_is_first(void **state)
{
    (void)state;
    caused(0, 3, ORIEL_CAUSE_late_fence, 300 * MS);
    caused(0, 0, ORIEL_CAUSE_busy_lock, 400 * MS);
    judge();
    assert_int_equal(verdict.count, 2);
    assert_string_equal(verdict.diagnoses[0].name, "lock_contention");
    assert_string_equal(verdict.diagnoses[1].name, "late_rank");
}

static void windows_of_one_line_and_name_are_one(void **state)
{
    (void)state;
    job.windows_count = 2;
    caused(0, 3, ORIEL_CAUSE_late_fence, 150 * MS);
    caused(1, 3, ORIEL_CAUSE_late_fence, 150 * MS);
    assert_int_equal(only("late_rank")->windows, 2);
    windows[1].name = "table";
    assert_nothing();
    windows[0].name = windows[1].name = "";
    assert_non_null(strstr(only("late_rank")->problem, " of the windows of main at app.c:1"));
    members[1][3].world_rank = -1; /* of another MPI_COMM_WORLD */
    assert_int_equal(only("late_rank")->rank, -1);
}

static void a_line_is_named_only_if_it_is_known(void **state)
{
    (void)state;
    job.windows_count = 2;
    windows[1].name = "table";
    calls(ORIEL_CALL_OF_fence, 100, 900 * MS, 900 * MS, 90);
    caused(0, 3, ORIEL_CAUSE_late_fence, 900 * MS);
    site_add(CALL(fence), 1, 10, 5000 * MS, 5000 * MS); /* of the other window */
    assert_string_equal(only("late_rank")->site, "");
    site_add(CALL(fence), 0, 11, 400 * MS, 400 * MS); /* less than half */
    assert_string_equal(only("late_rank")->site, "");
    site_add(CALL(fence), ORIEL_WINDOWS_SEVERAL, 12, 700 * MS, 700 * MS);
    assert_string_equal(only("late_rank")->site, "step at app.c:12");
    site_add(CALL(fence), ORIEL_WINDOWS_SEVERAL, 13, 700 * MS, 700 * MS); /* either of the two */
    assert_string_equal(only("late_rank")->site, "");
    sites[1].waiting_ns = 450 * MS;
    assert_string_equal(only("late_rank")->site, "step at app.c:11");
}

/* --- notes --- */

static void the_whole_run_has_no_notes(void **state)
{
    (void)state;
    job.sample = 1;
    job.filter = "";
    judge();
    assert_int_equal(verdict.notes_count, 0);
    assert_int_equal(verdict.all_ns, 4000 * MS);
}

static void calls_are_never_longer_than_the_run(void **state)
{
    (void)state;
    head.ran_ns = 10 * MS;
    site_add(CALL(create), 0, 5, 44 * MS, 0);
    judge();
    assert_int_equal(verdict.calls_ns, 44 * MS);
    assert_int_equal(verdict.all_ns, 44 * MS);
    assert_int_equal(verdict.ran_ns, 11 * MS);
}

static void pauses_are_not_part_of_the_run(void **state)
{
    (void)state;
    job.paused_ns = 2400 * MS;
    job.paused_ranks = 3;
    calls(ORIEL_CALL_OF_fence, 100, 200 * MS, 100 * MS, 90);
    caused(0, 3, ORIEL_CAUSE_late_fence, 100 * MS); /* 6 % of what was observed */
    only("late_rank");
    assert_int_equal(verdict.all_ns, 1600 * MS);
    assert_int_equal(verdict.ran_ns, 400 * MS);
    assert_int_equal(verdict.notes_count, 1);
    assert_string_equal(verdict.notes[0],
                        "3 of 4 ranks were paused by MPI_Pcontrol for 80 % of the run on average; "
                        "the figures are those of the rest");
    has_reported[0] = ORIEL_REPORTED_NOTHING;
    job.paused_ranks = 1;
    job.paused_ns = 300 * MS;
    judge();
    assert_string_equal(verdict.notes[0], "1 of 3 ranks was paused by MPI_Pcontrol for 30 % of the "
                                          "run; the figures are those of the rest");
    job.paused_ns = 9000 * MS; /* of a damaged file */
    judge();
    assert_int_equal(verdict.all_ns, 0);
}

static void a_selection_is_named(void **state)
{
    (void)state;
    job.filter = "rank=0-1;call=put";
    job.sample = 1000;
    has_reported[2] = has_reported[3] = ORIEL_REPORTED_NOTHING;
    job.events = 900;
    job.dropped = 100;
    judge();
    assert_int_equal(verdict.notes_count, 3);
    assert_string_equal(verdict.notes[0],
                        "Only calls that --trace-filter \"rank=0-1;call=put\" selects were traced, "
                        "on 2 of 4 ranks");
    assert_string_equal(verdict.notes[1],
                        "One in 1,000 operations was traced (--trace-sample): counts, bytes and "
                        "times of operations are estimates");
    assert_string_equal(verdict.notes[2],
                        "100 events (10 %) were dropped, because the disk was too slow or "
                        "ORIEL_TRACE_LIMIT was reached, and are in no figure: --trace-filter or "
                        "--trace-sample 10000 trace less");
    job.sample = 1;
    job.dropped = 50 * 900;
    judge();
    assert_non_null(strstr(verdict.notes[1], "--trace-sample 200 trace less"));
    job.dropped = 49 * 900;
    judge();
    assert_non_null(strstr(verdict.notes[1], "--trace-sample 100 trace less"));
    job.events = 0;
    judge();
    assert_non_null(strstr(verdict.notes[1], "(100 %) were dropped"));
    assert_non_null(strstr(verdict.notes[1], "are in no figure: set a higher ORIEL_TRACE_LIMIT"));
}

/* Without the calls that complete them, nothing is known about tiny operations. */
static void some_kinds_of_calls_are_not_compared(void **state)
{
    (void)state;
    operations(ORIEL_COUNTS_put, 100000, 800000, 400 * MS);
    only("tiny_operations");
    job.filter = "call=put";
    assert_nothing();
    job.filter = "rank=1;call=put";
    assert_nothing();
    job.filter = "window=call=put";
    only("tiny_operations");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_late_rank_is_named, job_make),
        cmocka_unit_test_setup(ranks_that_are_late_in_turns_are_not_named, job_make),
        cmocka_unit_test_setup(what_costs_little_is_left_out, job_make),
        cmocka_unit_test_setup(contended_locks_have_their_figures, job_make),
        cmocka_unit_test_setup(a_slow_path_has_reason_and_remedy, job_make),
        cmocka_unit_test_setup(tiny_operations_could_be_one, job_make),
        cmocka_unit_test_setup(windows_of_a_loop_are_counted, job_make),
        cmocka_unit_test_setup(a_flush_after_each_operation_is_found, job_make),
        cmocka_unit_test_setup(a_busy_target_is_named, job_make),
        cmocka_unit_test_setup(the_highest_cost_is_first, job_make),
        cmocka_unit_test_setup(windows_of_one_line_and_name_are_one, job_make),
        cmocka_unit_test_setup(a_line_is_named_only_if_it_is_known, job_make),
        cmocka_unit_test_setup(the_whole_run_has_no_notes, job_make),
        cmocka_unit_test_setup(calls_are_never_longer_than_the_run, job_make),
        cmocka_unit_test_setup(pauses_are_not_part_of_the_run, job_make),
        cmocka_unit_test_setup(a_selection_is_named, job_make),
        cmocka_unit_test_setup(some_kinds_of_calls_are_not_compared, job_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
