/* One list for all windows: mostly an entry for each rank with device memory. A copy by the driver
 * takes longer than the search. */
#include "rma/device_maps.h"

#include "transport/gpu/mappings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct device_map {
    struct device_map *next;
    const struct oriel_window *window;
    int32_t target;
    uint64_t id;          /* of the allocation in its owner */
    uint64_t start;       /* of it in its owner */
    uint64_t start_local; /* of it in this process; 0: this process cannot map it */
    char reason[200];     /* why not */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static struct device_map *list;

/* A failure is remembered: the driver needs as long for it as for a success. */
static const struct device_map *map_open(const struct oriel_window *window, int32_t target,
                                         const struct oriel_gpu_shared *shared)
{
    struct device_map *map = malloc(sizeof *map);
    if (map == NULL) {
        oriel_fail(ORIEL_E_NO_MEM, "no memory for a mapping of device memory");
        return NULL;
    }
    *map = (struct device_map){list, window, target, shared->id, shared->start, 0, ""};
    if (oriel_gpu_mapping_open(shared, &map->start_local) != ORIEL_OK) {
        if (!oriel_gpu_is_loaded()) { /* the program may load the driver later */
            free(map);
            return NULL;
        }
        snprintf(map->reason, sizeof map->reason, "%s", oriel_fail_message());
    }
    list = map;
    return map;
}

/* The mapping if there is one, or could be made; this thread's last message has the reason if not.
 */
static const struct device_map *map_find(const struct oriel_window *window, int32_t target,
                                         const struct oriel_gpu_shared *shared)
{
    const struct device_map *map = list;
    while (map != NULL && (map->window != window || map->target != target ||
                           map->id != shared->id || map->start != shared->start))
        map = map->next;
    if (map == NULL)
        map = map_open(window, target, shared);
    else if (map->start_local == 0)
        oriel_fail(ORIEL_E_OTHER, "%s", map->reason);
    return map == NULL || map->start_local == 0 ? NULL : map;
}

char *oriel_device_maps_find(const struct oriel_window *window, int32_t target,
                             const struct oriel_gpu_shared *shared, uint64_t address)
{
    if (target == window->rank)
        return (char *)(uintptr_t)address;
    pthread_mutex_lock(&mutex);
    const struct device_map *map = map_find(window, target, shared);
    pthread_mutex_unlock(&mutex);
    return map == NULL ? NULL : (char *)(uintptr_t)(map->start_local + (address - map->start));
}

void oriel_device_maps_close(const struct oriel_window *window)
{
    if (!oriel_gpu_is_loaded())
        return;
    pthread_mutex_lock(&mutex);
    for (struct device_map **link = &list; *link != NULL;) {
        struct device_map *map = *link;
        if (map->window == window) {
            *link = map->next;
            if (map->start_local != 0)
                oriel_gpu_mapping_close(map->start_local);
            free(map);
        } else {
            link = &map->next;
        }
    }
    pthread_mutex_unlock(&mutex);
}
