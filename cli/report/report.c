/* `oriel report`: reads the runs and the findings that its arguments name, and shows them as text
 * or in the format that an option selects. Two runs are compared. Problems with files are reported
 * on standard error, and the readable parts are shown. */
#include "cli/report/report.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/option_parser.h"
#include "cli/cli.h"
#include "cli/report/compare.h"
#include "cli/report/findings_reader.h"
#include "cli/report/html.h"
#include "cli/report/json_file.h"
#include "cli/text_style.h"

enum { ARGUMENTS_MOST = 2 };

enum printed { PRINTED_TEXT, PRINTED_JSON, PRINTED_CSV };

struct request {
    const char *arguments[ARGUMENTS_MOST];
    int arguments_count;
    enum printed printed;
    const char *page;
    const char *perfetto;
    const char *otf2;
};

/* What the arguments name. */
struct sources {
    struct oriel_reported_run runs[2];
    int runs_count;
    struct oriel_findings_file found; /* job is NULL without findings */
};

enum { OPTION_PERFETTO = 256, OPTION_OTF2, OPTION_JSON, OPTION_CSV };

static bool is_named_as_trace(const char *path)
{
    static const char ending[] = ".oriel";
    size_t len = strlen(path);
    return len >= sizeof ending && strcmp(path + len - (sizeof ending - 1), ending) == 0;
}

static const char *nonempty_argument(const char *option, const char *what, const char *argument)
{
    if (argument[0] == '\0')
        oriel_die("%s: the name of the %s is empty", option, what);
    return argument;
}

static error_t report_option_parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case OPTION_PERFETTO:
        request->perfetto = nonempty_argument("--perfetto", "file", argument);
        return 0;
    case OPTION_OTF2: request->otf2 = nonempty_argument("--otf2", "folder", argument); return 0;
    case OPTION_JSON:
    case OPTION_CSV:
        if (request->printed != PRINTED_TEXT)
            oriel_die("choose one of --json and --csv");
        request->printed = key == OPTION_JSON ? PRINTED_JSON : PRINTED_CSV;
        return 0;
    case 'o': request->page = nonempty_argument("--output", "file", argument); return 0;
    case ARGP_KEY_ARG:
        if (request->arguments_count == ARGUMENTS_MOST)
            argp_usage(state);
        request->arguments[request->arguments_count++] =
            nonempty_argument("report", "folder or file", argument);
        return 0;
    case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void report_request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"output", 'o', "PAGE", 0, "Write a self-contained HTML page", 0},
        {"json", OPTION_JSON, NULL, 0, "Print a run, or the comparison of two, as JSON", 0},
        {"csv", OPTION_CSV, NULL, 0,
         "Print a run, or the comparison of two, as CSV with one figure a line", 0},
        {"perfetto", OPTION_PERFETTO, "FILE", 0,
         "Write the events to FILE as JSON for the Perfetto viewer, with arrows between ranks and "
         "rates",
         0},
        {"otf2", OPTION_OTF2, "FOLDER", 0,
         "Write the events as an OTF2 archive to FOLDER, which must not exist", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = report_option_parse,
        .args_doc = "RUN [FINDINGS]\nRUN RUN\nFINDINGS",
        .doc =
            "Show a run, the findings of oriel check --json FINDINGS, or both; or compare two "
            "runs. "
            "A RUN is the folder of oriel run --trace, the file of oriel run --stats=FILE.json, or "
            "that of oriel report --json.\vWithout options it prints a summary. For each window: "
            "the operations, their paths, the time in each call and how much of it was waiting, "
            "which ranks waited for which, and the busiest pairs of ranks. Traces of a running or "
            "killed program are read up to the last complete block. Of two runs it prints what "
            "changed, the window with the largest change first, and which lines of the program "
            "took longer. docs/guides/profiling.md has the "
            "details.",
    };
    memset(out, 0, sizeof *out);
    oriel_arguments_parse(&argp, argc, argv, false, out);
}

/* Refuses to overwrite an input. */
static void output_path_check(const struct request *request, const char *output)
{
    struct stat in, out;
    if (output == NULL)
        return;
    if (is_named_as_trace(output))
        oriel_die("%s has the name of a trace: choose another output file", output);
    for (int i = 0; i < request->arguments_count; i++)
        if (stat(request->arguments[i], &in) == 0 && stat(output, &out) == 0 &&
            in.st_dev == out.st_dev && in.st_ino == out.st_ino)
            oriel_die("%s is an input: choose another output file", output);
}

