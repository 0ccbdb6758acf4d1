/* The reader of traces, on arbitrary files.  The test corrects checksums first, to reach the code
 * past them. Every second input keeps its own. */
#include "traces.h"

#include "cli/report/trace_reader.h"

enum { ROOM = 1 << 16 };

static bool is_clean(const char *text, size_t room)
{
    size_t len = strnlen(text, room);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return len < room;
}

struct seen {
    const struct oriel_trace_parsed *parsed;
    uint64_t events, marks;
};

static bool look(const struct oriel_trace_event *event, void *context)
{
    struct seen *seen = context;
    REQUIRE(event->window < seen->parsed->windows_count &&
            seen->parsed->windows[event->window] != NULL);
    int32_t n = seen->parsed->windows[event->window]->head.n;
    REQUIRE(event->target >= -1 && event->target < n && event->cause_rank >= -1 &&
            event->cause_rank < n);
    REQUIRE(event->begin_ns >= seen->parsed->begin_ns &&
            event->begin_ns + event->duration_ns <= seen->parsed->end_ns);
    REQUIRE(event->waiting_ns <= event->duration_ns);
    REQUIRE(event->waiting_ns == 0 || event->cause < ORIEL_COUNTED_CAUSES);
    seen->events++;
    return true;
}

static bool mark_look(const struct oriel_trace_mark *mark, void *context)
{
    struct seen *seen = context;
    REQUIRE(mark->kind < ORIEL_MARK_KINDS_END && mark->waiting_ns <= mark->duration_ns);
    REQUIRE(mark->kind != ORIEL_MARK_REGION || mark->region < seen->parsed->regions_count);
    REQUIRE(mark->begin_ns >= seen->parsed->begin_ns &&
            mark->begin_ns + mark->duration_ns <= seen->parsed->end_ns);
    seen->marks++;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static uint8_t bytes[ROOM];
    struct oriel_trace_parsed parsed;
    if (len_bytes == 0 || len_bytes > ROOM)
        return 0;
    memcpy(bytes, data + 1, len_bytes - 1);
    if (data[0] % 2 == 0)
        mend_trace(bytes, len_bytes - 1, NULL);
    uint8_t *exact = malloc(len_bytes);
    memcpy(exact, bytes, len_bytes - 1);
    struct oriel_trace_source source = {.fd = -1, .bytes = exact, .len_bytes = len_bytes - 1};
    struct seen seen = {.parsed = &parsed};
    bool readable = oriel_trace_parse(&source, &parsed);
    REQUIRE(readable || parsed.problem[0] != '\0');
    if (readable) {
        REQUIRE(oriel_trace_events_visit(&source, &parsed,
                                         &(struct oriel_trace_visitor){look, mark_look, &seen}) &&
                seen.events == parsed.events && seen.marks == parsed.marks);
        for (uint32_t i = 0; i < parsed.regions_count; i++)
            REQUIRE(is_clean(parsed.regions[i], sizeof parsed.regions[i]));
        REQUIRE(is_clean(parsed.header.program, sizeof parsed.header.program));
        for (uint32_t i = 0; i < parsed.windows_count; i++)
            REQUIRE(parsed.windows[i] == NULL ||
                    (is_clean(parsed.windows[i]->head.name, 64) &&
                     parsed.windows[i]->ranks_count <= (uint32_t)parsed.windows[i]->head.n));
    }
    oriel_trace_parsed_free(&parsed);
    free(exact);
    return 0;
}
