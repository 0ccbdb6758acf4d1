/* A buffer in device memory passes through a few pinned buffers of this process, part by part, so
 * an operation of any size needs no other memory. While a part of a put is sent, the driver copies
 * the next one; while it copies a part of a get, the next ones arrive.
 *
 * Part k is in buffer k modulo BUFFERS.
 *
 *   P1: One operation at a time has the buffers (mutex). It takes them when it has what it needs of
 *       the target: a lock may be held by a rank that waits for another thread of this process. No
 *       thread that serves other processes takes them. So who has them waits only for the driver
 *       and for processes that serve.
 *   P2: Of a put, the driver's copy of part k has ended before the messages of part k are sent.
 *       Then the copy of part k + 1 is begun. Its buffer had part k + 1 - BUFFERS, whose messages
 *       were sent before. Sending copies the data, so no message refers to the buffers.
 *   P3: Of a get, part k is requested when the copy of part k - BUFFERS to the device has ended.
 *       Each copy is begun when its part has arrived and the copy before has ended, so the copy of
 *       part k + 1 - BUFFERS has just begun, and the parts after it are on their way.
 *   P4: Before the buffers are released, all copies have ended, and of a get, all requests: also
 *       after a failure, and also those of parts that are not copied. A lost target's requests have
 *       ended, and its replies are not taken any more (net.h, N4).
 *
 * So a put is complete locally when it returns, as one of host memory is: its messages are sent,
 * and the next flush of the target, unlock or fence completes it there. A get is complete when it
 * returns (P4). A failure is that of the call; of a put, what the target refuses is reported by the
 * call that completes it. */
#include "rma/device_pipeline.h"

#include "base/log.h"
#include "gpu/gpu.h"
#include "internode/origin/origin_sync.h"
#include "memory/file.h"
#include "rma/path_select.h"

#include <pthread.h>

