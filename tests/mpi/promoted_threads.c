/* Threads of the target run while its memory is promoted and made private again, hundreds of times.
 * Their writes and the peers' concurrent puts into other bytes are preserved. A plain MPI program
 * with threads, run by the test rows. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    AREA_PAGES = 8,
    AREA_BYTES = AREA_PAGES * PAGE,
    WINDOW_AT = PAGE + 800,
    WINDOW_BYTES = 5 * PAGE,
    THREADS = 2,
    SLOTS = 64
};

/* In each page: words of the threads from byte 0 on, of the peers' puts from 1024 on, of their sums
 * at 3072. The window begins after the first words of a page and ends inside another: it covers
 * part of some pages. */
static atomic_bool stop;
static atomic_long rounds_done;

static _Atomic int64_t *thread_word(char *area, int page, int number)
{
    return (_Atomic int64_t *)(area + (size_t)page * PAGE + (size_t)number * 8);
}

static MPI_Aint disp_of(int page, int in_page)
{
    return (MPI_Aint)page * PAGE + in_page - WINDOW_AT;
}

struct writer {
    pthread_t thread;
    int number;
    char *area;
    int64_t written[AREA_PAGES];
    bool lost;
};

static bool add_everywhere(struct writer *writer)
{
    for (int page = 0; page < AREA_PAGES; page++) {
        _Atomic int64_t *word = thread_word(writer->area, page, writer->number);
        int64_t value = atomic_load_explicit(word, memory_order_relaxed);
        if (value != writer->written[page]++)
            return false;
        atomic_store_explicit(word, value + 1, memory_order_relaxed);
    }
    return true;
}

static void *write_all_the_time(void *context)
{
    struct writer *writer = context;
    while (!atomic_load(&stop) && !writer->lost) {
        for (int i = 0; i < 300 && !writer->lost; i++)
            writer->lost = !add_everywhere(writer);
        sched_yield();
    }
    return NULL;
}

static void writers_start(struct writer *writers, char *area)
{
    atomic_store(&stop, false);
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){.number = i, .area = area};
        CHECK(pthread_create(&writers[i].thread, NULL, write_all_the_time, &writers[i]) == 0,
              "no thread");
    }
}

static void writers_stop(struct writer *writers)
{
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(writers[i].thread, NULL);
        CHECK(!writers[i].lost, "a write of thread %d was lost", i);
        for (int page = 0; page < AREA_PAGES; page++)
            CHECK_EQUAL(atomic_load(thread_word(writers[i].area, page, i)),
                        writers[i].written[page]);
    }
}

/* Every rank puts a word of its own into each page of its neighbour, and adds to one that all ranks
 * share. */
static void peers_operate(MPI_Win win, int64_t round)
{
    const int64_t one = 1;
    int target = (world_rank + 1) % world_size, slot = world_rank % SLOTS;
    MPI_Win_lock_all(0, win);
    for (int page = 2; page < 6; page++) {
        int64_t seen = -1;
        MPI_Put(&round, 1, MPI_INT64_T, target, disp_of(page, 1024 + 8 * slot), 1, MPI_INT64_T,
                win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, (target + page) % world_size, disp_of(page, 3072), 1,
                       MPI_INT64_T, MPI_SUM, win);
        MPI_Win_flush(target, win);
        MPI_Get(&seen, 1, MPI_INT64_T, target, disp_of(page, 1024 + 8 * slot), 1, MPI_INT64_T, win);
        MPI_Win_flush(target, win);
        CHECK_EQUAL(seen, round);
    }
    MPI_Win_unlock_all(win);
}

static void results_check(char *area, int64_t rounds)
{
    int writer = (world_rank + world_size - 1) % world_size;
    int64_t sum = 0;
    for (int page = 2; page < 6; page++) {
        int64_t word;
        memcpy(&word, area + page * PAGE + 1024 + 8 * (writer % SLOTS), 8);
        CHECK_EQUAL(word, rounds - 1);
        memcpy(&word, area + page * PAGE + 3072, 8);
        sum += word;
    }
    CHECK_EQUAL(sum, 4 * rounds);
}

/* Counts windows that were promoted, or did not need promotion because no other rank is on the
 * node. */
static int64_t windows_make_and_free(char *area, int64_t rounds)
{
    int64_t promoted = 0;
    for (int64_t round = 0; round < rounds; round++) {
        MPI_Win win = window_over(area + WINDOW_AT, WINDOW_BYTES);
        promoted += is_promoted(win) || !memory_path_read(win).is_known;
        peers_operate(win, round);
        MPI_Win_free(&win);
        atomic_fetch_add(&rounds_done, 1);
    }
    return promoted;
}

static void storm(char *area)
{
    struct writer writers[THREADS];
    int64_t rounds = scaled_rounds(600);
    writers_start(writers, area);
    int64_t promoted = windows_make_and_free(area, rounds);
    writers_stop(writers);
    results_check(area, rounds);
    if (promotes_always())
        CHECK(promoted >= rounds / 2, "only %ld of %ld windows were promoted", (long)promoted,
              (long)rounds);
}

static void threads_lose_no_write_while_peers_put(enum window_kind kind)
{
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    storm(area);
    munmap(area, AREA_BYTES);
}

static void threads_lose_no_write_in_the_heap(enum window_kind kind)
{
    (void)kind;
    char *block = malloc(AREA_BYTES + 64), *area = block + (64 - (uintptr_t)block % 64);
    memset(block, 0, AREA_BYTES + 64);
    storm(area);
    free(block);
}

/* --- system calls that write into the memory --- */

struct pipes {
    int ends[2];
    char *memory;
    int64_t bad;
};

enum { MESSAGE_BYTES = 3 * PAGE };

