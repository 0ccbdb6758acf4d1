/* Reads a file block by block, through a buffer of one block. The file is never mapped, so a file
 * that shrinks while it is read only looks shorter. Each pass checks each block. */
#include "cli/report/trace_reader.h"

#include "base/crc32.h"
#include "cli/cli.h"
#include "cli/figures.h"
#include "cli/trace_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENSIBLE_BITS = 61, WORLD_MOST = 1 << 24 };

struct walk {
    const struct oriel_trace_source *source;
    uint64_t position, end;
    bool only_events; /* the contents of other blocks are not read */
    struct oriel_trace_block block;
    unsigned char *payload; /* of ORIEL_BLOCK_BYTES_MOST */
};

/* Returns less than len_bytes only at the end of the source or after a read error. */
static size_t read_at(const struct oriel_trace_source *source, uint64_t position, void *out,
                      size_t len_bytes)
{
    size_t got = 0;
    if (source->fd < 0) {
        if (position < source->len_bytes)
            got = source->len_bytes - position < len_bytes ? (size_t)(source->len_bytes - position)
                                                           : len_bytes;
        if (got > 0)
            memcpy(out, source->bytes + position, got);
        return got;
    }
    while (got < len_bytes) {
        ssize_t more =
            pread(source->fd, (char *)out + got, len_bytes - got, (off_t)(position + got));
        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            break;
        got += (size_t)more;
    }
    return got;
}

/* Reads the next block and returns NULL; otherwise returns why there is none, "" at the end. */
static const char *next_block(struct walk *walk)
{
    size_t got = walk->position < walk->end
                     ? read_at(walk->source, walk->position, &walk->block, sizeof walk->block)
                     : 0;
    if (got == 0)
        return "";
    if (got < sizeof walk->block)
        return "ends within a block";
    if (walk->block.magic != ORIEL_BLOCK_MAGIC || walk->block.len_bytes > ORIEL_BLOCK_BYTES_MOST)
        return "is damaged";
    bool is_skipped = walk->only_events && walk->block.type != ORIEL_BLOCK_EVENTS;
    if (!is_skipped && read_at(walk->source, walk->position + sizeof walk->block, walk->payload,
                               walk->block.len_bytes) < walk->block.len_bytes)
        return "ends within a block";
    if (!is_skipped && oriel_crc32(0, walk->payload, walk->block.len_bytes) != walk->block.checksum)
        return "is damaged";
    walk->position += sizeof walk->block + walk->block.len_bytes;
    return NULL;
}

static bool parse_fail(struct oriel_trace_parsed *parsed, const char *problem)
{
    snprintf(parsed->problem, sizeof parsed->problem, "%s", problem);
    return false;
}

static bool parse_header(const struct oriel_trace_source *source, struct oriel_trace_parsed *out)
{
    struct oriel_trace_header *header = &out->header;
    size_t got = read_at(source, 0, header, sizeof *header);
    if (got < sizeof header->magic || header->magic != ORIEL_TRACE_MAGIC)
        return parse_fail(out, got == 0 ? "is empty" : "is not an Oriel trace");
    if (got >= offsetof(struct oriel_trace_header, header_bytes) &&
        (header->version < ORIEL_TRACE_VERSION_LEAST || header->version > ORIEL_TRACE_VERSION)) {
        snprintf(out->problem, sizeof out->problem,
                 "has version %" PRIu32 " of the format; this command reads versions %d to %d",
                 header->version, ORIEL_TRACE_VERSION_LEAST, ORIEL_TRACE_VERSION);
        return false;
    }
    if (got < sizeof *header)
        return parse_fail(out, "ends within its header");
    if (header->checksum != oriel_crc32(0, header, offsetof(struct oriel_trace_header, checksum)) ||
        header->header_bytes != sizeof *header ||
        header->event_bytes != sizeof(struct oriel_trace_event) || header->world_size < 1 ||
        header->world_size > WORLD_MOST || header->world_rank < 0 ||
        header->world_rank >= header->world_size || header->begin_ns >> SENSIBLE_BITS != 0)
        return parse_fail(out, "has a damaged header");
    oriel_trace_text_clean(header->machine_name, sizeof header->machine_name);
    oriel_trace_text_clean(header->host, sizeof header->host);
    oriel_trace_text_clean(header->oriel, sizeof header->oriel);
    oriel_trace_text_clean(header->program, sizeof header->program);
    return true;
}

