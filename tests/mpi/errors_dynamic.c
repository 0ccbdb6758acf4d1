/* Errors of dynamic windows: each wrong call returns its error class, changes no byte of any rank,
 * and leaves the window usable. A plain MPI program, run by the test rows. */
#include "dynamic.h"

enum { ROOM = 4096, FIRST = 1024, LENGTH = 512, GUARD = 0x5a };

/* [FIRST, FIRST + LENGTH) and the LENGTH bytes after a gap of 64 are attached on every rank. */
struct fixture {
    MPI_Win win;
    enum window_kind kind;
    unsigned char *memory;
    MPI_Aint there; /* the next rank's first attached byte */
    MPI_Aint second;
};

static struct fixture fixture_make(enum window_kind kind)
{
    MPI_Aint addresses[MANY_RANKS];
    struct fixture fixture = {
        .win = dynamic_make(MPI_COMM_WORLD), .kind = kind, .memory = memory_make(kind, ROOM)};
    memset(fixture.memory, GUARD, ROOM);
    CHECK_OK(MPI_Win_attach(fixture.win, fixture.memory + FIRST, LENGTH));
    CHECK_OK(MPI_Win_attach(fixture.win, fixture.memory + FIRST + LENGTH + 64, LENGTH));
    MPI_Win_set_errhandler(fixture.win, MPI_ERRORS_RETURN);
    addresses_share(fixture.memory + FIRST, addresses);
    fixture.there = addresses[next_rank()];
    fixture.second = fixture.there + LENGTH + 64;
    return fixture;
}

/* Nothing has changed, and the window still works. */
static void fixture_free(struct fixture *fixture)
{
    int64_t value = 40 + world_rank, seen = 0;
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROOM; i++)
        if (!CHECK(fixture->memory[i] == GUARD, "byte %d was changed by a call that failed", i))
            break;
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, fixture->win));
    CHECK_OK(
        MPI_Put(&value, 1, MPI_INT64_T, next_rank(), fixture->there, 1, MPI_INT64_T, fixture->win));
    CHECK_OK(MPI_Win_flush(next_rank(), fixture->win));
    CHECK_OK(
        MPI_Get(&seen, 1, MPI_INT64_T, next_rank(), fixture->there, 1, MPI_INT64_T, fixture->win));
    CHECK_OK(MPI_Win_unlock(next_rank(), fixture->win));
    CHECK_EQUAL(seen, value);
    CHECK_OK(MPI_Win_free(&fixture->win));
    memory_free(fixture->kind, fixture->memory);
}

