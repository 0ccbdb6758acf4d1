/* Element-wise atomicity: all ranks, including the target, update the same elements concurrently,
 * and no update is lost. Totals are exact: the values are integers that every type involved
 * represents exactly. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

/* The memory under test: a window that begins with the elements of rank 0; every rank is an
 * origin. */
static struct window arena_make(enum window_kind kind)
{
    struct window window = window_make(kind, world_rank == 0 ? 32768 : 16, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    return window;
}

static void arena_settle(const struct window *window)
{
    MPI_Win_flush_all(window->win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window->win);
}

static void arena_free(struct window *window)
{
    MPI_Win_unlock_all(window->win);
    window_free(window);
}

static void read_elements(const struct window *window, MPI_Aint disp, void *elements, int len_bytes)
{
    MPI_Get(elements, len_bytes, MPI_BYTE, 0, disp, len_bytes, MPI_BYTE, window->win);
    MPI_Win_flush(0, window->win);
}

static void sums_from_all_ranks_add_up(enum window_kind kind)
{
    struct window window = arena_make(kind);
    struct random random = random_start((uint64_t)world_rank);
    int rounds = scaled_rounds(4000);
    int64_t one = 1, old, total;
    double half = 0.5, old_double, total_double;
    for (int i = 0; i < rounds; i++) {
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, window.win);
        MPI_Accumulate(&half, 1, MPI_DOUBLE, 0, 8, 1, MPI_DOUBLE, MPI_SUM, window.win);
        MPI_Get_accumulate(&half, 1, MPI_DOUBLE, &old_double, 1, MPI_DOUBLE, 0, 8, 1, MPI_DOUBLE,
                           MPI_SUM, window.win);
        MPI_Win_flush(0, window.win);
        random_pause(&random, 0);
    }
    arena_settle(&window);
    read_elements(&window, 0, &total, sizeof total);
    read_elements(&window, 8, &total_double, sizeof total_double);
    CHECK_EQUAL(total, (int64_t)2 * rounds * world_size);
    CHECK(total_double == (double)rounds * world_size, "the doubles add up to %g", total_double);
    arena_free(&window);
}

/* Each rank has one byte of the same words: a wider atomic operation must not change the
 * neighbouring bytes. */
static void neighbouring_small_elements_do_not_disturb_each_other(enum window_kind kind)
{
    struct window window = arena_make(kind);
    int rounds = scaled_rounds(4000);
    uint8_t one = 1, bytes[64];
    int16_t two = 2, shorts[64];
    for (int i = 0; i < rounds; i++) {
        MPI_Accumulate(&one, 1, MPI_UINT8_T, 0, world_rank, 1, MPI_UINT8_T, MPI_SUM, window.win);
        MPI_Accumulate(&two, 1, MPI_INT16_T, 0, 101 + 2 * world_rank, 1, MPI_INT16_T, MPI_SUM,
                       window.win);
    }
    arena_settle(&window);
    read_elements(&window, 0, bytes, sizeof bytes);
    read_elements(&window, 101, shorts, sizeof shorts);
    for (int rank = 0; rank < 32; rank++) {
        CHECK_EQUAL(bytes[rank], rank < world_size ? (uint8_t)rounds : 0);
        CHECK_EQUAL(shorts[rank], rank < world_size ? (int16_t)(2 * rounds) : 0);
    }
    arena_free(&window);
}

