/* Owns the list of promoted pages and their reference counts. The list changes under one mutex and
 * never during a write barrier. fork acquires the mutex, so no child is created in the middle of a
 * promotion. */
#include "memory/promote/promote.h"

#include "base/fork.h"
#include "base/log.h"
#include "memory/file.h"
#include "memory/pages.h"
#include "memory/promote/demote.h"
#include "memory/promote/discard.h"
#include "memory/promote/fork_leases.h"
#include "memory/promote/page_migrate.h"
#include "memory/promote/pinned_pages.h"
#include "memory/promote/promotable.h"
#include "memory/promote/promote_fork.h"
#include "memory/promote/promoted_ranges.h"
#include "memory/promote/split_mappings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SMALLEST_BLOCK (UINT64_C(64) << 10) /* of the file: a block of whole pages */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool watches_forks;
static struct oriel_promoted_ranges ranges;
static bool is_child; /* the memory file belongs to the parent */
/* what AUTO resolved to at the last attempt; AUTO before that */
static enum oriel_barrier_method usual_method;

/* --- fork --- */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
    oriel_demote_forget_replaced(&ranges);
    oriel_promote_fork_before(&ranges);
}

static void after_fork(void)
{
    oriel_promote_fork_parent();
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    oriel_promote_fork_child(&ranges);
    ranges.count = 0;
    is_child = true;
    pthread_mutex_unlock(&mutex);
}

/* --- moving pages --- */

/* All page moves, into the file or out of it, happen between these two functions, under the mutex.
 * Meanwhile no other process copies into this one. in_any_case: demotion, which must not fail. */
static enum oriel_status begin_moving(bool in_any_case)
{
    return oriel_remote_writers_halt(oriel_file_remote_writers(oriel_file_base()),
                                     oriel_file_identity(), in_any_case);
}

static void end_moving(void)
{
    oriel_remote_writers_resume(oriel_file_remote_writers(oriel_file_base()));
}

/* Runs as late as possible: a thread that pins pages after this check does so while its own pages
 * move. */
static enum oriel_status check_pins(const struct oriel_promote_options *options)
{
    char reason[300];
    if (options->pins_allowed || !oriel_pinned_pages_possible(reason, sizeof reason))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_OTHER, "%s", reason);
}

/* When a reference ends: a device or ring that was registered meanwhile has pinned the shared
 * pages. */
static bool check_pins_for_release(const struct oriel_promoted *promoted)
{
    char reason[300];
    if (promoted->pins_allowed || !oriel_pinned_pages_possible(reason, sizeof reason))
        return true;
    oriel_note("the window memory at %#lx stays shared: %s [O16]", (unsigned long)promoted->start,
               reason);
    return false;
}

/* --- promotion --- */

/* A range that is not yet promoted, in one mapping. */
struct part {
    uintptr_t start;
    uintptr_t end;
    bool file_backed;
    bool huge;
};

static struct part *parts; /* of the current request */
static size_t parts_capacity;

struct request {
    uintptr_t base;
    uint64_t len_bytes;
    const struct oriel_promote_options *options;
    enum oriel_barrier_method method;
    uintptr_t start; /* the pages */
    uintptr_t end;
    size_t parts_count;
    bool file_backed; /* at least one part is */
    uint64_t offset;  /* of start, in the block */
    struct oriel_promoted_block *block;
    struct oriel_page_migration migration;
};

/* The pages of a range, by method: rounded outward, or inward. */
static enum oriel_status choose_pages(struct request *request)
{
    const uintptr_t in_page = ORIEL_PAGE_BYTES - 1;
    bool inward = request->method == ORIEL_BARRIER_STOP_THREADS;
    uintptr_t end = request->base + request->len_bytes;
    request->start = (inward ? request->base + in_page : request->base) & ~in_page;
    request->end = (inward ? end : end + in_page) & ~in_page;
    if (request->start < request->end)
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_OTHER, "%lu bytes at %#lx contain no whole page",
                      (unsigned long)request->len_bytes, (unsigned long)request->base);
}

/* Finds the first unpromoted range from *start on, up to end. */
static bool next_gap(uintptr_t *start, uintptr_t end, uintptr_t *gap_end)
{
    size_t at = oriel_promoted_ranges_after(&ranges, *start);
    while (at < ranges.count && ranges.list[at].start <= *start)
        *start = ranges.list[at++].end;
    *gap_end = at < ranges.count && ranges.list[at].start < end ? ranges.list[at].start : end;
    return *start < end;
}

