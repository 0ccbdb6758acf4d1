/* Publishes the net address. Its block is never freed, since peers may read it at any time. A net
 * that is stopped and started again has a different address, which window creation exchanges before
 * its first use. Thread-safe: one mutex. */
#include "memory/net_address.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

const struct oriel_net_address_area *oriel_net_address_of(const char *file_base)
{
    const struct oriel_file_header *header = (const struct oriel_file_header *)file_base;
    uint64_t offset = atomic_load_explicit(&header->net_offset, memory_order_acquire);
    return offset == 0 ? NULL : (const struct oriel_net_address_area *)(file_base + offset);
}

static enum oriel_status net_address_publish(void)
{
    struct oriel_file_header *header = (struct oriel_file_header *)oriel_file_base();
    uint64_t offset = atomic_load_explicit(&header->net_offset, memory_order_relaxed);
    enum oriel_status status = ORIEL_OK;
    if (offset == 0)
        status = oriel_file_alloc(sizeof(struct oriel_net_address_area), ORIEL_CACHE_LINE, &offset);
    if (status != ORIEL_OK)
        return status;
    size_t len_bytes;
    const void *address = oriel_net_address(&len_bytes);
    struct oriel_net_address_area *area =
        (struct oriel_net_address_area *)(oriel_file_base() + offset);
    memcpy(area->address, address, len_bytes);
    area->address_bytes = len_bytes;
    atomic_store_explicit(&header->net_offset, offset, memory_order_release);
    return ORIEL_OK;
}

enum oriel_status oriel_net_address_open(const struct oriel_net_service *service)
{
    enum oriel_status status = ORIEL_OK;
    pthread_mutex_lock(&mutex);
    if (!oriel_net_is_started()) {
        status = oriel_net_start(oriel_file_identity(),
                                 oriel_file_remote_writers(oriel_file_base()), service);
        if (status == ORIEL_OK)
            status = net_address_publish();
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_net_address_close(void)
{
    pthread_mutex_lock(&mutex);
    if (oriel_net_is_started())
        oriel_net_stop();
    pthread_mutex_unlock(&mutex);
}
