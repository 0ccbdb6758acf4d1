/* Where the kernel refuses copies between processes, a thread of the target copies and computes.
 * The thread exists when needed, sleeps otherwise, and disturbs nothing. Rows start this program
 * with TEST_AGENT=1 in a mode that refuses; without it the cases that look at the thread are
 * skipped. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, WORDS = 64, THREADS = 24, ROUNDS = 200, DOUBLES = 9000, BLOCKS = 700 };

/* ThreadSanitizer's runtime maps its own memory into newly freed address ranges. */
#if defined __SANITIZE_THREAD__
#define FILLS_HOLES 1
#else
#define FILLS_HOLES 0
#endif

static bool is_expected(void)
{
    const char *value = getenv("TEST_AGENT");
    if (value == NULL || strcmp(value, "1") != 0)
        harness_skip("TEST_AGENT=1 is not set");
    return value != NULL && strcmp(value, "1") == 0;
}

/* Copies the rest of the file's first line that begins with the word; the whole first line for
 * "". */
static bool read_line(const char *path, const char *word, char *out, size_t out_bytes)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0) {
            snprintf(out, out_bytes, "%.200s", line + strlen(word));
            out[strcspn(out, "\n")] = 0;
            found = true;
        }
    if (file != NULL)
        fclose(file);
    return found;
}

/* Finds the /proc file of this process's agent. Returns the number of agents. */
static int agents_find(const char *name, char *path, size_t path_bytes)
{
    int count = 0;
    char found[256];
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks != NULL && (task = readdir(tasks)) != NULL;) {
        char comm[320];
        snprintf(comm, sizeof comm, "/proc/self/task/%.64s/comm", task->d_name);
        if (task->d_name[0] == '.' || !read_line(comm, "", found, sizeof found) ||
            strcmp(found, "oriel-agent") != 0)
            continue;
        count++;
        snprintf(path, path_bytes, "/proc/self/task/%.64s/%s", task->d_name, name);
    }
    if (tasks != NULL)
        closedir(tasks);
    return count;
}

