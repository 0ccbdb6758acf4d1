/* fetch_and_op on a list of elements. Elements that the CPU updates are updated by native kernels,
 * many per announcement (sync/atomic_mode.h). The others are updated under the target's accumulate
 * lock. Where they are copied, consecutive ones move together: one request to the agent, or one
 * read and one write by the kernel. A batch has no byte twice, since all of it is read before any
 * of it is written. Between nodes, a message has many elements. */
#include "internode/origin/origin_rma.h"
#include "rma/accumulate_update.h"
#include "rma/deferred.h"
#include "rma/device_buffers.h"
#include "sync/accumulate_mutex.h"
#include "sync/atomic_mode.h"
#include "transport/agent/agent.h"

enum {
    SINGLES_MOST = 64, /* a bulk update waits for them */
    BATCH_MOST = ORIEL_AGENT_RUNS,
    MESSAGE_MOST = 1024, /* elements of a message between nodes */
    ELEMENT_BYTES = 32,  /* of the longest element */
};

static const struct oriel_kind_properties *kind_of(const struct oriel_element_list *list)
{
    return &oriel_kinds[list->type->kind];
}

static uint64_t offset_of(const struct oriel_element_list *list, uint64_t which)
{
    return (uint64_t)(list->disps[which] * list->unit_bytes);
}

/* In the buffers elements are the datatype's extent apart, which may be resized. */
static const char *origin_of(const struct oriel_element_list *list, uint64_t which)
{
    return list->op != ORIEL_OPERATOR_NO_OP
               ? oriel_at(list->origin, (int64_t)which * list->type->extent_bytes)
               : NULL;
}

static char *result_of(const struct oriel_element_list *list, uint64_t which)
{
    return oriel_at(list->result, (int64_t)which * list->type->extent_bytes);
}

/* The element's address if the CPU updates it, else NULL. */
static inline char *find_single(const struct oriel_window *window,
                                const struct oriel_element_list *list, uint64_t which)
{
    const uint64_t extent_bytes = kind_of(list)->extent_bytes;
    const struct oriel_path path =
        oriel_path_find(window, list->rank, offset_of(list, which), 0, (int64_t)extent_bytes);
    return path.cpu_reaches && ((uintptr_t)path.remote.direct & (extent_bytes - 1)) == 0
               ? path.remote.direct
               : NULL;
}

/* From *at on, where there is the first one's address. */
static enum oriel_status update_singles(struct oriel_window *window,
                                        const struct oriel_element_list *list, char *there,
                                        uint64_t *at)
{
    oriel_element *kernel = kind_of(list)->native[list->op];
    const uint64_t end = list->count - *at < SINGLES_MOST ? list->count : *at + SINGLES_MOST;
    _Atomic uint32_t unobserved;
    _Atomic uint32_t *inside = oriel_atomic_mode_enter(window, list->rank);
    enum oriel_status status =
        inside != NULL ? ORIEL_OK : oriel_accumulate_mutex_lock(window, list->rank);
    if (status != ORIEL_OK)
        return status;
    do {
        kernel(there, origin_of(list, *at), result_of(list, *at), &unobserved);
        ++*at;
    } while (*at < end && (there = find_single(window, list, *at)) != NULL);
    if (inside != NULL) {
        oriel_store_release(inside, 0);
    } else {
        oriel_atomic_mode_count(window, list->rank);
        oriel_accumulate_mutex_unlock(window, list->rank);
    }
    return ORIEL_OK;
}

/* Copied elements, consecutive in the list. */
struct batch {
    struct oriel_path path; /* of the first one */
    uint64_t first;
    unsigned count;
    struct oriel_piece places[BATCH_MOST];
};

/* The batch's offsets with a buffer of contiguous elements. */
static const struct oriel_piece *batch_with(struct batch *batch, struct oriel_piece *pieces,
                                            const char *here, uint64_t extent_bytes)
{
    for (unsigned i = 0; i < batch->count; i++)
        pieces[i] = (struct oriel_piece){batch->places[i].offset_bytes,
                                         (char *)(uintptr_t)here + i * extent_bytes, extent_bytes};
    return pieces;
}

static enum oriel_status batch_execute(struct batch *batch, const struct oriel_element_list *list)
{
    const struct oriel_kind_properties *kind = kind_of(list);
    const char *origin = origin_of(list, batch->first);
    char *result = result_of(list, batch->first);
    struct oriel_piece out[BATCH_MOST];
    if (batch->path.transport == &oriel_transport_agent) {
        batch_with(batch, out, result, kind->extent_bytes);
        if (origin != NULL)
            batch_with(batch, batch->places, origin, kind->extent_bytes);
        return oriel_agent_update(&batch->path.remote, list->type->kind, list->op,
                                  origin != NULL ? batch->places : NULL, out, batch->count);
    }
    char stage[BATCH_MOST * ELEMENT_BYTES] __attribute__((aligned(64)));
    batch_with(batch, out, stage, kind->extent_bytes);
    enum oriel_status status =
        batch->path.transport->read_pieces(&batch->path.remote, out, batch->count);
    if (status != ORIEL_OK)
        return status;
    kind->plain[list->op](stage, origin, result, batch->count);
    return list->op == ORIEL_OPERATOR_NO_OP
               ? ORIEL_OK
               : batch->path.transport->write_pieces(&batch->path.remote, out, batch->count);
}

