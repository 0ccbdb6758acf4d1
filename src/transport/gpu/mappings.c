#include "transport/gpu/mappings.h"

#include <pthread.h>
#include <stdlib.h>

struct mapped {
    struct mapped *next;
    uint64_t id; /* of the allocation in its owner, like the next two */
    uint64_t start;
    int32_t pid;
    uint32_t references;
    struct oriel_gpu_mapping mapping;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* protects the list */
static struct mapped *list;

static enum oriel_status mapped_find(const struct oriel_gpu_shared *shared, struct mapped **out)
{
    struct mapped *mapped = list;
    while (mapped != NULL && (mapped->pid != shared->pid || mapped->id != shared->id ||
                              mapped->start != shared->start))
        mapped = mapped->next;
    *out = mapped;
    if (mapped != NULL)
        return ORIEL_OK;
    mapped = calloc(1, sizeof *mapped);
    if (mapped == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a mapping of device memory");
    const enum oriel_status status = oriel_gpu_map(shared, &mapped->mapping);
    if (status != ORIEL_OK) {
        free(mapped);
        return status;
    }
    mapped->id = shared->id;
    mapped->start = shared->start;
    mapped->pid = shared->pid;
    mapped->next = list;
    *out = list = mapped;
    return ORIEL_OK;
}

enum oriel_status oriel_gpu_mapping_open(const struct oriel_gpu_shared *shared, uint64_t *start)
{
    struct mapped *mapped;
    pthread_mutex_lock(&mutex);
    const enum oriel_status status = mapped_find(shared, &mapped);
    if (status == ORIEL_OK) {
        mapped->references++;
        *start = mapped->mapping.start;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_gpu_mapping_close(uint64_t start)
{
    pthread_mutex_lock(&mutex);
    struct mapped **link = &list;
    while (*link != NULL && (*link)->mapping.start != start)
        link = &(*link)->next;
    struct mapped *mapped = *link;
    if (mapped != NULL && --mapped->references == 0) {
        *link = mapped->next;
        oriel_gpu_unmap(&mapped->mapping);
        free(mapped);
    }
    pthread_mutex_unlock(&mutex);
}
