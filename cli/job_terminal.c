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

/* Commands first, then daemons. */
enum { COMMANDS = 5 };
static const char *const launchers[] = {"mpiexec", "mpirun", "orterun", "prterun",        "srun",
                                        "orted",   "prted",  "prte",    "hydra_pmi_proxy"};

static bool is_launcher(const char *name, size_t names)
{
    for (size_t i = 0; i < names; i++)
        if (strcmp(name, launchers[i]) == 0)
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
        if (is_launcher(name, sizeof launchers / sizeof launchers[0]))
            found = pid;
        else if (found != 0)
            break;
    }
    return found;
}

/* Appends to a file, whose end the launcher may not have reached. */
static int stderr_open(int process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/2", process);
    return open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

int oriel_job_launcher_open(int process, int *launcher)
{
    char name[32];
    int parent;
    if (!process_read(process, launcher, name) || !process_read(*launcher, &parent, name) ||
        !is_launcher(name, COMMANDS))
        return -1;
    int fd = stderr_open(*launcher);
    if (fd >= 0 && isatty(fd)) {
        close(fd);
        return -1;
    }
    return fd;
}

bool oriel_job_terminal(int *columns)
{
    struct winsize size;
    struct stat status;
    int fd = STDERR_FILENO;
    int launcher = 0;
    if (fstat(fd, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)))
        launcher = launcher_find();
    if (launcher != 0)
        fd = stderr_open(launcher);
    bool is_terminal = fd >= 0 && isatty(fd);
    if (is_terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        *columns = size.ws_col;
    if (fd >= 0 && fd != STDERR_FILENO)
        close(fd);
    return is_terminal;
}
