/* A group: the windows with one name that one line created. Diagnoses see their sum, since a
 * program may create a window in a loop. Windows that share one sum are a group of their own,
 * unless only one line can have created them. */
#ifndef ORIEL_CLI_VERDICT_GROUP_H
#define ORIEL_CLI_VERDICT_GROUP_H

#include "cli/statistics.h"

struct oriel_window_group {
    uint32_t number;
    uint32_t first; /* of its windows; index in the job's */
    uint64_t windows;
    struct oriel_sum operations[ORIEL_COUNTED_OPERATIONS];
    struct oriel_sum paths[ORIEL_COUNTED_PATHS];
    struct oriel_time_sum calls[ORIEL_COUNTED_CALLS]; /* without the longest */
    uint64_t causes_ns[ORIEL_COUNTED_CAUSES];
    /* by rank in MPI_COMM_WORLD: the time that others waited for it */
    uint64_t (*caused_ns)[ORIEL_COUNTED_CAUSES];
    /* of the first memory that is reached by copies or by the host */
    const struct oriel_member_sum *slow;
};

/* One group at a time: a job may have many windows, and each group a figure for each rank. */
struct oriel_window_groups {
    const struct oriel_job_sum *job;
    uint32_t *order;     /* of the windows: those of a group follow each other */
    uint32_t *of_window; /* by window: the number of its group */
    size_t next;         /* in order */
    /* of windows that share one sum; "": unknown */
    char shared_site[ORIEL_CODE_ADDRESS_TEXT];
    const char *shared_name; /* of those; "": none, or several */
    struct oriel_window_group now;
};

void oriel_window_groups_open(const struct oriel_job_sum *job, struct oriel_window_groups *out);
/* Sums the next group, which is now. Returns false after the last one. */
bool oriel_window_groups_next(struct oriel_window_groups *groups);
void oriel_window_groups_close(struct oriel_window_groups *groups);

/* The call site with most of the waiting time, or else of the time, of the group's calls of this
 * kind. NULL if none is known to have half of it. */
const struct oriel_site_sum *oriel_window_group_site(const struct oriel_window_groups *groups,
                                                     uint8_t kind, bool by_waiting);

enum { ORIEL_WINDOW_TITLE = ORIEL_CODE_ADDRESS_TEXT + 32 };

/* "\"halo\"", "the windows of main at app.c:12", "window 3" in out. */
const char *oriel_window_group_title(const struct oriel_window_groups *groups,
                                     char out[ORIEL_WINDOW_TITLE]);

#endif