static enum oriel_status part_add(struct request *request, uintptr_t start,
                                  const struct oriel_promotable *found)
{
    if (request->parts_count == parts_capacity) {
        size_t capacity = 2 * parts_capacity + 16;
        struct part *larger = realloc(parts, capacity * sizeof *larger);
        if (larger == NULL)
            return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of promoted ranges");
        parts = larger;
        parts_capacity = capacity;
    }
    parts[request->parts_count++] =
        (struct part){start, found->end, found->file_backed, found->huge};
    request->file_backed |= found->file_backed;
    return ORIEL_OK;
}

/* Each part costs three mappings while it is promoted, and may leave two boundaries afterwards. */
static enum oriel_status check_counts(const struct request *request)
{
    const struct oriel_promote_options *options = request->options;
    uint32_t most = options->ranges_max > 0 ? options->ranges_max : ORIEL_PROMOTED_RANGES_MAX;
    size_t splits_most = options->splits_max > 0 ? options->splits_max : ORIEL_SPLIT_MAPPINGS_MAX;
    if (request->parts_count > 0 && ranges.count + request->parts_count > most)
        return oriel_fail(ORIEL_E_OTHER,
                          "%zu separate ranges are already promoted; the maximum is %u",
                          ranges.count, most);
    if (request->parts_count > 0 && oriel_split_mappings_exceed(splits_most))
        return oriel_fail(ORIEL_E_OTHER,
                          "earlier promotions have left more than %zu boundaries between mappings",
                          splits_most);
    return ORIEL_OK;
}

/* Checks all memory of the request, and lists its parts. */
static enum oriel_status request_check(struct request *request)
{
    uintptr_t gap_end;
    enum oriel_status status = choose_pages(request);
    request->parts_count = 0;
    request->file_backed = false;
    for (uintptr_t at = request->start;
         status == ORIEL_OK && next_gap(&at, request->end, &gap_end);) {
        struct oriel_promotable found;
        status = oriel_promotable_check(at, gap_end, request->options->huge_allowed,
                                        request->method, &ranges, &found);
        if (status == ORIEL_OK)
            status = part_add(request, at, &found);
        at = found.end;
    }
    return status == ORIEL_OK ? check_counts(request) : status;
}

static void range_add(struct request *request, uintptr_t start, uintptr_t end, uintptr_t parked)
{
    struct oriel_promoted_range range = {.start = start,
                                         .end = end,
                                         .offset = request->offset + (start - request->start),
                                         .parked = parked,
                                         .block = request->block};
    request->block->live_bytes += end - start;
    oriel_promoted_ranges_insert(&ranges, &range);
}

/* Promotes the parts. New ranges have no reference yet; after a failure the caller demotes them. */
static enum oriel_status parts_promote(struct request *request)
{
    enum oriel_status status = ORIEL_OK;
    for (size_t i = 0; status == ORIEL_OK && i < request->parts_count; i++) {
        const struct part *part = &parts[i];
        uintptr_t parked, stuck_start, stuck_end;
        request->migration.keeps_huge = part->huge;
        status = oriel_page_migrate_in(&request->migration, part->start, part->end - part->start,
                                       request->offset + (part->start - request->start),
                                       part->file_backed, &parked, &stuck_start, &stuck_end);
        if (status == ORIEL_OK)
            range_add(request, part->start, part->end, parked);
        else if (stuck_start < stuck_end)
            range_add(request, stuck_start, stuck_end, parked + (stuck_start - part->start));
    }
    return status;
}

/* Allocates one block of the file for the whole range. Then one difference maps all its addresses
 * to offsets. */
