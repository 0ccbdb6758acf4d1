/* Errors of operations: each wrong argument returns its class, moves nothing and leaves the window
 * usable. Every form of access outside the target's window is refused at the origin. A plain MPI
 * program, run by the test rows. */
#include "errors.h"

#include <limits.h>

static int64_t word = 1, result_word = -1;
static int64_t many[2 * RANGE_WORDS];

/* The arguments that the operations share, with right values; a case spoils one at a time. */
struct call {
    int origin_count;
    MPI_Datatype origin_type;
    int target;
    MPI_Aint disp;
    int target_count;
    MPI_Datatype target_type;
    MPI_Op op;
};

static struct call right_call(void)
{
    return (struct call){1, MPI_INT64_T, guarded_target(), 3, 1, MPI_INT64_T, MPI_SUM};
}

static void put_fails(const struct call *c, MPI_Win win, int class)
{
    CHECK_CLASS(class, MPI_Put(many, c->origin_count, c->origin_type, c->target, c->disp,
                               c->target_count, c->target_type, win));
}

static void get_fails(const struct call *c, MPI_Win win, int class)
{
    CHECK_CLASS(class, MPI_Get(many, c->origin_count, c->origin_type, c->target, c->disp,
                               c->target_count, c->target_type, win));
}

static void accumulate_fails(const struct call *c, MPI_Win win, int class)
{
    CHECK_CLASS(class, MPI_Accumulate(many, c->origin_count, c->origin_type, c->target, c->disp,
                                      c->target_count, c->target_type, c->op, win));
    CHECK_CLASS(class, MPI_Get_accumulate(many, c->origin_count, c->origin_type, many,
                                          c->origin_count, c->origin_type, c->target, c->disp,
                                          c->target_count, c->target_type, c->op, win));
}

static void all_fail(const struct call *c, MPI_Win win, int class)
{
    put_fails(c, win, class);
    get_fails(c, win, class);
    accumulate_fails(c, win, class);
}

static void singles_fail(int target, MPI_Aint disp, MPI_Datatype type, MPI_Win win, int class)
{
    CHECK_CLASS(class, MPI_Fetch_and_op(&word, &result_word, type, target, disp, MPI_SUM, win));
    CHECK_CLASS(class, MPI_Compare_and_swap(&word, &word, &result_word, type, target, disp, win));
}

static void ranks_outside_the_group_are_refused(enum window_kind kind)
{
    static const int wrong[] = {-7, 1000000};
    struct window window = guarded_make(kind);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(wrong) + 1; i++) {
        struct call c = right_call();
        c.target = i < COUNT_OF(wrong) ? wrong[i] : world_size;
        all_fail(&c, window.win, MPI_ERR_RANK);
        singles_fail(c.target, 3, MPI_INT64_T, window.win, MPI_ERR_RANK);
        CHECK_CLASS(MPI_ERR_RANK, MPI_Win_flush(c.target, window.win));
        CHECK_CLASS(MPI_ERR_RANK, MPI_Win_flush_local(c.target, window.win));
    }
    MPI_Win_unlock_all(window.win);
    CHECK_CLASS(MPI_ERR_RANK, MPI_Win_lock(MPI_LOCK_SHARED, world_size, 0, window.win));
    CHECK_CLASS(MPI_ERR_RANK, MPI_Win_unlock(world_size, window.win));
    guarded_free(&window);
}

static void negative_counts_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    struct call c = right_call();
    MPI_Win_lock_all(0, window.win);
    c.origin_count = -1;
    all_fail(&c, window.win, MPI_ERR_COUNT);
    c = right_call();
    c.target_count = -1;
    all_fail(&c, window.win, MPI_ERR_COUNT);
    MPI_Win_unlock_all(window.win);
    guarded_free(&window);
}

static void spoiled_types_fail(MPI_Datatype wrong, MPI_Win win)
{
    struct call c = right_call();
    c.origin_type = wrong;
    all_fail(&c, win, MPI_ERR_TYPE);
    c = right_call();
    c.target_type = wrong;
    all_fail(&c, win, MPI_ERR_TYPE);
}

static void the_null_datatype_is_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Win_lock_all(0, window.win);
    spoiled_types_fail(MPI_DATATYPE_NULL, window.win);
    singles_fail(guarded_target(), 3, MPI_DATATYPE_NULL, window.win, MPI_ERR_TYPE);
    MPI_Win_unlock_all(window.win);
    guarded_free(&window);
}

