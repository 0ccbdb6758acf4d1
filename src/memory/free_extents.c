/* First fit over a sorted array of extents. The array is short in practice, since neighbours merge.
 * The search for an offset is binary, the search for a fit is linear. */
#include "memory/free_extents.h"

#include <stdlib.h>
#include <string.h>

bool oriel_free_extents_reserve(struct oriel_free_extents *set)
{
    if (set->count + 2 <= set->capacity)
        return true;
    size_t capacity = 2 * set->capacity + 64;
    struct oriel_free_extent *extents = realloc(set->extents, capacity * sizeof *extents);
    if (extents == NULL)
        return false;
    set->extents = extents;
    set->capacity = capacity;
    return true;
}

static void extent_insert(struct oriel_free_extents *set, size_t at, uint64_t offset,
                          uint64_t len_bytes)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): callers have prepared capacity */
    memmove(&set->extents[at + 1], &set->extents[at], (set->count - at) * sizeof *set->extents);
    set->extents[at] = (struct oriel_free_extent){offset, len_bytes};
    set->count++;
}

static void extent_erase(struct oriel_free_extents *set, size_t at)
{
    set->count--;
    memmove(&set->extents[at], &set->extents[at + 1], (set->count - at) * sizeof *set->extents);
}

/* Removes len_bytes from the extent, from before_bytes after its start. */
static void extent_cut(struct oriel_free_extents *set, size_t at, uint64_t before_bytes,
                       uint64_t len_bytes)
{
    struct oriel_free_extent *extent = &set->extents[at];
    uint64_t after_bytes = extent->len_bytes - before_bytes - len_bytes;
    extent->len_bytes = before_bytes;
    if (after_bytes > 0)
        extent_insert(set, at + 1, set->extents[at].offset + before_bytes + len_bytes, after_bytes);
    if (before_bytes == 0)
        extent_erase(set, at);
}

bool oriel_free_extents_remove_fit(struct oriel_free_extents *set, uint64_t len_bytes,
                                   uint64_t align_bytes, uint64_t *offset)
{
    if (!oriel_free_extents_reserve(set))
        return false;
    for (size_t i = 0; i < set->count; i++) {
        struct oriel_free_extent *extent = &set->extents[i];
        uint64_t start = (extent->offset + align_bytes - 1) & ~(align_bytes - 1);
        uint64_t before = start - extent->offset;
        if (before >= extent->len_bytes || extent->len_bytes - before < len_bytes)
            continue;
        extent_cut(set, i, before, len_bytes);
        *offset = start;
        return true;
    }
    return false;
}

/* Index of the first extent that starts at or after offset. */
static size_t first_from(const struct oriel_free_extents *set, uint64_t offset)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->extents[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct oriel_free_extent *oriel_free_extents_find(const struct oriel_free_extents *set,
                                                        uint64_t offset)
{
    size_t after = first_from(set, offset + 1);
    const struct oriel_free_extent *extent = after > 0 ? &set->extents[after - 1] : NULL;
    return extent != NULL && offset - extent->offset < extent->len_bytes ? extent : NULL;
}

bool oriel_free_extents_remove(struct oriel_free_extents *set, uint64_t offset, uint64_t len_bytes)
{
    size_t at = first_from(set, offset + 1);
    if (!oriel_free_extents_reserve(set) || at == 0)
        return false;
    struct oriel_free_extent *extent = &set->extents[--at];
    uint64_t before = offset - extent->offset;
    if (before >= extent->len_bytes || extent->len_bytes - before < len_bytes)
        return false;
    extent_cut(set, at, before, len_bytes);
    return true;
}

bool oriel_free_extents_add(struct oriel_free_extents *set, uint64_t offset, uint64_t len_bytes)
{
    if (!oriel_free_extents_reserve(set))
        return false;
    size_t low = first_from(set, offset);
    struct oriel_free_extent *before = low > 0 ? &set->extents[low - 1] : NULL;
    struct oriel_free_extent *after = low < set->count ? &set->extents[low] : NULL;
    bool joins_before = before != NULL && before->offset + before->len_bytes == offset;
    bool joins_after = after != NULL && offset + len_bytes == after->offset;
    if (joins_before && joins_after) {
        before->len_bytes += len_bytes + after->len_bytes;
        extent_erase(set, low);
    } else if (joins_before) {
        before->len_bytes += len_bytes;
    } else if (joins_after) {
        after->offset = offset;
        after->len_bytes += len_bytes;
    } else {
        extent_insert(set, low, offset, len_bytes);
    }
    return true;
}

void oriel_free_extents_close(struct oriel_free_extents *set)
{
    free(set->extents);
    *set = (struct oriel_free_extents){0};
}