static void window_free(struct oriel_trace_file_window *window)
{
    if (window != NULL)
        free(window->world_ranks);
    free(window);
}

/* Gives a table of numbered items room for a larger count; the new ones are zeros. */
static void *table_grow(void *items, uint32_t *count, uint32_t larger, size_t item_bytes)
{
    char *grown = oriel_alloc_checked(reallocarray(items, larger, item_bytes));
    memset(grown + *count * item_bytes, 0, (larger - *count) * item_bytes);
    *count = larger;
    return grown;
}

static void grow_windows(struct oriel_trace_parsed *out, uint32_t number)
{
    if (number >= out->windows_count)
        out->windows = table_grow(out->windows, &out->windows_count,
                                  number < 8 ? 8 : number + number / 2, sizeof *out->windows);
}

static bool is_window(const struct oriel_trace_window *head,
                      const struct oriel_trace_file_window *before, size_t ranks_count)
{
    return head->number < ORIEL_TRACE_WINDOWS_MOST && head->n >= 1 &&
           head->n <= ORIEL_TRACE_RANKS_MOST && head->rank >= 0 && head->rank < head->n &&
           ranks_count <= (size_t)head->n && head->own_path < ORIEL_COUNTED_PATHS &&
           (before == NULL ||
            (before->head.n == head->n && before->head.window_id == head->window_id));
}

/* When there are more windows than records, the later ones share a record without ranks. They
 * appear as one window over all ranks. */
static void shared_window_expand(struct oriel_trace_window *head, int32_t world_size)
{
    if (head->n != 0)
        return;
    head->n = world_size;
    snprintf(head->name, sizeof head->name, "later windows");
}

/* A second description of a window updates it. */
static bool parse_window(const struct walk *walk, struct oriel_trace_parsed *out)
{
    struct oriel_trace_window head;
    if (walk->block.len_bytes < sizeof head)
        return false;
    memcpy(&head, walk->payload, sizeof head);
    shared_window_expand(&head, out->header.world_size);
    size_t ranks_count = (walk->block.len_bytes - sizeof head) / sizeof(int32_t);
    struct oriel_trace_file_window *before =
        head.number < out->windows_count ? out->windows[head.number] : NULL;
    if (!is_window(&head, before, ranks_count))
        return false;
    grow_windows(out, head.number);
    struct oriel_trace_file_window *window = oriel_alloc(sizeof *window);
    window->world_ranks = oriel_alloc_checked(malloc(ranks_count * sizeof(int32_t) + 1));
    memcpy(window->world_ranks, walk->payload + sizeof head, ranks_count * sizeof(int32_t));
    window->ranks_count = (uint32_t)ranks_count;
    window->since_bytes = before != NULL ? before->since_bytes : walk->position;
    window->head = head;
    oriel_trace_text_clean(window->head.name, sizeof head.name);
    oriel_trace_text_clean(window->head.reason, sizeof head.reason);
    window_free(before);
    out->windows[head.number] = window;
    return true;
}

/* A second description of a call site replaces the first: it may have a line. */
static bool parse_site(const struct walk *walk, struct oriel_trace_parsed *out)
{
    struct oriel_trace_site site;
    if (walk->block.len_bytes != sizeof site)
        return false;
    memcpy(&site, walk->payload, sizeof site);
    if (site.number == 0 || site.number >= ORIEL_TRACE_SITES_MOST)
        return false;
    if (site.number >= out->places_count)
        out->places =
            table_grow(out->places, &out->places_count, site.number + 1, sizeof *out->places);
    out->places[site.number] = site.place;
    return true;
}

