/* Origin buffers: NULL is MPI_ERR_BUFFER if bytes are read or written. MPI_BOTTOM with a datatype
 * of addresses is a valid buffer, and NULL is valid if no data moves. A buffer larger than the
 * address space is an error. A plain MPI program, run by the test rows. */
#include "errors.h"

static int64_t words[2];

static void null_buffers_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Request request;
    MPI_Win win = window.win;
    int to = guarded_target();
    int64_t *none = NULL;
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Put(none, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Get(none, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win));
    CHECK_CLASS(MPI_ERR_BUFFER,
                MPI_Accumulate(none, 2, MPI_INT64_T, to, 0, 2, MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Get_accumulate(none, 1, MPI_INT64_T, words, 1, MPI_INT64_T, to,
                                                   0, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Get_accumulate(words, 1, MPI_INT64_T, none, 1, MPI_INT64_T, to,
                                                   0, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Fetch_and_op(none, words, MPI_INT64_T, to, 0, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Fetch_and_op(words, none, MPI_INT64_T, to, 0, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Compare_and_swap(none, words, words, MPI_INT64_T, to, 0, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Compare_and_swap(words, none, words, MPI_INT64_T, to, 0, win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Compare_and_swap(words, words, none, MPI_INT64_T, to, 0, win));
    CHECK_CLASS(MPI_ERR_BUFFER,
                MPI_Rput(none, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, &request));
    CHECK_CLASS(MPI_ERR_BUFFER,
                MPI_Rget(none, 1, MPI_INT64_T, to, 0, 1, MPI_INT64_T, win, &request));
    MPI_Win_unlock_all(win);
    guarded_free(&window);
}

static void null_is_enough_where_nothing_is_read_or_written(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    int64_t fetched = 0, got = 0, *none = NULL;
    int to = guarded_target();
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(MPI_Put(none, 0, MPI_INT64_T, to, 0, 0, MPI_INT64_T, window.win));
    CHECK_OK(MPI_Get(none, 0, MPI_INT64_T, to, 0, 0, MPI_INT64_T, window.win));
    CHECK_OK(MPI_Accumulate(none, 0, MPI_INT64_T, to, 0, 0, MPI_INT64_T, MPI_SUM, window.win));
    CHECK_OK(MPI_Fetch_and_op(none, &fetched, MPI_INT64_T, to, 0, MPI_NO_OP, window.win));
    CHECK_OK(MPI_Get_accumulate(none, 0, MPI_DATATYPE_NULL, &got, 1, MPI_INT64_T, to, 0, 1,
                                MPI_INT64_T, MPI_NO_OP, window.win));
    MPI_Win_unlock_all(window.win);
    CHECK_EQUAL(fetched, 0x5a5a5a5a5a5a5a5a);
    CHECK_EQUAL(got, 0x5a5a5a5a5a5a5a5a);
    guarded_free(&window);
}

static void bottom_with_addresses_is_a_buffer(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Datatype absolute;
    MPI_Aint address;
    int length = 1;
    int64_t old = 0;
    void *bottom = MPI_BOTTOM;
    MPI_Get_address(&old, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT64_T, &absolute);
    MPI_Type_commit(&absolute);
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(MPI_Get(bottom, 1, absolute, guarded_target(), 0, 1, MPI_INT64_T, window.win));
    MPI_Win_unlock_all(window.win);
    CHECK_EQUAL(old, 0x5a5a5a5a5a5a5a5a);
    MPI_Type_free(&absolute);
    guarded_free(&window);
}

static void datatypes_beyond_all_memory_are_refused(enum window_kind kind)
{
    struct window window = guarded_make(kind);
    MPI_Datatype vast, far;
    int64_t many[8] = {0};
    int to = guarded_target();
    MPI_Type_create_hvector(5, 1, (MPI_Aint)1 << 62, MPI_INT64_T, &vast);
    MPI_Type_create_resized(MPI_INT64_T, 0, (MPI_Aint)1 << 61, &far);
    MPI_Type_commit(&vast);
    MPI_Type_commit(&far);
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_TYPE, MPI_Put(many, 5, MPI_INT64_T, to, 0, 1, vast, window.win));
    CHECK_CLASS(MPI_ERR_TYPE, MPI_Get(many, 1, vast, to, 0, 5, MPI_INT64_T, window.win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Put(many, 8, MPI_INT64_T, to, 0, 8, far, window.win));
    CHECK_CLASS(MPI_ERR_BUFFER, MPI_Put(many, 8, far, to, 0, 8, MPI_INT64_T, window.win));
    CHECK_CLASS(MPI_ERR_BUFFER,
                MPI_Accumulate(many, 8, far, to, 0, 8, MPI_INT64_T, MPI_SUM, window.win));
    MPI_Win_unlock_all(window.win);
    MPI_Type_free(&vast);
    MPI_Type_free(&far);
    guarded_free(&window);
}

static const struct test_case cases[] = {
    CASE(null_buffers_are_refused, KINDS_BOTH, 1),
    CASE(null_is_enough_where_nothing_is_read_or_written, KINDS_BOTH, 1),
    CASE(bottom_with_addresses_is_a_buffer, KINDS_BOTH, 1),
    CASE(datatypes_beyond_all_memory_are_refused, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
