/* Large numbers of requests, and requests that one thread starts and another completes. 100,000
 * outstanding at once from each of one or all ranks (TEST_STORM_ALL=1): memory does not grow from
 * storm to storm. A plain MPI program, run by the test rows; the threads' cases are skipped without
 * MPI_THREAD_MULTIPLE. */
#include "footprint.h"
#include "operation_forms.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STORM = 100000, WORDS = 1000, STORMS = 6, STORMS_WARM = 2 };

static MPI_Request requests[STORM];
static int64_t buffers[STORM];
static int64_t results[STORM];

/* A tenth between nodes, where each get is a message and its answer. */
static int storm_size(void)
{
    return ranks_share_memory() ? STORM : STORM / 10;
}

static int right_of(int rank)
{
    return (rank + 1) % world_size;
}

/* Gets read the contents, puts write the same again, accumulates add 1 to words of their own. */
static void storm_start(MPI_Win win, int target, int64_t storm)
{
    for (int i = 0; i < storm_size(); i++) {
        struct arguments a = {&buffers[i], 1,         MPI_INT64_T, &results[i], 1,      MPI_INT64_T,
                              target,      i % WORDS, 1,           MPI_INT64_T, MPI_SUM};
        enum operation operation = (enum operation)(i % OPERATIONS);
        buffers[i] = operation == OPERATION_PUT ? storm : 1;
        results[i] = -1;
        requests[i] = MPI_REQUEST_NULL;
        CHECK_OK(form_call(operation, FORM_REQUEST, &a, win, &requests[i]));
    }
}

/* All at once, in pieces from the end, one by one at random indexes, and by Waitsome. */
static void storm_finish(int completion, struct random *random)
{
    enum { PIECE = 100 };
    MPI_Status statuses[PIECE];
    int indices[PIECE], count = 0;
    for (int turn = 0; completion == 2 && turn < storm_size(); turn++)
        CHECK_OK(
            MPI_Wait(&requests[random_below(random, (uint64_t)storm_size())], MPI_STATUS_IGNORE));
    for (int first = storm_size() - PIECE; first >= 0; first -= PIECE) {
        if (completion == 1)
            CHECK_OK(MPI_Waitsome(PIECE, &requests[first], &count, indices, statuses));
        CHECK_OK(MPI_Waitall(PIECE, &requests[first], statuses));
    }
    for (int i = 0; i < storm_size(); i++)
        if (!CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is not complete", i))
            return;
}

/* Word w takes the operation w % OPERATIONS, since WORDS is a multiple of OPERATIONS. */
static void storm_check(int64_t storm)
{
    const int each = storm_size() / WORDS;
    for (int i = 0; i < storm_size() && !harness_failed(); i++) {
        int64_t before = storm * each + i / WORDS;
        if (i % OPERATIONS == OPERATION_GET)
            CHECK_EQUAL(buffers[i], 42);
        if (i % OPERATIONS == OPERATION_GET_ACCUMULATE)
            CHECK_EQUAL(results[i], before);
    }
}

static void storms_leave_no_memory(enum window_kind kind)
{
    struct window window = window_make(kind, 8 * WORDS, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    long warm_kib = 0;
    int64_t *words = (int64_t *)window.base;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
    for (int i = OPERATION_GET; i < WORDS; i += OPERATIONS)
        words[i] = 42;
    MPI_Win_unlock(world_rank, window.win);
    barrier(MPI_COMM_WORLD);
    bool active = world_rank == 0 || getenv("TEST_STORM_ALL");
    MPI_Win_lock_all(0, window.win);
    for (int storm = 0; active && storm < STORMS; storm++) {
        storm_start(window.win, right_of(world_rank), storm);
        storm_finish(storm % 3, &random);
        storm_check(storm);
        if (storm == STORMS_WARM)
            warm_kib = footprint_read().resident_kib;
    }
    long end_kib = footprint_read().resident_kib;
    if (active)
        CHECK(end_kib <= warm_kib + 6144 + FREED_CACHED_KIB, "%ld KiB became %ld KiB", warm_kib,
              end_kib);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* A slot is empty, or contains a started request; the thread that removes it completes it. */
enum { SLOTS = 64, STARTERS = 2, FINISHERS = 2, THREADS = STARTERS + FINISHERS };
struct slot {
    MPI_Request request;
    int64_t value;
    int64_t result;
    int64_t wanted;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct slot *full[SLOTS];
    int count;
    int starters_left;
    int finished;
    MPI_Win win;
    int rounds;
} queue = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void queue_push(struct slot *slot)
{
    pthread_mutex_lock(&queue.mutex);
    while (queue.count == SLOTS)
        pthread_cond_wait(&queue.changed, &queue.mutex);
    queue.full[queue.count++] = slot;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.mutex);
}

/* NULL once no thread pushes any more. */
static struct slot *queue_pop(void)
{
    struct slot *slot = NULL;
    pthread_mutex_lock(&queue.mutex);
    while (queue.count == 0 && queue.starters_left > 0)
        pthread_cond_wait(&queue.changed, &queue.mutex);
    if (queue.count > 0)
        slot = queue.full[--queue.count];
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.mutex);
    return slot;
}

/* Gets of constant words, and adds of 1 to the words after them. */
static void *starter_main(void *argument)
{
    struct random random =
        random_start((uint64_t)(world_rank * THREADS) + (uint64_t)(uintptr_t)argument);
    for (int i = 0; i < queue.rounds; i++) {
        struct slot *slot = calloc(1, sizeof *slot);
        int target = (int)random_below(&random, (uint64_t)world_size);
        *slot = (struct slot){MPI_REQUEST_NULL, 1, -1, i % 2 ? 1 : 900 + target};
        if (i % 2)
            MPI_Raccumulate(&slot->value, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, MPI_SUM,
                            queue.win, &slot->request);
        else
            MPI_Rget(&slot->value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, queue.win,
                     &slot->request);
        queue_push(slot);
    }
    pthread_mutex_lock(&queue.mutex);
    queue.starters_left--;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.mutex);
    return NULL;
}

