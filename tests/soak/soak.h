/* Shared by the sources of the generator. A random program is a list of steps. Each step is a plan
 * that all ranks draw alike from the seed, a model of every byte afterwards, and the calls of this
 * rank. Invariant: draws from a plan's numbers depend only on the seed and on the placement of
 * ranks on nodes, never on values that a rank has observed. */
#ifndef ORIEL_TESTS_SOAK_H
#define ORIEL_TESTS_SOAK_H

#include "../mpi/random_types.h"

enum {
    RANKS_MOST = 16,
    THREADS_MOST = 3,
    WINDOWS_MOST = 5,
    SEGMENTS_MOST = 3,
    GROUPS_MOST = 12,
    AREAS_MOST = 8,
    TRACKS_MOST = 2,
    PHASES_MOST = 3,
    VARIANTS = 4,
    SIGNATURES = 3,
    PLAIN_MOST_BYTES = 18 << 20,
    SOAK_COUNTERS = 2 /* of notifications, per rank */
};

/* How often this rank did each kind of action; the rows are in counts.def. */
enum count {
#define COUNT(name, text) COUNT_##name,
#include "counts.def"
#undef COUNT
    COUNTS
};

struct soak {
    uint64_t seed;
    int steps, step;
    int threads; /* of each rank, the main thread included */
    long counts[COUNTS];
    char doing[160]; /* for the message when time is over */
};
extern struct soak soak;

void count_one(enum count count);
void counts_print(void); /* collective */

/* Random numbers by purpose, the same on all ranks. */
struct random stream(uint64_t purpose, uint64_t number);
static inline int below(struct random *random, int limit)
{
    return (int)random_below(random, (uint64_t)limit);
}
static inline bool one_in(struct random *random, int chances)
{
    return random_below(random, (uint64_t)chances) == 0;
}
int between(struct random *random, int least, int most);
void bytes_draw(unsigned char *bytes, size_t len_bytes, struct random *random);

/* Prints an error and ends the job. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void doing(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Some ranks of MPI_COMM_WORLD in an arbitrary order. */
struct group {
    int n, world[RANKS_MOST];
    int me;        /* this process's rank in it, or -1 */
    MPI_Comm comm; /* for the test's own messages; MPI_COMM_NULL outside */
    bool on_one_node;
    enum count count;
};
extern struct group groups[GROUPS_MOST];
extern int group_count;
void groups_start(void);
void groups_stop(void);

/* The sources of a window's memory. */
enum source { SOURCE_HEAP, SOURCE_STACK, SOURCE_STATIC, SOURCE_ALLOC_MEM, SOURCE_MMAP, SOURCES };
struct memory {
    enum source source;
    unsigned char *at;
    size_t len_bytes;
    void *whole; /* the whole allocation, to be freed */
    size_t whole_bytes;
};
void memory_start(unsigned char *stack, size_t stack_bytes);
void memory_allocate(struct memory *memory, size_t len_bytes, struct random *random);
void memory_free(struct memory *memory);

/* A phase's claim on a byte. */
enum claim_kind { CLAIM_NONE, CLAIM_READ, CLAIM_OWNED, CLAIM_RESERVED };
enum { ACTOR_MANY = 255, ACTOR_NONE = 254 };
struct claim {
    uint8_t kind;
    uint8_t
        /* the owner or, for reads, the only reader, or ACTOR_MANY; ACTOR_NONE: not again in this
         * phase */
        actor;
    uint16_t flush; /* number of the actor's flushes of the target before its last access */
};

/* Bytes of one rank in a window: all of them or, in a dynamic window, one attached region. */
struct region {
    size_t size;
    int unit;
    MPI_Aint first;       /* displacement of the first byte, in units */
    unsigned char *at;    /* own bytes, and in shared windows the peers', else NULL */
    unsigned char *model; /* expected bytes */
    struct claim *claims;
    uint16_t *writers;    /* the step's last operation that wrote the byte, from 1 on */
    struct memory memory; /* own memory, where the program supplied it */
};

enum flavour { FLAVOUR_CREATE, FLAVOUR_ALLOCATE, FLAVOUR_SHARED, FLAVOUR_DYNAMIC };
struct soak_window {
    bool live;
    int number, parent, children; /* parent: the window whose memory it overlays, or -1 */
    enum flavour flavour;
    struct group *group;
    MPI_Win win;
    MPI_Comm comm;                    /* for the test's own messages about it, from any thread */
    bool locks, ordered, mixes_no_op; /* what the hints permit */
    bool extended;                    /* Oriel serves it: it has the extensions */
    bool notifies;                    /* it has counters of notifications */
    bool unified;
    int segments;
    struct region regions[RANKS_MOST][SEGMENTS_MOST];
};
extern struct soak_window windows[WINDOWS_MOST];
void window_make_random(struct random *shared);
void window_free_random(struct random *shared);
void windows_free(void);
/* change.c */
void window_attach_random(struct soak_window *window);
void window_change_random(struct soak_window *window);
/* handle.c */
void window_lend_random(struct soak_window *window);
/* window.c: a region's size, in a window of the given number of ranks; its model with random
 * contents; and its release, except for the model. */
size_t size_draw(struct random *random, int ranks);
void region_fill(struct region *region, struct random *random);
void region_stop(struct region *region);

/* Collective; sleeps while it waits. */
void sum_all(uint64_t *values, int count, MPI_Comm comm);

#endif
