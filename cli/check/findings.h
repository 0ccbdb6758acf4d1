/* The forms of a job's findings. Each function writes one file and returns "" or the reason for
 * failure, to be freed. */
#ifndef ORIEL_CLI_CHECK_FINDINGS_H
#define ORIEL_CLI_CHECK_FINDINGS_H

#include "base/helper_process.h"
#include "check/report/finding_record.h"

/* A job with its findings. */
struct oriel_checked_job {
    const struct oriel_helper_check *head;
    const struct oriel_record_finding *records; /* head->findings */
    const struct oriel_record_count *counts;    /* head->counts */
};

char *oriel_findings_write_json(const struct oriel_checked_job *job, const char *path);
char *oriel_findings_write_sarif(const struct oriel_checked_job *job, const char *path);
char *oriel_findings_write_junit(const struct oriel_checked_job *job, const char *path);

/* "allowed", "suppressed", "known"; "" for a finding that counts. */
const char *oriel_standing_name(const struct oriel_record_finding *record);

#endif
