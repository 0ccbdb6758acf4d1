/* Writes the events in the JSON format of Chrome's trace viewer, which Perfetto opens: a process
 * for each rank, a track for each thread, a slice for each call and, at its end, one for its
 * waiting. The output is streamed, with bounded memory.
 *
 * Arrows connect ranks. An arrow needs a slice at both ends, and the other rank may be in no call.
 * So each rank has one more track, with a mark of a nanosecond for each effect of another rank: an
 * operation at its end, to which its arrow leads; and the end of another rank's wait for this one,
 * from which the arrow leads to the waiting call. Operations of a rank on itself have none.
 *
 * Pauses have a track of their own: they overlap regions without nesting.
 *
 * Counters show each rank's bytes and operations per second, in bins of equal time. The bytes of an
 * operation are spread evenly over its time.
 *
 * Perfetto treats process and thread 0 as the idle task, and thread numbers as global. Rank r is
 * process r + 1, and its first thread has the same number, as on Linux. */
#include "cli/report/report.h"

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/json.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 256,           /* the number of the track of marks */
    THREADS_APART = 1 << 24, /* above any rank */
    BINS = 512
};

struct rates {
    int64_t bin_ns;
    double bytes[BINS], operations[BINS];
    bool any; /* operations */
};

struct writing {
    const struct oriel_traces *traces;
    FILE *out;
    char **windows; /* window names as JSON */
    char **places;  /* call sites as JSON */
    /* of the rank that is being written */
    bool seen[THREADS];
    struct rates rates;
    uint32_t rank;
    uint64_t arrows;
};

/* Returns a JSON string with its quotes, to be freed. */
static char *json_quoted(const char *text)
{
    json_t *value = oriel_json_text(text, strlen(text));
    char *out = oriel_alloc_checked(json_dumps(value, JSON_ENCODE_ANY));
    json_decref(value);
    return out;
}

static char *window_text(const struct oriel_traces *traces, size_t index)
{
    const struct oriel_traced_window *window = &traces->windows[index];
    char *plain =
        window->name[0] != '\0'
            ? oriel_format("%s", window->name)
            : oriel_format("%s %zu", oriel_flavour_name(window->flavour, "window"), index + 1);
    char *out = json_quoted(plain);
    free(plain);
    return out;
}

static char *place_text(const struct oriel_traces *traces, size_t index)
{
    char plain[ORIEL_CODE_ADDRESS_TEXT];
    oriel_code_address_text(&traces->sites.places[index], plain);
    return json_quoted(plain);
}

static int process_of(const struct writing *writing, uint32_t rank)
{
    return writing->traces->ranks[rank].world_rank + 1;
}

static int64_t marks_track(int process)
{
    return process + (int64_t)THREADS * THREADS_APART;
}

static int64_t pauses_track(int process)
{
    return process + (int64_t)(THREADS + 1) * THREADS_APART;
}

/* Writes a metadata event up to its arguments. */
static void write_metadata(const struct writing *writing, const char *name, int process,
                           int64_t track)
{
    fprintf(writing->out, ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%" PRId64, name,
            process, track);
}

static void write_rank(const struct writing *writing, uint32_t rank)
{
    const struct oriel_traced_rank *of = &writing->traces->ranks[rank];
    int process = process_of(writing, rank);
    char *plain = oriel_format("rank %d (%s)", (int)of->world_rank, of->header.machine_name);
    char *name = json_quoted(plain);
    write_metadata(writing, "process_name", process, process);
    fprintf(writing->out, ",\"args\":{\"name\":%s}}", name);
    write_metadata(writing, "process_sort_index", process, process);
    fprintf(writing->out, ",\"args\":{\"sort_index\":%d}}", (int)of->world_rank);
    write_metadata(writing, "thread_name", process, marks_track(process));
    fputs(",\"args\":{\"name\":\"by other ranks\"}}", writing->out);
    if (of->paused_ns > 0) {
        write_metadata(writing, "thread_name", process, pauses_track(process));
        fputs(",\"args\":{\"name\":\"pauses\"}}", writing->out);
    }
    free(plain);
    free(name);
}

