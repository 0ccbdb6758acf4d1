/* The extensions of atomic operations: with requests, on lists of displacements, and of 16 bytes.
 * A plain MPI program, run by the test rows. */
#include "errors.h"
#include "oriel/ext.h"
#include "types.h"

#include <complex.h>
#include <stdlib.h>

enum { PLACES = 96, MOST = 3000, GAP_BYTE = 0x33 };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

static bool has_extensions(void)
{
    if (MPIX_Query_oriel())
        return true;
    harness_skip("the program runs without Oriel");
    return false;
}

/* --- lists --- */

/* One list of random displacements, with repetitions, on elements of one type in the right
 * neighbour's window. first: a displacement in bytes. */
struct list {
    MPI_Win win;
    const struct test_type *type;
    MPI_Op op;
    int count;
    MPI_Aint first, stride;
    size_t apart_bytes; /* from one operand to the next; more than the type's extent if resized */
    MPI_Aint *disps;
    unsigned char *origin, *result, *wanted, *memory;
};

static void list_open(struct list *list, const struct test_type *type, int count)
{
    MPI_Aint low_bytes, apart_bytes;
    MPI_Type_get_extent(type->type, &low_bytes, &apart_bytes);
    list->type = type;
    list->count = count;
    list->stride = (MPI_Aint)type->extent_bytes;
    list->apart_bytes = (size_t)apart_bytes;
    list->disps = calloc((size_t)count + 1, sizeof *list->disps);
    list->origin = calloc((size_t)count + 1, list->apart_bytes);
    list->result = malloc(((size_t)count + 1) * list->apart_bytes);
    list->wanted = malloc(((size_t)count + 1) * list->apart_bytes);
    list->memory = calloc(PLACES, type->extent_bytes);
    memset(list->result, GAP_BYTE, ((size_t)count + 1) * list->apart_bytes);
    memset(list->wanted, GAP_BYTE, ((size_t)count + 1) * list->apart_bytes);
}

static void list_close(struct list *list)
{
    free(list->disps);
    free(list->origin);
    free(list->result);
    free(list->wanted);
    free(list->memory);
}

/* Computes the results by one Fetch_and_op after the other on a copy. */
static void list_model(struct list *list, struct random *random)
{
    const size_t extent = list->type->extent_bytes;
    for (int i = 0; i < list->count; i++) {
        const size_t place = random_below(random, PLACES);
        unsigned char *at = list->memory + place * extent;
        list->disps[i] = list->first + (MPI_Aint)place * list->stride;
        unsigned char *operand = list->origin + (size_t)i * list->apart_bytes;
        unsigned char *wanted = list->wanted + (size_t)i * list->apart_bytes;
        type_fill(list->type, operand, random, 0);
        for (size_t k = 0; k < extent; k++)
            if (!type_is_padding(list->type, k))
                wanted[k] = at[k];
        if (list->op != MPI_NO_OP)
            type_apply(list->type, list->op, at, operand);
    }
}

static void list_check(const struct list *list, const char *what)
{
    const size_t apart = list->apart_bytes, extent = list->type->extent_bytes;
    for (size_t i = 0; i < (size_t)list->count; i++) {
        const unsigned char *result = list->result + i * apart, *wanted = list->wanted + i * apart;
        if (!CHECK(type_equal(list->type, result, wanted), "%s: result %zu of %d is wrong", what, i,
                   list->count) ||
            !CHECK(memcmp(result + extent, wanted + extent, apart - extent) == 0,
                   "%s: the gap after result %zu of %d has changed", what, i, list->count))
            return;
    }
}

