/* The processes of this node that use Oriel, found by their memory files: this user's own, or all
 * for root. The files are only read: nothing is written or mapped. Contents are data from another
 * process and are checked before use. */
#ifndef ORIEL_CLI_JOBS_H
#define ORIEL_CLI_JOBS_H

#include "observe/state/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of a process's wait when it was read. */
struct oriel_wait_seen {
    enum oriel_waiting what;
    int32_t rank;       /* win_rank, or -1 */
    int32_t world_rank; /* or -1 */
    uint64_t window_id;
    uint64_t turn;
    uint64_t since_ns;
    uint64_t looked_ns;
    uint32_t others;
    uint64_t ranks[ORIEL_STATE_RANKS / 64];
    char window_name[ORIEL_STATE_NAME];
    struct oriel_code_address place; /* the program's call, as the process knows it */
};

/* One record of a process's counters: of a window, or of one of its threads in it. */
struct oriel_record_seen {
    uint64_t offset; /* in the memory file */
    uint64_t window_id;
    uint32_t flavour;
    bool is_freed;
    char name[ORIEL_STATE_NAME]; /* "" if it has none, or in the record of a further thread */
    uint64_t operations, bytes;
    double operations_rate, bytes_rate; /* 0 before the second reading */
};

struct oriel_process {
    int32_t pid;
    uint64_t start_time;
    int fd; /* of its memory file */
    /* Owner of the memory file. A process of another user is not part of this job, whatever job
     * it claims. */
    uint32_t user;
    char why[160];  /* "", or why it cannot be read */
    bool has_state; /* it has created a window, or is creating its first */
    bool has_left;  /* it has called MPI_Finalize */
    bool has_ended;
    char run; /* state in /proc/<pid>/stat: R, S, D, T, t, Z */
    uint64_t job;
    int32_t world_rank; /* or -1 */
    int32_t world_size;
    char program[ORIEL_STATE_PROGRAM];
    char host[16];
    char host_version[ORIEL_HOST_VERSION];
    struct oriel_wait_seen wait;
    /* valid when counts is true */
    bool counts;
    uint64_t read_ns;
    uint64_t operations, bytes; /* totals */
    /* Per second, between the last two readings; below 0 before the second reading. */
    double operations_rate, bytes_rate;
    struct oriel_record_seen *records; /* the newest first */
    size_t records_count;
};

struct oriel_jobs {
    struct oriel_process *processes; /* sorted by job, user, world_rank, pid */
    size_t count;
};

/* Adds processes that are not in the list yet. */
void oriel_jobs_find(struct oriel_jobs *jobs);

/* Reads all listed processes again. Ended processes stay, with has_ended set. */
void oriel_jobs_read(struct oriel_jobs *jobs);

/* Removes jobs whose processes have all ended. */
void oriel_jobs_remove_ended(struct oriel_jobs *jobs);

void oriel_jobs_close(struct oriel_jobs *jobs);

/* The parent of a process, or 0. */
int32_t oriel_process_parent(int32_t pid);

/* True when the process pid, or a descendant of it, is in [first, end). */
bool oriel_jobs_has(const struct oriel_jobs *jobs, size_t first, size_t end, int32_t pid);

/* The end of the range that begins at first and has the same job and user. */
size_t oriel_jobs_end(const struct oriel_jobs *jobs, size_t first);

#endif
