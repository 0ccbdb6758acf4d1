/* Does one kind of one-sided operation after another, each with its flush, to both of two ranks,
 * and prints the processor time of each rank for one operation. A run of the same program under
 * `oriel check` shows the checker's overhead. The program is correct: puts and gets of a rank use a
 * part of each target's memory that no other rank uses, so there are no findings. Each pattern is
 * verified: the check repeats the sequence of operations from the start of the random numbers. A
 * plain MPI program; run by bench/checked: `mpiexec -n 2 checked MILLISECONDS [PATTERN...]`. It
 * prints a line for each pattern: its name and the nanoseconds of either rank, or WRONG. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS = 2, WORD = sizeof(uint64_t), PAGE = 4096, KIB = 1024, MIB = 1024 * KIB, CHUNK = 64 };
enum order { SAME, NEXT, RANDOM };

struct walk {
    uint64_t random;
    size_t next[RANKS]; /* at each target */
};

struct pattern {
    const char *name;
    void (*once)(int target, MPI_Aint at, uint64_t number);
    bool (*is_right)(void); /* called by all ranks together, when no operation is outstanding */
    /* all ranks use the same memory; otherwise each uses a part of its own */
    bool shared;
    enum order order;
    size_t block_bytes; /* of an operation */
    /* From one position to the next, a divisor of block_bytes; each such part of a block begins
     * with the operation's number. */
    size_t stride_bytes;
    size_t span_bytes; /* of one rank's memory at one target */
};

static const struct pattern *pattern;
static size_t places;  /* of one rank at one target */
static MPI_Aint first; /* offset of the first */
static uint64_t *memory, *block, done, fetched;
static MPI_Win win;
static int rank;

/* The value of a word without a number: the same in each part of a block, so that parts may
 * overlap. */
static uint64_t filling(int of_rank, size_t word)
{
    return (word + 1) * 0x9e3779b97f4a7c15u + (uint64_t)of_rank;
}

static struct walk walk_start(int of_rank)
{
    return (struct walk){.random = (uint64_t)of_rank};
}

/* Determines the target and position of the next operation. */
static inline void walk_next(struct walk *walk, int *target_out, size_t *place_out)
{
    walk->random = walk->random * 6364136223846793005u + 1442695040888963407u;
    size_t drawn = (walk->random >> 32) * (places * RANKS) >> 32;
    *target_out = (int)(drawn % RANKS);
    *place_out = drawn / RANKS;
    if (pattern->order == NEXT) {
        size_t *next = &walk->next[*target_out];
        *place_out = *next;
        *next = *next + 1 < places ? *next + 1 : 0;
    }
}

/* ---- puts ---- */

static void put_once(int target, MPI_Aint at, uint64_t number)
{
    for (size_t i = 0; i < pattern->block_bytes / WORD; i += pattern->stride_bytes / WORD)
        block[i] = number;
    MPI_Put(block, (int)pattern->block_bytes, MPI_BYTE, target, at, (int)pattern->block_bytes,
            MPI_BYTE, win);
    MPI_Win_flush(target, win);
}

/* Each rank gets all memory that it may have put to. */
static bool puts_are_right(void)
{
    const size_t stride = pattern->stride_bytes / WORD,
                 parts = pattern->block_bytes / pattern->stride_bytes;
    const size_t words = pattern->span_bytes / WORD;
    uint64_t *last = calloc(RANKS * words, sizeof *last), *found = calloc(words, sizeof *found);
    struct walk walk = walk_start(rank);
    bool right = last != NULL && found != NULL;

    for (uint64_t number = 1; right && number <= done; number++) {
        int target;
        size_t place;
        walk_next(&walk, &target, &place);
        for (size_t part = 0; part < parts; part++)
            last[(size_t)target * words + place + part] = number;
    }
    for (int target = 0; right && target < RANKS; target++) {
        MPI_Get(found, (int)pattern->span_bytes, MPI_BYTE, target, first, (int)pattern->span_bytes,
                MPI_BYTE, win);
        MPI_Win_flush(target, win);
        for (size_t i = 0; i < words; i++) {
            uint64_t number = last[(size_t)target * words + i / stride];
            right =
                right &&
                found[i] == (i % stride == 0 || number == 0 ? number : filling(rank, i % stride));
        }
    }
    free(found);
    free(last);
    return right;
}

