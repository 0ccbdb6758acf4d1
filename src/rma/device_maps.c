/* One list for all windows: mostly an entry for each rank with device memory. A copy by the driver
 * takes longer than the search. A process maps an allocation once, however many windows contain it:
 * older drivers refuse to map it twice. So the entries of several windows may have one mapping, and
 * the last one unmaps. */
#include "rma/device_maps.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct device_map {
    struct device_map *next;
    const struct oriel_window *window;
    int32_t pid; /* of the owner */
    uint64_t id; /* of the allocation in its owner */
    uint64_t start;
    struct oriel_gpu_mapping mapping; /* its start is 0: this process cannot map it */
    char reason[200];                 /* why not */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static struct device_map *list;

/* The entry of a window, or of any window, for NULL, that could map it. */
static struct device_map *entry_find(const struct oriel_window *window, int32_t pid, uint64_t id,
                                     uint64_t start)
{
    struct device_map *map = list;
    while (map != NULL && (map->pid != pid || map->id != id || map->start != start ||
                           (window != NULL ? map->window != window : map->mapping.start == 0)))
        map = map->next;
    return map;
}

/* A failure is remembered: the driver needs as long for it as for a success. */
static const struct device_map *map_open(const struct oriel_window *window,
                                         const struct oriel_gpu_shared *shared)
{
    const struct device_map *other = entry_find(NULL, shared->pid, shared->id, shared->start);
    struct device_map *map = calloc(1, sizeof *map);
    if (map == NULL) {
        oriel_fail(ORIEL_E_NO_MEM, "no memory for a mapping of device memory");
        return NULL;
    }
    if (other != NULL) {
        map->mapping = other->mapping;
    } else if (oriel_gpu_map(shared, &map->mapping) != ORIEL_OK) {
        if (!oriel_gpu_is_loaded()) { /* the program may load the driver later */
            free(map);
            return NULL;
        }
        map->mapping.start = 0;
        snprintf(map->reason, sizeof map->reason, "%s", oriel_fail_message());
    }
    map->window = window;
    map->pid = shared->pid;
    map->id = shared->id;
    map->start = shared->start;
    map->next = list;
    list = map;
    return map;
}

/* The mapping if there is one, or could be made; this thread's last message has the reason if not.
 */
static const struct device_map *map_find(const struct oriel_window *window,
                                         const struct oriel_gpu_shared *shared)
{
    const struct device_map *map = entry_find(window, shared->pid, shared->id, shared->start);
    if (map == NULL)
        map = map_open(window, shared);
    else if (map->mapping.start == 0)
        oriel_fail(ORIEL_E_OTHER, "%s", map->reason);
    return map == NULL || map->mapping.start == 0 ? NULL : map;
}

char *oriel_device_maps_find(const struct oriel_window *window, int32_t target,
                             const struct oriel_gpu_shared *shared, uint64_t address)
{
    if (target == window->rank)
        return (char *)(uintptr_t)address;
    pthread_mutex_lock(&mutex);
    const struct device_map *map = map_find(window, shared);
    pthread_mutex_unlock(&mutex);
    return map == NULL ? NULL : (char *)(uintptr_t)(map->mapping.start + (address - map->start));
}

void oriel_device_maps_close(const struct oriel_window *window)
{
    if (!oriel_gpu_is_loaded())
        return;
    pthread_mutex_lock(&mutex);
    for (struct device_map **link = &list; *link != NULL;) {
        struct device_map *map = *link;
        if (map->window != window) {
            link = &map->next;
            continue;
        }
        *link = map->next;
        if (map->mapping.start != 0 && entry_find(NULL, map->pid, map->id, map->start) == NULL)
            oriel_gpu_unmap(&map->mapping);
        free(map);
    }
    pthread_mutex_unlock(&mutex);
}
