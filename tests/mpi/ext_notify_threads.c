/* Notifications of a process for itself, and of others, while several of its threads wait for them:
 * each is taken once, and none is missed. */
#include "errors.h"
#include "oriel/ext.h"

#include <pthread.h>
#include <stdio.h>

enum { TAKERS = 2, NUMBER = 1 };

struct taker {
    pthread_t thread;
    MPI_Win win;
    int rounds;
};

/* Later updates may be under way. */
static int64_t word_now(MPI_Aint word, MPI_Win win)
{
    int64_t now = -1;
    CHECK_OK(MPI_Fetch_and_op(NULL, &now, MPI_INT64_T, world_rank, word, MPI_NO_OP, win));
    CHECK_OK(MPI_Win_flush(world_rank, win));
    return now;
}

/* The updates of all notifications so far are there. */
static void *take(void *argument)
{
    struct taker *taker = argument;
    for (int round = 1; round <= taker->rounds; round++) {
        CHECK_OK(MPIX_Win_notify_wait(taker->win, NUMBER, 1));
        const int64_t arrived = word_now(0, taker->win) + word_now(1, taker->win);
        CHECK(arrived >= round, "%lld updates before notification %d", (long long)arrived, round);
    }
    return NULL;
}

/* Each rank updates a word of its own and one of the next rank, in turn. */
static void threads_take_notifications_of_their_own_process(enum window_kind kind)
{
    struct taker takers[TAKERS];
    const int rounds = scaled_rounds(400), right = (world_rank + 1) % world_size;
    int flag = -1;
    if (!MPIX_Query_oriel() || harness_thread_level() < MPI_THREAD_MULTIPLE) {
        harness_skip("extensions are Oriel's, and threads need MPI_THREAD_MULTIPLE");
        return;
    }
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "oriel_notifications", "2");
    struct window window = window_make_with(info, kind, 16, 8, MPI_COMM_WORLD);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < TAKERS; i++) {
        takers[i] = (struct taker){.win = window.win, .rounds = rounds};
        const int error = pthread_create(&takers[i].thread, NULL, take, &takers[i]);
        CHECK_EQUAL(error, 0);
    }
    for (int64_t round = 1; round <= rounds; round++) {
        CHECK_OK(MPIX_Accumulate_notify(&round, 1, MPI_INT64_T, world_rank, 0, 1, MPI_INT64_T,
                                        MPI_REPLACE, NUMBER, window.win));
        CHECK_OK(MPIX_Accumulate_notify(&round, 1, MPI_INT64_T, right, 1, 1, MPI_INT64_T,
                                        MPI_REPLACE, NUMBER, window.win));
        MPI_Win_flush_local_all(window.win);
    }
    for (int i = 0; i < TAKERS; i++)
        pthread_join(takers[i].thread, NULL);
    CHECK_OK(MPIX_Win_notify_test(window.win, NUMBER, 1, &flag));
    CHECK_EQUAL(flag, 0);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(threads_take_notifications_of_their_own_process, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
