/* Owns which pages are promoted, and their holds.  The list changes under one mutex and never during a freeze; fork takes the
 * mutex, so that no child is made half way.  The window layer calls (promote.h). */
#include "memory/promote.h"

#include "memory/candidate.h"
#include "memory/file.h"
#include "memory/promote_fork.h"
#include "memory/restore.h"
#include "memory/runs.h"
#include "memory/transfer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALLEST_BLOCK (UINT64_C(64) << 10) /* of the file: whole pages by itself */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t forks = PTHREAD_ONCE_INIT;
static struct oriel_runs runs;
static struct oriel_held *held; /* each may need two more runs when it ends */
static size_t held_count;
static size_t held_capacity;
static bool is_child; /* the memory file is the parent's */

/* --- fork --- */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
    oriel_restore_forget(&runs);
    oriel_promote_fork_before(held, held_count);
}

static void after_fork(void)
{
    oriel_promote_fork_parent();
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    oriel_promote_fork_child(&runs, held, held_count);
    runs.count = 0;
    is_child = true;
    pthread_mutex_unlock(&mutex);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

/* --- promotion --- */

struct request {
    uintptr_t base;
    uint64_t len_bytes;
    const struct oriel_promote_how *how;
    uintptr_t start; /* the pages */
    uintptr_t end;
    struct oriel_candidate found;
    size_t gaps;     /* ranges that are not promoted yet */
    uint64_t offset; /* of start, in the block */
    struct oriel_run_block *block;
    struct oriel_transfer transfer;
};

/* The pages of a range, by the means: outward, or inward. */
static enum oriel_status choose_pages(struct request *request)
{
    const uintptr_t in_page = ORIEL_PAGE_BYTES - 1;
    bool inward = request->transfer.freeze.means == ORIEL_MEANS_QUIESCE;
    uintptr_t end = request->base + request->len_bytes;
    request->start = (inward ? request->base + in_page : request->base) & ~in_page;
    request->end = (inward ? end : end + in_page) & ~in_page;
    if (request->start < request->end)
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_OTHER, "%lu bytes at %#lx hold no whole page", (unsigned long)request->len_bytes,
                      (unsigned long)request->base);
}

/* The first range from *start on that is not promoted, up to end. */
static bool next_gap(uintptr_t *start, uintptr_t end, uintptr_t *gap_end)
{
    size_t at = oriel_runs_after(&runs, *start);
    while (at < runs.count && runs.list[at].start <= *start)
        *start = runs.list[at++].end;
    *gap_end = at < runs.count && runs.list[at].start < end ? runs.list[at].start : end;
    return *start < end;
}

/* Looks at all that is to be promoted, and counts it. */
static enum oriel_status judge(struct request *request)
{
    uintptr_t gap_end;
    enum oriel_status status = choose_pages(request);
    if (status != ORIEL_OK)
        return status;
    uint32_t most = request->how->runs_max > 0 ? request->how->runs_max : ORIEL_PROMOTED_RUNS_MAX;
    request->found = (struct oriel_candidate){.file_backed = false};
    request->gaps = 0;
    for (uintptr_t at = request->start; next_gap(&at, request->end, &gap_end); at = gap_end)
        request->gaps++;
    if (request->gaps > 0 && runs.count + request->gaps > most)
        return oriel_fail(ORIEL_E_OTHER, "%zu separate ranges are promoted already, and %u is the most", runs.count, most);
    for (uintptr_t at = request->start; next_gap(&at, request->end, &gap_end); at = gap_end) {
        struct oriel_candidate found;
        status = oriel_candidate_check(at, gap_end, request->how->huge_allowed, &found);
        if (status != ORIEL_OK)
            return status;
        request->found.file_backed |= found.file_backed;
        request->found.unreserved |= found.unreserved;
    }
    return ORIEL_OK;
}

static void add_run(struct request *request, uintptr_t start, uintptr_t end)
{
    struct oriel_run run = {.start = start,
                            .end = end,
                            .offset = request->offset + (start - request->start),
                            .unreserved = request->found.unreserved,
                            .block = request->block};
    request->block->live_bytes += end - start;
    oriel_runs_insert(&runs, &run);
}

/* Promotes the gaps.  What was promoted has no hold yet; after a failure the caller restores it. */
static enum oriel_status fill(struct request *request)
{
    enum oriel_status status = ORIEL_OK;
    uintptr_t gap_end;
    for (uintptr_t at = request->start; status == ORIEL_OK && next_gap(&at, request->end, &gap_end); at = gap_end) {
        uintptr_t stuck_start, stuck_end;
        status = oriel_transfer_in(&request->transfer, at, gap_end - at, request->offset + (at - request->start),
                                   request->found.file_backed, &stuck_start, &stuck_end);
        if (status == ORIEL_OK)
            add_run(request, at, gap_end);
        else if (stuck_start < stuck_end)
            add_run(request, stuck_start, stuck_end);
    }
    return status;
}