/* Only the target knows its attached regions. From another node the flush reports the error. */
static int code_after_flush(int code, MPI_Win win)
{
    return code != MPI_SUCCESS ? code : MPI_Win_flush(next_rank(), win);
}
#define CHECK_OUT_OF_RANGE(win, call)                                                              \
    harness_check_class(code_after_flush((call), (win)), MPI_ERR_RMA_RANGE, __FILE__, __LINE__,    \
                        #call)

/* Every operation on len_bytes, a multiple of 8, at an address of the next rank. */
static void expect_out_of_range(const struct fixture *fixture, MPI_Aint address, int len_bytes)
{
    static int64_t here[ROOM / 8], result[ROOM / 8];
    int words = len_bytes / 8, target = next_rank();
    MPI_Win win = fixture->win;
    CHECK_OUT_OF_RANGE(
        win, MPI_Put(here, len_bytes, MPI_BYTE, target, address, len_bytes, MPI_BYTE, win));
    CHECK_OUT_OF_RANGE(win,
                       MPI_Get(here, words, MPI_INT64_T, target, address, words, MPI_INT64_T, win));
    CHECK_OUT_OF_RANGE(win, MPI_Accumulate(here, words, MPI_INT64_T, target, address, words,
                                           MPI_INT64_T, MPI_SUM, win));
    CHECK_OUT_OF_RANGE(win,
                       MPI_Get_accumulate(here, words, MPI_INT64_T, result, words, MPI_INT64_T,
                                          target, address, words, MPI_INT64_T, MPI_REPLACE, win));
    if (words > 1)
        return;
    CHECK_OUT_OF_RANGE(win,
                       MPI_Fetch_and_op(here, result, MPI_INT64_T, target, address, MPI_SUM, win));
    CHECK_OUT_OF_RANGE(win,
                       MPI_Compare_and_swap(here, here, result, MPI_INT64_T, target, address, win));
}

static void access_beyond_the_attached_memory_is_a_range_error(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    MPI_Win_lock_all(0, fixture.win);
    expect_out_of_range(&fixture, fixture.there - 8, 8);           /* before */
    expect_out_of_range(&fixture, fixture.there - 4, 8);           /* across the start */
    expect_out_of_range(&fixture, fixture.there + LENGTH - 4, 8);  /* across the end */
    expect_out_of_range(&fixture, fixture.there + LENGTH, 8);      /* in the gap */
    expect_out_of_range(&fixture, fixture.second - 4, 8);          /* from the gap */
    expect_out_of_range(&fixture, fixture.there, 2 * LENGTH + 64); /* across the gap */
    expect_out_of_range(&fixture, fixture.second + LENGTH - 4, 8); /* at the last end */
    expect_out_of_range(&fixture, 0, 8);
    expect_out_of_range(&fixture, 16, 16);
    expect_out_of_range(&fixture, -8, 8);
    expect_out_of_range(&fixture, -16, 256); /* past the end of the address space */
    MPI_Win_unlock_all(fixture.win);
    fixture_free(&fixture);
}

/* The local flush waits for data that never arrived and returns the error, unless the call itself
 * did. */
static int code_after_local_flush(int code, MPI_Win win, bool all)
{
    if (code != MPI_SUCCESS)
        return code;
    return all ? MPI_Win_flush_local_all(win) : MPI_Win_flush_local(next_rank(), win);
}
#define CHECK_NOT_ARRIVED(win, call, all)                                                          \
    harness_check_class(code_after_local_flush((call), (win), (all)), MPI_ERR_RMA_RANGE, __FILE__, \
                        __LINE__, #call)

static void local_flush_reports_failed_operations(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    MPI_Win win = fixture.win;
    MPI_Aint gap = fixture.there + LENGTH;
    int64_t word = 1, result = 7;
    int target = next_rank();
    MPI_Win_lock_all(0, win);
    for (int all = 0; all < 2; all++) {
        CHECK_NOT_ARRIVED(win, MPI_Get(&result, 1, MPI_INT64_T, target, gap, 1, MPI_INT64_T, win),
                          all);
        CHECK_NOT_ARRIVED(win,
                          MPI_Get_accumulate(&word, 1, MPI_INT64_T, &result, 1, MPI_INT64_T, target,
                                             gap, 1, MPI_INT64_T, MPI_SUM, win),
                          all);
        CHECK_NOT_ARRIVED(
            win, MPI_Fetch_and_op(&word, &result, MPI_INT64_T, target, gap, MPI_SUM, win), all);
        CHECK_NOT_ARRIVED(
            win, MPI_Compare_and_swap(&word, &word, &result, MPI_INT64_T, target, gap, win), all);
        CHECK_OK(MPI_Win_flush_local_all(win)); /* once */
        CHECK_EQUAL(result, 7);
    }
    CHECK_OK(MPI_Win_unlock_all(win));
    fixture_free(&fixture);
}

static void complete_reports_failed_operations(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    MPI_Group world, to, from;
    int64_t result = 7;
    int target = next_rank(), origin = (world_rank + world_size - 1) % world_size;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &target, &to);
    MPI_Group_incl(world, 1, &origin, &from);
    CHECK_OK(MPI_Win_post(from, 0, fixture.win));
    CHECK_OK(MPI_Win_start(to, 0, fixture.win));
    int code = MPI_Get(&result, 1, MPI_INT64_T, target, fixture.there + LENGTH, 1, MPI_INT64_T,
                       fixture.win);
    int ended = MPI_Win_complete(fixture.win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, code != MPI_SUCCESS ? code : ended);
    CHECK_OK(MPI_Win_wait(fixture.win));
    CHECK_EQUAL(result, 7);
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    MPI_Group_free(&world);
    fixture_free(&fixture);
}

/* The fence that reports the error still ends its epoch; the next epoch follows its assertion. */
static void fence_reports_failed_operations_and_ends_its_epoch(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    int64_t word = 1, result = 7;
    for (int last = 0; last < 2; last++) {
        CHECK_OK(MPI_Win_fence(0, fixture.win));
        int code = MPI_Get(&result, 1, MPI_INT64_T, next_rank(), fixture.there + LENGTH, 1,
                           MPI_INT64_T, fixture.win);
        int ended = MPI_Win_fence(last ? MPI_MODE_NOSUCCEED : 0, fixture.win);
        CHECK_CLASS(MPI_ERR_RMA_RANGE, code != MPI_SUCCESS ? code : ended);
    }
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Put(&word, 1, MPI_INT64_T, next_rank(), fixture.there, 1,
                                          MPI_INT64_T, fixture.win));
    CHECK_EQUAL(result, 7);
    fixture_free(&fixture);
}

