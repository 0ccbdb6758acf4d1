/* Makes unreferenced promoted ranges private. First it checks which memory is mapped there now:
 * memory that the program has mapped in place of a range is never touched. */
#include "memory/promote/demote.h"

#include "base/log.h"
#include "memory/file.h"
#include "memory/proc_maps.h"
#include "memory/promote/fork_leases.h"
#include "memory/promote/page_migrate.h"
#include "memory/promote/parked_mapping.h"
#include "memory/promote/split_mappings.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct inspection {
    const struct oriel_promoted_range *range;
    /* start of the first part that still maps the memory file; the range's end if there is none */
    uintptr_t start;
    uintptr_t reached; /* end of that part */
    int protection;    /* PROT_* of the whole part */
    dev_t device;
    ino_t inode;
};

static int protection_of(const struct oriel_mapping *mapping)
{
    return (mapping->access[0] == 'r' ? PROT_READ : 0) |
           (mapping->access[1] == 'w' ? PROT_WRITE : 0);
}

static bool mapping_inspect(const struct oriel_mapping *mapping, void *context)
{
    struct inspection *seen = context;
    const struct oriel_promoted_range *range = seen->range;
    bool has_begun = seen->reached > seen->start;
    bool is_ours = mapping->access[3] == 's' && mapping->inode == seen->inode &&
                   makedev(mapping->device_major, mapping->device_minor) == seen->device &&
                   mapping->file_offset - mapping->start == range->offset - range->start;
    if (!is_ours)
        return !has_begun;
    if (has_begun &&
        (mapping->start != seen->reached || protection_of(mapping) != seen->protection))
        return false;
    if (!has_begun)
        seen->start = mapping->start > range->start ? mapping->start : range->start;
    seen->protection = protection_of(mapping);
    seen->reached = mapping->end < range->end ? mapping->end : range->end;
    return true;
}

/* Finds the first part of a range that still maps the memory file at the recorded offset, with
 * uniform access. start and reached are the range's end when there is no such part. Both are the
 * range's start when the kernel's list cannot be read. */
static struct inspection range_inspect(const struct oriel_promoted_range *range)
{
    struct stat info = {.st_ino = 0};
    struct inspection seen = {.range = range, .start = range->end, .reached = range->end};
    if (oriel_file_is_open() && fstat(oriel_file_identity()->memory_fd, &info) == 0) {
        seen.device = info.st_dev;
        seen.inode = info.st_ino;
        if (oriel_proc_maps_visit(range->start, range->end, false, mapping_inspect, &seen))
            return seen;
    }
    return (struct inspection){.range = range, .start = range->start, .reached = range->start};
}

/* --- back to private memory --- */

void oriel_demote_subtract(struct oriel_promoted_block *block, uint64_t len_bytes)
{
    block->live_bytes -= len_bytes;
    if (block->live_bytes == 0)
        oriel_fork_leases_free_block(block);
}

/* Removes the first len_bytes of a range from the list. */
static void range_forget_head(struct oriel_promoted_ranges *ranges, size_t at, uint64_t len_bytes)
{
    struct oriel_promoted_range *range = &ranges->list[at];
    struct oriel_promoted_block *block = range->block;
    range->start += len_bytes;
    range->offset += len_bytes;
    range->parked += len_bytes;
    if (range->start == range->end)
        oriel_promoted_ranges_erase(ranges, at);
    oriel_demote_subtract(block, len_bytes);
}

/* Removes the first len_bytes of a range that the program has unmapped or replaced. The program may
 * have moved the mapping, so these bytes in the file may still be in use. */
static void range_lose_head(struct oriel_promoted_ranges *ranges, size_t at, uint64_t len_bytes)
{
    ranges->list[at].block->is_lost = true;
    oriel_parked_mapping_drop(ranges->list[at].parked, len_bytes);
    range_forget_head(ranges, at, len_bytes);
}

/* Makes an unreferenced range private as far as possible. Returns false when a part stays
 * promoted. */
