/* Matches the call sites of two runs, and their regions.
 *
 * Call sites are matched if they have the same call, function, file and line, or address without a
 * file. Those that remain are matched without line or address, in the order of the program: lines
 * move, and programs are built again. Folders are not compared. Regions are matched by name. */
#include "cli/report/compare.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* A call site of one run. */
struct entry {
    const struct oriel_code_address *place;
    const struct oriel_site_sum *sum;
    const struct oriel_site_sum *match;
    bool is_matched;
};

static double scale_of(const struct oriel_comparison *comparison, int side)
{
    return comparison->is_per_rank ? 1.0 / comparison->runs[side]->head.ranks : 1.0;
}

/* --- call sites --- */

static int compare_last_parts(const char *one, const char *other)
{
    const char *one_slash = strrchr(one, '/'), *other_slash = strrchr(other, '/');
    return strcmp(one_slash != NULL ? one_slash + 1 : one,
                  other_slash != NULL ? other_slash + 1 : other);
}

/* Without line and address. */
static int compare_names(const struct entry *one, const struct entry *other)
{
    int order = (one->sum->kind > other->sum->kind) - (one->sum->kind < other->sum->kind);
    if (order == 0)
        order = strcmp(one->place->function, other->place->function);
    if (order == 0)
        order = compare_last_parts(one->place->file, other->place->file);
    if (order == 0 && one->place->file[0] == '\0')
        order = compare_last_parts(one->place->module, other->place->module);
    return order;
}

static int compare_sites(const struct entry *one, const struct entry *other)
{
    int order = compare_names(one, other);
    if (order == 0)
        order = (one->place->line > other->place->line) - (one->place->line < other->place->line);
    if (order == 0 && one->place->file[0] == '\0')
        order = (one->place->offset > other->place->offset) -
                (one->place->offset < other->place->offset);
    return order;
}

static int compare_entries_by_site(const void *left, const void *right)
{
    const struct entry *one = left, *other = right;
    int order = compare_sites(one, other);
    return order != 0 ? order : (one->sum > other->sum) - (one->sum < other->sum);
}

/* The call sites of a run, sorted. */
static struct entry *site_entries_make(const struct oriel_reported_run *run, size_t *count)
{
    const struct oriel_site_sums *sites = run != NULL ? &run->sum.sites : NULL;
    *count = sites != NULL ? sites->count : 0;
    struct entry *entries = oriel_alloc((*count + 1) * sizeof *entries);
    for (size_t i = 0; i < *count; i++)
        entries[i] =
            (struct entry){.place = &sites->places[sites->list[i].place], .sum = &sites->list[i]};
    if (*count > 0)
        qsort(entries, *count, sizeof *entries, compare_entries_by_site);
    return entries;
}

static size_t unmatched_skip(const struct entry *entries, size_t at, size_t count)
{
    while (at < count && entries[at].is_matched)
        at++;
    return at;
}

static void site_entries_match(struct entry *before, size_t before_count, struct entry *after,
                               size_t after_count,
                               int (*compare)(const struct entry *, const struct entry *))
{
    size_t i = 0, j = 0;
    while ((i = unmatched_skip(before, i, before_count)) < before_count &&
           (j = unmatched_skip(after, j, after_count)) < after_count) {
        int order = compare(&before[i], &after[j]);
        if (order == 0) {
            before[i].match = after[j].sum;
            before[i].is_matched = after[j].is_matched = true;
        }
        i += order <= 0;
        j += order >= 0;
    }
}

static void site_append(struct oriel_comparison *comparison, const struct oriel_site_sum *before,
                        const struct oriel_site_sum *after)
{
    struct oriel_compared_site *site = &comparison->sites[comparison->sites_count++];
    *site = (struct oriel_compared_site){.first = {before, after}};
    for (int side = 0; side < 2; side++) {
        const struct oriel_site_sum *sum = site->first[side];
        if (sum == NULL)
            continue;
        double scale = scale_of(comparison, side);
        bool has_times = sum->kind >= ORIEL_TRACE_CALL || comparison->has_same_times;
        site->amounts.of[ORIEL_COUNT][side] = scale * (double)sum->count;
        site->amounts.of[ORIEL_BYTES][side] = scale * (double)sum->bytes;
        site->amounts.of[ORIEL_TIME_NS][side] = has_times ? scale * (double)sum->time_ns : 0;
        site->amounts.of[ORIEL_WAITING_NS][side] = has_times ? scale * (double)sum->waiting_ns : 0;
    }
}

