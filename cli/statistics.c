/* Adds up the records of all ranks.  What comes from them is measured before it is read: a damaged part ends the adding.
 * Called by helper.c, in a process of its own. */
#include "cli/statistics.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/trace_text.h"

/* A window's record with what follows it. */
struct told {
    struct oriel_window_record *record;
    const struct oriel_toward *toward;
    const int32_t *ranks;
};

/* --- one window --- */

static void *zeroes(size_t count, size_t each_bytes)
{
    void *bytes = oriel_alloc((count + 1) * each_bytes);
    memset(bytes, 0, (count + 1) * each_bytes);
    return bytes;
}

/* Where a window stands in the job's array: a node of its tree. */
struct place {
    uint64_t id;
    int32_t n;
    size_t at;
};

static int compare_places(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    return a->id != b->id ? (a->id < b->id ? -1 : 1) : (a->n > b->n) - (a->n < b->n);
}

/* The crowd (shared_by) of all processes is one. */
static struct oriel_window_sum *window_of(struct oriel_job_sum *job, const struct told *told)
{
    const struct oriel_window_record *record = told->record;
    struct place *place = oriel_alloc(sizeof *place);
    *place = (struct place){record->shared_by != 0 ? 0 : record->window_id, record->n,
                            job->windows_count};
    struct place **found = oriel_needed(tsearch(place, &job->places, compare_places));
    if (*found != place) {
        free(place);
        return &job->windows[(*found)->at];
    }
    job->windows =
        oriel_needed(realloc(job->windows, (job->windows_count + 1) * sizeof *job->windows));
    struct oriel_window_sum *window = &job->windows[job->windows_count++];
    *window = (struct oriel_window_sum){.id = record->window_id,
                                        .name = "",
                                        .site = "",
                                        .flavour = record->flavour,
                                        .n = record->n};
    window->members = zeroes((size_t)record->n, sizeof *window->members);
    window->row = zeroes((size_t)record->n, sizeof *window->row);
    for (int32_t i = 0; i < record->n; i++) {
        window->members[i].world_rank = told->ranks[i];
        window->members[i].reason = "";
    }
    return window;
}

static void keep_pair(struct oriel_window_sum *window, const struct oriel_pair *pair)
{
    struct oriel_pair *pairs = window->pairs;
    size_t at = ORIEL_PAIRS_TOLD;
    while (at > 0 &&
           (pairs[at - 1].bytes < pair->bytes ||
            (pairs[at - 1].bytes == pair->bytes && pairs[at - 1].operations < pair->operations)))
        at--;
    if (at == ORIEL_PAIRS_TOLD)
        return;
    memmove(&pairs[at + 1], &pairs[at], (ORIEL_PAIRS_TOLD - 1 - at) * sizeof *pairs);
    pairs[at] = *pair;
}

static void add_toward(struct oriel_window_sum *window, const struct told *told)
{
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_toward *toward = &told->toward[i];
        window->row[i].count += toward->operations;
        window->row[i].bytes += toward->bytes;
        for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++) {
            window->members[i].caused_ns[cause] += toward->caused_ns[cause];
            window->causes_ns[cause] += toward->caused_ns[cause];
        }
    }
}

/* All records of a rank, which are its threads', are there. */
static void end_row(struct oriel_window_sum *window, int32_t world_rank)
{
    for (int32_t i = 0; i < window->n; i++) {
        struct oriel_pair pair = {world_rank, window->members[i].world_rank, window->row[i].count,
                                  window->row[i].bytes};
        if (pair.operations > 0)
            keep_pair(window, &pair);
        window->row[i] = (struct oriel_sum){0, 0};
    }
}

static void add_calls(struct oriel_window_sum *window, const struct oriel_window_record *record,
                      int32_t world_rank)
{
    for (int call = 0; call < ORIEL_COUNTED_CALLS; call++) {
        const struct oriel_timed *timed = &record->calls[call];
        struct oriel_time_sum *sum = &window->calls[call];
        sum->count += timed->count;
        sum->time_ns += timed->time_ns;
        sum->waiting_ns += timed->waiting_ns;
        sum->waited += timed->waited;
        if (timed->longest_ns > sum->longest_ns) {
            sum->longest_ns = timed->longest_ns;
            sum->longest_rank = world_rank;
        }
    }
}

static void add_sums(struct oriel_sum *sums, const struct oriel_counted *counted, int count)
{
    for (int i = 0; i < count; i++) {
        sums[i].count += counted[i].count;
        sums[i].bytes += counted[i].bytes;
    }
}

