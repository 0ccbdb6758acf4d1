/* Short puts and accumulates of many kinds in one epoch, which may wait in their origin until the
 * epoch completes them. Each completing call finishes them before it notifies the target, and later
 * operations in the epoch see earlier ones. A plain MPI program, run by the test rows. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS = 2048, SLOT_BYTES = WORDS * 8, LONGEST = 96, MOST = 1500 };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}
static int left_of(int rank)
{
    return (rank + world_size - 1) % world_size;
}

/* --- the calls that complete --- */

enum completion {
    BY_FLUSH,
    BY_FLUSH_ALL,
    BY_UNLOCK,
    BY_EXCLUSIVE_UNLOCK,
    BY_FENCE,
    BY_COMPLETE,
    COMPLETIONS
};
static const char *const completion_names[] = {"flush", "flush_all", "unlock", "exclusive unlock",
                                               "fence", "complete"};

static MPI_Group group_of(int rank)
{
    MPI_Group world, one;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &rank, &one);
    MPI_Group_free(&world);
    return one;
}

static void epoch_begin(MPI_Win win, enum completion by)
{
    if (by == BY_FENCE) {
        MPI_Win_fence(0, win);
    } else if (by == BY_COMPLETE) {
        MPI_Group to = group_of(right_of(world_rank)), from = group_of(left_of(world_rank));
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        MPI_Group_free(&to);
        MPI_Group_free(&from);
    } else {
        MPI_Win_lock(by == BY_EXCLUSIVE_UNLOCK ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED,
                     right_of(world_rank), 0, win);
    }
}

