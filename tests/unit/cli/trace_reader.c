/* The reader of traces, given truncated, damaged, foreign or inconsistent files; and its correction
 * of clocks and texts. The writer makes a small valid trace, which the tests then damage. */
#include "tests/unit/trace_common.h"

#include "base/crc32.h"
#include "cli/report/trace_clock.h"
#include "cli/report/trace_reader.h"
#include "cli/trace_text.h"

#include <sys/stat.h>

enum { PUTS = 20, ROOM = 1 << 16 };

static unsigned char whole[ROOM];
static size_t whole_bytes;

static void write_small(void)
{
    trace_begin(1 << 20);
    for (uint64_t i = 0; i < PUTS; i++)
        add_put(i);
    oriel_trace_writer_end(NULL, END_NS);
}

static int make_complete(void **state)
{
    if (folder_make(state) != 0 || in_process(write_small) != 0)
        return -1;
    FILE *file = fopen(path, "r");
    whole_bytes = file == NULL ? 0 : fread(whole, 1, sizeof whole, file);
    if (file != NULL)
        fclose(file);
    return whole_bytes > sizeof(struct oriel_trace_header) ? 0 : -1;
}

static bool within_bounds(const struct oriel_trace_event *event, void *context)
{
    assert_in_range(event->target + 1, 0, 4);
    assert_in_range(event->cause_rank + 1, 0, 4);
    assert_true(
        event->kind < ORIEL_COUNTED_OPERATIONS ||
        (event->kind >= ORIEL_TRACE_CALL && event->kind < ORIEL_TRACE_CALL + ORIEL_COUNTED_CALLS));
    assert_true(event->waiting_ns <= event->duration_ns);
    ++*(uint64_t *)context;
    return true;
}

/* Reads bytes. Returns the number of events that a visit finds, which must equal the parser's
 * count. */
static uint64_t read_bytes(const unsigned char *bytes, size_t len_bytes,
                           struct oriel_trace_parsed *out)
{
    struct oriel_trace_source source = {.fd = -1, .bytes = bytes, .len_bytes = len_bytes};
    uint64_t seen = 0;
    if (oriel_trace_parse(&source, out)) {
        assert_true(oriel_trace_events_visit(
            &source, out, &(struct oriel_trace_visitor){within_bounds, NULL, &seen}));
        assert_int_equal(seen, out->events);
    }
    oriel_trace_parsed_free(&(struct oriel_trace_parsed){.windows = out->windows,
                                                         .windows_count = out->windows_count,
                                                         .places = out->places,
                                                         .pauses = out->pauses,
                                                         .regions = out->regions});
    return seen;
}

static void complete_trace_has_no_warning(void **state)
{
    struct oriel_trace_parsed parsed;
    (void)state;
    assert_int_equal(read_bytes(whole, whole_bytes, &parsed), PUTS);
    assert_string_equal(parsed.problem, "");
    assert_true(parsed.ended);
    assert_int_equal(parsed.begin_ns, BEGIN_NS);
    assert_int_equal(parsed.end_ns, END_NS);
    assert_string_equal(parsed.host.version, "MPICH 5.0.2");
}

/* Truncated anywhere: the events before are read, and the truncation is reported unless a block
 * ends just there. */
static void cut_anywhere(void **state)
{
    struct oriel_trace_parsed parsed;
    uint64_t before = 0;
    unsigned quiet = 0;
    (void)state;
    for (size_t len = 0; len < whole_bytes; len++) {
        uint64_t events = read_bytes(whole, len, &parsed);
        assert_true(events >= before && events <= PUTS);
        before = events;
        quiet += parsed.problem[0] == '\0';
        assert_false(parsed.ended);
        if (len > sizeof parsed.header && events == PUTS)
            assert_int_equal(parsed.end_ns, 1000 + (PUTS - 1) * 100 + 50);
    }
    assert_int_equal(before, PUTS);
    /* after the header, the host, the clock, the call site, the window, the events */
    assert_int_equal(quiet, 6);
}

