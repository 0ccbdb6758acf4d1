/* Random datatypes: trees of every constructor over one signature, each with a type map computed
 * byte by byte from the constructors' definitions. The only input from the library or the host is
 * the extents of old types. Two types of one signature match each other in any numbers of items
 * with the same sum of bytes. The functions are thread-safe after
 * random_leaves_start. */
#ifndef ORIEL_TESTS_RANDOM_TYPES_H
#define ORIEL_TESTS_RANDOM_TYPES_H

#include "types.h"

enum { SIGNATURE_MOST = 3, MAP_MOST_BYTES = 2048 };

/* A predefined or F90 type with the model of its values. */
struct random_leaf {
    MPI_Datatype type;
    const struct test_type *model;
};

/* The sequence of leaves that every type made from it repeats. */
struct random_signature {
    int count;
    const struct random_leaf *leaves[SIGNATURE_MOST];
};

struct random_type {
    MPI_Datatype type; /* committed */
    bool derived;      /* must be freed */
    int size_bytes;    /* of the map */
    /* the offset of each byte that moves, in order, relative to displacement 0 */
    int map[MAP_MOST_BYTES];
    MPI_Aint extent;    /* the host's value */
    MPI_Aint low, high; /* of the bytes that move, in one item; 0 and 0 when none move */
    char text[256];     /* the constructors' names, from the outermost inwards */
};

/* The leaves that the host has; asks for the F90 types here. */
void random_leaves_start(void);
const struct random_leaf *random_leaf_any(struct random *random);

struct random_signature random_signature_any(struct random *random);
struct random_signature random_signature_of(const struct random_leaf *leaf);

/* A committed type of any constructors, nested at most depth levels. */
void random_type_make(struct random_type *type, const struct random_signature *signature,
                      struct random *random, int depth);
void random_type_free(struct random_type *type);

/* The range of bytes that count items move, relative to the buffer; the end is exclusive. */
void random_type_bounds(const struct random_type *type, int count, MPI_Aint *low, MPI_Aint *high);
/* True if no byte occurs twice: a requirement for destinations. */
bool random_type_is_disjoint(const struct random_type *type, int count);

/* Pack and unpack by the map. */
void random_type_gather(const struct random_type *type, int len_bytes, const unsigned char *buffer,
                        unsigned char *packed);
void random_type_scatter(const struct random_type *type, int len_bytes, unsigned char *buffer,
                         const unsigned char *packed);

#endif
