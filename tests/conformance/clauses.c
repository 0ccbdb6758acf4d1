/* Clauses of MPI that no other test states: what MPI_Win_free guarantees, progress by polling the
 * own rank, requests to MPI_PROC_NULL. Each case is a row of semantics.toml or functions.toml, with
 * the fault that makes it fail. A plain MPI program, run by the test rows. */
#include "../mpi/harness.h"

#include <stdlib.h>
#include <string.h>

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

/* Rank 0 writes a mark to all ranks just before it frees the other window. A rank that returns from
 * the free sees the mark (MPI-4.1, 13.2). */
static void free_returns_after_all_have_called_it(enum window_kind kind)
{
    struct window marks = window_make(kind, 8, 8, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, marks.win);
    for (int64_t round = 1; round <= scaled_rounds(20); round++) {
        struct window freed = window_make(kind, 8, 8, MPI_COMM_WORLD);
        MPI_Win win = freed.win;
        if (world_rank == 0) {
            sleep_us(3000);
            for (int rank = 0; rank < world_size; rank++)
                MPI_Accumulate(&round, 1, MPI_INT64_T, rank, 0, 1, MPI_INT64_T, MPI_REPLACE,
                               marks.win);
            MPI_Win_flush_all(marks.win);
        }
        CHECK_OK(MPI_Win_free(&win));
        MPI_Win_sync(marks.win);
        CHECK(load_word((int64_t *)marks.base) >= round,
              "rank 0 had not called MPI_Win_free in round %lld", (long long)round);
        CHECK(win == MPI_WIN_NULL, "the handle is not MPI_WIN_NULL");
        barrier(MPI_COMM_WORLD);
        freed.win = win;
        if (kind == KIND_ARENA)
            MPI_Free_mem(freed.base);
        if (kind == KIND_HEAP)
            free(freed.base);
    }
    MPI_Win_unlock_all(marks.win);
    window_free(&marks);
}

/* One window after another attaches the same memory and never detaches it (13.2). */
static void free_detaches_attached_regions(enum window_kind kind)
{
    int64_t memory[4] = {0}, value = 30 + world_rank;
    int left = (world_rank + world_size - 1) % world_size;
    (void)kind;
    for (int round = 0; round < 4; round++) {
        MPI_Win win;
        MPI_Aint mine, theirs;
        CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        window_watch(win);
        CHECK_OK(MPI_Win_attach(win, memory, sizeof memory));
        MPI_Get_address(&memory[round], &mine);
        MPI_Sendrecv(&mine, 1, MPI_AINT, left, 0, &theirs, 1, MPI_AINT, right_of(world_rank), 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_fence(0, win);
        MPI_Put(&value, 1, MPI_INT64_T, right_of(world_rank), theirs, 1, MPI_INT64_T, win);
        MPI_Win_fence(0, win);
        CHECK_EQUAL(memory[round], 30 + left);
        CHECK_OK(MPI_Win_free(&win));
    }
}

/* A rank reads its own word by an atomic operation on itself and sees what other ranks accumulate
 * (13.7). */
static void polling_with_fetch_and_op_on_oneself_sees_updates(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int64_t one = 1, seen = 0;
    double limit = seconds_now() + 30;
    MPI_Win_lock_all(0, window.win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, right_of(world_rank), 0, 1, MPI_INT64_T, MPI_SUM,
                   window.win);
    MPI_Win_flush(right_of(world_rank), window.win);
    while (seen == 0 && seconds_now() < limit) {
        MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, world_rank, 0, MPI_NO_OP, window.win);
        MPI_Win_flush(world_rank, window.win);
    }
    CHECK_EQUAL(seen, 1);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Values that differ in a single byte are not equal, whichever byte it is (13.3.5). */
static void compare_and_swap_compares_every_byte(enum window_kind kind)
{
    struct window window = window_make(kind, (MPI_Aint)8 * world_size, 8, MPI_COMM_WORLD);
    int target = right_of(world_rank);
    const int64_t stored = 0x1122334455667788, wanted = -1;
    int64_t old = 0, now = 0;
    MPI_Win_lock_all(0, window.win);
    MPI_Accumulate(&stored, 1, MPI_INT64_T, target, world_rank, 1, MPI_INT64_T, MPI_REPLACE,
                   window.win);
    MPI_Win_flush(target, window.win);
    for (int byte = 0; byte < 8; byte++) {
        int64_t compared = stored ^ ((int64_t)0x40 << 8 * byte);
        MPI_Compare_and_swap(&wanted, &compared, &old, MPI_INT64_T, target, world_rank, window.win);
        MPI_Fetch_and_op(NULL, &now, MPI_INT64_T, target, world_rank, MPI_NO_OP, window.win);
        MPI_Win_flush(target, window.win);
        CHECK(old == stored && now == stored, "byte %d: old %llx, now %llx", byte,
              (unsigned long long)old, (unsigned long long)now);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* An error without an object: the handler of MPI_COMM_SELF receives it, before MPI-4 that of
 * MPI_COMM_WORLD. */
static void freeing_memory_twice_is_refused(enum window_kind kind)
{
    char *memory, *allocated;
    MPI_Errhandler handlers[2];
    (void)kind;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handlers[0]);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &handlers[1]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Alloc_mem(1000, MPI_INFO_NULL, &memory);
    MPI_Alloc_mem(1000, MPI_INFO_NULL, &allocated);
    memset(allocated, 7, 1000);
    CHECK_OK(MPI_Free_mem(memory));
    CHECK_CLASS(MPI_ERR_BASE, MPI_Free_mem(memory));
    CHECK_CLASS(MPI_ERR_BASE, MPI_Free_mem(allocated + 8));
    CHECK(allocated[0] == 7 && allocated[999] == 7, "other memory changed");
    CHECK_OK(MPI_Free_mem(allocated));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handlers[0]);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, handlers[1]);
    MPI_Errhandler_free(&handlers[0]);
    MPI_Errhandler_free(&handlers[1]);
}

