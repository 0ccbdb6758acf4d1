/* `oriel check`: executes the program with the checker preloaded before Oriel, or explains rules.
 * Options reach the checker as ORIEL_CHECK_* environment variables; options about rules are
 * answered here. `oriel check --helper` is the helper process (helper.c). */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/helper_process.h"
#include "cli/check/explain.h"
#include "cli/helper.h"
#include "cli/run/command_line.h"
#include "cli/run/exec_program.h"

struct request {
    const char *host;
    const char *json;
    const char *explain;
    bool no_fail, stacks, rules, page;
    char **program;
};

enum {
    OPTION_HOST = 256,
    OPTION_NO_FAIL,
    OPTION_JSON,
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
                request->no_fail || request->stacks;
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
static void json_file_check(const char *file)
{
    struct stat status;
    if (stat(file, &status) == 0 && S_ISFIFO(status.st_mode)) {
        if (access(file, W_OK) != 0)
            oriel_die("--json: %s: %s", file, strerror(errno));
        return;
    }
    int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        oriel_die("--json: %s: %s", file, strerror(errno));
    if (is_standard_stream(fd))
        oriel_die("--json: %s also receives the program's output; choose another file", file);
    close(fd);
}

/* The file is written at the end of the job, when the current folder may be another one. Errors are
 * better reported now. Findings of an earlier job are removed only once nothing else can refuse
 * this one (exec_program.c). */
static void json_file_set(const char *file)
{
    if (file[0] == '\0')
        oriel_die("--json: the file's name is empty");
    json_file_check(file);
    char *path = realpath(file, NULL);
    if (path == NULL) /* A pipe of the shell, or a deleted file, has only a descriptor. */
        oriel_die("--json: %s has no path that is valid at the end of the job; choose a file",
                  file);
    oriel_env_set("ORIEL_CHECK_JSON", path);
    free(path);
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

    if (request.json != NULL)
        json_file_set(request.json);
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
