/* Random layouts without overlaps, with the offset of each byte and each element that moves. */
#ifndef ORIEL_TESTS_UNIT_RANDOM_LAYOUTS_H
#define ORIEL_TESTS_UNIT_RANDOM_LAYOUTS_H

#include "rma/rma.h"

/* A datatype, and count items of it. */
struct random_layout {
    struct oriel_type type;
    uint64_t count;
    int64_t low_bytes;
    int64_t high_bytes;
    uint64_t moved; /* bytes */
    int64_t *bytes; /* offset of each */
    uint64_t elements;
    int64_t *offsets; /* of the elements */
    enum oriel_kind *kinds;
};

/* About the given number of elements of one kind, or of any kind for ORIEL_KIND_NONE, in one or
 * many pieces, within most_bytes. */
void random_layout_make(struct random_layout *out, enum oriel_kind kind, uint64_t about);
void random_layout_make_within(struct random_layout *out, enum oriel_kind kind, uint64_t about,
                               uint64_t most_bytes);
void random_layout_dense(struct random_layout *out, enum oriel_kind kind, uint64_t elements);
void random_layout_free(struct random_layout *layout);

/* Frees the datatype; its offsets remain. */
void random_layout_free_type(struct random_layout *layout);

/* Small numbers, with which all operators give the same results in any order. */
void random_layout_fill(const struct random_layout *layout, char *memory);

/* Random bytes. */
void random_bytes_fill(char *memory, uint64_t len_bytes);

#endif
