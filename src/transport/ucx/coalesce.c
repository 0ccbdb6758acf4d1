/* Coalesces messages and splits received ones (coalesce.h). All received fields are validated. */
#include "transport/ucx/coalesce.h"

#include <string.h>

/* The size that UCX sends over TCP in one piece by default, minus its headers and Oriel's. */
enum { ROOM_BYTES = 7 << 10, MOST_BYTES = 1 << 10 };

static size_t padded_bytes(size_t len_bytes)
{
    return (len_bytes + 7) & ~(size_t)7;
}

static char *bytes_append(char *to, const void *from, size_t len_bytes)
{
    if (len_bytes != 0)
        memcpy(to, from, len_bytes);
    return to + len_bytes;
}

/* Padding is zero, so no bytes of old messages are sent. */
static char *padding_append(char *to, size_t len_bytes)
{
    const size_t rest_bytes = padded_bytes(len_bytes) - len_bytes;
    memset(to, 0, rest_bytes);
    return to + rest_bytes;
}

bool oriel_coalesce_add(struct oriel_coalesce *coalesce, struct oriel_pool *pool, void *destination,
                        const struct oriel_wire *wire, const struct oriel_net_bytes *bytes)
{
    size_t len_bytes = 0;
    for (unsigned i = 0; i < bytes->pieces; i++)
        len_bytes += bytes->data[i].iov_len;
    const size_t head_bytes = padded_bytes(bytes->head_bytes);
    if (len_bytes > MOST_BYTES || bytes->head_bytes > ORIEL_NET_HEAD_BYTES)
        return false;
    if (coalesce->destination == NULL) {
        coalesce->buffer = oriel_pool_take(pool, ROOM_BYTES);
        coalesce->used_bytes = 0;
        if (coalesce->buffer == NULL)
            return false;
    }
    if (coalesce->used_bytes + sizeof *wire + head_bytes + padded_bytes(len_bytes) > ROOM_BYTES)
        return false;
    coalesce->destination = destination;
    char *to = coalesce->buffer->data + coalesce->used_bytes;
    struct oriel_wire own = *wire;
    own.len_bytes = len_bytes;
    coalesce->used_bytes += sizeof own + head_bytes + padded_bytes(len_bytes);
    to = bytes_append(to, &own, sizeof own);
    to = padding_append(bytes_append(to, bytes->head, bytes->head_bytes), bytes->head_bytes);
    for (unsigned i = 0; i < bytes->pieces; i++)
        to = bytes_append(to, bytes->data[i].iov_base, bytes->data[i].iov_len);
    padding_append(to, len_bytes);
    return true;
}

struct oriel_ucx_buffer *oriel_coalesce_take(struct oriel_coalesce *coalesce)
{
    struct oriel_ucx_buffer *buffer = coalesce->buffer;
    buffer->front_bytes = 0;
    buffer->len_bytes = coalesce->used_bytes;
    *coalesce = (struct oriel_coalesce){.destination = NULL};
    return buffer;
}

bool oriel_coalesce_next(const char **at, size_t *left_bytes, struct oriel_wire *wire,
                         const char **head, const char **data)
{
    if (*left_bytes < sizeof *wire)
        return false;
    memcpy(wire, *at, sizeof *wire);
    if (wire->version != ORIEL_WIRE_VERSION || wire->head_bytes > ORIEL_NET_HEAD_BYTES ||
        wire->len_bytes > MOST_BYTES)
        return false;
    const size_t head_bytes = padded_bytes(wire->head_bytes);
    const size_t all_bytes = sizeof *wire + head_bytes + padded_bytes(wire->len_bytes);
    if (*left_bytes < all_bytes)
        return false;
    *head = *at + sizeof *wire;
    *data = *head + head_bytes;
    *at += all_bytes;
    *left_bytes -= all_bytes;
    return true;
}
