/* Accumulates: atomic per element. Where the CPU reaches the memory and the datatype has native
 * kernels, those update a few elements without a lock (sync/atomic_mode.h). All other accumulates
 * run under the target's accumulate lock (reduce/kernel.c has the argument). With that lock, plain
 * kernels update many elements at once, and scattered.c updates many elements in short blocks. The
 * lock also covers the target's own accumulates, and those that an agent computes at the target. */
#include "internode/origin/origin_rma.h"
#include "rma/deferred.h"
#include "rma/path_select.h"
#include "rma/rma.h"
#include "rma/scattered.h"
#include "sync/accumulate_mutex.h"
#include "sync/atomic_mode.h"

#include <string.h>

enum {
    STAGE_BYTES = 16384,
    STAGE_PAIRS = 512,
    QUEUE_PIECES = ORIEL_AGENT_RUNS,
    ELEMENT_BYTES = 32, /* of the longest element */
};

/* Runs queued for one request to an agent. */
struct queue {
    unsigned count;
    struct oriel_remote there; /* base of the offsets */
    struct oriel_piece in[QUEUE_PIECES];
    struct oriel_piece out[QUEUE_PIECES];
};

/* One accumulate in progress. The first run that needs the target's lock acquires it. */
struct update {
    struct oriel_window *window;
    int32_t rank;
    uint64_t offset_bytes; /* of the first item in the target's window */
    enum oriel_kind kind;
    enum oriel_operator op;
    bool many; /* enough elements for a bulk update, even where native kernels exist */
    bool locked;
    bool in_bulk;        /* while locked: single updates are excluded */
    uint64_t held_bytes; /* updated since the lock was acquired */
    bool returns;        /* the operation returns a result */
    /* NULL: no queue, since elements may overlap; an agent reads all runs before it writes one */
    struct queue *queue;
};

static bool is_aligned(const void *address, uint64_t size_bytes)
{
    return ((uintptr_t)address & (size_bytes - 1)) == 0;
}

/* Writes the fields of count padded pairs, without the gaps between and after them. */
static enum oriel_status write_fields(const struct oriel_transport *by,
                                      const struct oriel_remote *there, char *pairs,
                                      const struct oriel_kind_properties *kind, uint64_t count)
{
    struct oriel_piece pieces[2 * STAGE_PAIRS];
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value = i * kind->extent_bytes;
        uint64_t index = value + kind->index_offset;
        pieces[2 * i] = (struct oriel_piece){(int64_t)value, pairs + value, kind->value_bytes};
        pieces[2 * i + 1] = (struct oriel_piece){(int64_t)index, pairs + index, kind->index_bytes};
    }
    return by->write_pieces(there, pieces, 2 * (unsigned)count);
}

/* Reads, modifies and writes memory that only the kernel reaches, in pieces of whole elements. The
 * padding after the last pair may lie outside of the window and is left out. */
static enum oriel_status update_staged(const struct update *update, const struct oriel_path *path,
                                       const char *origin, char *result, uint64_t count)
{
    char stage[STAGE_BYTES] __attribute__((aligned(64)));
    const struct oriel_kind_properties *kind = &oriel_kinds[update->kind];
    uint64_t tail_bytes = oriel_kind_tail_bytes(kind);
    uint64_t most = kind->padded ? STAGE_PAIRS : STAGE_BYTES / kind->extent_bytes;
    enum oriel_status status = ORIEL_OK;
    for (uint64_t done = 0; done < count && status == ORIEL_OK;) {
        uint64_t now = count - done < most ? count - done : most;
        uint64_t at = done * kind->extent_bytes;
        uint64_t len_bytes = now * kind->extent_bytes - tail_bytes;
        struct oriel_remote piece = oriel_remote_advance(&path->remote, at);
        status = path->transport->read(&piece, stage, len_bytes);
        if (status == ORIEL_OK) {
            kind->plain[update->op](stage, origin != NULL ? origin + at : NULL,
                                    result != NULL ? result + at : NULL, now);
            if (update->op != ORIEL_OPERATOR_NO_OP)
                status = kind->padded ? write_fields(path->transport, &piece, stage, kind, now)
                                      : path->transport->write(&piece, stage, len_bytes);
        }
        done += now;
    }
    return oriel_path_status(status, update->window, update->rank);
}

static enum oriel_status queue_flush(const struct update *update)
{
    struct queue *queue = update->queue;
    if (queue == NULL || queue->count == 0)
        return ORIEL_OK;
    const unsigned count = queue->count;
    queue->count = 0;
    const struct oriel_piece *in = update->op != ORIEL_OPERATOR_NO_OP ? queue->in : NULL;
    const struct oriel_piece *out = update->returns ? queue->out : NULL;
    enum oriel_status status =
        oriel_agent_update(&queue->there, update->kind, update->op, in, out, count);
    return oriel_path_status(status, update->window, update->rank);
}

