/* Sums the records of all ranks. Sizes are checked before data is read; a damaged part makes the
 * whole request invalid. This runs in the helper process. */
#include "cli/statistics.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/helper.h"
#include "cli/trace_text.h"

/* A window's record with the arrays that follow it. */
struct window_part {
    struct oriel_window_record *record;
    const struct oriel_toward *toward;
    const int32_t *ranks;
    const struct oriel_counted_site *sites; /* record->sites of them */
};

/* The places of a rank's call sites: their indices in the job's. */
struct rank_places {
    uint32_t indices[ORIEL_PLACES_MOST + 1]; /* by number, from 1 */
};

/* --- one window --- */

static void *zeroed_alloc(size_t count, size_t each_bytes)
{
    void *bytes = oriel_alloc((count + 1) * each_bytes);
    memset(bytes, 0, (count + 1) * each_bytes);
    return bytes;
}

/* A node of the tree: a window's index in the job's array. */
struct window_node {
    uint64_t id;
    int32_t n;
    size_t at;
};

static int compare_window_nodes(const void *left, const void *right)
{
    const struct window_node *a = left;
    const struct window_node *b = right;
    return a->id != b->id ? (a->id < b->id ? -1 : 1) : (a->n > b->n) - (a->n < b->n);
}

struct oriel_window_sum *oriel_statistics_window_append(struct oriel_job_sum *job, int32_t n)
{
    job->windows =
        oriel_alloc_checked(realloc(job->windows, (job->windows_count + 1) * sizeof *job->windows));
    struct oriel_window_sum *window = &job->windows[job->windows_count++];
    *window = (struct oriel_window_sum){.name = "", .n = n};
    window->members = zeroed_alloc((size_t)n, sizeof *window->members);
    window->row = zeroed_alloc((size_t)n, sizeof *window->row);
    for (int32_t i = 0; i < n; i++)
        window->members[i].reason = "";
    return window;
}

/* The combined windows (shared_by) of all processes are one entry. */
static struct oriel_window_sum *window_get(struct oriel_job_sum *job,
                                           const struct window_part *window_part)
{
    const struct oriel_window_record *record = window_part->record;
    struct window_node *window_node = oriel_alloc(sizeof *window_node);
    *window_node = (struct window_node){record->shared_by != 0 ? 0 : record->window_id, record->n,
                                        job->windows_count};
    struct window_node **found =
        oriel_alloc_checked(tsearch(window_node, &job->window_tree, compare_window_nodes));
    if (*found != window_node) {
        free(window_node);
        return &job->windows[(*found)->at];
    }
    struct oriel_window_sum *window = oriel_statistics_window_append(job, record->n);
    window->id = record->window_id;
    window->flavour = record->flavour;
    for (int32_t i = 0; i < record->n; i++)
        window->members[i].world_rank = window_part->ranks[i];
    return window;
}

static void busiest_pair_insert(struct oriel_window_sum *window, const struct oriel_pair *pair)
{
    struct oriel_pair *pairs = window->pairs;
    size_t at = ORIEL_PAIRS_SHOWN;
    while (at > 0 &&
           (pairs[at - 1].bytes < pair->bytes ||
            (pairs[at - 1].bytes == pair->bytes && pairs[at - 1].operations < pair->operations)))
        at--;
    if (at == ORIEL_PAIRS_SHOWN)
        return;
    memmove(&pairs[at + 1], &pairs[at], (ORIEL_PAIRS_SHOWN - 1 - at) * sizeof *pairs);
    pairs[at] = *pair;
}

static void add_toward(struct oriel_window_sum *window, const struct window_part *window_part)
{
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_toward *toward = &window_part->toward[i];
        window->row[i].count += toward->operations;
        window->row[i].bytes += toward->bytes;
        for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++) {
            window->members[i].caused_ns[cause] += toward->caused_ns[cause];
            window->causes_ns[cause] += toward->caused_ns[cause];
        }
    }
}

/* Called after all records of a rank, one for each thread, have been added. */
void oriel_statistics_row_finish(struct oriel_window_sum *window, int32_t world_rank)
{
    for (int32_t i = 0; i < window->n; i++) {
        struct oriel_pair pair = {world_rank, window->members[i].world_rank, window->row[i].count,
                                  window->row[i].bytes};
        if (pair.operations > 0)
            busiest_pair_insert(window, &pair);
        window->row[i] = (struct oriel_sum){0};
    }
}

