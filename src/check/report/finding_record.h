/* A finding as text: stored in shared memory, sent to the `oriel` command for lines and its form,
 * and sent to rank 0 at the end. It has a fixed size and nothing that only one process could read.
 * No mpi.h here. */
#ifndef ORIEL_CHECK_REPORT_FINDING_RECORD_H
#define ORIEL_CHECK_REPORT_FINDING_RECORD_H

#include "base/code_address.h"

#include <stdint.h>

enum {
    ORIEL_RECORD_SHORT = ORIEL_CODE_ADDRESS_SHORT,
    ORIEL_RECORD_LONG = ORIEL_CODE_ADDRESS_LONG,
    ORIEL_RECORD_STACK = 2048,
    ORIEL_RECORD_RANKS = 1024, /* distinguished ranks; higher ranks are counted but not listed */
};

/* What an access does to the bytes of a finding. */
enum oriel_effect {
    ORIEL_EFFECT_NONE, /* not an access, or unknown */
    ORIEL_EFFECT_READS,
    ORIEL_EFFECT_WRITES,
    ORIEL_EFFECT_UPDATES, /* an accumulate */
    ORIEL_EFFECT_FREES,
    ORIEL_EFFECT_RETURNS, /* the function that had them on its stack has returned */
};

/* Whether a finding counts. The helper decides. */
enum oriel_standing {
    ORIEL_STANDING_COUNTS,
    ORIEL_STANDING_ALLOWED,    /* by a comment in the source */
    ORIEL_STANDING_SUPPRESSED, /* by the suppression file */
    ORIEL_STANDING_KNOWN,      /* by the baseline */
};

struct oriel_record_site {
    char call[40];   /* "MPI_Put"; "" for none */
    int32_t rank;    /* of MPI_COMM_WORLD */
    uint32_t effect; /* enum oriel_effect */
    char epoch[24];  /* of a call that opened one: "a shared lock"; "" */
    struct oriel_code_address place;
};

struct oriel_record_finding {
    uint32_t rule; /* enum oriel_rule */
    int32_t target;
    int64_t offset; /* this and the following as in struct oriel_finding */
    uint64_t len_bytes;
    int64_t element;
    uint64_t elements;
    int32_t device;
    char window[ORIEL_RECORD_SHORT];
    char flavour[16];
    struct oriel_record_site here, other, opening, other_opening, made, init, other_init;
    char help[ORIEL_RECORD_LONG];
    char detail[ORIEL_RECORD_LONG];
    char stack[ORIEL_RECORD_STACK];          /* lines, if stacks were requested */
    uint64_t count;                          /* occurrences */
    uint64_t ranks[ORIEL_RECORD_RANKS / 64]; /* ranks that found it, one bit each */
    uint32_t standing;                       /* enum oriel_standing */
    uint32_t repeats;                        /* 1: the helper has printed the same lines before */
    char
        reason[ORIEL_RECORD_LONG]; /* why it does not count: "legacy.supp:3: checked by hand"; "" */
};

/* An event that the summary counts besides the findings. */
struct oriel_record_count {
    char what[ORIEL_RECORD_SHORT];
    uint64_t count;
};

/* One of them. */
#define ORIEL_COUNT_PYTHON                                                                         \
    "Python processes, whose loads and stores of NumPy arrays are not watched"

#endif
