/* Deferred operations of this process. A copy by the kernel costs a microsecond, however short. Of
 * many short operations, adjacent ones become one, and the others share one call.
 *
 *   D1: Deferred operations are puts, and accumulates without a result. They have up to
 *       ORIEL_DEFERRED_BYTES in one run, and their target is another rank whose whole window is
 *       reached by copies. Nothing is deferred in an epoch of lock_all, which programs keep open
 *       for the lifetime of the window: some of them rely on a put arriving without a further call.
 *       Other access epochs usually end soon.
 *   D2: The data is copied at the call. So the operation is complete locally, and flush_local and
 *       requests have no work.
 *   D3: All deferred operations are for one target and of one sort: puts, or accumulates of one
 *       kind and operator.
 *   D4: They are executed before an operation is deferred that is of another sort, is on another
 *       target, or has no room. They are executed before an operation on their target that is not
 *       deferred. They are executed before a flush, unlock, fence or complete signals any other
 *       rank.
 *
 *   P1: All operations of one thread on one target take effect in their order. By D4 deferred
 *       operations are executed before any other begins, and in their order. MPI requires less, but
 *       individual copies had this order, too.
 *   P2: No operation is lost. A call that completes operations at the target executes the deferred
 *       ones first (D4), and only then releases a lock, signals, or enters a barrier. Deferred
 *       operations belong to the window, not to a thread, and a mutex is held from their first
 *       inspection until they are executed. So a thread completes earlier deferred operations of
 *       other threads, as MPI requires.
 *   P3: Accumulates stay atomic. The target's accumulate lock is held from the read of the elements
 *       until all are written. No other rank updates them meanwhile, nor sees a part of an
 *       element's bytes.
 *   P4: Bytes that no operation covers are never written: other ranks may put there concurrently.
 *   P5: A failure belongs to its operation. After one, all deferred operations are executed one by
 *       one, and adjacent ones page by page. So every operation that can succeed does. The next
 *       completing call reports the first failure.
 *
 * Thread-safe. */
#include "rma/deferred.h"

#include "base/delay.h"
#include "rma/path_select.h"
#include "sync/accumulate_mutex.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROOM_BYTES = 16 << 10,
    RUNS = 512, /* the kernel accepts up to 1,024 in a call */
    /* limit of one read and write: as much as a waiting target serves at a time */
    STAGE_BYTES = 4096,
    BITS = 64,
};
_Static_assert((int)STAGE_BYTES <= (int)ORIEL_POLLED_BYTES, "the target can serve it");

struct run {
    uint64_t offset_bytes; /* in the target's window */
    uint32_t at_bytes;     /* of its data */
    uint32_t len_bytes;
};

struct oriel_deferred {
    pthread_mutex_t mutex; /* protects all below */
    uint32_t count;        /* of deferred runs */
    int32_t rank;          /* D3: of the deferred operations, like the next two */
    enum oriel_kind kind;  /* ORIEL_KIND_NONE: puts */
    enum oriel_operator op;
    uint32_t used_bytes;
    enum oriel_status failure; /* P5; ORIEL_OK: none */
    char failure_text[512];
    struct run list[RUNS];
    char data[ROOM_BYTES] __attribute__((aligned(ORIEL_CACHE_LINE)));
};

/* --- executing --- */

static struct oriel_path deferred_path(struct oriel_window *window,
                                       const struct oriel_deferred *deferred, const struct run *run)
{
    return oriel_path_find(window, deferred->rank, run->offset_bytes, 0, run->len_bytes);
}

static enum oriel_status put_one(struct oriel_window *window, struct oriel_deferred *deferred,
                                 const struct run *run)
{
    const struct oriel_path path = deferred_path(window, deferred, run);
    const enum oriel_status status =
        oriel_path_write(&path, deferred->data + run->at_bytes, run->len_bytes);
    return oriel_path_status(status, window, deferred->rank);
}

/* Returns false on failure: then no put is known to be done. */
static bool put_many(struct oriel_window *window, struct oriel_deferred *deferred)
{
    struct oriel_piece pieces[RUNS];
    const struct run *runs = deferred->list;
    const unsigned count = deferred->count;
    const struct oriel_path path = deferred_path(window, deferred, &runs[0]);
    for (unsigned i = 0; i < count; i++)
        pieces[i] = (struct oriel_piece){(int64_t)(runs[i].offset_bytes - runs[0].offset_bytes),
                                         deferred->data + runs[i].at_bytes, runs[i].len_bytes};
    return path.transport->write_pieces(&path.remote, pieces, count) == ORIEL_OK;
}