/* Writes microseconds. */
static void write_time(FILE *out, const char *key, int64_t ns)
{
    fprintf(out, ",\"%s\":%" PRId64 ".%03d", key, ns / 1000, (int)(ns % 1000));
}

/* --- counters --- */

static void rates_add(struct rates *rates, const struct oriel_trace_record *traced)
{
    int64_t begin_ns = traced->begin_ns > 0 ? traced->begin_ns : 0;
    int64_t end_ns = traced->end_ns > begin_ns ? traced->end_ns : begin_ns + 1;
    double of_bytes =
        (double)traced->weight * (double)traced->event->bytes / (double)(end_ns - begin_ns);
    for (int64_t at = begin_ns; at < end_ns && at / rates->bin_ns < BINS;) {
        int64_t next = (at / rates->bin_ns + 1) * rates->bin_ns;
        next = next < end_ns ? next : end_ns;
        rates->bytes[at / rates->bin_ns] += of_bytes * (double)(next - at);
        at = next;
    }
    if (begin_ns / rates->bin_ns < BINS)
        rates->operations[begin_ns / rates->bin_ns] += traced->weight;
    rates->any = true;
}

/* Writes the values that differ from the ones before. */
static void write_counter(const struct writing *writing, const char *name, const double *amounts)
{
    const struct rates *rates = &writing->rates;
    double before = 0;
    for (int bin = 0; bin <= BINS; bin++) {
        double amount = bin < BINS ? amounts[bin] : 0;
        if (amount == before)
            continue;
        fprintf(writing->out, ",\n{\"ph\":\"C\",\"pid\":%d,\"name\":\"%s\"",
                process_of(writing, writing->rank), name);
        write_time(writing->out, "ts", bin * rates->bin_ns);
        fprintf(writing->out, ",\"args\":{\"%s\":%.0f}}", name,
                amount * 1e9 / (double)rates->bin_ns);
        before = amount;
    }
}

static void rank_finish(struct writing *writing)
{
    if (writing->rates.any) {
        write_counter(writing, "bytes/s", writing->rates.bytes);
        write_counter(writing, "operations/s", writing->rates.operations);
    }
    memset(writing->seen, 0, sizeof writing->seen);
    writing->rates = (struct rates){.bin_ns = writing->traces->last_ns / BINS + 1};
}

/* --- slices --- */

static int64_t track_of(struct writing *writing, const struct oriel_trace_record *traced)
{
    uint8_t thread = traced->event->thread;
    int process = process_of(writing, traced->rank);
    int64_t track = process + (int64_t)thread * THREADS_APART;
    if (traced->rank != writing->rank) {
        rank_finish(writing);
        writing->rank = traced->rank;
    }
    if (!writing->seen[thread]) {
        write_metadata(writing, "thread_name", process, track);
        fprintf(writing->out, ",\"args\":{\"name\":\"thread %d\"}}", (int)thread);
        writing->seen[thread] = true;
    }
    return track;
}

/* Writes a slice from begin_ns to the event's end, up to the remaining arguments. */
static void write_slice(struct writing *writing, const struct oriel_trace_record *traced,
                        int64_t track, int64_t begin_ns, const char *category, const char *name)
{
    fprintf(writing->out, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%" PRId64,
            process_of(writing, traced->rank), track);
    write_time(writing->out, "ts", begin_ns);
    write_time(writing->out, "dur", traced->end_ns - begin_ns);
    fprintf(writing->out, ",\"cat\":\"%s\",\"name\":\"%s\",\"args\":{\"window\":%s", category, name,
            writing->windows[traced->window]);
    if (traced->place != ORIEL_PLACE_OTHERS)
        fprintf(writing->out, ",\"site\":%s", writing->places[traced->place]);
}

static void write_rank_argument(const struct writing *writing,
                                const struct oriel_trace_record *traced, const char *key,
                                int32_t win_rank)
{
    int32_t world_rank = oriel_world_rank(writing->traces, traced->window, win_rank);
    if (world_rank >= 0)
        fprintf(writing->out, ",\"%s\":%d", key, (int)world_rank);
}

