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
 *   2. The cache holds at most CACHE_MAX_BYTES, and at most 1/CACHE_SHARE of the available memory.
 *      Older pages are dropped first.
 *   3. The cache is dropped when an allocation lacks memory or address space, or the available
 *      memory has shrunk. It is also dropped when no block used it for CACHE_IDLE_NS. The check
 *      runs when a block is freed, and when an allocation needs pages that the cache does not have.
 *      No thread runs it. */
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
#define SMALL_BYTES ORIEL_FILE_PAGES_BYTES /* smaller blocks come from slabs */
/* from this size on, the available memory is checked first */
#define COMPARED_BYTES  (UINT64_C(1) << 20)
#define GROWTH_BYTES    (UINT64_C(16) << 20)
#define CACHE_MAX_BYTES (UINT64_C(256) << 20)
#define CACHE_SHARE     16
#define CACHE_CHECK_NS  INT64_C(1000000000)
#define CACHE_IDLE_NS   INT64_C(10000000000)

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) & ~(to - 1);
}

static uint64_t max_bytes(uint64_t value, uint64_t least)
{
    return value < least ? least : value;
}

bool oriel_allocator_set_file(struct oriel_allocator *allocator, int fd)
{
    struct stat info;
    allocator->fd = fd;
    if (fstat(fd, &info) != 0)
        return false;
    allocator->device = info.st_dev;
    allocator->inode = info.st_ino;
    allocator->owner = info.st_uid;
    return true;
}

bool oriel_allocator_file_is_open(const struct oriel_allocator *allocator)
{
    struct stat info;
    return fstat(allocator->fd, &info) == 0 && info.st_ino == allocator->inode &&
           info.st_dev == allocator->device;
}

uint64_t oriel_allocator_max_file_bytes(const struct oriel_allocator *allocator)
{
    uint64_t most = oriel_file_limit();
    return most < allocator->reserve_bytes ? most & ~(oriel_pages_bytes() - 1)
                                           : allocator->reserve_bytes;
}

static bool grow_file(struct oriel_allocator *allocator, uint64_t least_bytes)
{
    uint64_t usual_bytes = oriel_is_under_valgrind() ? allocator->reserve_bytes : GROWTH_BYTES;
    uint64_t growth =
        least_bytes > usual_bytes ? round_up(least_bytes, oriel_pages_bytes()) : usual_bytes;
    uint64_t most = oriel_allocator_max_file_bytes(allocator);
    uint64_t room = most > allocator->size_bytes ? most - allocator->size_bytes : 0;
    if (least_bytes > room)
        return false;
    if (growth > room)
        growth = room;
    if (!oriel_free_extents_reserve(&allocator->large) ||
        !oriel_file_resize(allocator->fd, allocator->size_bytes + growth))
        return false;
    allocator->size_bytes += growth;
    return oriel_free_extents_add(&allocator->large, allocator->size_bytes - growth, growth);
}

/* Fails with ORIEL_E_NO_MEM when the node lacks the memory. Fails with ORIEL_E_OTHER when only this
 * file lacks the room: the host MPI may still have it. */
static enum oriel_status no_room_error(struct oriel_allocator *allocator, uint64_t len_bytes)
{
    uint64_t available_bytes = oriel_memory_limits_available();
    if (len_bytes > available_bytes)
        return oriel_fail(ORIEL_E_NO_MEM, "%lu bytes requested, %lu available",
                          (unsigned long)len_bytes, (unsigned long)available_bytes);
    return oriel_fail(ORIEL_E_OTHER,
                      "%lu bytes do not fit into the memory file of at most %lu (ORIEL_RESERVE, "
                      "ulimit -v, ulimit -f)",
                      (unsigned long)len_bytes,
                      (unsigned long)oriel_allocator_max_file_bytes(allocator));
}

