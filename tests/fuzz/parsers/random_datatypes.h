/* Random datatypes from a fuzzer's input, and a host that describes them. */
#ifndef ORIEL_TESTS_FUZZERS_RANDOM_DATATYPES_H
#define ORIEL_TESTS_FUZZERS_RANDOM_DATATYPES_H

#include "fuzzer.h"

#include "host/contents.h"
#include "datatype/flatten.h"

__extension__ typedef __int128 wide;

enum { DATATYPES_MOST = 48, NUMBERS_MOST = 32, PARTS = 4, DIMENSIONS = 3, DEPTH = 10 };

/* A datatype, and its properties by MPI's definitions. */
struct random_datatype {
    int combiner;
    enum oriel_kind kind;          /* of a leaf */
    int64_t numbers[NUMBERS_MOST]; /* as in struct oriel_contents */
    int integers[NUMBERS_MOST];    /* the same, if all of them fit */
    MPI_Datatype types[PARTS];
    int parts;
    int64_t extent_bytes;
    wide elements;
    wide size_bytes;
    wide low_bytes; /* and high: bounds of the elements that move */
    wide high_bytes;
};

/* Drops all types. */
void random_datatype_start(void);

/* A type's number, with at most depth nested constructors. */
int random_datatype_make(struct input *input, int depth);

MPI_Datatype random_datatype_handle(int number);
struct random_datatype *random_datatype_of(MPI_Datatype type);

/* Computes elements and the members after it; layout.c. */
void random_datatype_sum_up(struct random_datatype *type);

#endif
