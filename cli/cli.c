/* Small helpers of the command: error messages, memory, paths, and the output of other programs. No
 * helper returns a failure that the caller could overlook. */
#include "cli/cli.h"

#include "base/log.h"

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

/* One line, without the prefix. */
static void message_format(char out[ORIEL_LOG_REFUSAL_BYTES], const char *format, va_list args)
{
    enum { HALF = (ORIEL_LOG_REFUSAL_BYTES - 4) / 2 };
    char *text;
    int len = vasprintf(&text, format, args);
    if (len < 0)
        snprintf(out, ORIEL_LOG_REFUSAL_BYTES, "out of memory");
    else if (len < ORIEL_LOG_REFUSAL_BYTES)
        snprintf(out, ORIEL_LOG_REFUSAL_BYTES, "%s", text);
    else
        /* Omits the middle: the reason is at the end, after a long name. */
        snprintf(out, ORIEL_LOG_REFUSAL_BYTES, "%.*s...%s", HALF, text, text + len - HALF);
    if (len >= 0)
        free(text);
}

void oriel_warning_print(const char *format, ...)
{
    char text[ORIEL_LOG_REFUSAL_BYTES];
    char line[PIPE_BUF]; /* One write, because several ranks may print at the same time */
    va_list args;
    va_start(args, format);
    message_format(text, format, args);
    va_end(args);
    oriel_log_write(line, (size_t)snprintf(line, sizeof line, "oriel: %s\n", text));
}

void oriel_die(const char *format, ...)
{
    char text[ORIEL_LOG_REFUSAL_BYTES];
    va_list args;
    va_start(args, format);
    message_format(text, format, args);
    va_end(args);
    oriel_log_refusal(text);
    exit(ORIEL_EXIT_REFUSED);
}

void *oriel_alloc_checked(void *memory)
{
    if (memory == NULL)
        oriel_die("out of memory");
    return memory;
}

void *oriel_alloc(size_t len_bytes)
{
    return oriel_alloc_checked(calloc(1, len_bytes));
}

char *oriel_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int len = vasprintf(&text, format, args);
    va_end(args);
    return oriel_alloc_checked(len < 0 ? NULL : text);
}

void oriel_env_set(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0)
        oriel_die("out of memory");
}

/* An earlier write may have failed unnoticed; another one then shows why. oriel_die calls exit
 * inside an exit handler. glibc then runs the remaining handlers, and the last status counts. */
static void stdout_flush_at_exit(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    if (errno == 0 && write(STDOUT_FILENO, "\n", 1) > 0)
        oriel_die("stdout: a write was incomplete");
    oriel_die("stdout: %s", strerror(errno));
}

void oriel_stdout_check_at_exit(void)
{
    if (atexit(stdout_flush_at_exit) != 0)
        oriel_die("out of memory");
}

void oriel_file_discard(const char *path)
{
    struct stat status;
    /* Removes the file and keeps a symbolic link to it, which the user may have made. */
    char *file = realpath(path, NULL);
    if (file != NULL && stat(file, &status) == 0 && S_ISREG(status.st_mode))
        unlink(file);
    free(file);
}

char *oriel_file_finish(FILE *out, bool fine, const char *path)
{
    if (out != NULL && fclose(out) == 0 && fine)
        return oriel_format("%s", "");
    char *problem = oriel_format("%s", errno != 0 ? strerror(errno) : "the write was incomplete");
    if (out != NULL)
        oriel_file_discard(path);
    return problem;
}

static char *fd_read_text(int fd)
{
    size_t room = 4096;
    size_t used = 0;
    char *text = oriel_alloc(room);
    for (;;) {
        ssize_t len_bytes = read(fd, text + used, room - used - 1);
        if (len_bytes < 0 && errno == EINTR)
            continue;
        if (len_bytes <= 0)
            break;
        used += (size_t)len_bytes;
        if (room - used < 2) {
            room *= 2;
            text = oriel_alloc_checked(realloc(text, room));
        }
    }
    text[used] = '\0';
    return text;
}

char *oriel_command_output(char *const argv[])
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
    char *text = child < 0 ? NULL : fd_read_text(ends[0]);
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

const char *oriel_executable_path(void)
{
    static char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    if (len < 0)
        oriel_die("readlink /proc/self/exe: %s", strerror(errno));
    path[len] = '\0';
    return path;
}
