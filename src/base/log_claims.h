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

/* Messages are the same if site and text are equal. Numbers like 0x7f31 in the text are ignored:
 * addresses differ between processes. Never waits for another process. is_counted: for
 * oriel_log_claims_count. */
enum oriel_log_claim oriel_log_claim(uint64_t site, const char *text, bool is_counted);

/* Whether another process may ask for a message of this one. */
bool oriel_log_claims_any(void);

/* Calls print for each counted message of this process that others of the node have noticed, too.
 * Each is counted once. */
void oriel_log_claims_count(void (*print)(int others, const char *text));

#endif