/* Opens one argument: a folder has traces, a file has findings or statistics. */
static bool source_open(const char *path, struct sources *sources)
{
    struct stat status;
    struct oriel_reported_run *run = &sources->runs[sources->runs_count];
    if (stat(path, &status) != 0 || S_ISDIR(status.st_mode)) {
        struct oriel_traces *traces;
        if (!oriel_traces_open(path, stderr, &traces))
            return false;
        oriel_reported_run_of_traces(path, traces, run);
        sources->runs_count++;
        return true;
    }
    if (is_named_as_trace(path))
        oriel_die("%s is one rank's trace: name its folder instead", path);
    json_t *file = oriel_json_file_read(path, stderr);
    if (file == NULL)
        return false;
    if (oriel_statistics_file_is(file)) {
        bool is_usable = oriel_reported_run_of_file(path, file, stderr, run);
        sources->runs_count += is_usable;
        return is_usable;
    }
    if (sources->found.job != NULL)
        oriel_die("%s: one file of findings is the most", path);
    return oriel_findings_file_open(path, file, stderr, &sources->found);
}

static void sources_close(struct sources *sources)
{
    for (int i = 0; i < sources->runs_count; i++)
        oriel_reported_run_close(&sources->runs[i]);
    if (sources->found.job != NULL)
        oriel_findings_file_close(&sources->found);
}

static void options_check(const struct request *request, const struct sources *sources)
{
    const struct oriel_traces *traces = sources->runs[0].traces;
    bool is_one_trace = sources->runs_count == 1 && traces != NULL;
    if ((request->perfetto != NULL || request->otf2 != NULL) && !is_one_trace)
        oriel_die("--perfetto and --otf2 need the folder of one run's traces");
    if (request->page != NULL && sources->runs_count == 1 && traces == NULL)
        oriel_die("the page of one run needs its traces; statistics are enough to compare two");
    if (request->printed != PRINTED_TEXT && sources->runs_count == 0)
        oriel_die("--json and --csv need a run; %s is JSON", request->arguments[0]);
}

static void json_print(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(value);
}

static void text_print(const struct sources *sources, const struct oriel_comparison *comparison)
{
    const struct oriel_reported_run *run = &sources->runs[0];
    if (sources->runs_count == 2)
        oriel_comparison_print(comparison, stdout);
    else if (run->traces != NULL)
        oriel_report_print(run, oriel_text_width(STDOUT_FILENO), stdout);
    else if (sources->runs_count == 1)
        oriel_statistics_print(&run->sum, oriel_text_width(STDOUT_FILENO), stdout);
    if (sources->runs_count > 0 && sources->found.job != NULL)
        putchar('\n');
    if (sources->found.job != NULL)
        oriel_findings_file_print(&sources->found, stdout);
}

/* Writes the requested formats, or prints text when no option selects one. */
static bool report_write(const struct request *request, struct sources *sources)
{
    struct oriel_reported_run *runs = sources->runs;
    const struct oriel_reported_run *run = sources->runs_count == 1 ? &runs[0] : NULL;
    struct oriel_comparison comparison = {.windows_count = 0};
    bool done = true;
    for (int i = 0; i < sources->runs_count; i++)
        oriel_reported_run_sum(&runs[i]);
    if (sources->runs_count == 2 || request->printed != PRINTED_TEXT)
        oriel_comparison_make(&runs[0], sources->runs_count == 2 ? &runs[1] : NULL, &comparison);
    if (request->page != NULL)
        done = oriel_html_write(request->page, run,
                                sources->found.job != NULL ? &sources->found : NULL,
                                sources->runs_count == 2 ? &comparison : NULL, stderr);
    if (request->perfetto != NULL)
        done = oriel_report_perfetto(run->traces, request->perfetto) && done;
    if (request->otf2 != NULL)
        done = oriel_report_otf2(run->traces, request->otf2) && done;
    if (request->printed == PRINTED_JSON)
        json_print(sources->runs_count == 2 ? oriel_comparison_json(&comparison, SIZE_MAX, SIZE_MAX)
                                            : oriel_statistics_json(&runs[0].sum));
    else if (request->printed == PRINTED_CSV)
        oriel_comparison_csv(&comparison, stdout);
    else if (request->page == NULL && request->perfetto == NULL && request->otf2 == NULL)
        text_print(sources, &comparison);
    oriel_comparison_free(&comparison);
    return done;
}

int oriel_command_report(int argc, char **argv)
{
    struct request request;
    static struct sources sources;
    report_request_parse(argc, argv, &request);
    /* a write beyond the file size limit fails with an error, as on a full disk */
    signal(SIGXFSZ, SIG_IGN);
    output_path_check(&request, request.page);
    output_path_check(&request, request.perfetto);
    for (int i = 0; i < request.arguments_count; i++)
        if (!source_open(request.arguments[i], &sources))
            return ORIEL_EXIT_REFUSED;
    options_check(&request, &sources);
    bool done = report_write(&request, &sources);
    sources_close(&sources);
    return done ? 0 : ORIEL_EXIT_REFUSED;
}