/* ---- gets ---- */

static void get_once(int target, MPI_Aint at, uint64_t number)
{
    for (size_t i = 0; i < pattern->block_bytes / WORD; i += pattern->stride_bytes / WORD)
        block[i] = number; /* in the sum if no data arrive */
    MPI_Get(block, (int)pattern->block_bytes, MPI_BYTE, target, at, (int)pattern->block_bytes,
            MPI_BYTE, win);
    MPI_Win_flush(target, win);
    for (size_t i = 0; i < pattern->block_bytes / WORD; i += pattern->stride_bytes / WORD)
        fetched += block[i];
}

/* The first words of each block, and all words of the last. */
static bool gets_are_right(void)
{
    const size_t stride = pattern->stride_bytes / WORD, words = pattern->block_bytes / WORD;
    struct walk walk = walk_start(rank);
    uint64_t sum = 0;
    int target = 0;
    size_t begin = 0;
    bool right = true;

    for (uint64_t number = 1; number <= done; number++) {
        size_t place;
        walk_next(&walk, &target, &place);
        begin = (size_t)first / WORD + place * stride;
        for (size_t i = 0; i < words; i += stride)
            sum += filling(target, begin + i);
    }
    for (size_t i = 0; i < words && right; i++) {
        uint64_t expected = filling(target, begin + i);
        right = block[i] == expected;
        if (!right)
            fprintf(stderr,
                    "rank %d: %s: operation %llu, word %zu of rank %d's window: %llx, not %llx\n",
                    rank, pattern->name, (unsigned long long)done, begin + i, target,
                    (unsigned long long)block[i], (unsigned long long)expected);
    }
    if (right && sum != fetched)
        fprintf(stderr, "rank %d: %s: the sum of %llu operations is %llx, not %llx\n", rank,
                pattern->name, (unsigned long long)done, (unsigned long long)fetched,
                (unsigned long long)sum);
    return right && sum == fetched;
}

/* ---- fetch_and_op ---- */

static void add_once(int target, MPI_Aint at, uint64_t number)
{
    const uint64_t one = 1;
    (void)number;
    MPI_Fetch_and_op(&one, block, MPI_UINT64_T, target, at, MPI_SUM, win);
    MPI_Win_flush(target, win);
    fetched += *block;
}

/* Each word has the sum of all ranks' additions. With n additions of one to a word in all, the
 * fetched values are 0 to n - 1 in some order. */
