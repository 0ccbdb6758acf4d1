/* Merges the files of a folder. The run is the one of most files. Files are read two or more
 * times, and never kept in memory. */
#include "cli/report/trace_merge.h"

#include "base/checked_open.h"
#include "base/hash_table.h"
#include "cli/cli.h"
#include "cli/figures.h"
#include "cli/report/trace_clock.h"
#include "cli/report/trace_reader.h"
#include "observe/stats/sampled_time.h"
#include "observe/trace/trace_filter.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMPLAINTS_SHOWN = 10 };

static const int64_t most_ns = INT64_MAX >> 2;

struct file {
    char *path;
    int32_t named_rank;
    struct oriel_trace_parsed parsed;
    struct oriel_trace_alignment *alignment;
    /* From the file's window number to the run's index; UINT32_MAX when left out. */
    uint32_t *windows;
    uint32_t *places; /* from the file's number of a call site to the run's index */
};

struct run {
    struct oriel_traces traces;
    struct file *files; /* same order as traces.ranks */
    size_t files_count;
    struct oriel_trace_alignment *alignments;
    int64_t base_ns;
    FILE *complaints;
    unsigned complaints_count;
};

/* Prints one line; a folder of a thousand bad files has no more than the first COMPLAINTS_SHOWN. */
static __attribute__((format(printf, 2, 3))) void run_complain(struct run *run, const char *format,
                                                               ...)
{
    va_list args;
    if (run->complaints_count++ >= COMPLAINTS_SHOWN)
        return;
    fputs("oriel: ", run->complaints);
    va_start(args, format);
    vfprintf(run->complaints, format, args);
    va_end(args);
    fputc('\n', run->complaints);
}

static void complaints_finish(const struct run *run, const char *folder)
{
    if (run->complaints_count > COMPLAINTS_SHOWN)
        fprintf(run->complaints, "oriel: %s: and %u more problem%s\n", folder,
                run->complaints_count - COMPLAINTS_SHOWN,
                oriel_plural(run->complaints_count - COMPLAINTS_SHOWN));
}

/* --- files --- */

static void file_free(struct file *file)
{
    oriel_trace_parsed_free(&file->parsed);
    free(file->windows);
    free(file->places);
    free(file->path);
}

static bool source_open(const char *path, struct oriel_trace_source *out, const char **problem)
{
    struct stat info;
    int seen = oriel_checked_path_open(AT_FDCWD, path, &info);
    out->fd = seen < 0 ? -1 : oriel_checked_reopen(seen, O_RDONLY | O_NONBLOCK);
    if (out->fd < 0)
        *problem = errno == 0 ? "is not a regular file" : strerror(errno);
    return out->fd >= 0;
}

/* "rank-N.oriel", as the library writes N; otherwise -1. */
static int32_t rank_from_file_name(const char *name)
{
    char again[64];
    long rank = strncmp(name, "rank-", 5) == 0 ? strtol(name + 5, NULL, 10) : -1;
    snprintf(again, sizeof again, "rank-%ld.oriel", rank);
    return rank >= 0 && rank < INT32_MAX && strcmp(name, again) == 0 ? (int32_t)rank : -1;
}

static void trace_file_read(struct run *run, char *path, int32_t named_rank)
{
    struct oriel_trace_source source;
    struct file file = {.path = path, .named_rank = named_rank};
    const char *problem = NULL;
    if (!source_open(path, &source, &problem)) {
        run_complain(run, "%s: %s", path, problem);
        free(path);
        return;
    }
    bool readable = oriel_trace_parse(&source, &file.parsed);
    close(source.fd);
    if (file.parsed.problem[0] != '\0')
        run_complain(run, "%s %s", path, file.parsed.problem);
    if (readable && file.parsed.header.world_rank != named_rank) {
        run_complain(run, "%s is rank %d's according to its header, and is ignored", path,
                     (int)file.parsed.header.world_rank);
        readable = false;
    }
    if (!readable) {
        file_free(&file);
        return;
    }
    struct file *more =
        oriel_alloc_checked(reallocarray(run->files, run->files_count + 1, sizeof *more));
    run->files = more;
    run->files[run->files_count++] = file;
}

static int compare_ranks(const void *a, const void *b)
{
    const int32_t one = *(const int32_t *)a;
    const int32_t other = *(const int32_t *)b;
    return (one > other) - (one < other);
}