/* The agent at the target reads, computes and writes. Elements in many runs are batched into few
 * requests. */
static enum oriel_status update_by_agent(const struct update *update,
                                         const struct oriel_remote *there, const char *origin,
                                         char *result, uint64_t count)
{
    uint64_t len_bytes = count * oriel_kinds[update->kind].extent_bytes;
    struct oriel_piece in = {0, (void *)(uintptr_t)origin, len_bytes};
    struct oriel_piece out = {0, result, len_bytes};
    struct queue *queue = update->queue;
    if (queue == NULL) {
        enum oriel_status status =
            oriel_agent_update(there, update->kind, update->op, origin != NULL ? &in : NULL,
                               result != NULL ? &out : NULL, 1);
        return oriel_path_status(status, update->window, update->rank);
    }
    if (queue->count == 0)
        queue->there = *there;
    in.offset_bytes = out.offset_bytes = (int64_t)(there->address - queue->there.address);
    queue->in[queue->count] = in;
    queue->out[queue->count++] = out;
    return queue->count == QUEUE_PIECES ? queue_flush(update) : ORIEL_OK;
}

/* A thread of the target computes, if one polls. */
static bool update_by_request(const struct update *update, const struct oriel_remote *there,
                              const char *origin, char *result, uint64_t count,
                              enum oriel_status *status)
{
    const struct oriel_polled_request wanted = {.operation = ORIEL_POLLED_UPDATE,
                                                .kind = update->kind,
                                                .operator= update->op,
                                                .in = origin,
                                                .out = result,
                                                .len_bytes =
                                                    count * oriel_kinds[update->kind].extent_bytes};
    return update->queue == NULL && oriel_polled_submit(there, &wanted, status);
}

static enum oriel_status accumulate_lock(struct update *update)
{
    if (update->locked)
        return ORIEL_OK;
    enum oriel_status status = oriel_accumulate_mutex_lock(update->window, update->rank);
    update->locked = status == ORIEL_OK;
    update->in_bulk = false;
    update->held_bytes = 0;
    return status;
}

/* After a run: a long update releases the lock for others, unless runs are queued for an agent. */
static void accumulate_unlock(struct update *update, bool for_good)
{
    bool nothing_waits = update->queue == NULL || update->queue->count == 0;
    if (update->locked && (for_good || (update->held_bytes >= ORIEL_BULK_BYTES && nothing_waits))) {
        oriel_accumulate_mutex_unlock(update->window, update->rank);
        update->locked = false;
    }
}

/* For elements with native kernels, while locked: excludes single updates from here on. */
static void begin_bulk(struct update *update)
{
    if (!update->in_bulk)
        oriel_bulk_begin(update->window, update->rank);
    update->in_bulk = true;
}

/* Aligned elements with native kernels: only the CPU's instructions and bulk updates ever change
 * them. */
static enum oriel_status update_words(struct update *update, char *there, const char *origin,
                                      char *result, uint64_t count)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[update->kind];
    _Atomic uint32_t nobody_looks;
    _Atomic uint32_t *inside = update->many || update->locked
                                   ? NULL
                                   : oriel_atomic_mode_enter(update->window, update->rank);
    enum oriel_status status = inside != NULL ? ORIEL_OK : accumulate_lock(update);
    if (status != ORIEL_OK)
        return status;
    if (update->many)
        begin_bulk(update);
    if (update->in_bulk) {
        oriel_kernel_many(kind->plain[update->op], kind->extent_bytes, there, origin, result,
                          count);
        return ORIEL_OK;
    }
    for (uint64_t at = 0; at < count * kind->extent_bytes; at += kind->extent_bytes)
        kind->native[update->op](there + at, origin != NULL ? origin + at : NULL,
                                 result != NULL ? result + at : NULL, &nobody_looks);
    if (inside != NULL)
        oriel_store_release(inside, 0);
    else
        oriel_atomic_mode_count(update->window, update->rank);
    return ORIEL_OK;
}