static void damaged_anywhere(void **state)
{
    static unsigned char spoilt[ROOM];
    struct oriel_trace_parsed parsed;
    (void)state;
    for (size_t at = 0; at < whole_bytes; at++)
        for (int bit = 0; bit < 8; bit += 3) {
            memcpy(spoilt, whole, whole_bytes);
            spoilt[at] ^= (unsigned char)(1 << bit);
            uint64_t events = read_bytes(spoilt, whole_bytes, &parsed);
            assert_true(events <= PUTS);
            /* a block's type and its count of lost events are not in its checksum */
            assert_true(parsed.problem[0] != '\0' || events == PUTS || parsed.dropped != 0 ||
                        !parsed.ended || parsed.clocks_count == 0);
        }
}

/* A block, with its checksum corrected. */
static unsigned char *block_of_type(unsigned char *bytes, uint32_t type,
                                    struct oriel_trace_block *out)
{
    for (size_t at = sizeof(struct oriel_trace_header); at < whole_bytes;
         at += sizeof *out + out->len_bytes) {
        memcpy(out, bytes + at, sizeof *out);
        if (out->type == type)
            return bytes + at;
    }
    fail();
    return NULL;
}

static void set(unsigned char *bytes, uint32_t type, size_t offset, const void *value,
                size_t value_bytes)
{
    struct oriel_trace_block block = {.type = 0};
    unsigned char *at = block_of_type(bytes, type, &block);
    memcpy(at + sizeof block + offset, value, value_bytes);
    block.checksum = oriel_crc32(0, at + sizeof block, block.len_bytes);
    memcpy(at, &block, sizeof block);
}

#define SET_EVENT(field, ...)                                                                      \
    set(bytes, ORIEL_BLOCK_EVENTS, offsetof(struct oriel_trace_event, field),                      \
        &(__typeof__(((struct oriel_trace_event *)0)->field)){__VA_ARGS__},                        \
        sizeof((struct oriel_trace_event *)0)->field)
#define SET_WINDOW(field, ...)                                                                     \
    set(bytes, ORIEL_BLOCK_WINDOW, offsetof(struct oriel_trace_window, field),                     \
        &(__typeof__(((struct oriel_trace_window *)0)->field)){__VA_ARGS__},                       \
        sizeof((struct oriel_trace_window *)0)->field)

/* An impossible value is left out, alone. */
#define EXPECT_ODD(change, events_left)                                                            \
    do {                                                                                           \
        static unsigned char bytes[ROOM];                                                          \
        struct oriel_trace_parsed parsed;                                                          \
        memcpy(bytes, whole, whole_bytes);                                                         \
        change;                                                                                    \
        assert_int_equal(read_bytes(bytes, whole_bytes, &parsed), events_left);                    \
        assert_non_null(strstr(parsed.problem, "which are ignored"));                              \
    } while (0)

static void impossible_events_are_left_out(void **state)
{
    (void)state;
    EXPECT_ODD(SET_EVENT(target, 4), PUTS - 1);
    EXPECT_ODD(SET_EVENT(target, -2), PUTS - 1);
    EXPECT_ODD(SET_EVENT(cause_rank, 1 << 30), PUTS - 1);
    EXPECT_ODD(SET_EVENT(window, 1), PUTS - 1);
    EXPECT_ODD(SET_EVENT(window, UINT16_MAX), PUTS - 1);
    EXPECT_ODD(SET_EVENT(kind, ORIEL_COUNTED_OPERATIONS), PUTS - 1);
    EXPECT_ODD(SET_EVENT(kind, ORIEL_TRACE_CALL + ORIEL_COUNTED_CALLS), PUTS - 1);
    EXPECT_ODD(SET_EVENT(path, ORIEL_COUNTED_PATHS), PUTS - 1);
    EXPECT_ODD(SET_EVENT(waiting_ns, 51), PUTS - 1);
    EXPECT_ODD((SET_EVENT(waiting_ns, 1), SET_EVENT(cause, ORIEL_COUNTED_CAUSES)), PUTS - 1);
    EXPECT_ODD(SET_EVENT(duration_ns, UINT64_MAX), PUTS - 1);
    EXPECT_ODD(SET_EVENT(begin_ns, UINT64_MAX), PUTS - 1);
    EXPECT_ODD(SET_WINDOW(n, -1), 0);
    EXPECT_ODD(SET_WINDOW(n, 3), 0); /* with four ranks after it */
    EXPECT_ODD(SET_WINDOW(n, INT32_MAX), 0);
    EXPECT_ODD(SET_WINDOW(rank, 4), 0);
    EXPECT_ODD(SET_WINDOW(number, UINT32_MAX), 0);
    EXPECT_ODD(SET_WINDOW(own_path, 99), 0);
    EXPECT_ODD(set(bytes, ORIEL_BLOCK_SITE, 0, &(uint32_t){0}, 4), PUTS);
    EXPECT_ODD(set(bytes, ORIEL_BLOCK_SITE, 0, &(uint32_t){UINT32_MAX}, 4), PUTS);
    EXPECT_ODD(set(bytes, ORIEL_BLOCK_END, offsetof(struct oriel_trace_end, events),
                   &(uint64_t){PUTS + 1}, 8),
               PUTS);
    EXPECT_ODD(set(bytes, ORIEL_BLOCK_END, 0, &(uint64_t){UINT64_MAX}, 8), PUTS);
    EXPECT_ODD(set(bytes, ORIEL_BLOCK_CLOCK, 0, &(uint64_t){UINT64_MAX}, 8), PUTS);
}

