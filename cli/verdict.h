/* The verdict on a run: how much of its time was spent in window calls, and what a person can do
 * about that. It is the same for counted and for traced runs.  verdict.c has the diagnoses,
 * verdict_group.c the sums that they see, verdict_write.c the output. */
#ifndef ORIEL_CLI_VERDICT_H
#define ORIEL_CLI_VERDICT_H

#include "cli/statistics.h"

enum { ORIEL_VERDICT_TEXT = 768, ORIEL_VERDICT_NOTES = 4 };

/* What costs time, in one place. Texts are sentences without a full stop. */
struct oriel_diagnosis {
    const char *name;                   /* its key: "late_rank" */
    uint64_t cost_ns;                   /* the sum over all ranks */
    uint32_t window;                    /* the first of its windows; index */
    uint64_t windows;                   /* how many */
    int32_t rank;                       /* that causes it, in MPI_COMM_WORLD; -1: no single one */
    char problem[ORIEL_VERDICT_TEXT];   /* with its figures */
    char remedy[ORIEL_VERDICT_TEXT];    /* "" if unknown */
    char site[ORIEL_CODE_ADDRESS_TEXT]; /* the line of most of the cost; "" */
};

struct oriel_verdict {
    uint64_t ran_ns; /* the run, without pauses on average; 0: unknown */
    uint64_t all_ns; /* of all ranks together, without pauses */
    uint64_t calls_ns, waiting_ns;
    /* What is missing in all of this: sentences without a full stop. */
    char notes[ORIEL_VERDICT_NOTES][ORIEL_VERDICT_TEXT];
    size_t notes_count;
    struct oriel_diagnosis *diagnoses; /* the highest cost first */
    size_t count;
};

void oriel_verdict_make(const struct oriel_job_sum *job, struct oriel_verdict *out);
void oriel_verdict_free(struct oriel_verdict *verdict);

/* Makes the verdict and prints its first sentences, in lines of at most width columns. */
void oriel_verdict_print(const struct oriel_job_sum *job, int width, FILE *out);

/* Makes the verdict and returns the object of docs/reference/file-formats.md. */
json_t *oriel_verdict_json(const struct oriel_job_sum *job);

#endif