/* count elements on one path, offset_bytes into the target's window. */
static enum oriel_status update_one_path(struct update *update, uint64_t offset_bytes,
                                         const char *origin, char *result, uint64_t count)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[update->kind];
    struct oriel_path path =
        oriel_path_find(update->window, update->rank, offset_bytes, 0,
                        (int64_t)(count * kind->extent_bytes - oriel_kind_tail_bytes(kind)));
    bool by_cpu = kind->native[update->op] != NULL && path.cpu_reaches &&
                  is_aligned(path.remote.direct, kind->extent_bytes);
    if (oriel_likely(by_cpu))
        return update_words(update, path.remote.direct, origin, result, count);
    enum oriel_status status = accumulate_lock(update);
    if (status != ORIEL_OK)
        return status;
    if (update_by_request(update, &path.remote, origin, result, count, &status))
        return oriel_path_status(status, update->window, update->rank);
    if (path.transport == &oriel_transport_agent)
        return update_by_agent(update, &path.remote, origin, result, count);
    if (path.transport != &oriel_transport_shared)
        return update_staged(update, &path, origin, result, count);
    kind->plain[update->op](path.remote.direct, origin, result, count);
    return ORIEL_OK;
}

/* Of count elements at an offset, how many share the first one's path. A run may cross the end of
 * the bytes that every CPU reaches, and each element's path must depend on its own offset only. */
static uint64_t count_one_path(const struct update *update, uint64_t offset_bytes, uint64_t count)
{
    const struct oriel_path_range reached =
        oriel_path_range_at(update->window, update->rank, offset_bytes);
    uint64_t extent_bytes = oriel_kinds[update->kind].extent_bytes;
    uint64_t left_bytes = reached.end - offset_bytes;
    uint64_t alike = left_bytes / extent_bytes;
    if (alike == 0 || (!reached.cpu_reaches && left_bytes % extent_bytes != 0))
        alike++; /* the element that crosses the end is copied */
    return alike < count ? alike : count;
}

/* count elements in one run, at_bytes from the first item. */
static enum oriel_status update_run(struct update *update, int64_t at_bytes, const char *origin,
                                    char *result, uint64_t count)
{
    uint64_t extent_bytes = oriel_kinds[update->kind].extent_bytes;
    uint64_t offset_bytes = update->offset_bytes + (uint64_t)at_bytes;
    uint64_t most = ORIEL_BULK_BYTES / extent_bytes;
    bool whole = update->window->targets[update->rank].placement == ORIEL_PLACEMENT_DIRECT;
    enum oriel_status status = ORIEL_OK;
    for (uint64_t done = 0; done < count && status == ORIEL_OK;) {
        uint64_t at = done * extent_bytes;
        uint64_t now = count - done < most ? count - done : most;
        if (!whole)
            now = count_one_path(update, offset_bytes + at, now);
        status = update_one_path(update, offset_bytes + at, origin != NULL ? origin + at : NULL,
                                 result != NULL ? result + at : NULL, now);
        done += now;
        update->held_bytes += now * extent_bytes;
        accumulate_unlock(update, false);
    }
    return status;
}

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
static enum oriel_status update_across(struct update *update, int64_t at_bytes, const char *origin,
                                       struct walker *result, uint64_t extent_bytes)
{
    char old[ELEMENT_BYTES] __attribute__((aligned(16)));
    enum oriel_status status = update_run(update, at_bytes, origin, old, 1);
    if (status == ORIEL_OK)
        status = queue_flush(update); /* while old is still valid */
    for (uint64_t done = 0;
         done < extent_bytes && status == ORIEL_OK && oriel_cursor_fill(&result->cursor);) {
        uint64_t left_bytes = result->cursor.batch.left_bytes;
        uint64_t now = left_bytes < extent_bytes - done ? left_bytes : extent_bytes - done;
        memcpy(walker_take(result, now), old + done, now);
        done += now;
    }
    return status;
}

static enum oriel_status update_walk(struct update *update, struct oriel_cursor *target,
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
        status = whole > 0 ? update_run(update, at_bytes, from,
                                        walker_take(result, now * extent_bytes), now)
                           : update_across(update, at_bytes, from, result, extent_bytes);
        oriel_batch_use_elements(&target->batch, now * extent_bytes);
        count -= now;
    }
    return status == ORIEL_OK ? queue_flush(update) : status;
}

static struct oriel_part part_of(char *at, const struct oriel_side *side)
{
    return (struct oriel_part){at, side->type->layout, side->count, side->type->extent_bytes};
}

/* Returns whether this process loads and stores the whole of a target, and its start. */
static bool find_direct(const struct update *update, const struct oriel_side *target, char **at)
{
    const struct oriel_type *type = target->type;
    int64_t low_bytes, high_bytes;
    oriel_layout_bounds(type->layout, target->count, type->extent_bytes, &low_bytes, &high_bytes);
    const struct oriel_path path =
        oriel_path_find(update->window, update->rank, update->offset_bytes, low_bytes, high_bytes);
    *at = path.remote.direct;
    return path.transport == &oriel_transport_shared;
}

