/* `oriel run`: becomes the program, with liboriel.so preloaded.
 * Whatever stands in the way is refused before anything is started; the process itself turns into the program, so
 * launchers see the process that they started.
 * Called by main, once per rank. */
#include "cli/cli.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "cli/hosts.h"
#include "cli/preload.h"
#include "cli/program.h"

struct request {
    const char *host;
    char **program;
};

enum { OPTION_HOST = 256 };

static error_t option_take(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    switch (key) {
    case OPTION_HOST: request->host = argument; return 0;
    case ARGP_KEY_ARG:
        request->program = &state->argv[state->next - 1];
        state->next = state->argc; /* the rest is the program's */
        return 0;
    case ARGP_KEY_NO_ARGS: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void request_parse(int argc, char **argv, struct request *out)
{
    static const struct argp_option options[] = {
        {"host", OPTION_HOST, "HOST", 0, "The MPI that the program uses: mpich or openmpi", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = option_take,
        .args_doc = "[--] PROGRAM [ARGUMENT...]",
        .doc =
            "Run an MPI program with its windows served by Oriel.\v"
            "Under any launcher: mpiexec -n 4 oriel run ./app. Without --host, the program's libraries tell which MPI "
            "it uses, and for scripts the launcher's environment. ORIEL_BYPASS=1 runs the program as it is.",
    };
    memset(out, 0, sizeof *out);
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, out);
}

static _Noreturn void become(const struct oriel_program *program, char **argv)
{
    execvp(program->path, argv); /* execvp, since it also runs scripts that have no first line for it */
    oriel_die("%s: %s", program->path, strerror(errno));
}

static const struct oriel_host *host_choose(const char *wanted, const struct oriel_program *program)
{
    const struct oriel_host *chosen = wanted == NULL ? NULL : oriel_host_named(wanted);
    if (wanted != NULL && chosen == NULL)
        oriel_die("there is no host MPI called \"%s\"; Oriel knows mpich and openmpi", wanted);

    const struct oriel_host *linked = oriel_host_of_program(program);
    if (chosen != NULL && linked != NULL && chosen != linked)
        oriel_die("--host %s contradicts %s, which uses %s", chosen->name, program->path, linked->title);
    if (chosen == NULL)
        chosen = linked;
    if (chosen == NULL)
        chosen = oriel_host_of_launcher();
    if (chosen == NULL)
        chosen = oriel_host_only_built();
    if (chosen == NULL)
        oriel_die(
            "cannot tell which MPI %s uses: neither its libraries nor a launcher's environment say so; choose with "
            "--host mpich or --host openmpi",
            program->path);
    return chosen;
}

/* Whether the program is this very command, as in `oriel run oriel run app`: then the inner one does the work. */
static bool is_oriel(const struct oriel_program *program)
{
    struct stat theirs;
    struct stat ours;
    return stat(program->path, &theirs) == 0 && stat(oriel_self(), &ours) == 0 && theirs.st_dev == ours.st_dev &&
           theirs.st_ino == ours.st_ino;
}

int oriel_command_run(int argc, char **argv)
{
    struct request request;
    request_parse(argc, argv, &request);

    struct oriel_options options;
    oriel_options_read(NULL, &options); /* quietly: the library complains in the program itself */
    struct oriel_program program;
    oriel_program_find(request.program[0], &program);
    if (options.bypass || is_oriel(&program))
        become(&program, request.program);

    oriel_program_inspect(&program);
    const struct oriel_host *host = host_choose(request.host, &program);
    char liboriel[PATH_MAX];
    if (!oriel_host_library(host, liboriel))
        oriel_die("Oriel is not built for %s: %s is not there or cannot be read", host->title, liboriel);
    oriel_preload_set(&program, liboriel);
    become(&program, request.program);
}
