/* Allocates blocks in the memory file. A large block is whole pages: reserved at allocation,
 * punched out when freed. Small blocks share slabs, whose pages stay reserved; a small block is
 * cleared when freed.
 *
 * Blocks shared with forked children never share a page with other blocks: they have slabs of their
 * own. User memory also has slabs of its own, which are not cleared; the allocation then reports
 * that the block is dirty (1).
 *
 * Freed pages of user memory (blocks allocated as ORIEL_BLOCK_USER) are cached with their contents
 * for the next such block:
 *   1. Only user blocks are made of cached pages, so the engine's own words start as zeroes. A user
 *      block made of cached pages is marked dirty; a caller that needs zeroes clears it.
 *   2. The cache holds at most KEPT_MOST_BYTES, and at most 1/KEPT_SHARE of the available memory.
 *      Older pages are dropped first.
 *   3. The cache is dropped when an allocation lacks memory or address space, when the available
 *      memory has shrunk, and when no block used it for KEPT_IDLE_NS. The check runs when a block
 *      is freed, and when an allocation needs pages that the cache does not have. No thread runs
 *      it. */
#include "memory/allocator.h"

#include "base/file_limit.h"
#include "base/valgrind.h"
#include "memory/memory_limits.h"
#include "memory/pages.h"

#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLAB_BYTES  (UINT64_C(256) << 10)
#define SMALL_BYTES (UINT64_C(32) << 10) /* smaller blocks come from slabs */
#define COMPARED_BYTES                                                                             \
    (UINT64_C(1) << 20) /* from this size on, the available memory is checked first */
#define GROWTH_BYTES    (UINT64_C(16) << 20)
#define KEPT_MOST_BYTES (UINT64_C(256) << 20)
#define KEPT_SHARE      16
#define KEPT_LOOK_NS    INT64_C(1000000000)
#define KEPT_IDLE_NS    INT64_C(10000000000)

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) & ~(to - 1);
}

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value < least ? least : value;
}

bool oriel_blocks_take_file(struct oriel_blocks *blocks, int fd)
{
    struct stat info;
    blocks->fd = fd;
    if (fstat(fd, &info) != 0)
        return false;
    blocks->device = info.st_dev;
    blocks->inode = info.st_ino;
    blocks->owner = info.st_uid;
    return true;
}

bool oriel_blocks_file_is_open(const struct oriel_blocks *blocks)
{
    struct stat info;
    return fstat(blocks->fd, &info) == 0 && info.st_ino == blocks->inode &&
           info.st_dev == blocks->device;
}

uint64_t oriel_blocks_largest_file(const struct oriel_blocks *blocks)
{
    uint64_t most = oriel_size_most();
    return most < blocks->reserve_bytes ? most & ~(ORIEL_PAGE_BYTES - 1) : blocks->reserve_bytes;
}

static bool grow_file(struct oriel_blocks *blocks, uint64_t least_bytes)
{
    uint64_t usual_bytes = oriel_valgrind() ? ORIEL_VALGRIND_RESERVE : GROWTH_BYTES;
    uint64_t growth =
        least_bytes > usual_bytes ? round_up(least_bytes, ORIEL_PAGE_BYTES) : usual_bytes;
    uint64_t most = oriel_blocks_largest_file(blocks);
    uint64_t room = most > blocks->size_bytes ? most - blocks->size_bytes : 0;
    if (least_bytes > room)
        return false;
    if (growth > room)
        growth = room;
    if (!oriel_free_extents_prepare(&blocks->large) ||
        !oriel_size_set(blocks->fd, blocks->size_bytes + growth))
        return false;
    blocks->size_bytes += growth;
    return oriel_free_extents_give(&blocks->large, blocks->size_bytes - growth, growth);
}

/* Fails with ORIEL_E_NO_MEM when the node lacks the memory. Fails with ORIEL_E_OTHER when only this
 * file lacks the room: the host MPI may still have it. */
static enum oriel_status no_room(struct oriel_blocks *blocks, uint64_t len_bytes)
{
    uint64_t available_bytes = oriel_limit_available();
    if (len_bytes > available_bytes)
        return oriel_fail(ORIEL_E_NO_MEM, "%lu bytes asked for, %lu available",
                          (unsigned long)len_bytes, (unsigned long)available_bytes);
    return oriel_fail(ORIEL_E_OTHER,
                      "%lu bytes do not fit into the memory file of at most %lu (ORIEL_RESERVE, "
                      "ulimit -v, ulimit -f)",
                      (unsigned long)len_bytes, (unsigned long)oriel_blocks_largest_file(blocks));
}

