/* Makes the records of windows, in the memory file of this process, and finds a window's from its handle.  A record is whole
 * before anybody can find it, and stays; struct oriel_observed goes with its window.  The entries of creation.c and what writes
 * the records call. */
#include "observe/count.h"

#include "base/log.h"
#include "base/options.h"
#include "base/table.h"
#include "host/host.h"
#include "memory/file.h"
#include "window/handle.h"
#include "window/objects.h"
#include "window/paths.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct oriel_observed_recent oriel_observed_recent;

static struct oriel_table table = ORIEL_TABLE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t newest; /* offset of the newest record; 0: none */
static unsigned records_count;
static struct oriel_window_record *crowd; /* the one of all windows that came too late to have their own */

struct oriel_observed *oriel_observed_find_slow(MPI_Win win)
{
    uint64_t generation = oriel_recent_begin();
    uint64_t key = (uint64_t)(uintptr_t)win;
    struct oriel_observed *observed = oriel_table_find(&table, key);
    if (observed != NULL)
        oriel_observed_recent = (struct oriel_observed_recent){generation, key, observed};
    return observed;
}

struct oriel_window_record *oriel_records_newest(void)
{
    return newest == 0 ? NULL : (struct oriel_window_record *)(oriel_file_base() + newest);
}

/* --- paths --- */

/* Of operations on the memory of each rank. */
static uint8_t path_to(const struct oriel_window *window, int32_t target)
{
    if (window == NULL)
        return ORIEL_PATH_host;
    switch (window->targets[target].mechanism) {
    case ORIEL_BY_NETWORK:
        return ORIEL_PATH_ucx;
    case ORIEL_BY_ARENA:
        return oriel_load_relaxed(&oriel_window_control(window, target)->promoted) ? ORIEL_PATH_promoted : ORIEL_PATH_direct;
    case ORIEL_BY_COPY:
        return target == window->rank ? ORIEL_PATH_direct : window->by_agent ? ORIEL_PATH_agent : ORIEL_PATH_cma;
    default:
        return ORIEL_PATH_BY_PLACE;
    }
}

static void keep_reason(struct oriel_window_record *record, const char *reason)
{
    snprintf(record->reason, sizeof record->reason, "%.*s", ORIEL_RECORD_REASON - 1, reason);
}

/* The slowest way that others take: the one that has a reason. */
void oriel_observed_set_path(struct oriel_observed *observed)
{
    static const struct {
        const char *way;
        enum oriel_counted_path path;
    } ways[] = {{"agent", ORIEL_PATH_agent},
                {"cma", ORIEL_PATH_cma},
                {"promoted", ORIEL_PATH_promoted},
                {"arena", ORIEL_PATH_direct},
                {"ucx", ORIEL_PATH_ucx}};
    struct oriel_window_record *record = observed->record;
    if (observed->window == NULL) {
        record->own_path = ORIEL_PATH_host;
        keep_reason(record, oriel_options()->bypass ? "ORIEL_BYPASS" : oriel_fail_message());
        return;
    }
    struct oriel_paths paths = oriel_paths_of(observed->window);
    record->own_path = ORIEL_PATH_direct;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (strstr(paths.ways, ways[i].way) != NULL) {
            record->own_path = (uint8_t)ways[i].path;
            break;
        }
    keep_reason(record, paths.reason);
}

/* --- the world --- */

/* The window's ranks in MPI_COMM_WORLD, which programs that only have sessions lack. */
static void find_world_ranks(MPI_Group group, int n, int32_t *ranks)
{
    const struct oriel_host_calls *host = oriel_host();
    MPI_Group world = MPI_GROUP_NULL;
    int *own = malloc((unsigned)n * sizeof *own);
    bool known = own != NULL && host->Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS;
    for (int i = 0; own != NULL && i < n; i++)
        own[i] = i;
    known = known && host->Group_translate_ranks(group, n, own, world, ranks) == MPI_SUCCESS;
    for (int i = 0; i < n; i++)
        if (!known || ranks[i] == MPI_UNDEFINED)
            ranks[i] = -1;
    if (world != MPI_GROUP_NULL)
        host->Group_free(&world);
    free(own);
}

/* A window that is the host's has no number that its ranks share; what they share is who they are, and how many such windows they
 * have made: their creations are collective, and come in one order. */
static uint64_t id_of_hosts(const int32_t *ranks, int n)
{
    static struct {
        uint64_t hash;
        uint64_t count;
    } kept[ORIEL_RECORDS_MOST];
    uint64_t hash = (uint64_t)n;
    for (int i = 0; i < n; i++)
        hash = (hash ^ (uint32_t)ranks[i]) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    unsigned at = 0;
    while (at < ORIEL_RECORDS_MOST - 1 && kept[at].count != 0 && kept[at].hash != hash)
        at++;
    kept[at].hash = hash;
    return hash + ++kept[at].count;
}

/* --- records --- */