static bool trace_folder_read(struct run *run, const char *folder)
{
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL) {
        run_complain(run, "%s: %s", folder, strerror(errno));
        return false;
    }
    int32_t *ranks = NULL;
    size_t count = 0;
    for (const struct dirent *entry; (entry = readdir(open_folder)) != NULL;) {
        int32_t rank = rank_from_file_name(entry->d_name);
        if (rank < 0)
            continue;
        ranks = oriel_alloc_checked(reallocarray(ranks, count + 1, sizeof *ranks));
        ranks[count++] = rank;
    }
    closedir(open_folder);
    if (count == 0)
        run_complain(run, "%s: contains no traces of oriel run --trace (rank-0.oriel and so on)",
                     folder);
    else
        qsort(ranks, count, sizeof *ranks, compare_ranks);
    for (size_t i = 0; i < count; i++)
        trace_file_read(run, oriel_format("%s/rank-%d.oriel", folder, (int)ranks[i]), ranks[i]);
    free(ranks);
    return run->files_count > 0;
}

/* --- one run --- */

static bool same_job(const struct file *one, const struct file *other)
{
    return memcmp(one->parsed.header.job, other->parsed.header.job,
                  sizeof one->parsed.header.job) == 0;
}

/* A file of the run with the most files, or the first file when there is no majority. The first
 * pass finds the only possible majority candidate. */
static const struct file *majority_file_find(const struct run *run)
{
    const struct file *candidate = &run->files[0];
    size_t lead = 0;
    size_t count = 0;
    for (size_t i = 0; i < run->files_count; i++) {
        if (lead == 0)
            candidate = &run->files[i];
        lead = same_job(candidate, &run->files[i]) ? lead + 1 : lead - 1;
    }
    for (size_t i = 0; i < run->files_count; i++)
        count += same_job(candidate, &run->files[i]);
    return 2 * count > run->files_count ? candidate : &run->files[0];
}

static void other_runs_drop(struct run *run)
{
    const struct file most = *majority_file_find(run);
    size_t kept = 0;
    for (size_t i = 0; i < run->files_count; i++) {
        if (same_job(&most, &run->files[i])) {
            run->files[kept++] = run->files[i];
            continue;
        }
        run_complain(run, "%s is from another run than most files here, and is ignored",
                     run->files[i].path);
        file_free(&run->files[i]);
    }
    run->files_count = kept;
}

static void missing_ranks_report(const struct run *run, const char *folder)
{
    int32_t world_size = run->files[0].parsed.header.world_size;
    int32_t first = 0;
    while (first < (int32_t)run->files_count && run->files[first].named_rank == first)
        first++;
    if ((int32_t)run->files_count < world_size)
        fprintf(run->complaints,
                "oriel: %s: %d of %d ranks have no readable trace here, the first is rank %d\n",
                folder, (int)(world_size - (int32_t)run->files_count), (int)world_size, (int)first);
}

/* --- times --- */

/* One pass for each node; there are few. */
static void clocks_align(struct run *run)
{
    size_t used = 0;
    run->alignments = oriel_alloc(run->files_count * sizeof *run->alignments);
    for (size_t i = 0; i < run->files_count; i++) {
        const uint64_t *machine = run->files[i].parsed.header.node;
        if (run->files[i].alignment != NULL)
            continue;
        struct oriel_trace_alignment *alignment = &run->alignments[used++];
        for (size_t j = i; j < run->files_count; j++) {
            if (memcmp(machine, run->files[j].parsed.header.node,
                       sizeof run->files[j].parsed.header.node) != 0)
                continue;
            oriel_trace_alignment_add(alignment, &run->files[j].parsed);
            run->files[j].alignment = alignment;
        }
    }
}

/* Bounds forged dates and clocks, so that differences do not overflow. */
static int64_t bounded_ns(int64_t ns)
{
    return ns < -most_ns ? -most_ns : ns > most_ns ? most_ns : ns;
}