/* Marks in the place of the first put: they are no events, unless they are impossible. */
static void marks_are_no_events(void **state)
{
    static unsigned char bytes[ROOM];
    struct oriel_trace_parsed parsed;
    (void)state;
    memcpy(bytes, whole, whole_bytes);
    SET_EVENT(kind, ORIEL_MARK_PAUSE);
    SET_EVENT(cause_rank, 0); /* calls_ns_low */
    SET_EVENT(site, 0);       /* calls_ns_high */
    assert_int_equal(read_bytes(bytes, whole_bytes, &parsed), PUTS - 1);
    assert_string_equal(parsed.problem, "");
    assert_int_equal(parsed.marks, 1);
    assert_int_equal(parsed.paused_ns, 50);
    assert_int_equal(parsed.begin_ns, BEGIN_NS);
}

/* An event from before the start of the observation, by the clock of another node. */
static void an_earlier_event_begins_the_run(void **state)
{
    static unsigned char bytes[ROOM];
    struct oriel_trace_parsed parsed;
    (void)state;
    memcpy(bytes, whole, whole_bytes);
    SET_EVENT(begin_ns, BEGIN_NS - 5);
    assert_int_equal(read_bytes(bytes, whole_bytes, &parsed), PUTS);
    assert_int_equal(parsed.begin_ns, BEGIN_NS - 5);
    assert_int_equal(parsed.end_ns, END_NS);
}

static void impossible_marks_are_left_out(void **state)
{
    (void)state;
    EXPECT_ODD((SET_EVENT(kind, ORIEL_MARK_PAUSE), SET_EVENT(cause_rank, 0)), PUTS - 1);
    EXPECT_ODD(
        (SET_EVENT(kind, ORIEL_MARK_KINDS_END), SET_EVENT(cause_rank, 0), SET_EVENT(site, 0)),
        PUTS - 1);
    EXPECT_ODD((SET_EVENT(kind, ORIEL_MARK_REGION), SET_EVENT(cause_rank, 0), SET_EVENT(site, 0)),
               PUTS - 1); /* a region without a name */
}

static void pauses_are_parts_of_other_times(void **state)
{
    struct oriel_trace_pause pauses[] = {{100, 50, 0}, {200, 10, 50}};
    const struct oriel_trace_parsed parsed = {.pauses = pauses, .pauses_count = 2};
    (void)state;
    assert_int_equal(oriel_trace_paused_ns(&parsed, 0, 100), 0);
    assert_int_equal(oriel_trace_paused_ns(&parsed, 0, 120), 20);
    assert_int_equal(oriel_trace_paused_ns(&parsed, 110, 20), 20);
    assert_int_equal(oriel_trace_paused_ns(&parsed, 120, 85), 35);
    assert_int_equal(oriel_trace_paused_ns(&parsed, 90, 200), 60);
    assert_int_equal(oriel_trace_paused_ns(&parsed, 150, 50), 0);
    assert_int_equal(oriel_trace_paused_ns(&parsed, 300, 50), 0);
    pauses[1] = (struct oriel_trace_pause){101, 1000, 50}; /* of a forged file */
    assert_int_equal(oriel_trace_paused_ns(&parsed, 90, 100), 100);
}

