/* Threads with epochs of their own: locks on many targets and windows, queries of a window in use,
 * communicators of one process. No two threads of a process open the same target of the same
 * window: that would be an error of the program. A plain MPI program, run by the test rows; skipped
 * where the host does not support MPI_THREAD_MULTIPLE. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, WINDOWS = 3, COUNTERS = 4 };

struct worker {
    pthread_t thread;
    int number;
    int rounds;
    enum window_kind kind;
    struct random random;
    int64_t sent[WINDOWS][64]; /* by target */
    void (*work)(struct worker *worker);
};

static struct worker workers[THREADS];
static struct window windows[WINDOWS];
static bool stop;

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    worker->work(worker);
    return NULL;
}

static bool threads_supported(void)
{
    if (harness_thread_level() == MPI_THREAD_MULTIPLE)
        return true;
    harness_skip("the host does not support MPI_THREAD_MULTIPLE");
    return false;
}

static void workers_run(enum window_kind kind, int rounds, void (*work)(struct worker *worker))
{
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].kind = kind;
        workers[i].rounds = rounds;
        workers[i].random = random_start((uint64_t)(world_rank * THREADS + i));
        workers[i].work = work;
        pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
}

static void windows_make(enum window_kind kind)
{
    for (int i = 0; i < WINDOWS; i++)
        windows[i] = window_make(kind, 8 * COUNTERS, 8, MPI_COMM_WORLD);
}

/* The first word of each rank in each window is the sum of all threads' counts there. */
static void windows_check_and_free(void)
{
    for (int i = 0; i < WINDOWS; i++) {
        int64_t mine[64] = {0}, all[64] = {0};
        for (int j = 0; j < THREADS; j++)
            for (int target = 0; target < world_size; target++)
                mine[target] += workers[j].sent[i][target];
        MPI_Allreduce(mine, all, world_size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, windows[i].win);
        CHECK_EQUAL(*(int64_t *)windows[i].base, all[world_rank]);
        MPI_Win_unlock(world_rank, windows[i].win);
        barrier(MPI_COMM_WORLD);
        window_free(&windows[i]);
    }
}

static void count_up(struct worker *worker, int window, int target)
{
    int64_t counter = -1;
    MPI_Win win = windows[window].win;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Get(&counter, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    counter++;
    random_pause(&worker->random, 20);
    MPI_Put(&counter, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(target, win);
    worker->sent[window][target]++;
}

/* Thread t locks the targets t, t + THREADS, ... of every window: never the same as another thread
 * of its process. */
static void count_on_all_windows(struct worker *worker)
{
    for (int round = 0; round < worker->rounds; round++)
        for (int target = worker->number; target < world_size; target += THREADS)
            for (int window = 0; window < WINDOWS; window++)
                count_up(worker, window, target);
}

static void threads_lock_their_targets_of_all_windows(enum window_kind kind)
{
    if (!threads_supported())
        return;
    windows_make(kind);
    workers_run(kind, scaled_rounds(100), count_on_all_windows);
    barrier(MPI_COMM_WORLD);
    windows_check_and_free();
}

/* Each of the first WINDOWS threads has a window of its own and locks all its targets; they lock
 * the same rank at once. */
static void count_on_own_window(struct worker *worker)
{
    for (int round = 0; round < worker->rounds && worker->number < WINDOWS; round++)
        for (int i = 0; i < world_size; i++)
            count_up(worker, worker->number, (i + world_rank) % world_size);
}

static void threads_lock_one_rank_through_windows_of_their_own(enum window_kind kind)
{
    if (!threads_supported())
        return;
    windows_make(kind);
    workers_run(kind, scaled_rounds(150), count_on_own_window);
    barrier(MPI_COMM_WORLD);
    windows_check_and_free();
}

/* Each thread holds shared locks on all of its targets at once. */
static void hold_several(struct worker *worker)
{
    MPI_Win win = windows[0].win;
    for (int round = 0; round < worker->rounds; round++) {
        int64_t seen[64];
        for (int target = worker->number; target < world_size; target += THREADS)
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        for (int target = worker->number; target < world_size; target += THREADS) {
            int64_t one = 1;
            MPI_Fetch_and_op(&one, &seen[target], MPI_INT64_T, target, 0, MPI_SUM, win);
            MPI_Win_flush_local(target, win);
            worker->sent[0][target]++;
        }
        for (int target = worker->number; target < world_size; target += THREADS)
            MPI_Win_unlock(target, win);
    }
}

static void threads_hold_locks_on_several_targets(enum window_kind kind)
{
    if (!threads_supported())
        return;
    windows_make(kind);
    workers_run(kind, scaled_rounds(400), hold_several);
    barrier(MPI_COMM_WORLD);
    windows_check_and_free();
}

/* Thread 0 queries and changes all attributes of the window while the others work with it. */
static void ask_and_change(struct worker *worker)
{
    MPI_Win win = windows[0].win;
    int extra = 0, keyval, found, length;
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &keyval, NULL);
    for (int round = 0; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE) || round < 20; round++) {
        char name[MPI_MAX_OBJECT_NAME];
        MPI_Info info;
        MPI_Group group;
        MPI_Errhandler handler;
        void *value = NULL;
        MPI_Win_set_name(win, round % 2 ? "odd" : "an even number");
        MPI_Win_get_name(win, name, &length);
        MPI_Win_get_info(win, &info);
        MPI_Info_set(info, "accumulate_ordering", round % 2 ? "none" : "rar,raw,war,waw");
        CHECK_OK(MPI_Win_set_info(win, info));
        MPI_Info_free(&info);
        CHECK_OK(MPI_Win_get_group(win, &group));
        MPI_Group_free(&group);
        MPI_Win_get_errhandler(win, &handler);
        MPI_Errhandler_free(&handler);
        MPI_Win_set_attr(win, keyval, &extra);
        MPI_Win_get_attr(win, keyval, &value, &found);
        CHECK(found && value == &extra, "the attribute is not returned");
        MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &found);
        CHECK_EQUAL(*(MPI_Aint *)value, 8 * COUNTERS);
        random_pause(&worker->random, 50);
    }
    MPI_Win_delete_attr(win, keyval);
    MPI_Win_free_keyval(&keyval);
}