/* The sums of a kind are those of its call sites. */
static void add_kind(struct oriel_window_sum *window, const struct oriel_counted_site *site,
                     int32_t world_rank)
{
    unsigned call = site->kind - (unsigned)ORIEL_TRACE_CALL;
    if (site->kind < ORIEL_COUNTED_OPERATIONS) {
        window->operations[site->kind].count += site->count;
        window->operations[site->kind].bytes += site->bytes;
        window->operations[site->kind].time_ns += site->time_ns;
        window->operations[site->kind].waited += site->waited;
    } else if (call < ORIEL_COUNTED_CALLS) {
        struct oriel_time_sum *sum = &window->calls[call];
        sum->count += site->count;
        sum->time_ns += site->time_ns;
        sum->waiting_ns += site->waiting_ns;
        sum->waited += site->waited;
        if (site->longest_ns > sum->longest_ns) {
            sum->longest_ns = site->longest_ns;
            sum->longest_rank = world_rank;
        }
    }
}

static void add_paths(struct oriel_window_sum *window, const struct oriel_window_record *record)
{
    for (int path = 0; path < ORIEL_COUNTED_PATHS; path++) {
        window->paths[path].count += record->paths[path].count;
        window->paths[path].bytes += record->paths[path].bytes;
    }
}

static uint32_t place_index(const struct rank_places *places, uint16_t number)
{
    return number <= ORIEL_PLACES_MOST ? places->indices[number] : ORIEL_PLACE_OTHERS;
}

static void add_sites(struct oriel_job_sum *job, const struct window_part *window_part,
                      uint32_t window, const struct rank_places *places, int32_t world_rank)
{
    for (uint64_t i = 0; i < window_part->record->sites; i++) {
        const struct oriel_counted_site *site = &window_part->sites[i];
        add_kind(&job->windows[window], site, world_rank);
        oriel_site_sums_add(&job->sites,
                            &(struct oriel_site_sum){.place = place_index(places, site->place),
                                                     .kind = site->kind,
                                                     .window = window,
                                                     .count = site->count,
                                                     .bytes = site->bytes,
                                                     .time_ns = site->time_ns,
                                                     .waiting_ns = site->waiting_ns,
                                                     .waited = site->waited,
                                                     .longest_ns = site->longest_ns,
                                                     .longest_rank = world_rank});
    }
}

/* Cleans the program's strings, which are printed to terminals. */
static void add_window(struct oriel_job_sum *job, const struct window_part *window_part,
                       const struct rank_places *places, int32_t world_rank)
{
    struct oriel_window_record *record = window_part->record;
    oriel_trace_text_clean(record->name, sizeof record->name);
    oriel_trace_text_clean(record->reason, sizeof record->reason);
    struct oriel_window_sum *window = window_get(job, window_part);
    window->reported += record->thread == 0;
    window->freed |= record->state == 2;
    window->shared_by =
        record->shared_by > window->shared_by ? record->shared_by : window->shared_by;
    if (window->name[0] == '\0')
        window->name = record->name;
    if (window->place == ORIEL_PLACE_OTHERS)
        window->place = place_index(places, record->place);
    add_sites(job, window_part, (uint32_t)(window - job->windows), places, world_rank);
    add_paths(window, record);
    if (record->n > 0)
        add_toward(window, window_part);
    if (record->n == 0 || record->thread > 0)
        return;
    struct oriel_member_sum *member = &window->members[record->rank];
    member->has_reported = true;
    member->path = record->own_path < ORIEL_COUNTED_PATHS ? record->own_path : ORIEL_PATH_host;
    member->size_bytes = record->size_bytes;
    member->reason = record->reason;
}

/* --- all windows --- */

/* The next window of a part; false when it is incomplete. */
static bool next_window(char **at, const char *end, struct window_part *out)
{
    if ((size_t)(end - *at) < sizeof(struct oriel_window_record))
        return false;
    out->record = (struct oriel_window_record *)*at;
    int32_t n = out->record->n;
    if (n < 0 || (size_t)n > (size_t)(end - *at) / sizeof(struct oriel_toward) ||
        out->record->sites > ORIEL_SITE_ROWS ||
        (size_t)(end - *at) < oriel_merged_window_bytes(n, out->record->sites) ||
        (n > 0 && (out->record->rank < 0 || out->record->rank >= n)))
        return false;
    out->toward = (const struct oriel_toward *)(out->record + 1);
    out->ranks = (const int32_t *)(out->toward + n);
    out->sites = (const struct oriel_counted_site *)(*at + oriel_merged_window_bytes(n, 0));
    *at += oriel_merged_window_bytes(n, out->record->sites);
    for (uint64_t i = 0; i < out->record->sites; i++)
        if (!oriel_kind_exists(out->sites[i].kind))
            return false;
    return true;
}

static void add_places(struct oriel_job_sum *job, const struct oriel_code_address *places,
                       uint32_t count, struct rank_places *out)
{
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < count; i++)
        out->indices[i + 1] = oriel_site_sums_place(&job->sites, &places[i]);
}