static bool find_place(struct oriel_blocks *blocks, uint64_t len_bytes, uint64_t align_bytes,
                       uint64_t *offset)
{
    return oriel_free_extents_take(&blocks->large, len_bytes, align_bytes, offset) ||
           (grow_file(blocks, len_bytes + align_bytes) &&
            oriel_free_extents_take(&blocks->large, len_bytes, align_bytes, offset));
}

/* Excludes a large free range from core files, where its holes would become pages. */
static void leave_out(struct oriel_blocks *blocks, uint64_t offset)
{
    const struct oriel_free_extent *free_range = oriel_free_extents_find(&blocks->large, offset);
    if (free_range != NULL && free_range->len_bytes >= GROWTH_BYTES)
        oriel_core_dump_exclude(&blocks->dumps, free_range->offset, free_range->len_bytes);
}

/* Returns whole pages to the system: no longer shared with children, without advice, zeroed. */
static void drop_pages(struct oriel_blocks *blocks, uint64_t offset, uint64_t len_bytes,
                       uint64_t flags)
{
    bool is_open = oriel_blocks_file_is_open(blocks);
    oriel_pages_punch(is_open ? blocks->fd : -1, blocks->base, offset, len_bytes);
    if ((flags & ORIEL_BLOCK_ADVISED) != 0 && is_open)
        oriel_pages_remap(blocks->fd, blocks->base, offset, len_bytes);
    if ((flags & ORIEL_BLOCK_SHARED) == 0 ||
        oriel_free_extents_take_at(&blocks->shared, offset, len_bytes))
        oriel_free_extents_give(&blocks->large, offset, len_bytes);
    leave_out(blocks, offset);
}

/* --- cached pages --- */

/* The time of the last clock tick: cheap, and precise enough for seconds. */
static int64_t coarse_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void oriel_blocks_drop_kept(struct oriel_blocks *blocks)
{
    struct oriel_kept *kept = &blocks->kept;
    for (size_t i = 0; i < kept->pages.count; i++)
        drop_pages(blocks, kept->pages.extents[i].offset, kept->pages.extents[i].len_bytes,
                   kept->flags);
    kept->pages.count = 0;
    kept->bytes = 0;
    kept->flags = 0;
}

/* At most every KEPT_LOOK_NS: computes the cache's limit (2), and drops the cache if it is too
 * large or idle (3). */
static void look_at_kept(struct oriel_blocks *blocks)
{
    struct oriel_kept *kept = &blocks->kept;
    int64_t now_ns = coarse_now_ns();
    if (now_ns < kept->look_ns)
        return;
    uint64_t available_bytes = oriel_limit_available();
    uint64_t share_bytes =
        (available_bytes < UINT64_MAX - kept->bytes ? available_bytes + kept->bytes : UINT64_MAX) /
        KEPT_SHARE;
    kept->most_bytes = share_bytes < KEPT_MOST_BYTES ? share_bytes : KEPT_MOST_BYTES;
    kept->look_ns = now_ns + KEPT_LOOK_NS;
    if (kept->is_used)
        kept->used_ns = now_ns;
    kept->is_used = false;
    if (kept->bytes > kept->most_bytes || now_ns - kept->used_ns > KEPT_IDLE_NS)
        oriel_blocks_drop_kept(blocks);
}

/* Adds freed pages to the cache. Returns false when they exceed its limit. */
static bool keep(struct oriel_blocks *blocks, uint64_t offset, uint64_t len_bytes, uint64_t flags)
{
    struct oriel_kept *kept = &blocks->kept;
    if (len_bytes > kept->most_bytes)
        return false;
    if (len_bytes > kept->most_bytes - kept->bytes)
        oriel_blocks_drop_kept(blocks);
    if (!oriel_free_extents_give(&kept->pages, offset, len_bytes))
        return false;
    kept->is_used |= kept->bytes == 0;
    kept->bytes += len_bytes;
    kept->flags |= flags & ORIEL_BLOCK_ADVISED;
    return true;
}

/* Allocates from the cached pages. Their page mappings do not depend on where the block starts. */
static bool take_kept(struct oriel_blocks *blocks, struct oriel_wish *wish, uint64_t *offset)
{
    struct oriel_kept *kept = &blocks->kept;
    if (kept->bytes < wish->len_bytes ||
        !oriel_free_extents_take(&kept->pages, wish->len_bytes,
                                 at_least(wish->align_bytes, ORIEL_PAGE_BYTES), offset))
        return false;
    kept->bytes -= wish->len_bytes;
    kept->is_used = true;
    wish->flags |= kept->flags;
    wish->is_dirty = true;
    return true;
}

