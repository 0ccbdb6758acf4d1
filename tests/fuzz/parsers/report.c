/* `oriel report` on arbitrary traces of two ranks: text, events for Perfetto, sometimes a page.
 * Checksums, ranks and the run are corrected first, to reach the code past them. */
#include "traces.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cli/report/html.h"
#include "cli/report/report.h"

enum { FILES = 2, WORLD = 4, MEMBERS_MOST = 64 };

static char folder[64];

/* The built page is next to the command. */
const char *__wrap_oriel_executable_path(void);
const char *__wrap_oriel_executable_path(void)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/bin/oriel", folder);
    return path;
}

static const char *path_of(const char *name)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void file_write(const char *name, const void *bytes, size_t len_bytes)
{
    FILE *file = fopen(path_of(name), "w");
    REQUIRE(file != NULL && fwrite(bytes, 1, len_bytes, file) == len_bytes && fclose(file) == 0);
}

static void leave(void)
{
    static const char *const names[] = {"share/oriel/report.html",
                                        "share/oriel",
                                        "share",
                                        "rank-0.oriel",
                                        "rank-1.oriel",
                                        "events.json",
                                        "page.html",
                                        ""};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        remove(path_of(names[i]));
}

static void start(void)
{
    snprintf(folder, sizeof folder, "/tmp/oriel-fuzzer.XXXXXX");
    REQUIRE(mkdtemp(folder) != NULL && mkdir(path_of("share"), 0700) == 0 &&
            mkdir(path_of("share/oriel"), 0700) == 0);
    file_write("share/oriel/report.html", "@DATA@", 6);
    atexit(leave);
}

/* Limits a window's members: the maximum in a file needs more memory than there is. */
static void mend_window(uint8_t *payload, size_t len_bytes)
{
    struct oriel_trace_window head;
    if (len_bytes < sizeof head)
        return;
    memcpy(&head, payload, sizeof head);
    if (head.n > MEMBERS_MOST)
        head.n %= MEMBERS_MOST;
    memcpy(payload, &head, sizeof head);
}

static void mend(uint8_t *bytes, size_t len_bytes, int32_t rank)
{
    struct oriel_trace_header header;
    if (len_bytes < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    header.world_rank = rank;
    header.world_size = WORLD;
    memset(header.job, 1, sizeof header.job);
    header.begin_ns &= INT64_MAX >> 1;
    memcpy(bytes, &header, sizeof header);
    mend_trace(bytes, len_bytes, mend_window);
}

/* Apart from names, which are sanitised, the text has neither control nor non-ASCII characters. */
static void look(const char *text, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        REQUIRE(text[i] == '\n' || ((unsigned char)text[i] >= 0x20 && text[i] != 0x7f));
}

static void show(struct oriel_traces *traces, bool with_page, FILE *complaints)
{
    static struct oriel_reported_run run;
    char *text = NULL;
    size_t len_bytes = 0;
    FILE *out = open_memstream(&text, &len_bytes);
    REQUIRE(out != NULL);
    oriel_reported_run_of_traces("runs", traces, &run);
    oriel_reported_run_sum(&run);
    oriel_report_print(&run, 80, out);
    fclose(out);
    look(text, len_bytes);
    free(text);
    REQUIRE(oriel_report_perfetto(run.traces, path_of("events.json")));
    REQUIRE(!with_page || oriel_html_write(path_of("page.html"), &run, NULL, NULL, complaints));
    oriel_reported_run_close(&run);
}

/* Three bytes select the start of the second file and whether to write a page; then the files
 * follow. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static const char *const names[FILES] = {"rank-0.oriel", "rank-1.oriel"};
    static FILE *nowhere;
    if (nowhere == NULL) {
        nowhere = fopen("/dev/null", "w");
        start();
    }
    if (len_bytes < 3)
        return 0;
    const bool with_page = data[2] % 8 == 0;
    len_bytes -= 3;
    const size_t first_bytes = (size_t)(data[0] | data[1] << 8) % (len_bytes + 1);
    const size_t parts[FILES] = {first_bytes, len_bytes - first_bytes};
    uint8_t *bytes = malloc(len_bytes + 1);
    memcpy(bytes, data + 3, len_bytes);
    uint8_t *at = bytes;
    for (int32_t i = 0; i < FILES; i++) {
        mend(at, parts[i], i);
        file_write(names[i], at, parts[i]);
        at += parts[i];
    }
    free(bytes);
    struct oriel_traces *traces = NULL;
    if (oriel_traces_open(folder, nowhere, &traces))
        show(traces, with_page, nowhere);
    return 0;
}