static void bits_and_extremes_from_all_ranks_combine(enum window_kind kind)
{
    struct window window = arena_make(kind);
    struct random random = random_start((uint64_t)world_rank);
    uint64_t mine[2] = {0, 0}, all[2], seen[3];
    int64_t highest = 0, all_highest;
    for (int i = 0; i < scaled_rounds(4000); i++) {
        uint64_t bits = random_next(&random), bit = UINT64_C(1) << random_below(&random, 64);
        int64_t value = (int64_t)random_below(&random, UINT64_C(1) << 50);
        MPI_Accumulate(&bits, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T, MPI_BXOR, window.win);
        MPI_Accumulate(&bit, 1, MPI_UINT64_T, 0, 8, 1, MPI_UINT64_T, MPI_BOR, window.win);
        MPI_Accumulate(&value, 1, MPI_INT64_T, 0, 16, 1, MPI_INT64_T, MPI_MAX, window.win);
        MPI_Win_flush_local(0, window.win);
        mine[0] ^= bits;
        mine[1] |= bit;
        highest = value > highest ? value : highest;
    }
    arena_settle(&window);
    MPI_Allreduce(&mine[0], &all[0], 1, MPI_UINT64_T, MPI_BXOR, MPI_COMM_WORLD);
    MPI_Allreduce(&mine[1], &all[1], 1, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
    MPI_Allreduce(&highest, &all_highest, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
    read_elements(&window, 0, seen, sizeof seen);
    CHECK(seen[0] == all[0], "an update by MPI_BXOR was lost");
    CHECK(seen[1] == all[1], "an update by MPI_BOR was lost");
    CHECK_EQUAL(seen[2], all_highest);
    arena_free(&window);
}

/* Increments by compare-and-swap loops on a location to which other ranks add concurrently. */
static void swap_loops_and_sums_mix(enum window_kind kind)
{
    struct window window = arena_make(kind);
    int rounds = scaled_rounds(2000);
    int64_t one = 1, total;
    int32_t total_small;
    for (int i = 0; i < rounds; i++) {
        int64_t seen = 0, wanted, next;
        int32_t seen_small = 0, wanted_small, next_small;
        do {
            wanted = seen;
            next = wanted + 1;
            MPI_Compare_and_swap(&next, &wanted, &seen, MPI_INT64_T, 0, 0, window.win);
            MPI_Win_flush(0, window.win);
        } while (seen != wanted);
        do {
            wanted_small = seen_small;
            next_small = wanted_small + 3;
            MPI_Compare_and_swap(&next_small, &wanted_small, &seen_small, MPI_INT32_T, 0, 13,
                                 window.win);
            MPI_Win_flush(0, window.win);
        } while (seen_small != wanted_small);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
    }
    arena_settle(&window);
    read_elements(&window, 0, &total, sizeof total);
    read_elements(&window, 13, &total_small, sizeof total_small);
    CHECK_EQUAL(total, (int64_t)2 * rounds * world_size);
    CHECK_EQUAL(total_small, 3 * rounds * world_size);
    arena_free(&window);
}

static void wide_elements_are_atomic(enum window_kind kind)
{
    struct window window = arena_make(kind);
    int rounds = scaled_rounds(2000);
    double complex step = 1 + 2 * I, sum;
    long double wide_step = 1, wide_sum;
    struct {
        long value;
        int at;
    } candidate, least;
    struct {
        long value;
        int at;
    } distant = {1L << 40, 1 << 30};
    if (world_rank == 0)
        memcpy(window.base + 64, &distant, sizeof distant);
    MPI_Win_sync(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < rounds; i++) {
        candidate.value = (long)(rounds - i) * 100 + world_rank;
        candidate.at = (int)candidate.value + 1;
        MPI_Accumulate(&step, 1, MPI_C_DOUBLE_COMPLEX, 0, 0, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                       window.win);
        MPI_Accumulate(&wide_step, 1, MPI_LONG_DOUBLE, 0, 32, 1, MPI_LONG_DOUBLE, MPI_SUM,
                       window.win);
        MPI_Accumulate(&candidate, 1, MPI_LONG_INT, 0, 64, 1, MPI_LONG_INT, MPI_MINLOC, window.win);
        MPI_Win_flush_local(0, window.win);
    }
    arena_settle(&window);
    read_elements(&window, 0, &sum, sizeof sum);
    read_elements(&window, 32, &wide_sum, sizeof wide_sum);
    read_elements(&window, 64, &least, sizeof least);
    CHECK(creal(sum) == (double)rounds * world_size && cimag(sum) == 2.0 * rounds * world_size,
          "the sum is %g + %g i", creal(sum), cimag(sum));
    CHECK(wide_sum == (long double)rounds * world_size, "the sum is %Lg", wide_sum);
    CHECK_EQUAL(least.value, 100);
    CHECK_EQUAL(least.at, 101);
    arena_free(&window);
}

/* Writers replace both parts by one number; a reader must never see two numbers. */
static void replaced_elements_are_never_torn(enum window_kind kind)
{
    struct window window = arena_make(kind);
    for (int i = 0; i < scaled_rounds(2000); i++) {
        double number = 1000.0 * i + world_rank;
        double complex written = number + number * I, seen;
        MPI_Accumulate(&written, 1, MPI_C_DOUBLE_COMPLEX, 0, 8, 1, MPI_C_DOUBLE_COMPLEX,
                       MPI_REPLACE, window.win);
        MPI_Get_accumulate(NULL, 0, MPI_BYTE, &seen, 1, MPI_C_DOUBLE_COMPLEX, 0, 8, 1,
                           MPI_C_DOUBLE_COMPLEX, MPI_NO_OP, window.win);
        MPI_Win_flush(0, window.win);
        CHECK(creal(seen) == cimag(seen), "read %g and %g", creal(seen), cimag(seen));
    }
    arena_settle(&window);
    arena_free(&window);
}

enum { ELEMENTS = 1100, SHAPES = 4 };

/* The elements of an array that one update covers, and their datatype. */
struct shape {
    MPI_Datatype type;
    int count;
    int elements[ELEMENTS];
};

/* All, every second, every third in reverse order, and every fifth in random order. */
static void shape_make(struct shape *shape, int number, struct random *random)
{
    static const int first[SHAPES] = {0, 0, ELEMENTS - 1, 0}, step[SHAPES] = {1, 2, -3, 5};
    shape->count = 0;
    for (int at = first[number]; at >= 0 && at < ELEMENTS; at += step[number])
        shape->elements[shape->count++] = at;
    for (int i = shape->count - 1; number == 3 && i > 0; i--) {
        int other = (int)random_below(random, (uint64_t)i + 1), swapped = shape->elements[i];
        shape->elements[i] = shape->elements[other];
        shape->elements[other] = swapped;
    }
    MPI_Type_create_indexed_block(shape->count, 1, shape->elements, MPI_INT64_T, &shape->type);
    MPI_Type_commit(&shape->type);
}

/* Updates of many elements in one shape, and of single ones, aligned or not, some across a page
 * boundary. */
static void bulk_and_single_updates_mix(enum window_kind kind)
{
    static struct shape shape;
    static int64_t ones[ELEMENTS], totals[ELEMENTS];
    static int mine[ELEMENTS], all[ELEMENTS];
    struct random random = random_start((uint64_t)world_rank);
    int rounds = scaled_rounds(120);
    for (int i = 0; i < ELEMENTS; i++)
        ones[i] = 1;
    for (int number = 0; number < 2 * SHAPES; number++) {
        const MPI_Aint disp = number % 2 ? 12345 : 0;
        struct window window = arena_make(kind);
        shape_make(&shape, number / 2, &random);
        memset(mine, 0, sizeof mine);
        for (int i = 0; i < rounds; i++) {
            MPI_Accumulate(ones, shape.count, MPI_INT64_T, 0, disp, 1, shape.type, MPI_SUM,
                           window.win);
            for (int k = 0; k < shape.count; k++)
                mine[shape.elements[k]]++;
            for (int k = 0; k < 20; k++) {
                int element =
                    shape.elements[k < 10 ? (int)random_below(&random, (uint64_t)shape.count)
                                          : shape.count / 2];
                MPI_Accumulate(ones, 1, MPI_INT64_T, 0, disp + 8 * element, 1, MPI_INT64_T, MPI_SUM,
                               window.win);
                mine[element]++;
            }
        }
        arena_settle(&window);
        MPI_Allreduce(mine, all, ELEMENTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        read_elements(&window, disp, totals, sizeof totals);
        for (int i = 0; i < ELEMENTS; i++)
            if (!CHECK(totals[i] == all[i], "element %d at %ld is %lld, not %d", i, (long)disp,
                       (long long)totals[i], all[i]))
                break;
        MPI_Type_free(&shape.type);
        arena_free(&window);
    }
}

static void tickets_are_unique(enum window_kind kind)
{
    struct window window = arena_make(kind);
    int rounds = scaled_rounds(2000), total = rounds * world_size;
    int *taken = calloc((size_t)total, sizeof *taken), *all = calloc((size_t)total, sizeof *all);
    for (int i = 0; i < rounds; i++) {
        int32_t one = 1, ticket = -1;
        MPI_Fetch_and_op(&one, &ticket, MPI_INT32_T, 0, 4, MPI_SUM, window.win);
        MPI_Win_flush(0, window.win);
        if (CHECK(ticket >= 0 && ticket < total, "ticket %d", ticket))
            taken[ticket]++;
    }
    MPI_Allreduce(taken, all, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < total; i++)
        if (!CHECK(all[i] == 1, "ticket %d was returned %d times", i, all[i]))
            break;
    free(taken);
    free(all);
    arena_free(&window);
}

/* Each token swapped in by MPI_REPLACE is swapped out once, or is the last one. */
static void replaced_tokens_are_conserved(enum window_kind kind)
{
    struct window window = arena_make(kind);
    int64_t balance = 0, all = 0, last;
    for (int i = 1; i <= scaled_rounds(2000); i++) {
        int64_t token = (int64_t)i * 1000003 + world_rank, old;
        MPI_Fetch_and_op(&token, &old, MPI_INT64_T, 0, 24, MPI_REPLACE, window.win);
        MPI_Win_flush(0, window.win);
        balance += token - old;
    }
    arena_settle(&window);
    read_elements(&window, 24, &last, sizeof last);
    MPI_Allreduce(&balance, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(all, last);
    arena_free(&window);
}

/* Each rank updates all ranks, so it is origin and target at once. */
static void all_ranks_are_targets_at_once(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    int64_t *sent = calloc((size_t)world_size, sizeof *sent),
            *wanted = calloc((size_t)world_size, sizeof *wanted);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < scaled_rounds(6000); i++) {
        int target = (int)random_below(&random, (uint64_t)world_size);
        int64_t value = (int64_t)random_below(&random, 100), old;
        if (i % 2)
            MPI_Accumulate(&value, 1, MPI_INT64_T, target, 5, 1, MPI_INT64_T, MPI_SUM, window.win);
        else
            MPI_Fetch_and_op(&value, &old, MPI_INT64_T, target, 5, MPI_SUM, window.win);
        MPI_Win_flush_local(target, window.win);
        sent[target] += value;
    }
    MPI_Win_unlock_all(window.win);
    MPI_Allreduce(sent, wanted, world_size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    CHECK_EQUAL(((int64_t *)window.base)[5], wanted[world_rank]);
    MPI_Win_unlock(world_rank, window.win);
    free(sent);
    free(wanted);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(sums_from_all_ranks_add_up, KINDS_ALL, 1),
    CASE(neighbouring_small_elements_do_not_disturb_each_other, KINDS_ALL, 1),
    CASE(bits_and_extremes_from_all_ranks_combine, KINDS_ALL, 1),
    CASE(swap_loops_and_sums_mix, KINDS_ALL, 1),
    CASE(wide_elements_are_atomic, KINDS_ALL, 1),
    CASE(replaced_elements_are_never_torn, KINDS_ALL, 1),
    CASE(bulk_and_single_updates_mix, KINDS_BOTH, 1),
    CASE(tickets_are_unique, KINDS_ALL, 1),
    CASE(replaced_tokens_are_conserved, KINDS_ALL, 1),
    CASE(all_ranks_are_targets_at_once, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
