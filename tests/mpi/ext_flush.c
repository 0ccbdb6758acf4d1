/* Order without completion, flushes of several targets and windows, and flushes with requests: what
 * they order and complete, on every path, and their errors. */
#include "errors.h"
#include "oriel/ext.h"

#include <stdlib.h>

enum { WORDS = 64, ROUNDS = 200, WINDOWS = 5 };

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

static bool lacks_extensions(void)
{
    if (!MPIX_Query_oriel())
        harness_skip("extensions are Oriel's");
    return !MPIX_Query_oriel();
}

/* The buffer is in use until a later call completes the put. */
static void put_word(int64_t value, int target, MPI_Aint at, MPI_Win win)
{
    static int64_t values[1024];
    static int next;
    int64_t *origin = &values[next++ % (int)COUNT_OF(values)];
    *origin = value;
    CHECK_OK(MPI_Put(origin, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win));
}

static int64_t get_word(int target, MPI_Aint at, MPI_Win win)
{
    int64_t value = -1;
    CHECK_OK(MPI_Get(&value, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_flush(target, win));
    return value;
}

/* The last of several operations on one word wins, and a get between two puts reads the first. */
static void order_separates_conflicting_operations(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    for (int all = 0; all < 2; all++) {
        if (all)
            MPI_Win_lock_all(0, window.win);
        else
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        for (int round = 0; round < scaled_rounds(ROUNDS); round++) {
            int64_t between = -1, one = 1;
            const MPI_Aint at = round % WORDS;
            put_word(2 * round, target, at, window.win);
            CHECK_OK(MPIX_Win_order(target, window.win));
            CHECK_OK(MPI_Get(&between, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, window.win));
            CHECK_OK(MPIX_Win_order(target, window.win));
            put_word(2 * round + 1, target, at, window.win);
            CHECK_OK(MPIX_Win_order(target, window.win));
            CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, at, 1, MPI_INT64_T, MPI_SUM,
                                    window.win));
            CHECK_OK(MPIX_Win_order(target, window.win));
            CHECK_EQUAL(get_word(target, at, window.win), 2 * round + 2);
            CHECK_EQUAL(between, 2 * round);
        }
        if (all)
            MPI_Win_unlock_all(window.win);
        else
            MPI_Win_unlock(target, window.win);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Rank 0 changes data, then a mark below it, with an order in between; rank 1 looks at the mark,
 * and then finds the data. */
static void data_then_mark(const struct window *window, bool accumulates)
{
    enum { MARK = 0, DATA = 1 };
    const int64_t *words = (const int64_t *)window->base;
    for (int64_t round = 1; round <= scaled_rounds(ROUNDS) && !harness_failed(); round++) {
        barrier(MPI_COMM_WORLD);
        if (world_rank == 0) {
            int64_t data[WORDS - DATA];
            for (int i = 0; i < WORDS - DATA; i++)
                data[i] = accumulates ? 1 : round;
            CHECK_OK(accumulates ? MPI_Accumulate(data, WORDS - DATA, MPI_INT64_T, 1, DATA,
                                                  WORDS - DATA, MPI_INT64_T, MPI_SUM, window->win)
                                 : MPI_Put(data, WORDS - DATA, MPI_INT64_T, 1, DATA, WORDS - DATA,
                                           MPI_INT64_T, window->win));
            CHECK_OK(MPIX_Win_order(1, window->win));
            CHECK_OK(accumulates
                         ? MPI_Accumulate(data, 1, MPI_INT64_T, 1, MARK, 1, MPI_INT64_T, MPI_SUM,
                                          window->win)
                         : MPI_Put(data, 1, MPI_INT64_T, 1, MARK, 1, MPI_INT64_T, window->win));
            CHECK_OK(MPI_Win_flush(1, window->win));
        } else if (world_rank == 1) {
            while (load_word(&words[MARK]) != round)
                MPI_Win_sync(window->win);
            for (int i = DATA; i < WORDS; i++)
                CHECK_EQUAL(load_word(&words[i]), round);
        }
    }
}

static void what_is_ordered_is_seen_in_order(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    for (int accumulates = 0; accumulates < 2; accumulates++) {
        struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
        if (world_rank == 0)
            MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
        data_then_mark(&window, accumulates);
        if (world_rank == 0)
            MPI_Win_unlock(1, window.win);
        barrier(MPI_COMM_WORLD);
        window_free(&window);
    }
}

static void order_is_for_every_access_epoch(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPIX_Win_order(target, window.win));
    CHECK_CLASS(MPI_ERR_RANK, MPIX_Win_order(world_size, window.win));
    CHECK_CLASS(MPI_ERR_RANK, MPIX_Win_order(-77, window.win));
    CHECK_OK(MPIX_Win_order(MPI_PROC_NULL, window.win));
    MPI_Win_fence(0, window.win);
    put_word(1, target, 0, window.win);
    CHECK_OK(MPIX_Win_order(target, window.win));
    put_word(2, target, 0, window.win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    CHECK_EQUAL(load_word((int64_t *)window.base), 2);
    window_free(&window);
}

/* Every rank puts to all, and completes half of them by one list and half by the next. */
static void a_list_completes_its_ranks(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * (MPI_Aint)world_size, 8, MPI_COMM_WORLD);
    int *ranks = malloc(((size_t)world_size + 2) * sizeof *ranks);
    MPI_Win_lock_all(0, window.win);
    for (int64_t round = 1; round <= 5; round++) {
        int n = 0;
        ranks[n++] = MPI_PROC_NULL;
        for (int i = 0; i < world_size; i++)
            ranks[n++] = (i + world_rank) % world_size;
        ranks[n++] = world_rank;
        for (int i = 0; i < world_size; i++)
            put_word(round * 100 + world_rank, i, world_rank, window.win);
        CHECK_OK(MPIX_Win_flush_list(n / 2, ranks, window.win));
        CHECK_OK(MPIX_Win_flush_list(n - n / 2, ranks + n / 2, window.win));
        CHECK_OK(MPIX_Win_flush_list(0, NULL, window.win));
        barrier(MPI_COMM_WORLD);
        for (int i = 0; i < world_size; i++)
            CHECK_EQUAL(load_word((int64_t *)window.base + i), round * 100 + i);
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(window.win);
    free(ranks);
    window_free(&window);
}

/* Wrong entries do not keep the others from being flushed. */
static void a_list_with_errors_completes_the_others(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    const int list[] = {-77, target, world_size};
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPIX_Win_flush_list(1, &target, window.win));
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_flush_list(-1, list, window.win));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_flush_list(1, NULL, window.win));
    put_word(7, target, 0, window.win);
    CHECK_CLASS(MPI_ERR_RANK, MPIX_Win_flush_list(3, list, window.win));
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(load_word((int64_t *)window.base), 7);
    CHECK_OK(MPIX_Win_flush_list(1, &target, window.win));
    MPI_Win_unlock(target, window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void several_windows_are_completed(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window windows[WINDOWS];
    MPI_Win list[2 * WINDOWS];
    for (int i = 0; i < WINDOWS; i++) {
        windows[i] = window_make(kind, 8 * (MPI_Aint)world_size, 8, MPI_COMM_WORLD);
        MPI_Win_set_errhandler(windows[i].win, MPI_ERRORS_RETURN);
        list[(i * 3) % WINDOWS] = list[WINDOWS + i] = windows[i].win;
        MPI_Win_lock_all(0, windows[i].win);
    }
    for (int64_t round = 1; round <= 5; round++) {
        for (int i = 0; i < WINDOWS * world_size; i++)
            put_word(round * 1000 + i, i % world_size, world_rank, windows[i / world_size].win);
        CHECK_OK(MPIX_Win_flush_windows(2 * WINDOWS, list));
        barrier(MPI_COMM_WORLD);
        for (int i = 0; i < WINDOWS; i++)
            for (int from = 0; from < world_size; from++)
                CHECK_EQUAL(load_word((int64_t *)windows[i].base + from),
                            round * 1000 + i * world_size + world_rank);
        barrier(MPI_COMM_WORLD);
    }
    CHECK_OK(MPIX_Win_flush_windows(0, NULL));
    MPI_Win_unlock_all(windows[2].win);
    put_word(9, right_of(world_rank), 0, windows[3].win);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPIX_Win_flush_windows(2 * WINDOWS, list));
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(load_word((int64_t *)windows[3].base), 9);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < WINDOWS; i++) {
        if (i != 2)
            MPI_Win_unlock_all(windows[i].win);
        window_free(&windows[i]);
    }
}

