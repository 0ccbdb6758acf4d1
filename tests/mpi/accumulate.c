/* Accumulate, get_accumulate, fetch_and_op, compare_and_swap: every predefined operator on every
 * type that it allows, against a model. Each origin works in its own slot of a target, so the model
 * knows every value. atomicity.c and accumulate_mix.c test shared elements. A plain MPI program,
 * run by the test rows. */
#include "types.h"

#include <stdio.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_BYTES = 4096, GUARD = 0x5a, RESULT_GUARD = 0x33, MAX_COUNT = 13 };

struct slot {
    MPI_Win win;
    int target;
    MPI_Aint disp; /* of the first byte, with a displacement unit of 1 */
};

static struct window slots_make(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)world_size * SLOT_BYTES, 1, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    return window;
}

static void slots_free(struct window *window)
{
    MPI_Win_unlock_all(window->win);
    window_free(window);
}

static struct slot slot_of(const struct window *window, int distance)
{
    return (struct slot){window->win, (world_rank + distance) % world_size,
                         (MPI_Aint)world_rank * SLOT_BYTES};
}

static void slot_write(struct slot slot, const void *bytes, size_t len_bytes)
{
    MPI_Put(bytes, (int)len_bytes, MPI_BYTE, slot.target, slot.disp, (int)len_bytes, MPI_BYTE,
            slot.win);
    MPI_Win_flush(slot.target, slot.win);
}

static void slot_read(struct slot slot, void *bytes, size_t len_bytes)
{
    MPI_Get(bytes, (int)len_bytes, MPI_BYTE, slot.target, slot.disp, (int)len_bytes, MPI_BYTE,
            slot.win);
    MPI_Win_flush(slot.target, slot.win);
}

struct run {
    const struct test_type *type;
    MPI_Op op;
    int count;
    size_t offset_bytes;
    char what[120];
    unsigned char model[SLOT_BYTES];  /* the expected contents of the target */
    unsigned char before[SLOT_BYTES]; /* the contents before the call */
    unsigned char operand[SLOT_BYTES];
};

/* Fills target and operand with random elements and computes the model from them. */
static void run_prepare(struct run *run, struct slot slot, struct random *random)
{
    size_t extent = run->type->extent_bytes;
    memset(run->model, GUARD, sizeof run->model);
    for (int i = 0; i < run->count; i++) {
        type_fill(run->type, run->model + run->offset_bytes + (size_t)i * extent, random, GUARD);
        type_fill(run->type, run->operand + (size_t)i * extent, random, 0x77);
    }
    memcpy(run->before, run->model, sizeof run->model);
    slot_write(slot, run->model, sizeof run->model);
    if (run->op == MPI_NO_OP)
        return;
    for (int i = 0; i < run->count; i++)
        type_apply(run->type, run->op, run->model + run->offset_bytes + (size_t)i * extent,
                   run->operand + (size_t)i * extent);
}

static bool elements_equal(const struct run *run, const unsigned char *got,
                           const unsigned char *wanted)
{
    for (int i = 0; i < run->count; i++)
        if (!type_equal(run->type, got + (size_t)i * run->type->extent_bytes,
                        wanted + (size_t)i * run->type->extent_bytes))
            return false;
    return true;
}

static void run_verify(const struct run *run, struct slot slot)
{
    static unsigned char now[SLOT_BYTES];
    size_t end = run->offset_bytes + (size_t)run->count * run->type->extent_bytes;
    slot_read(slot, now, sizeof now);
    CHECK(elements_equal(run, now + run->offset_bytes, run->model + run->offset_bytes),
          "%s: the target is wrong", run->what);
    CHECK(memcmp(now, run->model, run->offset_bytes) == 0 &&
              memcmp(now + end, run->model + end, SLOT_BYTES - end) == 0,
          "%s: bytes next to the target changed", run->what);
}

/* Calls the function for every type and every allowed operator (and MPI_NO_OP if wanted), with one
 * element and with many. */
static void for_every_operator(struct slot slot, size_t offset_bytes, bool with_no_op,
                               bool only_one, void (*operate)(struct run *run, struct slot slot))
{
    static struct run run;
    struct random random = random_start((uint64_t)world_rank);
    slot.disp = (MPI_Aint)world_rank * SLOT_BYTES;
    for (size_t i = 0; i < test_type_count; i++) {
        if (!type_exists(&test_types[i]))
            continue;
        for (size_t j = 0; j < test_op_count + (with_no_op ? 1 : 0); j++) {
            bool no_op = j == test_op_count;
            run.type = &test_types[i];
            run.op = no_op ? MPI_NO_OP : test_ops[j].op;
            if (!no_op && !type_allows(run.type, run.op))
                continue;
            for (run.count = 1; run.count <= (only_one ? 1 : MAX_COUNT);
                 run.count += MAX_COUNT - 1) {
                run.offset_bytes = offset_bytes;
                snprintf(run.what, sizeof run.what, "%s of %d %s at offset %zu",
                         no_op ? "MPI_NO_OP" : test_ops[j].name, run.count, run.type->name,
                         offset_bytes);
                run_prepare(&run, slot, &random);
                operate(&run, slot);
                run_verify(&run, slot);
            }
        }
    }
}

