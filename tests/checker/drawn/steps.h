/* One step of a drawn program, as a line of its table says it; steps.c reads and performs them, sites.c has the operations. */
#ifndef ORIEL_TESTS_DRAWN_STEPS_H
#define ORIEL_TESTS_DRAWN_STEPS_H

#include <mpi.h>

enum { SITES = 16, WINDOWS = 8, TYPES = 16, REQUESTS = 64, ARENA_BYTES = 1 << 16 };

/* What an operation's row says: which, from which of its call sites, on what. */
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

/* From the call site of this number: each has its own, put_0, put_1 and so on by the function's name. */
void operate(const struct operation *operation);

/* A message of one int, from functions of their own too. */
void send_from(const void *buffer, int whom);
void receive_into(void *buffer, int whom);

#endif
