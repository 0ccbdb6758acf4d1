/* Kinds of predefined elements and the operators on them, without mpi.h, windows or processes.
 * datatype/datatype.c maps MPI datatypes to kinds, kernel.c computes. */
#ifndef ORIEL_REDUCE_KIND_H
#define ORIEL_REDUCE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef long double oriel_long_double;
typedef float _Complex oriel_float_complex;
typedef double _Complex oriel_double_complex;
typedef long double _Complex oriel_long_double_complex;
/* Fortran's INTEGER*16. */
#ifdef __SIZEOF_INT128__
#define ORIEL_HAS_INT128 1
__extension__ typedef __int128 oriel_int128;
__extension__ typedef unsigned __int128 oriel_uint128;
#else
#define ORIEL_HAS_INT128 0
#endif

/* Fortran's REAL*16: IEEE binary128, regardless of long double. (MPICH 4.0.2 computes with it as
 * with an integer, Open MPI 4.1.4 as with the x87's long double.) */
#if defined __SIZEOF_FLOAT128__
#define ORIEL_HAS_QUAD 1
__extension__ typedef __float128 oriel_quad;
typedef float _Complex oriel_quad_complex __attribute__((mode(TC)));
#elif __LDBL_MANT_DIG__ == 113
#define ORIEL_HAS_QUAD 1
typedef long double oriel_quad;
typedef long double _Complex oriel_quad_complex;
#else
#define ORIEL_HAS_QUAD 0
#endif

struct oriel_opaque128 {
    uint64_t words[2];
};
struct oriel_opaque256 {
    uint64_t words[4];
};

enum oriel_kind {
#define INTEGER(name, type, unsigned_type) ORIEL_KIND_##name,
#define WIDE(name, type, unsigned_type)    ORIEL_KIND_##name,
#define REAL(name, type)                   ORIEL_KIND_##name,
#define COMPLEX(name, type, real)          ORIEL_KIND_##name,
#define HALF(name, parts)                  ORIEL_KIND_##name,
#define PAIR(name, type, index_type)       ORIEL_KIND_##name,
#define COMPOSED(name, type, index_type)   ORIEL_KIND_##name,
#define LOGICAL(name, type)                ORIEL_KIND_##name,
#define BITS(name, type, like)             ORIEL_KIND_##name,
#define LETTERS(name, type, like)          ORIEL_KIND_##name,
#define OPAQUE(name, type)                 ORIEL_KIND_##name,
#include "reduce/kinds.def"
    ORIEL_KIND_COUNT,
    ORIEL_KIND_NONE = ORIEL_KIND_COUNT
};

enum oriel_operator {
    ORIEL_OPERATOR_MAX,
    ORIEL_OPERATOR_MIN,
    ORIEL_OPERATOR_SUM,
    ORIEL_OPERATOR_PROD,
    ORIEL_OPERATOR_LAND,
    ORIEL_OPERATOR_BAND,
    ORIEL_OPERATOR_LOR,
    ORIEL_OPERATOR_BOR,
    ORIEL_OPERATOR_LXOR,
    ORIEL_OPERATOR_BXOR,
    ORIEL_OPERATOR_MINLOC,
    ORIEL_OPERATOR_MAXLOC,
    ORIEL_OPERATOR_REPLACE,
    ORIEL_OPERATOR_NO_OP,
    ORIEL_OPERATOR_COUNT,
    ORIEL_OPERATOR_NONE = ORIEL_OPERATOR_COUNT
};

/* Applies one operator to count elements: result (if not NULL) = target; target = target op origin.
 * Elements are extent_bytes apart in all three buffers and need no alignment. No other thread may
 * update them meanwhile. origin may be NULL for NO_OP. */
typedef void oriel_kernel(char *target, const char *origin, char *result, uint64_t count);

/* The same for one aligned element, atomically. Sets *inside = 0 (release) and returns 0: the fast
 * path announces itself in that word (sync/atomic_mode.h) and ends with a jump to the kernel. */
typedef int oriel_element(char *target, const char *origin, char *result, _Atomic uint32_t *inside);

struct oriel_kind_properties {
    uint32_t extent_bytes; /* distance between elements */
    uint32_t value_bytes;  /* a pair's first field; else the whole element */
    uint32_t index_offset; /* of a pair's second field; else 0 */
    uint32_t index_bytes;  /* of a pair's second field; else 0 */
    bool padded;           /* a pair smaller than its extent: only its fields may be accessed */
    bool composed;         /* a pair whose fields are elements of their own (kinds.def) */
    bool tolerant;         /* bytes and letters: computes more than MPI defines (kinds.def) */
    oriel_kernel *plain[ORIEL_OPERATOR_COUNT]; /* NULL if the operator is not allowed on the kind */
    oriel_element *native[ORIEL_OPERATOR_COUNT]; /* NULL if the CPU has no such operation */
};

extern const struct oriel_kind_properties oriel_kinds[ORIEL_KIND_COUNT];

/* True if MPI defines the operator on the kind (MPI-4.1, 6.9.2). Programs may not rely on what a
 * tolerant kind computes beyond that. */
bool oriel_kind_defines(enum oriel_kind kind, enum oriel_operator op);

/* Bytes of one element that move: a pair's padding does not. */
static inline uint64_t oriel_kind_moving_bytes(enum oriel_kind kind)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    return properties->padded ? properties->value_bytes + properties->index_bytes
                              : properties->extent_bytes;
}

enum {
    ORIEL_KERNEL_VECTOR_BYTES = 64,
    ORIEL_KERNEL_SPLIT_BYTES = 512, /* minimum size at which the split pays */
};

/* Calls a plain kernel for many aligned elements of 1, 2, 4 or 8 bytes. The first elements, up to
 * the target's vector boundary, go in a separate call. Then no vector load or store of the target
 * crosses a cache line. */
static inline void oriel_kernel_many(oriel_kernel *kernel, uint32_t extent_bytes, char *target,
                                     const char *origin, char *result, uint64_t count)
{
    const uint64_t ahead_bytes = -(uintptr_t)target % ORIEL_KERNEL_VECTOR_BYTES;
    if (ahead_bytes != 0 && count * extent_bytes >= ORIEL_KERNEL_SPLIT_BYTES) {
        const uint64_t ahead = ahead_bytes / extent_bytes;
        kernel(target, origin, result, ahead);
        target += ahead_bytes;
        origin = origin != NULL ? origin + ahead_bytes : NULL;
        result = result != NULL ? result + ahead_bytes : NULL;
        count -= ahead;
    }
    kernel(target, origin, result, count);
}

/* Bytes after the last field of a padded pair, which do not move. */
static inline uint64_t oriel_kind_tail_bytes(const struct oriel_kind_properties *kind)
{
    return kind->padded ? kind->extent_bytes - kind->index_offset - kind->index_bytes : 0;
}

#endif