static void operate_accumulate(struct run *run, struct slot slot)
{
    MPI_Accumulate(run->operand, run->count, run->type->type, slot.target,
                   slot.disp + (MPI_Aint)run->offset_bytes, run->count, run->type->type, run->op,
                   slot.win);
    MPI_Win_flush(slot.target, slot.win);
}

static void operate_raccumulate(struct run *run, struct slot slot)
{
    MPI_Request request;
    MPI_Raccumulate(run->operand, run->count, run->type->type, slot.target,
                    slot.disp + (MPI_Aint)run->offset_bytes, run->count, run->type->type, run->op,
                    slot.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(slot.target, slot.win);
}

/* The result contains the old elements and nothing else: its own padding is unchanged. */
static void result_verify(const struct run *run, unsigned char *result, size_t room_bytes)
{
    size_t extent = run->type->extent_bytes, end = (size_t)run->count * extent;
    for (size_t i = 0; i < end; i++) {
        if (type_is_padding(run->type, i % extent)) {
            CHECK(result[i] == RESULT_GUARD, "%s: the result's padding changed at byte %zu",
                  run->what, i);
            result[i] = GUARD;
        }
    }
    CHECK(elements_equal(run, result, run->before + run->offset_bytes), "%s: the result is wrong",
          run->what);
    for (size_t i = end; i < room_bytes; i++)
        if (!CHECK(result[i] == RESULT_GUARD, "%s: wrote beyond the result", run->what))
            break;
}

/* The call's arguments from the origin on; MPI_NO_OP has none. */
#define ORIGIN_OF(run)                                                                             \
    (run)->op == MPI_NO_OP ? NULL : (run)->operand, (run)->op == MPI_NO_OP ? 0 : (run)->count,     \
        (run)->op == MPI_NO_OP ? MPI_BYTE : (run)->type->type

static void operate_get_accumulate(struct run *run, struct slot slot)
{
    static unsigned char result[SLOT_BYTES];
    memset(result, RESULT_GUARD, sizeof result);
    MPI_Get_accumulate(ORIGIN_OF(run), result, run->count, run->type->type, slot.target,
                       slot.disp + (MPI_Aint)run->offset_bytes, run->count, run->type->type,
                       run->op, slot.win);
    MPI_Win_flush(slot.target, slot.win);
    result_verify(run, result, sizeof result);
}

static void operate_rget_accumulate(struct run *run, struct slot slot)
{
    static unsigned char result[SLOT_BYTES];
    MPI_Request request;
    memset(result, RESULT_GUARD, sizeof result);
    MPI_Rget_accumulate(ORIGIN_OF(run), result, run->count, run->type->type, slot.target,
                        slot.disp + (MPI_Aint)run->offset_bytes, run->count, run->type->type,
                        run->op, slot.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    result_verify(run, result, sizeof result);
    MPI_Win_flush(slot.target, slot.win);
}

static void operate_fetch_and_op(struct run *run, struct slot slot)
{
    static unsigned char result[2 * TYPE_MAX_BYTES];
    memset(result, RESULT_GUARD, sizeof result);
    MPI_Fetch_and_op(run->op == MPI_NO_OP ? NULL : run->operand, result, run->type->type,
                     slot.target, slot.disp + (MPI_Aint)run->offset_bytes, run->op, slot.win);
    MPI_Win_flush(slot.target, slot.win);
    result_verify(run, result, sizeof result);
}

static void accumulate_applies_every_operator(enum window_kind kind)
{
    struct window window = slots_make(kind);
    for_every_operator(slot_of(&window, 1), 64, false, false, operate_accumulate);
    slots_free(&window);
}

static void accumulate_to_oneself_applies_every_operator(enum window_kind kind)
{
    struct window window = slots_make(kind);
    for_every_operator(slot_of(&window, 0), 64, false, false, operate_accumulate);
    slots_free(&window);
}

static void misaligned_elements_accumulate(enum window_kind kind)
{
    struct window window = slots_make(kind);
    for_every_operator(slot_of(&window, 1), 61, false, false, operate_accumulate);
    for_every_operator(slot_of(&window, 1), 63, true, false, operate_get_accumulate);
    slots_free(&window);
}

static void get_accumulate_returns_the_old_elements(enum window_kind kind)
{
    struct window window = slots_make(kind);
    for_every_operator(slot_of(&window, 1), 128, true, false, operate_get_accumulate);
    slots_free(&window);
}

static void requests_apply_every_operator(enum window_kind kind)
{
    struct window window = slots_make(kind);
    for_every_operator(slot_of(&window, 1), 96, false, false, operate_raccumulate);
    for_every_operator(slot_of(&window, 1), 32, true, false, operate_rget_accumulate);
    slots_free(&window);
}

static void fetch_and_op_returns_the_old_element(enum window_kind kind)
{
    struct window window = slots_make(kind);
    for_every_operator(slot_of(&window, 1), 64, true, true, operate_fetch_and_op);
    for_every_operator(slot_of(&window, 1), 67, true, true, operate_fetch_and_op);
    slots_free(&window);
}

/* Fails with a wrong compare value, succeeds with the right one; the result is the old value in
 * both cases. */
static void swap_twice(struct slot slot, const struct test_type *type, size_t offset_bytes,
                       struct random *random)
{
    unsigned char old[TYPE_MAX_BYTES], other[TYPE_MAX_BYTES], new[TYPE_MAX_BYTES],
        got[TYPE_MAX_BYTES];
    unsigned char around[64], wanted[64];
    size_t bytes = type->extent_bytes;
    for (size_t i = 0; i < bytes; i++) {
        old[i] = (unsigned char)random_next(random);
        new[i] = (unsigned char)random_next(random);
    }
    if (type->group == GROUP_LOGICAL) {
        memset(old, 0, bytes);
        memset(new, 0, bytes);
        new[0] = 1;
    }
    memcpy(other, old, bytes);
    other[bytes - 1] ^= 1;
    memset(wanted, GUARD, sizeof wanted);
    memcpy(wanted + offset_bytes, old, bytes);
    slot_write(slot, wanted, sizeof wanted);
    for (int turn = 0; turn < 2; turn++) {
        memset(got, 0, sizeof got);
        MPI_Compare_and_swap(new, turn ? old : other, got, type->type, slot.target,
                             slot.disp + (MPI_Aint)offset_bytes, slot.win);
        MPI_Win_flush(slot.target, slot.win);
        CHECK(memcmp(got, old, bytes) == 0, "%s at offset %zu: the result is not the old value",
              type->name, offset_bytes);
        if (turn == 1)
            memcpy(wanted + offset_bytes, new, bytes);
        slot_read(slot, around, sizeof around);
        CHECK(memcmp(around, wanted, sizeof wanted) == 0,
              "%s at offset %zu: the target is wrong after a swap that %s", type->name,
              offset_bytes, turn ? "succeeds" : "fails");
    }
}

static void compare_and_swap_swaps_only_when_equal(enum window_kind kind)
{
    struct random random = random_start((uint64_t)world_rank);
    struct window window = slots_make(kind);
    for (int distance = 0; distance < 2; distance++)
        for (size_t i = 0; i < test_type_count; i++)
            for (size_t offset_bytes = 16; offset_bytes < 20; offset_bytes += 3)
                if (type_exists(&test_types[i]) && type_allows_swap(&test_types[i]))
                    swap_twice(slot_of(&window, distance), &test_types[i], offset_bytes, &random);
    slots_free(&window);
}

static void derived_types_accumulate_by_their_elements(enum window_kind kind)
{
    struct window window = slots_make(kind);
    struct slot slot = slot_of(&window, 1);
    MPI_Datatype three, six;
    double start[12], operand[12], result[12], now[12];
    MPI_Type_contiguous(3, MPI_DOUBLE, &three);
    MPI_Type_contiguous(2, three, &six);
    MPI_Type_commit(&three);
    MPI_Type_commit(&six);
    for (int i = 0; i < 12; i++) {
        start[i] = i;
        operand[i] = 100 * i;
    }
    slot_write(slot, start, sizeof start);
    MPI_Accumulate(operand, 12, MPI_DOUBLE, slot.target, slot.disp, 2, six, MPI_SUM, slot.win);
    MPI_Win_flush(slot.target, slot.win);
    MPI_Get_accumulate(operand, 4, three, result, 12, MPI_DOUBLE, slot.target, slot.disp, 2, six,
                       MPI_SUM, slot.win);
    MPI_Win_flush(slot.target, slot.win);
    slot_read(slot, now, sizeof now);
    for (int i = 0; i < 12; i++) {
        CHECK(result[i] == 101 * i, "result %d is %g", i, result[i]);
        CHECK(now[i] == 201 * i, "element %d is %g", i, now[i]);
    }
    slots_free(&window);
    MPI_Type_free(&three);
    MPI_Type_free(&six);
}

static void many_elements_accumulate_at_once(enum window_kind kind)
{
    enum { ELEMENTS = 100003 };
    struct window window =
        window_make(kind, (MPI_Aint)(ELEMENTS * sizeof(double)), 8, MPI_COMM_WORLD);
    double *operand = malloc(ELEMENTS * sizeof *operand);
    for (int i = 0; i < ELEMENTS; i++)
        operand[i] = i % 1000;
    MPI_Win_lock_all(0, window.win);
    for (int target = 0; target < world_size; target++)
        MPI_Accumulate(operand, ELEMENTS, MPI_DOUBLE, target, 0, ELEMENTS, MPI_DOUBLE, MPI_SUM,
                       window.win);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ELEMENTS; i++)
        if (!CHECK(((double *)window.base)[i] == (double)world_size * (i % 1000),
                   "element %d is %g", i, ((double *)window.base)[i]))
            break;
    free(operand);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* The default ordering: accumulates of one origin to one location happen in the order of the calls,
 * with no flush between. */
static void accumulates_of_one_origin_are_ordered(enum window_kind kind)
{
    struct window window = slots_make(kind);
    struct slot slot = slot_of(&window, 1);
    int64_t zero = 0, seen = -1, values[60], results[60];
    slot_write(slot, &zero, sizeof zero);
    for (int i = 0; i < 60; i++) {
        values[i] = i + 1;
        if (i % 3 == 0)
            MPI_Accumulate(&values[i], 1, MPI_INT64_T, slot.target, slot.disp, 1, MPI_INT64_T,
                           MPI_REPLACE, slot.win);
        else
            MPI_Fetch_and_op(&values[i], &results[i], MPI_INT64_T, slot.target, slot.disp,
                             MPI_REPLACE, slot.win);
    }
    MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &seen, 1, MPI_INT64_T, slot.target, slot.disp, 1,
                       MPI_INT64_T, MPI_NO_OP, slot.win);
    MPI_Win_flush(slot.target, slot.win);
    CHECK_EQUAL(seen, 60);
    for (int i = 0; i < 60; i++)
        if (i % 3)
            CHECK_EQUAL(results[i], i);
    slots_free(&window);
}

/* The types that MPI_Type_create_f90_real returns for the digits of a C type; 16 bytes are the x87
 * format or IEEE binary128. */
static void parameterised_reals_are_added(enum window_kind kind)
{
    const int digits[] = {6, 15, LDBL_DIG};
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; i++) {
        MPI_Datatype type;
        int size = 0;
        float single = 1.25f;
        double twice = 1.25;
        long double extended = 1.25L;
        const void *const ones[] = {&single, &twice, &extended};
        const size_t sizes[] = {sizeof single, sizeof twice, sizeof extended};
        if (MPI_Type_create_f90_real(digits[i], MPI_UNDEFINED, &type) != MPI_SUCCESS)
            continue; /* the host's Fortran has no real of this size */
        MPI_Type_size(type, &size);
        if ((size_t)size != sizes[i])
            continue;
        memset(window.base, 0, 64);
        MPI_Win_fence(0, window.win);
        CHECK_OK(MPI_Accumulate(ones[i], 1, type, (world_rank + 1) % world_size, 16, 1, type,
                                MPI_SUM, window.win));
        MPI_Win_fence(0, window.win);
        CHECK_OK(MPI_Accumulate(ones[i], 1, type, (world_rank + 1) % world_size, 16, 1, type,
                                MPI_SUM, window.win));
        MPI_Win_fence(0, window.win);
        long double sum = i == 0   ? *(float *)(window.base + 16)
                          : i == 1 ? *(double *)(window.base + 16)
                                   : *(long double *)(window.base + 16);
        CHECK(sum == 2.5L, "%d digits: the sum is %Lg", digits[i], sum);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(accumulate_applies_every_operator, KINDS_ALL, 1),
    CASE(accumulate_to_oneself_applies_every_operator, KINDS_BOTH, 1),
    CASE(misaligned_elements_accumulate, KINDS_BOTH, 1),
    CASE(get_accumulate_returns_the_old_elements, KINDS_ALL, 1),
    CASE(requests_apply_every_operator, KINDS_BOTH, 1),
    CASE(fetch_and_op_returns_the_old_element, KINDS_ALL, 1),
    CASE(compare_and_swap_swaps_only_when_equal, KINDS_ALL, 1),
    CASE(derived_types_accumulate_by_their_elements, KINDS_ALL, 1),
    CASE(many_elements_accumulate_at_once, KINDS_ALL, 1),
    CASE(accumulates_of_one_origin_are_ordered, KINDS_ALL, 1),
    CASE(parameterised_reals_are_added, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
