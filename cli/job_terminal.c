/* Finds the launcher among this process's ancestors, and looks at its standard error. On another
 * node than the launcher's there is only a daemon, and no terminal. */
#include "cli/job_terminal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANCESTORS = 16 };

/* Reads the parent and the name of a process, without the name's extension. */
static bool process_read(int pid, int *parent, char name[32])
{
    char path[64];
    char bytes[256];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, bytes, sizeof bytes - 1);
    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return false;
    bytes[len] = '\0';
    const char *begin = strchr(bytes, '(');
    const char *end = strrchr(bytes, ')');
    if (begin == NULL || end == NULL || sscanf(end + 1, " %*c %d", parent) != 1)
        return false;
    snprintf(name, 32, "%.*s", (int)(end - begin - 1), begin + 1);
    name[strcspn(name, ".")] = '\0';
    return true;
}

static bool is_launcher(const char *name)
{
    static const char *const names[] = {"mpiexec", "mpirun", "orterun", "prterun",        "orted",
                                        "prted",   "prte",   "srun",    "hydra_pmi_proxy"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The launcher: the last of the first unbroken row of launchers and their daemons; 0: none. */
static int launcher_find(void)
{
    int found = 0;
    int parent = 0;
    char name[32];
    for (int pid = getppid(), i = 0; pid > 1 && i < ANCESTORS; pid = parent, i++) {
        if (!process_read(pid, &parent, name))
            break;
        if (is_launcher(name))
            found = pid;
        else if (found != 0)
            break;
    }
    return found;
}

bool oriel_job_terminal(int *columns)
{
    struct winsize size;
    struct stat status;
    char path[64];
    int fd = STDERR_FILENO;
    int launcher = 0;
    if (fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
        launcher = launcher_find();
    if (launcher != 0) {
        snprintf(path, sizeof path, "/proc/%d/fd/2", launcher);
        fd = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    }
    bool is_terminal = fd >= 0 && isatty(fd);
    if (is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        *columns = size.ws_col;
    if (fd >= 0 && fd != STDERR_FILENO)
        close(fd);
    return is_terminal;
}
