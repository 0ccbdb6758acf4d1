/* `oriel demo`: runs an example program on each host, alone and then through Oriel, and prints the
 * program's own times side by side. Both sides of a row have the same ranks and the same work. The
 * command fails only when a job through Oriel fails; what the hosts do alone is only printed. */
#include "cli/cli.h"

#include <argp.h>
#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/demo/timed_job.h"
#include "cli/figures.h"
#include "cli/hosts.h"
#include "cli/option_parser.h"

#define PASSES "300" /* over the text: MPICH alone needs 2 s with 2 ranks on idle cores */

enum {
    LIMIT_ALONE_S = 5,
    LIMIT_ORIEL_S = 60, /* only reached when something is wrong */
    RANKS_MOST = 16,    /* with more, the start of the ranks would take longest */
    TRIED_RANKS = 2,    /* in the commands to try next */
    CELL_BYTES = 64,
    NAME_WIDTH = 22,
    CELL_WIDTH = 33
};

struct request {
    const struct oriel_host *host; /* NULL: all */
    int ranks;                     /* 0: one per core, then two per core */
};

/* A host with all that a job needs. */
struct stage {
    const struct oriel_host *host;
    char *launcher, *program, *text;
};

enum { OPTION_HOST = 256, OPTION_RANKS };

static error_t demo_option_parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    char *end;
    switch (key) {
    case OPTION_HOST:
        request->host = oriel_host_named(argument);
        if (request->host == NULL || request->host->variables[0] == NULL)
            oriel_die("unknown host \"%s\"; the hosts are mpich and openmpi", argument);
        return 0;
    case OPTION_RANKS:
        request->ranks = (int)strtol(argument, &end, 10);
        if (!isdigit((unsigned char)argument[0]) || *end != '\0' || request->ranks < 1 ||
            request->ranks > 10000)
            oriel_die("--ranks %s: give a number from 1 to 10000", argument);
        return 0;
    case ARGP_KEY_ARG: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void demo_request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"host", OPTION_HOST, "HOST", 0, "mpich or openmpi (default: each of them)", 0},
        {"ranks", OPTION_RANKS, "N", 0,
         "Ranks of each job (default: one per core, then two per core)", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = demo_option_parse,
        .doc = "Compare a small MPI program on each host MPI alone and with Oriel.\vThe program "
               "counts the words of a text in a hash table that is distributed over all ranks, "
               "and verifies the result. A host alone has 5 seconds for it. The status is 1 when "
               "a job with Oriel fails. The program is one of the examples; its source is "
               "PREFIX/share/oriel/examples/wordcount.c.",
    };
    *out = (struct request){.host = NULL};
    oriel_arguments_parse(&argp, argc, argv, false, out);
}

/* --- what a job needs --- */

static char *shell_output(const char *script, const char *argument)
{
    char shell[] = "/bin/sh";
    char option[] = "-c";
    return oriel_command_output((char *[]){shell, option, (char *)script, (char *)argument, NULL});
}

/* The name of the host's launcher in PATH, or NULL. Debian's launchers have a suffix; elsewhere the
 * version identifies the only one. */
static char *launcher_find(const struct oriel_host *host)
{
    bool is_openmpi = strcmp(host->name, "openmpi") == 0;
    char *name = oriel_format("mpiexec.%s", host->name);
    char *path = shell_output("command -v \"$0\"", name);
    if (path != NULL) {
        free(path);
        return name;
    }
    free(name);
    char *version = shell_output("mpiexec --version", NULL);
    bool is_hosts =
        version != NULL && (is_openmpi ? strstr(version, "Open MPI") || strstr(version, "OpenRTE")
                                       : strstr(version, "HYDRA") != NULL);
    free(version);
    return is_hosts ? oriel_format("mpiexec") : NULL;
}

