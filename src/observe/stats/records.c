/* Creates the records of windows in this process's memory file, and finds a window's record by its
 * handle. A record is complete before any reader can find it, and is never freed; struct
 * oriel_observed ends with its window. */
#include "observe/stats/observed_window.h"

#include "observe/stats/pause.h"
#include "observe/stats/process_record.h"
#include "observe/stats/site_places.h"

#include "base/hash_table.h"
#include "base/log.h"
#include "host/host.h"
#include "memory/file.h"
#include "window/handle.h"
#include "window/holders.h"
#include "window/host_objects.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct oriel_observed_recent oriel_observed_recent;

static struct oriel_hash_table table = ORIEL_HASH_TABLE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t newest; /* offset of the newest record; 0: none */
static unsigned records_count;
/* the shared record of all windows beyond the limit */
static struct oriel_window_record *shared_record;

uint64_t oriel_records_newest(void)
{
    return newest;
}

void oriel_records_visit(void (*visit)(const struct oriel_window_record *record, void *context),
                         void *context)
{
    pthread_mutex_lock(&mutex);
    for (uint64_t offset = newest; offset != 0;) {
        const struct oriel_window_record *record = (const void *)(oriel_file_base() + offset);
        visit(record, context);
        offset = record->next;
    }
    pthread_mutex_unlock(&mutex);
}

/* --- records --- */

/* Creates a record whose offsets are set, with room for n ranks. */
static struct oriel_window_record *record_alloc(int n)
{
    uint64_t offset, sites;
    size_t toward_bytes = (unsigned)n * sizeof(struct oriel_toward);
    size_t ranks_bytes = (unsigned)n * sizeof(int32_t);
    size_t record_bytes = (sizeof(struct oriel_window_record) + ORIEL_CACHE_LINE - 1) &
                          ~(size_t)(ORIEL_CACHE_LINE - 1);
    if (oriel_file_start() != ORIEL_OK ||
        oriel_file_alloc_sparse(sizeof(struct oriel_site_table), &sites) != ORIEL_OK ||
        oriel_file_alloc(record_bytes + toward_bytes + ranks_bytes, ORIEL_CACHE_LINE, &offset) !=
            ORIEL_OK)
        return NULL;
    struct oriel_window_record *record = (struct oriel_window_record *)(oriel_file_base() + offset);
    record->n = n;
    record->is_gathered = oriel_observe_gathers;
    record->sites = sites;
    record->toward = n > 0 ? offset + record_bytes : 0;
    record->ranks = n > 0 ? record->toward + toward_bytes : 0;
    return record;
}

static void record_publish(struct oriel_window_record *record)
{
    record->next = newest;
    record->places = oriel_site_places_offset();
    record->process = oriel_process_record_offset();
    atomic_store_explicit(&record->state, 1, memory_order_release);
    newest = (uint64_t)((char *)record - oriel_file_base());
    oriel_state_set_records(newest);
}

/* --- threads --- */

static unsigned thread_number(void)
{
    static _Atomic unsigned numbers;
    static _Thread_local unsigned number; /* from 1; 0: none yet */
    if (!oriel_observe_threads)
        return 0;
    if (number == 0)
        number = 1 + atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
    return number < ORIEL_COUNTING_THREADS ? number - 1 : ORIEL_COUNTING_THREADS - 1;
}

static struct oriel_site_table *sites_of(const struct oriel_window_record *record)
{
    return (struct oriel_site_table *)(oriel_file_base() + record->sites);
}

/* Creates the record of another thread, with the mutex held; NULL without memory. */
static struct oriel_observed *observed_add_thread(struct oriel_observed *first, unsigned thread)
{
    size_t len_bytes = sizeof *first + first->n;
    struct oriel_observed *observed = malloc(len_bytes);
    struct oriel_window_record *record = observed != NULL ? record_alloc((int)first->n) : NULL;
    if (record == NULL) {
        free(observed);
        return NULL;
    }
    memcpy(observed, first, len_bytes);
    observed->record = record;
    observed->sites = sites_of(record);
    observed->toward = (struct oriel_toward *)(oriel_file_base() + record->toward);
    observed->by_many = thread == ORIEL_COUNTING_THREADS - 1;
    record->window_id = first->record->window_id;
    record->rank = first->record->rank;
    record->thread = thread + 1;
    memcpy(oriel_file_base() + record->ranks, oriel_file_base() + first->record->ranks,
           first->n * sizeof(int32_t));
    record_publish(record);
    first->of_thread[thread] = observed;
    return observed;
}