static bool parse_region(const struct walk *walk, struct oriel_trace_parsed *out)
{
    struct oriel_trace_region region;
    if (walk->block.len_bytes != sizeof region)
        return false;
    memcpy(&region, walk->payload, sizeof region);
    if (region.number >= ORIEL_REGIONS_MOST)
        return false;
    if (region.number >= out->regions_count)
        out->regions =
            table_grow(out->regions, &out->regions_count, region.number + 1, sizeof *out->regions);
    oriel_trace_text_clean(region.name, sizeof region.name);
    memcpy(out->regions[region.number], region.name, sizeof region.name);
    return true;
}

static bool parse_selection(const struct walk *walk, struct oriel_trace_parsed *out)
{
    struct oriel_trace_selection selection;
    if (walk->block.len_bytes != sizeof selection)
        return false;
    memcpy(&selection, walk->payload, sizeof selection);
    if (selection.sample < 1 || selection.sample > ORIEL_TRACE_SAMPLE_MOST)
        return false;
    oriel_trace_text_clean(selection.filter, sizeof selection.filter);
    out->selection = selection;
    return true;
}

static bool parse_host(const struct walk *walk, struct oriel_trace_parsed *out)
{
    if (walk->block.len_bytes != sizeof out->host)
        return false;
    memcpy(&out->host, walk->payload, sizeof out->host);
    oriel_trace_text_clean(out->host.version, sizeof out->host.version);
    return true;
}

/* An accepted event has all indices in bounds, and no time larger than the time that contains
 * it. */
static bool event_is_valid(const struct walk *walk, const struct oriel_trace_parsed *parsed,
                           const struct oriel_trace_event *event)
{
    bool is_operation = event->kind < ORIEL_TRACE_CALL;
    unsigned most =
        is_operation ? ORIEL_COUNTED_OPERATIONS : ORIEL_TRACE_CALL + (unsigned)ORIEL_COUNTED_CALLS;
    const struct oriel_trace_file_window *window =
        event->window < parsed->windows_count ? parsed->windows[event->window] : NULL;
    if (window == NULL || window->since_bytes > walk->position || event->kind >= most)
        return false;
    int32_t n = window->head.n;
    return event->begin_ns >> SENSIBLE_BITS == 0 && event->duration_ns >> SENSIBLE_BITS == 0 &&
           event->waiting_ns <= event->duration_ns && event->bytes >> SENSIBLE_BITS == 0 &&
           event->target >= -1 && event->target < n && event->cause_rank >= -1 &&
           event->cause_rank < n && (!is_operation || event->path < ORIEL_COUNTED_PATHS) &&
           (event->waiting_ns == 0 || event->cause < ORIEL_COUNTED_CAUSES);
}

static bool is_mark(const struct oriel_trace_event *event)
{
    return event->kind >= ORIEL_TRACE_KINDS;
}

static struct oriel_trace_mark mark_of(const struct oriel_trace_event *event)
{
    struct oriel_trace_mark mark;
    memcpy(&mark, event, sizeof mark);
    return mark;
}

static bool mark_is_valid(const struct oriel_trace_parsed *parsed,
                          const struct oriel_trace_mark *mark)
{
    uint64_t calls_ns = (uint64_t)mark->calls_ns_high << 32 | mark->calls_ns_low;
    return mark->kind < ORIEL_MARK_KINDS_END && mark->begin_ns >> SENSIBLE_BITS == 0 &&
           mark->duration_ns >> SENSIBLE_BITS == 0 && mark->bytes >> SENSIBLE_BITS == 0 &&
           mark->waiting_ns <= calls_ns && calls_ns <= mark->duration_ns &&
           (mark->kind != ORIEL_MARK_REGION || mark->region < parsed->regions_count);
}

/* The number of complete events in the block. */
static size_t events_in(const struct walk *walk)
{
    return walk->block.type == ORIEL_BLOCK_EVENTS
               ? walk->block.len_bytes / sizeof(struct oriel_trace_event)
               : 0;
}

static struct oriel_trace_event event_at(const struct walk *walk, size_t i)
{
    struct oriel_trace_event event;
    memcpy(&event, walk->payload + i * sizeof event, sizeof event);
    return event;
}

