/* `oriel check`: executes the program with the checker preloaded before Oriel, or explains rules.
 * Options reach the checker as ORIEL_CHECK_* environment variables; options about rules are
 * answered here. `oriel check --helper` is the helper process (helper.c). */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/helper_process.h"
#include "cli/check/check_rules.h"
#include "cli/check/explain.h"
#include "cli/check/standing.h"
#include "cli/helper.h"
#include "cli/job_terminal.h"
#include "cli/run/command_line.h"
#include "cli/run/exec_program.h"
#include "cli/text_style.h"

struct request {
    const char *host;
    const char *json, *sarif, *junit;
    const char *suppress, *baseline, *only, *ignore;
    const char *color;
    const char *explain;
    bool no_fail, stacks, rules, page;
    char **program;
};

enum {
    OPTION_HOST = 256,
    OPTION_NO_FAIL,
    OPTION_JSON,
    OPTION_SARIF,
    OPTION_JUNIT,
    OPTION_SUPPRESS,
    OPTION_BASELINE,
    OPTION_ONLY,
    OPTION_IGNORE,
    OPTION_COLOR,
    OPTION_STACKS,
    OPTION_EXPLAIN,
    OPTION_RULES,
    OPTION_PAGE
};

static error_t check_option_parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case OPTION_HOST: request->host = argument; return 0;
    case OPTION_NO_FAIL: request->no_fail = true; return 0;
    case OPTION_JSON: request->json = argument; return 0;
    case OPTION_SARIF: request->sarif = argument; return 0;
    case OPTION_JUNIT: request->junit = argument; return 0;
    case OPTION_SUPPRESS: request->suppress = argument; return 0;
    case OPTION_BASELINE: request->baseline = argument; return 0;
    case OPTION_ONLY: request->only = argument; return 0;
    case OPTION_IGNORE: request->ignore = argument; return 0;
    case OPTION_COLOR: request->color = argument; return 0;
    case OPTION_STACKS: request->stacks = true; return 0;
    case OPTION_EXPLAIN: request->explain = argument; return 0;
    case OPTION_RULES: request->rules = true; return 0;
    case OPTION_PAGE: request->page = true; return 0;
    case ARGP_KEY_ARG:
        request->program = &state->argv[state->next - 1];
        state->next = state->argc; /* the remaining arguments are the program's */
        return 0;
    case ARGP_KEY_NO_ARGS:
        if (request->explain == NULL && !request->rules && !request->page)
            oriel_program_missing(state);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void check_request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"host", OPTION_HOST, "HOST", 0, "The MPI that the program uses: mpich, openmpi or abi", 0},
        {"no-fail", OPTION_NO_FAIL, NULL, 0,
         "Keep the program's exit status when there are findings", 0},
        {"json", OPTION_JSON, "FILE", 0, "Also write the findings to FILE as JSON", 0},
        {"sarif", OPTION_SARIF, "FILE", 0, "Also write them as SARIF 2.1, for code scanners", 0},
        {"junit", OPTION_JUNIT, "FILE", 0, "Also write the findings to FILE as JUnit tests", 0},
        {"suppress", OPTION_SUPPRESS, "FILE", 0, "Read from FILE which findings do not count", 0},
        {"baseline", OPTION_BASELINE, "FILE", 0,
         "Count only findings that FILE, written by --json, does not have", 0},
        {"only", OPTION_ONLY, "RULES", 0, "Report only these rules, for example C*,E13", 0},
        {"ignore", OPTION_IGNORE, "RULES", 0, "Do not report these rules", 0},
        {"color", OPTION_COLOR, "WHEN", 0,
         "Whether findings have colours: auto (on a terminal), always or never", 0},
        {"stacks", OPTION_STACKS, NULL, 0, "Show the call stack of each finding", 0},
        {"explain", OPTION_EXPLAIN, "RULE", 0, "Explain a rule, for example C1", 0},
        {"rules", OPTION_RULES, NULL, 0, "List the rules", 0},
        {"rules-page", OPTION_PAGE, NULL, OPTION_HIDDEN, "Print docs/reference/findings.md", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = check_option_parse,
        .args_doc = "[--] PROGRAM [ARGUMENT...]",
        /* Two more usage lines; argp would add "[OPTION...]" to each. */
        .doc = "  or:  oriel check --explain RULE\n  or:  oriel check --rules\nRun an MPI program "
               "and report errors in its one-sided communication.\vWorks with any launcher: "
               "mpiexec -n 4 oriel check ./app. The program continues after a finding. A summary "
               "follows at its end; the exit status is 86 if there are findings and the program's "
               "own status is 0. Compile with -g to see source lines, and with -fsanitize=thread "
               "to check the program's own loads and stores. docs/guides/checking.md describes the "
               "checks.",
    };
    memset(out, 0, sizeof *out);
    oriel_command_line_parse(&argp, argc, argv, out);
}

/* Options that ask about rules exclude those that run a program. */
static bool options_conflict(const struct request *request)
{
    int questions = (request->explain != NULL) + request->rules + request->page;
    bool runs = request->program != NULL || request->host != NULL || request->json != NULL ||
                request->sarif != NULL || request->junit != NULL || request->suppress != NULL ||
                request->baseline != NULL || request->only != NULL || request->ignore != NULL ||
                request->color != NULL || request->no_fail || request->stacks;
    return questions > 1 || (questions == 1 && runs);
}