static void add_regions(struct oriel_job_sum *job, const struct oriel_counted_region *regions,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct oriel_region_sum sum = {.count = regions[i].count,
                                       .time_ns = regions[i].time_ns,
                                       .calls_ns = regions[i].calls_ns,
                                       .waiting_ns = regions[i].waiting_ns,
                                       .operations = regions[i].operations,
                                       .bytes = regions[i].bytes};
        memcpy(sum.name, regions[i].name, sizeof sum.name);
        oriel_region_sums_add(&job->regions, &sum);
    }
}

static bool add_part(struct oriel_job_sum *job, char **at, const char *end)
{
    const struct oriel_merged_records *part = (const struct oriel_merged_records *)*at;
    if ((size_t)(end - *at) < sizeof *part || part->magic != ORIEL_MERGED_MAGIC ||
        part->len_bytes > (size_t)(end - *at) - sizeof *part || part->world_rank < 0 ||
        part->world_rank >= job->head->ranks || part->places > ORIEL_PLACES_MOST ||
        part->regions > ORIEL_REGIONS_MOST ||
        part->len_bytes < part->places * sizeof(struct oriel_code_address) +
                              part->regions * sizeof(struct oriel_counted_region))
        return false;
    job->paused_ns += part->paused_ns;
    job->paused_ranks += part->paused_ns > 0;
    job->has_reported[part->world_rank] =
        part->is_early ? ORIEL_REPORTED_EARLY : ORIEL_REPORTED_ALL;
    *at += sizeof *part;
    const char *part_end = *at + part->len_bytes;
    struct rank_places places;
    add_places(job, (const struct oriel_code_address *)*at, part->places, &places);
    *at += part->places * sizeof(struct oriel_code_address);
    add_regions(job, (const struct oriel_counted_region *)*at, part->regions);
    *at += part->regions * sizeof(struct oriel_counted_region);
    for (uint32_t i = 0; i < part->windows; i++) {
        struct window_part window_part;
        if (!next_window(at, part_end, &window_part))
            return false;
        add_window(job, &window_part, &places, part->world_rank);
    }
    for (size_t i = 0; i < job->windows_count; i++)
        oriel_statistics_row_finish(&job->windows[i], part->world_rank);
    return *at == part_end;
}

bool oriel_statistics_add(const void *request, size_t len_bytes, struct oriel_job_sum *out)
{
    const struct oriel_statistics_head *head = request;
    char *at = (char *)(uintptr_t)request + sizeof *head;
    const char *end = (const char *)request + len_bytes;
    if (len_bytes < sizeof *head || head->magic != ORIEL_MERGED_MAGIC || head->ranks < 0)
        return false;
    *out = (struct oriel_job_sum){
        .head = head, .has_reported = zeroed_alloc((size_t)head->ranks, sizeof *out->has_reported)};
    oriel_site_sums_open(&out->sites);
    oriel_region_sums_open(&out->regions);
    bool is_whole = true;
    for (uint32_t i = 0; i < head->parts && is_whole; i++)
        is_whole = add_part(out, &at, end);
    if (!is_whole) {
        oriel_statistics_free(out);
        return false;
    }
    oriel_dwarf_lookup(out->sites.places, out->sites.places_count);
    oriel_site_sums_finish(&out->sites);
    oriel_region_sums_finish(&out->regions);
    for (size_t i = 0; i < out->windows_count; i++)
        oriel_code_address_text(&out->sites.places[out->windows[i].place], out->windows[i].site);
    return true;
}

void oriel_statistics_free(struct oriel_job_sum *job)
{
    for (size_t i = 0; i < job->windows_count; i++) {
        free(job->windows[i].members);
        free(job->windows[i].row);
    }
    oriel_site_sums_close(&job->sites);
    oriel_region_sums_close(&job->regions);
    tdestroy(job->window_tree, free);
    free(job->windows);
    free(job->has_reported);
}

char *oriel_statistics_write(const void *request, size_t len_bytes)
{
    struct oriel_job_sum job;
    char *text = NULL;
    size_t text_bytes = 0;
    if (!oriel_statistics_add(request, len_bytes, &job))
        return oriel_format("oriel: the statistics are damaged\n");
    FILE *out = oriel_alloc_checked(open_memstream(&text, &text_bytes));
    char *problem = oriel_format("%s", "");
    if (job.head->file[0] != '\0') {
        free(problem);
        problem = oriel_statistics_dump(&job, job.head->file);
    }
    if (problem[0] != '\0')
        fprintf(out, "oriel: ORIEL_STATS: %s cannot be written: %s [O20]\n", job.head->file,
                problem);
    if (job.head->file[0] == '\0' || problem[0] != '\0')
        oriel_statistics_print(&job, job.head->width, out);
    free(problem);
    fclose(out);
    oriel_statistics_free(&job);
    return text;
}
