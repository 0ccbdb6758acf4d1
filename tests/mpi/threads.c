/* Several threads of each process use one window, use windows of their own, and make windows, all
 * at once. Two threads of one process never lock the same target of the same window: that would be
 * an error of the program. A plain MPI program, run by the test rows; skipped where the host gives
 * no MPI_THREAD_MULTIPLE. */
#include "harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3 };

struct worker {
    pthread_t thread;
    int number;
    enum window_kind kind;
    MPI_Win win;
    MPI_Comm comm;
    char *base;
    int rounds;
    int64_t sent[64]; /* by target */
    void (*work)(struct worker *worker);
};

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

static void workers_run(struct worker workers[THREADS], enum window_kind kind, int rounds,
                        void (*work)(struct worker *worker))
{
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].kind = kind;
        workers[i].rounds = rounds;
        workers[i].work = work;
        memset(workers[i].sent, 0, sizeof workers[i].sent);
        pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
}

/* The sum of all threads' additions to each rank's first word. */
static void totals_check(const struct worker workers[THREADS], const struct window *window)
{
    int64_t mine[64] = {0}, all[64] = {0};
    for (int i = 0; i < THREADS; i++)
        for (int target = 0; target < world_size; target++)
            mine[target] += workers[i].sent[target];
    MPI_Allreduce(mine, all, world_size, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_sync(window->win);
    CHECK_EQUAL(*(int64_t *)window->base, all[world_rank]);
}

static void add_at_random(struct worker *worker)
{
    struct random random = random_start((uint64_t)(world_rank * THREADS + worker->number));
    for (int i = 0; i < worker->rounds; i++) {
        int target = (int)random_below(&random, (uint64_t)world_size);
        int64_t value = (int64_t)random_below(&random, 50), old = -1;
        if (i % 2)
            MPI_Fetch_and_op(&value, &old, MPI_INT64_T, target, 0, MPI_SUM, worker->win);
        else
            MPI_Accumulate(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, worker->win);
        MPI_Win_flush(target, worker->win);
        worker->sent[target] += value;
    }
}

static void threads_on_one_window_lose_no_update(enum window_kind kind)
{
    static struct worker workers[THREADS];
    if (!threads_supported())
        return;
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++)
        workers[i].win = window.win;
    MPI_Win_lock_all(0, window.win);
    workers_run(workers, kind, scaled_rounds(1000), add_at_random);
    barrier(MPI_COMM_WORLD);
    totals_check(workers, &window);
    MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void put_and_get_back(struct worker *worker)
{
    struct random random = random_start((uint64_t)(world_rank * THREADS + worker->number));
    MPI_Aint word = 4 * (world_rank * THREADS + worker->number);
    for (int64_t i = 1; i <= worker->rounds; i++) {
        int target = (int)random_below(&random, (uint64_t)world_size);
        int64_t sent[4] = {i, -i, worker->number, world_rank}, got[4] = {0};
        MPI_Put(sent, 4, MPI_INT64_T, target, word, 4, MPI_INT64_T, worker->win);
        MPI_Win_flush(target, worker->win);
        MPI_Get(got, 4, MPI_INT64_T, target, word, 4, MPI_INT64_T, worker->win);
        MPI_Win_flush_local(target, worker->win);
        CHECK(memcmp(sent, got, sizeof sent) == 0, "thread %d does not get back what it put",
              worker->number);
    }
}

static void threads_put_and_get_in_their_own_words(enum window_kind kind)
{
    static struct worker workers[THREADS];
    if (!threads_supported())
        return;
    struct window window =
        window_make(kind, (MPI_Aint)32 * THREADS * world_size, 8, MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++)
        workers[i].win = window.win;
    MPI_Win_lock_all(0, window.win);
    workers_run(workers, kind, scaled_rounds(1000), put_and_get_back);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Thread t locks the targets t, t + THREADS, ...: never the same as another thread of its
 * process. */
static void count_under_locks(struct worker *worker)
{
    for (int i = 0; i < worker->rounds; i++) {
        for (int target = worker->number; target < world_size; target += THREADS) {
            int64_t counter = -1;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, worker->win);
            MPI_Get(&counter, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, worker->win);
            MPI_Win_flush(target, worker->win);
            counter++;
            MPI_Put(&counter, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, worker->win);
            MPI_Win_unlock(target, worker->win);
            worker->sent[target]++;
        }
    }
}

static void threads_lock_targets_of_their_own(enum window_kind kind)
{
    static struct worker workers[THREADS];
    if (!threads_supported())
        return;
    struct window window = window_make(kind, 64, 8, MPI_COMM_WORLD);
    for (int i = 0; i < THREADS; i++)
        workers[i].win = window.win;
    workers_run(workers, kind, scaled_rounds(200), count_under_locks);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, window.win);
    totals_check(workers, &window);
    MPI_Win_unlock(world_rank, window.win);
    window_free(&window);
}