static void list_run(struct list *list, int target, struct random *random)
{
    const size_t extent = list->type->extent_bytes;
    unsigned char *seen = calloc(PLACES, extent);
    for (int i = 0; i < PLACES; i++)
        type_fill(list->type, list->memory + (size_t)i * extent, random, 0);
    MPI_Put(list->memory, (int)(PLACES * extent), MPI_BYTE, target, list->first,
            (int)(PLACES * extent), MPI_BYTE, list->win);
    MPI_Win_flush(target, list->win);
    list_model(list, random);
    CHECK_OK(MPIX_Fetch_and_op_list(list->op == MPI_NO_OP ? NULL : list->origin, list->result,
                                    list->count, list->type->type, target, list->disps, list->op,
                                    list->win));
    MPI_Win_flush(target, list->win);
    list_check(list, list->type->name);
    MPI_Get(seen, (int)(PLACES * extent), MPI_BYTE, target, list->first, (int)(PLACES * extent),
            MPI_BYTE, list->win);
    MPI_Win_flush(target, list->win);
    for (size_t i = 0; i < PLACES; i++)
        if (!CHECK(type_equal(list->type, seen + i * extent, list->memory + i * extent),
                   "%s: element %zu is wrong after a list of %d", list->type->name, i, list->count))
            break;
    free(seen);
}

/* Aligned and not, short and long lists, and every operator of the type. */
static void lists_run(MPI_Win win, const struct test_type *type, MPI_Aint part,
                      struct random *random)
{
    static const int counts[] = {0, 1, 3, 100, MOST};
    for (size_t j = 0; j <= test_op_count; j++) {
        struct list list = {.win = win, .op = j < test_op_count ? test_ops[j].op : MPI_NO_OP};
        if (list.op != MPI_NO_OP && !type_allows(type, list.op))
            continue;
        list.first = part * world_rank + (MPI_Aint)random_below(random, 2) * 4;
        /* a few products are exact in every type */
        list_open(&list, type,
                  counts[random_below(random, list.op == MPI_PROD ? 3 : COUNT_OF(counts))]);
        list_run(&list, right_of(world_rank), random);
        list_close(&list);
    }
}

/* A struct datatype that counts as a pair, with gap bytes after each. */
static MPI_Datatype pair_make(const struct test_type *pair, MPI_Datatype value, MPI_Aint gap_bytes)
{
    const int lengths[2] = {1, 1};
    const MPI_Aint disps[2] = {0, (MPI_Aint)pair->index_offset_bytes};
    const MPI_Datatype fields[2] = {value, MPI_INT64_T};
    MPI_Datatype packed, made;
    MPI_Type_create_struct(2, lengths, disps, fields, &packed);
    MPI_Type_create_resized(packed, 0, (MPI_Aint)pair->extent_bytes + gap_bytes, &made);
    MPI_Type_free(&packed);
    MPI_Type_commit(&made);
    return made;
}

/* Of pairs with an index of 64 bits, with and without padding, also resized. */
static void lists_of_pairs_run(MPI_Win win, MPI_Aint part, struct random *random)
{
    struct test_type pairs[] = {
        {.name = "{double, int64_t}", .value_group = GROUP_FLOATING, .value_bytes = sizeof(double)},
        {.name = "{float, int64_t}", .value_group = GROUP_FLOATING, .value_bytes = sizeof(float)},
    };
    const MPI_Datatype values[] = {MPI_DOUBLE, MPI_FLOAT};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        for (MPI_Aint gap_bytes = 0; gap_bytes <= 16 && !harness_failed(); gap_bytes += 16) {
            pairs[i].group = GROUP_PAIR;
            pairs[i].index_offset_bytes = pairs[i].index_bytes = sizeof(int64_t);
            pairs[i].extent_bytes = 2 * sizeof(int64_t);
            pairs[i].type = pair_make(&pairs[i], values[i], gap_bytes);
            lists_run(win, &pairs[i], part, random);
            MPI_Type_free(&pairs[i].type);
        }
}

