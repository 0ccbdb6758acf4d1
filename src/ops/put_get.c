/* Put and get: dense datatypes without padding in one transfer, everything else from layout to layout.  api/ calls. */
#include "ops/move.h"
#include "ops/ops.h"
#include "ops/remote.h"

static struct oriel_items items_of(const struct oriel_side *side)
{
    return (struct oriel_items){side->type->layout, side->count, side->type->extent_bytes};
}

static bool is_plain(const struct oriel_side *side)
{
    return side->type->plain_bytes != INT64_MAX;
}

/* Where memory is reached in more than one way, it depends on how far the access reaches. */
static struct oriel_way way_to(const struct oriel_window *window, const struct oriel_span *target)
{
    int64_t low_bytes = 0;
    int64_t high_bytes = 0;
    const struct oriel_type *type = target->side.type;
    if (window->targets[target->rank].mechanism != ORIEL_BY_ARENA)
        oriel_layout_bounds(type->layout, target->side.count, type->extent_bytes, &low_bytes, &high_bytes);
    return oriel_remote_find(window, target->rank, target->offset_bytes, low_bytes, high_bytes);
}

static enum oriel_status transfer(struct oriel_window *window, const struct oriel_span *target, char *here,
                                  const struct oriel_side *origin, bool to_target)
{
    const struct oriel_side *source = to_target ? origin : &target->side;
    uint64_t len_bytes = source->count * source->type->size_bytes;
    enum oriel_status status = ORIEL_OK;
    if (len_bytes == 0)
        return ORIEL_OK;
    struct oriel_way way = way_to(window, target);
    if (is_plain(origin) && is_plain(&target->side)) {
        status = to_target ? way.by->write(&way.there, here, len_bytes) : way.by->read(&way.there, here, len_bytes);
    } else {
        struct oriel_items at_target = items_of(&target->side);
        struct oriel_items at_origin = items_of(origin);
        status = oriel_move(way.by, &way.there, &at_target, here, &at_origin, to_target);
    }
    return oriel_remote_status(status, window, target->rank);
}

enum oriel_status oriel_put(struct oriel_window *window, const struct oriel_span *target, const void *here,
                            const struct oriel_side *origin)
{
    return transfer(window, target, (char *)(uintptr_t)here, origin, true);
}

enum oriel_status oriel_get(struct oriel_window *window, const struct oriel_span *target, void *here,
                            const struct oriel_side *origin)
{
    return transfer(window, target, here, origin, false);
}
