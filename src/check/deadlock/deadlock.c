/* Decides whether ranks are deadlocked. A rank counts when its wait has been the same for some time
 * and its thread ran or slept during that time. By then every event on its way to the rank has
 * arrived. A stopped or starved rank does not count. Nor does a process with other threads that
 * could use MPI, or, if a rank of the node waits for a value, with any: it may store the value. */
#include "check/deadlock/deadlock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOKS = 4,
    /* Consecutive snapshots with the same number of deadlocked ranks. A rank that joins the
     * deadlock a little later is then reported with the others. */
    ALIKE = 3,
    TURNS = 8,
    RAN_NS = 20000000,
    SLOW = 5, /* times the patience where an uncounted message may be on its way */
    THREADS = 64,
};

bool oriel_deadlock_open(struct oriel_deadlock *finder, int world_size, uint64_t patience)
{
    *finder = (struct oriel_deadlock){.patience_ns = patience};
    finder->seen = calloc((size_t)(unsigned)world_size, sizeof *finder->seen);
    finder->set = calloc((size_t)(unsigned)world_size, sizeof *finder->set);
    return finder->seen != NULL && finder->set != NULL &&
           oriel_wait_snapshot_open(&finder->look, world_size);
}

void oriel_deadlock_close(struct oriel_deadlock *finder)
{
    oriel_wait_snapshot_close(&finder->look);
    free(finder->seen);
    free(finder->set);
}

/* --- waiting threads --- */

static bool proc_file_read(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "re");
    size_t len = file == NULL ? 0 : fread(text, 1, room - 1, file);
    text[len] = '\0';
    if (file != NULL)
        fclose(file);
    return len > 0;
}

/* Reads how long the thread ran and how often it was scheduled. */
static bool thread_turns_read(int32_t pid, int32_t tid, uint64_t *ran_ns, uint64_t *turns)
{
    char path[64];
    char text[128];
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, tid);
    return proc_file_read(path, text, sizeof text) &&
           sscanf(text, "%" SCNu64 " %*u %" SCNu64, ran_ns, turns) == 2;
}

/* Reads the letter of the thread's state. 'S': it sleeps until an event. */
static char thread_state_read(int32_t pid, int32_t tid)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    const char *end = proc_file_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (end == NULL || end[1] != ' ')
        return '?';
    return end[2];
}

static void seen_start(struct oriel_deadlock_seen *seen,
                       const struct oriel_wait_snapshot_rank *snapshot_rank, uint64_t now_ns)
{
    *seen = (struct oriel_deadlock_seen){.serial = snapshot_rank->serial, .since_ns = now_ns};
    if (snapshot_rank->state == ORIEL_DEADLOCK_SET_WAITS)
        thread_turns_read(snapshot_rank->record->pid, snapshot_rank->record->thread, &seen->ran_ns,
                          &seen->turns);
}

/* Whether the thread had the chance to proceed. */
static bool thread_had_turns(const struct oriel_deadlock_seen *seen,
                             const struct oriel_wait_record *record)
{
    uint64_t ran_ns = 0;
    uint64_t turns = 0;
    char state = thread_state_read(record->pid, record->thread);
    if (state != 'S' && state != 'R')
        return false;
    return state == 'S' || (thread_turns_read(record->pid, record->thread, &ran_ns, &turns) &&
                            (ran_ns - seen->ran_ns >= RAN_NS || turns - seen->turns >= TURNS));
}

/* Whether it is a thread of Oriel or the UCX thread of the first window over several nodes. Both
 * have known names. */
