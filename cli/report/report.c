/* `oriel report`: reads the traces of a run, the findings of a checked run, or both, and shows them
 * as text or in the format that an option selects. Problems with files are reported on standard
 * error, and the readable parts are shown. */
#include "cli/report/report.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/option_parser.h"
#include "cli/cli.h"
#include "cli/report/findings_reader.h"
#include "cli/report/html.h"

struct request {
    const char *folder;
    const char *findings;
    const char *page;
    const char *perfetto;
    const char *otf2;
};

enum { OPTION_PERFETTO = 256, OPTION_OTF2 };

static bool is_named_as_trace(const char *path)
{
    static const char ending[] = ".oriel";
    size_t len = strlen(path);
    return len >= sizeof ending && strcmp(path + len - (sizeof ending - 1), ending) == 0;
}

/* An argument that is not a folder is a findings file. There is at most one of each. */
static bool argument_set(struct request *request, const char *argument)
{
    struct stat status;
    bool is_findings = stat(argument, &status) == 0 && !S_ISDIR(status.st_mode);
    if (is_findings && is_named_as_trace(argument))
        oriel_die("%s is one rank's trace: name its folder instead", argument);
    const char **place = is_findings ? &request->findings : &request->folder;
    bool is_first = *place == NULL;
    *place = argument;
    return is_first;
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
    case 'o': request->page = nonempty_argument("--output", "file", argument); return 0;
    case ARGP_KEY_ARG:
        if (!argument_set(request, nonempty_argument("report", "folder or file", argument)))
            argp_usage(state);
        return 0;
    case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void report_request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"output", 'o', "PAGE", 0, "Write a self-contained HTML page", 0},
        {"perfetto", OPTION_PERFETTO, "FILE", 0,
         "Write the events to FILE as JSON for the Perfetto viewer", 0},
        {"otf2", OPTION_OTF2, "FOLDER", 0,
         "Write the events as an OTF2 archive to FOLDER, which must not exist", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = report_option_parse,
        .args_doc = "[FOLDER] [FINDINGS]",
        .doc =
            "Show the traces of oriel run --trace FOLDER, the findings of oriel check --json "
            "FINDINGS, or both.\vWithout options it prints a summary. For each window: the "
            "operations, their paths, the time in each call and how much of it was waiting, which "
            "ranks waited for which, and the busiest pairs of ranks. Traces of a running or killed "
            "program are read up to the last complete block. docs/guides/profiling.md has the "
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
    if (request->findings != NULL && stat(request->findings, &in) == 0 && stat(output, &out) == 0 &&
        in.st_dev == out.st_dev && in.st_ino == out.st_ino)
        oriel_die("%s is the findings file: choose another output file", output);
}

/* Writes the requested formats, or prints text when no option selects one. */
static bool report_write(const struct request *request, const struct oriel_traces *traces,
                         const struct oriel_findings_file *found)
{
    bool done = true;
    if (request->page != NULL)
        done = oriel_html_write(request->page, traces, found, stderr);
    if (request->perfetto != NULL)
        done = oriel_report_perfetto(traces, request->perfetto) && done;
    if (request->otf2 != NULL)
        done = oriel_report_otf2(traces, request->otf2) && done;
    if (request->page == NULL && request->perfetto == NULL && request->otf2 == NULL) {
        if (traces != NULL)
            oriel_report_print(traces, stdout);
        if (traces != NULL && found != NULL)
            putchar('\n');
        if (found != NULL)
            oriel_findings_file_print(found, stdout);
    }
    return done;
}

int oriel_command_report(int argc, char **argv)
{
    struct request request;
    struct oriel_traces *traces = NULL;
    struct oriel_findings_file found = {.job = NULL};
    report_request_parse(argc, argv, &request);
    /* a write beyond the file size limit fails with an error, as on a full disk */
    signal(SIGXFSZ, SIG_IGN);
    if (request.folder == NULL && (request.perfetto != NULL || request.otf2 != NULL))
        oriel_die("--perfetto and --otf2 need the folder of a run's traces");
    output_path_check(&request, request.page);
    output_path_check(&request, request.perfetto);
    if (request.findings != NULL && !oriel_findings_file_open(request.findings, stderr, &found))
        return ORIEL_EXIT_REFUSED;
    if (request.folder != NULL && !oriel_traces_open(request.folder, stderr, &traces))
        return ORIEL_EXIT_REFUSED;
    bool done = report_write(&request, traces, request.findings != NULL ? &found : NULL);
    if (traces != NULL)
        oriel_traces_close(traces);
    if (found.job != NULL)
        oriel_findings_file_close(&found);
    return done ? 0 : ORIEL_EXIT_REFUSED;
}