/* The request variable contains another, outstanding request. The call returns a different request,
 * and it completes (13.3.6). */
static void proc_null_returns_a_request_of_its_own(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    int token = 0, done = 0;
    int64_t word = 5;
    MPI_Request pending, request;
    MPI_Irecv(&token, 1, MPI_INT, world_rank, 1, MPI_COMM_WORLD, &pending);
    MPI_Win_lock_all(0, window.win);
    request = pending;
    CHECK_OK(
        MPI_Rput(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win, &request));
    if (CHECK(request != pending, "MPI_Rput gave no request")) {
        CHECK_OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        CHECK(done, "the request is not complete");
    }
    request = pending;
    CHECK_OK(
        MPI_Rget(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, window.win, &request));
    if (CHECK(request != pending, "MPI_Rget gave no request"))
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK_EQUAL(word, 5);
    MPI_Win_unlock_all(window.win);
    MPI_Cancel(&pending);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    window_free(&window);
}

/* A freed key is invalid (chapter 7). */
static void a_freed_keyval_is_invalid(enum window_kind kind)
{
    int keyval = MPI_KEYVAL_INVALID;
    (void)kind;
    CHECK_OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL));
    CHECK(keyval != MPI_KEYVAL_INVALID, "the new key is not valid");
    CHECK_OK(MPI_Win_free_keyval(&keyval));
    CHECK_EQUAL(keyval, MPI_KEYVAL_INVALID);
}

/* MPI_Alloc_mem and every rank's part of an allocated window (10.2, 13.2.2). Odd sizes make
 * accidental alignment unlikely. */
static void alignment_holds_on_every_rank(enum window_kind kind)
{
    static const char *const alignments[] = {"64", "256", "1024", "4096"};
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(alignments); i++) {
        MPI_Info info;
        MPI_Win win;
        char *bases[3], *base = NULL;
        unsigned long alignment = strtoul(alignments[i], NULL, 10);
        MPI_Info_create(&info);
        MPI_Info_set(info, "mpi_minimum_memory_alignment", alignments[i]);
        for (int turn = 0; turn < 3; turn++)
            CHECK_OK(MPI_Alloc_mem(24 + turn, info, &bases[turn]));
        CHECK_OK(MPI_Win_allocate(40 + 8 * world_rank, 1, info, MPI_COMM_WORLD, &base, &win));
        CHECK(((uintptr_t)base) % alignment == 0, "the window begins at %p", (void *)base);
        for (int turn = 0; turn < 3; turn++) {
            CHECK(((uintptr_t)bases[turn]) % alignment == 0, "memory begins at %p",
                  (void *)bases[turn]);
            MPI_Free_mem(bases[turn]);
        }
        MPI_Win_free(&win);
        MPI_Info_free(&info);
    }
}

static const struct test_case cases[] = {
    CASE(free_returns_after_all_have_called_it, KINDS_ALL, 2),
    CASE(free_detaches_attached_regions, KIND_ANY, 1),
    CASE(polling_with_fetch_and_op_on_oneself_sees_updates, KINDS_ALL, 1),
    CASE(compare_and_swap_compares_every_byte, KINDS_ALL, 1),
    CASE(freeing_memory_twice_is_refused, KIND_ANY, 1),
    CASE(proc_null_returns_a_request_of_its_own, KINDS_BOTH, 1),
    CASE(a_freed_keyval_is_invalid, KIND_ANY, 1),
    CASE(alignment_holds_on_every_rank, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
