/* The small helpers of the command line: refusing, memory, paths, and listening to another program.
 * None of them returns a failure that the caller could overlook.
 * Called by the subcommands. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *format, va_list args)
{
    enum { LEN_MAX = PIPE_BUF - 16, HALF = LEN_MAX / 2 };
    char line[PIPE_BUF]; /* written at once, so that the lines of several ranks do not mix */
    char *text;
    int len = vasprintf(&text, format, args);
    bool is_made = len >= 0;
    if (!is_made)
        len = snprintf(line, sizeof line, "oriel: out of memory\n");
    else if (len <= LEN_MAX)
        len = snprintf(line, sizeof line, "oriel: %s\n", text);
    else /* the middle is left out: the reason stands at the end, behind a long name */
        len = snprintf(line, sizeof line, "oriel: %.*s...%s\n", HALF, text, text + len - HALF);
    ssize_t written = write(STDERR_FILENO, line, (size_t)len);
    (void)written; /* nobody is left to tell when standard error is closed */
    if (is_made)
        free(text);
}

void oriel_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void oriel_die(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    exit(ORIEL_EXIT_REFUSED);
}

void *oriel_needed(void *memory)
{
    if (memory == NULL)
        oriel_die("out of memory");
    return memory;
}

void *oriel_alloc(size_t len_bytes)
{
    return oriel_needed(calloc(1, len_bytes));
}

char *oriel_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    return oriel_needed(len < 0 ? NULL : text);
}

void oriel_variable_set(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0)
        oriel_die("out of memory");
}

/* What ends in this function ends again: glibc goes on with the functions that are left, and the last status counts. */
static void output_end(void)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout))
        oriel_die("stdout: %s", errno != 0 ? strerror(errno) : "it could not be written whole");
}

void oriel_output_watch(void)
{
    if (atexit(output_end) != 0)
        oriel_die("out of memory");
}

void oriel_take_away(const char *path)
{
    struct stat status;
    char *file = realpath(path, NULL); /* a link to it was somebody's, and stays */
    if (file != NULL && stat(file, &status) == 0 && S_ISREG(status.st_mode))
        unlink(file);
    free(file);
}

static char *read_all(int fd)
{
    size_t room = 4096;
    size_t used = 0;
    char *text = oriel_alloc(room);
    for (;;) {
        ssize_t got = read(fd, text + used, room - used - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        used += (size_t)got;
        if (room - used < 2) {
            room *= 2;
            text = oriel_needed(realloc(text, room));
        }
    }
    text[used] = '\0';
    return text;
}

char *oriel_output_of(char *const argv[])
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    pid_t child = fork();
    if (child == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        unsetenv("LD_PRELOAD");
        if (dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDERR_FILENO) >= 0 &&
            dup2(ends[1], STDOUT_FILENO) >= 0)
            execv(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    char *text = child < 0 ? NULL : read_all(ends[0]);
    close(ends[0]);
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0) {
        free(text);
        return NULL;
    }
    return text;
}

const char *oriel_self(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len < 0)
        oriel_die("readlink /proc/self/exe: %s", strerror(errno));
    path[len] = '\0';
    return path;
}