static void pause_add(struct oriel_trace_parsed *out, const struct oriel_trace_event *mark)
{
    out->pauses =
        oriel_alloc_checked(reallocarray(out->pauses, out->pauses_count + 1, sizeof *out->pauses));
    out->pauses[out->pauses_count++] =
        (struct oriel_trace_pause){.begin_ns = mark->begin_ns, .duration_ns = mark->duration_ns};
    out->paused_ns += mark->duration_ns;
}

static void parse_events(const struct walk *walk, struct oriel_trace_parsed *out)
{
    for (size_t i = 0; i < events_in(walk); i++) {
        struct oriel_trace_event event = event_at(walk, i);
        struct oriel_trace_mark mark = mark_of(&event);
        uint64_t end_ns = event.begin_ns + event.duration_ns;
        if (is_mark(&event) ? !mark_is_valid(out, &mark) : !event_is_valid(walk, out, &event)) {
            out->invalid++;
            continue;
        }
        if (event.begin_ns < out->begin_ns)
            out->begin_ns = event.begin_ns;
        if (end_ns > out->end_ns)
            out->end_ns = end_ns;
        out->events += !is_mark(&event);
        out->marks += is_mark(&event);
        if (event.kind == ORIEL_MARK_PAUSE)
            pause_add(out, &event);
    }
}

static bool parse_clock(const struct walk *walk, struct oriel_trace_parsed *out)
{
    struct oriel_trace_clock clock;
    if (walk->block.len_bytes != sizeof clock)
        return false;
    memcpy(&clock, walk->payload, sizeof clock);
    if ((clock.own_ns | clock.zero_ns) >> SENSIBLE_BITS != 0)
        return false;
    out->clocks[out->clocks_count == 0 ? 0 : 1] = clock;
    out->clocks_count += out->clocks_count < 2;
    return true;
}

static bool parse_end(const struct walk *walk, struct oriel_trace_parsed *out)
{
    struct oriel_trace_end end;
    if (walk->block.len_bytes != sizeof end)
        return false;
    memcpy(&end, walk->payload, sizeof end);
    out->ended = true;
    out->dropped = end.dropped;
    bool is_time = end.end_ns >> SENSIBLE_BITS == 0;
    if (is_time && end.end_ns > out->end_ns)
        out->end_ns = end.end_ns;
    return is_time && end.events == out->events + out->marks + out->invalid;
}

/* Blocks of unknown types are skipped, for compatibility with later versions. */
static bool parse_block(const struct walk *walk, struct oriel_trace_parsed *out)
{
    if (walk->block.dropped > out->dropped)
        out->dropped = walk->block.dropped;
    switch (walk->block.type) {
    case ORIEL_BLOCK_EVENTS:
        parse_events(walk, out);
        return walk->block.len_bytes % sizeof(struct oriel_trace_event) == 0;
    case ORIEL_BLOCK_WINDOW: return parse_window(walk, out);
    case ORIEL_BLOCK_SITE: return parse_site(walk, out);
    case ORIEL_BLOCK_REGION: return parse_region(walk, out);
    case ORIEL_BLOCK_SELECTION: return parse_selection(walk, out);
    case ORIEL_BLOCK_HOST: return parse_host(walk, out);
    case ORIEL_BLOCK_CLOCK: return parse_clock(walk, out);
    case ORIEL_BLOCK_END: return parse_end(walk, out);
    default: return true;
    }
}

/* --- pauses --- */

