/* `oriel bench`: becomes the benchmark's script, which lies beside Oriel's libraries.
 * What the script needs is looked for first, so that what is missing is named; the options are the script's.
 * Called by main; needs no launcher. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The build folder and an installation look alike: bin/oriel beside lib/oriel/bench. */
static char *script_path(void)
{
    char *folder = oriel_format("%s", oriel_self());
    for (int up = 0; up < 2; up++)
        *strrchr(folder, '/') = '\0';
    char *path = oriel_format("%s/lib/oriel/bench/bench.py", folder);
    free(folder);
    return path;
}

/* Until the script listens, a signal that wants an end waits: python3 would die of it in the middle of its beginning. */
static void signals_hold(void)
{
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
}

/* What stands for a standard stream that is closed would be closed for python3 again, which has no object for such a stream:
 * what leads to nothing, both ways, takes its place. */
static void streams_fill(void)
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
        oriel_die("the benchmark is not there: %s: %s", script, strerror(errno));

    char **command = oriel_alloc(((size_t)argc + 4) * sizeof *command);
    command[0] = python;
    command[1] = isolated; /* nothing of the user's own Python takes part */
    command[2] = no_cache;
    command[3] = script;
    memcpy(command + 4, argv + 1, (size_t)argc * sizeof *command); /* with the NULL at the end */
    streams_fill();
    signals_hold();
    execvp(command[0], command);
    if (errno == ENOENT)
        oriel_die(
            "oriel bench needs python3, which is not in PATH; on Debian: apt-get install python3");
    oriel_die("python3: %s", strerror(errno));
}
