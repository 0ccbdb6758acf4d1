/* The predefined datatypes with a model of their values: the target's contents after one accumulate
 * of one element. The model computes in the widest type of each group on values that are exact
 * there. It defines which operators a group allows. */
#ifndef ORIEL_TESTS_TYPES_H
#define ORIEL_TESTS_TYPES_H

#include "harness.h"

enum type_group {
    GROUP_SIGNED, /* C and Fortran integers and the multi-language types */
    GROUP_UNSIGNED,
    GROUP_FLOATING,
    GROUP_QUAD, /* IEEE binary128: Fortran's REAL*16 */
    GROUP_COMPLEX,
    GROUP_QUAD_COMPLEX,
    GROUP_LOGICAL,
    GROUP_BYTE,
    GROUP_MOVED, /* takes MPI_REPLACE and MPI_NO_OP only, unless it is a character type */
    GROUP_PAIR
};

struct test_type {
    const char *name;
    MPI_Datatype type;
    enum type_group group;
    size_t extent_bytes;
    enum type_group value_group; /* of a pair's value, and of its index where that is no integer */
    size_t value_bytes;          /* of a pair's value; else the extent */
    size_t index_offset_bytes;   /* of a pair's index */
    size_t index_bytes;
    bool fortran_integer; /* no logical operators */
    bool multi_language;  /* no logical operators */
};

struct test_op {
    const char *name;
    MPI_Op op;
};

extern const struct test_type test_types[];
extern const size_t test_type_count;
extern const struct test_op test_ops[];
extern const size_t test_op_count;

enum { TYPE_MAX_BYTES = 32 };

/* True where the standard allows the operator in an accumulate of the type. */
bool type_allows(const struct test_type *type, MPI_Op op);
/* True for operators outside the standard that hosts compute: logical operators on Fortran integers
 * and multi-language types, as in C. Bytes, as unsigned integers, and characters, as signed ones,
 * have all operators of integers. */
bool type_tolerates(const struct test_type *type, MPI_Op op);
/* MPI_CHAR and its relatives of one byte. */
bool type_is_letters(const struct test_type *type);
/* False for a type of which the host has only the name. */
bool type_exists(const struct test_type *type);
bool type_allows_swap(const struct test_type *type);
/* One random element that stays in the type's exact range under every allowed operator; padding is
 * filled with the given byte. */
void type_fill(const struct test_type *type, void *element, struct random *random,
               unsigned char padding);
/* A small integer as an element: both fields of a pair, the real part of a complex number. */
void type_set(const struct test_type *type, void *element, int value);
/* target = target op operand; a pair's padding is left alone. */
void type_apply(const struct test_type *type, MPI_Op op, void *target, const void *operand);
/* Equal as values; for pairs the padding must be equal too. */
bool type_equal(const struct test_type *type, const void *left, const void *right);
/* The bytes between and after a pair's fields, and none in other types. */
bool type_is_padding(const struct test_type *type, size_t byte);

#endif
