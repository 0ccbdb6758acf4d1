/* Single elements and short arrays on the same hot elements, always of one type and one operator.
 * Every thread's previous update is thus of the same kind. The fast paths that skip the datatype
 * check meet each other and the general paths, at the count where bulk updates begin. No update is
 * lost or applied twice, and no origin sees an element decrease. A plain MPI program, run by the
 * test rows. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

enum { HOT = 24, FEW_MOST = 11, KINDS_HERE = KIND_ALLOCATE | KIND_SHARED | KIND_HEAP };

/* Elements of one type, in which all counts are exact. */
struct work {
    MPI_Win win;
    MPI_Datatype type;
    size_t extent_bytes;
    MPI_Aint disp;
    MPI_Datatype seconds[FEW_MOST + 1]; /* this number of elements, every second one */
    struct random random;
    unsigned char ones[FEW_MOST * 8];
    unsigned char results[FEW_MOST * 8];
    double seen[HOT];
    int64_t added[HOT];
};

static void value_set(MPI_Datatype type, void *element, int value)
{
    if (type == MPI_DOUBLE)
        memcpy(element, &(double){value}, 8);
    else if (type == MPI_FLOAT)
        memcpy(element, &(float){(float)value}, 4);
    else if (type == MPI_INT32_T)
        memcpy(element, &(int32_t){value}, 4);
    else if (type == MPI_INT16_T)
        memcpy(element, &(int16_t){(int16_t)value}, 2);
    else
        memcpy(element, &(int64_t){value}, 8);
}

static double value_of(MPI_Datatype type, const void *element)
{
    double of_double;
    float of_float;
    int32_t of_32;
    int16_t of_16;
    int64_t of_64;
    if (type == MPI_DOUBLE)
        return memcpy(&of_double, element, 8), of_double;
    if (type == MPI_FLOAT)
        return memcpy(&of_float, element, 4), (double)of_float;
    if (type == MPI_INT32_T)
        return memcpy(&of_32, element, 4), of_32;
    if (type == MPI_INT16_T)
        return memcpy(&of_16, element, 2), of_16;
    return memcpy(&of_64, element, 8), (double)of_64;
}

/* Sums only grow. */
static void look_at_results(struct work *work, int first, int step, int count)
{
    MPI_Win_flush(0, work->win);
    for (int i = 0; i < count; i++) {
        int element = first + i * step;
        double now = value_of(work->type, work->results + (size_t)i * work->extent_bytes);
        CHECK(now >= work->seen[element], "element %d went back from %g to %g", element,
              work->seen[element], now);
        work->seen[element] = now;
    }
}

static void update_swapping(struct work *work, int element, MPI_Aint disp)
{
    unsigned char old[8], next[8];
    MPI_Fetch_and_op(NULL, work->results, work->type, 0, disp, MPI_NO_OP, work->win);
    do {
        MPI_Win_flush(0, work->win);
        memcpy(old, work->results, work->extent_bytes);
        value_set(work->type, next, (int)value_of(work->type, old) + 1);
        MPI_Compare_and_swap(next, old, work->results, work->type, 0, disp, work->win);
        MPI_Win_flush(0, work->win);
    } while (memcmp(old, work->results, work->extent_bytes) != 0);
    look_at_results(work, element, 1, 1);
}

/* One update of a few elements, in one of the available forms. */
static void update(struct work *work)
{
    const int form = (int)random_below(&work->random, 8);
    const int step = form == 6 ? 2 : 1;
    const int count = form < 2 || form == 7 ? 1 : 1 + (int)random_below(&work->random, FEW_MOST);
    const int first = (int)random_below(&work->random, (uint64_t)(HOT - (count - 1) * step));
    const MPI_Aint disp = work->disp + first * (MPI_Aint)work->extent_bytes;
    const bool swaps = work->type != MPI_DOUBLE && work->type != MPI_FLOAT;
    if (form == 0)
        MPI_Fetch_and_op(work->ones, work->results, work->type, 0, disp, MPI_SUM, work->win);
    else if (form == 7 && swaps)
        update_swapping(work, first, disp);
    else if (form == 5)
        MPI_Get_accumulate(work->ones, count, work->type, work->results, count, work->type, 0, disp,
                           count, work->type, MPI_SUM, work->win);
    else if (form == 6)
        MPI_Accumulate(work->ones, count, work->type, 0, disp, 1, work->seconds[count], MPI_SUM,
                       work->win);
    else
        MPI_Accumulate(work->ones, count, work->type, 0, disp, count, work->type, MPI_SUM,
                       work->win);
    if (form == 0 || form == 5)
        look_at_results(work, first, 1, count);
    for (int i = 0; i < count; i++)
        work->added[first + i * step]++;
    if (random_below(&work->random, 8) == 0)
        random_pause(&work->random, 20);
    /* enough rounds that the target's elements leave the accumulate lock again */
    if (random_below(&work->random, 100) == 0)
        for (int i = 0; i < 70; i++) {
            MPI_Accumulate(work->ones, 1, work->type, 0, work->disp, 1, work->type, MPI_SUM,
                           work->win);
            work->added[0]++;
        }
}