/* The build folder and an installation have the same layout. */
static char *prefix_path(void)
{
    char *prefix = oriel_format("%s", oriel_executable_path());
    for (int up = 0; up < 2; up++)
        *strrchr(prefix, '/') = '\0';
    return prefix;
}

/* Returns "", or why there can be no jobs on this host; to be freed. */
static char *stage_find(const struct oriel_host *host, struct stage *out)
{
    char library[PATH_MAX];
    char *prefix = prefix_path();
    *out = (struct stage){
        .host = host,
        .launcher = launcher_find(host),
        .program = oriel_format("%s/lib/oriel/%s/examples/wordcount", prefix, host->name),
        .text = oriel_format("%s/share/oriel/examples/wordcount.c", prefix),
    };
    free(prefix);
    if (!oriel_host_library(host, "liboriel.so", library))
        return oriel_format("this oriel is built without %s; in its source: scripts/install-deps "
                            "build %s, then make",
                            host->title, host->name);
    if (out->launcher == NULL)
        return oriel_format("%s has no mpiexec in PATH; on Debian: apt-get install %s", host->title,
                            strcmp(host->name, "openmpi") == 0 ? "openmpi-bin" : "mpich");
    if (access(out->program, X_OK) != 0)
        return oriel_format("the demo's program is missing: %s: %s", out->program, strerror(errno));
    if (access(out->text, R_OK) != 0)
        return oriel_format("the demo's text is missing: %s: %s", out->text, strerror(errno));
    return oriel_format("%s", "");
}

static void stage_free(struct stage *stage)
{
    free(stage->launcher);
    free(stage->program);
    free(stage->text);
}

static int cores_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    return (int)sysconf(_SC_NPROCESSORS_ONLN); /* more than a cpu_set_t holds */
}

/* --- jobs --- */

static void job_run(const struct stage *stage, bool through_oriel, int ranks,
                    struct oriel_timed_job *out)
{
    static char as_root[] = "OMPI_ALLOW_RUN_AS_ROOT=1";
    static char as_root_confirmed[] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    static char yield[] = "OMPI_MCA_mpi_yield_when_idle=1";
    /* Open MPI refuses root without these; other hosts do not read them. */
    char *settings[] = {as_root, as_root_confirmed, ranks > cores_count() ? yield : NULL, NULL};
    char option_n[] = "-n";
    char run[] = "run";
    char top[] = "--top=1";
    char repeat[] = "--repeat=" PASSES;
    char number[16];
    snprintf(number, sizeof number, "%d", ranks);
    char oversubscribe[] = "--oversubscribe"; /* the settings' names differ between versions */
    char *command[11] = {stage->launcher};
    char **end = command + 1;
    if (strcmp(stage->host->name, "openmpi") == 0)
        *end++ = oversubscribe;
    *end++ = option_n;
    *end++ = number;
    if (through_oriel) {
        *end++ = (char *)oriel_executable_path();
        *end++ = run;
    }
    char *const program[] = {stage->program, top, repeat, stage->text, NULL};
    memcpy(end, program, sizeof program);
    oriel_timed_job_run(command, settings, "counting ",
                        through_oriel ? LIMIT_ORIEL_S : LIMIT_ALONE_S, out);
}

/* The program's own time; negative when it has not confirmed its result. A job may be late after
 * that: some hosts need long for the end of many ranks. */
static double counted_s(const struct oriel_timed_job *job)
{
    double seconds = -1;
    const char *line = strstr(job->output, "\nseconds ");
    if ((job->status != 0 && !job->is_late) || line == NULL ||
        strstr(job->output, "confirmed by a sequential count") == NULL ||
        sscanf(line, " seconds %lf", &seconds) != 1)
        return -1;
    return seconds > 1e-6 ? seconds : 1e-6;
}

