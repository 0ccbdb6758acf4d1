/* Random layouts without overlaps, with the offset of each byte and each element that moves. */
#ifndef ORIEL_TESTS_UNIT_FAR_LAYOUTS_H
#define ORIEL_TESTS_UNIT_FAR_LAYOUTS_H

#include "rma/rma.h"

/* A datatype, and count items of it. */
struct drawn {
    struct oriel_type type;
    uint64_t count;
    int64_t low_bytes;
    int64_t high_bytes;
    uint64_t moved; /* bytes */
    int64_t *bytes; /* offset of each */
    uint64_t elements;
    int64_t *places; /* of the elements */
    enum oriel_kind *kinds;
};

/* About the given number of elements of one kind, or of any kind for ORIEL_KIND_NONE, in one or
 * many pieces, within most_bytes. */
void drawn_make(struct drawn *out, enum oriel_kind kind, uint64_t about);
void drawn_make_within(struct drawn *out, enum oriel_kind kind, uint64_t about,
                       uint64_t most_bytes);
void drawn_dense(struct drawn *out, enum oriel_kind kind, uint64_t elements);
void drawn_free(struct drawn *drawn);

/* Frees the datatype; its offsets remain. */
void drawn_forget_type(struct drawn *drawn);

/* Small numbers, with which all operators give the same results in any order. */
void drawn_fill(const struct drawn *drawn, char *memory);

/* Random bytes. */
void drawn_noise(char *memory, uint64_t len_bytes);

#endif
