/* A launcher starts processes of its own, which survive it when it is killed. They then become
 * children of this process (a subreaper), which ends them. */
#include "cli/demo/timed_job.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/jobs.h"

enum { POLL_MS = 20, LIMIT_START_S = 60, LIMIT_END_S = 3, ENDS_MOST = 200 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static _Noreturn void child_main(char *const command[], char *const settings[], int fd)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* on which the launcher ends its ranks */
    for (char *const *setting = settings; *setting != NULL; setting++)
        putenv(*setting);
    if (dup2(nothing, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0 &&
        dup2(fd, STDERR_FILENO) >= 0)
        execvp(command[0], command);
    dprintf(fd, "%s: %s\n", command[0], strerror(errno));
    _exit(127);
}

/* Reads what there is. Returns false at the end of the output. */
static bool output_read(int fd, char *output, size_t *used)
{
    char chunk[4096];
    for (;;) {
        ssize_t len = read(fd, chunk, sizeof chunk);
        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return len < 0 && errno == EAGAIN;
        size_t room = ORIEL_TIMED_JOB_OUTPUT - 1 - *used;
        size_t kept = (size_t)len < room ? (size_t)len : room;
        memcpy(output + *used, chunk, kept);
        *used += kept;
    }
}

/* Reads the output until the launcher has ended; returns false when the time is over first. */
static bool launcher_wait(pid_t launcher, int fd, const char *beginning, int limit_s, size_t *used,
                          struct oriel_timed_job *out)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    double deadline_s = now_s() + (beginning != NULL ? LIMIT_START_S : limit_s);
    for (;;) {
        bool has_ended = waitpid(launcher, &out->status, WNOHANG) == launcher;
        if (!output_read(fd, out->output, used))
            ready.fd = -1;
        if (beginning != NULL && strstr(out->output, beginning) != NULL) {
            beginning = NULL;
            deadline_s = now_s() + limit_s;
        }
        if (has_ended)
            return true;
        if (now_s() > deadline_s)
            return false;
        poll(&ready, 1, POLL_MS);
    }
}

static void children_kill(void)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]) &&
            oriel_process_parent(atoi(entry->d_name)) == getpid())
            kill(atoi(entry->d_name), SIGKILL);
    closedir(proc);
}

/* Ends the processes that the launcher left. Those that they leave follow. */
static void leftovers_end(void)
{
    for (int tries = 0; tries < ENDS_MOST; tries++) {
        pid_t ended;
        while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
            ;
        if (ended < 0)
            return;
        children_kill();
        poll(NULL, 0, POLL_MS);
    }
}

void oriel_timed_job_run(char *const command[], char *const settings[], const char *beginning,
                         int limit_s, struct oriel_timed_job *out)
{
    int ends[2];
    size_t used = 0;
    memset(out, 0, sizeof *out);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || pipe2(ends, O_CLOEXEC) != 0)
        oriel_die("%s cannot be started: %s", command[0], strerror(errno));
    pid_t launcher = fork();
    if (launcher < 0)
        oriel_die("%s cannot be started: %s", command[0], strerror(errno));
    if (launcher == 0)
        child_main(command, settings, ends[1]);
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);

    if (!launcher_wait(launcher, ends[0], beginning, limit_s, &used, out)) {
        out->is_late = true;
        kill(launcher, SIGTERM);
        if (!launcher_wait(launcher, ends[0], NULL, LIMIT_END_S, &used, out))
            kill(launcher, SIGKILL);
    }
    leftovers_end();
    close(ends[0]);
    out->status = WIFSIGNALED(out->status) ? 128 + WTERMSIG(out->status) : WEXITSTATUS(out->status);
}
