/* Threads make and free windows, datatypes and communicators while other threads use theirs. A
 * reused handle refers to the new object in every thread, including threads that used the old one.
 * A plain MPI program, run by the test rows; skipped where the host does not support
 * MPI_THREAD_MULTIPLE. */
#include "harness.h"
#include "host_limits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, SLOT_WORDS = 32 };

struct worker {
    pthread_t thread;
    int number;
    int rounds;
    enum window_kind kind;
    MPI_Comm comm;         /* the worker's own */
    MPI_Win wins[THREADS]; /* windows of all */
    struct random random;
    void (*work)(struct worker *worker);
};

static struct worker workers[THREADS];
static pthread_barrier_t threads_barrier; /* of the threads of one process */

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
    pthread_barrier_init(&threads_barrier, NULL, THREADS);
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
    pthread_barrier_destroy(&threads_barrier);
}

/* The slot in a target's window that only this thread of this rank writes. */
static MPI_Aint own_slot(const struct worker *worker)
{
    return (MPI_Aint)SLOT_WORDS * (world_rank * THREADS + worker->number);
}

/* A vector of count words with the given distance; every other one is made through a duplicate that
 * is freed at once. */
static MPI_Datatype vector_make(int count, int distance, bool through_duplicate)
{
    MPI_Datatype vector, copy;
    MPI_Type_vector(count, 1, distance, MPI_INT64_T, &vector);
    if (through_duplicate) {
        MPI_Type_dup(vector, &copy);
        MPI_Type_free(&vector);
        vector = copy;
    }
    MPI_Type_commit(&vector);
    return vector;
}

/* Puts count words with a type of its own at this distance, reads the whole slot back, and frees
 * the type. */
