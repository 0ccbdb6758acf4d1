/* Copies between two layouts. Memory that this process loads and stores is copied from layout to
 * layout (datatype/copy_layout.c). A get of many pieces near each other fetches everything from the
 * first to the last and copies from there. Otherwise two cursors, one per side, advance together.
 * The runs without a hole on both sides are collected into pieces for the transport. If the
 * transport is the CPU after all, runs of equal length at equal distances move in one loop. */
#include "rma/copy_remote.h"

#include "base/atomic.h"
#include "gpu/gpu.h"
#include "transport/shared/copy_strided.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECES = 256,
    WHOLE_PIECES = 4,      /* at least, to fetch pieces with their gaps */
    WHOLE_BYTES = 1 << 20, /* at most */
    /* bytes that cost as much as one more piece: the kernel needs 360 ns for a piece, an agent
     * 40 */
    BYTES_OF_A_PIECE = 512,
};

struct mover {
    const struct oriel_transport *transport;
    const struct oriel_remote *remote;
    char *here;
    bool to_target;
    struct oriel_cursor target;
    struct oriel_cursor origin;
    unsigned collected;
    struct oriel_piece pieces[PIECES];
};

static enum oriel_status pieces_deliver(struct mover *mover)
{
    unsigned count = mover->collected;
    mover->collected = 0;
    if (count == 0)
        return ORIEL_OK;
    return mover->to_target ? mover->transport->write_pieces(mover->remote, mover->pieces, count)
                            : mover->transport->read_pieces(mover->remote, mover->pieces, count);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static char *at_origin(const struct mover *mover)
{
    return oriel_at(mover->here, mover->origin.batch.at_bytes);
}

/* Collects the bytes without a hole on both sides as one piece. */
static enum oriel_status piece_collect(struct mover *mover)
{
    uint64_t len_bytes =
        smaller(oriel_batch_piece(&mover->target.batch), oriel_batch_piece(&mover->origin.batch));
    mover->pieces[mover->collected++] =
        (struct oriel_piece){mover->target.batch.at_bytes, at_origin(mover), len_bytes};
    oriel_batch_use(&mover->target.batch, len_bytes);
    oriel_batch_use(&mover->origin.batch, len_bytes);
    return mover->collected == PIECES ? pieces_deliver(mover) : ORIEL_OK;
}

/* A batch as runs of run_bytes: a long run is many adjacent short ones. */
struct strided {
    uint64_t runs; /* 0: not possible */
    int64_t stride_bytes;
};

static struct strided as_strided(const struct oriel_batch *batch, uint64_t run_bytes)
{
    if (oriel_kinds[batch->kind].padded)
        return (struct strided){0, 0};
    if (batch->run_bytes == run_bytes && batch->left_bytes == run_bytes)
        return (struct strided){batch->further + 1, batch->stride_bytes};
    if (batch->further == 0)
        return (struct strided){batch->left_bytes / run_bytes, (int64_t)run_bytes};
    return (struct strided){0, 0};
}

static void use_strided(struct oriel_batch *batch, uint64_t run_bytes, uint64_t runs)
{
    if (batch->run_bytes == run_bytes && batch->left_bytes == run_bytes)
        oriel_batch_use_runs(batch, runs);
    else
        oriel_batch_use(batch, runs * run_bytes);
}

/* Moves whole runs in one loop if memory is shared and both sides allow it; false if not. */
static bool move_strided(struct mover *mover)
{
    struct oriel_batch *target = &mover->target.batch;
    struct oriel_batch *origin = &mover->origin.batch;
    uint64_t run_bytes = smaller(target->run_bytes, origin->run_bytes);
    struct strided there = as_strided(target, run_bytes);
    struct strided here = as_strided(origin, run_bytes);
    uint64_t runs = smaller(there.runs, here.runs);
    if (mover->transport != &oriel_transport_shared || runs < 2)
        return false;
    char *at_target = oriel_at(mover->remote->direct, target->at_bytes);
    char *at_here = at_origin(mover);
    if (mover->to_target)
        oriel_copy_runs(at_target, there.stride_bytes, at_here, here.stride_bytes, run_bytes, runs);
    else
        oriel_copy_runs(at_here, here.stride_bytes, at_target, there.stride_bytes, run_bytes, runs);
    use_strided(target, run_bytes, runs);
    use_strided(origin, run_bytes, runs);
    return true;
}

static enum oriel_status copy_walk(struct mover *mover)
{
    struct oriel_cursor *source = mover->to_target ? &mover->origin : &mover->target;
    struct oriel_cursor *sink = mover->to_target ? &mover->target : &mover->origin;
    enum oriel_status status = ORIEL_OK;
    while (status == ORIEL_OK && oriel_cursor_fill(source) && oriel_cursor_fill(sink))
        if (!move_strided(mover))
            status = piece_collect(mover);
    return status == ORIEL_OK ? pieces_deliver(mover) : status;
}

enum oriel_status oriel_copy_by_pieces(const struct oriel_transport *transport,
                                       const struct oriel_remote *remote,
                                       const struct oriel_items *target, char *here,
                                       const struct oriel_items *origin, bool to_target)
{
    struct mover mover;
    mover.transport = transport;
    mover.remote = remote;
    mover.here = here;
    mover.to_target = to_target;
    mover.collected = 0;
    if (!oriel_cursor_open(&mover.target, target->layout, target->count, target->extent_bytes))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    enum oriel_status status = ORIEL_OK;
    if (oriel_cursor_open(&mover.origin, origin->layout, origin->count, origin->extent_bytes)) {
        status = copy_walk(&mover);
        oriel_cursor_close(&mover.origin);
    } else {
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    }
    oriel_cursor_close(&mover.target);
    return status;
}

static uint64_t pieces_of(const struct oriel_items *items)
{
    return items->count * items->layout->runs;
}

/* Fetches everything between the target's first byte and its last in one transfer, and copies from
 * there. Returns false if that does not pay or fails, for example if a part of the gaps is not
 * mapped. The caller then moves the pieces. */
static bool get_whole(const struct oriel_transport *transport, const struct oriel_remote *remote,
                      const struct oriel_items *target, char *here,
                      const struct oriel_items *origin)
{
    int64_t low_bytes, high_bytes, span_bytes;
    const uint64_t pieces =
        pieces_of(target) > pieces_of(origin) ? pieces_of(target) : pieces_of(origin);
    if (pieces < WHOLE_PIECES || !oriel_copy_is_supported(target, origin) ||
        oriel_gpu_is_device(oriel_at(here, origin->layout->low_bytes)) ||
        !oriel_layout_bounds(target->layout, target->count, target->extent_bytes, &low_bytes,
                             &high_bytes) ||
        __builtin_sub_overflow(high_bytes, low_bytes, &span_bytes) || span_bytes > WHOLE_BYTES ||
        (uint64_t)span_bytes / BYTES_OF_A_PIECE > pieces)
        return false;
    /* the transfer ends here, so it is not in the order of the program's stream */
    if (remote->begun != NULL && oriel_gpu_stream_wait(remote->begun) != ORIEL_OK)
        return false;
    const struct oriel_remote first = {oriel_at(remote->direct, low_bytes),
                                       remote->address + (uint64_t)low_bytes,
                                       remote->agent,
                                       remote->pid,
                                       remote->writers,
                                       remote->polled,
                                       NULL};
    char *whole = malloc((size_t)span_bytes);
    const bool came = whole != NULL &&
                      transport->read(&first, whole, (uint64_t)span_bytes) == ORIEL_OK &&
                      oriel_copy_items(here, origin, oriel_at(whole, -low_bytes), target);
    free(whole);
    return came;
}

enum oriel_status oriel_copy_remote(const struct oriel_transport *transport,
                                    const struct oriel_remote *remote,
                                    const struct oriel_items *target, char *here,
                                    const struct oriel_items *origin, bool to_target)
{
    if (transport != &oriel_transport_shared && !to_target &&
        get_whole(transport, remote, target, here, origin))
        return ORIEL_OK;
    if (transport != &oriel_transport_shared || !oriel_copy_is_supported(target, origin))
        return oriel_copy_by_pieces(transport, remote, target, here, origin, to_target);
    bool copied = to_target ? oriel_copy_items(remote->direct, target, here, origin)
                            : oriel_copy_items(here, origin, remote->direct, target);
    return copied ? ORIEL_OK : oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
}
