/* Counts the words of a text in a hash table that is distributed over all ranks: a plain MPI
 * program. A slot's text is complete before its state shows it, and a published slot changes only
 * in its count. Run it as `mpiexec -n N wordcount [options] [FILE]`; it does not depend on Oriel.
 *
 * The table is open-addressed: a word belongs to the first slot, from its hash onwards over all
 * ranks, that is free or holds the same text. Only compare-and-swap changes a slot's state and only
 * sums change its count, as the window's default assertion (same_op_no_op) requires:
 *
 *     FREE (0) --CAS--> CLAIMED (hash, bit 0 clear)
 *     CLAIMED --text put and flushed, CAS--> PUBLISHED (hash, bit 0 set)
 *
 * A rank that finds its own hash claimed but not published asks again until it is published. A rank
 * that finds it published reads the text, because two words may have the same hash. The claimant
 * publishes before any other operation, so the wait is short in all cases. */
#define _POSIX_C_SOURCE 200809L
#include "words.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <mpi.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_MAX = 1000, TOP_DEFAULT = 10, PATIENCE = 16 };
enum { EXIT_WRONG = 1, EXIT_REFUSED = 2 };

struct slot {
    uint64_t state;
    int64_t count;
    char text[WORD_BYTES];
};
_Static_assert(sizeof(struct slot) == 64, "a slot is one cache line");

/* PUBLISHED is the bit that text_hash() leaves clear */
static const uint64_t FREE = 0, PUBLISHED = 1;

struct settings {
    const char *path;
    long repeat, top, slots; /* slots of each rank; 0: as many as the text needs */
    bool create;
};

struct table {
    MPI_Win win;
    struct slot *slot; /* this rank's part */
    void *block;       /* memory from malloc; NULL in a window that MPI allocated */
    uint64_t slots;    /* of each rank */
    int rank, ranks;
};

struct summary {
    uint64_t words, distinct, checksum;
};

//* Ends the job; what is wrong has been said. */
static _Noreturn void refuse(void)
{
    MPI_Abort(MPI_COMM_WORLD, EXIT_REFUSED);
    exit(EXIT_REFUSED);
}

/* ---- the table ---- */
static void table_open(struct table *table, uint64_t slots, bool create)
{
    MPI_Aint len_bytes = (MPI_Aint)(slots * sizeof(struct slot));

    *table = (struct table){.slots = slots};
    MPI_Comm_rank(MPI_COMM_WORLD, &table->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &table->ranks);
    if (create) {
        table->block = malloc((size_t)len_bytes + sizeof(struct slot));
        if (!table->block) {
            fprintf(stderr, "wordcount: rank %d has no memory for %" PRIu64 " slots\n", table->rank,
                    slots);
            refuse();
        }
        char *block = table->block; /* a slot's words are atomic only when they are aligned */
        table->slot =
            (struct slot *)(block + sizeof(struct slot) - (uintptr_t)block % sizeof(struct slot));
        MPI_Win_create(table->slot, len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &table->win);
    } else {
        MPI_Win_allocate(len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &table->slot, &table->win);
    }
    /* The stores that clear the table complete before any rank's first access. */
    MPI_Win_lock_all(0, table->win);
    memset(table->slot, 0, (size_t)len_bytes);
    MPI_Win_sync(table->win);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void table_close(struct table *table)
{
    MPI_Win_unlock_all(table->win);
    MPI_Win_free(&table->win);
    free(table->block);
}

/* Returns the previous state. */
static uint64_t state_swap(const struct table *table, int target, MPI_Aint at, uint64_t expected,
                           uint64_t desired)
{
    uint64_t found = 0;
    MPI_Compare_and_swap(&desired, &expected, &found, MPI_UINT64_T, target,
                         at + (MPI_Aint)offsetof(struct slot, state), table->win);
    MPI_Win_flush(target, table->win);
    return found;
}

static void slot_publish(const struct table *table, int target, MPI_Aint at,
                         const struct word *word)
{
    MPI_Put(word->text, WORD_BYTES, MPI_BYTE, target, at + (MPI_Aint)offsetof(struct slot, text),
            WORD_BYTES, MPI_BYTE, table->win);
    MPI_Win_flush(target, table->win);
    state_swap(table, target, at, word->hash, word->hash | PUBLISHED);
}

/* True when the slot now holds the word, false when it holds another. */
static bool slot_claim(const struct table *table, int target, MPI_Aint at, const struct word *word)
{
    char text[WORD_BYTES];
    uint64_t found;

    for (int tries = 1; (found = state_swap(table, target, at, FREE, word->hash)) == word->hash;
         tries++)
        if (tries % PATIENCE == 0)
            sched_yield(); /* the claimant may need this processor */
    if (found == FREE) {
        slot_publish(table, target, at, word);
        return true;
    }
    if (found != (word->hash | PUBLISHED))
        return false;
    MPI_Get(text, WORD_BYTES, MPI_BYTE, target, at + (MPI_Aint)offsetof(struct slot, text),
            WORD_BYTES, MPI_BYTE, table->win);
    MPI_Win_flush(target, table->win);
    return memcmp(text, word->text, WORD_BYTES) == 0;
}

/* False when the table is full. */
static bool table_count(const struct table *table, const struct word *word)
{
    const uint64_t all = table->slots * (uint64_t)table->ranks;
    const int64_t one = 1;
    int64_t before;

    for (uint64_t probe = 0; probe < all; probe++) {
        uint64_t number = (hash_mix(word->hash) + probe) % all;
        int target = (int)(number % (uint64_t)table->ranks);
        MPI_Aint at = (MPI_Aint)(number / (uint64_t)table->ranks * sizeof(struct slot));
        if (!slot_claim(table, target, at, word))
            continue;
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target,
                         at + (MPI_Aint)offsetof(struct slot, count), MPI_SUM, table->win);
        MPI_Win_flush(target, table->win);
        return true;
    }
    return false;
}