static bool adds_are_right(void)
{
    const size_t words = pattern->span_bytes / WORD;
    uint64_t *added = calloc(RANKS * words, sizeof *added), all_added[RANKS],
             sums[2] = {0, fetched}, all_sums[2];
    bool right = added != NULL;

    MPI_Allgather(&done, 1, MPI_UINT64_T, all_added, 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int origin = 0; right && origin < RANKS; origin++) {
        struct walk walk = walk_start(origin);
        for (uint64_t number = 1; number <= all_added[origin]; number++) {
            int target;
            size_t place;
            walk_next(&walk, &target, &place);
            added[(size_t)target * words + place]++;
        }
    }
    for (size_t i = 0; right && i < words; i++) {
        uint64_t times = added[(size_t)rank * words + i];
        right = memory[i] == times;
        sums[0] += times % 2 == 0 ? times / 2 * (times - 1) : (times - 1) / 2 * times;
    }
    free(added);
    MPI_Allreduce(sums, all_sums, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return right && all_sums[0] == all_sums[1];
}

/* ---- a pattern ---- */

#define PUT               .once = put_once, .is_right = puts_are_right
#define GET               .once = get_once, .is_right = gets_are_right
#define ADD               .once = add_once, .is_right = adds_are_right, .shared = true
#define WORDS             .block_bytes = WORD, .stride_bytes = WORD
#define BLOCKS(len_bytes) .block_bytes = (len_bytes), .stride_bytes = (len_bytes)

/* Of "8 KiB" and "8 MiB", a half is at each target. */
static const struct pattern patterns[] = {
    {"put-8-same", PUT, .order = SAME, WORDS, .span_bytes = WORD},
    {"put-8-next", PUT, .order = NEXT, WORDS, .span_bytes = 4 * MIB},
    {"put-8-near", PUT, .order = RANDOM, WORDS, .span_bytes = 4 * KIB},
    {"put-8-far", PUT, .order = RANDOM, WORDS, .span_bytes = 4 * MIB},
    {"get-8-far", GET, .order = RANDOM, WORDS, .span_bytes = 4 * MIB},
    {"add-same", ADD, .order = SAME, WORDS, .span_bytes = WORD},
    {"add-far", ADD, .order = RANDOM, WORDS, .span_bytes = 4 * MIB},
    {"put-64k-same", PUT, .order = SAME, BLOCKS(64 * KIB), .span_bytes = 64 * KIB},
    {"put-64k-blocks", PUT, .order = RANDOM, BLOCKS(64 * KIB), .span_bytes = 4 * MIB},
    {"put-64k-pages", PUT, .order = RANDOM, .block_bytes = 64 * KIB, .stride_bytes = PAGE,
     .span_bytes = 4 * MIB},
    {"get-64k-same", GET, .order = SAME, BLOCKS(64 * KIB), .span_bytes = 64 * KIB},
    {"get-64k-blocks", GET, .order = RANDOM, BLOCKS(64 * KIB), .span_bytes = 4 * MIB},
    {"get-64k-pages", GET, .order = RANDOM, .block_bytes = 64 * KIB, .stride_bytes = PAGE,
     .span_bytes = 4 * MIB},
    {"put-1m-same", PUT, .order = SAME, BLOCKS(MIB), .span_bytes = MIB},
};

static double seconds_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The processor time of the operations, in seconds. */
static double operations_run(struct walk *walk, double seconds)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double end_s = seconds_of(CLOCK_MONOTONIC) + seconds,
           start_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
    do { /* at least once, even if other processes have used up the time */
        for (int i = 0; i < CHUNK; i++) {
            int target;
            size_t place;
            walk_next(walk, &target, &place);
            pattern->once(target, first + (MPI_Aint)(place * pattern->stride_bytes), ++done);
        }
    } while (seconds_of(CLOCK_MONOTONIC) < end_s);
    return seconds_of(CLOCK_THREAD_CPUTIME_ID) - start_s;
}

/* All ranks initialise their memory before any rank's first operation. */
static void fill(size_t words)
{
    for (size_t i = 0; i < words; i++)
        memory[i] = pattern->once == get_once ? filling(rank, i) : 0;
    for (size_t i = 0; i < pattern->block_bytes / WORD; i++)
        block[i] = filling(rank, i % (pattern->stride_bytes / WORD));
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void run(double seconds)
{
    const size_t part_bytes = (pattern->span_bytes + PAGE - 1) / PAGE * PAGE;
    const size_t len_bytes = part_bytes * (pattern->shared ? 1 : RANKS);
    double mine_ns, all_ns[RANKS];

    places = (pattern->span_bytes - pattern->block_bytes) / pattern->stride_bytes + 1;
    first = pattern->shared ? 0 : (MPI_Aint)part_bytes * rank;
    done = fetched = 0;
    block = malloc(pattern->block_bytes);
    if (block == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 2);
        exit(2);
    }
    MPI_Win_allocate((MPI_Aint)len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    fill(len_bytes / WORD);

    struct walk walk = walk_start(rank);
    operations_run(&walk, seconds / 2); /* warm-up */
    uint64_t before = done;
    mine_ns = operations_run(&walk, seconds) * 1e9;
    mine_ns /= (double)(done - before);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    int right = pattern->is_right();
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);

    MPI_Gather(&mine_ns, 1, MPI_DOUBLE, all_ns, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0 && right)
        printf("%s %.2f %.2f\n", pattern->name, all_ns[0], all_ns[1]);
    else if (rank == 0)
        printf("%s WRONG\n", pattern->name);
    fflush(stdout);
    MPI_Win_free(&win);
    free(block);
}

static bool is_wanted(int count, char **names, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv)
{
    int ranks, found = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; argc > 1 && ranks == RANKS && i < sizeof patterns / sizeof patterns[0];
         i++) {
        pattern = &patterns[i];
        if (!is_wanted(argc - 2, argv + 2, pattern->name))
            continue;
        found = 1;
        run(atof(argv[1]) / 1000);
    }
    if (!found && rank == 0)
        fprintf(stderr, "checked: usage: checked MILLISECONDS [PATTERN...], with %d ranks\n",
                RANKS);
    MPI_Finalize();
    return found ? 0 : 2;
}
