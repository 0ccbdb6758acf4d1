/* `oriel run`: executes the program with liboriel.so preloaded. This file parses the options;
 * exec_program.c does the rest. */
#include "cli/cli.h"

#include <argp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/counters.h"
#include "cli/job_terminal.h"
#include "cli/run/command_line.h"
#include "cli/run/exec_program.h"
#include "cli/run/watch.h"
#include "cli/statistics.h"
#include "cli/text_style.h"

struct request {
    const char *host;
    const char *trace;
    const char *stats;
    bool watch;
    char **program;
};

enum { OPTION_HOST = 256, OPTION_STATS, OPTION_COUNTERS, OPTION_TRACE, OPTION_WATCH };

static error_t run_option_parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case OPTION_HOST: request->host = argument; return 0;
    case OPTION_TRACE: request->trace = argument; return 0;
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

int oriel_command_run(int argc, char **argv)
{
    struct request request;
    run_request_parse(argc, argv, &request);
    stats_file_check(&request);
    if (request.stats != NULL)
        stats_option_set(request.stats);
    if (request.trace != NULL)
        trace_option_set(request.trace);
    if (request.watch)
        oriel_watch_start();
    oriel_exec_program(&(struct oriel_exec_plan){.host = request.host}, request.program);
}