/* True when the file is also standard output or standard error. */
static bool is_standard_stream(int fd)
{
    struct stat file, stream;
    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
        return false;
    for (int out = STDOUT_FILENO; out <= STDERR_FILENO; out++)
        if (fstat(out, &stream) == 0 && file.st_dev == stream.st_dev &&
            file.st_ino == stream.st_ino)
            return true;
    return false;
}

/* Checks the file by opening it. A FIFO is not opened: its reader would see an end of file when
 * this process closes it. */
static void output_file_check(const char *option, const char *file)
{
    struct stat status;
    if (stat(file, &status) == 0 && S_ISFIFO(status.st_mode)) {
        if (access(file, W_OK) != 0)
            oriel_die("%s: %s: %s", option, file, strerror(errno));
        return;
    }
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        oriel_die("%s: %s: %s", option, file, strerror(errno));
    if (is_standard_stream(fd))
        oriel_die("%s: %s also receives the program's output; choose another file", option, file);
    close(fd);
}

/* The file is written at the end of the job, when the current folder may be another one. Errors are
 * better reported now. Findings of an earlier job are removed only once nothing else can refuse
 * this one (exec_program.c). */
static void output_file_set(const char *option, const char *variable, const char *file)
{
    if (file == NULL)
        return;
    if (file[0] == '\0')
        oriel_die("%s: the file's name is empty", option);
    output_file_check(option, file);
    char *path = realpath(file, NULL);
    if (path == NULL) /* A pipe of the shell, or a deleted file, has only a descriptor. */
        oriel_die("%s: %s has no path that is valid at the end of the job; choose a file", option,
                  file);
    oriel_env_set(variable, path);
    free(path);
}

/* Refuses a file with errors, before the program runs. problems: NULL for none. */
static void input_file_set(const char *option, const char *variable, const char *file,
                           char *problems)
{
    if (problems != NULL)
        oriel_die("%s: %s", option, problems);
    char *path = realpath(file, NULL);
    if (path == NULL)
        oriel_die("%s: %s: %s", option, file, strerror(errno));
    oriel_env_set(variable, path);
    free(path);
}

/* The file would be empty before it is read. */
static void baseline_check(const char *baseline, const char *json)
{
    struct stat read, written;
    if (baseline != NULL && json != NULL && stat(baseline, &read) == 0 &&
        stat(json, &written) == 0 && read.st_dev == written.st_dev && read.st_ino == written.st_ino)
        oriel_die("--baseline and --json name the same file, %s; write the new findings to another",
                  json);
}

static void counting_set(const struct request *request)
{
    struct oriel_suppressions read;
    if (request->suppress != NULL)
        input_file_set("--suppress", "ORIEL_CHECK_SUPPRESS", request->suppress,
                       oriel_suppressions_read(request->suppress, &read));
    if (request->baseline != NULL)
        input_file_set("--baseline", "ORIEL_CHECK_BASELINE", request->baseline,
                       oriel_baseline_read(request->baseline));
    if (request->only != NULL) {
        oriel_check_rule_list_check("--only", request->only);
        oriel_env_set("ORIEL_CHECK_ONLY", request->only);
    }
    if (request->ignore != NULL) {
        oriel_check_rule_list_check("--ignore", request->ignore);
        oriel_env_set("ORIEL_CHECK_IGNORE", request->ignore);
    }
}

/* Colour and width of the findings, which the ranks cannot know: their standard error is a pipe of
 * the launcher. */
static void style_set(const char *color)
{
    char columns_text[16];
    int columns = 0;
    bool is_terminal = oriel_job_terminal(&columns);
    oriel_env_set("ORIEL_CHECK_COLOR", oriel_color_choose(color, is_terminal) ? "always" : "never");
    columns = oriel_text_columns(columns);
    if (columns > 0) {
        snprintf(columns_text, sizeof columns_text, "%d", columns);
        oriel_env_set("ORIEL_CHECK_WIDTH", columns_text);
    }
}

int oriel_command_check(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], ORIEL_HELPER_OPTION) == 0)
        return oriel_helper_serve(argv[2]);

    struct request request;
    check_request_parse(argc, argv, &request);
    if (options_conflict(&request))
        oriel_die("--explain and --rules allow no other arguments");
    if (request.explain != NULL)
        return oriel_explain_rule(request.explain);
    if (request.rules || request.page)
        return request.page ? oriel_explain_page() : oriel_explain_list();

    baseline_check(request.baseline, request.json);
    output_file_set("--json", "ORIEL_CHECK_JSON", request.json);
    output_file_set("--sarif", "ORIEL_CHECK_SARIF", request.sarif);
    output_file_set("--junit", "ORIEL_CHECK_JUNIT", request.junit);
    counting_set(&request);
    style_set(request.color);
    /* A lock call then returns only when the lock is acquired. So the checker can order it after
     * the previous holder's release. */
    oriel_env_set("ORIEL_LOCK", "eager");
    if (request.no_fail)
        oriel_env_set("ORIEL_CHECK_FAIL", "0");
    if (request.stacks)
        oriel_env_set("ORIEL_CHECK_STACKS", "1");
    oriel_exec_program(&(struct oriel_exec_plan){.host = request.host, .checked = true},
                       request.program);
}
