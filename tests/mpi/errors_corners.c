/* Wrong arguments that look right: memory that no allocation returned, datatypes that are not
 * predefined, assertions of other calls, a NULL request, datatypes that are too large. Also right
 * arguments that look wrong. A plain MPI program, run by the test rows. */
#include "errors.h"

static int64_t words[4];

static void memory_of_a_window_is_not_freed_as_an_allocation(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    char *block;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_BASE, MPI_Free_mem(window.base));
    MPI_Alloc_mem(100, MPI_INFO_NULL, &block);
    CHECK_CLASS(MPI_ERR_BASE, MPI_Free_mem(block + 64));
    CHECK_OK(MPI_Free_mem(block));
    CHECK_CLASS(MPI_ERR_BASE, MPI_Free_mem(block));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    guarded_free(&window);
}

static void single_elements_are_of_predefined_datatypes(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Datatype types[3];
    MPI_Type_dup(MPI_INT64_T, &types[0]);
    MPI_Type_contiguous(1, MPI_INT64_T, &types[1]);
    MPI_Type_create_resized(MPI_INT64_T, 0, 8, &types[2]);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < 3; i++) {
        MPI_Type_commit(&types[i]);
        for (int again = 0; again < 2; again++) { /* also when the datatype is cached */
            CHECK_CLASS(MPI_ERR_TYPE, MPI_Fetch_and_op(&words[0], &words[1], types[i],
                                                       guarded_target(), 0, MPI_SUM, window.win));
            CHECK_CLASS(MPI_ERR_TYPE,
                        MPI_Compare_and_swap(&words[0], &words[1], &words[2], types[i],
                                             guarded_target(), 0, window.win));
        }
    }
    MPI_Win_unlock_all(window.win);
    for (int i = 0; i < 3; i++)
        MPI_Type_free(&types[i]);
    guarded_free(&window);
}

static void assertions_of_other_calls_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Win win = window.win;
    static const int wrong_locks[] = {MPI_MODE_NOPUT, MPI_MODE_NOSTORE, MPI_MODE_NOPRECEDE,
                                      MPI_MODE_NOSUCCEED};
    for (size_t i = 0; i < COUNT_OF(wrong_locks); i++) {
        CHECK_CLASS(MPI_ERR_ASSERT,
                    MPI_Win_lock(MPI_LOCK_SHARED, guarded_target(), wrong_locks[i], win));
        CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_lock_all(wrong_locks[i] | MPI_MODE_NOCHECK, win));
        CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_start(MPI_GROUP_EMPTY, wrong_locks[i], win));
    }
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_post(MPI_GROUP_EMPTY, MPI_MODE_NOPRECEDE, win));
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_post(MPI_GROUP_EMPTY, MPI_MODE_NOSUCCEED, win));
    CHECK_CLASS(MPI_ERR_ASSERT, MPI_Win_fence(MPI_MODE_NOCHECK, win));
    CHECK_OK(MPI_Win_fence(
        MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED, win));
    CHECK_OK(
        MPI_Win_post(MPI_GROUP_EMPTY, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT, win));
    CHECK_OK(MPI_Win_wait(win));
    guarded_free(&window);
}

static void operations_without_a_place_for_the_request_move_nothing(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Request *none = NULL;
    MPI_Win win = window.win;
    int to = guarded_target();
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_ERR_ARG, MPI_Rput(words, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, none));
    CHECK_CLASS(MPI_ERR_ARG, MPI_Rget(words, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, none));
    CHECK_CLASS(MPI_ERR_ARG,
                MPI_Raccumulate(words, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, MPI_SUM, win, none));
    CHECK_CLASS(MPI_ERR_ARG, MPI_Rget_accumulate(words, 1, MPI_INT64_T, words + 1, 1, MPI_INT64_T,
                                                 to, 0, 1, MPI_INT64_T, MPI_REPLACE, win, none));
    MPI_Win_unlock_all(win);
    guarded_free(&window);
}

