/* `oriel bench`: executes the benchmark's script, which is installed with Oriel's libraries. The
 * command checks for the script and for python3 first, and names what is missing. The script parses
 * the options. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The build folder and an installation have the same layout: bin/oriel and lib/oriel/bench. */
static char *script_path(void)
{
    char *folder = oriel_format("%s", oriel_executable_path());
    for (int up = 0; up < 2; up++)
        *strrchr(folder, '/') = '\0';
    char *path = oriel_format("%s/lib/oriel/bench/bench.py", folder);
    free(folder);
    return path;
}

/* Blocks termination signals until the script has its handlers: python3 would die of one during its
 * start. */
static void termination_signals_block(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
}

/* main opened /dev/null with O_CLOEXEC on closed standard streams. python3 would find them closed,
 * and has no object for a closed stream. This opens /dev/null for reading and writing on each of
 * them. */
static void closed_streams_open(void)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && nothing >= 0; fd++)
        if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0)
            dup2(nothing, fd);
    close(nothing);
}

int oriel_command_bench(int argc, char **argv)
{
    static char python[] = "python3", isolated[] = "-I", no_cache[] = "-B";
    char *script = script_path();
    if (access(script, R_OK) != 0)
        oriel_die("cannot find the benchmark: %s: %s", script, strerror(errno));

    char **command = oriel_alloc(((size_t)argc + 4) * sizeof *command);
    command[0] = python;
    command[1] = isolated; /* ignores the user's Python environment */
    command[2] = no_cache;
    command[3] = script;
    /* includes the NULL at the end */
    memcpy(command + 4, argv + 1, (size_t)argc * sizeof *command);
    closed_streams_open();
    termination_signals_block();
    execvp(command[0], command);
    if (errno == ENOENT)
        oriel_die(
            "oriel bench needs python3, which is not in PATH; on Debian: apt-get install python3");
    oriel_die("python3: %s", strerror(errno));
}
