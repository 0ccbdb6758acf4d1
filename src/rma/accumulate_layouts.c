/* Accumulates of datatypes with holes. Cursors over target, origin and result advance together, and
 * each run that is contiguous in all of them is updated at once. Many elements in short blocks are
 * gathered, computed and scattered instead (scattered.c). */
#include "rma/accumulate_update.h"
#include "rma/mixed_regions.h"
#include "rma/scattered.h"

#include <string.h>

enum { ELEMENT_BYTES = 32 }; /* of the longest element */

/* A cursor over a buffer that may be absent. */
struct walker {
    struct oriel_cursor cursor;
    bool present;
    char *here; /* NULL for MPI_BOTTOM with absolute displacements */
};

static bool walker_open(struct walker *walker, const struct oriel_operand *buffer)
{
    walker->present = false;
    if (buffer == NULL)
        return true;
    if (!oriel_cursor_open(&walker->cursor, buffer->side.type->layout, buffer->side.count,
                           buffer->side.type->extent_bytes))
        return false;
    walker->here = buffer->here;
    walker->present = true;
    return true;
}

/* The elements of one run, at most count; 0 at the end. */
static uint64_t walker_room(struct walker *walker, uint64_t count, uint64_t extent_bytes)
{
    if (!walker->present)
        return count;
    if (!oriel_cursor_fill(&walker->cursor))
        return 0;
    uint64_t left = walker->cursor.batch.left_bytes / extent_bytes;
    return left < count ? left : count;
}

static char *walker_take(struct walker *walker, uint64_t len_bytes)
{
    if (!walker->present)
        return NULL;
    char *at = oriel_at(walker->here, walker->cursor.batch.at_bytes);
    oriel_batch_use_elements(&walker->cursor.batch, len_bytes);
    return at;
}

static void walker_close(struct walker *walker)
{
    if (walker->present)
        oriel_cursor_close(&walker->cursor);
}

/* The next element's old value spans several runs of the result, which has another type. */
static enum oriel_status update_across(struct oriel_update *update, int64_t at_bytes,
                                       const char *origin, struct walker *result,
                                       uint64_t extent_bytes)
{
    char old[ELEMENT_BYTES] __attribute__((aligned(16)));
    enum oriel_status status = oriel_update_run(update, at_bytes, origin, old, 1);
    if (status == ORIEL_OK)
        status = oriel_update_flush(update); /* while old is still valid */
    for (uint64_t done = 0;
         done < extent_bytes && status == ORIEL_OK && oriel_cursor_fill(&result->cursor);) {
        uint64_t left_bytes = result->cursor.batch.left_bytes;
        uint64_t now = left_bytes < extent_bytes - done ? left_bytes : extent_bytes - done;
        memcpy(walker_take(result, now), old + done, now);
        done += now;
    }
    return status;
}

static enum oriel_status update_walk(struct oriel_update *update, struct oriel_cursor *target,
                                     uint64_t count, struct walker *origin, struct walker *result)
{
    uint64_t extent_bytes = oriel_kinds[update->kind].extent_bytes;
    enum oriel_status status = ORIEL_OK;
    while (count > 0 && status == ORIEL_OK && oriel_cursor_fill(target)) {
        uint64_t now = target->batch.left_bytes / extent_bytes;
        now = walker_room(origin, now < count ? now : count, extent_bytes);
        if (now == 0)
            break;
        uint64_t whole = walker_room(result, now, extent_bytes);
        now = whole > 0 ? whole : 1;
        int64_t at_bytes = target->batch.at_bytes;
        char *from = walker_take(origin, now * extent_bytes);
        status = whole > 0 ? oriel_update_run(update, at_bytes, from,
                                              walker_take(result, now * extent_bytes), now)
                           : update_across(update, at_bytes, from, result, extent_bytes);
        oriel_batch_use_elements(&target->batch, now * extent_bytes);
        count -= now;
    }
    return status == ORIEL_OK ? oriel_update_flush(update) : status;
}

static struct oriel_part part_of(char *at, const struct oriel_side *side)
{
    return (struct oriel_part){at, side->type->layout, side->count, side->type->extent_bytes};
}

/* Returns whether this process loads and stores the whole of a target, and its start. */
static bool find_direct(const struct oriel_update *update, const struct oriel_side *target,
                        char **at)
{
    const struct oriel_type *type = target->type;
    int64_t low_bytes, high_bytes;
    oriel_layout_bounds(type->layout, target->count, type->extent_bytes, &low_bytes, &high_bytes);
    const struct oriel_span span = {
        .rank = update->rank, .offset_bytes = update->offset_bytes, .side = *target};
    const struct oriel_path path =
        oriel_path_find(update->window, update->rank, update->offset_bytes, low_bytes, high_bytes);
    *at = path.remote.direct;
    return path.transport == &oriel_transport_shared &&
           !oriel_regions_are_mixed(update->window, &span);
}

/* One step, with the accumulate lock held. It may release the lock. */
static void update_step(struct oriel_update *update, struct oriel_scattered *scattered,
                        uint64_t count)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[update->kind];
    if (kind->native[update->op] != NULL)
        oriel_update_begin_bulk(update);
    else
        oriel_update_begin_plain(update);
    oriel_scattered_update(scattered, count);
    update->held_bytes += count * kind->extent_bytes;
    oriel_update_unlock(update, false);
}

bool oriel_update_scattered(struct oriel_update *update, const struct oriel_side *target,
                            uint64_t count, const struct oriel_operand *origin,
                            const struct oriel_operand *result, enum oriel_status *status)
{
    const uint64_t most = ORIEL_SCATTERED_BYTES / oriel_kinds[update->kind].extent_bytes;
    struct oriel_scattered scattered;
    struct oriel_part there = part_of(NULL, target);
    struct oriel_part from = origin != NULL ? part_of(origin->here, &origin->side) : there;
    struct oriel_part to = result != NULL ? part_of(result->here, &result->side) : there;
    if (!update->many ||
        !(oriel_scattered_pays(&there) || oriel_scattered_pays(&from) ||
          oriel_scattered_pays(&to)) ||
        !find_direct(update, target, &there.at) ||
        !oriel_scattered_open(&scattered, update->kind, update->op, &there,
                              origin != NULL ? &from : NULL, result != NULL ? &to : NULL))
        return false;
    *status = ORIEL_OK;
    for (uint64_t now; count > 0 && *status == ORIEL_OK; count -= now) {
        now = count < most ? count : most;
        *status = oriel_update_lock(update);
        if (*status == ORIEL_OK)
            update_step(update, &scattered, now);
    }
    oriel_scattered_close(&scattered);
    return true;
}

enum oriel_status oriel_update_layouts(struct oriel_update *update, const struct oriel_side *target,
                                       uint64_t count, const struct oriel_operand *origin,
                                       const struct oriel_operand *result)
{
    struct oriel_cursor at_target;
    struct walker from = {.present = false};
    struct walker to = {.present = false};
    struct oriel_update_queue queue;
    if (!oriel_cursor_open(&at_target, target->type->layout, target->count,
                           target->type->extent_bytes))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    queue.count = 0;
    if (oriel_layout_apart(target->type->layout, target->count, target->type->extent_bytes))
        update->queue = &queue;
    enum oriel_status status = ORIEL_OK;
    if (walker_open(&from, origin) && walker_open(&to, result))
        status = update_walk(update, &at_target, count, &from, &to);
    else
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    walker_close(&from);
    walker_close(&to);
    oriel_cursor_close(&at_target);
    update->queue = NULL;
    return status;
}
