/* Findings in the checker's shared memory, and the steps from there to the user, as shared by the
 * files of this folder. */
#ifndef ORIEL_CHECK_REPORT_FINDING_INTERNAL_H
#define ORIEL_CHECK_REPORT_FINDING_INTERNAL_H

#include "base/helper_process.h"
#include "check/report/finding.h"
#include "check/report/report_text.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    ORIEL_FINDINGS = 1024,          /* distinct findings on one node */
    ORIEL_FINDINGS_PRINTED = 100,   /* texts of findings on one node */
    ORIEL_FINDING_COUNTS = 64,      /* texts of oriel_finding_count */
    ORIEL_FINDING_PROCESSES = 1024, /* processes of one node whose ends are awaited */
    ORIEL_FINDINGS_STATUS = 86,     /* exit status of a job with findings */
};

/* A finding. Its hash is in struct oriel_findings; record is complete before the process that
 * reported it continues. */
struct oriel_finding_entry {
    _Atomic uint64_t count;
    _Atomic uint64_t ranks[ORIEL_RECORD_RANKS / 64];
    struct oriel_record_finding record; /* without count and ranks */
};

/* In shared memory. The lock guards additions to the three lists; entries are read without it. */
struct oriel_findings {
    struct oriel_shm_lock lock;
    _Atomic uint32_t used;    /* entries; each with its hash */
    _Atomic uint32_t counted; /* counts */
    _Atomic uint32_t processes_used;
    _Atomic uint32_t local_watched;
    _Atomic uint64_t lost;    /* findings that found no free entry */
    _Atomic uint32_t printed; /* texts of findings so far */
    _Atomic uint32_t taken;   /* 1: a process has sent all this to rank 0, or has written it */
    /* findings of the job, once merged at rank 0, or of this node, once written */
    _Atomic uint32_t total;
    _Atomic uint32_t met;     /* 1: findings were merged in MPI_Finalize */
    _Atomic uint32_t written; /* 1: the summary of this node alone was written */
    _Atomic uint64_t helper; /* finds lines for all processes of the node (base/helper_process.h) */
    /* running processes: identity words; 0: ended */
    _Atomic uint64_t processes[ORIEL_FINDING_PROCESSES];
    _Atomic uint64_t hashes[ORIEL_FINDINGS];
    struct {
        _Atomic uint64_t count;
        char what[ORIEL_RECORD_SHORT];
    } counts[ORIEL_FINDING_COUNTS];
    struct oriel_finding_entry entries[ORIEL_FINDINGS];
};

/* The findings of this node; NULL before the checker starts. */
struct oriel_findings *oriel_findings(void);

/* The number, severity and title of a rule. */
struct oriel_rule_text {
    const char *number, *severity, *title;
};
const struct oriel_rule_text *oriel_rule_text(uint32_t rule);

/* Reads the current state of an entry. */
void oriel_record_read(const struct oriel_finding_entry *entry, struct oriel_record_finding *out);

/* Adds what is known of a finding without the `oriel` command. */
void oriel_text_finding(struct oriel_text *text, const struct oriel_record_finding *record);

/* Summary of the job, or of this node alone; records are merged in place. */
struct oriel_summary {
    struct oriel_record_finding *records;
    uint32_t records_count;
    struct oriel_record_count *counts;
    uint32_t counts_count;
    uint64_t lost;
    int ranks; /* of the job */
    int local_watched;
    int complete; /* all ranks have called MPI_Finalize */
};

/* Has the helper write the summary and the files. Returns the number of findings that count. */
uint32_t oriel_summary_write(struct oriel_summary *summary);

/* Whether this process has printed a finding. */
bool oriel_finding_has_printed(void);

/* Waits until the launcher has read this process's standard error, for 2 s at most. */
void oriel_summary_wait_for_reader(void);

/* Fills in the options of this job. */
void oriel_finding_options(struct oriel_helper_check *out);

/* Collects this node's part in memory from malloc. Records and counts are 0 when memory is
 * exhausted. */
void oriel_summary_collect(struct oriel_summary *out);

/* Adds this process to those whose ends are awaited. */
void oriel_exit_status_enter(void);

#endif