static bool extent_find(struct oriel_allocator *allocator, uint64_t len_bytes, uint64_t align_bytes,
                        uint64_t *offset)
{
    return oriel_free_extents_remove_fit(&allocator->large, len_bytes, align_bytes, offset) ||
           (grow_file(allocator, len_bytes + align_bytes) &&
            oriel_free_extents_remove_fit(&allocator->large, len_bytes, align_bytes, offset));
}

/* Excludes a large free range from core files, where its holes would become pages. */
static void core_dump_exclude_free(struct oriel_allocator *allocator, uint64_t offset)
{
    const struct oriel_free_extent *free_range = oriel_free_extents_find(&allocator->large, offset);
    if (free_range != NULL && free_range->len_bytes >= GROWTH_BYTES)
        oriel_core_dump_exclude(&allocator->dumps, free_range->offset, free_range->len_bytes);
}

/* Returns whole pages to the system: no longer shared with children, without advice, zeroed. */
static void pages_release(struct oriel_allocator *allocator, uint64_t offset, uint64_t len_bytes,
                          uint64_t flags)
{
    bool is_open = oriel_allocator_file_is_open(allocator);
    oriel_pages_punch(is_open ? allocator->fd : -1, allocator->base, offset, len_bytes);
    if ((flags & ORIEL_BLOCK_PLACED) != 0)
        oriel_pages_place(allocator->base + offset, len_bytes, (struct oriel_pages_placement){0});
    if ((flags & ORIEL_BLOCK_ADVISED) != 0 && is_open)
        oriel_pages_remap(allocator->fd, allocator->base, offset, len_bytes);
    if ((flags & ORIEL_BLOCK_SHARED) == 0 ||
        oriel_free_extents_remove(&allocator->shared, offset, len_bytes))
        oriel_free_extents_add(&allocator->large, offset, len_bytes);
    core_dump_exclude_free(allocator, offset);
}

/* --- cached pages --- */

/* The time of the last clock tick: cheap, and precise enough for seconds. */
static int64_t coarse_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void oriel_allocator_drop_cache(struct oriel_allocator *allocator)
{
    struct oriel_page_cache *cache = &allocator->cache;
    for (size_t i = 0; i < cache->pages.count; i++)
        pages_release(allocator, cache->pages.extents[i].offset, cache->pages.extents[i].len_bytes,
                      cache->flags);
    cache->pages.count = 0;
    cache->bytes = 0;
    cache->flags = 0;
}

/* At most every CACHE_CHECK_NS: computes the cache's limit (2), and drops the cache if it is too
 * large or idle (3). */
static void cache_check(struct oriel_allocator *allocator)
{
    struct oriel_page_cache *cache = &allocator->cache;
    int64_t now_ns = coarse_now_ns();
    if (now_ns < cache->next_check_ns)
        return;
    uint64_t available_bytes = oriel_memory_limits_available();
    uint64_t share_bytes =
        (available_bytes < UINT64_MAX - cache->bytes ? available_bytes + cache->bytes
                                                     : UINT64_MAX) /
        CACHE_SHARE;
    cache->most_bytes = share_bytes < CACHE_MAX_BYTES ? share_bytes : CACHE_MAX_BYTES;
    cache->next_check_ns = now_ns + CACHE_CHECK_NS;
    if (cache->is_used)
        cache->used_ns = now_ns;
    cache->is_used = false;
    if (cache->bytes > cache->most_bytes || now_ns - cache->used_ns > CACHE_IDLE_NS)
        oriel_allocator_drop_cache(allocator);
}

/* Adds freed pages to the cache. Returns false when they exceed its limit. */
static bool cache_add(struct oriel_allocator *allocator, uint64_t offset, uint64_t len_bytes,
                      uint64_t flags)
{
    struct oriel_page_cache *cache = &allocator->cache;
    if (len_bytes > cache->most_bytes)
        return false;
    if (len_bytes > cache->most_bytes - cache->bytes)
        oriel_allocator_drop_cache(allocator);
    if (!oriel_free_extents_add(&cache->pages, offset, len_bytes))
        return false;
    cache->is_used |= cache->bytes == 0;
    cache->bytes += len_bytes;
    cache->flags |= flags & ORIEL_BLOCK_ADVISED;
    return true;
}