static MPI_Datatype nested(int depth, bool twice)
{
    MPI_Datatype type = MPI_INT64_T;
    MPI_Aint extent = 8;
    for (int i = 0; i < depth; i++) {
        MPI_Datatype pair[2] = {type, type}, next;
        MPI_Aint displs[2] = {0, twice ? extent : 0};
        int lengths[2] = {1, twice ? 1 : 0};
        MPI_Type_create_struct(2, lengths, displs, pair, &next);
        if (i > 0)
            MPI_Type_free(&type);
        type = next;
        extent *= twice ? 2 : 1;
    }
    MPI_Type_commit(&type);
    return type;
}

static void datatypes_nested_without_end_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Datatype deep = nested(300, false);
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_TYPE,
                MPI_Put(words, 1, MPI_INT64_T, guarded_target(), 0, 1, deep, window.win));
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&deep);
    guarded_free(&window);
}

/* A type nested twice at each level is expanded once; otherwise time and memory would double with
 * each level. */
static void datatypes_nested_twice_at_each_level_are_accepted(enum window_kind kind)
{
#ifndef MPICH_VERSION
    enum {
        LEVELS = 12
    }; /* Open MPI returns a new handle for each part, so Oriel cannot recognise equal parts */
#else
    enum { LEVELS = 20 };
#endif
    struct window window = guarded_make(kind);
    MPI_Datatype doubled = nested(LEVELS, true);
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Put(words, 1, MPI_INT64_T, guarded_target(), 0, 1, doubled, window.win));
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&doubled);
    guarded_free(&window);
}

/* MPI-1's bound markers move nothing; hosts whose headers still have them accept structs with
 * them. */
static void structs_with_bound_markers_are_accepted(enum window_kind kind)
{
#if defined MPI_LB && !defined OPEN_MPI
    struct window window = guarded_make(kind);
    MPI_Datatype types[3] = {MPI_LB, MPI_INT64_T, MPI_UB}, marked;
    MPI_Aint displs[3] = {-8, 0, 16};
    int lengths[3] = {1, 1, 1};
    int64_t got[6] = {0};
    CHECK_OK(MPI_Type_create_struct(3, lengths, displs, types, &marked));
    MPI_Type_commit(&marked);
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(MPI_Get(got, 2, marked, guarded_target(), 0, 2, MPI_INT64_T, window.win));
    MPI_Win_unlock_all(window.win);
    CHECK(got[0] == 0x5a5a5a5a5a5a5a5a && got[3] == got[0] && got[1] == 0 && got[2] == 0,
          "the items have other offsets");
    MPI_Type_free(&marked);
    guarded_free(&window);
#else
    (void)kind;
    harness_skip("the host's mpi.h has no MPI_LB");
#endif
}

/* Arguments that were right many times are checked again, since displacement, rank, count, epoch
 * and buffer differ each time. */
