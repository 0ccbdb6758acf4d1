/* What the files about findings share: how findings stand in the board, and the steps from there to the user.
 * finding.c, report_text.c, summary.c and exit_status.c alone include this. */
#ifndef ORIEL_CHECK_REPORT_FINDING_INTERNAL_H
#define ORIEL_CHECK_REPORT_FINDING_INTERNAL_H

#include "check/report/finding.h"
#include "check/report/finding_record.h"

#include <stdatomic.h>
#include <stddef.h>

enum {
    ORIEL_FINDINGS = 256,           /* that are told apart on one machine */
    ORIEL_FINDING_COUNTS = 64,      /* texts of oriel_finding_count */
    ORIEL_FINDING_PROCESSES = 1024, /* of one machine that are waited for at the end */
    ORIEL_FINDINGS_STATUS = 86,     /* of a job with findings */
};

/* One finding.  Which one it is stands in struct findings; record is complete before the process that told it goes on. */
struct oriel_finding_entry {
    _Atomic uint64_t count;
    _Atomic uint64_t ranks[ORIEL_RECORD_RANKS / 64];
    struct oriel_record_finding record; /* without count and ranks */
};

/* In the board.  lock guards what is added to the three lists; what is in them is read without it. */
struct oriel_findings {
    struct oriel_shm_lock lock;
    _Atomic uint32_t used;    /* entries; each with its hash */
    _Atomic uint32_t counted; /* counts */
    _Atomic uint32_t processes_used;
    _Atomic uint32_t local_watched;
    _Atomic uint64_t lost;  /* found when there was no entry left */
    _Atomic uint32_t taken; /* 1: a process has taken all this to rank 0, or has written it */
    _Atomic uint32_t
        total; /* findings of the job, once they have met at rank 0, or of this machine, once written */
    _Atomic uint32_t met;     /* 1: they have, in MPI_Finalize */
    _Atomic uint32_t written; /* 1: the summary of this machine alone has been */
    _Atomic uint64_t
        helper; /* who finds lines for all processes of the machine (base/helper_process.h) */
    _Atomic uint64_t processes
        [ORIEL_FINDING_PROCESSES]; /* who still runs: identity's words; 0 of one that has ended */
    _Atomic uint64_t hashes[ORIEL_FINDINGS];
    struct {
        _Atomic uint64_t count;
        char what[ORIEL_RECORD_SHORT];
    } counts[ORIEL_FINDING_COUNTS];
    struct oriel_finding_entry entries[ORIEL_FINDINGS];
};

/* This machine's; NULL where the checker has not started. */
struct oriel_findings *oriel_findings(void);

/* The number and title of a rule, and its remedy. */
struct oriel_rule_text {
    const char *number, *title, *remedy;
};
const struct oriel_rule_text *oriel_rule_text(uint32_t rule);

/* What an entry says by now. */
void oriel_record_read(const struct oriel_finding_entry *entry, struct oriel_record_finding *out);

/* Texts in a buffer that never grows: what does not fit is left out.  Every line of the user's begins with "oriel:". */
struct oriel_text {
    char *bytes;
    size_t room, used;
};
void oriel_text_add(struct oriel_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* All of a finding, and the one line of it in the summary. */
void oriel_text_finding(struct oriel_text *text, const struct oriel_record_finding *record);
void oriel_text_finding_brief(struct oriel_text *text, const struct oriel_record_finding *record);

/* "at app.c:12 in main"; how a place is called. */
void oriel_text_place(struct oriel_text *text, const struct oriel_code_address *place);

/* To the standard error, by one write. */
void oriel_text_write(const struct oriel_text *text);

/* A job's, or of this machine alone; records are merged in place. */
struct oriel_summary {
    struct oriel_record_finding *records;
    uint32_t records_count;
    struct oriel_record_count *counts;
    uint32_t counts_count;
    uint64_t lost;
    int ranks; /* of the job */
    int local_watched;
    int complete; /* all ranks have come to MPI_Finalize */
};

/* Writes it, and the JSON. */
void oriel_summary_write(struct oriel_summary *summary);

/* This machine's part, in memory of malloc; 0 records and counts when that is exhausted. */
void oriel_summary_collect(struct oriel_summary *out);

/* Enters this process among those whose ends are waited for. */
void oriel_ending_enter(void);

#endif
