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
    const struct oriel_run *run;
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

static bool inspect(const struct oriel_mapping *mapping, void *context)
{
    struct inspection *seen = context;
    const struct oriel_run *run = seen->run;
    bool has_begun = seen->reached > seen->start;
    bool is_ours = mapping->access[3] == 's' && mapping->inode == seen->inode &&
                   makedev(mapping->device_major, mapping->device_minor) == seen->device &&
                   mapping->file_offset - mapping->start == run->offset - run->start;
    if (!is_ours)
        return !has_begun;
    if (has_begun &&
        (mapping->start != seen->reached || protection_of(mapping) != seen->protection))
        return false;
    if (!has_begun)
        seen->start = mapping->start > run->start ? mapping->start : run->start;
    seen->protection = protection_of(mapping);
    seen->reached = mapping->end < run->end ? mapping->end : run->end;
    return true;
}

/* Finds the first part of a range that still maps the memory file at the recorded offset, with
 * uniform access. start and reached are the range's end when there is no such part. Both are the
 * range's start when the kernel's list cannot be read. */
static struct inspection look_at(const struct oriel_run *run)
{
    struct stat info = {.st_ino = 0};
    struct inspection seen = {.run = run, .start = run->end, .reached = run->end};
    if (oriel_file_is_open() && fstat(oriel_file_identity()->memory_fd, &info) == 0) {
        seen.device = info.st_dev;
        seen.inode = info.st_ino;
        if (oriel_maps_visit(run->start, run->end, false, inspect, &seen))
            return seen;
    }
    return (struct inspection){.run = run, .start = run->start, .reached = run->start};
}

/* --- back to private memory --- */

void oriel_restore_drop(struct oriel_run_block *block, uint64_t len_bytes)
{
    block->live_bytes -= len_bytes;
    if (block->live_bytes == 0)
        oriel_leases_give_back(block);
}

/* Removes the first len_bytes of a range from the list. */
static void forget(struct oriel_promoted_ranges *runs, size_t at, uint64_t len_bytes)
{
    struct oriel_run *run = &runs->list[at];
    struct oriel_run_block *block = run->block;
    run->start += len_bytes;
    run->offset += len_bytes;
    run->stash += len_bytes;
    if (run->start == run->end)
        oriel_promoted_ranges_erase(runs, at);
    oriel_restore_drop(block, len_bytes);
}

/* Removes the first len_bytes of a range that the program has unmapped or replaced. The program may
 * have moved the mapping, so these bytes in the file may still be in use. */
static void lose(struct oriel_promoted_ranges *runs, size_t at, uint64_t len_bytes)
{
    runs->list[at].block->is_lost = true;
    oriel_parked_mapping_drop(runs->list[at].stash, len_bytes);
    forget(runs, at, len_bytes);
}

/* Makes an unreferenced range private as far as possible. Returns false when a part stays
 * promoted. */
static bool restore(struct oriel_promoted_ranges *runs, struct oriel_transfer *transfer, size_t at,
                    uint64_t *lost_bytes)
{
    for (uint64_t left_bytes = runs->list[at].end - runs->list[at].start; left_bytes > 0;) {
        struct oriel_run *run = &runs->list[at];
        struct inspection seen = look_at(run);
        uint64_t done_bytes = seen.start - run->start;
        if (done_bytes > 0) {
            lose(runs, at, done_bytes);
            *lost_bytes += done_bytes;
        } else if (seen.reached == run->start) {
            oriel_warn("the window memory at %#lx stays shared: cannot look at it "
                       "(/proc/self/maps, or descriptor %d closed)",
                       (unsigned long)run->start, (int)oriel_file_identity()->memory_fd);
            return false;
        } else {
            transfer->keeps_contents = oriel_leases_cover(run->block);
            enum oriel_status status =
                oriel_transfer_out(transfer, run->start, seen.reached - run->start, run->offset,
                                   run->stash, seen.protection, &done_bytes);
            if (status != ORIEL_OK)
                oriel_warn("the window memory at %#lx stays shared: %s",
                           (unsigned long)(run->start + done_bytes), oriel_fail_message());
            if (done_bytes > 0) {
                oriel_scars_note(run->start, run->start + done_bytes);
                forget(runs, at, done_bytes);
            }
            if (status != ORIEL_OK)
                return false;
        }
        left_bytes -= done_bytes;
    }
    return true;
}

uint64_t oriel_restore_unheld(struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end,
                              enum oriel_means means)
{
    struct oriel_transfer transfer;
    bool is_open = false;
    uint64_t lost_bytes = 0;
    for (size_t at = oriel_promoted_ranges_after(runs, start);
         at < runs->count && runs->list[at].start < end;) {
        if (runs->list[at].holds > 0) {
            at++;
            continue;
        }
        if (!is_open && oriel_transfer_open(means, &transfer) != ORIEL_OK) {
            oriel_warn("the window memory at %#lx stays shared: %s",
                       (unsigned long)runs->list[at].start, oriel_fail_message());
            return lost_bytes;
        }
        is_open = true;
        if (!restore(runs, &transfer, at, &lost_bytes))
            at++;
    }
    if (is_open)
        oriel_transfer_close(&transfer);
    return lost_bytes;
}

void oriel_restore_bound(const struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end)
{
    for (size_t at = oriel_promoted_ranges_after(runs, start);
         at < runs->count && runs->list[at].start < end; at++)
        if (runs->list[at].holds == 0)
            oriel_parked_mapping_bound(runs->list[at].start);
}

/* A part that still maps the file stays in the list, because a child gets its own pages there.
 * Where the list cannot grow, the range is treated as replaced. */
void oriel_restore_forget(struct oriel_promoted_ranges *runs)
{
    for (size_t at = 0; at < runs->count;) {
        struct oriel_run *run = &runs->list[at];
        struct inspection seen = {.start = run->start, .reached = run->end};
        if (run->holds == 0)
            seen = look_at(run);
        if (seen.start > run->start) {
            lose(runs, at, seen.start - run->start);
        } else if (seen.reached == run->end || seen.reached == run->start) {
            at++; /* unchanged, or unknown */
        } else if (oriel_promoted_ranges_prepare(runs, 1)) {
            oriel_promoted_ranges_split(runs, seen.reached);
            at++;
        } else {
            lose(runs, at, run->end - run->start);
        }
    }
}
