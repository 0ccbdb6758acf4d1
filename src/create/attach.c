/* The owner's records of a dynamic window's attached memory; regions.c has the table that origins
 * read. Memory is promoted before it enters the table, and demoted after it has left. */
#include "create/attach.h"

#include "base/hash_table.h"
#include "base/options.h"
#include "create/path_info.h"
#include "create/regions.h"
#include "memory/agent_area.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct oriel_attached {
    struct oriel_hash_table memories; /* struct oriel_user_memory, by address */
    uint64_t *empty;                  /* addresses attached with size 0 */
    size_t empty_count;
};

/* Guards the allocation of struct oriel_attached, and its list of empty attachments. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static enum oriel_status attach_no_memory(void)
{
    return oriel_fail(ORIEL_E_ATTACH, "no memory for the list of attached memory");
}

static struct oriel_attached *attached_load(struct oriel_window *window)
{
    return atomic_load_explicit(&window->attached, memory_order_acquire);
}

static struct oriel_attached *attached_prepare(struct oriel_window *window)
{
    struct oriel_attached *attached = attached_load(window);
    if (oriel_likely(attached != NULL))
        return attached;
    pthread_mutex_lock(&mutex);
    attached = attached_load(window);
    if (attached == NULL && (attached = calloc(1, sizeof *attached)) != NULL) {
        attached->memories = (struct oriel_hash_table)ORIEL_HASH_TABLE_INIT;
        atomic_store_explicit(&window->attached, attached, memory_order_release);
    }
    pthread_mutex_unlock(&mutex);
    return attached;
}

static enum oriel_status empty_attachment_add(struct oriel_attached *attached, uint64_t address)
{
    pthread_mutex_lock(&mutex);
    uint64_t *empty = realloc(attached->empty, (attached->empty_count + 1) * sizeof *empty);
    if (empty != NULL) {
        attached->empty = empty;
        empty[attached->empty_count++] = address;
    }
    pthread_mutex_unlock(&mutex);
    return empty != NULL ? ORIEL_OK : attach_no_memory();
}

static bool empty_attachment_remove(struct oriel_attached *attached, uint64_t address)
{
    bool found = false;
    pthread_mutex_lock(&mutex);
    for (size_t i = attached->empty_count; i-- > 0 && !found;)
        if (attached->empty[i] == address) {
            attached->empty[i] = attached->empty[--attached->empty_count];
            found = true;
        }
    pthread_mutex_unlock(&mutex);
    return found;
}

static enum oriel_status attached_insert(struct oriel_window *window,
                                         struct oriel_user_memory *memory, uint64_t address)
{
    struct oriel_attached *attached = attached_load(window);
    enum oriel_status status = oriel_regions_insert(window, memory->ranges, memory->range_count);
    if (status == ORIEL_OK && !oriel_hash_table_set(&attached->memories, address, memory)) {
        oriel_regions_remove(window, address);
        status = attach_no_memory();
    }
    return status;
}

enum oriel_status oriel_attach(struct oriel_window *window, uint64_t address, uint64_t size_bytes)
{
    if (size_bytes > UINT64_MAX - address)
        return oriel_fail(ORIEL_E_ATTACH, "%lu bytes at %#lx pass the end of the address space",
                          (unsigned long)size_bytes, (unsigned long)address);
    struct oriel_attached *attached = attached_prepare(window);
    if (attached == NULL)
        return attach_no_memory();
    if (size_bytes == 0)
        return empty_attachment_add(attached, address);
    struct oriel_user_memory *memory;
    enum oriel_status status = oriel_user_memory_open(address, size_bytes, window->n > 1, &memory);
    if (status != ORIEL_OK)
        return status == ORIEL_E_NO_MEM ? attach_no_memory() : status;
    if (memory->shared_offset != 0)
        oriel_store_relaxed(&window->control->has_device, 1);
    if (window->n > 1 && memory->shared_offset != 0 && oriel_options()->agent != ORIEL_AGENT_NEVER)
        (void)oriel_agent_open(); /* for origins that cannot map it; they report a failure */
    status = attached_insert(window, memory, address);
    if (status != ORIEL_OK) {
        oriel_user_memory_close(memory);
        return status;
    }
    if ((oriel_user_memory_paths(memory) & ORIEL_PATH_PROMOTED) != 0)
        oriel_store_relaxed(&window->control->promoted, 1);
    return ORIEL_OK;
}

enum oriel_status oriel_detach(struct oriel_window *window, uint64_t address)
{
    struct oriel_attached *attached = attached_load(window);
    struct oriel_user_memory *memory =
        attached != NULL ? oriel_hash_table_find(&attached->memories, address) : NULL;
    if (memory == NULL && attached != NULL && empty_attachment_remove(attached, address))
        return ORIEL_OK;
    enum oriel_status status = oriel_regions_remove(window, address);
    if (status != ORIEL_OK)
        return status;
    oriel_hash_table_remove(&attached->memories, address, memory);
    uint64_t lost_bytes = oriel_user_memory_close(memory);
    if (lost_bytes > 0) {
        oriel_path_info_save_label(window);
        oriel_path_info_warn_lost(window, "MPI_Win_detach", lost_bytes);
    }
    return ORIEL_OK;
}

struct paths {
    unsigned all;
    char *reason;
    size_t room;
};

/* Adds the paths of one attached memory. */
static void attached_add_paths(void *visited, void *context)
{
    const struct oriel_user_memory *memory = visited;
    struct paths *paths = context;
    paths->all |= oriel_user_memory_paths(memory);
    oriel_user_memory_reason(memory, paths->reason, paths->room);
}

unsigned oriel_attached_paths(struct oriel_window *window, char *reason, size_t room)
{
    struct paths paths = {0, reason, room};
    struct oriel_attached *attached = attached_load(window);
    reason[0] = '\0';
    if (attached != NULL)
        oriel_hash_table_visit(&attached->memories, attached_add_paths, &paths);
    return paths.all;
}

static void attached_memory_close(void *memory, void *lost_bytes)
{
    *(uint64_t *)lost_bytes += oriel_user_memory_close(memory);
}

uint64_t oriel_attached_close(struct oriel_window *window)
{
    struct oriel_attached *attached = attached_load(window);
    uint64_t lost_bytes = 0;
    if (attached == NULL)
        return 0;
    oriel_regions_close(window);
    oriel_hash_table_visit(&attached->memories, attached_memory_close, &lost_bytes);
    oriel_hash_table_close(&attached->memories);
    free(attached->empty);
    free(attached);
    atomic_store_explicit(&window->attached, NULL, memory_order_relaxed);
    return lost_bytes;
}