/* One step, with the accumulate lock held. It may release the lock. */
static void update_step(struct update *update, struct oriel_scattered *scattered, uint64_t count)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[update->kind];
    if (kind->native[update->op] != NULL)
        begin_bulk(update);
    oriel_scattered_update(scattered, count);
    update->held_bytes += count * kind->extent_bytes;
    accumulate_unlock(update, false);
}

/* Many elements in short blocks. Under the lock and in bulk mode no other update touches them,
 * whatever their alignment. Returns false without side effects if another path is better. */
static bool update_scattered(struct update *update, const struct oriel_side *target, uint64_t count,
                             const struct oriel_operand *origin, const struct oriel_operand *result,
                             enum oriel_status *status)
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
        *status = accumulate_lock(update);
        if (*status == ORIEL_OK)
            update_step(update, &scattered, now);
    }
    oriel_scattered_close(&scattered);
    return true;
}

/* At least one side has holes. */
static enum oriel_status update_layouts(struct update *update, const struct oriel_side *target,
                                        uint64_t count, const struct oriel_operand *origin,
                                        const struct oriel_operand *result)
{
    struct oriel_cursor at_target;
    struct walker from = {.present = false};
    struct walker to = {.present = false};
    struct queue queue;
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

/* Whether it is deferred. */
static bool accumulate_defer(struct oriel_window *window, const struct oriel_span *target,
                             struct oriel_elements elements, enum oriel_operator op,
                             const struct oriel_operand *origin)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[elements.kind];
    if (kind->padded ||
        !oriel_deferred_takes(window, target->rank, elements.count * kind->extent_bytes))
        return false;
    oriel_deferred_accumulate(window, target->rank, target->offset_bytes, elements.kind, op,
                              origin->here, elements.count);
    return true;
}

enum oriel_status oriel_accumulate_run(struct oriel_window *window, int32_t rank,
                                       uint64_t offset_bytes, enum oriel_kind kind,
                                       enum oriel_operator op, const char *origin, uint64_t count)
{
    struct update update = {.window = window,
                            .rank = rank,
                            .offset_bytes = offset_bytes,
                            .kind = kind,
                            .op = op,
                            .many = count >= ORIEL_BULK_ELEMENTS};
    enum oriel_status status = update_run(&update, 0, origin, NULL, count);
    accumulate_unlock(&update, true);
    return status;
}

enum oriel_status oriel_accumulate(struct oriel_window *window, const struct oriel_span *target,
                                   struct oriel_elements elements, enum oriel_operator op,
                                   const struct oriel_operand *origin,
                                   const struct oriel_operand *result)
{
    struct update update = {.window = window,
                            .rank = target->rank,
                            .offset_bytes = target->offset_bytes,
                            .kind = elements.kind,
                            .op = op,
                            .many = elements.count >= ORIEL_BULK_ELEMENTS,
                            .returns = result != NULL};
    bool dense = target->side.type->dense && (result == NULL || result->side.type->dense);
    origin = op == ORIEL_OPERATOR_NO_OP ? NULL : origin;
    dense = dense && (origin == NULL || origin->side.type->dense);
    enum oriel_status status = ORIEL_OK;
    const uint64_t count = elements.count;
    if (count == 0)
        return ORIEL_OK;
    if (oriel_unlikely(oriel_is_internode(window, target->rank)))
        return oriel_internode_accumulate(window, target, elements, op, origin, result);
    if (dense && origin != NULL && result == NULL &&
        accumulate_defer(window, target, elements, op, origin))
        return ORIEL_OK;
    oriel_deferred_do(window, target->rank);
    if (dense)
        status = update_run(&update, 0, origin != NULL ? origin->here : NULL,
                            result != NULL ? result->here : NULL, count);
    else if (!update_scattered(&update, &target->side, count, origin, result, &status))
        status = update_layouts(&update, &target->side, count, origin, result);
    accumulate_unlock(&update, true);
    return status;
}

enum oriel_status oriel_accumulate_bulk(struct oriel_window *window, int32_t rank,
                                        oriel_kernel *kernel, uint32_t extent_bytes, char *there,
                                        const char *origin, uint64_t count)
{
    enum oriel_status status = oriel_accumulate_mutex_lock(window, rank);
    if (status != ORIEL_OK)
        return status;
    oriel_bulk_begin(window, rank);
    oriel_kernel_many(kernel, extent_bytes, there, origin, NULL, count);
    oriel_accumulate_mutex_unlock(window, rank);
    return ORIEL_OK;
}