/* --- blocks --- */

/* Reserves each part near its NUMA node. A page that holds the end of one part and the start of
 * the next belongs to the first. */
static int reserve_parts(struct oriel_blocks *blocks, const struct oriel_wish *wish,
                         uint64_t offset)
{
    uint64_t end = offset;
    uint64_t done = offset;
    int error = 0;
    for (size_t i = 0; i < wish->part_count && error == 0; i++) {
        struct oriel_pages_policy before;
        end += wish->parts[i].len_bytes;
        uint64_t pages_end = round_up(end, ORIEL_PAGE_BYTES);
        if (pages_end <= done)
            continue;
        oriel_pages_prefer(wish->parts[i].node, &before);
        error = oriel_pages_reserve(blocks->fd, blocks->base, done, pages_end - done,
                                    (wish->flags & ORIEL_BLOCK_ADVISED) != 0);
        oriel_pages_restore(&before);
        done = pages_end;
    }
    return error;
}

static int reserve(struct oriel_blocks *blocks, const struct oriel_wish *wish, uint64_t offset)
{
    if (wish->len_bytes > wish->reserved_bytes)
        return 0;
    if (wish->parts != NULL)
        return reserve_parts(blocks, wish, offset);
    return oriel_pages_reserve(blocks->fd, blocks->base, offset, wish->len_bytes,
                               (wish->flags & ORIEL_BLOCK_ADVISED) != 0);
}

/* Allocates whole pages. Where huge pages are available, a large block starts at a huge-page
 * boundary if there is room. */
static enum oriel_status take_fresh(struct oriel_blocks *blocks, struct oriel_wish *wish,
                                    uint64_t *offset)
{
    uint64_t len_bytes = wish->len_bytes;
    uint64_t align_bytes = at_least(wish->align_bytes, ORIEL_PAGE_BYTES);
    bool is_sparse = wish->reserved_bytes == 0;
    enum oriel_room room = ORIEL_ROOM_RESERVED;
    if (!oriel_blocks_file_is_open(blocks))
        return oriel_fail(ORIEL_E_OTHER, "the program has closed the memory file's descriptor %d",
                          blocks->fd);
    if (!is_sparse && len_bytes >= COMPARED_BYTES)
        room = oriel_limit_room(len_bytes, wish->parts != NULL);
    if (room == ORIEL_ROOM_NONE)
        return no_room(blocks, len_bytes);
    enum oriel_huge huge =
        !is_sparse && room == ORIEL_ROOM_RESERVED && len_bytes >= ORIEL_HUGE_BYTES
            ? oriel_pages_huge()
            : ORIEL_HUGE_NONE;
    bool is_placed = huge != ORIEL_HUGE_NONE &&
                     find_place(blocks, len_bytes, at_least(align_bytes, ORIEL_HUGE_BYTES), offset);
    if (!is_placed && !find_place(blocks, len_bytes, align_bytes, offset))
        return no_room(blocks, len_bytes);
    if ((wish->flags & ORIEL_BLOCK_SHARED) != 0 &&
        !oriel_free_extents_give(&blocks->shared, *offset, len_bytes)) {
        oriel_free_extents_give(&blocks->large, *offset, len_bytes);
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of shared blocks");
    }
    if (huge != ORIEL_HUGE_NONE)
        oriel_pages_remap(blocks->fd, blocks->base, *offset, len_bytes);
    if (huge == ORIEL_HUGE_ON_ADVICE && oriel_pages_advise(blocks->base + *offset, len_bytes))
        wish->flags |= ORIEL_BLOCK_ADVISED;
    if (is_sparse) /* promoted memory is dumped at the program's own address */
        oriel_core_dump_exclude(&blocks->dumps, *offset, len_bytes);
    else
        oriel_core_dump_include(&blocks->dumps, *offset, len_bytes);
    int error = room == ORIEL_ROOM_RESERVED ? reserve(blocks, wish, *offset) : 0;
    if (error == 0)
        return ORIEL_OK;
    drop_pages(blocks, *offset, len_bytes, wish->flags);
    return oriel_fail(ORIEL_E_NO_MEM, "cannot reserve %lu bytes: %s", (unsigned long)len_bytes,
                      strerror(error));
}

