/* A sorted array with binary search. Capacity is reserved before anything is promoted, so that no
 * step fails in the middle. */
#include "memory/promote/promoted_ranges.h"

#include <stdlib.h>
#include <string.h>

bool oriel_promoted_ranges_prepare(struct oriel_promoted_ranges *runs, size_t more)
{
    size_t needed = runs->count + more + 2;
    if (needed <= runs->capacity)
        return true;
    size_t capacity = 2 * needed + 64;
    struct oriel_run *list = realloc(runs->list, capacity * sizeof *list);
    if (list == NULL)
        return false;
    runs->list = list;
    runs->capacity = capacity;
    return true;
}

size_t oriel_promoted_ranges_after(const struct oriel_promoted_ranges *runs, uintptr_t address)
{
    size_t low = 0;
    size_t high = runs->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (runs->list[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_at(struct oriel_promoted_ranges *runs, size_t at, const struct oriel_run *run)
{
    memmove(&runs->list[at + 1], &runs->list[at], (runs->count - at) * sizeof *runs->list);
    runs->list[at] = *run;
    runs->count++;
}

void oriel_promoted_ranges_split(struct oriel_promoted_ranges *runs, uintptr_t address)
{
    size_t at = oriel_promoted_ranges_after(runs, address);
    if (at == runs->count || runs->list[at].start >= address)
        return;
    struct oriel_run upper = runs->list[at];
    runs->list[at].end = address;
    upper.offset += address - upper.start;
    upper.stash += address - upper.start;
    upper.start = address;
    insert_at(runs, at + 1, &upper);
}

void oriel_promoted_ranges_insert(struct oriel_promoted_ranges *runs, const struct oriel_run *run)
{
    insert_at(runs, oriel_promoted_ranges_after(runs, run->start), run);
}

void oriel_promoted_ranges_erase(struct oriel_promoted_ranges *runs, size_t at)
{
    runs->count--;
    memmove(&runs->list[at], &runs->list[at + 1], (runs->count - at) * sizeof *runs->list);
}

static bool continues(const struct oriel_run *lower, const struct oriel_run *upper)
{
    return lower->end == upper->start &&
           lower->offset + (lower->end - lower->start) == upper->offset &&
           lower->stash + (lower->end - lower->start) == upper->stash &&
           lower->holds == upper->holds && lower->block == upper->block;
}

void oriel_promoted_ranges_join(struct oriel_promoted_ranges *runs, uintptr_t start, uintptr_t end)
{
    size_t at = oriel_promoted_ranges_after(runs, start > 0 ? start - 1 : 0);
    while (at + 1 < runs->count && runs->list[at].start <= end) {
        if (continues(&runs->list[at], &runs->list[at + 1])) {
            runs->list[at].end = runs->list[at + 1].end;
            oriel_promoted_ranges_erase(runs, at + 1);
        } else {
            at++;
        }
    }
}
