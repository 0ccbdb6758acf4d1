/* What a dynamic window's owner knows of its attached memory; regions.c has what origins see.  Memory is promoted before it is in
 * the table, and private again after it has left it. */
#include "window/attach.h"

#include "base/table.h"
#include "window/paths.h"
#include "window/regions.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct oriel_attached {
    struct oriel_table memories; /* struct oriel_own_memory, by address */
    uint64_t *empty;             /* addresses attached with size 0 */
    size_t empty_count;
    char reason[240];            /* the last one */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* all but the tables */

static enum oriel_status no_memory(void)
{
    return oriel_fail(ORIEL_E_ATTACH, "no memory for what is attached");
}

static struct oriel_attached *prepare(struct oriel_window *window)
{
    pthread_mutex_lock(&mutex);
    struct oriel_attached *attached = window->attached;
    if (attached == NULL)
        attached = calloc(1, sizeof *attached);
    if (attached != NULL && window->attached == NULL)
        attached->memories = (struct oriel_table)ORIEL_TABLE_INIT;
    window->attached = attached;
    pthread_mutex_unlock(&mutex);
    return attached;
}

static enum oriel_status keep_empty(struct oriel_attached *attached, uint64_t address)
{
    pthread_mutex_lock(&mutex);
    uint64_t *empty = realloc(attached->empty, (attached->empty_count + 1) * sizeof *empty);
    if (empty != NULL) {
        attached->empty = empty;
        empty[attached->empty_count++] = address;
    }
    pthread_mutex_unlock(&mutex);
    return empty != NULL ? ORIEL_OK : no_memory();
}

static bool remove_empty(struct oriel_attached *attached, uint64_t address)
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

static enum oriel_status insert(struct oriel_window *window, struct oriel_own_memory *memory, uint64_t address)
{
    struct oriel_attached *attached = window->attached;
    enum oriel_status status = oriel_regions_insert(window, memory->stretches, memory->stretch_count);
    if (status == ORIEL_OK && !oriel_table_set(&attached->memories, address, memory)) {
        oriel_regions_remove(window, address);
        status = no_memory();
    }
    return status;
}

enum oriel_status oriel_attach(struct oriel_window *window, uint64_t address, uint64_t size_bytes)
{
    if (size_bytes > UINT64_MAX - address)
        return oriel_fail(ORIEL_E_ATTACH, "%lu bytes at %#lx pass the end of the address space",
                          (unsigned long)size_bytes, (unsigned long)address);
    struct oriel_attached *attached = prepare(window);
    if (attached == NULL)
        return no_memory();
    if (size_bytes == 0)
        return keep_empty(attached, address);
    struct oriel_own_memory *memory;
    if (oriel_own_memory_take(address, size_bytes, window->n > 1, &memory) != ORIEL_OK)
        return no_memory();
    enum oriel_status status = insert(window, memory, address);
    if (status != ORIEL_OK) {
        oriel_own_memory_release(memory);
        return status;
    }
    if ((oriel_own_memory_ways(memory) & ORIEL_WAY_PROMOTED) != 0)
        oriel_store_relaxed(&window->control->promoted, 1);
    if (memory->reason[0] != '\0') {
        pthread_mutex_lock(&mutex);
        snprintf(attached->reason, sizeof attached->reason, "%s", memory->reason);
        pthread_mutex_unlock(&mutex);
    }
    return ORIEL_OK;
}

enum oriel_status oriel_detach(struct oriel_window *window, uint64_t address)
{
    struct oriel_attached *attached = window->attached;
    struct oriel_own_memory *memory = attached != NULL ? oriel_table_find(&attached->memories, address) : NULL;
    if (memory == NULL && attached != NULL && remove_empty(attached, address))
        return ORIEL_OK;
    enum oriel_status status = oriel_regions_remove(window, address);
    if (status != ORIEL_OK)
        return status;
    oriel_table_remove(&attached->memories, address, memory);
    uint64_t lost_bytes = oriel_own_memory_release(memory);
    if (lost_bytes > 0) {
        oriel_paths_keep_name(window);
        oriel_paths_warn_lost(window, "MPI_Win_detach", lost_bytes);
    }
    return ORIEL_OK;
}

static void add_ways(void *memory, void *ways)
{
    *(unsigned *)ways |= oriel_own_memory_ways(memory);
}

unsigned oriel_attached_ways(struct oriel_window *window, char *reason, size_t room)
{
    unsigned ways = 0;
    reason[0] = '\0';
    if (window->attached == NULL)
        return 0;
    oriel_table_visit(&window->attached->memories, add_ways, &ways);
    pthread_mutex_lock(&mutex);
    if ((ways & ORIEL_WAY_COPY) != 0)
        snprintf(reason, room, "%s", window->attached->reason);
    pthread_mutex_unlock(&mutex);
    return ways;
}

static void release(void *memory, void *lost_bytes)
{
    *(uint64_t *)lost_bytes += oriel_own_memory_release(memory);
}

uint64_t oriel_attached_close(struct oriel_window *window)
{
    struct oriel_attached *attached = window->attached;
    uint64_t lost_bytes = 0;
    if (attached == NULL)
        return 0;
    oriel_regions_close(window);
    oriel_table_visit(&attached->memories, release, &lost_bytes);
    oriel_table_close(&attached->memories);
    free(attached->empty);
    free(attached);
    window->attached = NULL;
    return lost_bytes;
}