static enum oriel_status accumulate_one(struct oriel_window *window,
                                        struct oriel_deferred *deferred, const struct run *run)
{
    return oriel_accumulate_run(window, deferred->rank, run->offset_bytes, deferred->kind,
                                deferred->op, deferred->data + run->at_bytes,
                                run->len_bytes / oriel_kinds[deferred->kind].extent_bytes);
}

/* The elements of a part of the target's window: first their old values, then the new ones. */
struct stage {
    uint64_t low_bytes;
    uint64_t end_bytes;
    uint64_t touched[STAGE_BYTES / BITS]; /* a bit per byte to be written: P4 */
    char bytes[STAGE_BYTES] __attribute__((aligned(ORIEL_CACHE_LINE)));
};

static void stage_touch(struct stage *stage, uint64_t from, uint64_t len_bytes)
{
    for (uint64_t end = from + len_bytes; from < end;) {
        const uint64_t bit = from % BITS;
        const uint64_t now = end - from < BITS - bit ? end - from : BITS - bit;
        stage->touched[from / BITS] |= (now == BITS ? UINT64_MAX : (UINT64_C(1) << now) - 1) << bit;
        from += now;
    }
}

/* The first byte at or after at that is touched, or is not; STAGE_BYTES: none. */
static uint64_t next_touched(const struct stage *stage, uint64_t at, bool is_touched)
{
    for (; at < STAGE_BYTES; at = (at / BITS + 1) * BITS) {
        const uint64_t word = stage->touched[at / BITS] ^ (is_touched ? 0 : UINT64_MAX);
        if (word >> at % BITS != 0)
            return at + (uint64_t)__builtin_ctzll(word >> at % BITS);
    }
    return STAGE_BYTES;
}

static enum oriel_status stage_write(const struct oriel_path *path, struct stage *stage,
                                     uint64_t at, uint64_t len_bytes)
{
    const struct oriel_path there = {path->transport, oriel_remote_advance(&path->remote, at),
                                     false};
    return oriel_path_write(&there, stage->bytes + at, len_bytes);
}

static enum oriel_status stage_write_touched(const struct oriel_path *path, struct stage *stage)
{
    struct oriel_piece pieces[RUNS];
    unsigned count = 0;
    for (uint64_t at = next_touched(stage, 0, true); at < STAGE_BYTES;
         at = next_touched(stage, at, true)) {
        const uint64_t end = next_touched(stage, at, false);
        pieces[count++] = (struct oriel_piece){(int64_t)at, stage->bytes + at, end - at};
        at = end;
    }
    if (count != 1)
        return path->transport->write_pieces(&path->remote, pieces, count);
    return stage_write(path, stage, (uint64_t)pieces[0].offset_bytes, pieces[0].len_bytes);
}

/* Chooses as many of the first runs as fit in a stage. */
static unsigned stage_choose_runs(const struct run *runs, unsigned count, struct stage *stage)
{
    unsigned taken = 0;
    stage->low_bytes = UINT64_MAX;
    stage->end_bytes = 0;
    for (; taken < count; taken++) {
        const uint64_t start = runs[taken].offset_bytes;
        const uint64_t end = start + runs[taken].len_bytes;
        const uint64_t low = start < stage->low_bytes ? start : stage->low_bytes;
        const uint64_t high = end > stage->end_bytes ? end : stage->end_bytes;
        if (high - low > STAGE_BYTES)
            break;
        stage->low_bytes = low;
        stage->end_bytes = high;
    }
    return taken;
}

/* P5. */
static void failure_record(struct oriel_deferred *deferred, enum oriel_status status)
{
    if (oriel_likely(status == ORIEL_OK) || deferred->failure != ORIEL_OK)
        return;
    deferred->failure = status;
    snprintf(deferred->failure_text, sizeof deferred->failure_text, "%s", oriel_fail_message());
}

/* P5: writes the touched bytes page by page. These are stores, so a piece may be written twice. */
static void stage_write_by_page(struct oriel_window *window, struct oriel_deferred *deferred,
                                const struct oriel_path *path, struct stage *stage)
{
    const uint64_t address = window->targets[deferred->rank].address + stage->low_bytes;
    for (uint64_t at = next_touched(stage, 0, true), now; at < STAGE_BYTES;
         at = next_touched(stage, at + now, true)) {
        const uint64_t to_page = ORIEL_PAGE_BYTES - (address + at) % ORIEL_PAGE_BYTES;
        const uint64_t touched = next_touched(stage, at, false) - at;
        now = touched < to_page ? touched : to_page;
        failure_record(
            deferred, oriel_path_status(stage_write(path, stage, at, now), window, deferred->rank));
    }
}

