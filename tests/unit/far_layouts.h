/* Random layouts without overlaps, with the place of each byte and each element that moves. */
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
    int64_t *bytes; /* where each is */
    uint64_t elements;
    int64_t *places; /* of the elements */
    enum oriel_kind *kinds;
};

/* Elements of one kind, or of any for ORIEL_KIND_NONE; about so many, in one piece or in many; within most_bytes. */
void drawn_make(struct drawn *out, enum oriel_kind kind, uint64_t about);
void drawn_make_within(struct drawn *out, enum oriel_kind kind, uint64_t about,
                       uint64_t most_bytes);
void drawn_dense(struct drawn *out, enum oriel_kind kind, uint64_t elements);
void drawn_free(struct drawn *drawn);

/* The datatype goes, what is known of its places stays. */
void drawn_forget_type(struct drawn *drawn);

/* Values with which all operators can compute, whatever the order: small numbers. */
void drawn_fill(const struct drawn *drawn, char *memory);

/* Any bytes. */
void drawn_noise(char *memory, uint64_t len_bytes);

#endif