/* --- arrows --- */

static int ranks_compare(const void *world_rank, const void *rank)
{
    int32_t a = *(const int32_t *)world_rank;
    int32_t b = ((const struct oriel_traced_rank *)rank)->world_rank;
    return (a > b) - (a < b);
}

/* The process of another rank that was traced; 0: none. */
static int other_process(const struct writing *writing, const struct oriel_trace_record *traced,
                         int32_t win_rank)
{
    const struct oriel_traces *traces = writing->traces;
    int32_t world_rank = oriel_world_rank(traces, traced->window, win_rank);
    if (world_rank < 0 || world_rank == traces->ranks[traced->rank].world_rank ||
        bsearch(&world_rank, traces->ranks, traces->ranks_count, sizeof traces->ranks[0],
                ranks_compare) == NULL)
        return 0;
    return world_rank + 1;
}

/* Writes a mark on another rank's track. */
static void write_mark(const struct writing *writing, const struct oriel_trace_record *traced,
                       int process, int64_t at_ns, const char *name)
{
    fprintf(writing->out, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%" PRId64, process,
            marks_track(process));
    write_time(writing->out, "ts", at_ns);
    write_time(writing->out, "dur", 1);
    fprintf(writing->out, ",\"cat\":\"mark\",\"name\":\"%s\",\"args\":{\"window\":%s,\"rank\":%d}}",
            name, writing->windows[traced->window],
            (int)writing->traces->ranks[traced->rank].world_rank);
}

/* Writes one end of the last arrow: phase "s" where it starts, "f" where it leads to. */
static void write_arrow(const struct writing *writing, const char *phase, int process,
                        int64_t track, int64_t at_ns)
{
    fprintf(writing->out,
            ",\n{\"ph\":\"%s\",\"bp\":\"e\",\"id\":%" PRIu64
            ",\"cat\":\"arrow\",\"name\":\"arrow\",\"pid\":%d,\"tid\":%" PRId64,
            phase, writing->arrows, process, track);
    write_time(writing->out, "ts", at_ns);
    fputs("}", writing->out);
}

static void write_operation_arrow(struct writing *writing, const struct oriel_trace_record *traced,
                                  int64_t track)
{
    int target = other_process(writing, traced, traced->event->target);
    if (target == 0)
        return;
    writing->arrows++;
    write_arrow(writing, "s", process_of(writing, traced->rank), track, traced->begin_ns);
    write_mark(writing, traced, target, traced->end_ns, oriel_kind_name(traced->event->kind));
    write_arrow(writing, "f", target, marks_track(target), traced->end_ns);
}

/* The arrow leads to the last nanosecond of the wait: at its end, the slice is no longer open. */
static void write_wait_arrow(struct writing *writing, const struct oriel_trace_record *traced,
                             int64_t track, int64_t begin_ns, const char *name)
{
    int cause = other_process(writing, traced, traced->event->cause_rank);
    int64_t last_ns = traced->end_ns > begin_ns ? traced->end_ns - 1 : begin_ns;
    if (cause == 0)
        return;
    writing->arrows++;
    write_mark(writing, traced, cause, last_ns, name);
    write_arrow(writing, "s", cause, marks_track(cause), last_ns);
    write_arrow(writing, "f", process_of(writing, traced->rank), track, last_ns);
}

/* --- events --- */

static void write_wait(struct writing *writing, const struct oriel_trace_record *traced,
                       int64_t track)
{
    const struct oriel_trace_event *event = traced->event;
    int64_t begin_ns = traced->end_ns - (int64_t)event->waiting_ns;
    begin_ns = begin_ns > traced->begin_ns ? begin_ns : traced->begin_ns;
    const char *name = oriel_counted_causes[event->cause].name;
    write_slice(writing, traced, track, begin_ns, "wait", name);
    write_rank_argument(writing, traced, "rank", event->cause_rank);
    fputs("}}", writing->out);
    write_wait_arrow(writing, traced, track, begin_ns, name);
}