/* P3: one read, all operators in their order, one write. False: nothing has changed. */
static bool accumulate_staged(struct oriel_window *window, struct oriel_deferred *deferred,
                              const struct run *runs, unsigned count, struct stage *stage)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[deferred->kind];
    const struct run all = {.offset_bytes = stage->low_bytes,
                            .len_bytes = (uint32_t)(stage->end_bytes - stage->low_bytes)};
    const struct oriel_path path = deferred_path(window, deferred, &all);
    if (oriel_accumulate_mutex_lock(window, deferred->rank) != ORIEL_OK)
        return false;
    const bool is_read = oriel_path_read(&path, stage->bytes, all.len_bytes) == ORIEL_OK;
    oriel_delay();
    if (is_read) {
        memset(stage->touched, 0, sizeof stage->touched);
        for (unsigned i = 0; i < count; i++) {
            const uint64_t at = runs[i].offset_bytes - all.offset_bytes;
            kind->plain[deferred->op](stage->bytes + at, deferred->data + runs[i].at_bytes, NULL,
                                      runs[i].len_bytes / kind->extent_bytes);
            stage_touch(stage, at, runs[i].len_bytes);
        }
        if (stage_write_touched(&path, stage) != ORIEL_OK)
            stage_write_by_page(window, deferred, &path, stage);
    }
    oriel_accumulate_mutex_unlock(window, deferred->rank);
    return is_read;
}

typedef enum oriel_status execute_fn(struct oriel_window *window, struct oriel_deferred *deferred,
                                     const struct run *run);

/* P5: parts of whole elements of unit_bytes. Only an element may cross the end of a page. */
static void execute_parts(struct oriel_window *window, struct oriel_deferred *deferred,
                          const struct run *run, uint64_t unit_bytes, execute_fn *one)
{
    const uint64_t address = window->targets[deferred->rank].address + run->offset_bytes;
    for (uint32_t done = 0, now; done < run->len_bytes; done += now) {
        const uint64_t to_end = ORIEL_PAGE_BYTES - (address + done) % ORIEL_PAGE_BYTES;
        const uint64_t most = to_end < unit_bytes ? unit_bytes : to_end / unit_bytes * unit_bytes;
        now = run->len_bytes - done < most ? run->len_bytes - done : (uint32_t)most;
        failure_record(deferred,
                       one(window, deferred,
                           &(struct run){run->offset_bytes + done, run->at_bytes + done, now}));
    }
}

static void execute_puts(struct oriel_window *window, struct oriel_deferred *deferred)
{
    if (deferred->count == 1 ? put_one(window, deferred, &deferred->list[0]) == ORIEL_OK
                             : put_many(window, deferred))
        return;
    for (unsigned i = 0; i < deferred->count; i++)
        execute_parts(window, deferred, &deferred->list[i], 1, put_one);
}

static void execute_accumulates(struct oriel_window *window, struct oriel_deferred *deferred)
{
    const uint64_t unit_bytes = oriel_kinds[deferred->kind].extent_bytes;
    const struct run *end = deferred->list + deferred->count;
    struct stage stage;
    unsigned taken;
    for (const struct run *runs = deferred->list; runs < end; runs += taken) {
        taken = stage_choose_runs(runs, (unsigned)(end - runs), &stage);
        if (taken > 1 && accumulate_staged(window, deferred, runs, taken, &stage))
            continue;
        taken = 1;
        execute_parts(window, deferred, runs, unit_bytes, accumulate_one);
    }
}

/* With the mutex held. */
static void deferred_execute(struct oriel_window *window, struct oriel_deferred *deferred)
{
    if (deferred->count == 0)
        return;
    if (deferred->kind == ORIEL_KIND_NONE)
        execute_puts(window, deferred);
    else
        execute_accumulates(window, deferred);
    deferred->count = 0;
    deferred->used_bytes = 0;
}

static void deferred_execute_for(struct oriel_window *window, struct oriel_deferred *deferred,
                                 int32_t rank)
{
    if (rank < 0 || rank == deferred->rank)
        deferred_execute(window, deferred);
}