/* Allocates from the cached pages. Their page mappings do not depend on where the block starts. */
static bool cache_alloc(struct oriel_allocator *allocator, struct oriel_alloc_request *request,
                        uint64_t *offset)
{
    struct oriel_page_cache *cache = &allocator->cache;
    if (cache->bytes < request->len_bytes ||
        !oriel_free_extents_remove_fit(&cache->pages, request->len_bytes,
                                       max_bytes(request->align_bytes, oriel_pages_bytes()),
                                       offset))
        return false;
    cache->bytes -= request->len_bytes;
    cache->is_used = true;
    request->flags |= cache->flags;
    request->is_dirty = true;
    return true;
}

/* --- blocks --- */

/* Reserves each part near its NUMA node. A page that holds the end of one part and the start of
 * the next belongs to the first. */
static int reserve_parts(struct oriel_allocator *allocator,
                         const struct oriel_alloc_request *request, uint64_t offset)
{
    uint64_t end = offset;
    uint64_t done = offset;
    int error = 0;
    for (size_t i = 0; i < request->part_count && error == 0; i++) {
        struct oriel_pages_policy before;
        end += request->parts[i].len_bytes;
        uint64_t pages_end = round_up(end, oriel_pages_bytes());
        if (pages_end <= done)
            continue;
        oriel_pages_prefer(request->parts[i].node, &before);
        error = oriel_pages_reserve(allocator->fd, allocator->base, done, pages_end - done,
                                    (request->flags & ORIEL_BLOCK_ADVISED) != 0);
        oriel_pages_restore(&before);
        done = pages_end;
    }
    return error;
}

static int block_reserve(struct oriel_allocator *allocator,
                         const struct oriel_alloc_request *request, uint64_t offset)
{
    if (request->len_bytes > request->reserved_bytes)
        return 0;
    if (request->parts != NULL)
        return reserve_parts(allocator, request, offset);
    return oriel_pages_reserve(allocator->fd, allocator->base, offset, request->len_bytes,
                               (request->flags & ORIEL_BLOCK_ADVISED) != 0);
}

/* Allocates whole pages. Where huge pages are available, a large block starts at a huge-page
 * boundary if there is room. */
static enum oriel_status pages_alloc_fresh(struct oriel_allocator *allocator,
                                           struct oriel_alloc_request *request, uint64_t *offset)
{
    uint64_t len_bytes = request->len_bytes;
    uint64_t align_bytes = max_bytes(request->align_bytes, oriel_pages_bytes());
    bool is_sparse = request->reserved_bytes == 0;
    enum oriel_room room = ORIEL_ROOM_RESERVED;
    if (!oriel_allocator_file_is_open(allocator))
        return oriel_fail(ORIEL_E_OTHER, "the program has closed the memory file's descriptor %d",
                          allocator->fd);
    if (!is_sparse && len_bytes >= COMPARED_BYTES)
        room = oriel_memory_limits_room(len_bytes, request->parts != NULL);
    if (room == ORIEL_ROOM_NONE)
        return no_room_error(allocator, len_bytes);
    enum oriel_huge huge =
        !is_sparse && room == ORIEL_ROOM_RESERVED && len_bytes >= ORIEL_HUGE_BYTES
            ? oriel_pages_huge()
            : ORIEL_HUGE_NONE;
    bool is_placed =
        huge != ORIEL_HUGE_NONE &&
        extent_find(allocator, len_bytes, max_bytes(align_bytes, ORIEL_HUGE_BYTES), offset);
    if (!is_placed && !extent_find(allocator, len_bytes, align_bytes, offset))
        return no_room_error(allocator, len_bytes);
    if ((request->flags & ORIEL_BLOCK_SHARED) != 0 &&
        !oriel_free_extents_add(&allocator->shared, *offset, len_bytes)) {
        oriel_free_extents_add(&allocator->large, *offset, len_bytes);
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of shared blocks");
    }
    if (huge != ORIEL_HUGE_NONE)
        oriel_pages_remap(allocator->fd, allocator->base, *offset, len_bytes);
    if (huge == ORIEL_HUGE_ON_ADVICE && oriel_pages_advise(allocator->base + *offset, len_bytes))
        request->flags |= ORIEL_BLOCK_ADVISED;
    if (is_sparse) /* promoted memory is dumped at the program's own address */
        oriel_core_dump_exclude(&allocator->dumps, *offset, len_bytes);
    else
        oriel_core_dump_include(&allocator->dumps, *offset, len_bytes);
    int error = room == ORIEL_ROOM_RESERVED ? block_reserve(allocator, request, *offset) : 0;
    if (error == 0)
        return ORIEL_OK;
    pages_release(allocator, *offset, len_bytes, request->flags);
    return oriel_fail(ORIEL_E_NO_MEM, "cannot reserve %lu bytes: %s", (unsigned long)len_bytes,
                      strerror(error));
}