static void cell_describe(const struct oriel_timed_job *job, int limit_s, char out[CELL_BYTES])
{
    double seconds = counted_s(job);
    /* Open MPI prints a backtrace. */
    char function[40] = "";
    const char *frame = strstr(job->output, "(PMPI_");
    if (frame != NULL)
        sscanf(frame, "(PMPI_%39[A-Za-z_]", function);
    if (seconds >= 0)
        snprintf(out, CELL_BYTES, "%.*f s", seconds < 1 ? 3 : 2, seconds);
    else if (job->is_late)
        snprintf(out, CELL_BYTES, "not done after %d s", limit_s);
    else if (strstr(job->output, "WRONG") != NULL)
        snprintf(out, CELL_BYTES, "a wrong result");
    else if (function[0] != '\0')
        snprintf(out, CELL_BYTES, "crashed in MPI_%s", function);
    else if (job->status > 128 && job->status < 128 + NSIG)
        snprintf(out, CELL_BYTES, "crashed: %s", strsignal(job->status - 128));
    else
        snprintf(out, CELL_BYTES, "failed with status %d", job->status);
}

/* How many times as fast Oriel is. Of a job without a time of its own, only the limit is known. */
static void ratio_print(const struct oriel_timed_job *alone, const struct oriel_timed_job *oriel)
{
    double times = counted_s(alone) / counted_s(oriel);
    double least = LIMIT_ALONE_S / counted_s(oriel);
    if (times > 0)
        printf("%.*f times as fast", times < 10 ? 1 : 0, times);
    else if (alone->is_late && least > 1)
        printf("more than %.0f times as fast", least);
}

/* Prints a row, each cell when it is known. Returns false when the job with Oriel failed. */
static bool row_run(const struct stage *stage, int ranks, int cores)
{
    struct oriel_timed_job *alone = oriel_alloc(2 * sizeof *alone);
    struct oriel_timed_job *oriel = alone + 1;
    char cell[CELL_BYTES];

    snprintf(cell, sizeof cell, "%d rank%s on %d core%s", ranks, oriel_plural(ranks), cores,
             oriel_plural(cores));
    printf("  %-*s", NAME_WIDTH, cell);
    fflush(stdout);
    job_run(stage, false, ranks, alone);
    cell_describe(alone, LIMIT_ALONE_S, cell);
    printf("%-*s", CELL_WIDTH, cell);
    fflush(stdout);
    job_run(stage, true, ranks, oriel);
    cell_describe(oriel, LIMIT_ORIEL_S, cell);
    printf("%-10s ", cell);
    bool is_good = counted_s(oriel) >= 0;
    if (is_good)
        ratio_print(alone, oriel);
    else
        printf("\n%s", oriel->output);
    printf("\n");
    fflush(stdout);
    free(alone);
    return is_good;
}

/* --- the text around the table --- */

static void heading_print(const struct stage *stage, int cores)
{
    int running = 0;
    FILE *load = fopen("/proc/loadavg", "re");
    if (load != NULL && fscanf(load, "%*s %*s %*s %d", &running) == 1)
        running--; /* without this thread */
    if (load != NULL)
        fclose(load);
    printf("A plain MPI program counts the words of its own source " PASSES " times, in a hash "
           "table that is\n"
           "distributed over all ranks: compare_and_swap, put, get and fetch_and_op on single "
           "words.\n"
           "Each cell is the program's own time; it has checked its result by a sequential count. "
           "The host\n"
           "alone has %d s.\n"
           "  source   %s\n",
           LIMIT_ALONE_S, stage->text);
    if (running >= cores)
        printf("  load     running threads of other programs: %d; they slow both columns\n",
               running);
}

static void oversubscription_print(void)
{
    printf("\nWith more ranks than cores, a rank that waits holds the core that another rank "
           "needs. Oriel's\n"
           "waits yield it soon; MPICH's do not; Open MPI's do, because the demo sets "
           "mpi_yield_when_idle.\n"
           "For the cost of the calls, compare the rows with one rank per core. A program gains "
           "as far as\n"
           "it consists of such calls.\n");
}