static void *finisher_main(void *argument)
{
    int turn = argument != NULL;
    for (struct slot *slot = queue_pop(); slot; slot = queue_pop(), turn++) {
        int done = 0, index = 0;
        if (turn % 3 == 0)
            CHECK_OK(MPI_Wait(&slot->request, MPI_STATUS_IGNORE));
        else if (turn % 3 == 1)
            CHECK_OK(MPI_Waitany(1, &slot->request, &index, MPI_STATUS_IGNORE));
        while (turn % 3 == 2 && !done)
            CHECK_OK(MPI_Test(&slot->request, &done, MPI_STATUS_IGNORE));
        CHECK(slot->request == MPI_REQUEST_NULL, "a request that was completed is still there");
        CHECK_EQUAL(slot->value, slot->wanted);
        free(slot);
        __atomic_add_fetch(&queue.finished, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void requests_are_completed_by_other_threads(enum window_kind kind)
{
    pthread_t threads[THREADS];
    int64_t total = 0, mine[64] = {0};
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    struct window window = window_make(kind, 16, 8, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, world_rank, 0, window.win);
    ((int64_t *)window.base)[0] = 900 + world_rank;
    MPI_Win_unlock(world_rank, window.win);
    barrier(MPI_COMM_WORLD);
    queue.win = window.win;
    queue.rounds = scaled_rounds(3000) & ~1;
    queue.starters_left = STARTERS;
    queue.finished = 0;
    MPI_Win_lock_all(0, window.win);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, i < STARTERS ? starter_main : finisher_main, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQUAL(queue.finished, STARTERS * queue.rounds);
    MPI_Win_flush_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int target = 0; target < world_size; target++) {
        MPI_Get(&mine[target % 64], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, window.win);
        MPI_Win_flush(target, window.win);
        total += mine[target % 64];
    }
    CHECK_EQUAL(total, (int64_t)world_size * STARTERS * queue.rounds / 2);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(storms_leave_no_memory, KINDS_BOTH, 1),
    CASE(requests_are_completed_by_other_threads, KINDS_ALL, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
