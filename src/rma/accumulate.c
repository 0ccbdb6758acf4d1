/* Accumulates: atomic per element. Where the CPU reaches the memory and the datatype has native
 * kernels, those update a few elements without a lock (sync/atomic_mode.h). All other accumulates
 * run under the target's accumulate lock (reduce/kernel.c has the argument). With that lock, plain
 * kernels update many elements at once. The lock also covers the target's own accumulates, and
 * those that an agent computes at the target. This file updates elements in one run;
 * accumulate_layouts.c walks datatypes with holes. */
#include "rma/accumulate_update.h"

#include "gpu/update.h"
#include "internode/origin/origin_rma.h"
#include "rma/deferred.h"
#include "rma/device_buffers.h"
#include "rma/rma.h"
#include "sync/accumulate_mutex.h"
#include "sync/atomic_mode.h"

enum {
    STAGE_BYTES = 16384,
    STAGE_PAIRS = 512,
    /* limit in memory of a GPU per acquisition of the lock: a copy of it to the device takes more
     * than ten times as long as to begin the copy and the kernel */
    DEVICE_BULK_BYTES = 1 << 22,
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
static enum oriel_status update_staged(const struct oriel_update *update,
                                       const struct oriel_path *path, const char *origin,
                                       char *result, uint64_t count)
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

enum oriel_status oriel_update_flush(const struct oriel_update *update)
{
    struct oriel_update_queue *queue = update->queue;
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
static enum oriel_status update_by_agent(const struct oriel_update *update,
                                         const struct oriel_remote *there, const char *origin,
                                         char *result, uint64_t count)
{
    uint64_t len_bytes = count * oriel_kinds[update->kind].extent_bytes;
    struct oriel_piece in = {0, (void *)(uintptr_t)origin, len_bytes};
    struct oriel_piece out = {0, result, len_bytes};
    struct oriel_update_queue *queue = update->queue;
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
    return queue->count == ORIEL_AGENT_RUNS ? oriel_update_flush(update) : ORIEL_OK;
}

/* A thread of the target computes, if one is polling in MPI. */
static bool update_by_request(const struct oriel_update *update, const struct oriel_remote *there,
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

enum oriel_status oriel_update_lock(struct oriel_update *update)
{
    if (update->locked)
        return ORIEL_OK;
    enum oriel_status status = oriel_accumulate_mutex_lock(update->window, update->rank);
    update->locked = status == ORIEL_OK;
    update->in_bulk = false;
    update->held_bytes = 0;
    return status;
}

void oriel_update_unlock(struct oriel_update *update, bool for_good)
{
    bool nothing_waits = update->queue == NULL || update->queue->count == 0;
    if (update->locked && (for_good || (update->held_bytes >= ORIEL_BULK_BYTES && nothing_waits))) {
        oriel_accumulate_mutex_unlock(update->window, update->rank);
        update->locked = false;
    }
}

void oriel_update_begin_bulk(struct oriel_update *update)
{
    if (!update->in_bulk)
        oriel_bulk_begin(update->window, update->rank);
    update->in_bulk = true;
}

void oriel_update_begin_plain(struct oriel_update *update)
{
    if (oriel_kinds[update->kind].composed ||
        oriel_atomic_mode_is_wide(update->window, update->rank))
        oriel_update_begin_bulk(update); /* W2 */
}

/* Aligned elements with native kernels: only the CPU's instructions and bulk updates ever change
 * them. */
static enum oriel_status update_words(struct oriel_update *update, char *there, const char *origin,
                                      char *result, uint64_t count)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[update->kind];
    _Atomic uint32_t unobserved;
    _Atomic uint32_t *inside = update->many || update->locked
                                   ? NULL
                                   : oriel_atomic_mode_enter(update->window, update->rank);
    enum oriel_status status = inside != NULL ? ORIEL_OK : oriel_update_lock(update);
    if (status != ORIEL_OK)
        return status;
    if (update->many)
        oriel_update_begin_bulk(update);
    if (update->in_bulk) {
        oriel_kernel_many(kind->plain[update->op], kind->extent_bytes, there, origin, result,
                          count);
        return ORIEL_OK;
    }
    for (uint64_t at = 0; at < count * kind->extent_bytes; at += kind->extent_bytes)
        kind->native[update->op](there + at, origin != NULL ? origin + at : NULL,
                                 result != NULL ? result + at : NULL, &unobserved);
    if (inside != NULL)
        oriel_store_release(inside, 0);
    else
        oriel_atomic_mode_count(update->window, update->rank);
    return ORIEL_OK;
}

/* The GPU that has the target's memory computes. False if it cannot: then nothing has changed. */
static bool update_by_gpu(const struct oriel_update *update, const struct oriel_path *path,
                          const char *origin, char *result, uint64_t count,
                          enum oriel_status *status)
{
    const struct oriel_gpu_update wanted = {.kind = update->kind,
                                            .op = update->op,
                                            .target = path->remote.direct,
                                            .origin = origin,
                                            .result = result,
                                            .count = count};
    if (path->transport != &oriel_transport_gpu || !oriel_gpu_update(&wanted, status))
        return false;
    *status = oriel_path_status(*status, update->window, update->rank);
    return true;
}

/* count elements on one path, offset_bytes into the target's window. */
static enum oriel_status update_one_path(struct oriel_update *update, uint64_t offset_bytes,
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
    enum oriel_status status = oriel_update_lock(update);
    if (status != ORIEL_OK)
        return status;
    if (path.cpu_reaches)
        oriel_update_begin_plain(update);
    if (update_by_gpu(update, &path, origin, result, count, &status))
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

static uint64_t at_most(uint64_t count, uint64_t most)
{
    return count < most ? count : most;
}

/* Of count elements at an offset, how many share the first one's path, up to the limit of one
 * update. A run may cross the end of the bytes that every CPU reaches, and each element's
 * path must depend on its own offset only. */
static uint64_t count_one_path(const struct oriel_update *update, uint64_t offset_bytes,
                               uint64_t count)
{
    const struct oriel_path_range reached =
        oriel_path_range_at(update->window, update->rank, offset_bytes);
    uint64_t extent_bytes = oriel_kinds[update->kind].extent_bytes;
    uint64_t left_bytes = reached.end - offset_bytes;
    uint64_t alike = left_bytes / extent_bytes;
    if (alike == 0 || (!reached.cpu_reaches && left_bytes % extent_bytes != 0))
        alike++; /* the element that crosses the end is copied */
    const uint64_t most_bytes =
        oriel_unlikely(reached.device != NULL) ? DEVICE_BULK_BYTES : ORIEL_BULK_BYTES;
    return at_most(at_most(alike, count), most_bytes / extent_bytes);
}

enum oriel_status oriel_update_run(struct oriel_update *update, int64_t at_bytes,
                                   const char *origin, char *result, uint64_t count)
{
    uint64_t extent_bytes = oriel_kinds[update->kind].extent_bytes;
    uint64_t offset_bytes = update->offset_bytes + (uint64_t)at_bytes;
    uint64_t most = ORIEL_BULK_BYTES / extent_bytes;
    bool whole = update->window->targets[update->rank].placement == ORIEL_PLACEMENT_DIRECT;
    enum oriel_status status = ORIEL_OK;
    for (uint64_t done = 0; done < count && status == ORIEL_OK;) {
        uint64_t at = done * extent_bytes;
        uint64_t now = whole ? at_most(count - done, most)
                             : count_one_path(update, offset_bytes + at, count - done);
        status = update_one_path(update, offset_bytes + at, origin != NULL ? origin + at : NULL,
                                 result != NULL ? result + at : NULL, now);
        done += now;
        update->held_bytes += now * extent_bytes;
        oriel_update_unlock(update, false);
    }
    return status;
}

/* Defers it if possible; returns whether. */
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
    struct oriel_update update = {.window = window,
                                  .rank = rank,
                                  .offset_bytes = offset_bytes,
                                  .kind = kind,
                                  .op = op,
                                  .many = count >= ORIEL_BULK_ELEMENTS};
    enum oriel_status status = oriel_update_run(&update, 0, origin, NULL, count);
    oriel_update_unlock(&update, true);
    return status;
}

static bool operand_is_device(const struct oriel_operand *operand)
{
    return operand != NULL && oriel_buffer_is_device(operand->here, &operand->side);
}

static enum oriel_status operand_check(const struct oriel_operand *operand)
{
    return operand_is_device(operand) ? oriel_device_buffer_check(operand->here, &operand->side)
                                      : ORIEL_OK;
}

static bool gpu_reaches(const struct oriel_path *path, const struct oriel_operand *operand)
{
    return operand == NULL || oriel_gpu_copies_between(operand->here, path->remote.direct);
}

/* Elements in one run, of buffers of which some are device memory: all of them at once, since a GPU
 * needs little time for many. False if none can, or if they are not all in one attached region: the
 * next one may be elsewhere in this process. Then nothing has changed. */
static bool accumulate_by_gpu(struct oriel_update *update, const struct oriel_operand *origin,
                              const struct oriel_operand *result, uint64_t count,
                              enum oriel_status *status)
{
    if (oriel_is_internode(update->window, update->rank))
        return false;
    const uint64_t len_bytes = count * oriel_kinds[update->kind].extent_bytes;
    if (oriel_path_range_at(update->window, update->rank, update->offset_bytes).end -
            update->offset_bytes <
        len_bytes)
        return false;
    const struct oriel_path path =
        oriel_path_find(update->window, update->rank, update->offset_bytes, 0, (int64_t)len_bytes);
    if (path.transport != &oriel_transport_gpu || !gpu_reaches(&path, origin) ||
        !gpu_reaches(&path, result))
        return false;
    *status = operand_check(origin);
    if (*status == ORIEL_OK)
        *status = operand_check(result);
    if (*status != ORIEL_OK)
        return true;
    oriel_deferred_do(update->window, update->rank);
    *status = oriel_update_lock(update);
    if (*status != ORIEL_OK)
        return true;
    const bool is_done = update_by_gpu(update, &path, origin != NULL ? origin->here : NULL,
                                       result != NULL ? result->here : NULL, count, status);
    oriel_update_unlock(update, true);
    return is_done;
}

/* With mirrors of the buffers that are device memory. */
static enum oriel_status accumulate_mirrored(struct oriel_window *window,
                                             const struct oriel_span *target,
                                             struct oriel_elements elements, enum oriel_operator op,
                                             const struct oriel_operand *origin,
                                             const struct oriel_operand *result)
{
    struct oriel_operand from = {NULL, target->side};
    struct oriel_operand to = from;
    struct oriel_mirror origin_mirror = {.memory = NULL};
    struct oriel_mirror result_mirror = {.memory = NULL};
    enum oriel_status status = ORIEL_OK;
    if (origin != NULL) {
        from.side = origin->side;
        status = oriel_mirror_open(&origin_mirror, origin->here, &from.side, 0);
        from.here = origin_mirror.here;
    }
    if (status == ORIEL_OK && result != NULL) {
        to.side = result->side;
        status = oriel_mirror_open(&result_mirror, result->here, &to.side,
                                   elements.count * oriel_kind_moving_bytes(elements.kind));
        to.here = result_mirror.here;
    }
    if (status == ORIEL_OK)
        status = oriel_accumulate(window, target, elements, op, origin != NULL ? &from : NULL,
                                  result != NULL ? &to : NULL);
    status = oriel_mirrors_settle(window, target->rank, result != NULL, status);
    oriel_mirror_close(&origin_mirror);
    return oriel_mirror_store(&result_mirror, status);
}

enum oriel_status oriel_accumulate(struct oriel_window *window, const struct oriel_span *target,
                                   struct oriel_elements elements, enum oriel_operator op,
                                   const struct oriel_operand *origin,
                                   const struct oriel_operand *result)
{
    struct oriel_update update = {.window = window,
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
    if (oriel_device_buffers_occur(window)) {
        status = oriel_device_wait(window);
        if (status != ORIEL_OK)
            return status;
        if (operand_is_device(origin) || operand_is_device(result)) {
            if (dense && accumulate_by_gpu(&update, origin, result, count, &status))
                return status;
            return accumulate_mirrored(window, target, elements, op, origin, result);
        }
    }
    if (oriel_unlikely(oriel_is_internode(window, target->rank)))
        return oriel_internode_accumulate(window, target, elements, op, origin, result);
    if (dense && origin != NULL && result == NULL &&
        accumulate_defer(window, target, elements, op, origin))
        return ORIEL_OK;
    oriel_deferred_do(window, target->rank);
    if (dense)
        status = oriel_update_run(&update, 0, origin != NULL ? origin->here : NULL,
                                  result != NULL ? result->here : NULL, count);
    else if (!oriel_update_scattered(&update, &target->side, count, origin, result, &status))
        status = oriel_update_layouts(&update, &target->side, count, origin, result);
    oriel_update_unlock(&update, true);
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