static enum oriel_status pages_alloc(struct oriel_allocator *allocator,
                                     struct oriel_alloc_request *request, uint64_t *offset)
{
    if ((request->flags & ORIEL_BLOCK_USER) != 0 && cache_alloc(allocator, request, offset))
        return ORIEL_OK;
    if (allocator->cache.bytes > 0)
        cache_check(allocator);
    enum oriel_status status = pages_alloc_fresh(allocator, request, offset);
    if (status == ORIEL_OK || allocator->cache.bytes == 0)
        return status;
    oriel_allocator_drop_cache(allocator);
    return pages_alloc_fresh(allocator, request, offset);
}

static bool is_dirty_when_freed(uint64_t flags)
{
    return (flags & (ORIEL_BLOCK_USER | ORIEL_BLOCK_SHARED)) == ORIEL_BLOCK_USER;
}

static struct oriel_free_extents *small_extents(struct oriel_allocator *allocator, uint64_t flags)
{
    if (is_dirty_when_freed(flags))
        return &allocator->small_user;
    return (flags & ORIEL_BLOCK_SHARED) != 0 ? &allocator->small_shared : &allocator->small;
}

static enum oriel_status small_alloc(struct oriel_allocator *allocator,
                                     struct oriel_alloc_request *request, uint64_t *offset)
{
    struct oriel_free_extents *small = small_extents(allocator, request->flags);
    request->is_dirty = is_dirty_when_freed(request->flags);
    if (oriel_free_extents_remove_fit(small, request->len_bytes, request->align_bytes, offset))
        return ORIEL_OK;
    uint64_t slab;
    struct oriel_alloc_request slab_request = {.len_bytes = SLAB_BYTES,
                                               .reserved_bytes = SLAB_BYTES,
                                               .flags = request->flags & ORIEL_BLOCK_SHARED};
    enum oriel_status status = pages_alloc(allocator, &slab_request, &slab);
    if (status != ORIEL_OK)
        return status;
    if (!oriel_free_extents_add(small, slab, SLAB_BYTES) ||
        !oriel_free_extents_remove_fit(small, request->len_bytes, request->align_bytes, offset))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of free blocks");
    return ORIEL_OK;
}

static bool is_small(uint64_t len_bytes)
{
    return len_bytes < SMALL_BYTES;
}