static int workers_left;

static void add_or_ask(struct worker *worker)
{
    if (worker->number == 0) {
        ask_and_change(worker);
        return;
    }
    for (int round = 0; round < worker->rounds; round++) {
        int target = (int)random_below(&worker->random, (uint64_t)world_size);
        int64_t one = 1, seen[2] = {0}, put = 5;
        MPI_Accumulate(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, windows[0].win);
        MPI_Put(&put, 1, MPI_INT64_T, target, worker->number, 1, MPI_INT64_T, windows[0].win);
        MPI_Win_flush(target, windows[0].win);
        MPI_Get(&seen[1], 1, MPI_INT64_T, target, worker->number, 1, MPI_INT64_T, windows[0].win);
        MPI_Win_flush_local_all(windows[0].win);
        CHECK_EQUAL(seen[1], 5);
        worker->sent[0][target]++;
    }
    if (__atomic_sub_fetch(&workers_left, 1, __ATOMIC_ACQ_REL) == 0)
        __atomic_store_n(&stop, true, __ATOMIC_RELEASE);
}

static void a_window_is_asked_and_changed_while_threads_use_it(enum window_kind kind)
{
    if (!threads_supported())
        return;
    windows_make(kind);
    stop = false;
    workers_left = THREADS - 1;
    MPI_Win_lock_all(0, windows[0].win);
    workers_run(kind, scaled_rounds(1000), add_or_ask);
    MPI_Win_unlock_all(windows[0].win);
    barrier(MPI_COMM_WORLD);
    windows_check_and_free();
}

/* Every thread makes windows on its own copies of MPI_COMM_SELF: no window waits for another
 * process. */
static MPI_Comm own_comms[THREADS];

static void live_alone(struct worker *worker)
{
    for (int64_t round = 1; round <= worker->rounds; round++) {
        struct window window = window_make(worker->kind, 8 * round, 8, own_comms[worker->number]);
        int64_t value = 10 * round + worker->number;
        MPI_Win_fence(0, window.win);
        MPI_Put(&value, 1, MPI_INT64_T, 0, round - 1, 1, MPI_INT64_T, window.win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
        CHECK_EQUAL(((int64_t *)window.base)[round - 1], value);
        window_free(&window);
    }
}

static void threads_live_alone_on_communicators_of_one(enum window_kind kind)
{
    if (!threads_supported())
        return;
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &own_comms[i]);
    workers_run(kind, 100, live_alone);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&own_comms[i]);
}

static const struct test_case cases[] = {
    CASE(threads_lock_their_targets_of_all_windows, KINDS_ALL, 1),
    CASE(threads_lock_one_rank_through_windows_of_their_own, KINDS_ALL, 1),
    CASE(threads_hold_locks_on_several_targets, KINDS_ALL, 1),
    CASE(a_window_is_asked_and_changed_while_threads_use_it, KINDS_BOTH, 1),
    CASE(threads_live_alone_on_communicators_of_one, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