static void use_every_synchronisation(struct worker *worker)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    const int64_t *words = (const int64_t *)worker->base;
    MPI_Group group;
    MPI_Comm_group(worker->comm, &group);
    for (int64_t round = 1; round <= worker->rounds; round++) {
        int64_t value = 1000 * round + 10 * world_rank + worker->number;
        MPI_Win_fence(0, worker->win);
        MPI_Put(&value, 1, MPI_INT64_T, right, 0, 1, MPI_INT64_T, worker->win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, worker->win);
        CHECK_EQUAL(words[0], 1000 * round + 10 * left + worker->number);
        MPI_Win_post(group, 0, worker->win);
        MPI_Win_start(group, 0, worker->win);
        MPI_Put(&value, 1, MPI_INT64_T, right, 1, 1, MPI_INT64_T, worker->win);
        MPI_Win_complete(worker->win);
        MPI_Win_wait(worker->win);
        CHECK_EQUAL(words[1], 1000 * round + 10 * left + worker->number);
    }
    MPI_Group_free(&group);
}

static void threads_synchronise_windows_of_their_own(enum window_kind kind)
{
    static struct worker workers[THREADS];
    struct window windows[THREADS];
    if (!threads_supported())
        return;
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
        windows[i] = window_make(kind, 64, 8, workers[i].comm);
        workers[i].win = windows[i].win;
        workers[i].base = windows[i].base;
    }
    workers_run(workers, kind, scaled_rounds(60), use_every_synchronisation);
    for (int i = 0; i < THREADS; i++) {
        window_free(&windows[i]);
        MPI_Comm_free(&workers[i].comm);
    }
}

static void make_use_and_free(struct worker *worker)
{
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size;
    for (int64_t round = 1; round <= worker->rounds; round++) {
        struct window window = window_make(worker->kind, 64 + 8 * round, 8, worker->comm);
        int64_t value = 1000 * round + 10 * world_rank + worker->number;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, window.win);
        MPI_Put(&value, 1, MPI_INT64_T, right, round, 1, MPI_INT64_T, window.win);
        MPI_Win_unlock(right, window.win);
        barrier(worker->comm);
        CHECK_EQUAL(((int64_t *)window.base)[round], 1000 * round + 10 * left + worker->number);
        barrier(worker->comm);
        window_free(&window);
    }
}

static void threads_make_windows_on_communicators_of_their_own(enum window_kind kind)
{
    static struct worker workers[THREADS];
    if (!threads_supported())
        return;
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    workers_run(workers, kind, scaled_rounds(20), make_use_and_free);
    for (int i = 0; i < THREADS; i++)
        MPI_Comm_free(&workers[i].comm);
}

static void allocate_at_random(struct worker *worker)
{
    struct random random = random_start((uint64_t)(world_rank * THREADS + worker->number));
    for (int i = 0; i < worker->rounds; i++) {
        size_t len_bytes = 1 + random_below(&random, 30000);
        unsigned char mark = (unsigned char)(worker->number + 1), *memory = NULL;
        MPI_Alloc_mem((MPI_Aint)len_bytes, MPI_INFO_NULL, &memory);
        memset(memory, mark, len_bytes);
        random_pause(&random, 20);
        CHECK(memory[0] == mark && memory[len_bytes / 2] == mark && memory[len_bytes - 1] == mark,
              "thread %d lost its memory", worker->number);
        MPI_Free_mem(memory);
    }
}

static void threads_allocate_memory(enum window_kind kind)
{
    static struct worker workers[THREADS];
    if (threads_supported())
        workers_run(workers, kind, 1000, allocate_at_random);
}

static const struct test_case cases[] = {
    CASE(threads_on_one_window_lose_no_update, KINDS_ALL, 1),
    CASE(threads_put_and_get_in_their_own_words, KINDS_ALL, 1),
    CASE(threads_lock_targets_of_their_own, KINDS_ALL, 1),
    CASE(threads_synchronise_windows_of_their_own, KINDS_BOTH, 1),
    CASE(threads_make_windows_on_communicators_of_their_own, KINDS_ALL, 1),
    CASE(threads_allocate_memory, KIND_ANY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