/* One block of the file for the whole range, so that one difference leads from addresses to offsets. */
static enum oriel_status make_block(struct request *request)
{
    uint64_t len_bytes = request->end - request->start;
    request->block = calloc(1, sizeof *request->block);
    if (request->block == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of promoted ranges");
    enum oriel_status status =
        oriel_file_alloc_sparse(len_bytes > SMALLEST_BLOCK ? len_bytes : SMALLEST_BLOCK, &request->block->offset);
    request->offset = request->block->offset;
    request->block->live_bytes = 1; /* until the request is done */
    if (status != ORIEL_OK)
        free(request->block);
    return status;
}

static void hold(uintptr_t start, uintptr_t end)
{
    oriel_runs_split(&runs, start);
    oriel_runs_split(&runs, end);
    for (size_t at = oriel_runs_after(&runs, start); at < runs.count && runs.list[at].start < end; at++)
        runs.list[at].holds++;
    oriel_runs_join(&runs, start, end);
}

static bool prepare_held(void)
{
    if (held_count < held_capacity)
        return true;
    size_t capacity = 2 * held_capacity + 32;
    struct oriel_held *larger = realloc(held, capacity * sizeof *larger);
    if (larger == NULL)
        return false;
    held = larger;
    held_capacity = capacity;
    return true;
}

static void forget_held(const struct oriel_held *which)
{
    size_t at = 0;
    while (at < held_count && (held[at].base != which->base || held[at].end != which->end))
        at++;
    if (at < held_count)
        held[at] = held[--held_count];
}

static enum oriel_status promote(struct request *request)
{
    if (!prepare_held() || !oriel_runs_prepare(&runs, request->gaps + 2 * (held_count + 1)))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of promoted ranges");
    if (request->gaps == 0)
        return ORIEL_OK;
    enum oriel_status status = make_block(request);
    if (status != ORIEL_OK)
        return status;
    status = fill(request);
    if (status != ORIEL_OK) {
        char reason[400];
        snprintf(reason, sizeof reason, "%s", oriel_fail_message());
        oriel_restore_unheld(&runs, request->start, request->end, request->how->means);
        oriel_fail(status, "%s", reason);
    }
    oriel_restore_drop(request->block, 1);
    return status;
}

/* Private copies of files cannot be write-protected by userfaultfd. */
static enum oriel_status choose_means(struct request *request)
{
    enum oriel_status status = oriel_transfer_open(request->how->means, &request->transfer);
    if (status != ORIEL_OK)
        return status;
    status = judge(request);
    if (status == ORIEL_OK && request->found.file_backed && request->transfer.freeze.means == ORIEL_MEANS_PROTECT) {
        oriel_transfer_close(&request->transfer);
        if (request->how->means == ORIEL_MEANS_PROTECT)
            return oriel_fail(ORIEL_E_OTHER, "the memory at %#lx is a private copy of a file, which userfaultfd cannot protect",
                              (unsigned long)request->start);
        status = oriel_transfer_open(ORIEL_MEANS_QUIESCE, &request->transfer);
        if (status != ORIEL_OK)
            return status;
        status = judge(request);
    }
    if (status != ORIEL_OK)
        oriel_transfer_close(&request->transfer);
    return status;
}

static enum oriel_status promote_locked(struct request *request)
{
    uint64_t offset;
    if (is_child)
        return oriel_fail(ORIEL_E_OTHER, "the memory file belongs to the process that forked this one");
    if (oriel_file_find((void *)request->base, 1, &offset))
        return oriel_fail(ORIEL_E_OTHER, "the memory at %#lx is in the memory file already", (unsigned long)request->base);
    if (request->len_bytes > UINTPTR_MAX - ORIEL_PAGE_BYTES - request->base)
        return oriel_fail(ORIEL_E_OTHER, "the range passes the end of the address space");
    oriel_restore_forget(&runs);
    enum oriel_status status = choose_means(request);
    if (status != ORIEL_OK)
        return status;
    status = promote(request);
    oriel_transfer_close(&request->transfer);
    return status;
}

enum oriel_status oriel_promote(uintptr_t base, uint64_t len_bytes, const struct oriel_promote_how *how,
                                struct oriel_promoted *out)
{
    static const struct oriel_promote_how usual = {.means = ORIEL_MEANS_AUTO};
    struct request request = {.base = base, .len_bytes = len_bytes, .how = how != NULL ? how : &usual};
    *out = (struct oriel_promoted){.start = 0};
    if (len_bytes == 0)
        return ORIEL_OK;
    pthread_once(&forks, watch_forks);
    pthread_mutex_lock(&mutex);
    enum oriel_status status = promote_locked(&request);
    if (status == ORIEL_OK) {
        hold(request.start, request.end);
        held[held_count++] = (struct oriel_held){base, base + len_bytes};
        *out = (struct oriel_promoted){request.start, request.end, held[held_count - 1], request.how->means};
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_promote_release(struct oriel_promoted *promoted)
{
    if (promoted->start == promoted->end)
        return;
    pthread_mutex_lock(&mutex);
    if (!is_child) {
        forget_held(&promoted->bytes);
        oriel_runs_split(&runs, promoted->start);
        oriel_runs_split(&runs, promoted->end);
        for (size_t at = oriel_runs_after(&runs, promoted->start); at < runs.count && runs.list[at].start < promoted->end; at++)
            if (runs.list[at].holds > 0)
                runs.list[at].holds--;
        oriel_restore_unheld(&runs, promoted->start, promoted->end, promoted->means);
        oriel_runs_join(&runs, promoted->start, promoted->end);
    }
    pthread_mutex_unlock(&mutex);
    *promoted = (struct oriel_promoted){.start = 0};
}

bool oriel_promote_find(uintptr_t address, uint64_t len_bytes, uint64_t *offset, uint64_t *held_bytes)
{
    pthread_mutex_lock(&mutex);
    size_t at = oriel_runs_after(&runs, address);
    bool found = at < runs.count && runs.list[at].start <= address;
    if (found) {
        const struct oriel_run *run = &runs.list[at];
        uintptr_t end = run->end;
        *offset = run->offset + (address - run->start);
        while (++at < runs.count && runs.list[at].start == end && runs.list[at].offset - end == run->offset - run->start)
            end = runs.list[at].end;
        *held_bytes = end - address < len_bytes ? end - address : len_bytes;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}