static void a_list_equals_its_operations(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank + 7);
    const MPI_Aint part = 32 * PLACES + 8;
    if (!has_extensions())
        return;
    struct window window = window_make(kind, part * world_size, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < test_type_count; i++)
        if (type_exists(&test_types[i]) && !harness_failed())
            lists_run(window.win, &test_types[i], part, &random);
    lists_of_pairs_run(window.win, part, &random);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* All ranks count in the same words, also by single and by bulk updates. */
static void lists_lose_no_update(enum window_kind kind)
{
    enum { WORDS = 40, LIST = 150 };
    MPI_Aint disps[LIST];
    int64_t ones[LIST], seen[LIST], total = 0;
    struct random random = random_start((uint64_t)world_rank);
    const int rounds = scaled_rounds(60);
    if (!has_extensions())
        return;
    struct window window = window_make(kind, WORDS * 8, 8, MPI_COMM_WORLD);
    const int64_t *words = (const int64_t *)window.base;
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < LIST; i++)
        ones[i] = 1;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < LIST; i++)
            disps[i] = (MPI_Aint)random_below(&random, WORDS);
        CHECK_OK(
            MPIX_Fetch_and_op_list(ones, seen, LIST, MPI_INT64_T, 0, disps, MPI_SUM, window.win));
        MPI_Accumulate(ones, WORDS, MPI_INT64_T, 0, 0, WORDS, MPI_INT64_T, MPI_SUM, window.win);
        MPI_Fetch_and_op(ones, seen, MPI_INT64_T, 0, round % WORDS, MPI_SUM, window.win);
        MPI_Win_flush(0, window.win);
    }
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window.win);
    for (int i = 0; world_rank == 0 && i < WORDS; i++)
        total += words[i];
    if (world_rank == 0)
        CHECK_EQUAL(total, (int64_t)world_size * rounds * (LIST + WORDS + 1));
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* --- requests --- */

