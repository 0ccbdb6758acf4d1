/* Random datatypes: trees of every constructor over one signature, each with its type map worked
 * out byte by byte from the constructors' definitions, and of nothing that the library or the host
 * says but the extents of old types. Two types of one signature match each other in any numbers of
 * items with the same sum of bytes. Called by the test programs in this folder, from any thread
 * once random_leaves_start has been called. */
#ifndef ORIEL_TESTS_RANDOM_TYPES_H
#define ORIEL_TESTS_RANDOM_TYPES_H

#include "types.h"

enum { SIGNATURE_MOST = 3, MAP_MOST_BYTES = 2048 };

/* A predefined or F90 type with the model of its values. */
struct random_leaf {
    MPI_Datatype type;
    const struct test_type *model;
};

/* What every type made from it repeats. */
struct random_signature {
    int count;
    const struct random_leaf *leaves[SIGNATURE_MOST];
};

struct random_type {
    MPI_Datatype type; /* committed */
    bool derived;      /* to be freed */
    int size_bytes;    /* of the map */
    /* the offset of each byte that moves, in order, relative to displacement 0 */
    int map[MAP_MOST_BYTES];
    MPI_Aint extent;    /* as the host says */
    MPI_Aint low, high; /* of the bytes that move, in one item; 0 and 0 when there are none */
    char text[256];     /* the constructors' names, from the outermost inwards */
};

/* The leaves that the host has; the F90 types are asked for here. */
void random_leaves_start(void);
const struct random_leaf *random_leaf_any(struct random *random);

struct random_signature random_signature_any(struct random *random);
struct random_signature random_signature_of(const struct random_leaf *leaf);

/* A committed type of any constructors, at most depth of them nested. */
void random_type_make(struct random_type *type, const struct random_signature *signature,
                      struct random *random, int depth);
void random_type_free(struct random_type *type);

/* The bytes that count items move, from the first to behind the last, relative to the buffer. */
void random_type_bounds(const struct random_type *type, int count, MPI_Aint *low, MPI_Aint *high);
/* No byte twice: what a destination must keep to. */
bool random_type_is_disjoint(const struct random_type *type, int count);

/* Pack and unpack by the map. */
void random_type_gather(const struct random_type *type, int len_bytes, const unsigned char *buffer,
                        unsigned char *packed);
void random_type_scatter(const struct random_type *type, int len_bytes, unsigned char *buffer,
                         const unsigned char *packed);

#endif