static void check(const struct work *work)
{
    int64_t all[HOT];
    MPI_Request request;
    unsigned char elements[HOT * 8];
    MPI_Iallreduce(work->added, all, HOT, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD, &request);
    request_await(&request);
    MPI_Get(elements, (int)(HOT * work->extent_bytes), MPI_BYTE, 0, work->disp,
            (int)(HOT * work->extent_bytes), MPI_BYTE, work->win);
    MPI_Win_flush(0, work->win);
    for (int i = 0; i < HOT; i++) {
        double now = value_of(work->type, elements + (size_t)i * work->extent_bytes);
        CHECK(now == (double)all[i], "element %d is %g, not %g", i, now, (double)all[i]);
    }
}

static void work_on(MPI_Win win, MPI_Datatype type, size_t extent_bytes, MPI_Aint disp, int rounds)
{
    struct work work = {.win = win, .type = type, .extent_bytes = extent_bytes, .disp = disp};
    work.random = random_start((uint64_t)world_rank * 31 + (uint64_t)disp);
    for (size_t i = 0; i < FEW_MOST; i++)
        value_set(type, work.ones + i * extent_bytes, 1);
    for (int i = 1; i <= FEW_MOST; i++) {
        MPI_Type_vector(i, 1, 2, type, &work.seconds[i]);
        MPI_Type_commit(&work.seconds[i]);
    }
    for (int i = 0; i < rounds && !harness_failed(); i++)
        update(&work);
    MPI_Win_flush_all(win);
    barrier(MPI_COMM_WORLD);
    check(&work);
    barrier(MPI_COMM_WORLD);
    for (int i = 1; i <= FEW_MOST; i++)
        MPI_Type_free(&work.seconds[i]);
}

static void every_type(MPI_Win win, MPI_Aint shift, int rounds)
{
    MPI_Win_lock_all(0, win);
    work_on(win, MPI_INT64_T, 8, shift, rounds);
    work_on(win, MPI_DOUBLE, 8, shift + 256, rounds);
    work_on(win, MPI_INT32_T, 4, shift + 512 + 20, rounds);
    work_on(win, MPI_FLOAT, 4, shift + 768 + 44, rounds);
    work_on(win, MPI_INT16_T, 2, shift + 1024 + 30,
            rounds > 500 ? 500 : rounds); /* keeps the sums in the type's range */
    MPI_Win_unlock_all(win);
}

static void few_elements_and_single_ones_lose_nothing(enum window_kind kind)
{
    struct window window = window_make(kind, 4096, 1, MPI_COMM_WORLD);
    every_type(window.win, 0, scaled_rounds(3000));
    every_type(window.win, 1024 + 256 + 3, scaled_rounds(500));
    window_free(&window);
}

/* Runs only those two fast paths, at full speed: the program's other updates would keep the
 * target's elements under its lock. Through an agent on a busy node they are slow, so the case runs
 * fewer rounds. */
static void fast_paths_without_type_checks_lose_nothing(enum window_kind kind)
{
    enum { TOUCHED = 12, MOST_S = 10 };
    struct window window = window_make(kind, 4096, 1, MPI_COMM_WORLD);
    const int rounds = scaled_rounds(100000);
    struct random random = random_start((uint64_t)world_rank);
    double ones[TOUCHED], sums[TOUCHED], all[TOUCHED], added[TOUCHED] = {0};
    MPI_Request request;
    for (int i = 0; i < TOUCHED; i++)
        ones[i] = 1;
    MPI_Win_lock_all(0, window.win);
    const double begin_s = MPI_Wtime();
    for (int round = 0; round < rounds && (round % 64 != 0 || MPI_Wtime() - begin_s < MOST_S);
         round++) {
        const uint64_t drawn = random_next(&random) >> 20;
        const int few = 4 + (int)(drawn % (TOUCHED - 3));
        const int count = drawn >> 20 & 1 ? few : 1;
        const int first = (int)((drawn >> 24) % (uint64_t)(TOUCHED - count + 1));
        for (int i = 0; i < 20; i++) {
            MPI_Accumulate(ones, count, MPI_DOUBLE, 0, 8 * first, count, MPI_DOUBLE, MPI_SUM,
                           window.win);
            if (round % 16 == 0)
                break;
        }
        for (int i = 0; i < count; i++)
            added[first + i] += round % 16 == 0 ? 1 : 20;
    }
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Iallreduce(added, all, TOUCHED, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    request_await(&request);
    MPI_Get(sums, TOUCHED, MPI_DOUBLE, 0, 0, TOUCHED, MPI_DOUBLE, window.win);
    MPI_Win_flush(0, window.win);
    for (int i = 0; i < TOUCHED; i++)
        CHECK(sums[i] == all[i], "element %d is %g, not %g", i, sums[i], all[i]);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void hints_change_nothing(enum window_kind kind)
{
    static const char *const values[] = {"same_op", "same_op_no_op"};
    (void)kind;
    for (int i = 0; i < 2; i++) {
        MPI_Info info;
        MPI_Win win;
        char *base;
        MPI_Info_create(&info);
        MPI_Info_set(info, "accumulate_ops", values[i]);
        MPI_Info_set(info, "accumulate_ordering", "none");
        MPI_Win_allocate(2048, 1, info, MPI_COMM_WORLD, &base, &win);
        memset(base, 0, 2048);
        window_watch(win);
        barrier(MPI_COMM_WORLD);
        every_type(win, 0, scaled_rounds(500));
        MPI_Win_free(&win);
        MPI_Info_free(&info);
    }
}

static const struct test_case cases[] = {
    CASE(few_elements_and_single_ones_lose_nothing, KINDS_HERE, 1),
    CASE(fast_paths_without_type_checks_lose_nothing, KINDS_HERE, 1),
    CASE(hints_change_nothing, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