static void requests_bring_the_former_value(enum window_kind kind)
{
    enum { MANY = 40 };
    int64_t one = 1, seen[2 * MANY], compare[MANY], sum = 0, wanted = 0;
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    if (!has_extensions())
        return;
    struct window window = window_make(kind, (MPI_Aint)16 * world_size, 8, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < MANY; i++) {
        compare[i] = i;
        CHECK_OK(MPIX_Rfetch_and_op(&one, &seen[i], MPI_INT64_T, target, 2 * world_rank, MPI_SUM,
                                    window.win, &requests[i]));
        one = 1;
    }
    CHECK_OK(MPI_Waitall(MANY, requests, statuses));
    for (int i = 0; i < MANY; i++) {
        int64_t next = i + 1;
        CHECK_OK(MPIX_Rcompare_and_swap(&next, &compare[i], &seen[MANY + i], MPI_INT64_T, target,
                                        2 * world_rank + 1, window.win, &requests[i]));
        if (i % 3 == 0)
            request_await(&requests[i]);
    }
    CHECK_OK(MPI_Waitall(MANY, requests, statuses));
    for (int i = 0; i < 2 * MANY; i++) {
        sum += seen[i];
        wanted += i % MANY;
    }
    CHECK_EQUAL(sum, wanted);
    for (int i = 0; i < MANY; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is still there", i);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* --- 16 bytes --- */

struct wide {
    uint64_t low, high;
};

/* Adds to both words in one swap; returns the number of swaps. */
static void wide_add(MPI_Win win, int target, MPI_Aint disp, struct wide add)
{
    struct wide known = {0, 0};
    struct wide seen;
    for (;;) {
        struct wide next = {known.low + add.low, known.high + add.high};
        CHECK_OK(MPIX_Compare_and_swap_128(&next, &known, &seen, target, disp, win));
        MPI_Win_flush(target, win);
        if (memcmp(&seen, &known, sizeof seen) == 0 || harness_failed())
            return;
        known = seen;
    }
}

static void swaps_of_16_bytes_are_atomic(enum window_kind kind)
{
    const int rounds = scaled_rounds(300);
    if (!has_extensions())
        return;
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    const struct wide *words = (const struct wide *)window.base;
    const uint64_t n = (uint64_t)world_size * (uint64_t)rounds;
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < rounds; i++)
        wide_add(window.win, 0, 2, (struct wide){1, (uint64_t)1 << 33});
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window.win);
    if (world_rank == 0) {
        CHECK_EQUAL(words[1].low, n);
        CHECK_EQUAL(words[1].high, n << 33);
        CHECK_EQUAL(words[0].low | words[0].high | words[2].low | words[2].high, 0);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* Elements inside the 16 bytes: words by single and bulk updates, and the whole by accumulates of
 * 16 bytes, which only the lock protects. */
static void swaps_of_16_bytes_see_all_accumulates(enum window_kind kind)
{
    const int rounds = scaled_rounds(200);
    const int64_t ones[6] = {1, 1, 1, 1, 1, 1};
    const double complex one = 1 + I;
    int64_t seen;
    if (!has_extensions())
        return;
    struct window window = window_make(kind, 128, 8, MPI_COMM_WORLD);
    const int64_t *words = (const int64_t *)window.base;
    const double *reals = (const double *)(window.base + 64);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < rounds; i++) {
        double complex known = 0, found, next;
        wide_add(window.win, 0, 2, (struct wide){1, 1});
        MPI_Fetch_and_op(ones, &seen, MPI_INT64_T, 0, 2 + i % 2, MPI_SUM, window.win);
        MPI_Accumulate(ones, 6, MPI_INT64_T, 0, 0, 6, MPI_INT64_T, MPI_SUM, window.win);
        MPI_Accumulate(&one, 1, MPI_C_DOUBLE_COMPLEX, 0, 8, 1, MPI_C_DOUBLE_COMPLEX, MPI_SUM,
                       window.win);
        for (bool swapped = false; !swapped && !harness_failed();) {
            next = known + one;
            CHECK_OK(MPIX_Compare_and_swap_128(&next, &known, &found, 0, 8, window.win));
            MPI_Win_flush(0, window.win);
            swapped = memcmp(&found, &known, sizeof found) == 0;
            known = found;
        }
    }
    MPI_Win_flush(0, window.win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window.win);
    if (world_rank == 0) {
        CHECK_EQUAL(words[2] + words[3], 5LL * world_size * rounds);
        CHECK_EQUAL((int64_t)reals[0], 2LL * world_size * rounds);
        CHECK_EQUAL((int64_t)reals[1], 2LL * world_size * rounds);
    }
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* --- errors --- */

static void wrong_lists_change_nothing(enum window_kind kind)
{
    const int64_t values[3] = {1, 2, 3};
    int64_t seen[3];
    const int target = guarded_target();
    const MPI_Aint good[3] = {0, 1, 2}, outside[3] = {0, RANGE_WORDS, 1}, negative[3] = {0, -1, 1};
    const MPI_Aint overflow[3] = {0, 1, (MPI_Aint)1 << 61};
    MPI_Op own;
    MPI_Datatype two;
    if (!has_extensions())
        return;
    struct window window = guarded_make(kind);
    MPI_Win win = window.win;
    MPI_Type_contiguous(2, MPI_INT64_T, &two);
    MPI_Type_commit(&two);
    MPI_Op_create((MPI_User_function *)(void (*)(void))right_of, 1, &own);
#define LIST(class, origin, result, count, type, rank, disps, op)                                  \
    CHECK_CLASS(class, MPIX_Fetch_and_op_list(origin, result, count, type, rank, disps, op, win))
    LIST(MPI_ERR_RMA_SYNC, values, seen, 3, MPI_INT64_T, target, good, MPI_SUM);
    MPI_Win_lock_all(0, win);
    LIST(MPI_ERR_RMA_RANGE, values, seen, 3, MPI_INT64_T, target, outside, MPI_SUM);
    LIST(MPI_ERR_DISP, values, seen, 3, MPI_INT64_T, target, negative, MPI_SUM);
    LIST(MPI_ERR_RMA_RANGE, values, seen, 3, MPI_INT64_T, target, overflow, MPI_SUM);
    LIST(MPI_ERR_COUNT, values, seen, -1, MPI_INT64_T, target, good, MPI_SUM);
    LIST(MPI_ERR_ARG, values, seen, 3, MPI_INT64_T, target, NULL, MPI_SUM);
    LIST(MPI_ERR_BUFFER, NULL, seen, 3, MPI_INT64_T, target, good, MPI_SUM);
    LIST(MPI_ERR_BUFFER, values, NULL, 3, MPI_INT64_T, target, good, MPI_SUM);
    LIST(MPI_ERR_TYPE, values, seen, 3, two, target, good, MPI_SUM);
    LIST(MPI_ERR_TYPE, values, seen, 3, MPI_DATATYPE_NULL, target, good, MPI_SUM);
    LIST(MPI_ERR_OP, values, seen, 3, MPI_DOUBLE, target, good, MPI_BAND);
    LIST(MPI_ERR_OP, values, seen, 3, MPI_INT64_T, target, good, own);
    LIST(MPI_ERR_RANK, values, seen, 3, MPI_INT64_T, world_size, good, MPI_SUM);
    LIST(MPI_SUCCESS, values, seen, 3, MPI_INT64_T, MPI_PROC_NULL, outside, MPI_SUM);
    LIST(MPI_SUCCESS, NULL, NULL, 0, MPI_INT64_T, target, NULL, MPI_SUM);
    LIST(MPI_SUCCESS, NULL, seen, 3, MPI_INT64_T, target, good, MPI_NO_OP);
    MPI_Win_unlock_all(win);
#undef LIST
    MPI_Op_free(&own);
    MPI_Type_free(&two);
    guarded_free(&window);
}

static void wrong_swaps_change_nothing(enum window_kind kind)
{
    struct wide guard, other = {1, 2}, seen;
    const int target = guarded_target();
    if (!has_extensions())
        return;
    memset(&guard, GUARD_BYTE, sizeof guard);
    struct window window = guarded_make(kind);
    MPI_Win win = window.win;
#define SWAP(class, origin, compare, result, rank, disp)                                           \
    CHECK_CLASS(class, MPIX_Compare_and_swap_128(origin, compare, result, rank, disp, win))
    SWAP(MPI_ERR_RMA_SYNC, &other, &guard, &seen, target, 0);
    MPI_Win_lock_all(0, win);
    SWAP(MPI_ERR_RMA_RANGE, &other, &guard, &seen, target, RANGE_WORDS - 1);
    SWAP(MPI_ERR_DISP, &other, &guard, &seen, target, -2);
    SWAP(MPI_ERR_BUFFER, NULL, &guard, &seen, target, 0);
    SWAP(MPI_ERR_BUFFER, &other, NULL, &seen, target, 0);
    SWAP(MPI_ERR_BUFFER, &other, &guard, NULL, target, 0);
    SWAP(MPI_ERR_RANK, &other, &guard, &seen, -5, 0);
    SWAP(MPI_SUCCESS, &other, &guard, &seen, MPI_PROC_NULL, -5);
    SWAP(MPI_ERR_ARG, &other, &guard, &seen, target, 1);
    SWAP(MPI_SUCCESS, &other, &other, &seen, target, 2);
    MPI_Win_flush(target, win);
    CHECK(memcmp(&seen, &guard, sizeof seen) == 0, "the swap returned other contents");
    MPI_Win_unlock_all(win);
#undef SWAP
    guarded_free(&window);
}

static void wrong_requests_change_nothing(enum window_kind kind)
{
    const int64_t one = 1;
    int64_t seen;
    const int target = guarded_target();
    MPI_Request request = MPI_REQUEST_NULL;
    if (!has_extensions())
        return;
    struct window window = guarded_make(kind);
    MPI_Win win = window.win;
#define FETCH(class, origin, result, type, rank, disp, op, into)                                   \
    CHECK_CLASS(class, MPIX_Rfetch_and_op(origin, result, type, rank, disp, op, win, into));       \
    CHECK(request == MPI_REQUEST_NULL, "a failed call made a request")
#define SWAP(class, origin, compare, result, type, rank, disp, into)                               \
    CHECK_CLASS(class,                                                                             \
                MPIX_Rcompare_and_swap(origin, compare, result, type, rank, disp, win, into));     \
    CHECK(request == MPI_REQUEST_NULL, "a failed call made a request")
    FETCH(MPI_ERR_RMA_SYNC, &one, &seen, MPI_INT64_T, target, 0, MPI_SUM, &request);
    SWAP(MPI_ERR_RMA_SYNC, &one, &one, &seen, MPI_INT64_T, target, 0, &request);
    MPI_Win_lock_all(0, win);
    FETCH(MPI_ERR_ARG, &one, &seen, MPI_INT64_T, target, 0, MPI_SUM, NULL);
    FETCH(MPI_ERR_RMA_RANGE, &one, &seen, MPI_INT64_T, target, RANGE_WORDS, MPI_SUM, &request);
    FETCH(MPI_ERR_BUFFER, &one, NULL, MPI_INT64_T, target, 0, MPI_SUM, &request);
    FETCH(MPI_ERR_OP, &one, &seen, MPI_FLOAT, target, 0, MPI_BOR, &request);
    SWAP(MPI_ERR_ARG, &one, &one, &seen, MPI_INT64_T, target, 0, NULL);
    SWAP(MPI_ERR_TYPE, &one, &one, &seen, MPI_DOUBLE, target, 0, &request);
    SWAP(MPI_ERR_BUFFER, &one, NULL, &seen, MPI_INT64_T, target, 0, &request);
    SWAP(MPI_ERR_RANK, &one, &one, &seen, MPI_INT64_T, world_size, 0, &request);
#undef FETCH
#undef SWAP
    CHECK_OK(
        MPIX_Rfetch_and_op(&one, &seen, MPI_INT64_T, MPI_PROC_NULL, 0, MPI_SUM, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Win_unlock_all(win);
    guarded_free(&window);
}

static void a_handle_without_a_window_is_refused(enum window_kind kind)
{
    int64_t word = 0;
    const MPI_Aint disp = 0;
    MPI_Request request;
    (void)kind;
    if (!has_extensions())
        return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Fetch_and_op_list(&word, &word, 1, MPI_INT64_T, 0, &disp, MPI_SUM,
                                                    MPI_WIN_NULL));
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Compare_and_swap_128(&word, &word, &word, 0, 0, MPI_WIN_NULL));
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Rfetch_and_op(&word, &word, MPI_INT64_T, 0, 0, MPI_SUM,
                                                MPI_WIN_NULL, &request));
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Rcompare_and_swap(&word, &word, &word, MPI_INT64_T, 0, 0,
                                                    MPI_WIN_NULL, &request));
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        CASE(a_list_equals_its_operations, KINDS_ALL, 1),
        CASE(lists_lose_no_update, KINDS_ALL, 1),
        CASE(requests_bring_the_former_value, KINDS_BOTH, 1),
        CASE(swaps_of_16_bytes_are_atomic, KINDS_ALL, 1),
        CASE(swaps_of_16_bytes_see_all_accumulates, KINDS_ALL, 1),
        CASE(wrong_lists_change_nothing, KINDS_BOTH, 1),
        CASE(wrong_swaps_change_nothing, KINDS_BOTH, 1),
        CASE(wrong_requests_change_nothing, KINDS_BOTH, 1),
        CASE(a_handle_without_a_window_is_refused, KIND_ANY, 1),
    };
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