/* More than are flushed in one round trip. */
static void many_windows_are_completed(enum window_kind kind)
{
    enum { MANY = 70 };
    if (lacks_extensions())
        return;
    struct window windows[MANY];
    MPI_Win list[MANY];
    for (int i = 0; i < MANY; i++) {
        windows[i] = window_make(kind, 8, 8, MPI_COMM_WORLD);
        list[MANY - 1 - i] = windows[i].win;
        MPI_Win_lock_all(0, windows[i].win);
        put_word(i, right_of(world_rank), 0, windows[i].win);
    }
    CHECK_OK(MPIX_Win_flush_windows(MANY, list));
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MANY; i++)
        CHECK_EQUAL(load_word((int64_t *)windows[i].base), i);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MANY; i++) {
        MPI_Win_unlock_all(windows[i].win);
        window_free(&windows[i]);
    }
}

static void lists_of_windows_check_their_arguments(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    MPI_Win list[] = {MPI_WIN_NULL, window.win};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_flush_windows(-1, list));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_flush_windows(1, NULL));
    put_word(3, right_of(world_rank), 0, window.win);
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Win_flush_windows(2, list));
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(load_word((int64_t *)window.base), 3);
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Win_flush_list(0, NULL, MPI_WIN_NULL));
    CHECK_CLASS(MPI_ERR_WIN, MPIX_Win_order(0, MPI_WIN_NULL));
    MPI_Win_unlock_all(window.win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* A flush of each rank at once, with gets and puts in between. */
static void flushes_with_requests_overlap(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 16 * (MPI_Aint)world_size, 8, MPI_COMM_WORLD);
    MPI_Request *requests = malloc(2 * (size_t)world_size * sizeof *requests);
    int64_t *seen = malloc((size_t)world_size * sizeof *seen);
    MPI_Win_lock_all(0, window.win);
    for (int64_t round = 1; round <= scaled_rounds(20); round++) {
        for (int i = 0; i < world_size; i++) {
            seen[i] = -1;
            put_word(round * 100 + world_rank, i, world_rank, window.win);
            CHECK_OK(MPIX_Win_order(i, window.win));
            CHECK_OK(MPI_Get(&seen[i], 1, MPI_INT64_T, i, world_rank, 1, MPI_INT64_T, window.win));
            CHECK_OK(MPIX_Win_iflush(i, window.win, &requests[i]));
            put_word(round, i, world_size + world_rank, window.win);
            CHECK_OK(round % 2 ? MPIX_Win_iflush_all(window.win, &requests[world_size + i])
                               : MPIX_Win_iflush(i, window.win, &requests[world_size + i]));
        }
        for (int i = 0; i < world_size; i++)
            MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
        for (int i = 0; i < world_size; i++)
            CHECK_EQUAL(seen[i], round * 100 + world_rank);
        for (int i = world_size; i < 2 * world_size; i++)
            request_await(&requests[i]);
        barrier(MPI_COMM_WORLD);
        for (int i = 0; i < world_size; i++) {
            CHECK_EQUAL(load_word((int64_t *)window.base + i), round * 100 + i);
            CHECK_EQUAL(load_word((int64_t *)window.base + world_size + i), round);
        }
        barrier(MPI_COMM_WORLD);
    }
    put_word(-1, (world_rank + 1) % world_size, world_rank, window.win);
    CHECK_OK(MPIX_Win_iflush_all(window.win, &requests[0]));
    MPI_Win_unlock_all(window.win);
    free(seen);
    window_free(&window);
    CHECK_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE)); /* it ended before its window */
    free(requests);
}

