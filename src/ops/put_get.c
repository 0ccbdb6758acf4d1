/* Put and get of elements without holes, and of pairs field by field.  api/ calls. */
#include "ops/ops.h"
#include "ops/remote.h"

typedef enum oriel_status mover(const struct oriel_transport *by, const struct oriel_remote *there, char *here,
                                uint64_t len_bytes);

static enum oriel_status move_out(const struct oriel_transport *by, const struct oriel_remote *there, char *here,
                                  uint64_t len_bytes)
{
    return by->write(there, here, len_bytes);
}

static enum oriel_status move_in(const struct oriel_transport *by, const struct oriel_remote *there, char *here,
                                 uint64_t len_bytes)
{
    return by->read(there, here, len_bytes);
}

/* The fields of each pair; the padding stays what it is on both sides. */
static enum oriel_status move_fields(mover *move, const struct oriel_transport *by, const struct oriel_remote *there,
                                     char *here, const struct oriel_span *span)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[span->kind];
    enum oriel_status status = ORIEL_OK;
    for (uint64_t i = 0; i < span->count && status == ORIEL_OK; i++) {
        uint64_t at = i * kind->extent_bytes;
        struct oriel_remote value = oriel_remote_advance(there, at);
        struct oriel_remote index = oriel_remote_advance(there, at + kind->index_offset);
        status = move(by, &value, here + at, kind->value_bytes);
        if (status == ORIEL_OK)
            status = move(by, &index, here + at + kind->index_offset, kind->index_bytes);
    }
    return status;
}

static enum oriel_status transfer(mover *move, struct oriel_window *window, const struct oriel_span *span, char *here)
{
    struct oriel_remote there;
    const struct oriel_kind_properties *kind = &oriel_kinds[span->kind];
    const struct oriel_transport *by = oriel_remote_find(window, span->target, span->offset_bytes, &there);
    enum oriel_status status = oriel_unlikely(kind->padded)
                                   ? move_fields(move, by, &there, here, span)
                                   : move(by, &there, here, span->count * kind->extent_bytes);
    return oriel_remote_status(status, window, span->target);
}

enum oriel_status oriel_put(struct oriel_window *window, const struct oriel_span *span, const void *origin)
{
    return transfer(move_out, window, span, (char *)(uintptr_t)origin);
}

enum oriel_status oriel_get(struct oriel_window *window, const struct oriel_span *span, void *origin)
{
    return transfer(move_in, window, span, origin);
}
