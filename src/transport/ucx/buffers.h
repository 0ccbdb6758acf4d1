/* Memory for outstanding messages, cached for the next ones: large buffers exceed the size that
 * malloc keeps mapped. A pool has no lock of its own. */
#ifndef ORIEL_TRANSPORT_UCX_BUFFERS_H
#define ORIEL_TRANSPORT_UCX_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORIEL_BUFFER_SIZES = 10, ORIEL_BUFFER_LEAST = 512, ORIEL_BUFFER_FRONT = 240 };

struct oriel_net_worker;
struct oriel_net_end;

struct oriel_ucx_buffer {
    struct oriel_ucx_buffer *next;
    struct oriel_net_worker *worker;
    struct oriel_net_end *end; /* over which it is sent */
    uint32_t size;             /* 0 is ORIEL_BUFFER_LEAST, each next size is twice that */
    uint32_t front_bytes;
    size_t len_bytes;
    _Alignas(8) char front[ORIEL_BUFFER_FRONT]; /* wire and head, or the operation of rdma.c */
    _Alignas(16) char data[];
};

struct oriel_pool {
    struct oriel_ucx_buffer *cached[ORIEL_BUFFER_SIZES];
    size_t cached_bytes;
};

/* Returns false if there is no memory for the initial buffers. */
bool oriel_pool_open(struct oriel_pool *pool);

/* A buffer with room for len_bytes of data, at most ORIEL_BUFFER_LEAST << (ORIEL_BUFFER_SIZES - 1).
 * NULL if there is no memory. */
struct oriel_ucx_buffer *oriel_pool_take(struct oriel_pool *pool, size_t len_bytes);
void oriel_pool_give(struct oriel_pool *pool, struct oriel_ucx_buffer *buffer);
void oriel_pool_close(struct oriel_pool *pool);

#endif
