/* Buffers by powers of two.  What is given back is kept up to a limit, then freed.  Called through buffers.h. */
#include "transport/ucx/buffers.h"

#include <stdlib.h>

enum { KEPT_BYTES = 8 << 20 };

static size_t room_of(uint32_t size)
{
    return (size_t)ORIEL_BUFFER_LEAST << size;
}

struct oriel_buffer *oriel_pool_take(struct oriel_pool *pool, size_t len_bytes)
{
    uint32_t size = 0;
    while (room_of(size) < len_bytes)
        if (++size == ORIEL_BUFFER_SIZES)
            return NULL;
    struct oriel_buffer *buffer = pool->kept[size];
    if (buffer != NULL) {
        pool->kept[size] = buffer->next;
        pool->kept_bytes -= room_of(size);
        return buffer;
    }
    buffer = aligned_alloc(16, sizeof *buffer + room_of(size));
    if (buffer != NULL)
        buffer->size = size;
    return buffer;
}

void oriel_pool_give(struct oriel_pool *pool, struct oriel_buffer *buffer)
{
    if (pool->kept_bytes + room_of(buffer->size) > KEPT_BYTES) {
        free(buffer);
        return;
    }
    pool->kept_bytes += room_of(buffer->size);
    buffer->next = pool->kept[buffer->size];
    pool->kept[buffer->size] = buffer;
}

void oriel_pool_close(struct oriel_pool *pool)
{
    for (uint32_t size = 0; size < ORIEL_BUFFER_SIZES; size++)
        while (pool->kept[size] != NULL) {
            struct oriel_buffer *buffer = pool->kept[size];
            pool->kept[size] = buffer->next;
            free(buffer);
        }
    pool->kept_bytes = 0;
}
