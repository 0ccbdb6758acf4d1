/* The table of regions, as text and as JSON. */
#include "cli/region_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "cli/cli.h"
#include "cli/figures.h"
#include "cli/json.h"
#include "cli/trace_text.h"

enum { REGIONS_SHOWN = 20, FIGURES = 67 /* columns */ };

void oriel_region_sums_open(struct oriel_region_sums *sums)
{
    *sums = (struct oriel_region_sums){.known = ORIEL_HASH_TABLE_INIT};
}

void oriel_region_sums_add(struct oriel_region_sums *sums, const struct oriel_region_sum *more)
{
    static const uint64_t key[2] = {3, 4};
    struct oriel_region_sum clean = *more;
    oriel_trace_text_clean(clean.name, sizeof clean.name);
    uint64_t digest = oriel_siphash(key, clean.name, strlen(clean.name));
    uintptr_t index = (uintptr_t)oriel_hash_table_find(&sums->known, digest);
    if (index == 0) {
        sums->list =
            oriel_alloc_checked(reallocarray(sums->list, sums->count + 1, sizeof *sums->list));
        sums->list[sums->count++] = clean;
        if (!oriel_hash_table_set(&sums->known, digest, (void *)(uintptr_t)sums->count))
            oriel_die("out of memory");
        return;
    }
    struct oriel_region_sum *sum = &sums->list[index - 1];
    sum->count += clean.count;
    sum->time_ns += clean.time_ns;
    sum->calls_ns += clean.calls_ns;
    sum->waiting_ns += clean.waiting_ns;
    sum->operations += clean.operations;
    sum->bytes += clean.bytes;
}

static int compare_regions(const void *left, const void *right)
{
    const struct oriel_region_sum *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns > b->time_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

void oriel_region_sums_finish(struct oriel_region_sums *sums)
{
    for (size_t i = 0; i < sums->count; i++) {
        struct oriel_region_sum *sum = &sums->list[i];
        sum->calls_ns = sum->calls_ns < sum->time_ns ? sum->calls_ns : sum->time_ns;
        sum->waiting_ns = sum->waiting_ns < sum->calls_ns ? sum->waiting_ns : sum->calls_ns;
    }
    if (sums->count > 0)
        qsort(sums->list, sums->count, sizeof *sums->list, compare_regions);
}

void oriel_region_sums_close(struct oriel_region_sums *sums)
{
    oriel_hash_table_close(&sums->known);
    free(sums->list);
}

const char *oriel_region_title(const char *name)
{
    return name[0] == '\0' ? "other regions" : name;
}

void oriel_region_sums_print(const struct oriel_region_sums *sums, int width, FILE *out)
{
    char time[ORIEL_FIGURE], calls[ORIEL_FIGURE], waiting[ORIEL_FIGURE], count[ORIEL_FIGURE];
    char operations[ORIEL_FIGURE], bytes[ORIEL_FIGURE];
    bool fits = true;
    for (size_t i = 0; i < sums->count && i < REGIONS_SHOWN; i++)
        fits =
            fits && FIGURES + 2 + strlen(oriel_region_title(sums->list[i].name)) <= (size_t)width;
    if (sums->count > 0)
        fprintf(out, "regions\n  %9s %9s %9s %11s %11s %9s\n", "time", "in calls", "waiting",
                "count", "operations", "moved");
    for (size_t i = 0; i < sums->count && i < REGIONS_SHOWN; i++) {
        const struct oriel_region_sum *sum = &sums->list[i];
        fprintf(out, "  %9s %9s %9s %11s %11s %9s%s%s\n", oriel_time_text(time, sum->time_ns),
                oriel_time_text(calls, sum->calls_ns), oriel_time_text(waiting, sum->waiting_ns),
                oriel_count_text(count, sum->count), oriel_count_text(operations, sum->operations),
                oriel_bytes_text(bytes, sum->bytes), fits ? "  " : "\n        ",
                oriel_region_title(sum->name));
    }
    if (sums->count > REGIONS_SHOWN)
        fprintf(out, "  and %s more\n", oriel_count_text(count, sums->count - REGIONS_SHOWN));
}

static json_t *region_number(uint64_t number)
{
    return oriel_json_checked(json_integer((json_int_t)number));
}

json_t *oriel_region_sums_json(const struct oriel_region_sums *sums)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < sums->count; i++) {
        const struct oriel_region_sum *sum = &sums->list[i];
        oriel_json_append(
            list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                            oriel_json_text(sum->name, sizeof sum->name), "count",
                            region_number(sum->count), "time_ns", region_number(sum->time_ns),
                            "calls_ns", region_number(sum->calls_ns), "waiting_ns",
                            region_number(sum->waiting_ns), "operations",
                            region_number(sum->operations), "bytes", region_number(sum->bytes)));
    }
    return list;
}
