/* The processes of this machine that have windows of Oriel, as their memory files show them to anybody who may look: the user's
 * own, for root all.  Nothing is written there and nothing is mapped: what lies in a file is read, checked, and taken for no more
 * than another process's word.  top*.c and watch.c call. */
#ifndef ORIEL_CLI_JOBS_H
#define ORIEL_CLI_JOBS_H

#include "observe/state/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a process was waiting for when it was read. */
struct oriel_wait_seen {
    enum oriel_waiting what;
    int32_t rank;       /* win_rank; -1 */
    int32_t world_rank; /* -1 */
    uint64_t window_id;
    uint64_t turn;
    uint64_t since_ns;
    uint64_t looked_ns;
    uint32_t others;
    uint64_t ranks[ORIEL_STATE_RANKS / 64];
    char window_name[ORIEL_STATE_NAME];
};

struct oriel_process {
    int32_t pid;
    uint64_t start_time;
    int fd; /* its memory file */
    uint32_t
        user; /* whose file that is: what another user's process says of its job does not make it part of this one */
    char why[160];  /* "", or why it cannot be read */
    bool has_state; /* it has made a window, or is making its first */
    bool has_left;  /* it has finalised MPI */
    bool has_ended;
    char run; /* of /proc/<pid>/stat: R, S, D, T, t, Z */
    uint64_t job;
    int32_t world_rank; /* -1 */
    int32_t world_size;
    char program[ORIEL_STATE_PROGRAM];
    char host[16];
    struct oriel_wait_seen wait;
    /* where operations are counted */
    bool counts;
    uint64_t read_ns;
    uint64_t operations, bytes; /* so far */
    double operations_rate,
        bytes_rate; /* per second, between the last two readings; below 0 before there were two */
};

struct oriel_jobs {
    struct oriel_process *processes; /* by job, user, world_rank, pid */
    size_t count;
};

/* Finds processes that are not known yet. */
void oriel_jobs_find(struct oriel_jobs *jobs);

/* Reads all that are known anew.  Those that have ended stay, marked so. */
void oriel_jobs_read(struct oriel_jobs *jobs);

/* Forgets those that have ended, whose jobs have no process left. */
void oriel_jobs_forget(struct oriel_jobs *jobs);

void oriel_jobs_close(struct oriel_jobs *jobs);

/* Parent of a process, or 0. */
int32_t oriel_process_parent(int32_t pid);

/* Whether the process, or one that it has started, is among those from first to before end. */
bool oriel_jobs_has(const struct oriel_jobs *jobs, size_t first, size_t end, int32_t pid);

/* The last of the same job and user from first on, and one more. */
size_t oriel_jobs_end(const struct oriel_jobs *jobs, size_t first);

#endif