static void bulk_accumulates_done_before_are_checked_again(enum window_kind kind)
{
    enum { MANY = 20 };
    static const int64_t zeros[2 * RANGE_WORDS];
    static const MPI_Aint wrong[] = {RANGE_WORDS - MANY + 1, RANGE_WORDS, -1, -1000,
                                     PTRDIFF_MAX / 8,        PTRDIFF_MIN};
    struct window window = guarded_make(kind);
    const int target = guarded_target();
    MPI_Win_lock_all(0, window.win);
    for (int time = 0; time < 2; time++) {
        for (MPI_Aint disp = 0; disp <= RANGE_WORDS - MANY; disp++)
            CHECK_OK(MPI_Accumulate(zeros, MANY, MPI_INT64_T, target, disp, MANY, MPI_INT64_T,
                                    MPI_SUM, window.win));
        for (size_t i = 0; i < COUNT_OF(wrong); i++)
            CHECK_CLASS(wrong[i] < 0 ? MPI_ERR_DISP : MPI_ERR_RMA_RANGE,
                        MPI_Accumulate(zeros, MANY, MPI_INT64_T, target, wrong[i], MANY,
                                       MPI_INT64_T, MPI_SUM, window.win));
        CHECK_CLASS(MPI_ERR_RMA_RANGE,
                    MPI_Accumulate(zeros, RANGE_WORDS + 1, MPI_INT64_T, target, 0, RANGE_WORDS + 1,
                                   MPI_INT64_T, MPI_SUM, window.win));
        CHECK_CLASS(MPI_ERR_TRUNCATE, MPI_Accumulate(zeros, MANY + 1, MPI_INT64_T, target, 0, MANY,
                                                     MPI_INT64_T, MPI_SUM, window.win));
        CHECK_CLASS(MPI_ERR_COUNT, MPI_Accumulate(zeros, -MANY, MPI_INT64_T, target, 0, -MANY,
                                                  MPI_INT64_T, MPI_SUM, window.win));
        CHECK_CLASS(MPI_ERR_RANK, MPI_Accumulate(zeros, MANY, MPI_INT64_T, world_size, 0, MANY,
                                                 MPI_INT64_T, MPI_SUM, window.win));
        CHECK_CLASS(MPI_ERR_BUFFER, MPI_Accumulate(NULL, MANY, MPI_INT64_T, target, 0, MANY,
                                                   MPI_INT64_T, MPI_SUM, window.win));
        CHECK_CLASS(MPI_ERR_OP, MPI_Accumulate(zeros, MANY, MPI_INT64_T, target, 0, MANY,
                                               MPI_INT64_T, MPI_MINLOC, window.win));
    }
    MPI_Win_unlock_all(window.win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Accumulate(zeros, MANY, MPI_INT64_T, target, 0, MANY,
                                                 MPI_INT64_T, MPI_SUM, window.win));
    guarded_free(&window);
}

/* A million words a million times at one address: the sum of a billion of these overflows the
 * count. */
static void items_on_top_of_each_other_are_counted(enum window_kind kind)
{
    enum { MANY = 1 << 20, BILLION = 1 << 30 };
    struct window window = guarded_make(kind);
    MPI_Datatype million, column, vast;
    MPI_Type_create_hvector(MANY, 1, 0, MPI_INT64_T, &million);
    MPI_Type_create_hvector(MANY, 1, 0, million, &column);
    MPI_Type_create_resized(column, 0, 0, &vast);
    MPI_Type_commit(&vast);
    MPI_Win_lock_all(0, window.win);
    for (int again = 0; again < 3; again++) {
        CHECK_CLASS(MPI_ERR_RMA_RANGE,
                    MPI_Put(words, BILLION, vast, guarded_target(), 0, BILLION, vast, window.win));
        CHECK_CLASS(MPI_ERR_RMA_RANGE,
                    MPI_Get(words, BILLION, vast, guarded_target(), 0, BILLION, vast, window.win));
        CHECK_CLASS(MPI_ERR_RMA_RANGE,
                    MPI_Put(words, 1, MPI_INT64_T, guarded_target(), 0, BILLION, vast, window.win));
        CHECK_CLASS(MPI_ERR_BUFFER,
                    MPI_Get(words, BILLION, vast, guarded_target(), 0, 1, MPI_INT64_T, window.win));
        CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Accumulate(words, BILLION, vast, guarded_target(), 0,
                                                      BILLION, vast, MPI_SUM, window.win));
    }
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&million);
    MPI_Type_free(&column);
    MPI_Type_free(&vast);
    guarded_free(&window);
}

static const struct test_case cases[] = {
    CASE(items_on_top_of_each_other_are_counted, KINDS_BOTH, 1),
    CASE(bulk_accumulates_done_before_are_checked_again, KINDS_ALL, 1),
    CASE(memory_of_a_window_is_not_freed_as_an_allocation, KIND_ALLOCATE, 1),
    CASE(single_elements_are_of_predefined_datatypes, KINDS_BOTH, 1),
    CASE(assertions_of_other_calls_are_refused, KINDS_BOTH, 1),
    CASE(operations_without_a_place_for_the_request_move_nothing, KINDS_BOTH, 1),
    CASE(datatypes_nested_without_end_are_refused, KINDS_BOTH, 1),
    CASE(datatypes_nested_twice_at_each_level_are_accepted, KINDS_BOTH, 1),
    CASE(structs_with_bound_markers_are_accepted, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