/* Without compared clocks, the system dates determine the offset. */
static int64_t aligned_ns(const struct run *run, const struct file *file, uint64_t own_ns)
{
    const struct oriel_trace_header *own = &file->parsed.header;
    const struct oriel_trace_header *first = &run->files[0].parsed.header;
    if (file->alignment->is_known)
        return bounded_ns(oriel_trace_aligned_ns(file->alignment, own_ns));
    int64_t begin_ns = bounded_ns(oriel_trace_aligned_ns(run->files[0].alignment, first->begin_ns));
    int64_t later_ns = bounded_ns((int64_t)(own->begin_real_ns - first->begin_real_ns));
    return bounded_ns(bounded_ns(begin_ns + later_ns) +
                      bounded_ns((int64_t)(own_ns - own->begin_ns)));
}

static void start_time_find(struct run *run)
{
    run->base_ns = most_ns;
    for (size_t i = 0; i < run->files_count; i++) {
        int64_t begin_ns = aligned_ns(run, &run->files[i], run->files[i].parsed.begin_ns);
        if (begin_ns < run->base_ns)
            run->base_ns = begin_ns;
    }
}

/* A process that made no calls has no events, and is counted. */
static bool is_counted(const struct file *file, const struct oriel_trace_filter *filter)
{
    const struct oriel_trace_parsed *parsed = &file->parsed;
    bool is_whole = parsed->ended && parsed->dropped == 0;
    return oriel_trace_filter_has_rank(filter, file->named_rank) &&
           (is_whole || parsed->events + parsed->marks > 0);
}

static void ranks_fill(struct run *run)
{
    struct oriel_trace_filter filter;
    char problem[ORIEL_TRACE_FILTER_PROBLEM];
    struct oriel_traces *traces = &run->traces;
    traces->ranks_count = run->files_count;
    traces->ranks = oriel_alloc(run->files_count * sizeof *traces->ranks);
    traces->filter = run->files[0].parsed.selection.filter;
    traces->sample = run->files[0].parsed.selection.sample;
    memcpy(traces->host_version, run->files[0].parsed.host.version, sizeof traces->host_version);
    if (!oriel_trace_filter_read(traces->filter, &filter, problem)) /* it is cut off */
        (void)oriel_trace_filter_read("", &filter, problem);
    for (size_t i = 0; i < run->files_count; i++) {
        const struct file *file = &run->files[i];
        const struct oriel_trace_parsed *parsed = &file->parsed;
        struct oriel_traced_rank *rank = &traces->ranks[i];
        *rank = (struct oriel_traced_rank){.world_rank = file->named_rank,
                                           .header = parsed->header,
                                           .ended = parsed->ended,
                                           .is_counted = is_counted(file, &filter),
                                           .events = parsed->events,
                                           .dropped = parsed->dropped,
                                           .paused_ns = parsed->paused_ns,
                                           .error_ns = UINT64_MAX,
                                           .problem =
                                               parsed->problem[0] != '\0' ? parsed->problem : NULL};
        if (file->alignment->is_known)
            rank->error_ns = oriel_trace_alignment_error_ns(file->alignment, parsed->end_ns);
        traces->ranks_counted += rank->is_counted;
        int64_t last_ns = aligned_ns(run, file, parsed->end_ns) - run->base_ns;
        if (last_ns > traces->last_ns)
            traces->last_ns = last_ns;
    }
}

/* --- windows --- */

static void window_make(struct oriel_traced_window *window, const struct oriel_trace_window *head)
{
    size_t n = (size_t)head->n;
    *window = (struct oriel_traced_window){
        .window_id = head->window_id, .n = head->n, .flavour = head->flavour};
    window->disp_unit = head->disp_unit;
    window->world_ranks = oriel_alloc(n * sizeof *window->world_ranks);
    window->sizes_bytes = oriel_alloc(n * sizeof *window->sizes_bytes);
    window->paths = oriel_alloc(n);
    window->reasons = oriel_alloc(n * sizeof *window->reasons);
    memset(window->world_ranks, 0xff, n * sizeof *window->world_ranks);
    memset(window->paths, ORIEL_TRACED_PATH_UNKNOWN, n);
}

/* The run's index of a call site; 0 for one that the file does not describe. */
static uint32_t place_index(const struct file *file, uint16_t number)
{
    return number < file->parsed.places_count ? file->places[number] : ORIEL_PLACE_OTHERS;
}

