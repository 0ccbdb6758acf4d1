/* What the sources of the generator share: a random program is a list of steps, each a plan that all ranks draw alike from the
 * seed, the model of what every byte must be afterwards, and the calls of this rank.
 * Invariant: whatever is drawn from a plan's numbers depends on the seed and on who shares a machine with whom, and on nothing
 * that a rank has seen.  Called by the sources of this folder. */
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
    PLAIN_MOST_BYTES = 18 << 20
};

/* How often each kind of thing was done by this rank; counts.def has the rows. */
enum count {
#define COUNT(name, text) COUNT_##name,
#include "counts.def"
#undef COUNT
    COUNTS
};

struct soak {
    uint64_t seed;
    int steps, step;
    int threads; /* of each rank, the main one included */
    long counts[COUNTS];
    char doing[160]; /* for the deadline's message */
};
extern struct soak soak;

void count_one(enum count count);
void counts_tell(void); /* collective */

/* Numbers of their own for each purpose, the same on all ranks. */
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

/* Ends the job: something is not as it must be. */
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void doing(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Some ranks of MPI_COMM_WORLD in an order of their own. */
struct group {
    int n, world[RANKS_MOST];
    int me;        /* this process's rank in it, or -1 */
    MPI_Comm comm; /* for what the test itself has to say; MPI_COMM_NULL outside */
    bool one_machine;
    enum count count;
};
extern struct group groups[GROUPS_MOST];
extern int group_count;
void groups_start(void);
void groups_stop(void);

/* Where the bytes of a window may come from. */
enum source { SOURCE_HEAP, SOURCE_STACK, SOURCE_STATIC, SOURCE_ALLOC_MEM, SOURCE_MMAP, SOURCES };
struct memory {
    enum source source;
    unsigned char *at;
    size_t len_bytes;
    void *whole; /* what is given back */
    size_t whole_bytes;
};
void memory_start(unsigned char *stack, size_t stack_bytes);
void memory_take(struct memory *memory, size_t len_bytes, struct random *random);
void memory_give(struct memory *memory);

/* What a phase's operations have to do with a byte. */
enum claim_kind { CLAIM_NONE, CLAIM_READ, CLAIM_OWNED, CLAIM_RESERVED };
enum { ACTOR_MANY = 255, ACTOR_NOBODY = 254 };
struct claim {
    uint8_t kind;
    uint8_t
        actor; /* who owns it or, of reads, who alone reads it, or ACTOR_MANY; ACTOR_NOBODY: not again in this phase */
    uint16_t flush; /* the actor's flushes of the target before its last access */
};

/* Bytes of one rank in a window: all of them or, in a dynamic window, one of those attached. */
struct region {
    size_t size;
    int unit;
    MPI_Aint first;       /* displacement of the first byte, in units */
    unsigned char *at;    /* own bytes, and in shared windows the peers', else NULL */
    unsigned char *model; /* what must be there */
    struct claim *claims;
    uint16_t *writers;    /* the step's operation that wrote the byte last, from 1 on */
    struct memory memory; /* own, where the program gave it */
};

enum flavour { FLAVOUR_CREATE, FLAVOUR_ALLOCATE, FLAVOUR_SHARED, FLAVOUR_DYNAMIC };
struct soak_window {
    bool live;
    int number, parent, children; /* parent: whose memory it lies over, or -1 */
    enum flavour flavour;
    struct group *group;
    MPI_Win win;
    MPI_Comm comm;                    /* for what the test has to say of it, by whichever thread */
    bool locks, ordered, mixes_no_op; /* what the hints have left */
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
/* window.c: a region's size, in a window of so many ranks, its model with random contents, and the end of it all but the model. */
size_t size_draw(struct random *random, int ranks);
void region_fill(struct region *region, struct random *random);
void region_stop(struct region *region);

/* Collective; sleeps while it waits. */
void sum_all(uint64_t *values, int count, MPI_Comm comm);

#endif