/* The installation's prefix as the user wrote it, if that leads here; else its whole path. */
static char *prefix_as_written(void)
{
    static const char end[] = "/bin/oriel";
    char *prefix = oriel_format("%s", program_invocation_name);
    size_t len = strlen(prefix);
    if (len > sizeof end - 1 && strcmp(prefix + len - (sizeof end - 1), end) == 0) {
        prefix[len - (sizeof end - 1)] = '\0';
        char *text = oriel_format("%s/share/oriel/examples/wordcount.c", prefix);
        bool is_there = access(text, R_OK) == 0;
        free(text);
        if (is_there)
            return prefix;
    }
    free(prefix);
    return prefix_path();
}

/* The commands work as printed. */
static void suggestions_print(const struct stage *stage)
{
    bool is_openmpi = strcmp(stage->host->name, "openmpi") == 0;
    char *prefix = prefix_as_written();
    char *start =
        oriel_format("%s%s%s -n %d %s", stage->launcher,
                     is_openmpi && geteuid() == 0 ? " --allow-run-as-root" : "",
                     is_openmpi ? " --oversubscribe" : "", TRIED_RANKS, program_invocation_name);
    char *program = oriel_format("\\\n      %s/lib/oriel/%s/examples/wordcount "
                                 "%s/share/oriel/examples/wordcount.c",
                                 prefix, stage->host->name, prefix);
    printf("\nTry next, first as it is, then with your own program in place of wordcount:\n"
           "\n"
           "  # run it with Oriel, and count what its windows do\n"
           "  %s run --stats %s\n"
           "  # find errors in its one-sided communication\n"
           "  %s check %s\n"
           "  # record its calls, and see where the time goes\n"
           "  %s run --trace oriel-demo %s\n"
           "  %s report oriel-demo\n",
           start, program, start, program, start, program, program_invocation_name);
    free(program);
    free(start);
    free(prefix);
}

/* --- all of it --- */

static bool host_run(const struct stage *stage, const struct request *request, int cores)
{
    char *title = oriel_format("%s alone", stage->host->title);
    printf("\n  %-*s%-*s%s\n", NAME_WIDTH, "", CELL_WIDTH, title, "with Oriel");
    free(title);
    if (request->ranks > 0)
        return row_run(stage, request->ranks, cores);
    if (cores > RANKS_MOST)
        return row_run(stage, RANKS_MOST, cores);
    int ranks = cores > 1 ? cores : 2;
    bool is_good = row_run(stage, ranks, cores);
    return row_run(stage, 2 * ranks, cores) && is_good;
}

int oriel_command_demo(int argc, char **argv)
{
    struct request request;
    struct stage first = {.host = NULL};
    bool is_good = true;
    int cores = cores_count();

    demo_request_parse(argc, argv, &request);
    for (size_t i = 0; i < oriel_hosts_count; i++) {
        struct stage stage;
        const bool has_launcher = oriel_hosts[i].variables[0] != NULL;
        if (!has_launcher || (request.host != NULL && request.host != &oriel_hosts[i]))
            continue;
        char *reason = stage_find(&oriel_hosts[i], &stage);
        if (reason[0] != '\0') {
            if (request.host != NULL)
                oriel_die("%s", reason);
            oriel_warning_print("%s", reason);
            stage_free(&stage);
        } else {
            if (first.host == NULL)
                heading_print(&stage, cores);
            is_good = host_run(&stage, &request, cores) && is_good;
            if (first.host == NULL)
                first = stage;
            else
                stage_free(&stage);
        }
        free(reason);
    }
    if (first.host == NULL)
        oriel_die("the demo needs MPICH or Open MPI, and an oriel that is built for it");
    if (request.ranks > cores || (request.ranks == 0 && cores <= RANKS_MOST))
        oversubscription_print();
    suggestions_print(&first);
    stage_free(&first);
    return is_good ? 0 : 1;
}