static enum oriel_status block_create(struct request *request)
{
    uint64_t len_bytes = request->end - request->start;
    request->block = calloc(1, sizeof *request->block);
    if (request->block == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of promoted ranges");
    uint64_t slack_bytes = len_bytes >= ORIEL_HUGE_BYTES ? ORIEL_HUGE_BYTES : 0;
    enum oriel_status status = oriel_file_alloc_sparse(
        len_bytes > SMALLEST_BLOCK ? len_bytes + slack_bytes : SMALLEST_BLOCK,
        &request->block->offset);
    request->offset = request->block->offset;
    if (slack_bytes > 0) /* a huge page is mapped as one only where address and offset agree */
        request->offset += (request->start - request->offset) & (ORIEL_HUGE_BYTES - 1);
    request->block->live_bytes = 1; /* until the request has finished */
    oriel_fork_leases_add_block(request->block);
    if (status != ORIEL_OK)
        free(request->block);
    return status;
}

static void references_add(uintptr_t start, uintptr_t end)
{
    oriel_promoted_ranges_split(&ranges, start);
    oriel_promoted_ranges_split(&ranges, end);
    for (size_t at = oriel_promoted_ranges_after(&ranges, start);
         at < ranges.count && ranges.list[at].start < end; at++)
        ranges.list[at].references++;
    oriel_promoted_ranges_join(&ranges, start, end);
}

/* Each reference may need two more ranges when it ends. */
static enum oriel_status lists_reserve(const struct request *request)
{
    if (oriel_promote_fork_range_reserve() &&
        oriel_promoted_ranges_prepare(&ranges, request->parts_count +
                                                   2 * (oriel_promote_fork_range_count() + 1)))
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of promoted ranges");
}

static enum oriel_status request_promote(struct request *request)
{
    enum oriel_status status = lists_reserve(request);
    if (status != ORIEL_OK || request->parts_count == 0)
        return status;
    status = block_create(request);
    if (status != ORIEL_OK)
        return status;
    status = check_pins(request->options);
    if (status == ORIEL_OK)
        status = begin_moving(false);
    if (status != ORIEL_OK) {
        oriel_demote_subtract(request->block, 1);
        return status;
    }
    status = parts_promote(request);
    if (status != ORIEL_OK) {
        char reason[400];
        snprintf(reason, sizeof reason, "%s", oriel_fail_message());
        oriel_demote_unreferenced(&ranges, request->start, request->end, request->options->method);
        oriel_fail(status, "%s", reason);
    }
    end_moving();
    oriel_demote_subtract(request->block, 1);
    return status;
}

static enum oriel_status open_and_check(struct request *request, enum oriel_barrier_method method)
{
    enum oriel_status status = oriel_page_migrate_open(method, &request->migration);
    if (status != ORIEL_OK)
        return status;
    request->method = request->migration.barrier.method;
    status = request_check(request);
    if (status != ORIEL_OK)
        oriel_page_migrate_close(&request->migration);
    return status;
}

/* userfaultfd cannot watch private copies of files, so these fall back to stopping threads. */
static enum oriel_status choose_method(struct request *request)
{
    enum oriel_barrier_method asked = request->options->method;
    enum oriel_status status = open_and_check(request, asked);
    if (asked == ORIEL_BARRIER_AUTO)
        usual_method = status == ORIEL_OK ? request->method : ORIEL_BARRIER_AUTO;
    if (status != ORIEL_OK || !request->file_backed || request->method != ORIEL_BARRIER_UFFD)
        return status;
    oriel_page_migrate_close(&request->migration);
    if (asked == ORIEL_BARRIER_UFFD)
        return oriel_fail(
            ORIEL_E_OTHER,
            "the memory at %#lx is a private copy of a file, which userfaultfd cannot protect",
            (unsigned long)request->start);
    return open_and_check(request, ORIEL_BARRIER_STOP_THREADS);
}

/* Whether all pages are already promoted: then nothing needs to be opened. */
static bool is_promoted_already(struct request *request)
{
    uintptr_t gap_end;
    request->method =
        request->options->method != ORIEL_BARRIER_AUTO ? request->options->method : usual_method;
    if (ranges.count == 0 || request->method == ORIEL_BARRIER_AUTO ||
        choose_pages(request) != ORIEL_OK)
        return false;
    uintptr_t at = request->start;
    request->parts_count = 0;
    return !next_gap(&at, request->end, &gap_end);
}

static enum oriel_status promote_locked(struct request *request)
{
    uint64_t offset;
    if (is_child)
        return oriel_fail(ORIEL_E_OTHER,
                          "the memory file belongs to the process that forked this one");
    if (oriel_file_find((void *)request->base, 1, &offset))
        return oriel_fail(ORIEL_E_OTHER, "the memory at %#lx is already in the memory file",
                          (unsigned long)request->base);
    if (oriel_pages_bytes() != ORIEL_PAGE_BYTES)
        return oriel_fail(ORIEL_E_OTHER,
                          "the kernel's pages have %lu bytes; only pages of %lu move",
                          (unsigned long)oriel_pages_bytes(), (unsigned long)ORIEL_PAGE_BYTES);
    if (request->len_bytes > UINTPTR_MAX - ORIEL_PAGE_BYTES - request->base)
        return oriel_fail(ORIEL_E_OTHER, "the range passes the end of the address space");
    /* checked before the mappings, because their inspection is slow for large ranges */
    if (request->len_bytes > oriel_file_reserve())
        return oriel_fail(
            ORIEL_E_OTHER,
            "%lu bytes do not fit into the memory file of at most %lu (ORIEL_RESERVE)",
            (unsigned long)request->len_bytes, (unsigned long)oriel_file_reserve());
    oriel_demote_forget_replaced(&ranges);
    oriel_fork_leases_free_expired();
    if (is_promoted_already(request))
        return lists_reserve(request);
    enum oriel_status status = choose_method(request);
    if (status != ORIEL_OK)
        return status;
    status = request_promote(request);
    oriel_page_migrate_close(&request->migration);
    return status;
}

enum oriel_status oriel_promote(uintptr_t base, uint64_t len_bytes,
                                const struct oriel_promote_options *options,
                                struct oriel_promoted *out)
{
    static const struct oriel_promote_options usual = {.method = ORIEL_BARRIER_AUTO};
    struct request request = {
        .base = base, .len_bytes = len_bytes, .options = options != NULL ? options : &usual};
    *out = (struct oriel_promoted){.start = 0};
    if (len_bytes == 0)
        return ORIEL_OK;
    enum oriel_status status =
        oriel_fork_register(&watches_forks, before_fork, after_fork, in_child);
    if (status != ORIEL_OK)
        return status;
    pthread_mutex_lock(&mutex);
    status = promote_locked(&request);
    if (status == ORIEL_OK) {
        references_add(request.start, request.end);
        *out = (struct oriel_promoted){request.start,
                                       request.end,
                                       {base, base + len_bytes},
                                       request.options->method,
                                       request.options->pins_allowed};
        oriel_promote_fork_range_add(&out->bytes);
    }
    oriel_discard_publish(&ranges);
    pthread_mutex_unlock(&mutex);
    return status;
}

uint64_t oriel_promote_release(struct oriel_promoted *promoted)
{
    uint64_t lost_bytes = 0;
    if (promoted->start == promoted->end)
        return 0;
    pthread_mutex_lock(&mutex);
    if (!is_child) {
        oriel_promote_fork_range_remove(&promoted->bytes);
        oriel_promoted_ranges_split(&ranges, promoted->start);
        oriel_promoted_ranges_split(&ranges, promoted->end);
        bool moves = false;
        for (size_t at = oriel_promoted_ranges_after(&ranges, promoted->start);
             at < ranges.count && ranges.list[at].start < promoted->end; at++) {
            if (ranges.list[at].references > 0)
                ranges.list[at].references--;
            moves |= ranges.list[at].references == 0;
        }
        if (moves && check_pins_for_release(promoted)) {
            begin_moving(true);
            lost_bytes = oriel_demote_unreferenced(&ranges, promoted->start, promoted->end,
                                                   promoted->method);
            end_moving();
        }
        oriel_demote_prevent_growth(&ranges, promoted->start, promoted->end);
        oriel_promoted_ranges_join(&ranges, promoted->start, promoted->end);
        oriel_discard_publish(&ranges);
        oriel_fork_leases_free_expired();
    }
    pthread_mutex_unlock(&mutex);
    *promoted = (struct oriel_promoted){.start = 0};
    return lost_bytes;
}

bool oriel_promote_find(uintptr_t address, uint64_t len_bytes, uint64_t *offset,
                        uint64_t *extent_bytes)
{
    pthread_mutex_lock(&mutex);
    size_t at = oriel_promoted_ranges_after(&ranges, address);
    bool found = at < ranges.count && ranges.list[at].start <= address;
    if (found) {
        const struct oriel_promoted_range *range = &ranges.list[at];
        uintptr_t end = range->end;
        *offset = range->offset + (address - range->start);
        while (++at < ranges.count && ranges.list[at].start == end &&
               ranges.list[at].offset - end == range->offset - range->start)
            end = ranges.list[at].end;
        *extent_bytes = end - address < len_bytes ? end - address : len_bytes;
    } else {
        *extent_bytes = at < ranges.count && ranges.list[at].start - address < len_bytes
                            ? ranges.list[at].start - address
                            : len_bytes;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}