static void flushes_with_requests_check_their_arguments(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    const int target = right_of(world_rank);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPIX_Win_iflush(target, window.win, &request));
    CHECK_CLASS(MPI_ERR_RMA_SYNC, MPIX_Win_iflush_all(window.win, &request));
    MPI_Win_lock_all(0, window.win);
    CHECK_CLASS(MPI_ERR_RANK, MPIX_Win_iflush(world_size, window.win, &request));
    CHECK_CLASS(MPI_ERR_RANK, MPIX_Win_iflush(-77, window.win, &request));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_iflush(target, window.win, NULL));
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_iflush_all(window.win, NULL));
    CHECK(request == MPI_REQUEST_NULL, "an error has set the request");
    CHECK_OK(MPIX_Win_iflush(MPI_PROC_NULL, window.win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* freed, it still flushes; the next flush finds nothing wrong */
    put_word(4, target, 0, window.win);
    CHECK_OK(MPIX_Win_iflush(target, window.win, &request));
    MPI_Request_free(&request);
    CHECK_OK(MPI_Win_flush(target, window.win));
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(load_word((int64_t *)window.base), 4);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* The target of another node refuses a put: the flush's request reports it, once. On one node the
 * put itself fails. */
static void a_refused_operation_is_reported_with_the_request(enum window_kind kind)
{
    (void)kind;
    if (lacks_extensions())
        return;
    static int64_t words[2];
    MPI_Win win;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int64_t value = 1;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_OK(MPI_Win_attach(win, words, sizeof words));
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (MPI_Put(&value, 1, MPI_INT64_T, right_of(world_rank), 64, 1, MPI_INT64_T, win) ==
        MPI_SUCCESS) {
        CHECK_OK(MPIX_Win_iflush(right_of(world_rank), win, &requests[0]));
        CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Win_flush(right_of(world_rank), win));
        MPI_Put(&value, 1, MPI_INT64_T, right_of(world_rank), 64, 1, MPI_INT64_T, win);
        CHECK_OK(MPIX_Win_iflush_all(win, &requests[0]));
        CHECK_OK(MPIX_Win_iflush(world_rank, win, &requests[1]));
        CHECK_CLASS(MPI_ERR_IN_STATUS, MPI_Waitall(2, requests, statuses));
        CHECK_EQUAL(statuses[0].MPI_ERROR, MPI_ERR_RMA_RANGE);
        CHECK_EQUAL(statuses[1].MPI_ERROR, MPI_SUCCESS);
        MPI_Put(&value, 1, MPI_INT64_T, right_of(world_rank), 64, 1, MPI_INT64_T, win);
        CHECK_CLASS(MPI_ERR_RMA_RANGE, MPIX_Win_flush_windows(1, &win));
        CHECK_OK(MPIX_Win_flush_windows(1, &win));
    }
    CHECK_OK(MPI_Win_unlock_all(win));
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_detach(win, words));
    MPI_Win_free(&win);
}

static const struct test_case cases[] = {
    CASE(order_separates_conflicting_operations, KINDS_ALL, 1),
    CASE(what_is_ordered_is_seen_in_order, KINDS_ALL, 2),
    CASE(order_is_for_every_access_epoch, KINDS_BOTH, 1),
    CASE(a_list_completes_its_ranks, KINDS_ALL, 1),
    CASE(a_list_with_errors_completes_the_others, KINDS_BOTH, 1),
    CASE(several_windows_are_completed, KINDS_ALL, 1),
    CASE(many_windows_are_completed, KIND_ALLOCATE, 1),
    CASE(lists_of_windows_check_their_arguments, KINDS_BOTH, 1),
    CASE(flushes_with_requests_overlap, KINDS_ALL, 1),
    CASE(flushes_with_requests_check_their_arguments, KINDS_BOTH, 1),
    CASE(a_refused_operation_is_reported_with_the_request, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