static bool range_demote(struct oriel_promoted_ranges *ranges,
                         struct oriel_page_migration *migration, size_t at, uint64_t *lost_bytes)
{
    for (uint64_t left_bytes = ranges->list[at].end - ranges->list[at].start; left_bytes > 0;) {
        struct oriel_promoted_range *range = &ranges->list[at];
        struct inspection seen = range_inspect(range);
        uint64_t done_bytes = seen.start - range->start;
        if (done_bytes > 0) {
            range_lose_head(ranges, at, done_bytes);
            *lost_bytes += done_bytes;
        } else if (seen.reached == range->start) {
            oriel_warn("the window memory at %#lx stays shared: cannot inspect it "
                       "(/proc/self/maps, or descriptor %d closed) [O16]",
                       (unsigned long)range->start, (int)oriel_file_identity()->memory_fd);
            return false;
        } else {
            migration->keeps_contents = oriel_fork_leases_cover(range->block);
            enum oriel_status status =
                oriel_page_migrate_out(migration, range->start, seen.reached - range->start,
                                       range->offset, range->parked, seen.protection, &done_bytes);
            if (status != ORIEL_OK)
                oriel_warn("the window memory at %#lx stays shared: %s [O16]",
                           (unsigned long)(range->start + done_bytes), oriel_fail_message());
            if (done_bytes > 0) {
                oriel_split_mappings_add(range->start, range->start + done_bytes);
                range_forget_head(ranges, at, done_bytes);
            }
            if (status != ORIEL_OK)
                return false;
        }
        left_bytes -= done_bytes;
    }
    return true;
}

uint64_t oriel_demote_unreferenced(struct oriel_promoted_ranges *ranges, uintptr_t start,
                                   uintptr_t end, enum oriel_barrier_method method)
{
    struct oriel_page_migration migration;
    bool is_open = false;
    uint64_t lost_bytes = 0;
    for (size_t at = oriel_promoted_ranges_after(ranges, start);
         at < ranges->count && ranges->list[at].start < end;) {
        if (ranges->list[at].references > 0) {
            at++;
            continue;
        }
        if (!is_open && oriel_page_migrate_open(method, &migration) != ORIEL_OK) {
            oriel_warn("the window memory at %#lx stays shared: %s [O16]",
                       (unsigned long)ranges->list[at].start, oriel_fail_message());
            return lost_bytes;
        }
        is_open = true;
        if (!range_demote(ranges, &migration, at, &lost_bytes))
            at++;
    }
    if (is_open)
        oriel_page_migrate_close(&migration);
    return lost_bytes;
}

void oriel_demote_prevent_growth(const struct oriel_promoted_ranges *ranges, uintptr_t start,
                                 uintptr_t end)
{
    for (size_t at = oriel_promoted_ranges_after(ranges, start);
         at < ranges->count && ranges->list[at].start < end; at++)
        if (ranges->list[at].references == 0)
            oriel_parked_mapping_split_first_page(ranges->list[at].start);
}

/* A part that still maps the file stays in the list, because a child gets its own pages there.
 * Where the list cannot grow, the range is treated as replaced. */
void oriel_demote_forget_replaced(struct oriel_promoted_ranges *ranges)
{
    for (size_t at = 0; at < ranges->count;) {
        struct oriel_promoted_range *range = &ranges->list[at];
        struct inspection seen = {.start = range->start, .reached = range->end};
        if (range->references == 0)
            seen = range_inspect(range);
        if (seen.start > range->start) {
            range_lose_head(ranges, at, seen.start - range->start);
        } else if (seen.reached == range->end || seen.reached == range->start) {
            at++; /* unchanged, or unknown */
        } else if (oriel_promoted_ranges_prepare(ranges, 1)) {
            oriel_promoted_ranges_split(ranges, seen.reached);
            at++;
        } else {
            range_lose_head(ranges, at, range->end - range->start);
        }
    }
}
