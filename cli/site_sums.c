/* Places are found by a digest of all that identifies them; rows by place and kind. */
#include "cli/site_sums.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "cli/cli.h"
#include "cli/trace_text.h"

void oriel_site_sums_open(struct oriel_site_sums *sums)
{
    static const struct oriel_code_address others;
    *sums = (struct oriel_site_sums){.known = ORIEL_HASH_TABLE_INIT};
    oriel_site_sums_place(sums, &others);
}

void oriel_site_sums_close(struct oriel_site_sums *sums)
{
    oriel_hash_table_close(&sums->known);
    free(sums->places);
    free(sums->of_kind);
    free(sums->list);
}

/* Makes room for one more element than count, which grows by doubling. */
static void *list_grow(void *list, size_t count, size_t each_bytes)
{
    bool is_full = (count & (count - 1)) == 0; /* 0, or a power of two */
    return is_full ? oriel_alloc_checked(reallocarray(list, count == 0 ? 1 : 2 * count, each_bytes))
                   : list;
}

static void place_clean(struct oriel_code_address *place)
{
    oriel_trace_text_clean(place->module, sizeof place->module);
    oriel_trace_text_clean(place->function, sizeof place->function);
    oriel_trace_text_clean(place->file, sizeof place->file);
    oriel_trace_text_clean(place->inlined, sizeof place->inlined);
}

uint32_t oriel_site_sums_place(struct oriel_site_sums *sums, const struct oriel_code_address *place)
{
    static const uint64_t key[2] = {1, 2};
    struct oriel_code_address clean = *place;
    place_clean(&clean);
    uint64_t digest = oriel_siphash(key, &clean, sizeof clean);
    uintptr_t index = (uintptr_t)oriel_hash_table_find(&sums->known, digest);
    if (index != 0)
        return (uint32_t)(index - 1);
    sums->places = list_grow(sums->places, sums->places_count, sizeof *sums->places);
    sums->of_kind = list_grow(sums->of_kind, sums->places_count, sizeof *sums->of_kind);
    sums->places[sums->places_count] = clean;
    memset(&sums->of_kind[sums->places_count], 0, sizeof *sums->of_kind);
    index = ++sums->places_count;
    if (!oriel_hash_table_set(&sums->known, digest, (void *)index))
        oriel_die("out of memory");
    return (uint32_t)(index - 1);
}

static void sum_add(struct oriel_site_sum *sum, const struct oriel_site_sum *more)
{
    if (sum->window != more->window)
        sum->window = ORIEL_WINDOWS_SEVERAL;
    sum->count += more->count;
    sum->bytes += more->bytes;
    sum->time_ns += more->time_ns;
    sum->waiting_ns += more->waiting_ns;
    sum->waited += more->waited;
    if (more->longest_ns > sum->longest_ns) {
        sum->longest_ns = more->longest_ns;
        sum->longest_rank = more->longest_rank;
    }
}

void oriel_site_sums_add(struct oriel_site_sums *sums, const struct oriel_site_sum *more)
{
    uint32_t *index = &sums->of_kind[more->place][more->kind];
    if (*index != 0) {
        sum_add(&sums->list[*index - 1], more);
        return;
    }
    sums->list = list_grow(sums->list, sums->count, sizeof *sums->list);
    sums->list[sums->count] = *more;
    *index = (uint32_t)++sums->count;
}

/* --- lines --- */

/* Whether they are one for a reader: one line in one function, or else one address. */
static int compare_places(const struct oriel_code_address *a, const struct oriel_code_address *b)
{
    int order = strcmp(a->file, b->file);
    order = order != 0 ? order : strcmp(a->function, b->function);
    if (order == 0 && a->line != b->line)
        order = a->line < b->line ? -1 : 1;
    if (order != 0 || a->file[0] != '\0')
        return order;
    order = strcmp(a->module, b->module);
    return order != 0 ? order : (a->offset > b->offset) - (a->offset < b->offset);
}

static int compare_sums_by_place(const void *left, const void *right, void *context)
{
    const struct oriel_site_sum *a = left, *b = right;
    const struct oriel_site_sums *sums = context;
    int order = compare_places(&sums->places[a->place], &sums->places[b->place]);
    return order != 0 ? order : (a->kind > b->kind) - (a->kind < b->kind);
}

static int compare_sums_by_time(const void *left, const void *right, void *context)
{
    const struct oriel_site_sum *a = left, *b = right;
    if (a->time_ns != b->time_ns)
        return a->time_ns > b->time_ns ? -1 : 1;
    if (a->count != b->count)
        return a->count > b->count ? -1 : 1;
    return compare_sums_by_place(left, right, context);
}

void oriel_site_sums_finish(struct oriel_site_sums *sums)
{
    size_t kept = 0;
    for (size_t i = 0; i < sums->places_count; i++)
        place_clean(&sums->places[i]);
    if (sums->count == 0)
        return;
    qsort_r(sums->list, sums->count, sizeof *sums->list, compare_sums_by_place, sums);
    for (size_t i = 0; i < sums->count; i++) {
        if (kept > 0 && compare_sums_by_place(&sums->list[kept - 1], &sums->list[i], sums) == 0)
            sum_add(&sums->list[kept - 1], &sums->list[i]);
        else
            sums->list[kept++] = sums->list[i];
    }
    sums->count = kept;
    qsort_r(sums->list, sums->count, sizeof *sums->list, compare_sums_by_time, sums);
}

uint64_t oriel_site_sums_time_ns(const struct oriel_site_sums *sums)
{
    uint64_t all_ns = 0;
    for (size_t i = 0; i < sums->count; i++)
        all_ns += sums->list[i].time_ns;
    return all_ns;
}

void oriel_site_sums_text(const struct oriel_site_sums *sums, const struct oriel_site_sum *sum,
                          char out[ORIEL_CODE_ADDRESS_TEXT])
{
    if (sum->place == ORIEL_PLACE_OTHERS)
        snprintf(out, ORIEL_CODE_ADDRESS_TEXT, "other call sites");
    else
        oriel_code_address_text(&sums->places[sum->place], out);
}
