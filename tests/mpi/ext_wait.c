/* Waiting on memory: every comparison and integer, woken by every call that completes operations
 * and by stores, with all that was done before the change; and errors. */
#include "errors.h"
#include "oriel/ext.h"

#include <pthread.h>
#include <stdlib.h>

enum { ROUNDS = 100, PADDING = 8 };

static int left_of(int rank)
{
    return (rank + world_size - 1) % world_size;
}

static bool lacks_extensions(void)
{
    if (!MPIX_Query_oriel())
        harness_skip("extensions are Oriel's");
    return !MPIX_Query_oriel();
}

static int wait_for(MPI_Win win, MPI_Aint at, int64_t value)
{
    return MPIX_Win_wait_until(win, at, MPI_INT64_T, MPIX_CMP_EQ, &value);
}

/* Turns of all ranks in a ring, each of which starts after a random pause, so the next one spins or
 * sleeps. Data precedes the turn. */
typedef void give_turn(int target, int64_t turn, MPI_Win win);

static void take_turns(enum window_kind kind, bool in_lock_all, int rounds, give_turn *give)
{
    enum { TURN = 0, DATA = 1 };
    struct window window = window_make(kind, 8 * PADDING, 8, MPI_COMM_WORLD);
    struct random random = random_start((uint64_t)world_rank);
    const int64_t *words = (const int64_t *)window.base;
    const int right = (world_rank + 1) % world_size;
    if (in_lock_all)
        MPI_Win_lock_all(0, window.win);
    for (int64_t turn = 1; turn <= rounds && !harness_failed(); turn++) {
        if (world_rank > 0 || turn > 1) {
            CHECK_OK(wait_for(window.win, TURN, world_rank == 0 ? turn - 1 : turn));
            CHECK_EQUAL(load_word(&words[DATA]), 10 * load_word(&words[TURN]));
        }
        random_pause(&random, turn % 8 == 0 ? 4000 : 50);
        give(right, turn, window.win);
    }
    if (world_rank == 0)
        CHECK_OK(wait_for(window.win, TURN, rounds));
    barrier(MPI_COMM_WORLD);
    if (in_lock_all)
        MPI_Win_unlock_all(window.win);
    window_free(&window);
}

static void put_turn(int target, int64_t turn, MPI_Win win)
{
    static int64_t words[2]; /* in use until the caller completes the puts */
    words[0] = turn;
    words[1] = 10 * turn;
    CHECK_OK(MPI_Put(&words[1], 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win));
    CHECK_OK(MPIX_Win_order(target, win));
    CHECK_OK(MPI_Put(&words[0], 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win));
}

static void turn_by_flush(int target, int64_t turn, MPI_Win win)
{
    put_turn(target, turn, win);
    CHECK_OK(MPI_Win_flush(target, win));
}

static void turn_by_flush_all(int target, int64_t turn, MPI_Win win)
{
    put_turn(target, turn, win);
    CHECK_OK(MPI_Win_flush_all(win));
}

static void turn_by_fetch_and_op(int target, int64_t turn, MPI_Win win)
{
    int64_t before = -1, data = 10 * turn, one = 1;
    CHECK_OK(MPI_Put(&data, 1, MPI_INT64_T, target, 1, 1, MPI_INT64_T, win));
    CHECK_OK(MPIX_Win_order(target, win));
    CHECK_OK(MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 0, MPI_SUM, win));
    CHECK_OK(MPI_Win_flush(target, win));
    CHECK_EQUAL(before, turn - 1);
}

static void turn_by_unlock(int target, int64_t turn, MPI_Win win)
{
    MPI_Win_lock(turn % 2 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, win);
    put_turn(target, turn, win);
    CHECK_OK(MPI_Win_unlock(target, win));
}

static void turn_by_unlock_all(int target, int64_t turn, MPI_Win win)
{
    MPI_Win_lock_all(0, win);
    put_turn(target, turn, win);
    CHECK_OK(MPI_Win_unlock_all(win));
}

static void turn_by_list(int target, int64_t turn, MPI_Win win)
{
    put_turn(target, turn, win);
    CHECK_OK(MPIX_Win_flush_list(1, &target, win));
}