/* Whether one address of this process plus offsets leads to both. */
static bool is_reached_alike(const struct oriel_remote *one, const struct oriel_remote *other)
{
    return (uintptr_t)one->direct - one->address == (uintptr_t)other->direct - other->address;
}

/* Adds the list's next element; false if it overlaps one of the batch, or needs another path. */
static bool batch_add(struct batch *batch, const struct oriel_path *path, uint64_t which,
                      uint64_t extent_bytes)
{
    if (batch->count == 0) {
        batch->path = *path;
        batch->first = which;
    }
    if (path->transport != batch->path.transport ||
        (path->transport == &oriel_transport_gpu &&
         !is_reached_alike(&path->remote, &batch->path.remote)))
        return false;
    const int64_t offset_bytes = (int64_t)(path->remote.address - batch->path.remote.address);
    for (unsigned i = 0; i < batch->count; i++)
        if ((uint64_t)(offset_bytes - batch->places[i].offset_bytes) + extent_bytes - 1 <
            2 * extent_bytes - 1)
            return false;
    batch->places[batch->count++].offset_bytes = offset_bytes;
    return true;
}

/* With the lock held, from *at on: elements that this process loads and stores, one by one. */
static void update_own(struct oriel_update *update, const struct oriel_element_list *list,
                       const struct oriel_path *path, uint64_t at)
{
    if (path->cpu_reaches)
        oriel_update_begin_plain(update);
    kind_of(list)->plain[list->op](path->remote.direct, origin_of(list, at), result_of(list, at),
                                   1);
}

/* With the lock held: at most BATCH_MOST elements without native kernels, from *at on. */
static enum oriel_status update_plain(struct oriel_update *update,
                                      const struct oriel_element_list *list, bool has_singles,
                                      uint64_t *at)
{
    const uint64_t extent_bytes = kind_of(list)->extent_bytes;
    const uint64_t end = list->count - *at < BATCH_MOST ? list->count : *at + BATCH_MOST;
    struct batch batch = {.count = 0};
    for (; *at < end; ++*at) {
        const struct oriel_path path = oriel_path_find(
            update->window, list->rank, offset_of(list, *at), 0, (int64_t)extent_bytes);
        if (path.transport != &oriel_transport_shared) {
            if (!batch_add(&batch, &path, *at, extent_bytes))
                break;
            continue;
        }
        if (batch.count > 0 || (has_singles && find_single(update->window, list, *at) != NULL))
            break;
        update_own(update, list, &path, *at);
    }
    return batch.count == 0 ? ORIEL_OK : batch_execute(&batch, list);
}

static enum oriel_status update_locked(struct oriel_window *window,
                                       const struct oriel_element_list *list, bool has_singles,
                                       uint64_t *at)
{
    struct oriel_update update = {.window = window,
                                  .rank = list->rank,
                                  .kind = list->type->kind,
                                  .op = list->op,
                                  .returns = true};
    enum oriel_status status = oriel_update_lock(&update);
    if (status != ORIEL_OK)
        return status;
    status = update_plain(&update, list, has_singles, at);
    oriel_update_unlock(&update, true);
    return oriel_path_status(status, window, list->rank);
}