/* Runs first: nothing has needed an agent yet. */
static void windows_in_memory_of_mpi_start_no_agent(enum window_kind kind)
{
    char path[128];
    if (!is_expected())
        return;
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    CHECK_EQUAL(agents_find("comm", path, sizeof path), 0);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void windows_over_other_memory_start_one_agent(enum window_kind kind)
{
    char path[128];
    if (!is_expected())
        return;
    struct window first = window_make(kind, 64, 1, MPI_COMM_WORLD);
    struct window second = window_make(kind, 64, 1, MPI_COMM_WORLD);
    CHECK_EQUAL(agents_find("comm", path, sizeof path), world_size > 1 ? 1 : 0);
    barrier(MPI_COMM_WORLD);
    window_free(&second);
    window_free(&first);
}

static void the_agent_sleeps_without_requests(enum window_kind kind)
{
    char path[128], state[256];
    if (!is_expected())
        return;
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    bool asleep = world_size == 1;
    for (int i = 0; i < 500 && !asleep; i++) {
        sleep_us(10000);
        asleep = agents_find("status", path, sizeof path) == 1 &&
                 read_line(path, "State:", state, sizeof state) &&
                 strstr(state, "S (sleeping)") != NULL;
    }
    CHECK(asleep, "the agent never sleeps");
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void the_agent_receives_no_signals(enum window_kind kind)
{
    char path[128], mask[256] = "";
    if (!is_expected())
        return;
    struct window window = window_make(kind, 64, 1, MPI_COMM_WORLD);
    if (world_size > 1 && CHECK_EQUAL(agents_find("status", path, sizeof path), 1) &&
        CHECK(read_line(path, "SigBlk:", mask, sizeof mask), "no SigBlk in %s", path)) {
        unsigned long long blocked = strtoull(mask, NULL, 16);
        for (int number = 1; number <= 31; number++)
            if (number != SIGKILL && number != SIGSTOP)
                CHECK(blocked >> (number - 1) & 1, "signal %d is not blocked", number);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

/* Every rank unmaps its memory under the open window. The next rank gets an error, and all ranks
 * continue. */
static void memory_that_vanished_is_an_error_at_the_origin(enum window_kind kind)
{
    int next = (world_rank + 1) % world_size;
    int64_t value = world_rank, seen = -1;
    MPI_Win win;
    (void)kind;
    if (!is_expected())
        return;
    if (FILLS_HOLES) {
        harness_skip("the sanitiser maps memory there");
        return;
    }
    char *pages =
        mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Win_create(pages, 2 * PAGE_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    munmap(pages + PAGE_BYTES, PAGE_BYTES);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Put(&value, 8, MPI_BYTE, next, PAGE_BYTES, 8, MPI_BYTE, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Get(&seen, 8, MPI_BYTE, next, PAGE_BYTES - 4, 8, MPI_BYTE, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Accumulate(&value, 1, MPI_INT64_T, next, PAGE_BYTES, 1,
                                                  MPI_INT64_T, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Fetch_and_op(&value, &seen, MPI_INT64_T, next, PAGE_BYTES, MPI_SUM, win));
    CHECK_CLASS(MPI_ERR_RMA_RANGE,
                MPI_Compare_and_swap(&value, &value, &seen, MPI_INT64_T, next, PAGE_BYTES, win));
    CHECK_OK(MPI_Fetch_and_op(&value, &seen, MPI_INT64_T, next, 8, MPI_SUM, win));
    CHECK_EQUAL(seen, 0);
    CHECK_OK(MPI_Put(&value, 8, MPI_BYTE, next, 0, 8, MPI_BYTE, win));
    CHECK_OK(MPI_Get(&seen, 8, MPI_BYTE, next, 0, 8, MPI_BYTE, win));
    CHECK_EQUAL(seen, value);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    munmap(pages, PAGE_BYTES);
}

static struct window shared_window;

static void *ask_often(void *argument)
{
    int64_t mine = (intptr_t)argument, seen = -1, one = 1;
    int next = (world_rank + 1) % world_size;
    int64_t *block = malloc(100000);
    for (int round = 0; round < 30; round++) {
        MPI_Put(&mine, 1, MPI_INT64_T, next, mine, 1, MPI_INT64_T, shared_window.win);
        MPI_Get(&seen, 1, MPI_INT64_T, next, mine, 1, MPI_INT64_T, shared_window.win);
        CHECK_EQUAL(seen, mine);
        MPI_Accumulate(&one, 1, MPI_INT64_T, next, THREADS, 1, MPI_INT64_T, MPI_SUM,
                       shared_window.win);
        MPI_Get(block, 100000, MPI_BYTE, next, 0, 100000, MPI_BYTE, shared_window.win);
        CHECK_EQUAL(block[mine], mine);
    }
    free(block);
    return NULL;
}

static void more_threads_than_slots_are_served(enum window_kind kind)
{
    pthread_t threads[THREADS];
    if (!is_expected())
        return;
    if (harness_thread_level() < MPI_THREAD_MULTIPLE) {
        harness_skip("no MPI_THREAD_MULTIPLE");
        return;
    }
    shared_window = window_make(kind, 100000, 8, MPI_COMM_WORLD);
    memset(shared_window.base, 0, 100000);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, shared_window.win);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, ask_often, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Win_unlock_all(shared_window.win);
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(((int64_t *)shared_window.base)[THREADS], THREADS * 30);
    barrier(MPI_COMM_WORLD);
    window_free(&shared_window);
}

/* Program memory on rank 0 alone; the other ranks use memory of MPI_Alloc_mem. */
static void a_window_may_mix_mapped_and_private_memory(enum window_kind kind)
{
    int64_t *mine, value = world_rank + 1, seen = 0;
    MPI_Win win;
    (void)kind;
    if (!is_expected())
        return;
    if (world_rank == 0)
        mine = malloc(WORDS * 8);
    else
        MPI_Alloc_mem(WORDS * 8, MPI_INFO_NULL, &mine);
    memset(mine, 0, WORDS * 8);
    MPI_Win_create(mine, WORDS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window_watch(win);
    MPI_Win_lock_all(0, win);
    for (int target = 0; target < world_size; target++)
        MPI_Accumulate(&value, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&seen, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(0, win);
    CHECK_EQUAL(seen, world_size * (world_size + 1) / 2);
    CHECK_EQUAL(mine[0], world_size * (world_size + 1) / 2);
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    if (world_rank == 0)
        free(mine);
    else
        MPI_Free_mem(mine);
}

/* Increments a word by a compare_and_swap that repeats until no other rank intervenes. */
static void swap_one_more(MPI_Win win, MPI_Aint disp)
{
    int64_t seen = 0, wanted, next;
    do {
        wanted = seen;
        next = wanted + 1;
        MPI_Compare_and_swap(&next, &wanted, &seen, MPI_INT64_T, 0, disp, win);
        MPI_Win_flush(0, win);
    } while (seen != wanted && !harness_failed());
}

/* Word 0 by fetch_and_op, word 1 by compare_and_swap, words 2 to 4 by get_accumulate: all ranks,
 * and rank 0 on itself. */
static void all_and_the_target_itself_count_exactly(enum window_kind kind)
{
    int rounds = scaled_rounds(ROUNDS);
    int64_t ones[3] = {1, 1, 1}, old[3] = {-1, -1, -1}, last = -1, last_old = -1;
    struct window window = window_make(kind, WORDS * 8, 8, MPI_COMM_WORLD);
    int64_t *words = (int64_t *)(void *)window.base;
    memset(window.base, 0, WORDS * 8);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < rounds; i++) {
        int64_t seen = -1;
        MPI_Fetch_and_op(ones, &seen, MPI_INT64_T, 0, 0, MPI_SUM, window.win);
        swap_one_more(window.win, 1);
        MPI_Get_accumulate(ones, 3, MPI_INT64_T, old, 3, MPI_INT64_T, 0, 2, 3, MPI_INT64_T, MPI_SUM,
                           window.win);
        MPI_Win_flush(0, window.win);
        CHECK(seen > last && old[0] > last_old, "a count decreased: %lld, %lld", (long long)seen,
              (long long)old[0]);
        last = seen;
        last_old = old[0];
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 5 && world_rank == 0; i++)
        CHECK_EQUAL(words[i], (int64_t)rounds * world_size);
    barrier(MPI_COMM_WORLD);
    window_free(&window);
}

static void many_elements_add_up_exactly(enum window_kind kind)
{
    int rounds = scaled_rounds(ROUNDS / 10);
    double *ones = malloc(DOUBLES * sizeof *ones), *old = calloc(DOUBLES, sizeof *old);
    struct window window = window_make(kind, DOUBLES * 8, 8, MPI_COMM_WORLD);
    for (int i = 0; i < DOUBLES; i++)
        ones[i] = 1;
    memset(window.base, 0, DOUBLES * 8);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    for (int i = 0; i < rounds; i++) {
        MPI_Accumulate(ones, DOUBLES, MPI_DOUBLE, 0, 0, DOUBLES, MPI_DOUBLE, MPI_SUM, window.win);
        MPI_Get_accumulate(ones, DOUBLES, MPI_DOUBLE, old, DOUBLES, MPI_DOUBLE, 0, 0, DOUBLES,
                           MPI_DOUBLE, MPI_SUM, window.win);
        MPI_Win_flush(0, window.win);
        for (int k = 0; k < DOUBLES; k++)
            CHECK(old[k] >= 2 * i + 1, "element %d was %g in round %d", k, old[k], i);
    }
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < DOUBLES && world_rank == 0; i++) {
        double sum;
        memcpy(&sum, window.base + i * 8, 8);
        CHECK_EQUAL(sum, 2 * rounds * world_size);
    }
    barrier(MPI_COMM_WORLD);
    window_free(&window);
    free(ones);
    free(old);
}

struct pair {
    double value;
    int index;
};

/* One pair in three; the memory between the pairs, and the padding, belong to the target. */
static void pairs_at_distances_are_updated_and_nothing_else(enum window_kind kind)
{
    struct pair mine[BLOCKS];
    struct window window =
        window_make(kind, 3 * BLOCKS * (MPI_Aint)sizeof *mine, sizeof *mine, MPI_COMM_WORLD);
    struct pair *there = (struct pair *)(void *)window.base;
    MPI_Datatype spread;
    MPI_Type_vector(BLOCKS, 1, 3, MPI_DOUBLE_INT, &spread);
    MPI_Type_commit(&spread);
    memset(window.base, 0x3a, 3 * BLOCKS * sizeof *mine);
    for (int i = 0; i < BLOCKS; i++) {
        there[3 * i].value = 1e9;
        there[3 * i].index = -1;
        mine[i].value = (i * 7 + world_rank * 5) % 11;
        mine[i].index = world_rank;
    }
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    MPI_Accumulate(mine, BLOCKS, MPI_DOUBLE_INT, 0, 0, 1, spread, MPI_MINLOC, window.win);
    MPI_Win_unlock_all(window.win);
    barrier(MPI_COMM_WORLD);
    for (int i = 0; i < BLOCKS && world_rank == 0; i++) {
        struct pair least = {1e9, -1};
        for (int rank = 0; rank < world_size; rank++)
            if ((i * 7 + rank * 5) % 11 < least.value)
                least = (struct pair){(i * 7 + rank * 5) % 11, rank};
        CHECK(there[3 * i].value == least.value && there[3 * i].index == least.index,
              "pair %d is (%g, %d), not (%g, %d)", i, there[3 * i].value, there[3 * i].index,
              least.value, least.index);
        const char *hole = (const char *)&there[3 * i] + offsetof(struct pair, index) + sizeof(int);
        for (size_t k = 0; k < 2 * sizeof *mine + sizeof(int); k++)
            CHECK_EQUAL(hole[k], 0x3a);
    }
    barrier(MPI_COMM_WORLD);
    MPI_Type_free(&spread);
    window_free(&window);
}

static const struct test_case cases[] = {
    CASE(windows_in_memory_of_mpi_start_no_agent, KIND_ALLOCATE | KIND_SHARED | KIND_ARENA, 1),
    CASE(windows_over_other_memory_start_one_agent, KIND_HEAP, 1),
    CASE(the_agent_sleeps_without_requests, KIND_HEAP, 1),
    CASE(the_agent_receives_no_signals, KIND_HEAP, 1),
    CASE(memory_that_vanished_is_an_error_at_the_origin, KIND_ANY, 2),
    CASE(more_threads_than_slots_are_served, KIND_HEAP, 2),
    CASE(a_window_may_mix_mapped_and_private_memory, KIND_ANY, 1),
    CASE(all_and_the_target_itself_count_exactly, KIND_HEAP, 1),
    CASE(many_elements_add_up_exactly, KIND_HEAP, 1),
    CASE(pairs_at_distances_are_updated_and_nothing_else, KIND_HEAP, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_MULTIPLE, cases, COUNT_OF(cases));
}
