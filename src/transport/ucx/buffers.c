/* Buffers in power-of-two sizes. Released buffers are cached up to a limit, then freed. A few are
 * allocated at the start, and if memory is exhausted a larger one is used. So a process without
 * memory still receives, serves and answers one message after the other. */
#include "transport/ucx/buffers.h"

#include <stdlib.h>

enum { CACHED_BYTES = 8 << 20 };
/* Allocated at the start: one for a received message and one for its answer, and small ones for the
 * messages that accompany them. */
enum { LARGE = 2, LARGE_SIZE = 7, SMALL = 8 };
_Static_assert((ORIEL_BUFFER_LEAST << LARGE_SIZE) >= 64 << 10, "the largest message has room");

static size_t buffer_room(uint32_t size)
{
    return (size_t)ORIEL_BUFFER_LEAST << size;
}

static struct oriel_ucx_buffer *buffer_create(uint32_t size)
{
    struct oriel_ucx_buffer *buffer = aligned_alloc(16, sizeof *buffer + buffer_room(size));
    if (buffer != NULL)
        buffer->size = size;
    return buffer;
}

static struct oriel_ucx_buffer *cached_buffer_take(struct oriel_pool *pool, uint32_t size)
{
    struct oriel_ucx_buffer *buffer = pool->cached[size];
    if (buffer == NULL)
        return NULL;
    pool->cached[size] = buffer->next;
    pool->cached_bytes -= buffer_room(size);
    return buffer;
}

struct oriel_ucx_buffer *oriel_pool_take(struct oriel_pool *pool, size_t len_bytes)
{
    uint32_t size = 0;
    while (buffer_room(size) < len_bytes)
        if (++size == ORIEL_BUFFER_SIZES)
            return NULL;
    struct oriel_ucx_buffer *buffer = cached_buffer_take(pool, size);
    if (buffer == NULL)
        buffer = buffer_create(size);
    while (buffer == NULL && ++size < ORIEL_BUFFER_SIZES)
        buffer = cached_buffer_take(pool, size);
    return buffer;
}

void oriel_pool_give(struct oriel_pool *pool, struct oriel_ucx_buffer *buffer)
{
    if (pool->cached_bytes + buffer_room(buffer->size) > CACHED_BYTES) {
        free(buffer);
        return;
    }
    pool->cached_bytes += buffer_room(buffer->size);
    buffer->next = pool->cached[buffer->size];
    pool->cached[buffer->size] = buffer;
}

bool oriel_pool_open(struct oriel_pool *pool)
{
    *pool = (struct oriel_pool){.cached_bytes = 0};
    for (int i = 0; i < LARGE + SMALL; i++) {
        struct oriel_ucx_buffer *buffer = buffer_create(i < LARGE ? LARGE_SIZE : 0);
        if (buffer == NULL) {
            oriel_pool_close(pool);
            return false;
        }
        oriel_pool_give(pool, buffer);
    }
    return true;
}

void oriel_pool_close(struct oriel_pool *pool)
{
    for (uint32_t size = 0; size < ORIEL_BUFFER_SIZES; size++)
        while (pool->cached[size] != NULL) {
            struct oriel_ucx_buffer *buffer = pool->cached[size];
            pool->cached[size] = buffer->next;
            free(buffer);
        }
    pool->cached_bytes = 0;
}