/* A block in the middle is not attached: the blocks before it must not be written. */
static void datatype_with_one_run_outside_moves_nothing(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    MPI_Datatype runs;
    MPI_Aint displacements[3] = {0, LENGTH + 16, LENGTH + 64};
    int64_t here[3] = {1, 2, 3};
    MPI_Type_create_hindexed_block(3, 1, displacements, MPI_INT64_T, &runs);
    MPI_Type_commit(&runs);
    MPI_Win_lock_all(0, fixture.win);
    CHECK_OUT_OF_RANGE(fixture.win, MPI_Put(here, 3, MPI_INT64_T, next_rank(), fixture.there, 1,
                                            runs, fixture.win));
    CHECK_OUT_OF_RANGE(fixture.win, MPI_Accumulate(here, 3, MPI_INT64_T, next_rank(), fixture.there,
                                                   1, runs, MPI_SUM, fixture.win));
    MPI_Win_unlock_all(fixture.win);
    MPI_Type_free(&runs);
    fixture_free(&fixture);
}

static void detached_memory_is_out_of_range(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    int64_t word = 1;
    MPI_Win_lock_all(0, fixture.win);
    CHECK_OK(
        MPI_Get(&word, 1, MPI_INT64_T, next_rank(), fixture.second, 1, MPI_INT64_T, fixture.win));
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_detach(fixture.win, fixture.memory + FIRST + LENGTH + 64));
    barrier(MPI_COMM_WORLD);
    expect_out_of_range(&fixture, fixture.second, 8);
    MPI_Win_unlock_all(fixture.win);
    fixture_free(&fixture);
}

static void nothing_attached_means_nothing_reached(enum window_kind kind)
{
    MPI_Aint addresses[MANY_RANKS];
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t word = GUARD, *memory = memory_make(kind, 64);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    addresses_share(memory, addresses);
    MPI_Win_lock_all(0, win);
    CHECK_OUT_OF_RANGE(win, MPI_Put(&word, 1, MPI_INT64_T, next_rank(), addresses[next_rank()], 1,
                                    MPI_INT64_T, win));
    CHECK_OK(
        MPI_Put(&word, 0, MPI_INT64_T, next_rank(), addresses[next_rank()], 0, MPI_INT64_T, win));
    CHECK_OK(MPI_Put(&word, 1, MPI_INT64_T, MPI_PROC_NULL, 1, 1, MPI_INT64_T, win));
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(memory[0], 0);
    MPI_Win_free(&win);
    memory_free(kind, memory);
}

static void overlapping_attach_is_refused(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    unsigned char *first = fixture.memory + FIRST;
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(fixture.win, first, LENGTH));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(fixture.win, first, 1));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(fixture.win, first + 100, 8));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(fixture.win, first + LENGTH - 1, 2));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(fixture.win, first - 1, 2));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(fixture.win, fixture.memory, ROOM));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_attach(fixture.win, first + LENGTH, 65));
    CHECK_OK(MPI_Win_attach(fixture.win, first + LENGTH, 64)); /* the gap, exactly */
    CHECK_OK(MPI_Win_attach(fixture.win, first - 8, 8));
    fixture_free(&fixture);
}

static void detach_of_unattached_memory_is_refused(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    unsigned char *first = fixture.memory + FIRST;
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(fixture.win, first + 8));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(fixture.win, fixture.memory));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(fixture.win, NULL));
    CHECK_OK(MPI_Win_detach(fixture.win, first));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(fixture.win, first));
    CHECK_OK(MPI_Win_attach(fixture.win, first, LENGTH));
    fixture_free(&fixture);
}

static void attach_checks_size_and_base(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    CHECK_CLASS(MPI_ERR_SIZE, MPI_Win_attach(fixture.win, fixture.memory, -1));
    CHECK_CLASS(MPI_ERR_BASE, MPI_Win_attach(fixture.win, NULL, 8));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH,
                MPI_Win_attach(fixture.win, (void *)(uintptr_t)(UINTPTR_MAX - 7), 64));
    fixture_free(&fixture);
}