static int compare_pauses(const void *left, const void *right)
{
    const struct oriel_trace_pause *a = left, *b = right;
    return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* Threads pause and resume, so they are not in order. */
static void pauses_sort(struct oriel_trace_parsed *out)
{
    uint64_t before_ns = 0;
    if (out->pauses_count > 0)
        qsort(out->pauses, out->pauses_count, sizeof *out->pauses, compare_pauses);
    for (size_t i = 0; i < out->pauses_count; i++) {
        out->pauses[i].before_ns = before_ns;
        before_ns += out->pauses[i].duration_ns;
    }
}

/* All pauses until then. */
static uint64_t paused_until_ns(const struct oriel_trace_parsed *parsed, uint64_t at_ns)
{
    size_t low = 0, high = parsed->pauses_count; /* of pauses, those before low have begun */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (parsed->pauses[middle].begin_ns <= at_ns)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 0;
    const struct oriel_trace_pause *last = &parsed->pauses[low - 1];
    uint64_t since_ns = at_ns - last->begin_ns;
    return last->before_ns + (since_ns < last->duration_ns ? since_ns : last->duration_ns);
}

uint64_t oriel_trace_paused_ns(const struct oriel_trace_parsed *parsed, uint64_t begin_ns,
                               uint64_t duration_ns)
{
    uint64_t paused_ns =
        paused_until_ns(parsed, begin_ns + duration_ns) - paused_until_ns(parsed, begin_ns);
    return paused_ns < duration_ns ? paused_ns : duration_ns;
}

/* --- a file --- */

static void problem_record(struct oriel_trace_parsed *out, const char *stop, unsigned bad_blocks)
{
    if (stop[0] != '\0')
        snprintf(out->problem, sizeof out->problem,
                 "%s at byte %" PRIu64 "; before that, %" PRIu64 " event%s could be read", stop,
                 out->end_bytes, out->events, oriel_plural(out->events));
    else if (bad_blocks > 0 || out->invalid > 0)
        snprintf(out->problem, sizeof out->problem,
                 "has %u invalid block%s and %" PRIu64 " invalid event%s, which are ignored",
                 bad_blocks, oriel_plural(bad_blocks), out->invalid, oriel_plural(out->invalid));
}

bool oriel_trace_parse(const struct oriel_trace_source *source, struct oriel_trace_parsed *out)
{
    memset(out, 0, sizeof *out);
    out->selection.sample = 1;
    if (!parse_header(source, out))
        return false;
    out->begin_ns = out->end_ns = out->header.begin_ns;
    struct walk walk = {.source = source, .position = sizeof out->header, .end = UINT64_MAX};
    const char *stop = "";
    unsigned bad_blocks = 0;
    walk.payload = oriel_alloc_checked(malloc(ORIEL_BLOCK_BYTES_MOST)); /* not zeroed */
    while ((stop = next_block(&walk)) == NULL)
        bad_blocks += !parse_block(&walk, out);
    out->end_bytes = walk.position;
    pauses_sort(out);
    problem_record(out, stop, bad_blocks);
    free(walk.payload);
    return true;
}

void oriel_trace_parsed_free(struct oriel_trace_parsed *parsed)
{
    for (uint32_t i = 0; i < parsed->windows_count; i++)
        window_free(parsed->windows[i]);
    free(parsed->windows);
    free(parsed->places);
    free(parsed->regions);
    free(parsed->pauses);
    memset(parsed, 0, sizeof *parsed);
}

/* Passes an event or a mark on, if it is valid. */
static bool event_pass(const struct walk *walk, const struct oriel_trace_parsed *parsed,
                       const struct oriel_trace_event *event,
                       const struct oriel_trace_visitor *visitor)
{
    struct oriel_trace_mark mark = mark_of(event);
    if (!is_mark(event))
        return !event_is_valid(walk, parsed, event) || visitor->visit(event, visitor->context);
    return visitor->mark == NULL || !mark_is_valid(parsed, &mark) ||
           visitor->mark(&mark, visitor->context);
}

bool oriel_trace_events_visit(const struct oriel_trace_source *source,
                              const struct oriel_trace_parsed *parsed,
                              const struct oriel_trace_visitor *visitor)
{
    struct walk walk = {.source = source,
                        .position = sizeof parsed->header,
                        .end = parsed->end_bytes,
                        .only_events = true};
    bool is_running = true;
    walk.payload = oriel_alloc_checked(malloc(ORIEL_BLOCK_BYTES_MOST)); /* not zeroed */
    while (is_running && next_block(&walk) == NULL)
        for (size_t i = 0; i < events_in(&walk) && is_running; i++) {
            struct oriel_trace_event event = event_at(&walk, i);
            is_running = event_pass(&walk, parsed, &event, visitor);
        }
    free(walk.payload);
    return is_running;
}
