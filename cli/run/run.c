/* `oriel run`: executes the program with liboriel.so preloaded. This file parses the options;
 * exec_program.c does the rest. */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/counters.h"
#include "cli/job_terminal.h"
#include "cli/run/command_line.h"
#include "cli/run/exec_program.h"
#include "cli/run/watch.h"
#include "cli/statistics.h"
#include "cli/text_style.h"
#include "observe/trace/trace_filter.h"

struct request {
    const char *host;
    const char *trace;
    char *trace_filter; /* all together; NULL: none */
    const char *trace_sample;
    const char *stats;
    bool watch;
    char **program;
};

enum {
    OPTION_HOST = 256,
    OPTION_STATS,
    OPTION_COUNTERS,
    OPTION_TRACE,
    OPTION_TRACE_FILTER,
    OPTION_TRACE_SAMPLE,
    OPTION_WATCH
};

/* Checks one SPEC, and adds it to the others. */
static void trace_filter_add(struct request *request, const char *spec)
{
    struct oriel_trace_filter filter;
    char problem[ORIEL_TRACE_FILTER_PROBLEM];
    char *before = request->trace_filter;
    if (spec[0] == '\0')
        oriel_die("--trace-filter: it is empty; --help has the syntax");
    if (!oriel_trace_filter_read(spec, &filter, problem))
        oriel_die("--trace-filter %s: %s", spec, problem);
    request->trace_filter =
        oriel_format("%s%s%s", before == NULL ? "" : before, before == NULL ? "" : ";", spec);
    free(before);
}

static void trace_sample_check(const char *number)
{
    char *end;
    errno = 0;
    long sample = strtol(number, &end, 10);
    if (end == number || end[0] != '\0' || errno != 0 || sample < 1 ||
        sample > ORIEL_TRACE_SAMPLE_MOST)
        oriel_die("--trace-sample %s: it is no number from 1 to %d", number,
                  ORIEL_TRACE_SAMPLE_MOST);
}

static error_t run_option_parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case OPTION_HOST: request->host = argument; return 0;
    case OPTION_TRACE: request->trace = argument; return 0;
    case OPTION_TRACE_FILTER: trace_filter_add(request, argument); return 0;
    case OPTION_TRACE_SAMPLE:
        trace_sample_check(argument);
        request->trace_sample = argument;
        return 0;
    case OPTION_STATS: request->stats = argument == NULL ? "" : argument; return 0;
    case OPTION_WATCH: request->watch = true; return 0;
    case OPTION_COUNTERS: oriel_counters_print(stdout); exit(0);
    case ARGP_KEY_ARG:
        request->program = &state->argv[state->next - 1];
        state->next = state->argc; /* the remaining arguments are the program's */
        return 0;
    case ARGP_KEY_NO_ARGS: oriel_program_missing(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void run_request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"host", OPTION_HOST, "HOST", 0, "The MPI that the program uses: mpich, openmpi or abi", 0},
        {"stats", OPTION_STATS, "FILE.json", OPTION_ARG_OPTIONAL,
         "Print statistics of each window at the end, or write them to FILE.json", 0},
        {"counters", OPTION_COUNTERS, NULL, 0, "List the counters of --stats with their meanings",
         0},
        {"trace", OPTION_TRACE, "FOLDER", 0,
         "Write a trace of each rank's calls to FOLDER, for oriel report", 0},
        {"trace-filter", OPTION_TRACE_FILTER, "SPEC", 0,
         "Trace only some calls: window=NAME,..., call=NAME,..., rank=N-M,... or several of these "
         "with \";\" between them; a call must match one value of each key",
         0},
        {"trace-sample", OPTION_TRACE_SAMPLE, "N", 0,
         "Trace one in N operations of each call site; reports estimate the totals", 0},
        {"watch", OPTION_WATCH, NULL, 0,
         "Show what the ranks do in a line on the launcher's terminal", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = run_option_parse,
        .args_doc = "[--] PROGRAM [ARGUMENT...]",
        .doc = "Run an MPI program with its windows served by Oriel.\vWorks with any launcher: "
               "mpiexec -n 4 oriel run ./app. Without --host, Oriel detects the MPI from the "
               "program's libraries or, for scripts, from the launcher's variables. ORIEL_BYPASS=1 "
               "runs the program without Oriel.",
    };
    memset(out, 0, sizeof *out);
    oriel_command_line_parse(&argp, argc, argv, out);
}

/* Returns an absolute path: the program may change its folder before MPI_Init reads it. */
static char *absolute_path(const char *path)
{
    char *here = path[0] == '/' ? NULL : getcwd(NULL, 0);
    char *whole = oriel_format("%s%s%s", here == NULL ? "" : here, here == NULL ? "" : "/", path);
    free(here);
    return whole;
}

/* "--stats out.json ./app": an optional value belongs to the option's own word. */
static void stats_file_check(const struct request *request)
{
    const char *file = request->program[0];
    const char *end = strrchr(file, '.');
    if (request->stats != NULL && request->stats[0] == '\0' && end != NULL &&
        strcmp(end, ".json") == 0)
        oriel_die("--stats %s: the file's name must follow \"=\": write --stats=%s", file, file);
}

static void stats_option_set(const char *file)
{
    const char *end = strrchr(file, '.');
    if (file[0] != '\0' && (end == NULL || strcmp(end, ".json") != 0))
        oriel_die("--stats=%s: the file's name must end in .json", file);
    char *path = file[0] == '\0' ? oriel_format("1") : absolute_path(file);
    oriel_env_set("ORIEL_STATS", path);
    free(path);

    /* The ranks cannot know it: their standard error is a pipe of the launcher. */
    char text[16];
    int columns = 0;
    oriel_job_terminal(&columns);
    columns = oriel_text_columns(columns);
    if (columns > 0 && getenv("ORIEL_STATS_WIDTH") == NULL) {
        snprintf(text, sizeof text, "%d", columns);
        oriel_env_set("ORIEL_STATS_WIDTH", text);
    }
}

/* The folder is opened in MPI_Init, when the current folder may be another one. Errors are
 * reported then, once for all ranks, and the program continues. */
static void trace_option_set(const char *folder)
{
    if (folder[0] == '\0')
        oriel_die("--trace: the folder's name is empty");
    (void)mkdir(folder, 0777);
    char *path = absolute_path(folder);
    oriel_env_set("ORIEL_TRACE", path);
    free(path);
}

/* Both need a trace, which a variable or a settings file may also request. */
static void trace_selection_set(const struct request *request)
{
    struct oriel_settings settings;
    struct oriel_options options;
    if (request->trace_filter == NULL && request->trace_sample == NULL)
        return;
    oriel_settings_open(&settings);
    oriel_options_read(NULL, &settings, &options);
    if (options.trace == NULL)
        oriel_die("%s needs --trace FOLDER",
                  request->trace_filter != NULL ? "--trace-filter" : "--trace-sample");
    if (request->trace_filter != NULL)
        oriel_env_set("ORIEL_TRACE_FILTER", request->trace_filter);
    if (request->trace_sample != NULL)
        oriel_env_set("ORIEL_TRACE_SAMPLE", request->trace_sample);
}

int oriel_command_run(int argc, char **argv)
{
    struct request request;
    run_request_parse(argc, argv, &request);
    stats_file_check(&request);
    if (request.stats != NULL)
        stats_option_set(request.stats);
    if (request.trace != NULL)
        trace_option_set(request.trace);
    trace_selection_set(&request);
    if (request.watch)
        oriel_watch_start();
    oriel_exec_program(&(struct oriel_exec_plan){.host = request.host}, request.program);
}