/* One whose offsets are set, with room for n ranks. */
static struct oriel_window_record *make_record(int n)
{
    uint64_t offset;
    size_t toward_bytes = (unsigned)n * sizeof(struct oriel_toward);
    size_t ranks_bytes = (unsigned)n * sizeof(int32_t);
    size_t record_bytes = (sizeof(struct oriel_window_record) + ORIEL_CACHE_LINE - 1) & ~(size_t)(ORIEL_CACHE_LINE - 1);
    if (oriel_file_start() != ORIEL_OK ||
        oriel_file_alloc(record_bytes + toward_bytes + ranks_bytes, ORIEL_CACHE_LINE, &offset) != ORIEL_OK)
        return NULL;
    struct oriel_window_record *record = (struct oriel_window_record *)(oriel_file_base() + offset);
    record->n = n;
    record->toward = n > 0 ? offset + record_bytes : 0;
    record->ranks = n > 0 ? record->toward + toward_bytes : 0;
    return record;
}

static void publish(struct oriel_window_record *record)
{
    record->next = newest;
    atomic_store_explicit(&record->state, 1, memory_order_release);
    newest = (uint64_t)((char *)record - oriel_file_base());
    oriel_state_set_records(newest);
}

/* The one that all later windows share, which has no ranks. */
static struct oriel_window_record *join_crowd(void)
{
    if (crowd == NULL && (crowd = make_record(0)) != NULL)
        publish(crowd);
    if (crowd != NULL)
        crowd->shared_by++;
    return crowd;
}

static void fill(struct oriel_window_record *record, const struct oriel_observed *observed, MPI_Group group, int rank,
                 const struct oriel_observed_creation *creation)
{
    int32_t *ranks = (int32_t *)(oriel_file_base() + record->ranks);
    find_world_ranks(group, record->n, ranks);
    record->rank = rank;
    record->flavour = creation->flavour;
    record->size_bytes = creation->size_bytes;
    record->window_id = observed->window != NULL ? observed->window->id : id_of_hosts(ranks, record->n);
}

static struct oriel_window_record *give_record(struct oriel_observed *observed, MPI_Group group, int rank,
                                               const struct oriel_observed_creation *creation)
{
    if (records_count >= ORIEL_RECORDS_MOST)
        return join_crowd();
    struct oriel_window_record *record = make_record((int)observed->n);
    if (record == NULL)
        return NULL;
    records_count++;
    observed->record = record;
    fill(record, observed, group, rank, creation);
    oriel_observed_set_path(observed);
    oriel_sites_keep(record);
    publish(record);
    if (observed->window != NULL)
        atomic_store_explicit(&observed->window->control->record_offset, newest, memory_order_release);
    return record;
}

static bool keep(MPI_Win win, struct oriel_observed *observed, MPI_Group group, int rank,
                 const struct oriel_observed_creation *creation)
{
    pthread_mutex_lock(&mutex);
    observed->record = give_record(observed, group, rank, creation);
    pthread_mutex_unlock(&mutex);
    if (observed->record == NULL)
        return false;
    observed->toward = observed->record->toward != 0
                           ? (struct oriel_toward *)(oriel_file_base() + observed->record->toward)
                           : calloc(observed->n, sizeof *observed->toward); /* told to nobody */
    return observed->toward != NULL && oriel_table_set(&table, (uint64_t)(uintptr_t)win, observed);
}

static void count_creation(struct oriel_window_record *record, const struct oriel_observed_creation *creation)
{
    struct oriel_timed *timed = &record->calls[ORIEL_CALL_OF_create];
    oriel_count(&timed->count, 1);
    oriel_count(&timed->time_ns, creation->time_ns);
    oriel_count(&timed->waiting_ns, creation->waiting_ns);
    oriel_count(&timed->waited, creation->waiting_ns != 0);
    oriel_count_most(&timed->longest_ns, creation->waiting_ns);
}

void oriel_observed_add(MPI_Win win, const struct oriel_observed_creation *creation)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const struct oriel_host_calls *host = oriel_host();
    struct oriel_window *window = oriel_handle_find(win);
    int n = 0;
    int rank = 0;
    MPI_Group group = MPI_GROUP_NULL;
    if (host->Comm_size(creation->comm, &n) != MPI_SUCCESS || host->Comm_rank(creation->comm, &rank) != MPI_SUCCESS ||
        host->Comm_group(creation->comm, &group) != MPI_SUCCESS)
        return;
    struct oriel_observed *observed = calloc(1, sizeof *observed + (unsigned)n);
    if (observed != NULL) {
        *observed = (struct oriel_observed){.window = window, .n = (uint32_t)n};
        observed->is_quick = window != NULL && window->far == NULL && !window->by_agent;
        for (int i = 0; i < n; i++)
            observed->paths[i] = path_to(window, i);
    }
    if (observed != NULL && keep(win, observed, group, rank, creation)) {
        count_creation(observed->record, creation);
    } else {
        free(observed);
        if (!atomic_flag_test_and_set(&told))
            oriel_warn("no room for what is counted of a window: it is missing in the statistics");
    }
    host->Group_free(&group);
}

void oriel_observed_remove(MPI_Win win, struct oriel_observed *observed)
{
    oriel_table_remove(&table, (uint64_t)(uintptr_t)win, observed);
    oriel_recent_invalidate();
    if (observed->record->shared_by == 0)
        atomic_store_explicit(&observed->record->state, 2, memory_order_release);
    else
        free(observed->toward);
    free(observed);
}