/* NULL without memory: this thread's calls are then not counted. */
static struct oriel_observed *observed_for_thread(struct oriel_observed *first)
{
    unsigned thread = thread_number();
    if (first == NULL || !oriel_observe_threads || first->record->shared_by != 0)
        return first;
    pthread_mutex_lock(&mutex);
    struct oriel_observed *observed = first->of_thread[thread];
    if (observed == NULL)
        observed = observed_add_thread(first, thread);
    pthread_mutex_unlock(&mutex);
    return observed;
}

/* --- windows --- */

/* The record that all windows beyond the limit share; it has no ranks. */
static struct oriel_window_record *join_shared_record(struct oriel_observed *observed)
{
    if (shared_record == NULL && (shared_record = record_alloc(0)) != NULL) {
        oriel_traced_describe(shared_record);
        record_publish(shared_record);
    }
    if (shared_record != NULL)
        shared_record->shared_by++;
    observed->by_many = oriel_observe_threads;
    return shared_record;
}

static void record_fill(struct oriel_window_record *record, const struct oriel_observed *observed,
                        MPI_Group group, int rank, const struct oriel_observed_creation *creation)
{
    int32_t *ranks = (int32_t *)(oriel_file_base() + record->ranks);
    if (observed->window != NULL && oriel_window_is_opened(observed->window))
        ranks[0] = observed->window->holding->owner_world_rank; /* its group has this process */
    else
        oriel_observed_world_ranks(group, record->n, ranks);
    record->rank = rank;
    record->flavour = creation->flavour;
    record->size_bytes = creation->size_bytes;
    record->disp_unit = creation->disp_unit;
    record->place = creation->place;
    record->window_id =
        observed->window != NULL ? observed->window->id : oriel_observed_host_id(ranks, record->n);
}

static struct oriel_window_record *record_create(struct oriel_observed *observed, MPI_Group group,
                                                 int rank,
                                                 const struct oriel_observed_creation *creation)
{
    if (records_count >= ORIEL_RECORDS_MOST)
        return join_shared_record(observed);
    struct oriel_window_record *record = record_alloc((int)observed->n);
    if (record == NULL)
        return NULL;
    records_count++;
    observed->record = record;
    record_fill(record, observed, group, rank, creation);
    oriel_observed_set_path(observed);
    oriel_traced_describe(record);
    record_publish(record);
    if (observed->window != NULL)
        atomic_store_explicit(&observed->window->control->record_offset, newest,
                              memory_order_release);
    return record;
}

/* If the record has no room for counters per rank, allocates private ones that no report shows. */
static bool find_toward(struct oriel_observed *observed)
{
    uint64_t offset = observed->record->toward;
    observed->toward = offset != 0 ? (struct oriel_toward *)(oriel_file_base() + offset)
                                   : calloc(observed->n, sizeof *observed->toward);
    return observed->toward != NULL;
}

static struct oriel_observed *observed_create(struct oriel_window *window, int n)
{
    struct oriel_observed *observed = calloc(1, sizeof *observed + (unsigned)n);
    if (observed == NULL)
        return NULL;
    observed->first = observed;
    observed->window = window;
    observed->n = (uint32_t)n;
    observed->is_quick = window != NULL && window->internode == NULL && !window->by_agent;
    for (int i = 0; i < n; i++)
        observed->paths[i] = oriel_observed_path_to(window, i);
    return observed;
}

static bool record_window(MPI_Win win, struct oriel_observed *observed, MPI_Group group, int rank,
                          const struct oriel_observed_creation *creation)
{
    if (observed == NULL)
        return false;
    pthread_mutex_lock(&mutex);
    observed->record = record_create(observed, group, rank, creation);
    pthread_mutex_unlock(&mutex);
    if (observed->record == NULL || !find_toward(observed))
        return false;
    observed->sites = sites_of(observed->record);
    unsigned thread = thread_number();
    observed->by_many |= thread == ORIEL_COUNTING_THREADS - 1;
    observed->of_thread[thread] = observed;
    oriel_traced_select(observed);
    return oriel_hash_table_set(&table, (uint64_t)(uintptr_t)win, observed);
}

