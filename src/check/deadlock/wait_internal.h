/* The layout of waits in the checker's shared memory. A process writes only its own record; its
 * needs change only while its serial is even. */
#ifndef ORIEL_CHECK_DEADLOCK_WAIT_INTERNAL_H
#define ORIEL_CHECK_DEADLOCK_WAIT_INTERNAL_H

#include "check/deadlock/wait_records.h"

#include <stdatomic.h>

enum {
    ORIEL_WAIT_NEEDS = 32,
    ORIEL_WAIT_NAME = 128,
    ORIEL_WAIT_BUCKETS = 16, /* of peers */
    ORIEL_WAIT_THREADS = 32, /* of a host */
    ORIEL_COLLECTIVE_PROGRESS_CALLS = 16,
    /* maximum members of a window whose locks are recorded */
    ORIEL_COLLECTIVE_PROGRESS_LOCKS = 512,
};

enum oriel_wait_state { ORIEL_STATE_NONE, ORIEL_STATE_RUNS, ORIEL_STATE_FINISHED };

struct oriel_wait_noted {
    struct oriel_site site; /* of the call; of MPI_Finalize once finished */
    char name[ORIEL_WAIT_NAME];
    uint32_t mode;
    uint32_t count;
    struct oriel_wait_need needs[ORIEL_WAIT_NEEDS];
};

struct oriel_wait_record {
    _Atomic uint64_t serial; /* odd: waits; each value is another wait, or none */
    /* the serial that has lasted long enough, as seen by the deadlock thread of this node; 0: none
     */
    _Atomic uint64_t steady;
    _Atomic uint32_t state; /* enum oriel_wait_state */
    _Atomic int32_t thread; /* the kernel's id of the first thread that waited */
    _Atomic uint32_t many;  /* another thread has waited too: nothing is recorded any more */
    uint32_t threads;       /* the program may call MPI from several threads */
    uint64_t process;       /* identity word of the process */
    int32_t pid;
    uint32_t host_threads_count;
    int32_t host_threads[ORIEL_WAIT_THREADS];
    _Atomic int32_t sending[ORIEL_WAIT_BUCKETS]; /* by peer % ORIEL_WAIT_BUCKETS */
    _Atomic int32_t receiving[ORIEL_WAIT_BUCKETS];
    _Atomic int32_t receiving_any;
    struct oriel_wait_noted noted;
};

struct oriel_wait_table {
    oriel_shm_offset records[1]; /* by rank of MPI_COMM_WORLD; 0: not a rank of this node */
};

struct oriel_collective_progress_slot {
    _Atomic uint64_t number;    /* of the member's last call */
    _Atomic int32_t world_rank; /* rank plus 1 */
    _Atomic uint32_t last;      /* the member is in the call that frees the object */
    _Atomic uint16_t calls[ORIEL_COLLECTIVE_PROGRESS_CALLS]; /* by number */
    _Atomic uint16_t lock_site; /* number of the call of the member's last lock; 0: none */
    uint16_t pad[7];
};
_Static_assert(sizeof(struct oriel_collective_progress_slot) == 64,
               "each member writes a line of its own");

struct oriel_collective_progress {
    int32_t n;
    uint32_t is_window;
    uint32_t has_locks;
    _Atomic uint32_t left;
    uint64_t id;
    uint32_t members_here; /* members on this node; other nodes have records of their own */
    uint32_t unused[9];
    struct oriel_collective_progress_slot slots[];
    /* with has_locks: n rows of n + 1 bytes, the enum oriel_holding of a member for each target and
     * for all */
};
_Static_assert(sizeof(struct oriel_collective_progress) == 64, "slots begin lines");

static inline size_t oriel_collective_progress_bytes(int n, bool has_locks)
{
    size_t members = (size_t)(unsigned)n;
    return sizeof(struct oriel_collective_progress) +
           members * sizeof(struct oriel_collective_progress_slot) +
           (has_locks ? members * (members + 1) : 0);
}

static inline _Atomic uint8_t *
oriel_collective_progress_holds(const struct oriel_collective_progress *progress, int member,
                                int target)
{
    size_t n = (size_t)(unsigned)progress->n;
    _Atomic uint8_t *rows = (_Atomic uint8_t *)(void *)(uintptr_t)(progress->slots + n);
    return &rows[(size_t)(unsigned)member * (n + 1) + (target < 0 ? n : (size_t)(unsigned)target)];
}

struct oriel_key oriel_wait_table_key(void);

/* --- for readers on other nodes --- */

/* A rank that waits steadily or has finished, and its record, unchanged all that time. */
struct oriel_wait_report {
    int32_t rank;
    uint32_t state; /* enum oriel_deadlock_set_state */
    uint64_t serial;
    struct oriel_wait_record record;
};

/* Copies the reports of this node; returns their number. */
size_t oriel_wait_reports(struct oriel_wait_report *out, size_t room);

/* Copies this node's progress record if it fits. Returns its size in bytes; 0: there is none. */
size_t oriel_collective_progress_copy(uint64_t id, bool is_window, void *out, size_t room_bytes);

/* Whether the key of a need was given in this node's shared memory. True also where giving may have
 * found no room, or message numbers are in doubt. */
bool oriel_wait_is_given(const struct oriel_key *key);

/* Lists the threads of a process of this node. Returns -1 where the system does not list them, or
 * there are more than room. */
int oriel_wait_threads_list(int32_t pid, int32_t *threads, int room);

/* Whether the process of the record has died. False if that cannot be found out. */
bool oriel_wait_record_has_died(const struct oriel_wait_record *record);

#endif