void oriel_deferred_do_all(struct oriel_window *window, int32_t rank)
{
    struct oriel_deferred *deferred = window->deferred;
    pthread_mutex_lock(&deferred->mutex);
    deferred_execute_for(window, deferred, rank);
    pthread_mutex_unlock(&deferred->mutex);
}

enum oriel_status oriel_deferred_complete_all(struct oriel_window *window, int32_t rank)
{
    struct oriel_deferred *deferred = window->deferred;
    pthread_mutex_lock(&deferred->mutex);
    deferred_execute_for(window, deferred, rank);
    const enum oriel_status status = deferred->failure;
    if (oriel_unlikely(status != ORIEL_OK))
        (void)oriel_fail(status, "%s", deferred->failure_text);
    deferred->failure = ORIEL_OK;
    pthread_mutex_unlock(&deferred->mutex);
    return status;
}

/* --- deferring --- */

/* The sort of an operation: D3. */
struct operation_sort {
    int32_t rank;
    enum oriel_kind kind;
    enum oriel_operator op;
};

static bool deferred_has_room(const struct oriel_deferred *deferred,
                              const struct operation_sort *sort, uint64_t len_bytes)
{
    return deferred->rank == sort->rank && deferred->kind == sort->kind &&
           deferred->op == sort->op && len_bytes <= ROOM_BYTES - deferred->used_bytes &&
           deferred->count < RUNS;
}

/* A run that continues the last one extends it: their data is adjacent, too. */
static void deferred_append(struct oriel_deferred *deferred, uint64_t offset_bytes,
                            const void *here, uint64_t len_bytes)
{
    const uint32_t count = deferred->count;
    struct run *last = &deferred->list[count > 0 ? count - 1 : 0];
    memcpy(deferred->data + deferred->used_bytes, here, len_bytes); /* D2 */
    if (count > 0 && last->offset_bytes + last->len_bytes == offset_bytes) {
        last->len_bytes += (uint32_t)len_bytes;
    } else {
        deferred->list[count] =
            (struct run){offset_bytes, deferred->used_bytes, (uint32_t)len_bytes};
        deferred->count = count + 1;
    }
    deferred->used_bytes += (uint32_t)len_bytes;
}

static void deferred_add(struct oriel_window *window, const struct operation_sort *sort,
                         uint64_t offset_bytes, const void *here, uint64_t len_bytes)
{
    struct oriel_deferred *deferred = window->deferred;
    pthread_mutex_lock(&deferred->mutex);
    if (oriel_unlikely(!deferred_has_room(deferred, sort, len_bytes))) {
        deferred_execute(window, deferred); /* D4 */
        deferred->rank = sort->rank;
        deferred->kind = sort->kind;
        deferred->op = sort->op;
    }
    deferred_append(deferred, offset_bytes, here, len_bytes);
    pthread_mutex_unlock(&deferred->mutex);
}

void oriel_deferred_put(struct oriel_window *window, int32_t rank, uint64_t offset_bytes,
                        const void *here, uint64_t len_bytes)
{
    deferred_add(window, &(struct operation_sort){rank, ORIEL_KIND_NONE, ORIEL_OPERATOR_NO_OP},
                 offset_bytes, here, len_bytes);
}

void oriel_deferred_accumulate(struct oriel_window *window, int32_t rank, uint64_t offset_bytes,
                               enum oriel_kind kind, enum oriel_operator op, const void *here,
                               uint64_t count)
{
    deferred_add(window, &(struct operation_sort){rank, kind, op}, offset_bytes, here,
                 count * oriel_kinds[kind].extent_bytes);
}

/* --- per window --- */

void oriel_deferred_make(struct oriel_window *window)
{
    bool any = false;
    for (int32_t i = 0; i < window->n && !any; i++)
        any = i != window->rank && window->targets[i].placement == ORIEL_PLACEMENT_COPY;
    struct oriel_deferred *deferred =
        any ? aligned_alloc(ORIEL_CACHE_LINE, sizeof *deferred) : NULL;
    if (deferred == NULL)
        return;
    pthread_mutex_init(&deferred->mutex, NULL);
    deferred->count = 0;
    deferred->rank = -1;
    deferred->used_bytes = 0;
    deferred->failure = ORIEL_OK;
    window->deferred = deferred;
}

void oriel_deferred_free(struct oriel_window *window)
{
    if (window->deferred != NULL)
        pthread_mutex_destroy(&window->deferred->mutex);
    free(window->deferred);
    window->deferred = NULL;
}