/* Frees the group. */
static struct oriel_observed *observed_add(MPI_Win win, MPI_Group group,
                                           const struct oriel_observed_creation *creation)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    const struct oriel_host_calls *host = oriel_host();
    int n = 0;
    int rank = 0;
    host->Group_size(group, &n);
    host->Group_rank(group, &rank);
    struct oriel_observed *observed = observed_create(oriel_handle_find(win), n);
    if (!record_window(win, observed, group, rank, creation)) {
        free(observed);
        observed = NULL;
        if (!atomic_flag_test_and_set(&warned))
            oriel_warn("no memory for a window's counters: the statistics omit this window");
    }
    host->Group_free(&group);
    return observed;
}

struct oriel_observed *oriel_observed_add(MPI_Win win,
                                          const struct oriel_observed_creation *creation)
{
    MPI_Group group;
    return oriel_host()->Comm_group(creation->comm, &group) == MPI_SUCCESS
               ? observed_add(win, group, creation)
               : NULL;
}

/* --- windows that existed before observation started --- */

static struct oriel_observed *observed_add_existing(MPI_Win win)
{
    const struct oriel_host_calls *host = oriel_host();
    const struct oriel_window *window = oriel_handle_find(win);
    struct oriel_observed_creation creation = {.disp_unit = 1};
    MPI_Group group;
    char name[MPI_MAX_OBJECT_NAME] = "";
    int name_bytes;
    if (window != NULL) {
        creation.flavour = window->flavour;
        creation.size_bytes = (uint64_t)window->host->size_bytes;
        creation.disp_unit = window->host->disp_unit;
    }
    /* excludes no rank, so the result is a duplicate */
    int code = window != NULL ? host->Group_excl(window->host->group, 0, NULL, &group)
                              : host->Win_get_group(win, &group);
    struct oriel_observed *observed =
        code == MPI_SUCCESS ? observed_add(win, group, &creation) : NULL;
    if (observed != NULL && observed->record->shared_by == 0 &&
        host->Win_get_name(win, name, &name_bytes) == MPI_SUCCESS)
        snprintf(observed->record->name, ORIEL_RECORD_NAME, "%.*s", ORIEL_RECORD_NAME - 1, name);
    return observed;
}

/* Several threads may use the window for the first time. */
static struct oriel_observed *observed_find_existing(MPI_Win win)
{
    static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
    if (oriel_handle_find(win) == NULL && oriel_handle_forwarded(win) == NULL)
        return NULL;
    pthread_mutex_lock(&adding);
    struct oriel_observed *observed = oriel_hash_table_find(&table, (uint64_t)(uintptr_t)win);
    if (observed == NULL)
        observed = observed_add_existing(win);
    pthread_mutex_unlock(&adding);
    return observed;
}

struct oriel_observed *oriel_observed_find_paused(MPI_Win win)
{
    struct oriel_observed *first = oriel_hash_table_find(&table, (uint64_t)(uintptr_t)win);
    if (first == NULL && atomic_load_explicit(&oriel_observe_began_late, memory_order_relaxed))
        first = observed_find_existing(win);
    return observed_for_thread(first);
}

struct oriel_observed *oriel_observed_find_slow(MPI_Win win)
{
    uint64_t generation = oriel_tls_cache_begin(); /* L1 (pause.c) */
    if (oriel_observation_is_paused())             /* L2 */
        return NULL;
    uint64_t key = (uint64_t)(uintptr_t)win;
    struct oriel_observed *observed = oriel_observed_find_paused(win);
    if (observed != NULL)
        oriel_observed_recent = (struct oriel_observed_recent){generation, key, observed}; /* L3 */
    return observed;
}

uint64_t oriel_observe_window_id(MPI_Win win, uint32_t *n)
{
    const struct oriel_observed *observed = oriel_observed_find_paused(win);
    if (observed == NULL || observed->record->shared_by != 0)
        return 0;
    *n = observed->n;
    return observed->record->window_id;
}

/* --- their end --- */

static void observed_free(struct oriel_observed *observed)
{
    if (observed->record->shared_by == 0)
        atomic_store_explicit(&observed->record->state, 2, memory_order_release);
    else
        free(observed->toward);
    free(observed);
}

void oriel_observed_remove(MPI_Win win, struct oriel_observed *first)
{
    oriel_hash_table_remove(&table, (uint64_t)(uintptr_t)win, first);
    oriel_tls_cache_invalidate();
    for (size_t i = 0; i < ORIEL_COUNTING_THREADS; i++)
        if (first->of_thread[i] != NULL && first->of_thread[i] != first)
            observed_free(first->of_thread[i]);
    observed_free(first);
}