/* --- headers --- */

static void expect_refused(const unsigned char *bytes, size_t len_bytes, const char *problem)
{
    struct oriel_trace_parsed parsed;
    assert_int_equal(read_bytes(bytes, len_bytes, &parsed), 0);
    assert_string_equal(parsed.problem, problem);
}

static void other_files_are_refused(void **state)
{
    static unsigned char bytes[ROOM];
    struct oriel_trace_header header;
    (void)state;
    expect_refused(whole, 0, "is empty");
    expect_refused((const unsigned char *)"\x7f"
                                          "ELF and more of it",
                   20, "is not an Oriel trace");
    expect_refused(whole, 5, "is not an Oriel trace");
    expect_refused(whole, sizeof header - 1, "ends within its header");
    memcpy(bytes, whole, whole_bytes);
    bytes[8] = 9;
    expect_refused(bytes, whole_bytes,
                   "has version 9 of the format; this command reads versions "
                   "2 to 3");
    struct oriel_trace_parsed parsed;
    memcpy(&header, whole, sizeof header);
    header.version = ORIEL_TRACE_VERSION_LEAST;
    header.checksum = oriel_crc32(0, &header, offsetof(struct oriel_trace_header, checksum));
    memcpy(bytes, &header, sizeof header);
    assert_int_equal(read_bytes(bytes, whole_bytes, &parsed), PUTS);
    assert_string_equal(parsed.problem, "");
    memcpy(&header, whole, sizeof header);
    header.world_size = 0;
    header.checksum = oriel_crc32(0, &header, offsetof(struct oriel_trace_header, checksum));
    memcpy(bytes, &header, sizeof header);
    expect_refused(bytes, whole_bytes, "has a damaged header");
}

/* --- texts --- */

static void expect_clean(const char *text, const char *expected)
{
    char room[64];
    memset(room, 'x', sizeof room);
    memcpy(room, text, strlen(text) + 1);
    oriel_trace_text_clean(room, sizeof room);
    assert_string_equal(room, expected);
}

static void texts_are_clean(void **state)
{
    char full[4] = {'a', 'b', 'c', 'd'};
    (void)state;
    expect_clean("halo", "halo");
    expect_clean("Fenster \xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80",
                 "Fenster \xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80");
    expect_clean("\x1b[2J\n\t\x7f", "?[2J???");
    expect_clean("\xc2\x9b"
                 "31m",
                 "??31m"); /* a control sequence in one character */
    expect_clean("\xff\xc3\xc3-\xe2\x82",
                 "??"
                 "?-??"); /* invalid UTF-8, and a character that ends too early */
    /* an overlong character, and half of a surrogate pair */
    expect_clean("\xc0\xaf \xed\xa0\x80", "?? ???");
    oriel_trace_text_clean(full, sizeof full);
    assert_string_equal(full, "abc");
}

/* --- clocks --- */

static void clocks_are_aligned(void **state)
{
    struct oriel_trace_alignment alignment = {.is_known = false};
    struct oriel_trace_parsed one = {.clocks = {{5000000000, 1000000000, 300}}, .clocks_count = 1};
    struct oriel_trace_parsed two = one;
    (void)state;
    oriel_trace_alignment_add(&alignment, &one);
    assert_int_equal(oriel_trace_aligned_ns(&alignment, 5000000500), 1000000500);
    assert_int_equal(oriel_trace_aligned_ns(&alignment, 4999999500), 999999500);
    assert_int_equal(oriel_trace_alignment_error_ns(&alignment, 5000000000), 300);
    assert_int_equal(oriel_trace_alignment_error_ns(&alignment, 15000000000),
                     300 + 1000000); /* 100 ppm of 10 s */

    two.clocks[1] =
        (struct oriel_trace_clock){15000000000, 11000100000, 700}; /* 10 us slower per second */
    two.clocks_count = 2;
    oriel_trace_alignment_add(&alignment, &two);
    assert_int_equal(oriel_trace_aligned_ns(&alignment, 5000000000), 1000000000);
    assert_int_equal(oriel_trace_aligned_ns(&alignment, 10000000000), 6000050000);
    assert_int_equal(oriel_trace_aligned_ns(&alignment, 15000000000), 11000100000);
    assert_int_equal(oriel_trace_alignment_error_ns(&alignment, 20000000000), 700);

    two.clocks[1].zero_ns = 1; /* impossible for a clock: the first is used */
    alignment.is_known = false;
    oriel_trace_alignment_add(&alignment, &two);
    assert_int_equal(oriel_trace_aligned_ns(&alignment, 10000000000), 6000000000);
}