static void uncommitted_datatypes_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Datatype raw;
    MPI_Type_contiguous(1, MPI_INT64_T, &raw);
    MPI_Win_lock_all(0, window.win);
    spoiled_types_fail(raw, window.win);
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&raw);
    guarded_free(&window);
}

/* An accumulate needs the same predefined type on both sides. */
static void accumulates_of_unlike_types_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    struct call c = right_call();
    MPI_Win_lock_all(0, window.win);
    c.origin_type = MPI_DOUBLE;
    accumulate_fails(&c, window.win, MPI_ERR_TYPE);
    c = right_call();
    c.target_type = MPI_INT32_T;
    c.target_count = 2;
    accumulate_fails(&c, window.win, MPI_ERR_TYPE);
    MPI_Win_unlock_all(window.win);
    guarded_free(&window);
}

static void swaps_of_other_types_are_refused(enum window_kind kind)
{
    const MPI_Datatype wrong[] = {MPI_FLOAT, MPI_DOUBLE,    MPI_LONG_DOUBLE, MPI_C_DOUBLE_COMPLEX,
                                  MPI_2INT,  MPI_DOUBLE_INT};
    struct window window = guarded_make(kind);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        CHECK_CLASS(MPI_ERR_TYPE, MPI_Compare_and_swap(many, many, many + 8, wrong[i],
                                                       guarded_target(), 2, window.win));
    MPI_Win_unlock_all(window.win);
    guarded_free(&window);
}

static void add_up(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int64_t *)inout)[i] += ((int64_t *)in)[i];
}

static void operators_that_do_not_fit_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Op user;
    MPI_Op_create(add_up, 1, &user);
    const struct {
        MPI_Op op;
        MPI_Datatype type;
    } wrong[] = {
        {user, MPI_INT64_T},    {MPI_OP_NULL, MPI_INT64_T},     {MPI_BAND, MPI_DOUBLE},
        {MPI_LAND, MPI_DOUBLE}, {MPI_MAX, MPI_C_FLOAT_COMPLEX}, {MPI_MINLOC, MPI_INT64_T},
        {MPI_SUM, MPI_2INT},    {MPI_SUM, MPI_WCHAR},
    };
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct call c = right_call();
        c.op = wrong[i].op;
        c.origin_type = c.target_type = wrong[i].type;
        accumulate_fails(&c, window.win, MPI_ERR_OP);
        CHECK_CLASS(MPI_ERR_OP, MPI_Fetch_and_op(many, many + 8, wrong[i].type, guarded_target(), 3,
                                                 wrong[i].op, window.win));
    }
    for (int i = 0; i < 2; i++) { /* also right after a valid call */
        CHECK_CLASS(MPI_ERR_OP, MPI_Accumulate(&word, 1, MPI_INT64_T, guarded_target(), 3, 1,
                                               MPI_INT64_T, MPI_NO_OP, window.win));
        CHECK_OK(
            MPI_Fetch_and_op(&word, many, MPI_INT64_T, guarded_target(), 3, MPI_NO_OP, window.win));
    }
    MPI_Win_unlock_all(window.win);
    MPI_Op_free(&user);
    guarded_free(&window);
}

static void range_fails(MPI_Aint disp, int count, MPI_Datatype type, MPI_Win win)
{
    struct call c = {count, type, guarded_target(), disp, count, type, MPI_REPLACE};
    all_fail(&c, win, disp < 0 ? MPI_ERR_DISP : MPI_ERR_RMA_RANGE);
}

/* Beyond the end, across the end, negative displacements, and displacements and counts that
 * overflow 64 bits. */
