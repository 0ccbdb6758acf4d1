/* One step of a generated program, as in its line of the table. steps.c reads and executes steps;
 * sites.c contains the operations. */
#ifndef ORIEL_TESTS_DRAWN_STEPS_H
#define ORIEL_TESTS_DRAWN_STEPS_H

#include <mpi.h>

enum { SITES = 16, WINDOWS = 8, TYPES = 16, REQUESTS = 64, ARENA_BYTES = 1 << 16 };

/* The row of an operation: kind, call site and arguments. */
struct operation {
    int kind; /* enum operation_kind */
    int site;
    MPI_Win win;
    int target;
    MPI_Aint disp;
    int count;
    MPI_Datatype type;
    int origin_count; /* of puts and gets */
    MPI_Datatype origin_type;
    MPI_Op op;
    char *origin;
    char *result;
    char *compare;
    MPI_Request *request;
};

enum operation_kind {
    PUT,
    GET,
    ACCUMULATE,
    GET_ACCUMULATE,
    FETCH_AND_OP,
    COMPARE_AND_SWAP,
    RPUT,
    RGET,
    RACCUMULATE,
    KINDS
};

/* Executes the operation from the call site of its number. Each site is in a function of its own:
 * put_0, put_1 and so on. */
void operate(const struct operation *operation);

/* Messages of one int, also from functions of their own. */
void send_from(const void *buffer, int whom);
void receive_into(void *buffer, int whom);

#endif