/* --- folders --- */

static char complaints[8192];

/* Opens the folder; the complaints are in `complaints`. */
static struct oriel_traces *open_folder(const char *name)
{
    struct oriel_traces *traces = NULL;
    memset(complaints, 0, sizeof complaints);
    FILE *out = fmemopen(complaints, sizeof complaints - 1, "w");
    if (!oriel_traces_open(name, out, &traces))
        assert_null(traces);
    fclose(out);
    return traces;
}

/* A file with the whole trace's events, as another rank, and of another run. */
static void put_rank(int32_t named, int32_t rank, uint64_t job)
{
    char name[128];
    struct oriel_trace_header header;
    memcpy(&header, whole, sizeof header);
    header.world_rank = rank;
    header.job[0] = job;
    header.checksum = oriel_crc32(0, &header, offsetof(struct oriel_trace_header, checksum));
    snprintf(name, sizeof name, "%s/rank-%d.oriel", folder, (int)named);
    FILE *file = fopen(name, "w");
    assert_int_equal(fwrite(&header, 1, sizeof header, file), sizeof header);
    assert_int_equal(fwrite(whole + sizeof header, 1, whole_bytes - sizeof header, file),
                     whole_bytes - sizeof header);
    fclose(file);
}

static void mixed_runs_are_distinguished(void **state)
{
    (void)state;
    put_rank(0, 0, 1);
    put_rank(1, 1, 1);
    put_rank(2, 2, 99);
    put_rank(3, 1, 1);
    struct oriel_traces *traces = open_folder(folder);
    assert_non_null(traces);
    assert_int_equal(traces->ranks_count, 2);
    assert_int_equal(traces->windows_count, 1);
    assert_non_null(strstr(
        complaints, "rank-2.oriel is from another run than most files here, and is ignored\n"));
    assert_non_null(
        strstr(complaints, "rank-3.oriel is rank 1's according to its header, and is ignored\n"));
    assert_non_null(
        strstr(complaints, "2 of 4 ranks have no readable trace here, the first is rank 2\n"));
    oriel_traces_close(traces);
}

static void folders_without_traces(void **state)
{
    (void)state;
    assert_null(open_folder("/nowhere/at/all"));
    assert_string_equal(complaints, "oriel: /nowhere/at/all: No such file or directory\n");
    unlink(path);
    assert_null(open_folder(folder));
    assert_non_null(strstr(complaints, ": contains no traces of oriel run"));
    assert_int_equal(mkdir(path, 0700), 0);
    assert_null(open_folder(folder));
    assert_non_null(strstr(complaints, "rank-0.oriel: is not a regular file\n"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_complete, folder_remove)
    const struct CMUnitTest tests[] = {
        TEST(complete_trace_has_no_warning),
        TEST(cut_anywhere),
        TEST(damaged_anywhere),
        TEST(impossible_events_are_left_out),
        TEST(marks_are_no_events),
        TEST(an_earlier_event_begins_the_run),
        TEST(impossible_marks_are_left_out),
        TEST(pauses_are_parts_of_other_times),
        TEST(other_files_are_refused),
        TEST(texts_are_clean),
        TEST(clocks_are_aligned),
        TEST(mixed_runs_are_distinguished),
        TEST(folders_without_traces),
    };
#undef TEST
    return cmocka_run_group_tests(tests, NULL, NULL);
}
