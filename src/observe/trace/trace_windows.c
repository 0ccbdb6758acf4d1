/* A window's number is the order in which its record was first described. Descriptions wait for the
 * writer in a list. They are from mmap, as the rings are and for the same reason (trace_ring.c). A
 * description is in the list before its number is returned. So it precedes the window's events if
 * the writer reads the rings before the list. */
#include "observe/trace/trace_windows.h"

#include "base/hash_table.h"
#include "observe/trace/trace.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    RANKS_MOST = (ORIEL_BLOCK_BYTES_MOST - sizeof(struct oriel_trace_window)) / sizeof(int32_t)
};

/* A description in the list, followed by the window's ranks. */
struct queued_description {
    struct queued_description *next;
    size_t mapped_bytes;
    size_t count;
};

/* from a record's address to its last description, without ranks */
static struct oriel_hash_table known = ORIEL_HASH_TABLE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the following */
static uint32_t next_number;
static struct queued_description *first;
static struct queued_description **last = &first;

static void description_fill(const struct oriel_window_record *record, int64_t disp_unit,
                             struct oriel_trace_window *out)
{
    memset(out, 0, sizeof *out);
    out->n = record->n;
    out->rank = record->rank;
    out->flavour = record->flavour;
    out->window_id = record->window_id;
    out->size_bytes = record->size_bytes;
    out->disp_unit = disp_unit;
    out->own_path = record->own_path;
    out->is_freed = atomic_load_explicit(&record->state, memory_order_relaxed) == 2;
    out->site = record->place;
    memcpy(out->name, record->name, strnlen(record->name, sizeof out->name - 1));
    memcpy(out->reason, record->reason, strnlen(record->reason, sizeof out->reason - 1));
}

static struct oriel_trace_window *description_of(struct queued_description *one)
{
    return (struct oriel_trace_window *)(one + 1);
}

/* Lost without memory: the events remain, and their window has a number and no name. */
static void description_enqueue(const struct oriel_trace_window *window, const int32_t *world_ranks)
{
    size_t count = world_ranks == NULL      ? 0
                   : window->n < RANKS_MOST ? (size_t)window->n
                                            : RANKS_MOST;
    size_t mapped_bytes =
        sizeof(struct queued_description) + sizeof *window + count * sizeof *world_ranks;
    struct queued_description *one =
        mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (one == MAP_FAILED)
        return;
    one->mapped_bytes = mapped_bytes;
    one->count = count;
    struct oriel_trace_window *described = description_of(one);
    *described = *window;
    if (count > 0)
        memcpy(described->world_ranks, world_ranks, count * sizeof *world_ranks);
    *last = one;
    last = &one->next;
}

/* With the mutex held. */
static uint32_t window_update(const struct oriel_window_record *record,
                              struct oriel_trace_window *window, const int32_t *world_ranks)
{
    struct oriel_trace_window *before = oriel_hash_table_find(&known, (uint64_t)(uintptr_t)record);
    window->number = before != NULL ? before->number : next_number++;
    if (before != NULL && memcmp(before, window, sizeof *window) == 0)
        return window->number;
    if (before == NULL && (before = malloc(sizeof *before)) != NULL &&
        !oriel_hash_table_set(&known, (uint64_t)(uintptr_t)record, before)) {
        free(before);
        before = NULL;
    }
    if (before != NULL)
        *before = *window;
    description_enqueue(window, world_ranks);
    return window->number;
}

uint32_t oriel_trace_window(const struct oriel_window_record *record, int64_t disp_unit,
                            const int32_t *world_ranks)
{
    struct oriel_trace_window window;
    if (!oriel_tracing)
        return 0;
    description_fill(record, disp_unit, &window);
    pthread_mutex_lock(&mutex);
    uint32_t number = window_update(record, &window, world_ranks);
    pthread_mutex_unlock(&mutex);
    return number;
}

void oriel_trace_windows_empty(void (*take)(const struct oriel_trace_window *window, size_t count))
{
    pthread_mutex_lock(&mutex);
    struct queued_description *next = first;
    first = NULL;
    last = &first;
    pthread_mutex_unlock(&mutex);
    while (next != NULL) {
        struct queued_description *one = next;
        take(description_of(one), one->count);
        next = one->next;
        munmap(one, one->mapped_bytes);
    }
}