/* One message for count elements from at on. */
static enum oriel_status send_elements(struct oriel_window *window,
                                       const struct oriel_element_list *list, uint64_t at,
                                       uint64_t count)
{
    const uint64_t extent_bytes = kind_of(list)->extent_bytes;
    int64_t offsets[MESSAGE_MOST];
    int64_t low_bytes = INT64_MAX, high_bytes = INT64_MIN;
    for (uint64_t i = 0; i < count; i++) {
        offsets[i] = (int64_t)offset_of(list, at + i);
        low_bytes = offsets[i] < low_bytes ? offsets[i] : low_bytes;
        high_bytes = offsets[i] > high_bytes ? offsets[i] : high_bytes;
    }
    struct oriel_node run = {.form = ORIEL_NODE_RUN,
                             .kind = list->type->kind,
                             .count = count,
                             .elements = count,
                             .size_bytes = count * extent_bytes,
                             .high_bytes = (int64_t)(count * extent_bytes),
                             .runs = 1,
                             .depth = 1,
                             .references = 1};
    struct oriel_node blocks = run;
    blocks.form = ORIEL_NODE_BLOCKS;
    blocks.offsets = offsets;
    blocks.block_bytes = extent_bytes;
    blocks.low_bytes = low_bytes;
    blocks.high_bytes = high_bytes + (int64_t)extent_bytes;
    blocks.runs = count;
    const struct oriel_type here = {.kind = list->type->kind,
                                    .dense = true,
                                    .elements = count,
                                    .size_bytes = run.size_bytes,
                                    .extent_bytes = (int64_t)run.size_bytes,
                                    .plain_bytes = (int64_t)run.size_bytes,
                                    .layout = &run};
    struct oriel_type there = here;
    there.dense = false;
    there.plain_bytes = INT64_MAX;
    there.layout = &blocks;
    const struct oriel_span target = {.rank = list->rank, .side = {&there, 1}};
    const struct oriel_operand from = {(char *)(uintptr_t)origin_of(list, at), {&here, 1}};
    const struct oriel_operand to = {result_of(list, at), {&here, 1}};
    return oriel_internode_accumulate(window, &target,
                                      (struct oriel_elements){list->type->kind, count}, list->op,
                                      from.here != NULL ? &from : NULL, &to);
}

static enum oriel_status send_list(struct oriel_window *window,
                                   const struct oriel_element_list *list)
{
    enum oriel_status status = ORIEL_OK;
    for (uint64_t at = 0, now; at < list->count && status == ORIEL_OK; at += now) {
        now = list->count - at < MESSAGE_MOST ? list->count - at : MESSAGE_MOST;
        status = send_elements(window, list, at, now);
    }
    return status;
}

/* Padded or resized pairs, of which only the fields move: one by one. */
static enum oriel_status update_pairs(struct oriel_window *window,
                                      const struct oriel_element_list *list)
{
    const struct oriel_side one = {list->type, 1};
    enum oriel_status status = ORIEL_OK;
    for (uint64_t at = 0; at < list->count && status == ORIEL_OK; at++) {
        const struct oriel_span target = {
            .rank = list->rank, .offset_bytes = offset_of(list, at), .side = one};
        const struct oriel_operand from = {(char *)(uintptr_t)origin_of(list, at), one};
        const struct oriel_operand to = {result_of(list, at), one};
        status = oriel_accumulate(window, &target, (struct oriel_elements){list->type->kind, 1},
                                  list->op, &from, &to);
    }
    return status;
}

/* With mirrors of the buffers that are device memory. */
static enum oriel_status update_mirrored(struct oriel_window *window,
                                         const struct oriel_element_list *list)
{
    const struct oriel_side elements = {list->type, list->count};
    struct oriel_element_list mirrored = *list;
    struct oriel_mirror origin = {.memory = NULL}, result = {.memory = NULL};
    enum oriel_status status = ORIEL_OK;
    if (list->op != ORIEL_OPERATOR_NO_OP)
        status = oriel_mirror_open(&origin, list->origin, &elements, 0);
    if (status == ORIEL_OK)
        status = oriel_mirror_open(&result, list->result, &elements,
                                   list->count * list->type->size_bytes);
    mirrored.origin = origin.here;
    mirrored.result = result.here;
    if (status == ORIEL_OK)
        status = oriel_fetch_and_op_list(window, &mirrored);
    status = oriel_mirrors_settle(window, list->rank, true, status);
    oriel_mirror_close(&origin);
    return oriel_mirror_store(&result, status);
}

static bool has_device_buffers(const struct oriel_element_list *list)
{
    const struct oriel_side elements = {list->type, list->count};
    return (list->op != ORIEL_OPERATOR_NO_OP && oriel_buffer_is_device(list->origin, &elements)) ||
           oriel_buffer_is_device(list->result, &elements);
}

enum oriel_status oriel_fetch_and_op_list(struct oriel_window *window,
                                          const struct oriel_element_list *list)
{
    const bool has_singles = kind_of(list)->native[list->op] != NULL;
    enum oriel_status status = ORIEL_OK;
    if (list->count == 0)
        return ORIEL_OK;
    if (oriel_device_buffers_occur(window)) {
        status = oriel_device_wait(window);
        if (status != ORIEL_OK)
            return status;
        if (has_device_buffers(list))
            return update_mirrored(window, list);
    }
    if (list->type->plain_bytes == INT64_MAX)
        return update_pairs(window, list);
    if (oriel_is_internode(window, list->rank))
        return send_list(window, list);
    oriel_deferred_do(window, list->rank);
    for (uint64_t at = 0; at < list->count && status == ORIEL_OK;) {
        char *there = has_singles ? find_single(window, list, at) : NULL;
        status = there != NULL ? update_singles(window, list, there, &at)
                               : update_locked(window, list, has_singles, &at);
    }
    return status;
}