static void block_release(struct oriel_allocator *allocator, uint64_t offset, uint64_t len_bytes,
                          uint64_t flags)
{
    if (is_small(len_bytes)) {
        if (!is_dirty_when_freed(flags))
            memset(allocator->base + offset, 0, len_bytes);
        oriel_free_extents_add(small_extents(allocator, flags), offset, len_bytes);
    } else if ((flags & (ORIEL_BLOCK_USER | ORIEL_BLOCK_PLACED)) != ORIEL_BLOCK_USER ||
               !cache_add(allocator, offset, len_bytes, flags)) {
        pages_release(allocator, offset, len_bytes, flags);
    }
}

enum oriel_status oriel_allocator_alloc(struct oriel_allocator *allocator,
                                        struct oriel_alloc_request *request, uint64_t *offset)
{
    if (request->len_bytes > allocator->reserve_bytes ||
        request->align_bytes > allocator->reserve_bytes)
        return no_room_error(allocator, request->len_bytes);
    if (request->align_bytes < 64)
        request->align_bytes = 64;
    uint64_t len_bytes = round_up(request->len_bytes > 0 ? request->len_bytes : 1, 64);
    if (!is_small(len_bytes) || request->align_bytes > SMALL_BYTES)
        len_bytes =
            round_up(len_bytes < SMALL_BYTES ? SMALL_BYTES : len_bytes, oriel_pages_bytes());
    request->len_bytes = len_bytes;
    enum oriel_status status = is_small(len_bytes) ? small_alloc(allocator, request, offset)
                                                   : pages_alloc(allocator, request, offset);
    if (status == ORIEL_OK &&
        !oriel_hash_table_set_nolock(&allocator->used, *offset,
                                     (void *)(uintptr_t)(len_bytes | request->flags))) {
        block_release(allocator, *offset, len_bytes, request->flags);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of allocations");
    }
    if (status == ORIEL_OK)
        allocator->used_bytes += len_bytes;
    return status;
}

bool oriel_allocator_free(struct oriel_allocator *allocator, uint64_t offset, uint64_t flags)
{
    void *value = oriel_hash_table_find(&allocator->used, offset);
    uint64_t entry = (uint64_t)(uintptr_t)value;
    if (value == NULL || (entry & flags) != flags)
        return false;
    oriel_hash_table_remove_nolock(&allocator->used, offset, value);
    allocator->used_bytes -= entry & ~(uint64_t)ORIEL_BLOCK_FLAGS;
    if (allocator->cache.bytes > 0 || (entry & ORIEL_BLOCK_USER) != 0)
        cache_check(allocator);
    block_release(allocator, offset, entry & ~(uint64_t)ORIEL_BLOCK_FLAGS,
                  entry & ORIEL_BLOCK_FLAGS);
    return true;
}

bool oriel_allocator_place(struct oriel_allocator *allocator, uint64_t offset, uint64_t at,
                           uint64_t len_bytes, struct oriel_pages_placement placement)
{
    const uint64_t first = round_up(at, oriel_pages_bytes());
    const uint64_t end = round_up(at + len_bytes, oriel_pages_bytes());
    const uint64_t entry = (uint64_t)(uintptr_t)oriel_hash_table_find(&allocator->used, offset);
    const uint64_t block_bytes = entry & ~(uint64_t)ORIEL_BLOCK_FLAGS;
    /* the mark may stay although the kernel refuses */
    if (entry == 0 || is_small(block_bytes) || first >= end || end > offset + block_bytes ||
        !oriel_allocator_file_is_open(allocator) ||
        !oriel_hash_table_set_nolock(&allocator->used, offset,
                                     (void *)(uintptr_t)(entry | ORIEL_BLOCK_PLACED)) ||
        !oriel_pages_place(allocator->base + first, end - first, placement))
        return false;
    oriel_pages_punch(allocator->fd, allocator->base, first, end - first);
    if (block_bytes <= ORIEL_RESERVED_BYTES &&
        oriel_memory_limits_room(end - first, false) == ORIEL_ROOM_RESERVED)
        oriel_pages_reserve(allocator->fd, allocator->base, first, end - first,
                            (entry & ORIEL_BLOCK_ADVISED) != 0);
    return true;
}