/* A line is one place, however many addresses the compiler made of it. */
static void places_merge(struct run *run)
{
    oriel_site_sums_open(&run->traces.sites);
    for (size_t i = 0; i < run->files_count; i++) {
        struct file *file = &run->files[i];
        file->places = oriel_alloc((file->parsed.places_count + 1) * sizeof *file->places);
        for (uint32_t number = 0; number < file->parsed.places_count; number++) {
            struct oriel_code_address *place = &file->parsed.places[number];
            if (place->file[0] != '\0') {
                place->offset = 0;
                memset(place->build_id, 0, sizeof place->build_id);
            }
            file->places[number] = oriel_site_sums_place(&run->traces.sites, place);
        }
    }
}

static void window_add(const struct run *run, struct oriel_traced_window *window,
                       const struct file *file, const struct oriel_trace_file_window *described)
{
    int32_t world_size = run->files[0].parsed.header.world_size;
    const struct oriel_trace_window *head = &described->head;
    for (uint32_t i = 0; i < described->ranks_count; i++)
        if (described->world_ranks[i] >= 0 && described->world_ranks[i] < world_size)
            window->world_ranks[i] = described->world_ranks[i];
    window->sizes_bytes[head->rank] = head->size_bytes;
    window->paths[head->rank] = head->own_path;
    window->is_freed |= head->is_freed != 0;
    memcpy(window->reasons[head->rank], head->reason, sizeof head->reason);
    if (window->name[0] == '\0')
        memcpy(window->name, head->name, sizeof head->name);
    const struct oriel_code_address *places = run->traces.sites.places;
    uint32_t place = place_index(file, head->site);
    bool has_line = places[window->place].file[0] != '\0';
    if (window->place == ORIEL_PLACE_OTHERS || (!has_line && places[place].file[0] != '\0')) {
        window->place = place;
        oriel_code_address_text(&places[place], window->site);
    }
}

static struct oriel_traced_window *window_append(struct oriel_traces *traces)
{
    struct oriel_traced_window *more =
        oriel_alloc_checked(reallocarray(traces->windows, traces->windows_count + 1, sizeof *more));
    traces->windows = more;
    return &traces->windows[traces->windows_count++];
}

/* When two files disagree about a window's number of ranks, the first file is used. Each rank's
 * file lists all ranks of its windows. These lists are released, or memory would grow with the
 * square of the number of ranks for as long as the traces are open. */
static void merge_windows(struct run *run)
{
    struct oriel_traces *traces = &run->traces;
    struct oriel_hash_table known = ORIEL_HASH_TABLE_INIT; /* from window id to index, plus 1 */
    for (size_t i = 0; i < run->files_count; i++) {
        struct file *file = &run->files[i];
        file->windows = oriel_alloc((file->parsed.windows_count + 1) * sizeof *file->windows);
        for (uint32_t number = 0; number < file->parsed.windows_count; number++) {
            struct oriel_trace_file_window *described = file->parsed.windows[number];
            file->windows[number] = UINT32_MAX;
            if (described == NULL)
                continue;
            uintptr_t index = (uintptr_t)oriel_hash_table_find(&known, described->head.window_id);
            if (index == 0) {
                window_make(window_append(traces), &described->head);
                index = traces->windows_count;
                if (!oriel_hash_table_set(&known, described->head.window_id, (void *)index))
                    oriel_die("out of memory");
            }
            struct oriel_traced_window *window = &traces->windows[index - 1];
            if (window->n != described->head.n) {
                run_complain(run,
                             "%s: window %" PRIu32
                             " has different ranks than in other files, and is ignored",
                             file->path, number);
                continue;
            }
            window_add(run, window, file, described);
            free(described->world_ranks);
            described->world_ranks = NULL;
            described->ranks_count = 0;
            file->windows[number] = (uint32_t)(index - 1);
        }
    }
    oriel_hash_table_close(&known);
}

/* --- interface --- */

bool oriel_traces_open(const char *folder, FILE *complaints, struct oriel_traces **out)
{
    struct run *run = oriel_alloc(sizeof *run);
    run->complaints = complaints;
    if (!trace_folder_read(run, folder)) {
        complaints_finish(run, folder);
        free(run);
        return false;
    }
    other_runs_drop(run);
    missing_ranks_report(run, folder);
    clocks_align(run);
    start_time_find(run);
    ranks_fill(run);
    places_merge(run);
    merge_windows(run);
    complaints_finish(run, folder);
    *out = &run->traces;
    return true;
}

