/* A finding in words, as it stands in the board, goes to rank 0 at the end, and to the `oriel` command for lines and JSON:
 * fixed in size, with nothing in it that only one process could read.  finding.c writes; the checker and the command read. No
 * mpi.h here. */
#ifndef ORIEL_CHECK_RECORD_H
#define ORIEL_CHECK_RECORD_H

#include <stdint.h>

enum {
    ORIEL_RECORD_SHORT = 128,
    ORIEL_RECORD_LONG = 256,
    ORIEL_RECORD_STACK = 2048,
    ORIEL_RECORD_RANKS = 1024, /* ranks that are told apart; those above count, and are not named */
};

/* An address of a module.  The first three say which; the others what is there, "" and 0 where that is not known. */
struct oriel_record_place {
    char module[ORIEL_RECORD_LONG]; /* file */
    uint8_t build_id[20];           /* all 0: unknown */
    uint32_t reserved;
    uint64_t offset;                /* in the file's own addresses; 0: no place */
    char function[ORIEL_RECORD_SHORT];
    char file[ORIEL_RECORD_LONG];
    char inlined[ORIEL_RECORD_LONG]; /* "in main at app.c:40": into what the function was inlined there */
    uint32_t line;
    uint32_t has_debug; /* the module has debug information, whether it knows this place or not */
};

struct oriel_record_site {
    char call[40]; /* "MPI_Put"; "" for none */
    int32_t rank;  /* of MPI_COMM_WORLD */
    uint32_t reserved;
    struct oriel_record_place place;
};

struct oriel_record {
    uint32_t rule; /* enum oriel_rule */
    int32_t target;
    int64_t offset; /* these as in struct oriel_finding */
    uint64_t len_bytes;
    int64_t element;
    uint64_t elements;
    char window[ORIEL_RECORD_SHORT];
    char flavour[16];
    struct oriel_record_site here, other, opening;
    char missing[ORIEL_RECORD_LONG];
    char detail[ORIEL_RECORD_LONG];
    char stack[ORIEL_RECORD_STACK]; /* lines, where stacks were asked for */
    uint64_t count;                 /* how often it was found */
    uint64_t ranks[ORIEL_RECORD_RANKS / 64]; /* which ranks found it, a bit each */
};

/* Something that the summary counts beside the findings. */
struct oriel_record_count {
    char what[ORIEL_RECORD_SHORT];
    uint64_t count;
};

#endif
