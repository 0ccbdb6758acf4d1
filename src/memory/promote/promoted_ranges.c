/* A sorted array with binary search. Capacity is reserved before anything is promoted, so no step
 * fails in the middle. */
#include "memory/promote/promoted_ranges.h"

#include <stdlib.h>
#include <string.h>

bool oriel_promoted_ranges_prepare(struct oriel_promoted_ranges *ranges, size_t more)
{
    size_t needed = ranges->count + more + 2;
    if (needed <= ranges->capacity)
        return true;
    size_t capacity = 2 * needed + 64;
    struct oriel_promoted_range *list = realloc(ranges->list, capacity * sizeof *list);
    if (list == NULL)
        return false;
    ranges->list = list;
    ranges->capacity = capacity;
    return true;
}

size_t oriel_promoted_ranges_after(const struct oriel_promoted_ranges *ranges, uintptr_t address)
{
    size_t low = 0;
    size_t high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->list[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_at(struct oriel_promoted_ranges *ranges, size_t at,
                      const struct oriel_promoted_range *range)
{
    memmove(&ranges->list[at + 1], &ranges->list[at], (ranges->count - at) * sizeof *ranges->list);
    ranges->list[at] = *range;
    ranges->count++;
}

void oriel_promoted_ranges_split(struct oriel_promoted_ranges *ranges, uintptr_t address)
{
    size_t at = oriel_promoted_ranges_after(ranges, address);
    if (at == ranges->count || ranges->list[at].start >= address)
        return;
    struct oriel_promoted_range upper = ranges->list[at];
    ranges->list[at].end = address;
    upper.offset += address - upper.start;
    upper.parked += address - upper.start;
    upper.start = address;
    insert_at(ranges, at + 1, &upper);
}

void oriel_promoted_ranges_insert(struct oriel_promoted_ranges *ranges,
                                  const struct oriel_promoted_range *range)
{
    insert_at(ranges, oriel_promoted_ranges_after(ranges, range->start), range);
}

void oriel_promoted_ranges_erase(struct oriel_promoted_ranges *ranges, size_t at)
{
    ranges->count--;
    memmove(&ranges->list[at], &ranges->list[at + 1], (ranges->count - at) * sizeof *ranges->list);
}

static bool continues(const struct oriel_promoted_range *lower,
                      const struct oriel_promoted_range *upper)
{
    return lower->end == upper->start &&
           lower->offset + (lower->end - lower->start) == upper->offset &&
           lower->parked + (lower->end - lower->start) == upper->parked &&
           lower->references == upper->references && lower->block == upper->block;
}

void oriel_promoted_ranges_join(struct oriel_promoted_ranges *ranges, uintptr_t start,
                                uintptr_t end)
{
    size_t at = oriel_promoted_ranges_after(ranges, start > 0 ? start - 1 : 0);
    while (at + 1 < ranges->count && ranges->list[at].start <= end) {
        if (continues(&ranges->list[at], &ranges->list[at + 1])) {
            ranges->list[at].end = ranges->list[at + 1].end;
            oriel_promoted_ranges_erase(ranges, at + 1);
        } else {
            at++;
        }
    }
}
