/* Attached regions, newest first. */
#include "check/order/attached_regions.h"

struct region {
    oriel_shm_offset next;
    struct oriel_member_range at;
};

void oriel_attached_add(oriel_shm_offset *list, struct oriel_member_range range)
{
    oriel_shm_offset place = oriel_shm_allocate(sizeof(struct region));
    struct region *region = oriel_shm_at(place);
    if (region == NULL)
        return;
    *region = (struct region){.next = *list, .at = range};
    *list = place;
}

static void region_unlink(oriel_shm_offset *link)
{
    oriel_shm_offset gone = *link;
    *link = ((struct region *)oriel_shm_at(gone))->next;
    oriel_shm_free(gone, sizeof(struct region));
}

void oriel_attached_remove(oriel_shm_offset *list, uint64_t address)
{
    for (oriel_shm_offset *link = list; *link != 0;) {
        struct region *region = oriel_shm_at(*link);
        if (region->at.address == address) {
            region_unlink(link);
            return;
        }
        link = &region->next;
    }
}

void oriel_attached_empty(oriel_shm_offset *list)
{
    while (*list != 0)
        region_unlink(list);
}

/* Returns the region that contains the byte, or NULL and the nearest region. */
static const struct oriel_member_range *region_find(oriel_shm_offset list, uint64_t at,
                                                    struct oriel_member_range *nearest)
{
    uint64_t nearest_bytes = UINT64_MAX;
    for (oriel_shm_offset place = list; place != 0;) {
        const struct region *region = oriel_shm_at(place);
        uint64_t begin = region->at.address;
        if (at - begin < region->at.len_bytes)
            return &region->at;
        uint64_t away_bytes = at < begin ? begin - at : at - begin - region->at.len_bytes;
        if (away_bytes <= nearest_bytes) {
            nearest_bytes = away_bytes;
            *nearest = region->at;
        }
        place = region->next;
    }
    return NULL;
}

/* Returns the end of the attached memory without a hole from address on, or end if that is lower;
 * some bytes before end may be unneeded. */
static uint64_t covered_up(oriel_shm_offset list, uint64_t address,
                           struct oriel_member_range *nearest)
{
    const struct oriel_member_range *region;
    uint64_t end = address;
    while ((region = region_find(list, end, nearest)) != NULL &&
           region->address + region->len_bytes > end)
        end = region->address + region->len_bytes;
    return end - address;
}

static uint64_t covered_down(oriel_shm_offset list, uint64_t address)
{
    struct oriel_member_range nearest;
    const struct oriel_member_range *region;
    uint64_t begin = address;
    while (begin > 0 && (region = region_find(list, begin - 1, &nearest)) != NULL)
        begin = region->address;
    return address - begin;
}

/* Returns how many runs after this one are in the same regions as it, and so are attached too. */
static uint64_t runs_alike_count(oriel_shm_offset list, struct oriel_member_range run,
                                 uint64_t up_bytes, int64_t stride_bytes)
{
    if (run.len_bytes == 0 || stride_bytes == 0)
        return UINT64_MAX;
    return stride_bytes > 0 ? (up_bytes - run.len_bytes) / (uint64_t)stride_bytes
                            : covered_down(list, run.address) / -(uint64_t)stride_bytes;
}

bool oriel_attached_has(oriel_shm_offset list, struct oriel_member_range *run, uint64_t count,
                        int64_t stride_bytes, struct oriel_member_range *nearest)
{
    for (uint64_t left = count; left > 0;) {
        uint64_t up_bytes = run->len_bytes == 0 ? 0 : covered_up(list, run->address, nearest);
        if (up_bytes < run->len_bytes)
            return false;
        uint64_t passed = runs_alike_count(list, *run, up_bytes, stride_bytes);
        passed = passed < left ? passed : left - 1;
        run->address += (passed + 1) * (uint64_t)stride_bytes;
        left -= passed + 1;
    }
    return true;
}