static void accesses_outside_the_window_are_refused(enum window_kind kind)
{
    static const MPI_Aint disps[] = {
        RANGE_WORDS,  RANGE_WORDS + 1, 1 << 20,           -1,
        -RANGE_WORDS, PTRDIFF_MAX,     PTRDIFF_MAX / 8,   PTRDIFF_MAX / 8 + 1,
        PTRDIFF_MIN,  PTRDIFF_MIN / 8, (MPI_Aint)1 << 61, -((MPI_Aint)1 << 61)};
    struct window window = guarded_make(kind);
    MPI_Win_lock_all(0, window.win);
    for (size_t i = 0; i < COUNT_OF(disps); i++) {
        range_fails(disps[i], 1, MPI_INT64_T, window.win);
        range_fails(disps[i], 1, MPI_BYTE, window.win);
        singles_fail(guarded_target(), disps[i], MPI_INT64_T, window.win,
                     disps[i] < 0 ? MPI_ERR_DISP : MPI_ERR_RMA_RANGE);
    }
    range_fails(0, RANGE_WORDS + 1, MPI_INT64_T, window.win);
    range_fails(RANGE_WORDS - 1, 2, MPI_INT64_T, window.win);
    range_fails(RANGE_WORDS - 1, 9, MPI_BYTE, window.win);
    MPI_Win_unlock_all(window.win);
    guarded_free(&window);
}

/* The origin's side is never read here: 2^31 - 1 elements of 2^27 words far exceed the address
 * space. */
static void counts_that_overflow_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Datatype large, larger;
    MPI_Type_contiguous(1 << 27, MPI_INT64_T, &large);
    MPI_Type_contiguous(1 << 27, large, &larger);
    MPI_Type_commit(&large);
    MPI_Type_commit(&larger);
    MPI_Win_lock_all(0, window.win);
    range_fails(0, INT_MAX, MPI_INT64_T, window.win);
    range_fails(0, INT_MAX, large, window.win);
    range_fails(0, 2, large, window.win);
    range_fails(0, INT_MAX, larger, window.win);
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&large);
    MPI_Type_free(&larger);
    guarded_free(&window);
}

static void an_empty_window_refuses_every_access(enum window_kind kind)
{
    struct window window = window_make(kind, 0, 1, MPI_COMM_WORLD);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window.win);
    range_fails(0, 1, MPI_BYTE, window.win);
    singles_fail(guarded_target(), 0, MPI_INT, window.win, MPI_ERR_RMA_RANGE);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

/* The data of the two sides must have the same size. */
static void sides_of_unlike_sizes_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Win_lock_all(0, window.win);
    CHECK(MPI_Put(many, 4, MPI_INT64_T, guarded_target(), 3, 2, MPI_INT64_T, window.win) !=
              MPI_SUCCESS,
          "a put of four words into two succeeds");
    CHECK(MPI_Get(many, 2, MPI_INT64_T, guarded_target(), 3, 4, MPI_INT64_T, window.win) !=
              MPI_SUCCESS,
          "a get of four words into two succeeds");
    MPI_Win_unlock_all(window.win);
    guarded_free(&window);
}

/* Recognised before any other check: neither the displacement nor the missing epoch matters. */
static void proc_null_is_a_no_op(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    for (int inside = 0; inside < 2; inside++) {
        struct call c = right_call();
        if (inside)
            MPI_Win_lock_all(0, window.win);
        c.target = MPI_PROC_NULL;
        c.disp = -5;
        all_fail(&c, window.win, MPI_SUCCESS);
        result_word = 4711;
        singles_fail(MPI_PROC_NULL, 1 << 30, MPI_INT64_T, window.win, MPI_SUCCESS);
        CHECK_EQUAL(result_word, 4711);
        if (inside)
            MPI_Win_unlock_all(window.win);
    }
    guarded_free(&window);
}

/* Two words around an offset; the origin's are contiguous. */
static MPI_Datatype around(int words_apart)
{
    MPI_Datatype type;
    const MPI_Aint displs[] = {-8 * (words_apart - 1), 8};
    MPI_Type_create_hindexed_block(2, 1, displs, MPI_INT64_T, &type);
    MPI_Type_commit(&type);
    return type;
}

static void both_fail(struct call c, MPI_Win win, int class)
{
    put_fails(&c, win, class);
    get_fails(&c, win, class);
}

static void both_work(const struct call *c, MPI_Win win)
{
    memset(many, GUARD_BYTE, sizeof many);
    for (int i = 0; i < 4; i++)
        both_fail(*c, win, MPI_SUCCESS);
}

/* Arguments that were right many times are checked again: displacement, rank, epoch and buffer
 * differ each time, and a handle may now name another type. */