/* Afterwards the host's message, or the end of the epoch, notifies the neighbour. */
static void epoch_end(MPI_Win win, enum completion by)
{
    int target = right_of(world_rank);
    if (by == BY_FLUSH)
        MPI_Win_flush(target, win);
    else if (by == BY_FLUSH_ALL)
        MPI_Win_flush_all(win);
    else if (by == BY_FENCE)
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    else if (by == BY_COMPLETE)
        MPI_Win_complete(win);
    else
        MPI_Win_unlock(target, win);
    if (by == BY_COMPLETE)
        MPI_Win_wait(win);
    else if (by != BY_FENCE)
        MPI_Sendrecv(NULL, 0, MPI_BYTE, target, 0, NULL, 0, MPI_BYTE, left_of(world_rank), 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (by == BY_FLUSH || by == BY_FLUSH_ALL)
        MPI_Win_sync(win);
}

/* Closes the epoch that stays open after a flush. */
static void epoch_close(MPI_Win win, enum completion by)
{
    if (by == BY_FLUSH || by == BY_FLUSH_ALL)
        MPI_Win_unlock(right_of(world_rank), win);
}

/* The memory of this rank, which only its left neighbour has written, must match the same random
 * sequence. */
static void memory_expect(const char *base, const char *model, enum completion by, int round)
{
    for (int i = 0; i < SLOT_BYTES; i++)
        if (!CHECK(base[i] == model[i], "round %d, by %s: byte %d is %d, not %d", round,
                   completion_names[by], i, base[i], model[i]))
            return;
}

/* --- puts --- */

/* The round's puts: to the window, or to the model of the expected result. */
static void puts_of(int origin, int round, MPI_Win win, char *model)
{
    static char data[MOST * LONGEST]; /* each put's own until all are complete */
    struct random random = random_start((uint64_t)(round * world_size + origin));
    int count = 1 + (int)random_below(&random, random_below(&random, 4) == 0 ? MOST : 40), at = 0;
    for (int i = 0; i < count; i++) {
        char *from = data + i * LONGEST;
        int len_bytes = 1 + (int)random_below(&random, random_below(&random, 8) == 0 ? LONGEST : 8);
        if (at + len_bytes > SLOT_BYTES || random_below(&random, 3) == 0)
            at = (int)random_below(&random, SLOT_BYTES - LONGEST);
        for (int byte = 0; byte < len_bytes; byte++)
            from[byte] = (char)random_next(&random);
        if (model != NULL)
            memcpy(model + at, from, (size_t)len_bytes);
        else
            MPI_Put(from, len_bytes, MPI_BYTE, right_of(origin), at, len_bytes, MPI_BYTE, win);
        at += len_bytes;
    }
}

/* --- accumulates --- */

static void apply(MPI_Op op, int64_t *word, int64_t operand)
{
    if (op == MPI_SUM)
        *word += operand;
    else if (op == MPI_REPLACE)
        *word = operand;
    else if (op == MPI_MAX)
        *word = *word > operand ? *word : operand;
    else
        *word ^= operand;
}

static void accumulates_of(int origin, int round, MPI_Win win, char *model)
{
    static int64_t operands[MOST];
    const MPI_Op ops[] = {MPI_SUM, MPI_REPLACE, MPI_MAX, MPI_BXOR};
    struct random random = random_start((uint64_t)(round * world_size + origin));
    int count = 1 + (int)random_below(&random, random_below(&random, 4) == 0 ? MOST : 40);
    int at = (int)random_below(&random, WORDS);
    MPI_Op op = MPI_SUM;
    for (int i = 0; i < count; i++) {
        if (random_below(&random, 8) == 0)
            op = ops[random_below(&random, COUNT_OF(ops))];
        if (random_below(&random, 3) == 0)
            at = (int)random_below(&random, random_below(&random, 16) == 0 ? WORDS : 80);
        operands[i] = (int64_t)random_below(&random, 1000) - 500;
        if (model != NULL)
            apply(op, (int64_t *)(void *)model + at, operands[i]);
        else
            MPI_Accumulate(&operands[i], 1, MPI_INT64_T, right_of(origin), (MPI_Aint)at * 8, 1,
                           MPI_INT64_T, op, win);
    }
}

typedef void operations(int origin, int round, MPI_Win win, char *model);

/* Only the left neighbour writes to a rank's memory. */
static void completion_try(enum window_kind kind, operations *operate)
{
    struct window window = window_make(kind, SLOT_BYTES, 1, MPI_COMM_WORLD);
    char *model = calloc(1, SLOT_BYTES);
    memset(window.base, 0, SLOT_BYTES);
    barrier(MPI_COMM_WORLD);
    for (int round = 0; round < scaled_rounds(40); round++)
        for (enum completion by = 0; by < COMPLETIONS; by++) {
            epoch_begin(window.win, by);
            operate(world_rank, round * COMPLETIONS + (int)by, window.win, NULL);
            epoch_end(window.win, by);
            operate(left_of(world_rank), round * COMPLETIONS + (int)by, window.win, model);
            memory_expect(window.base, model, by, round);
            epoch_close(window.win, by);
            barrier(MPI_COMM_WORLD);
        }
    free(model);
    window_free(&window);
}

static void each_call_that_completes_puts_has_done_them(enum window_kind kind)
{
    completion_try(kind, puts_of);
}

static void each_call_that_completes_accumulates_has_done_them(enum window_kind kind)
{
    completion_try(kind, accumulates_of);
}

/* --- in one epoch --- */

/* MPI guarantees an order for accumulates alone. Both hosts also let a get see an earlier put. */
static void later_operations_see_earlier_ones(enum window_kind kind)
{
    struct window window = window_make(kind, SLOT_BYTES, 1, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    memset(window.base, 0, SLOT_BYTES);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    for (int64_t i = 1; i <= scaled_rounds(400); i++) {
        const int64_t one = 1, more = i + 1, ten = 10;
        int64_t got = -1, fetched = -1, swapped = -1, both[2] = {-1, -1}, unused[2] = {0};
        MPI_Put(&i, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, window.win);
        MPI_Get(&got, 1, MPI_INT64_T, target, 8, 1, MPI_INT64_T, window.win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, window.win);
        MPI_Accumulate(&ten, 1, MPI_INT64_T, target, 16, 1, MPI_INT64_T, MPI_SUM, window.win);
        MPI_Fetch_and_op(&one, &fetched, MPI_INT64_T, target, 0, MPI_SUM, window.win);
        MPI_Put(&more, 1, MPI_INT64_T, target, 24, 1, MPI_INT64_T, window.win);
        MPI_Compare_and_swap(&i, &more, &swapped, MPI_INT64_T, target, 24, window.win);
        MPI_Get_accumulate(unused, 2, MPI_INT64_T, both, 2, MPI_INT64_T, target, 16, 2, MPI_INT64_T,
                           MPI_NO_OP, window.win);
        MPI_Win_flush(target, window.win);
        CHECK_EQUAL(got, i);
        CHECK_EQUAL(fetched, 2 * i - 1);
        CHECK_EQUAL(swapped, more);
        CHECK_EQUAL(both[0], 10 * i);
        CHECK_EQUAL(both[1], i);
    }
    MPI_Win_unlock(target, window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* All ranks count in the same words of rank 0, which counts itself. Each puts to a word of its own
 * between them. Rank 0 stores to other words meanwhile. */
static void many_origins_of_one_target_lose_nothing(enum window_kind kind)
{
    enum { COUNTERS = 4, APART = 64 };
    struct random random = random_start((uint64_t)world_rank);
    struct window window = window_make(kind, SLOT_BYTES, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)(void *)window.base, all = 0, mine = 0;
    const int64_t one = 1;
    memset(window.base, 0, SLOT_BYTES);
    barrier(MPI_COMM_WORLD);
    for (int round = 0; round < scaled_rounds(60); round++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
        for (int i = (int)random_below(&random, 100); i >= 0; i--, mine++) {
            MPI_Aint counter = (MPI_Aint)random_below(&random, COUNTERS) * APART;
            MPI_Accumulate(&one, 1, MPI_INT64_T, 0, counter, 1, MPI_INT64_T, MPI_SUM, window.win);
            if (world_rank == 0)
                store_word(&words[counter + APART - 1], words[counter + APART - 1] + 1);
        }
        MPI_Put(&mine, 1, MPI_INT64_T, 0, 1 + world_rank, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(0, window.win);
    }
    MPI_Reduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    int64_t *each = calloc((size_t)world_size, sizeof *each);
    MPI_Gather(&mine, 1, MPI_INT64_T, each, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
    if (world_rank == 0) {
        CHECK_EQUAL(words[0] + words[APART] + words[2 * APART] + words[3 * APART], all);
        CHECK_EQUAL(words[APART - 1] + words[2 * APART - 1] + words[3 * APART - 1] +
                        words[4 * APART - 1],
                    mine);
        for (int i = 0; i < world_size; i++)
            CHECK_EQUAL(words[1 + i], each[i]);
    }
    MPI_Win_unlock(0, window.win);
    free(each);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Inside lock_all a put arrives although its origin makes no further call: programs rely on it. */
static void a_put_in_lock_all_waits_for_no_flush(enum window_kind kind)
{
    struct window window = window_make(kind, SLOT_BYTES, 1, MPI_COMM_WORLD);
    int64_t *word = (int64_t *)(void *)window.base;
    const int64_t one = 1;
    if (!through_oriel()) {
        harness_skip("hosts may wait for a flush");
        window_free(&window);
        return;
    }
    *word = 0;
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    MPI_Put(&one, 1, MPI_INT64_T, right_of(world_rank), 0, 1, MPI_INT64_T, window.win);
    for (double begin = seconds_now(); load_word(word) == 0 && seconds_now() - begin < 20;)
        sleep_us(50);
    CHECK_EQUAL(load_word(word), 1);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* --- errors --- */

/* A page of the target's memory is unmapped or read-only. The completing call reports the window
 * and the rank, completes all other operations, and leaves the window usable. */
static void a_lost_page_fails_in_the_call_that_completes(enum window_kind kind)
{
    enum { PAGES = 5, LOST = 2 * PAGE, FIRST = PAGE / 128 };
    static const int protections[] = {PROT_NONE, PROT_READ};
    char *area = pages_map(PAGES * PAGE);
    int target = right_of(world_rank);
    MPI_Win win = window_over(area, PAGES * PAGE);
    int copied = !is_promoted(win), all = 0;
    (void)kind;
    MPI_Allreduce(&copied, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all || !through_oriel()) {
        harness_skip("the memory is shared, or the host's");
        MPI_Win_free(&win);
        munmap(area, PAGES * PAGE);
        return;
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_set_name(win, "five pages");
    for (int round = 0; round < 4; round++) {
        static int64_t values[PAGES * PAGE / 64];
        const int accumulates = round % 2;
        CHECK(mprotect(area + LOST, PAGE, protections[round / 2]) == 0, "mprotect");
        barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        for (int i = FIRST; i < PAGES * PAGE / 64; i++) {
            values[i] = i + 1;
            if (accumulates)
                CHECK_OK(MPI_Accumulate(&values[i], 1, MPI_INT64_T, target, i * 64, 1, MPI_INT64_T,
                                        MPI_SUM, win));
            else
                CHECK_OK(MPI_Put(&values[i], 1, MPI_INT64_T, target, i * 64, 1, MPI_INT64_T, win));
        }
        if (accumulates) {
            CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_flush(target, win));
            CHECK_OK(MPI_Win_unlock(target, win));
        } else {
            CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_unlock(target, win));
        }
        char rank[24];
        snprintf(rank, sizeof rank, "rank %d", target);
        CHECK(strstr(oriel_error_text(), accumulates ? "MPI_Win_flush" : "MPI_Win_unlock") != NULL,
              "%s", oriel_error_text());
        CHECK(strstr(oriel_error_text(), rank) != NULL, "%s", oriel_error_text());
        barrier(MPI_COMM_WORLD);
        for (int i = FIRST; i < PAGES * PAGE / 64; i++)
            if (i * 64 / PAGE != LOST / PAGE)
                CHECK_EQUAL(((int64_t *)(void *)area)[i * 8], (i + 1) * (accumulates + 1));
        barrier(MPI_COMM_WORLD);
    }
    CHECK(mprotect(area + LOST, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    barrier(MPI_COMM_WORLD);
    window_exercise(win, area, PAGES * PAGE);
    MPI_Win_free(&win);
    munmap(area, PAGES * PAGE);
}

/* A failure at one rank does not keep the flush from completing a put to another rank, on any
 * node. */
static void a_failure_prevents_no_other_completion(enum window_kind kind)
{
    enum { LONG_BYTES = 60000, ROUNDS = 20, SENT = 1, SEEN = 2 };
    static char sent[LONG_BYTES];
    const int broken = 1, whole = world_size - 1;
    const int64_t lost = 7;
    const MPI_Aint len_bytes = (MPI_Aint)16 * PAGE;
    char *area = pages_map(len_bytes);
    MPI_Win win = window_over(area, len_bytes);
    int copied = !is_promoted(win), all = 0;
    (void)kind;
    MPI_Allreduce(&copied, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all || !through_oriel()) {
        harness_skip("the memory is shared, or the host's");
        MPI_Win_free(&win);
        munmap(area, (size_t)len_bytes);
        return;
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (world_rank == broken)
        CHECK(mprotect(area, PAGE, PROT_NONE) == 0, "mprotect");
    barrier(MPI_COMM_WORLD);
    for (int round = 1; round <= ROUNDS; round++) {
        if (world_rank == 0) {
            sent[LONG_BYTES - 1] = (char)round;
            CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, broken, 0, win));
            CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, whole, 0, win));
            CHECK_OK(MPI_Put(&lost, 8, MPI_BYTE, broken, 0, 8, MPI_BYTE, win));
            CHECK_OK(MPI_Put(sent, LONG_BYTES, MPI_BYTE, whole, 0, LONG_BYTES, MPI_BYTE, win));
            CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Win_flush_all(win));
            MPI_Send(NULL, 0, MPI_BYTE, whole, SENT, MPI_COMM_WORLD);
            MPI_Recv(NULL, 0, MPI_BYTE, whole, SEEN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_OK(MPI_Win_unlock(broken, win));
            CHECK_OK(MPI_Win_unlock(whole, win));
        } else if (world_rank == whole) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, SENT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK_EQUAL(((volatile char *)area)[LONG_BYTES - 1], round);
            MPI_Send(NULL, 0, MPI_BYTE, 0, SEEN, MPI_COMM_WORLD);
        }
    }
    MPI_Win_free(&win);
    munmap(area, (size_t)len_bytes);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(each_call_that_completes_puts_has_done_them, KINDS_BOTH, 2),
        CASE(each_call_that_completes_accumulates_has_done_them, KINDS_BOTH, 2),
        CASE(later_operations_see_earlier_ones, KINDS_BOTH, 2),
        CASE(many_origins_of_one_target_lose_nothing, KINDS_BOTH, 1),
        CASE(a_put_in_lock_all_waits_for_no_flush, KINDS_BOTH | KIND_ONE_NODE, 1),
        CASE(a_lost_page_fails_in_the_call_that_completes, KIND_ANY | KIND_ONE_NODE, 2),
        CASE(a_failure_prevents_no_other_completion, KIND_ANY, 3),
    };
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