enum {
    /* Two overlap a copy with messages. While a part of a get is copied and the next one has just
     * arrived, two more are on their way. */
    BUFFERS = 4,
    PIECES = 256, /* of a datatype, in one call of the driver's table */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* P1 */
static _Alignas(ORIEL_PAGE_BYTES) char buffers[BUFFERS][ORIEL_PIPELINE_PART_BYTES];

struct pipeline {
    struct oriel_internode_staging staging; /* the first member */
    struct oriel_window *window;
    int32_t target;
    bool to_target;
    bool has_buffers;
    char *here;                 /* in device memory */
    const char *low;            /* its first byte that moves */
    struct oriel_cursor cursor; /* of its items: the next byte that the driver copies */
    uint64_t left_bytes;        /* that the driver has not begun to copy */
    uint64_t open_bytes;        /* that next has not returned */
    uint64_t copied;            /* parts whose copy is begun */
    uint64_t opened;            /* parts that next has returned */
    uint64_t until[BUFFERS];    /* of a get: the last request of the part in the buffer */
    struct oriel_gpu_copies copies;
};

static uint64_t part_of(uint64_t left_bytes)
{
    return left_bytes < ORIEL_PIPELINE_PART_BYTES ? left_bytes : ORIEL_PIPELINE_PART_BYTES;
}

/* --- the driver's copies --- */

/* Begins the copy of the next part, between its buffer and the items. */
static enum oriel_status part_copy(struct pipeline *line)
{
    struct oriel_gpu_piece pieces[PIECES];
    struct oriel_batch *batch = &line->cursor.batch;
    char *packed = buffers[line->copied++ % BUFFERS];
    unsigned count = 0;
    enum oriel_status status = ORIEL_OK;
    uint64_t part_bytes = part_of(line->left_bytes);
    line->left_bytes -= part_bytes;
    while (part_bytes > 0 && status == ORIEL_OK && oriel_cursor_fill(&line->cursor)) {
        const uint64_t piece_bytes = oriel_batch_piece(batch);
        const uint64_t now = piece_bytes < part_bytes ? piece_bytes : part_bytes;
        char *device = oriel_at(line->here, batch->at_bytes);
        pieces[count++] = (struct oriel_gpu_piece){line->to_target ? packed : device,
                                                   line->to_target ? device : packed, now};
        oriel_batch_use(batch, now);
        packed += now;
        part_bytes -= now;
        if (count == PIECES || part_bytes == 0) {
            status = oriel_gpu_copy(pieces, count, &line->copies);
            count = 0;
        }
    }
    return oriel_path_status(status, line->window, line->target);
}

static enum oriel_status copies_end(struct pipeline *line)
{
    return oriel_path_status(oriel_gpu_copies_end(&line->copies), line->window, line->target);
}

/* --- parts --- */

/* P2. */
static enum oriel_status put_next(struct pipeline *line)
{
    enum oriel_status status = line->copied == 0 ? part_copy(line) : ORIEL_OK;
    if (status == ORIEL_OK)
        status = copies_end(line);
    if (status == ORIEL_OK && line->left_bytes > 0)
        status = part_copy(line);
    return status;
}

/* Awaits the oldest part that has not been copied to the device, and begins its copy. */
static enum oriel_status get_store(struct pipeline *line)
{
    enum oriel_status status = oriel_internode_flush_until(line->window, line->target,
                                                           line->until[line->copied % BUFFERS]);
    if (status == ORIEL_OK)
        status = copies_end(line);
    return status == ORIEL_OK ? part_copy(line) : status;
}

/* After the requests of the last part are sent. */
static void get_sent(struct pipeline *line)
{
    if (line->opened > 0)
        line->until[(line->opened - 1) % BUFFERS] = oriel_internode_last_request(line->window);
}

/* P3. */
static enum oriel_status get_next(struct pipeline *line)
{
    get_sent(line);
    oriel_net_progress(); /* the requests leave before this thread waits for the driver */
    return line->opened - line->copied == BUFFERS - 1 ? get_store(line) : ORIEL_OK;
}

/* P1. Without the driver's pinning, its copies and the messages may not overlap. */
static void buffers_take(const struct pipeline *line)
{
    static bool is_refused;
    pthread_mutex_lock(&mutex);
    if (is_refused || oriel_gpu_pin(buffers, sizeof buffers, line->low) == ORIEL_OK)
        return;
    is_refused = true;
    oriel_warn("large puts and gets of device memory between nodes go through buffers that are not "
               "pinned, which takes longer: %s [O33]",
               oriel_fail_message());
}

static enum oriel_status part_next(struct oriel_internode_staging *staging, char **here,
                                   uint64_t *len_bytes)
{
    struct pipeline *line = (struct pipeline *)staging;
    if (!line->has_buffers)
        buffers_take(line);
    line->has_buffers = true;
    const enum oriel_status status = line->to_target ? put_next(line) : get_next(line);
    *here = buffers[line->opened++ % BUFFERS];
    *len_bytes = part_of(line->open_bytes);
    line->open_bytes -= *len_bytes;
    return status;
}

/* P4, after the last part or a failure; status: of the messages. */
static enum oriel_status pipeline_end(struct pipeline *line, enum oriel_status status)
{
    struct oriel_first_failure first = {.status = ORIEL_OK};
    oriel_first_failure_record(&first, status);
    if (!line->to_target) {
        get_sent(line);
        while (first.status == ORIEL_OK && line->left_bytes > 0)
            oriel_first_failure_record(&first, get_store(line));
        if (first.status != ORIEL_OK)
            oriel_first_failure_record(&first,
                                       oriel_internode_flush_local(line->window, line->target));
    }
    oriel_first_failure_record(&first, copies_end(line));
    if (line->has_buffers)
        pthread_mutex_unlock(&mutex);
    return oriel_first_failure_raise(&first);
}

enum oriel_status oriel_pipeline_transfer(struct oriel_window *window,
                                          const struct oriel_span *target, char *here,
                                          const struct oriel_side *origin, uint64_t total_bytes,
                                          bool to_target)
{
    struct pipeline line = {.staging.next = part_next,
                            .window = window,
                            .target = target->rank,
                            .to_target = to_target,
                            .here = here,
                            .low = oriel_at(here, origin->type->layout->low_bytes),
                            .left_bytes = total_bytes,
                            .open_bytes = total_bytes,
                            .copies.mutex = PTHREAD_MUTEX_INITIALIZER};
    if (!oriel_cursor_open(&line.cursor, origin->type->layout, origin->count,
                           origin->type->extent_bytes))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    const enum oriel_status status =
        pipeline_end(&line, oriel_internode_transfer_staged(window, target, total_bytes,
                                                            &line.staging, to_target));
    oriel_cursor_close(&line.cursor);
    return status;
}
