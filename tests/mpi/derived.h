/* Shared parts of the derived datatype tests: two sides of one operation with random types of one
 * signature, and slots. Each origin owns a slot of every target's memory. The host's pack and
 * unpack are checked against the types' maps. A slot's model is its expected contents to the last
 * byte; a check reads the whole slot back. Each thread needs its own slot. */
#ifndef ORIEL_TESTS_DERIVED_H
#define ORIEL_TESTS_DERIVED_H

#include "random_types.h"

enum { FIELD_BYTES = 8192, PACKED_MOST_BYTES = 4096, DEPTH = 4 };

/* count items of a type with displacement 0 at offset of a field of FIELD_BYTES; all data that
 * moves is inside the field. */
struct side {
    struct random_type type;
    int count;
    MPI_Aint offset;
};

/* Both sides move len_bytes. The target's items are disjoint, the origin's only on request. */
struct sides {
    struct random_signature signature;
    struct side origin, target;
    int len_bytes;
    uint64_t seed;
};

/* Offsets are multiples of 8 at the target, of 1 at the origin. */
void sides_make(struct sides *sides, const struct random_signature *signature, bool origin_disjoint,
                uint64_t seed);
void sides_free(struct sides *sides);

/* One random side with room for exactly len_bytes; returns false when the type's size does not
 * divide them. */
bool side_make(struct side *side, const struct random_signature *signature, int len_bytes,
               bool disjoint, struct random *random);

/* Packs by the host and checks the result against the map. */
void side_pack(const struct side *side, int len_bytes, const unsigned char *field,
               unsigned char *packed);
void side_unpack(const struct side *side, int len_bytes, unsigned char *field,
                 const unsigned char *packed);

struct slot {
    MPI_Win win;
    int target;
    MPI_Aint start; /* in bytes, in the target's window */
    int unit;
    unsigned char model[FIELD_BYTES];
};

/* slots_each slots of every origin in every target's memory, filled with zeros; displacement units
 * differ by rank. */
struct window slots_make(enum window_kind kind, int slots_each);
void slots_free(struct window *window);
void slot_open(struct slot *slot, MPI_Win win, int target, int slots_each, int number);
MPI_Aint slot_disp(const struct slot *slot, const struct side *side);
void slot_fill(struct slot *slot, struct random *random);
void slot_write(struct slot *slot, const unsigned char *bytes);
bool slot_check(const struct slot *slot, const struct sides *sides, const char *what);

/* Reports the difference between the two fields. */
bool fields_check(const unsigned char *got, const unsigned char *wanted, const struct sides *sides,
                  const char *what);
void bytes_fill(unsigned char *bytes, int len_bytes, struct random *random);

#endif
