/* Which process of a job's node prints a message that several of them notice. */
#ifndef ORIEL_BASE_LOG_CLAIMS_H
#define ORIEL_BASE_LOG_CLAIMS_H

#include <stdbool.h>
#include <stdint.h>

enum oriel_log_claim {
    ORIEL_LOG_CLAIM_OWN,      /* this process prints it, now */
    ORIEL_LOG_CLAIM_REPEATED, /* this process has noticed it before */
    ORIEL_LOG_CLAIM_OTHER,    /* another process of the job on this node prints it */
};

enum oriel_log_kind {
    ORIEL_LOG_NOTE,
    ORIEL_LOG_WARNING,
    ORIEL_LOG_FATAL, /* ends the job; all numbers in the text are ignored, since ranks differ */
    ORIEL_LOG_LATE,  /* the same, after the rank that should have ended the job has not */
    ORIEL_LOG_REFUSAL,
};

/* Messages are the same if kind, site and text are equal. Numbers like 0x7f31 in the text are
 * ignored: addresses differ between processes. Never waits for another process. Warnings are
 * counted for oriel_log_claims_count. */
enum oriel_log_claim oriel_log_claim(enum oriel_log_kind kind, uint64_t site, const char *text);

/* Whether another process may ask for a message of this one. */
bool oriel_log_claims_any(void);

/* Calls print for each counted message of this process that others of the node have noticed, too,
 * with their number. Only processes of the same user count. */
void oriel_log_claims_count(void (*print)(int others, const char *text));

#endif
