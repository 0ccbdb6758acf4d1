/* A window whose every byte is observable: this rank compares all ranks' memory and the guards
 * around it with a copy of the expected bytes.  Only one rank makes calls at a time. A difference
 * is therefore an effect of the last call. */
#ifndef ORIEL_TESTS_FUZZ_FIELD_H
#define ORIEL_TESTS_FUZZ_FIELD_H

#include "epochs.h"

enum { FIELD_REGIONS = 3 * FUZZ_RANKS, FIELD_GUARD_BYTES = 256, FIELD_MOST_BYTES = 600 };
enum { FIELD_SPAN_BYTES = FIELD_MOST_BYTES + 2 * FIELD_GUARD_BYTES };

struct region {
    unsigned char *at;   /* in this process's address space */
    unsigned char *kept; /* expected bytes */
    size_t len_bytes;
};

struct field {
    MPI_Win win;
    enum window_kind kind;
    MPI_Comm comm;
    int n, me;
    MPI_Aint size[FUZZ_RANKS], unit[FUZZ_RANKS];
    /* the first n: windows, with their guards where the kind lets them touch */
    struct region regions[FIELD_REGIONS];
    int region_count;
    size_t before[FUZZ_RANKS]; /* bytes of guard before the window's memory */
    struct epochs epochs;
    struct attached *attached; /* of a dynamic window, else NULL */
    /* owners of the memory */
    MPI_Win backing, guards[2];
    int file;
};

/* The attached memory of a dynamic window, byte by byte of the regions above. */
struct attached {
    MPI_Win fixed;                /* the window that supplied the memory */
    MPI_Aint address[FUZZ_RANKS]; /* of field_memory in each rank's own address space */
    unsigned char bytes[FUZZ_RANKS][FIELD_SPAN_BYTES];
    int count, empty_count; /* of this rank */
    int from[FIELD_SPAN_BYTES], to[FIELD_SPAN_BYTES];
    unsigned char *empty[FIELD_SPAN_BYTES];
};

/* Collective over comm; all ranks draw the same sizes from shared. */
void field_open(struct field *field, enum window_kind kind, MPI_Comm comm, struct random *shared);
void field_close(struct field *field);

/* Replaces a field's window by a dynamic window over the same memory. */
void field_make_dynamic(struct field *field);
void field_end_dynamic(struct field *field);

/* One valid or invalid attach or detach by this rank; and the exchange of attached regions between
 * all ranks. */
void field_attach_once(struct field *field, struct random *random);
void field_tell_attached(struct field *field);

/* Start of an access, in bytes from field_memory. */
static inline __int128 field_offset(const struct field *field, int rank, MPI_Aint disp)
{
    return field->attached != NULL ? (__int128)disp - field->attached->address[rank]
                                   : (__int128)disp * field->unit[rank];
}

/* Whether len_bytes from offset are attached. */
bool field_is_attached(const struct field *field, int rank, __int128 offset, __int128 len_bytes);

/* Before a turn: records the current bytes as expected. */
void field_keep(struct field *field);

/* After each call: all bytes are as expected. */
void field_check(struct field *field);

static inline unsigned char *field_memory(const struct field *field, int rank)
{
    return field->regions[rank].at + field->before[rank];
}

static inline unsigned char *field_kept(const struct field *field, int rank)
{
    return field->regions[rank].kept + field->before[rank];
}

#endif