static void *read_messages(void *context)
{
    struct pipes *pipes = context;
    for (int64_t number = 0;; number++) {
        for (size_t done = 0; done < MESSAGE_BYTES;) {
            ssize_t got = read(pipes->ends[0], pipes->memory + done, MESSAGE_BYTES - done);
            if (got == 0 && done == 0)
                return NULL;
            if (got <= 0)
                pipes->bad += 1000000 + (got < 0 ? errno : 0);
            if (got <= 0)
                return NULL;
            done += (size_t)got;
        }
        for (size_t i = 0; i < MESSAGE_BYTES; i += 8)
            pipes->bad += *(int64_t *)(pipes->memory + i) != number * 100000 + (int64_t)i;
    }
}

static void *write_messages(void *context)
{
    struct pipes *pipes = context;
    int64_t message[MESSAGE_BYTES / 8];
    for (int64_t number = 0; !atomic_load(&stop); number++) {
        for (size_t i = 0; i < MESSAGE_BYTES; i += 8)
            message[i / 8] = number * 100000 + (int64_t)i;
        for (size_t done = 0; done < MESSAGE_BYTES;) {
            size_t left = MESSAGE_BYTES - done;
            ssize_t put = write(pipes->ends[1], (char *)message + done, left > 3000 ? 3000 : left);
            if (put <= 0) {
                pipes->bad += 1000;
                return NULL;
            }
            done += (size_t)put;
        }
        if (number % 4 == 0)
            sleep_us(300);
    }
    close(pipes->ends[1]);
    return NULL;
}

/* The reader waits in the kernel with an address of the memory most of the time. */
static void a_thread_that_reads_a_pipe_into_the_memory_gets_every_byte(enum window_kind kind)
{
    pthread_t reader, writer;
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    struct pipes pipes = {.memory = area + 4 * PAGE + 8};
    CHECK(pipe(pipes.ends) == 0, "pipe");
    atomic_store(&stop, false);
    pthread_create(&reader, NULL, read_messages, &pipes);
    pthread_create(&writer, NULL, write_messages, &pipes);
    for (int round = 0; round < scaled_rounds(200); round++) {
        MPI_Win win = window_over(area + 100, 8 * PAGE - 300);
        int64_t value = round;
        MPI_Win_lock(MPI_LOCK_SHARED, (world_rank + 1) % world_size, 0, win);
        MPI_Put(&value, 1, MPI_INT64_T, (world_rank + 1) % world_size, PAGE, 1, MPI_INT64_T, win);
        MPI_Win_unlock((world_rank + 1) % world_size, win);
        MPI_Win_free(&win);
    }
    atomic_store(&stop, true);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    CHECK_EQUAL(pipes.bad, 0);
    close(pipes.ends[0]);
    munmap(area, AREA_BYTES);
}

/* --- short-lived threads, signals --- */

static void *write_and_end(void *context)
{
    for (int i = 0; i < 50; i++)
        atomic_fetch_add((_Atomic int64_t *)context, 1);
    return NULL;
}

static void *start_threads(void *context)
{
    int64_t started = 0;
    while (!atomic_load(&stop)) {
        pthread_t threads[3];
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, write_and_end, (char *)context + i * PAGE);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        started++;
        sched_yield();
    }
    return (void *)(intptr_t)started;
}

static void threads_may_start_and_end_meanwhile(enum window_kind kind)
{
    pthread_t thread;
    void *started = NULL;
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, start_threads, area + PAGE);
    int64_t promoted = windows_make_and_free(area, scaled_rounds(150));
    atomic_store(&stop, true);
    pthread_join(thread, &started);
    for (int i = 0; i < 3; i++)
        CHECK_EQUAL(*(int64_t *)(area + PAGE + i * PAGE), 50 * (int64_t)(intptr_t)started);
    results_check(area, scaled_rounds(150));
    CHECK(!promotes_always() || !ranks_share_memory() || promoted > 0, "no window was promoted");
    munmap(area, AREA_BYTES);
}

static char *_Atomic handled_area;
static atomic_long handled;

static void on_signal(int number)
{
    char *area = atomic_load(&handled_area);
    (void)number;
    for (int page = 0; page < AREA_PAGES; page++)
        (*thread_word(area, page, 9))++;
    atomic_fetch_add(&handled, 1);
}

static void *send_signals(void *context)
{
    pthread_t main_thread = *(pthread_t *)context;
    while (!atomic_load(&stop)) {
        pthread_kill(main_thread, SIGUSR1);
        sleep_us(70);
    }
    return NULL;
}

static void signal_handlers_may_write_into_the_memory(enum window_kind kind)
{
    pthread_t self = pthread_self(), thread;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    (void)kind;
    char *area = pages_map(AREA_BYTES);
    atomic_store(&handled_area, area);
    atomic_store(&handled, 0);
    sigaction(SIGUSR1, &action, &before);
    atomic_store(&stop, false);
    pthread_create(&thread, NULL, send_signals, &self);
    windows_make_and_free(area, scaled_rounds(200));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    sleep_us(1000);
    sigaction(SIGUSR1, &before, NULL);
    for (int page = 0; page < AREA_PAGES; page++)
        CHECK_EQUAL(*thread_word(area, page, 9), atomic_load(&handled));
    results_check(area, scaled_rounds(200));
    munmap(area, AREA_BYTES);
}

static const struct test_case cases[] = {
    CASE(threads_lose_no_write_while_peers_put, KIND_ANY, 2),
    CASE(threads_lose_no_write_in_the_heap, KIND_ANY, 2),
    CASE(a_thread_that_reads_a_pipe_into_the_memory_gets_every_byte, KIND_ANY, 2),
    CASE(threads_may_start_and_end_meanwhile, KIND_ANY, 2),
    CASE(signal_handlers_may_write_into_the_memory, KIND_ANY, 2),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