static void turn_by_request(int target, int64_t turn, MPI_Win win)
{
    MPI_Request request;
    put_turn(target, turn, win);
    CHECK_OK(MPIX_Win_iflush(target, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

static void every_completion_wakes(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    const int rounds = scaled_rounds(ROUNDS);
    take_turns(kind, true, rounds, turn_by_flush);
    take_turns(kind, true, rounds, turn_by_flush_all);
    take_turns(kind, true, rounds, turn_by_fetch_and_op);
    take_turns(kind, true, rounds, turn_by_list);
    take_turns(kind, true, rounds, turn_by_request);
    take_turns(kind, false, rounds, turn_by_unlock);
    take_turns(kind, false, rounds, turn_by_unlock_all);
}

static int64_t *shared_base(MPI_Win win, int rank)
{
    MPI_Aint size_bytes;
    int unit;
    void *base;
    MPI_Win_shared_query(win, rank, &size_bytes, &unit, &base);
    return base;
}

static void turn_by_store(int target, int64_t turn, MPI_Win win)
{
    int64_t *words = shared_base(win, target);
    store_word(&words[1], 10 * turn);
    store_word(&words[0], turn);
}

static void stores_are_seen(enum window_kind kind)
{
    if (!lacks_extensions())
        take_turns(kind, false, scaled_rounds(ROUNDS), turn_by_store);
}

/* --- comparisons --- */

static const int comparisons[] = {MPIX_CMP_EQ, MPIX_CMP_NE, MPIX_CMP_LT,
                                  MPIX_CMP_LE, MPIX_CMP_GT, MPIX_CMP_GE};

static bool expected(int comparison, int order)
{
    switch (comparison) {
    case MPIX_CMP_EQ: return order == 0;
    case MPIX_CMP_NE: return order != 0;
    case MPIX_CMP_LT: return order < 0;
    case MPIX_CMP_LE: return order <= 0;
    case MPIX_CMP_GT: return order > 0;
    default: return order >= 0;
    }
}

/* left and right are in ascending order of the type's numbers: the lowest, 1, the highest. */
#define COMPARE(type, datatype, low, high)                                                         \
    for (int left = 0; left < 3; left++)                                                           \
        for (int right = 0; right < 3; right++)                                                    \
            for (size_t i = 0; i < COUNT_OF(comparisons); i++) {                                   \
                const type numbers[] = {low, 1, high};                                             \
                int flag = -1;                                                                     \
                *(volatile type *)window.base = numbers[left];                                     \
                CHECK_OK(MPIX_Win_test_until(window.win, 0, datatype, comparisons[i],              \
                                             &numbers[right], &flag));                             \
                CHECK_EQUAL(flag, expected(comparisons[i], left - right));                         \
                if (flag)                                                                          \
                    CHECK_OK(MPIX_Win_wait_until(window.win, 0, datatype, comparisons[i],          \
                                                 &numbers[right]));                                \
            }

static void every_comparison_of_every_integer(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    COMPARE(int8_t, MPI_INT8_T, INT8_MIN, INT8_MAX)
    COMPARE(uint8_t, MPI_UINT8_T, 0, UINT8_MAX)
    COMPARE(int16_t, MPI_INT16_T, INT16_MIN, INT16_MAX)
    COMPARE(uint16_t, MPI_UINT16_T, 0, UINT16_MAX)
    COMPARE(int32_t, MPI_INT, INT32_MIN, INT32_MAX)
    COMPARE(uint32_t, MPI_UNSIGNED, 0, UINT32_MAX)
    COMPARE(int64_t, MPI_INT64_T, INT64_MIN, INT64_MAX)
    COMPARE(uint64_t, MPI_UINT64_T, 0, UINT64_MAX)
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* --- arguments --- */

static void waits_check_their_arguments(enum window_kind kind)
{
    if (lacks_extensions())
        return;
    struct window window = window_make(kind, 64, 4, MPI_COMM_WORLD);
    int flag = -1;
    const int64_t zero = 0;
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
#define BOTH(class, at, datatype, comparison, value)                                               \
    do {                                                                                           \
        CHECK_CLASS(class, MPIX_Win_wait_until(window.win, at, datatype, comparison, value));      \
        CHECK_CLASS(class,                                                                         \
                    MPIX_Win_test_until(window.win, at, datatype, comparison, value, &flag));      \
    } while (0)
    BOTH(MPI_ERR_RMA_RANGE, 16, MPI_INT, MPIX_CMP_EQ, &zero);
    BOTH(MPI_ERR_RMA_RANGE, 15, MPI_INT64_T, MPIX_CMP_EQ, &zero);
    BOTH(MPI_ERR_DISP, -1, MPI_INT, MPIX_CMP_EQ, &zero);
    BOTH(MPI_ERR_ARG, 1, MPI_INT64_T, MPIX_CMP_EQ, &zero);
    BOTH(MPI_ERR_ARG, 0, MPI_INT64_T, 0, &zero);
    BOTH(MPI_ERR_ARG, 0, MPI_INT64_T, MPIX_CMP_GE + 1, &zero);
    BOTH(MPI_ERR_ARG, 0, MPI_INT64_T, MPIX_CMP_EQ, NULL);
    BOTH(MPI_ERR_TYPE, 0, MPI_DOUBLE, MPIX_CMP_EQ, &zero);
    BOTH(MPI_ERR_TYPE, 0, pair, MPIX_CMP_EQ, &zero);
    BOTH(MPI_ERR_TYPE, 0, MPI_DATATYPE_NULL, MPIX_CMP_EQ, &zero);
    CHECK_CLASS(MPI_ERR_ARG, MPIX_Win_test_until(window.win, 0, MPI_INT, MPIX_CMP_EQ, &zero, NULL));
    CHECK_EQUAL(flag, -1);
    BOTH(MPI_SUCCESS, 15, MPI_INT, MPIX_CMP_EQ, &zero);
    CHECK_EQUAL(flag, 1);
    MPI_Type_free(&pair);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void an_attached_word_is_awaited_at_its_address(enum window_kind kind)
{
    (void)kind;
    if (lacks_extensions())
        return;
    static int64_t words[2];
    MPI_Win win;
    MPI_Aint own, there;
    const int64_t value = 40, zero = 0;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window_watch(win);
    CHECK_OK(MPI_Win_attach(win, words, sizeof words));
    MPI_Get_address(&words[1], &own);
    MPI_Sendrecv(&own, 1, MPI_AINT, left_of(world_rank), 0, &there, 1, MPI_AINT,
                 (world_rank + 1) % world_size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock_all(0, win);
    CHECK_OK(
        MPI_Put(&value, 1, MPI_INT64_T, (world_rank + 1) % world_size, there, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_flush((world_rank + 1) % world_size, win));
    CHECK_OK(wait_for(win, own, value));
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_detach(win, words));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPIX_Win_wait_until(win, own, MPI_INT64_T, MPIX_CMP_EQ, &zero));
    MPI_Win_free(&win);
}

/* --- threads --- */

struct waiter {
    MPI_Win win;
    MPI_Aint at;
    pthread_t thread;
    int code;
};

static void *wait_in_thread(void *context)
{
    struct waiter *waiter = context;
    waiter->code = wait_for(waiter->win, waiter->at, 5);
    return NULL;
}

/* All of them sleep, and each is woken by its own word. */
static void threads_wait_for_words_of_their_own(enum window_kind kind)
{
    enum { THREADS = 4 };
    if (lacks_extensions())
        return;
    if (harness_thread_level() < MPI_THREAD_MULTIPLE) {
        harness_skip("the host has no MPI_THREAD_MULTIPLE");
        return;
    }
    struct window window = window_make(kind, 8 * THREADS, 8, MPI_COMM_WORLD);
    struct waiter waiters[THREADS];
    const int64_t five = 5;
    for (int i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){.win = window.win, .at = i};
        CHECK(pthread_create(&waiters[i].thread, NULL, wait_in_thread, &waiters[i]) == 0,
              "no thread");
    }
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int i = THREADS - 1; i >= 0; i--) {
        sleep_us(3000);
        CHECK_OK(
            MPI_Put(&five, 1, MPI_INT64_T, left_of(world_rank), i, 1, MPI_INT64_T, window.win));
        CHECK_OK(MPI_Win_flush(left_of(world_rank), window.win));
    }
    MPI_Win_unlock_all(window.win);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(waiters[i].thread, NULL);
        CHECK_EQUAL(waiters[i].code, MPI_SUCCESS);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(every_completion_wakes, KINDS_ALL, 1),
    CASE(stores_are_seen, KIND_SHARED, 1),
    CASE(every_comparison_of_every_integer, KINDS_ALL, 1),
    CASE(waits_check_their_arguments, KINDS_ALL, 1),
    CASE(an_attached_word_is_awaited_at_its_address, KIND_ANY, 1),
    CASE(threads_wait_for_words_of_their_own, KINDS_BOTH, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