static void transfers_done_before_are_checked_again(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    struct call right = right_call();
    right.origin_count = 2;
    right.target_type = around(2);
    MPI_Win_lock_all(0, window.win);
    for (int larger = 0; larger < 2; larger++) {
        const MPI_Aint wrong[] = {larger, RANGE_WORDS - 1, -1, -1000, PTRDIFF_MAX / 8, PTRDIFF_MIN};
        struct call c = right;
        for (c.disp = larger + 1; c.disp < RANGE_WORDS - 2; c.disp++)
            both_work(&c, window.win);
        for (size_t i = 0; i < COUNT_OF(wrong); i++) {
            c.disp = wrong[i];
            both_fail(c, window.win, c.disp < 0 ? MPI_ERR_DISP : MPI_ERR_RMA_RANGE);
        }
        MPI_Type_free(&right.target_type);
        right.target_type = around(3);
    }
    both_work(&right, window.win);
    struct call c = right;
    c.target = world_size;
    both_fail(c, window.win, MPI_ERR_RANK);
    c = right;
    c.target_count = -1;
    both_fail(c, window.win, MPI_ERR_COUNT);
    c = right;
    c.origin_count = 3;
    put_fails(&c, window.win, MPI_ERR_TRUNCATE);
    c.origin_count = 1;
    get_fails(&c, window.win, MPI_ERR_TRUNCATE);
    both_work(&right, window.win);
    CHECK_CLASS(MPI_ERR_BUFFER,
                MPI_Put(NULL, 2, MPI_INT64_T, right.target, 3, 1, right.target_type, window.win));
    MPI_Win_unlock_all(window.win);
    both_fail(right, window.win, MPI_ERR_RMA_SYNC);
    MPI_Type_free(&right.target_type);
    guarded_free(&window);
}

static int handler_calls, handler_class;
static MPI_Win handler_win;

static void note_call(MPI_Win *win, int *code, ...)
{
    handler_calls++;
    handler_win = *win;
    MPI_Error_class(*code, &handler_class);
}

static void the_windows_own_handler_is_called_once(enum window_kind kind)
{
    struct window window = guarded_make(kind), other = guarded_make(kind);
    MPI_Errhandler handler;
    MPI_Win_create_errhandler(note_call, &handler);
    MPI_Win_set_errhandler(window.win, handler);
    handler_calls = 0;
    CHECK_CLASS(MPI_ERR_RMA_SYNC,
                MPI_Put(&word, 1, MPI_INT64_T, guarded_target(), 0, 1, MPI_INT64_T, window.win));
    CHECK_EQUAL(handler_calls, 1);
    CHECK_EQUAL(handler_class, MPI_ERR_RMA_SYNC);
    CHECK(handler_win == window.win, "the handler got another window");
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Put(&word, 1, MPI_INT64_T, guarded_target(), 10000, 1,
                                           MPI_INT64_T, window.win));
    CHECK_EQUAL(handler_calls, 2);
    CHECK_EQUAL(handler_class, MPI_ERR_RMA_RANGE);
    MPI_Win_unlock_all(window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Win_unlock(guarded_target(), other.win));
    CHECK_EQUAL(handler_calls, 2);
    MPI_Errhandler_free(&handler);
    guarded_free(&other);
    guarded_free(&window);
}

static const struct test_case cases[] = {
    CASE(ranks_outside_the_group_are_refused, KINDS_BOTH, 1),
    CASE(negative_counts_are_refused, KINDS_BOTH, 1),
    CASE(the_null_datatype_is_refused, KINDS_BOTH, 1),
    CASE(uncommitted_datatypes_are_refused, KINDS_BOTH, 1),
    CASE(accumulates_of_unlike_types_are_refused, KINDS_BOTH, 1),
    CASE(swaps_of_other_types_are_refused, KINDS_BOTH, 1),
    CASE(operators_that_do_not_fit_are_refused, KINDS_BOTH, 1),
    CASE(accesses_outside_the_window_are_refused, KINDS_ALL, 1),
    CASE(counts_that_overflow_are_refused, KINDS_BOTH, 1),
    CASE(an_empty_window_refuses_every_access, KINDS_BOTH, 1),
    CASE(sides_of_unlike_sizes_are_refused, KINDS_BOTH, 1),
    CASE(proc_null_is_a_no_op, KINDS_BOTH, 1),
    CASE(transfers_done_before_are_checked_again, KINDS_ALL, 1),
    CASE(the_windows_own_handler_is_called_once, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