static enum oriel_status take_pages(struct oriel_blocks *blocks, struct oriel_wish *wish,
                                    uint64_t *offset)
{
    if ((wish->flags & ORIEL_BLOCK_USER) != 0 && take_kept(blocks, wish, offset))
        return ORIEL_OK;
    if (blocks->kept.bytes > 0)
        look_at_kept(blocks);
    enum oriel_status status = take_fresh(blocks, wish, offset);
    if (status == ORIEL_OK || blocks->kept.bytes == 0)
        return status;
    oriel_blocks_drop_kept(blocks);
    return take_fresh(blocks, wish, offset);
}

static bool is_dirty_when_freed(uint64_t flags)
{
    return (flags & (ORIEL_BLOCK_USER | ORIEL_BLOCK_SHARED)) == ORIEL_BLOCK_USER;
}

static struct oriel_free_extents *small_arena(struct oriel_blocks *blocks, uint64_t flags)
{
    if (is_dirty_when_freed(flags))
        return &blocks->small_user;
    return (flags & ORIEL_BLOCK_SHARED) != 0 ? &blocks->small_shared : &blocks->small;
}

static enum oriel_status take_small(struct oriel_blocks *blocks, struct oriel_wish *wish,
                                    uint64_t *offset)
{
    struct oriel_free_extents *small = small_arena(blocks, wish->flags);
    wish->is_dirty = is_dirty_when_freed(wish->flags);
    if (oriel_free_extents_take(small, wish->len_bytes, wish->align_bytes, offset))
        return ORIEL_OK;
    uint64_t slab;
    struct oriel_wish slab_wish = {.len_bytes = SLAB_BYTES,
                                   .reserved_bytes = SLAB_BYTES,
                                   .flags = wish->flags & ORIEL_BLOCK_SHARED};
    enum oriel_status status = take_pages(blocks, &slab_wish, &slab);
    if (status != ORIEL_OK)
        return status;
    if (!oriel_free_extents_give(small, slab, SLAB_BYTES) ||
        !oriel_free_extents_take(small, wish->len_bytes, wish->align_bytes, offset))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of free blocks");
    return ORIEL_OK;
}

static bool is_small(uint64_t len_bytes)
{
    return len_bytes < SMALL_BYTES;
}

static void give_back(struct oriel_blocks *blocks, uint64_t offset, uint64_t len_bytes,
                      uint64_t flags)
{
    if (is_small(len_bytes)) {
        if (!is_dirty_when_freed(flags))
            memset(blocks->base + offset, 0, len_bytes);
        oriel_free_extents_give(small_arena(blocks, flags), offset, len_bytes);
    } else if ((flags & ORIEL_BLOCK_USER) == 0 || !keep(blocks, offset, len_bytes, flags)) {
        drop_pages(blocks, offset, len_bytes, flags);
    }
}

enum oriel_status oriel_blocks_alloc(struct oriel_blocks *blocks, struct oriel_wish *wish,
                                     uint64_t *offset)
{
    if (wish->len_bytes > blocks->reserve_bytes || wish->align_bytes > blocks->reserve_bytes)
        return no_room(blocks, wish->len_bytes);
    if (wish->align_bytes < 64)
        wish->align_bytes = 64;
    uint64_t len_bytes = round_up(wish->len_bytes > 0 ? wish->len_bytes : 1, 64);
    if (!is_small(len_bytes) || wish->align_bytes > SMALL_BYTES)
        len_bytes = round_up(len_bytes < SMALL_BYTES ? SMALL_BYTES : len_bytes, ORIEL_PAGE_BYTES);
    wish->len_bytes = len_bytes;
    enum oriel_status status =
        is_small(len_bytes) ? take_small(blocks, wish, offset) : take_pages(blocks, wish, offset);
    if (status == ORIEL_OK &&
        !oriel_hash_table_set_alone(&blocks->used, *offset,
                                    (void *)(uintptr_t)(len_bytes | wish->flags))) {
        give_back(blocks, *offset, len_bytes, wish->flags);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of allocations");
    }
    return status;
}

bool oriel_blocks_free(struct oriel_blocks *blocks, uint64_t offset, uint64_t flags)
{
    void *value = oriel_hash_table_find(&blocks->used, offset);
    uint64_t entry = (uint64_t)(uintptr_t)value;
    if (value == NULL || (entry & flags) != flags)
        return false;
    oriel_hash_table_remove_alone(&blocks->used, offset, value);
    if (blocks->kept.bytes > 0 || (entry & ORIEL_BLOCK_USER) != 0)
        look_at_kept(blocks);
    give_back(blocks, offset, entry & ~(uint64_t)ORIEL_BLOCK_FLAGS, entry & ORIEL_BLOCK_FLAGS);
    return true;
}