static void vector_round(struct worker *worker, MPI_Win win, int target)
{
    int distance = 1 + (int)random_below(&worker->random, 4),
        count = 1 + (int)random_below(&worker->random, 7);
    MPI_Datatype vector = vector_make(count, distance, random_below(&worker->random, 2));
    int64_t zeros[SLOT_WORDS] = {0}, sent[SLOT_WORDS], got[SLOT_WORDS];
    for (int i = 0; i < SLOT_WORDS; i++)
        sent[i] = (int64_t)random_below(&worker->random, 1000000) + 1;
    MPI_Put(zeros, SLOT_WORDS, MPI_INT64_T, target, own_slot(worker), SLOT_WORDS, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    if (random_below(&worker->random, 2))
        MPI_Put(sent, count, MPI_INT64_T, target, own_slot(worker), 1, vector, win);
    else
        MPI_Accumulate(sent, count, MPI_INT64_T, target, own_slot(worker), 1, vector, MPI_SUM, win);
    MPI_Type_free(&vector);
    MPI_Win_flush(target, win);
    MPI_Get(got, SLOT_WORDS, MPI_INT64_T, target, own_slot(worker), SLOT_WORDS, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    for (int i = 0; i < SLOT_WORDS && !harness_failed(); i++) {
        int64_t wanted = i % distance == 0 && i / distance < count ? sent[i / distance] : 0;
        CHECK(got[i] == wanted, "thread %d: %d words at distance %d: word %d is %lld, not %lld",
              worker->number, count, distance, i, (long long)got[i], (long long)wanted);
    }
}

static void make_types_and_move(struct worker *worker)
{
    for (int round = 0; round < worker->rounds; round++)
        vector_round(worker, worker->wins[0],
                     (int)random_below(&worker->random, (uint64_t)world_size));
}

static void threads_make_and_free_types_in_use(enum window_kind kind)
{
    if (!threads_supported())
        return;
    struct window window =
        window_make(kind, (MPI_Aint)8 * SLOT_WORDS * THREADS * world_size, 8, MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++)
        workers[i].wins[0] = window.win;
    MPI_Win_lock_all(0, window.win);
    workers_run(kind, scaled_rounds(800), make_types_and_move);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* One type at a time, made by each thread in turn, used by all, freed by another: its handle is
 * soon reused. */
static struct {
    MPI_Datatype type;
    int distance;
} passed;

static void use_types_of_others(struct worker *worker)
{
    MPI_Win win = worker->wins[0];
    int64_t sent[4] = {1, 2, 3, 4}, got[SLOT_WORDS];
    for (int round = 0; round < worker->rounds; round++) {
        if (round % THREADS == worker->number) {
            passed.distance = 1 + (int)random_below(&worker->random, 6);
            passed.type = vector_make(4, passed.distance, round % 3 == 0);
        }
        pthread_barrier_wait(&threads_barrier);
        int target = (int)random_below(&worker->random, (uint64_t)world_size),
            distance = passed.distance;
        memset(got, 0, sizeof got);
        MPI_Put(got, SLOT_WORDS, MPI_INT64_T, target, own_slot(worker), SLOT_WORDS, MPI_INT64_T,
                win);
        MPI_Win_flush(target, win);
        MPI_Put(sent, 4, MPI_INT64_T, target, own_slot(worker), 1, passed.type, win);
        MPI_Win_flush(target, win);
        MPI_Get(got, SLOT_WORDS, MPI_INT64_T, target, own_slot(worker), SLOT_WORDS, MPI_INT64_T,
                win);
        MPI_Win_flush(target, win);
        for (int i = 0; i < SLOT_WORDS && !harness_failed(); i++)
            CHECK(got[i] == (i % distance == 0 && i / distance < 4 ? i / distance + 1 : 0),
                  "thread %d at distance %d: word %d is %lld", worker->number, distance, i,
                  (long long)got[i]);
        pthread_barrier_wait(&threads_barrier);
        if ((round + 1) % THREADS == worker->number)
            MPI_Type_free(&passed.type);
        pthread_barrier_wait(&threads_barrier);
    }
}

static void a_types_handle_means_the_new_type_in_all_threads(enum window_kind kind)
{
    if (!threads_supported())
        return;
    struct window window =
        window_make(kind, (MPI_Aint)8 * SLOT_WORDS * THREADS * world_size, 8, MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++)
        workers[i].wins[0] = window.win;
    MPI_Win_lock_all(0, window.win);
    workers_run(kind, scaled_rounds(400), use_types_of_others);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* The same with windows: thread 0 makes one, all use it, thread 1 frees it, and the next may have
 * its handle. */
static struct window shared_window;

static void use_windows_of_others(struct worker *worker)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    for (int round = 0; round < worker->rounds; round++) {
        if (worker->number == 0) {
            shared_window =
                window_make(worker->kind, (MPI_Aint)8 * (THREADS + round % 3), 8, worker->comm);
            MPI_Win_lock_all(0, shared_window.win);
        }
        pthread_barrier_wait(&threads_barrier);
        int64_t value = 1000 * round + 10 * world_rank + worker->number;
        MPI_Win win = shared_window.win;
        MPI_Put(&value, 1, MPI_INT64_T, right, worker->number, 1, MPI_INT64_T, win);
        MPI_Win_flush(right, win);
        pthread_barrier_wait(&threads_barrier);
        if (worker->number == 1) {
            MPI_Win_unlock_all(win);
            barrier(workers[0].comm);
            for (int i = 0; i < THREADS; i++)
                CHECK_EQUAL(((int64_t *)shared_window.base)[i], 1000 * round + 10 * left + i);
            barrier(workers[0].comm);
            window_free(&shared_window);
        }
        pthread_barrier_wait(&threads_barrier);
    }
}

static void a_windows_handle_means_the_new_window_in_all_threads(enum window_kind kind)
{
    if (!threads_supported())
        return;
    MPI_Comm_dup(MPI_COMM_WORLD, &workers[0].comm);
    workers_run(kind, scaled_rounds(100), use_windows_of_others);
    MPI_Comm_free(&workers[0].comm);
}

/* Odd threads make and free communicators and windows on them; even ones use a window that stays
 * open. */
static void make_during_use(struct worker *worker)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    for (int round = 0; round < worker->rounds; round++) {
        if (worker->number % 2 == 0) {
            for (int i = 0; i < 20; i++)
                vector_round(worker, worker->wins[worker->number / 2],
                             (int)random_below(&worker->random, (uint64_t)world_size));
            continue;
        }
        MPI_Comm comm;
        int64_t value = 100 * round + world_rank;
        MPI_Comm_split(worker->comm, 0, round % 2 ? -world_rank : world_rank, &comm);
        struct window window = window_make(worker->kind, 16, 8, comm);
        int target = round % 2 ? world_size - 1 - right : right;
        MPI_Comm_free(&comm);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
        MPI_Put(&value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(target, window.win);
        barrier(worker->comm);
        CHECK_EQUAL(((int64_t *)window.base)[1], 100 * round + left);
        barrier(worker->comm);
        window_free(&window);
    }
}

static void windows_are_made_and_freed_while_others_are_in_use(enum window_kind kind)
{
    struct window windows[THREADS / 2];
    if (!threads_supported())
        return;
    if (host_loses_messages_of_threads()) {
        harness_skip("the host loses messages when several threads communicate");
        return;
    }
    for (int i = 0; i < THREADS / 2; i++)
        windows[i] =
            window_make(kind, (MPI_Aint)8 * SLOT_WORDS * THREADS * world_size, 8, MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
        for (int j = 0; j < THREADS / 2; j++)
            workers[i].wins[j] = windows[j].win;
    }
    for (int j = 0; j < THREADS / 2; j++)
        MPI_Win_lock_all(0, windows[j].win);
    workers_run(kind, scaled_rounds(30), make_during_use);
    for (int j = 0; j < THREADS / 2; j++)
        MPI_Win_unlock_all(windows[j].win);
    barrier(MPI_COMM_WORLD);
    for (int j = 0; j < THREADS / 2; j++)
        window_free(&windows[j]);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&workers[i].comm);
}

static const struct test_case cases[] = {
    CASE(threads_make_and_free_types_in_use, KINDS_ALL, 1),
    CASE(a_types_handle_means_the_new_type_in_all_threads, KINDS_BOTH, 1),
    CASE(a_windows_handle_means_the_new_window_in_all_threads, KINDS_ALL, 1),
    CASE(windows_are_made_and_freed_while_others_are_in_use, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