struct visiting {
    const struct run *run;
    const struct file *file;
    struct oriel_trace_record event;
    struct oriel_trace_mark_record mark;
    bool (*visit)(const struct oriel_trace_record *event, void *context);
    bool (*visit_mark)(const struct oriel_trace_mark_record *mark, void *context);
    void *context;
};

static int64_t visited_ns(const struct visiting *visiting, uint64_t own_ns)
{
    return aligned_ns(visiting->run, visiting->file, own_ns) - visiting->run->base_ns;
}

static uint64_t represented_ns(const struct oriel_trace_event *event, uint32_t weight)
{
    return oriel_sampled_ns(event->duration_ns - event->waiting_ns, event->bytes, weight) +
           event->waiting_ns * weight;
}

static bool event_visit(const struct oriel_trace_event *event, void *context)
{
    struct visiting *visiting = context;
    if (visiting->visit == NULL)
        return true;
    visiting->event.window = visiting->file->windows[event->window];
    if (visiting->event.window == UINT32_MAX)
        return true;
    visiting->event.place = place_index(visiting->file, event->site);
    visiting->event.weight =
        event->kind < ORIEL_TRACE_CALL ? visiting->file->parsed.selection.sample : 1;
    visiting->event.time_ns = represented_ns(event, visiting->event.weight);
    visiting->event.begin_ns = visited_ns(visiting, event->begin_ns);
    visiting->event.end_ns = visited_ns(visiting, event->begin_ns + event->duration_ns);
    visiting->event.event = event;
    return visiting->visit(&visiting->event, visiting->context);
}

static bool mark_visit(const struct oriel_trace_mark *mark, void *context)
{
    struct visiting *visiting = context;
    if (visiting->visit_mark == NULL)
        return true;
    visiting->mark.name =
        mark->kind == ORIEL_MARK_REGION ? visiting->file->parsed.regions[mark->region] : "";
    visiting->mark.begin_ns = visited_ns(visiting, mark->begin_ns);
    visiting->mark.end_ns = visited_ns(visiting, mark->begin_ns + mark->duration_ns);
    visiting->mark.paused_ns =
        mark->kind == ORIEL_MARK_REGION
            ? oriel_trace_paused_ns(&visiting->file->parsed, mark->begin_ns, mark->duration_ns)
            : 0;
    visiting->mark.mark = mark;
    return visiting->visit_mark(&visiting->mark, visiting->context);
}

static void traces_visit(const struct oriel_traces *traces, struct visiting *visiting)
{
    const struct run *run = (const struct run *)traces;
    bool is_running = true;
    visiting->run = run;
    for (size_t i = 0; i < run->files_count && is_running; i++) {
        struct oriel_trace_source source;
        const char *problem;
        visiting->file = &run->files[i];
        visiting->event.rank = visiting->mark.rank = (uint32_t)i;
        if (!source_open(run->files[i].path, &source, &problem))
            continue; /* removed since the first pass */
        is_running = oriel_trace_events_visit(
            &source, &run->files[i].parsed,
            &(struct oriel_trace_visitor){event_visit, mark_visit, visiting});
        close(source.fd);
    }
}

void oriel_traces_each(const struct oriel_traces *traces,
                       bool (*visit)(const struct oriel_trace_record *event, void *context),
                       void *context)
{
    traces_visit(traces, &(struct visiting){.visit = visit, .context = context});
}

void oriel_traces_marks_each(const struct oriel_traces *traces,
                             bool (*visit)(const struct oriel_trace_mark_record *mark,
                                           void *context),
                             void *context)
{
    const struct run *run = (const struct run *)traces;
    uint64_t marks = 0;
    for (size_t i = 0; i < run->files_count; i++)
        marks += run->files[i].parsed.marks;
    if (marks > 0)
        traces_visit(traces, &(struct visiting){.visit_mark = visit, .context = context});
}

void oriel_traces_close(struct oriel_traces *traces)
{
    struct run *run = (struct run *)traces;
    for (size_t i = 0; i < traces->windows_count; i++) {
        free(traces->windows[i].world_ranks);
        free(traces->windows[i].sizes_bytes);
        free(traces->windows[i].paths);
        free(traces->windows[i].reasons);
    }
    for (size_t i = 0; i < run->files_count; i++)
        file_free(&run->files[i]);
    oriel_site_sums_close(&traces->sites);
    free(run->files);
    free(run->alignments);
    free(traces->windows);
    free(traces->ranks);
    free(run);
}
