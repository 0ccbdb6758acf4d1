/* Epochs of lock_all whose holders wait for ranks that begin one, while an exclusive lock waits. No
 * two of these epochs conflict, so all must end. */
#include "harness.h"

#include <unistd.h>

enum { ROUNDS = 3, SETTLE_US = 30000, LOCKED = 2 };

static void begin(MPI_Win win)
{
    int64_t got = -1;
    CHECK_OK(MPI_Win_lock_all(0, win));
    CHECK_OK(MPI_Get(&got, 1, MPI_INT64_T, LOCKED, 0, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_flush(LOCKED, win));
    CHECK_EQUAL(got >= 0, true);
}

static void count(MPI_Win win)
{
    const int64_t one = 1;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, LOCKED, 0, win));
    CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, LOCKED, 0, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_OK(MPI_Win_unlock(LOCKED, win));
}

static void expect_count(MPI_Win win, int64_t wanted)
{
    int64_t got = -1;
    if (world_rank == LOCKED) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, LOCKED, 0, win));
        CHECK_OK(MPI_Get(&got, 1, MPI_INT64_T, LOCKED, 0, 1, MPI_INT64_T, win));
        CHECK_OK(MPI_Win_unlock(LOCKED, win));
        CHECK_EQUAL(got, wanted);
    }
    barrier(MPI_COMM_WORLD);
}

/* Rank 0 has the first window and wants the second, rank 1 the reverse; ranks 2 and 3 wait for an
 * exclusive lock of one each. */
static void two_windows_may_be_locked_in_opposite_orders(enum window_kind kind)
{
    struct window windows[] = {window_make(kind, 8, 8, MPI_COMM_WORLD),
                               window_make(kind, 8, 8, MPI_COMM_WORLD)};
    MPI_Win first = windows[world_rank % 2].win, second = windows[1 - world_rank % 2].win;
    for (int i = 1; i <= ROUNDS; i++) {
        if (world_rank < 2)
            begin(first);
        barrier(MPI_COMM_WORLD);
        if (world_rank < 2) {
            usleep(SETTLE_US);
            begin(second);
            CHECK_OK(MPI_Win_unlock_all(second));
            CHECK_OK(MPI_Win_unlock_all(first));
        } else if (world_rank < 4) {
            count(first);
        }
        barrier(MPI_COMM_WORLD);
        expect_count(first, i);
        expect_count(second, i);
    }
    window_free(&windows[0]);
    window_free(&windows[1]);
}

/* Rank 0 is inside and waits for a message of rank 1, which begins first; rank 2 waits for an
 * exclusive lock. */
static void an_epoch_may_wait_for_one_that_begins(enum window_kind kind)
{
    struct window window = window_make(kind, 8, 8, MPI_COMM_WORLD);
    for (int i = 1; i <= ROUNDS; i++) {
        if (world_rank == 0)
            begin(window.win);
        barrier(MPI_COMM_WORLD);
        if (world_rank == 0) {
            CHECK_OK(MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_OK(MPI_Win_unlock_all(window.win));
        } else if (world_rank == 1) {
            usleep(SETTLE_US);
            begin(window.win);
            CHECK_OK(MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD));
            CHECK_OK(MPI_Win_unlock_all(window.win));
        } else if (world_rank == 2) {
            count(window.win);
        }
        barrier(MPI_COMM_WORLD);
        expect_count(window.win, i);
    }
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(two_windows_may_be_locked_in_opposite_orders, KINDS_BOTH, 4),
    CASE(an_epoch_may_wait_for_one_that_begins, KINDS_BOTH, 3),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
