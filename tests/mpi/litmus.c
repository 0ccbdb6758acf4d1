/* Memory-order litmus tests: the guarantees of put, flush and get for algorithms that synchronise
 * through the window itself. Each round has its own words and begins with a rendezvous; an outcome
 * that the order forbids is counted and must not occur. A plain MPI program, run by the test rows.
 */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/* The words of one rank: one cache line each, so only the order matters and not false sharing. */
enum {
    LINE = 8,
    RENDEZVOUS = 0,
    FIRST = LINE,
    SECOND = 2 * LINE,
    TURN = 3 * LINE,
    COUNTER = 4 * LINE,
    WORDS = 5 * LINE
};

static struct window words_make(enum window_kind kind)
{
    struct window window = window_make(kind, WORDS * 8, 8, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    return window;
}

static void words_free(struct window *window)
{
    MPI_Win_unlock_all(window->win);
    barrier(MPI_COMM_WORLD);
    window_free(window);
}

static void put_word_as(MPI_Datatype type, MPI_Win win, int target, int word, int64_t value)
{
    MPI_Put(&value, 1, MPI_INT64_T, target, word, 1, type, win);
    MPI_Win_flush(target, win);
}

static void put_word(MPI_Win win, int target, int word, int64_t value)
{
    put_word_as(MPI_INT64_T, win, target, word, value);
}

static int64_t get_word(MPI_Win win, int target, int word)
{
    int64_t value = -1;
    MPI_Get(&value, 1, MPI_INT64_T, target, word, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    return value;
}

/* Waits until this rank's word has at least the value. The probe lets a host that moves data itself
 * make progress. */
static void await_word(const struct window *window, int word, int64_t value)
{
    const int64_t *mine = (const int64_t *)window->base + word;
    for (unsigned turn = 1; load_word(mine) < value; turn++) {
        int flag;
        if (turn % 64 == 0) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
            sched_yield();
        }
        MPI_Win_sync(window->win);
    }
}

/* Ranks 0 and 1 leave at nearly the same time. */
static void rendezvous(const struct window *window, int64_t round)
{
    put_word(window->win, 1 - world_rank, RENDEZVOUS, round);
    await_word(window, RENDEZVOUS, round);
}

/* Each puts its own word as this datatype and then gets the other's: at least one must see the
 * other's put. */
static void store_buffering(enum window_kind kind, int home_of_first, int home_of_second,
                            MPI_Datatype type)
{
    struct window window = words_make(kind);
    struct random random = random_start((uint64_t)world_rank);
    int rounds = scaled_rounds(6000), forbidden = 0;
    for (int64_t round = 1; round <= rounds && world_rank < 2; round++) {
        int64_t seen, others = -1;
        rendezvous(&window, round);
        random_pause(&random, 0);
        if (world_rank == 0) {
            put_word_as(type, window.win, home_of_first, FIRST, round);
            seen = get_word(window.win, home_of_second, SECOND);
        } else {
            put_word_as(type, window.win, home_of_second, SECOND, round);
            seen = get_word(window.win, home_of_first, FIRST);
        }
        MPI_Sendrecv(&seen, 1, MPI_INT64_T, 1 - world_rank, 0, &others, 1, MPI_INT64_T,
                     1 - world_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        forbidden += seen < round && others < round;
    }
    CHECK(forbidden == 0, "neither saw the other's put in %d of %d rounds", forbidden, rounds);
    words_free(&window);
}

static void put_flush_get_sees_one_of_two_puts(enum window_kind kind)
{
    store_buffering(kind, 0, 1, MPI_INT64_T);
}
static void put_flush_get_crosswise_sees_one_of_two_puts(enum window_kind kind)
{
    store_buffering(kind, 1, 0, MPI_INT64_T);
}
static void put_flush_get_of_other_words_sees_one_of_two_puts(enum window_kind kind)
{
    store_buffering(kind, world_size - 1, world_size - 1, MPI_INT64_T);
}

static void put_derived_flush_get_sees_one_of_two_puts(enum window_kind kind)
{
    MPI_Datatype type;
    MPI_Type_contiguous(1, MPI_INT64_T, &type);
    MPI_Type_commit(&type);
    store_buffering(kind, 1, 0, type);
    MPI_Type_free(&type);
}

/* Payload, flush, flag: a rank that sees the flag in its own memory sees the payload. */
static void a_flag_put_after_a_flush_publishes_the_payload(enum window_kind kind)
{
    struct window window = words_make(kind);
    int64_t *words = (int64_t *)window.base;
    int rounds = scaled_rounds(6000), forbidden = 0;
    for (int64_t round = 1; round <= rounds && world_rank < 2; round++) {
        if (world_rank == 0) {
            put_word(window.win, 1, FIRST, round);
            put_word(window.win, 1, SECOND, round);
            await_word(&window, RENDEZVOUS, round);
        } else {
            await_word(&window, SECOND, round);
            forbidden += load_word(words + FIRST) < round;
            put_word(window.win, 0, RENDEZVOUS, round);
        }
    }
    CHECK(forbidden == 0, "the flag arrived before its payload in %d of %d rounds", forbidden,
          rounds);
    words_free(&window);
}

/* The same, read by gets from a third rank while the writer continues. */
static void gets_see_puts_in_the_order_of_their_flushes(enum window_kind kind)
{
    struct window window = words_make(kind);
    int rounds = scaled_rounds(10000), forbidden = 0, home = world_size - 1;
    if (world_rank == 0) {
        for (int64_t round = 1; round <= rounds; round++) {
            put_word(window.win, home, FIRST, round);
            put_word(window.win, home, SECOND, round);
        }
    } else if (world_rank == 1) {
        int64_t flag = 0, last = 0;
        while (flag < rounds) {
            flag = get_word(window.win, home, SECOND);
            forbidden += get_word(window.win, home, FIRST) < flag;
            forbidden += flag < last;
            last = flag;
            if (flag % 16 == 0)
                sched_yield();
        }
    }
    CHECK(forbidden == 0, "%d reads were out of order", forbidden);
    words_free(&window);
}

/* A thread that puts on command and reports the put. */
struct putter {
    const struct window *window;
    int64_t rounds;
    _Atomic int64_t wanted;
    _Atomic int64_t done;
};

static void *putter_main(void *argument)
{
    struct putter *putter = argument;
    for (int64_t round = 1; round <= putter->rounds; round++) {
        while (atomic_load_explicit(&putter->wanted, memory_order_acquire) < round)
            sched_yield();
        MPI_Put(&round, 1, MPI_INT64_T, 1 - world_rank, world_rank == 0 ? FIRST : SECOND, 1,
                MPI_INT64_T, putter->window->win);
        atomic_store_explicit(
            &putter->done, round,
            memory_order_release); /* not a fence: the other thread's flush must order it */
    }
    return NULL;
}

/* Store buffering where one thread puts and another flushes and gets: MPI's flush completes the
 * operations of the whole process. */
static void a_put_of_one_thread_is_flushed_by_another(enum window_kind kind)
{
    if (harness_thread_level() != MPI_THREAD_MULTIPLE) {
        harness_skip("the host does not support MPI_THREAD_MULTIPLE");
        return;
    }
    pthread_t thread;
    struct window window = words_make(kind);
    struct putter putter = {&window, scaled_rounds(2000), 0, 0};
    int forbidden = 0;
    if (world_rank < 2)
        pthread_create(&thread, NULL, putter_main, &putter);
    for (int64_t round = 1; round <= putter.rounds && world_rank < 2; round++) {
        int64_t seen, others = -1;
        rendezvous(&window, round);
        atomic_store_explicit(&putter.wanted, round, memory_order_release);
        while (atomic_load_explicit(&putter.done, memory_order_acquire) < round)
            sched_yield();
        MPI_Win_flush(1 - world_rank, window.win);
        seen = get_word(window.win, world_rank, world_rank == 0 ? SECOND : FIRST);
        MPI_Sendrecv(&seen, 1, MPI_INT64_T, 1 - world_rank, 0, &others, 1, MPI_INT64_T,
                     1 - world_rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        forbidden += seen < round && others < round;
    }
    if (world_rank < 2)
        pthread_join(thread, NULL);
    CHECK(forbidden == 0, "neither saw the other's put in %d of %d rounds", forbidden,
          (int)putter.rounds);
    words_free(&window);
}

static void a_message_after_a_flush_publishes_the_payload(enum window_kind kind)
{
    struct window window = words_make(kind);
    int64_t *words = (int64_t *)window.base;
    int rounds = scaled_rounds(3000), forbidden = 0;
    for (int64_t round = 1; round <= rounds && world_rank < 2; round++) {
        int token = 0;
        if (world_rank == 0) {
            put_word(window.win, 1, FIRST, round);
            MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Win_sync(window.win);
            forbidden += load_word(words + FIRST) != round;
            MPI_Send(&token, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    CHECK(forbidden == 0, "the message arrived before the data in %d of %d rounds", forbidden,
          rounds);
    words_free(&window);
}

/* Peterson's lock for ranks 0 and 1 by put, flush and get alone; all its words are on one rank. */
static void mutual_exclusion_by_put_flush_get(enum window_kind kind)
{
    struct window window = words_make(kind);
    struct random random = random_start((uint64_t)world_rank);
    int rounds = scaled_rounds(3000), home = world_size - 1;
    for (int round = 0; round < rounds && world_rank < 2; round++) {
        int mine = world_rank == 0 ? FIRST : SECOND, others = world_rank == 0 ? SECOND : FIRST;
        put_word(window.win, home, mine, 1);
        put_word(window.win, home, TURN, 1 - world_rank);
        for (unsigned turn = 1; get_word(window.win, home, others) == 1 &&
                                get_word(window.win, home, TURN) == 1 - world_rank;
             turn++)
            if (turn % 16 == 0)
                sched_yield();
        int64_t counter = get_word(window.win, home, COUNTER);
        random_pause(&random, 0);
        put_word(window.win, home, COUNTER, counter + 1);
        put_word(window.win, home, mine, 0);
    }
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(get_word(window.win, home, COUNTER), 2 * rounds);
    words_free(&window);
}

static const struct test_case cases[] = {
    CASE(put_flush_get_sees_one_of_two_puts, KINDS_ALL, 2),
    CASE(put_flush_get_crosswise_sees_one_of_two_puts, KINDS_ALL, 2),
    CASE(put_flush_get_of_other_words_sees_one_of_two_puts, KINDS_BOTH, 2),
    CASE(put_derived_flush_get_sees_one_of_two_puts, KINDS_ALL, 2),
    CASE(a_flag_put_after_a_flush_publishes_the_payload, KINDS_ALL, 2),
    CASE(gets_see_puts_in_the_order_of_their_flushes, KINDS_ALL, 2),
    CASE(a_put_of_one_thread_is_flushed_by_another, KINDS_ALL, 2),
    CASE(a_message_after_a_flush_publishes_the_payload, KINDS_ALL, 2),
    CASE(mutual_exclusion_by_put_flush_get, KINDS_BOTH, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