static bool write_event(const struct oriel_trace_record *traced, void *context)
{
    struct writing *writing = context;
    const struct oriel_trace_event *event = traced->event;
    bool is_operation = event->kind < ORIEL_TRACE_CALL;
    int64_t track = track_of(writing, traced);
    write_slice(writing, traced, track, traced->begin_ns, is_operation ? "operation" : "call",
                oriel_kind_name(event->kind));
    write_rank_argument(writing, traced, "target", event->target);
    if (is_operation)
        fprintf(writing->out, ",\"bytes\":%" PRIu64 ",\"path\":\"%s\"", event->bytes,
                oriel_counted_paths[event->path].name);
    fputs("}}", writing->out);
    if (is_operation) {
        write_operation_arrow(writing, traced, track);
        rates_add(&writing->rates, traced);
    }
    if (event->waiting_ns != 0)
        write_wait(writing, traced, track);
    return !ferror(writing->out);
}

/* A region is on its thread's track. A pause is of all threads. */
static bool write_program_mark(const struct oriel_trace_mark_record *record, void *context)
{
    const struct writing *writing = context;
    const struct oriel_trace_mark *mark = record->mark;
    bool is_region = mark->kind == ORIEL_MARK_REGION;
    int process = process_of(writing, record->rank);
    int64_t track =
        is_region ? process + (int64_t)mark->thread * THREADS_APART : pauses_track(process);
    char *name = json_quoted(is_region ? oriel_region_title(record->name) : "paused");
    fprintf(writing->out, ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%" PRId64, process, track);
    write_time(writing->out, "ts", record->begin_ns);
    write_time(writing->out, "dur", record->end_ns - record->begin_ns);
    fprintf(writing->out, ",\"cat\":\"%s\",\"name\":%s,\"args\":{", is_region ? "region" : "pause",
            name);
    if (is_region)
        fprintf(writing->out,
                "\"operations\":%" PRIu32 ",\"bytes\":%" PRIu64 ",\"waiting_ns\":%" PRIu64,
                mark->operations, mark->bytes, mark->waiting_ns);
    fputs("}}", writing->out);
    free(name);
    return !ferror(writing->out);
}

static void write_all(struct writing *writing)
{
    const struct oriel_traces *traces = writing->traces;
    char *program = json_quoted(traces->ranks[0].header.program);
    int process = process_of(writing, 0);
    fprintf(writing->out, "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n");
    fprintf(
        writing->out,
        "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%d,\"tid\":%d,\"args\":{\"labels\":%s}}",
        process, process, program);
    free(program);
    writing->windows = oriel_alloc((traces->windows_count + 1) * sizeof *writing->windows);
    for (size_t i = 0; i < traces->windows_count; i++)
        writing->windows[i] = window_text(traces, i);
    writing->places = oriel_alloc(traces->sites.places_count * sizeof *writing->places);
    for (size_t i = 0; i < traces->sites.places_count; i++)
        writing->places[i] = place_text(traces, i);
    for (uint32_t i = 0; i < traces->ranks_count; i++)
        write_rank(writing, i);
    oriel_traces_marks_each(traces, write_program_mark, writing);
    oriel_traces_each(traces, write_event, writing);
    rank_finish(writing);
    fputs("\n]}\n", writing->out);
    for (size_t i = 0; i < traces->windows_count; i++)
        free(writing->windows[i]);
    for (size_t i = 0; i < traces->sites.places_count; i++)
        free(writing->places[i]);
    free(writing->windows);
    free(writing->places);
}

bool oriel_report_perfetto(const struct oriel_traces *traces, const char *path)
{
    static struct writing writing;
    writing = (struct writing){.traces = traces, .out = fopen(path, "we"), .rank = UINT32_MAX};
    if (writing.out == NULL) {
        fprintf(stderr, "oriel: %s: %s\n", path, strerror(errno));
        return false;
    }
    write_all(&writing);
    bool whole = !ferror(writing.out);
    if (fclose(writing.out) == 0 && whole)
        return true;
    fprintf(stderr, "oriel: %s: %s\n", path, strerror(errno));
    oriel_file_discard(path);
    return false;
}