/* They overlap nothing, contain nothing, and are detached like any other. */
static void regions_of_no_bytes_are_attached_and_detached(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    CHECK_OK(MPI_Win_attach(fixture.win, fixture.memory + FIRST + 8, 0));
    CHECK_OK(MPI_Win_attach(fixture.win, fixture.memory, 0));
    CHECK_OK(MPI_Win_attach(fixture.win, NULL, 0));
    CHECK_OK(MPI_Win_detach(fixture.win, fixture.memory));
    CHECK_CLASS(MPI_ERR_RMA_ATTACH, MPI_Win_detach(fixture.win, fixture.memory));
    CHECK_OK(MPI_Win_detach(fixture.win, fixture.memory + FIRST + 8));
    MPI_Win_lock_all(0, fixture.win);
    expect_out_of_range(&fixture, fixture.there - FIRST, 8);
    MPI_Win_unlock_all(fixture.win);
    fixture_free(&fixture);
}

static void other_flavours_cannot_be_attached_to(enum window_kind kind)
{
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    int64_t words[4] = {0};
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_FLAVOR, MPI_Win_attach(window.win, words, sizeof words));
    CHECK_CLASS(MPI_ERR_RMA_FLAVOR, MPI_Win_detach(window.win, words));
    window_free(&window);
}

static void operations_need_an_epoch(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    int64_t word = 1;
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPI_Put(&word, 1, MPI_INT64_T, next_rank(), fixture.there, 1,
                                          MPI_INT64_T, fixture.win));
    MPI_Win_lock_all(0, fixture.win);
    CHECK_CLASS(MPI_ERR_RANK, MPI_Put(&word, 1, MPI_INT64_T, world_size, fixture.there, 1,
                                      MPI_INT64_T, fixture.win));
    MPI_Win_unlock_all(fixture.win);
    fixture_free(&fixture);
}

static struct {
    MPI_Win win;
    int calls;
    int class;
} handled;

static void on_error(MPI_Win *win, int *code, ...)
{
    handled.win = *win;
    handled.calls++;
    MPI_Error_class(*code, &handled.class);
}

static void errors_reach_the_handler_of_the_window(enum window_kind kind)
{
    struct fixture fixture = fixture_make(kind);
    MPI_Errhandler handler;
    int64_t word = 1;
    MPI_Win_create_errhandler(on_error, &handler);
    MPI_Win_set_errhandler(fixture.win, handler);
    handled.calls = 0;
    MPI_Win_attach(fixture.win, fixture.memory + FIRST, 8);
    CHECK(handled.calls == 1 && handled.class == MPI_ERR_RMA_ATTACH && handled.win == fixture.win,
          "class %d, %d calls", handled.class, handled.calls);
    MPI_Win_lock_all(0, fixture.win);
    MPI_Put(&word, 1, MPI_INT64_T, next_rank(), fixture.there - 8, 1, MPI_INT64_T, fixture.win);
    MPI_Win_unlock_all(fixture.win);
    CHECK(handled.calls == 2 && handled.class == MPI_ERR_RMA_RANGE, "class %d, %d calls",
          handled.class, handled.calls);
    MPI_Errhandler_free(&handler);
    MPI_Win_set_errhandler(fixture.win, MPI_ERRORS_RETURN);
    fixture_free(&fixture);
}

static const struct test_case cases[] = {
    CASE(access_beyond_the_attached_memory_is_a_range_error, KINDS_MEMORY, 1),
    CASE(local_flush_reports_failed_operations, KINDS_MEMORY, 1),
    CASE(complete_reports_failed_operations, KINDS_MEMORY, 1),
    CASE(fence_reports_failed_operations_and_ends_its_epoch, KINDS_MEMORY, 1),
    CASE(datatype_with_one_run_outside_moves_nothing, KINDS_MEMORY, 1),
    CASE(detached_memory_is_out_of_range, KINDS_MEMORY, 1),
    CASE(nothing_attached_means_nothing_reached, KINDS_MEMORY, 1),
    CASE(overlapping_attach_is_refused, KINDS_MEMORY, 1),
    CASE(detach_of_unattached_memory_is_refused, KINDS_MEMORY, 1),
    CASE(attach_checks_size_and_base, KINDS_MEMORY, 1),
    CASE(regions_of_no_bytes_are_attached_and_detached, KINDS_MEMORY, 1),
    CASE(other_flavours_cannot_be_attached_to, KINDS_ALL, 1),
    CASE(operations_need_an_epoch, KINDS_MEMORY, 1),
    CASE(errors_reach_the_handler_of_the_window, KINDS_MEMORY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
