/* Random buffers with their datatypes: valid ones, whose every byte is known, and invalid ones of
 * each kind. */
#ifndef ORIEL_TESTS_FUZZ_RANDOM_BUFFERS_H
#define ORIEL_TESTS_FUZZ_RANDOM_BUFFERS_H

#include "fuzz.h"
#include "../../mpi/random_types.h"

enum { SIDE_TYPES = 48, SIDE_BYTES = 8192 };

enum side_state { SIDE_GOOD, SIDE_EMPTY, SIDE_UNCOMMITTED, SIDE_NULL, SIDE_VAST };

struct side_type {
    struct random_type map; /* of SIDE_GOOD */
    enum side_state state;
    MPI_Datatype type;
    const struct test_type *model; /* of every element; of the first one for mixed types */
    bool mixed;                    /* elements of several kinds */
    bool padded;                   /* some are pairs with padding */
    bool absolute;                 /* displacements are addresses in buffer, for MPI_BOTTOM */
    int elements;
};

struct side {
    const struct side_type *type;
    MPI_Count count;
    unsigned char *addr;   /* as passed */
    unsigned char *origin; /* address of displacement 0 */
};

struct sides {
    struct side_type types[SIDE_TYPES];
    unsigned char buffers[3][SIDE_BYTES]; /* origin, result, compare */
    unsigned char expected[3][SIDE_BYTES];
    const struct side_type *recent; /* of the last target */
};

void sides_open(struct sides *sides, struct random *random);
void sides_close(struct sides *sides);

/* A side in buffer b, or at the target for b < 0.  counts may exceed an int when wide. */
void side_draw(struct sides *sides, struct side *side, int b, bool wide, struct random *random);

/* Whether the side's first len_bytes are within its buffer. */
bool side_fits(const struct sides *sides, const struct side *side, int b, MPI_Count len_bytes);

/* Fills the buffers with new bytes; and checks that nothing else has changed in them since. */
void sides_fill(struct sides *sides, struct random *random);
void sides_check(struct sides *sides);

/* 0: elements of different kinds; 1: of kinds that a library may treat as equal; 2: of one
 * predefined datatype. */
int sides_alike(const struct test_type *a, const struct test_type *b);

#endif
