/* Whether findings count: comments in the source, the suppression file, the baseline. */
#ifndef ORIEL_CLI_CHECK_STANDING_H
#define ORIEL_CLI_CHECK_STANDING_H

#include "check/report/finding_record.h"
#include "base/helper_process.h"

struct oriel_suppression {
    char *rule;                               /* a pattern */
    char *function, *file, *library, *window; /* patterns; NULL: any */
    char *reason;
    unsigned line;
    unsigned used; /* findings that it has suppressed */
};

struct oriel_suppressions {
    struct oriel_suppression *items;
    size_t count;
    char *path;
};

/* Reads a suppression file. Returns NULL, or its errors, one line each, to be freed; out then has
 * the lines without errors. */
char *oriel_suppressions_read(const char *path, struct oriel_suppressions *out);

/* Reads a baseline, the output of --json. Returns NULL, or its error, to be freed. */
char *oriel_baseline_read(const char *path);

/* Reads the job's files, once. */
void oriel_standing_open(const struct oriel_helper_check *check);

/* Sets the standing and the reason of the finding, whose lines are known. */
void oriel_standing_decide(struct oriel_record_finding *record);

/* The errors of the files that oriel_standing_open has read, which `oriel check` refuses unless an
 * option in a settings file names them; NULL: none. */
const char *oriel_standing_problem(void);

/* The suppressions that oriel_standing_decide has used; NULL if there is no file. */
const struct oriel_suppressions *oriel_standing_suppressions(void);

/* A comment "oriel: allow RULE" at the finding's lines that has no reason, so does not count; NULL:
 * none. */
const struct oriel_code_address *
oriel_standing_no_reason(const struct oriel_record_finding *record);

#endif
