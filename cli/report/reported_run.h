/* A run as the sums of its windows, whatever it was read from: the traces of `oriel run --trace`,
 * or the file of `oriel run --stats=FILE.json` or `oriel report --json`.  trace_statistics.c sums
 * traces, statistics_reader.c reads files. */
#ifndef ORIEL_CLI_REPORT_REPORTED_RUN_H
#define ORIEL_CLI_REPORT_REPORTED_RUN_H

#include "cli/report/trace_merge.h"
#include "cli/statistics.h"

#include <jansson.h>

struct oriel_reported_run {
    const char *path; /* as the user wrote it */
    struct oriel_statistics_head head;
    struct oriel_job_sum sum;    /* its strings are those of head, traces or file */
    struct oriel_traces *traces; /* NULL for a file */
    json_t *file;                /* NULL for traces */
};

/* Takes over traces. The sum is empty until oriel_reported_run_sum has read all events, which it
 * does for traces only. */
void oriel_reported_run_of_traces(const char *path, struct oriel_traces *traces,
                                  struct oriel_reported_run *out);
void oriel_reported_run_sum(struct oriel_reported_run *run);

bool oriel_statistics_file_is(const json_t *file);

/* Takes over file, for which oriel_statistics_file_is is true. Returns false, with a line on
 * complaints, when it cannot be used. Values that are missing or of another type are 0. */
bool oriel_reported_run_of_file(const char *path, json_t *file, FILE *complaints,
                                struct oriel_reported_run *out);

void oriel_reported_run_close(struct oriel_reported_run *run);

#endif