/* Every rank counts its own part of the words. Returns the seconds, negative when the table was
 * full. */
static double count_all(const struct table *table, const struct word *words, size_t len_words,
                        long repeat)
{
    size_t first = len_words * (size_t)table->rank / (size_t)table->ranks;
    size_t last = len_words * ((size_t)table->rank + 1) / (size_t)table->ranks;
    int full = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    double start_s = MPI_Wtime();
    for (long round = 0; round < repeat && !full; round++)
        for (size_t i = first; i < last && !full; i++)
            full = !table_count(table, &words[i]);
    MPI_Allreduce(MPI_IN_PLACE, &full, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    double elapsed_s = MPI_Wtime() - start_s;
    /* all ranks have flushed and passed the barrier: the local slots are final */
    MPI_Win_sync(table->win);
    /* The first rank to leave the barrier measures the whole time; some ranks leave it when others
     * have nearly finished. */
    MPI_Allreduce(MPI_IN_PLACE, &elapsed_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return full ? -1.0 : elapsed_s;
}

/* ---- results ---- */

/* Orders by descending count, then by text. */
static int slot_compare(const void *left, const void *right)
{
    const struct slot *a = left, *b = right;
    if (a->count != b->count)
        return a->count < b->count ? 1 : -1;
    return memcmp(a->text, b->text, WORD_BYTES);
}

/* Moves the used slots to the front, sorted. The checksum does not depend on the positions of
 * words. */
static struct summary slots_summarise(struct slot *slots, uint64_t len_slots)
{
    struct summary sum = {0};
    for (uint64_t i = 0; i < len_slots; i++) {
        if (slots[i].state == FREE)
            continue;
        sum.words += (uint64_t)slots[i].count;
        sum.checksum += hash_mix(text_hash(slots[i].text) ^ hash_mix((uint64_t)slots[i].count));
        slots[sum.distinct++] = slots[i];
    }
    qsort(slots, sum.distinct, sizeof *slots, slot_compare);
    return sum;
}

static struct summary count_sequentially(const struct word *words, size_t len_words, long repeat)
{
    uint64_t len_slots = 2 * len_words + 1;
    struct slot *slots = calloc(len_slots, sizeof *slots);
    if (!slots) {
        fprintf(stderr, "wordcount: no memory for the sequential count\n");
        refuse();
    }
    for (size_t i = 0; i < len_words; i++) {
        uint64_t at = words[i].hash % len_slots;
        while (slots[at].state != FREE && memcmp(slots[at].text, words[i].text, WORD_BYTES) != 0)
            at = (at + 1) % len_slots;
        slots[at].state = PUBLISHED;
        slots[at].count += repeat;
        memcpy(slots[at].text, words[i].text, WORD_BYTES);
    }
    struct summary sum = slots_summarise(slots, len_slots);
    free(slots);
    return sum;
}

/* Rank 0 merges each rank's `top` most frequent words; a rank with fewer sends slots with a count
 * of 0. */
static void print_top(const struct table *table, uint64_t distinct, long top)
{
    struct slot *best = calloc((size_t)top * (size_t)(table->ranks + 1), sizeof *best);
    if (!best) {
        fprintf(stderr, "wordcount: no memory for the most frequent words\n");
        refuse();
    }
    struct slot *all = best + top;
    int len_bytes = (int)((size_t)top * sizeof *best);
    memcpy(best, table->slot, (distinct < (uint64_t)top ? distinct : (uint64_t)top) * sizeof *best);
    MPI_Gather(best, len_bytes, MPI_BYTE, all, len_bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (table->rank == 0) {
        qsort(all, (size_t)top * (size_t)table->ranks, sizeof *all, slot_compare);
        for (long i = 0; i < top && all[i].count > 0; i++)
            printf("%12" PRId64 "  %.*s\n", all[i].count, WORD_BYTES, all[i].text);
    }
    free(best);
}

/* Returns the exit status, the same on all ranks. */
static int report(struct table *table, const struct settings *set, double elapsed_s,
                  const struct word *words, size_t len_words)
{
    struct summary sum = slots_summarise(table->slot, table->slots);
    uint64_t mine[3] = {sum.words, sum.distinct, sum.checksum}, all[3];
    int status = EXIT_SUCCESS;

    print_top(table, sum.distinct, set->top);
    MPI_Reduce(mine, all, 3, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    if (table->rank == 0) {
        struct summary right = count_sequentially(words, len_words, set->repeat);
        bool same = all[0] == right.words && all[1] == right.distinct && all[2] == right.checksum;
        printf("words     %" PRIu64 "\ndistinct  %" PRIu64 "\nseconds   %.6f\nchecksum  %016" PRIx64
               "  %s\n",
               all[0], all[1], elapsed_s, all[2],
               same ? "confirmed by a sequential count" : "WRONG");
        if (!same) {
            printf("expected  %" PRIu64 " words, %" PRIu64 " distinct, checksum %016" PRIx64 "\n",
                   right.words, right.distinct, right.checksum);
            status = EXIT_WRONG;
        }
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return status;
}

/* ---- the command line ---- */

static const char usage[] =
    "usage: wordcount [--create] [--repeat K] [--top N] [--slots N] [FILE]\n"
    "  --create     windows over malloc's memory (MPI_Win_create) instead of MPI_Win_allocate\n"
    "  --repeat K   count the text K times over (1)\n"
    "  --top N      print the N most frequent words (10)\n"
    "  --slots N    slots of the table on each rank (enough for the text)\n"
    "  FILE         the text (/usr/share/common-licenses/GPL-3)\n";

static bool parse_number(const char *text, long least, long most, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *out >= least && *out <= most;
}

/* All ranks parse the same command line and agree without a message. */
static bool parse_arguments(int argc, char **argv, struct settings *set)
{
    static const struct option options[] = {{"create", no_argument, NULL, 'c'},
                                            {"repeat", required_argument, NULL, 'r'},
                                            {"top", required_argument, NULL, 't'},
                                            {"slots", required_argument, NULL, 's'},
                                            {0}};
    *set = (struct settings){
        .path = "/usr/share/common-licenses/GPL-3", .repeat = 1, .top = TOP_DEFAULT};
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        bool good = option == 'c';
        if (option == 'c')
            set->create = true;
        else if (option == 'r')
            good = parse_number(optarg, 1, 1000000000, &set->repeat);
        else if (option == 't')
            good = parse_number(optarg, 1, TOP_MAX, &set->top);
        else if (option == 's')
            good = parse_number(optarg, 1, INT32_MAX, &set->slots);
        if (!good)
            return false;
    }
    if (optind < argc)
        set->path = argv[optind++];
    return optind == argc;
}

static int run(const struct settings *set, int rank, int ranks)
{
    struct table table;
    size_t len_bytes;
    char *text = text_load(set->path, rank, &len_bytes);
    if (!text)
        return EXIT_REFUSED;

    size_t len_words = text_split(text, len_bytes, NULL);
    struct word *words = malloc((len_words + 1) * sizeof *words);
    if (!words) {
        fprintf(stderr, "wordcount: rank %d has no memory for %zu words\n", rank, len_words);
        refuse();
    }
    text_split(text, len_bytes, words);
    free(text);

    uint64_t enough = 2 * len_words / (uint64_t)ranks + 64;
    table_open(&table, set->slots ? (uint64_t)set->slots : enough, set->create);
    if (rank == 0) {
        printf("counting  %zu words, %ld times, on %d ranks\n", len_words, set->repeat, ranks);
        fflush(stdout);
    }
    double elapsed_s = count_all(&table, words, len_words, set->repeat);
    int status = EXIT_REFUSED;
    if (elapsed_s >= 0)
        status = report(&table, set, elapsed_s, words, len_words);
    else if (rank == 0)
        fprintf(stderr,
                "wordcount: the table is full: %" PRIu64
                " slots on each of %d ranks do not hold the words\n",
                table.slots, ranks);
    table_close(&table);
    free(words);
    return status;
}

int main(int argc, char **argv)
{
    struct settings set;
    int rank, ranks, status = EXIT_REFUSED;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (parse_arguments(argc, argv, &set))
        status = run(&set, rank, ranks);
    else if (rank == 0)
        fputs(usage, stderr);
    MPI_Finalize();
    return status;
}