static int compare_compared_sites(const void *left, const void *right)
{
    const struct oriel_compared_site *one = left, *other = right;
    return oriel_amounts_order(&one->amounts, &other->amounts);
}

static void sites_compare(struct oriel_comparison *comparison)
{
    size_t before_count, after_count;
    struct entry *before = site_entries_make(comparison->runs[0], &before_count);
    struct entry *after = site_entries_make(comparison->runs[1], &after_count);
    site_entries_match(before, before_count, after, after_count, compare_sites);
    site_entries_match(before, before_count, after, after_count, compare_names);
    comparison->sites = oriel_alloc((before_count + after_count + 1) * sizeof *comparison->sites);
    for (size_t i = 0; i < before_count; i++)
        site_append(comparison, before[i].sum, before[i].match);
    for (size_t i = 0; i < after_count; i++)
        if (!after[i].is_matched)
            site_append(comparison, NULL, after[i].sum);
    qsort(comparison->sites, comparison->sites_count, sizeof *comparison->sites,
          compare_compared_sites);
    free(before);
    free(after);
}

/* --- regions --- */

static int compare_region_names(const void *left, const void *right)
{
    const struct oriel_compared_region *one = left, *other = right;
    return strcmp(one->name, other->name);
}

static int compare_compared_regions(const void *left, const void *right)
{
    const struct oriel_compared_region *one = left, *other = right;
    int order = oriel_amounts_order(&one->amounts, &other->amounts);
    return order != 0 ? order : compare_region_names(left, right);
}

static void region_append(struct oriel_comparison *comparison, int side,
                          const struct oriel_region_sum *sum)
{
    const uint64_t amounts[ORIEL_QUANTITIES] = {
        [ORIEL_COUNT] = sum->count,       [ORIEL_BYTES] = sum->bytes,
        [ORIEL_TIME_NS] = sum->time_ns,   [ORIEL_WAITING_NS] = sum->waiting_ns,
        [ORIEL_CALLS_NS] = sum->calls_ns, [ORIEL_OPERATIONS] = sum->operations};
    struct oriel_compared_region *region = &comparison->regions[comparison->regions_count++];
    *region = (struct oriel_compared_region){.name = sum->name};
    for (int i = 0; i < ORIEL_QUANTITIES; i++)
        region->amounts.of[i][side] = scale_of(comparison, side) * (double)amounts[i];
}

/* Adds neighbours with the same name, of which one is of each run. */
static void regions_join(struct oriel_comparison *comparison)
{
    struct oriel_compared_region *regions = comparison->regions;
    size_t kept = 0;
    for (size_t i = 0; i < comparison->regions_count; i++) {
        if (kept == 0 || compare_region_names(&regions[kept - 1], &regions[i]) != 0) {
            regions[kept++] = regions[i];
            continue;
        }
        for (int quantity = 0; quantity < ORIEL_QUANTITIES; quantity++)
            for (int side = 0; side < 2; side++)
                regions[kept - 1].amounts.of[quantity][side] +=
                    regions[i].amounts.of[quantity][side];
    }
    comparison->regions_count = kept;
}

static void regions_compare(struct oriel_comparison *comparison)
{
    size_t room = 1;
    for (int side = 0; side < 2; side++)
        room += comparison->runs[side] != NULL ? comparison->runs[side]->sum.regions.count : 0;
    comparison->regions = oriel_alloc(room * sizeof *comparison->regions);
    for (int side = 0; side < 2 && comparison->runs[side] != NULL; side++)
        for (size_t i = 0; i < comparison->runs[side]->sum.regions.count; i++)
            region_append(comparison, side, &comparison->runs[side]->sum.regions.list[i]);
    qsort(comparison->regions, comparison->regions_count, sizeof *comparison->regions,
          compare_region_names);
    regions_join(comparison);
    qsort(comparison->regions, comparison->regions_count, sizeof *comparison->regions,
          compare_compared_regions);
}

void oriel_comparison_add_places(struct oriel_comparison *comparison)
{
    sites_compare(comparison);
    regions_compare(comparison);
}

void oriel_compared_site_text(const struct oriel_comparison *comparison,
                              const struct oriel_compared_site *site, int side,
                              char out[ORIEL_CODE_ADDRESS_TEXT])
{
    oriel_site_sums_text(&comparison->runs[side]->sum.sites, site->first[side], out);
}