/* The program's texts go to terminals. */
static void add_window(struct oriel_job_sum *job, const struct told *told, int32_t world_rank)
{
    struct oriel_window_record *record = told->record;
    oriel_trace_text_clean(record->name, sizeof record->name);
    oriel_trace_text_clean(record->site, sizeof record->site);
    oriel_trace_text_clean(record->reason, sizeof record->reason);
    struct oriel_window_sum *window = window_of(job, told);
    window->told += record->thread == 0;
    window->freed |= record->state == 2;
    window->shared_by =
        record->shared_by > window->shared_by ? record->shared_by : window->shared_by;
    if (window->name[0] == '\0')
        window->name = record->name;
    if (window->site[0] == '\0' || record->has_line)
        window->site = record->site;
    add_sums(window->operations, record->operations, ORIEL_COUNTED_OPERATIONS);
    add_sums(window->paths, record->paths, ORIEL_COUNTED_PATHS);
    add_calls(window, record, world_rank);
    if (record->n > 0)
        add_toward(window, told);
    if (record->n == 0 || record->thread > 0)
        return;
    struct oriel_member_told *member = &window->members[record->rank];
    member->has_told = true;
    member->path = record->own_path < ORIEL_COUNTED_PATHS ? record->own_path : ORIEL_PATH_host;
    member->size_bytes = record->size_bytes;
    member->reason = record->reason;
}

/* --- all --- */

/* The next window of a part; false when it is not all there. */
static bool next_window(char **at, const char *end, struct told *out)
{
    if ((size_t)(end - *at) < sizeof(struct oriel_window_record))
        return false;
    out->record = (struct oriel_window_record *)*at;
    int32_t n = out->record->n;
    if (n < 0 || (size_t)n > (size_t)(end - *at) / sizeof(struct oriel_toward) ||
        (size_t)(end - *at) < oriel_gathered_window_bytes(n) ||
        (n > 0 && (out->record->rank < 0 || out->record->rank >= n)))
        return false;
    out->toward = (const struct oriel_toward *)(out->record + 1);
    out->ranks = (const int32_t *)(out->toward + n);
    *at += oriel_gathered_window_bytes(n);
    return true;
}

static bool add_part(struct oriel_job_sum *job, char **at, const char *end)
{
    const struct oriel_gathered *part = (const struct oriel_gathered *)*at;
    if ((size_t)(end - *at) < sizeof *part || part->magic != ORIEL_GATHERED_MAGIC ||
        part->len_bytes > (size_t)(end - *at) - sizeof *part || part->world_rank < 0 ||
        part->world_rank >= job->head->ranks)
        return false;
    job->has_told[part->world_rank] = part->is_early ? ORIEL_TOLD_EARLY : ORIEL_TOLD_ALL;
    *at += sizeof *part;
    const char *part_end = *at + part->len_bytes;
    for (uint32_t i = 0; i < part->windows; i++) {
        struct told told;
        if (!next_window(at, part_end, &told))
            return false;
        add_window(job, &told, part->world_rank);
    }
    for (size_t i = 0; i < job->windows_count; i++)
        end_row(&job->windows[i], part->world_rank);
    return *at == part_end;
}

bool oriel_statistics_add(const void *request, size_t len_bytes, struct oriel_job_sum *out)
{
    const struct oriel_statistics_head *head = request;
    char *at = (char *)(uintptr_t)request + sizeof *head;
    const char *end = (const char *)request + len_bytes;
    if (len_bytes < sizeof *head || head->magic != ORIEL_GATHERED_MAGIC || head->ranks < 0)
        return false;
    *out = (struct oriel_job_sum){.head = head,
                                  .has_told = zeroes((size_t)head->ranks, sizeof *out->has_told)};
    bool is_whole = true;
    for (uint32_t i = 0; i < head->parts && is_whole; i++)
        is_whole = add_part(out, &at, end);
    if (!is_whole)
        oriel_statistics_free(out);
    return is_whole;
}

void oriel_statistics_free(struct oriel_job_sum *job)
{
    for (size_t i = 0; i < job->windows_count; i++) {
        free(job->windows[i].members);
        free(job->windows[i].row);
    }
    tdestroy(job->places, free);
    free(job->windows);
    free(job->has_told);
}

char *oriel_statistics_write(const void *request, size_t len_bytes)
{
    struct oriel_job_sum job;
    char *text = NULL;
    size_t text_bytes = 0;
    if (!oriel_statistics_add(request, len_bytes, &job))
        return oriel_format("oriel: the statistics are damaged\n");
    FILE *out = oriel_needed(open_memstream(&text, &text_bytes));
    char *trouble = oriel_format("%s", "");
    if (job.head->file[0] != '\0') {
        free(trouble);
        trouble = oriel_statistics_dump(&job, job.head->file);
    }
    if (trouble[0] != '\0')
        fprintf(out, "oriel: ORIEL_STATS: %s cannot be written: %s\n", job.head->file, trouble);
    if (job.head->file[0] == '\0' || trouble[0] != '\0')
        oriel_statistics_print(&job, out);
    free(trouble);
    fclose(out);
    oriel_statistics_free(&job);
    return text;
}