static bool is_internal_thread(int32_t pid, int32_t tid)
{
    char path[64];
    char text[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/comm", pid, tid);
    return proc_file_read(path, text, sizeof text) &&
           (strncmp(text, "oriel-", 6) == 0 || strcmp(text, "async\n") == 0);
}

/* Whether no other thread of the process could end a wait. any: threads without MPI could. */
static bool is_only_thread(const struct oriel_wait_record *record, bool any)
{
    int32_t threads[THREADS];
    if (!record->threads && !any)
        return true;
    int count = oriel_wait_threads_list(record->pid, threads, THREADS);
    for (int i = 0; i < count; i++) {
        bool known = threads[i] == record->thread || is_internal_thread(record->pid, threads[i]);
        for (uint32_t host = 0; host < record->host_threads_count && !known; host++)
            known = threads[i] == record->host_threads[host];
        if (!known)
            return false;
    }
    return count > 0;
}

/* --- snapshots --- */

static bool waits_for(const struct oriel_wait_noted *noted, enum oriel_need kind)
{
    for (uint32_t i = 0; i < noted->count && i < ORIEL_WAIT_NEEDS; i++)
        if ((noted->needs[i].kind & ~(uint32_t)ORIEL_NEED_MAYBE) == (uint32_t)kind)
            return true;
    return false;
}

static bool any_waits_for_value(const struct oriel_wait_snapshot *look)
{
    for (int rank = 0; rank < look->n; rank++)
        if (look->ranks[rank].state == ORIEL_DEADLOCK_SET_WAITS &&
            look->ranks[rank].record != NULL &&
            waits_for(&look->ranks[rank].record->noted, ORIEL_NEED_VALUE))
            return true;
    return false;
}

/* Whether the rank has waited long enough in a wait that only another rank can end. */
static bool is_steady_wait(const struct oriel_deadlock *finder,
                           const struct oriel_wait_snapshot_rank *snapshot_rank,
                           const struct oriel_deadlock_seen *seen, uint64_t now_ns, bool any_thread)
{
    if (snapshot_rank->state != ORIEL_DEADLOCK_SET_WAITS || seen->looks < LOOKS ||
        now_ns - seen->since_ns < finder->patience_ns)
        return false;
    /* a receive depends on a message that may be on its way uncounted */
    const bool is_slow = waits_for(&snapshot_rank->record->noted, ORIEL_NEED_RECEIVE);
    uint64_t patience_ns = finder->patience_ns * (is_slow ? SLOW : 1);
    return now_ns - seen->since_ns >= patience_ns &&
           thread_had_turns(seen, snapshot_rank->record) &&
           is_only_thread(snapshot_rank->record, any_thread);
}

/* Finds the ranks of this node that wait steadily, and marks their records for a process that looks
 * at all nodes. */
static bool node_ranks_look(struct oriel_deadlock *finder, uint64_t now_ns)
{
    bool any = false;
    oriel_wait_snapshot_states(&finder->look);
    const bool any_thread = any_waits_for_value(&finder->look);
    for (int rank = 0; rank < finder->look.n; rank++) {
        const struct oriel_wait_snapshot_rank *snapshot_rank = &finder->look.ranks[rank];
        struct oriel_deadlock_seen *seen = &finder->seen[rank];
        if (seen->serial == snapshot_rank->serial)
            seen->looks++;
        else
            seen_start(seen, snapshot_rank, now_ns);
        finder->set[rank] = is_steady_wait(finder, snapshot_rank, seen, now_ns, any_thread);
        if (snapshot_rank->record != NULL)
            atomic_store(&snapshot_rank->record->steady,
                         finder->set[rank] ? snapshot_rank->serial : 0);
        any = any || finder->set[rank];
    }
    return any;
}

static int deadlocked_ranks_find(struct oriel_deadlock *finder, uint64_t now_ns)
{
    bool any = node_ranks_look(finder, now_ns);
    if (finder->marks ||
        (finder->look.remote == NULL ? !any
                                     : !oriel_wait_snapshot_nodes(&finder->look, finder->set)))
        return 0;
    oriel_wait_snapshot_waits(&finder->look, finder->set);
    if (oriel_deadlock_set_find(&finder->look.graph, finder->set) == 0)
        return 0;
    oriel_wait_snapshot_recheck(&finder->look, finder->set);
    return oriel_deadlock_set_find(&finder->look.graph, finder->set);
}

int oriel_deadlock_find(struct oriel_deadlock *finder, uint64_t now_ns)
{
    int found = deadlocked_ranks_find(finder, now_ns);
    finder->alike = found == finder->found ? finder->alike + 1 : 1;
    finder->found = found;
    return finder->alike >= ALIKE ? found : 0;
}
