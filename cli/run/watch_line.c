/* The last row of a terminal to which other processes write. The rows above it become the
 * scrolling region, so the program's output continues above the line; the cursor stays with the
 * program. A launcher pipes its ranks' standard error and may put them in sessions of their own.
 * The terminal is therefore found from the launcher's own standard error, through /proc, and opened
 * with O_NOCTTY. */
#include "cli/run/watch_line.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/jobs.h"
#include "cli/run/launcher.h"

static struct {
    int fd;
    int32_t launcher;
    int rows; /* Rows of the terminal while the line uses the last one; otherwise 0. */
} line = {.fd = -1};

static bool is_launcher(int32_t pid)
{
    char path[64];
    char name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    bool known = fgets(name, sizeof name, file) != NULL;
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    return known && (oriel_launcher_is_named(name) || strncmp(name, "hydra", 5) == 0);
}

/* The outermost launcher, which the user started; a launcher may have helpers of its own on each
 * node. The process itself when there is no launcher. */
static int32_t launcher_of(int32_t pid)
{
    int32_t found = pid;
    for (int32_t at = oriel_process_parent(pid); at > 1; at = oriel_process_parent(at))
        if (is_launcher(at))
            found = at;
    return found;
}

/* Another job may be in the terminal's foreground. */
static bool is_in_foreground(int32_t pid)
{
    char path[64];
    char text[1024] = "";
    int group, foreground;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    size_t len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    const char *fields = strrchr(text, ')');
    return fields != NULL &&
           sscanf(fields + 1, " %*c %*d %d %*d %*d %d", &group, &foreground) == 2 &&
           group == foreground;
}

bool oriel_line_open(int32_t pid)
{
    char path[64];
    char target[PATH_MAX];
    const char *term = getenv("TERM");
    if (term == NULL || term[0] == '\0' || strcmp(term, "dumb") == 0)
        return false;
    line.launcher = launcher_of(pid);
    snprintf(path, sizeof path, "/proc/%d/fd/2", (int)line.launcher);
    ssize_t len = readlink(path, target, sizeof target - 1);
    target[len > 0 ? len : 0] = '\0';
    if (strncmp(target, "/dev/", 5) != 0 || !is_in_foreground(line.launcher))
        return false;
    line.fd = open(target, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (line.fd >= 0 && isatty(line.fd))
        return true;
    if (line.fd >= 0)
        close(line.fd);
    line.fd = -1;
    return false;
}

/* A stopped terminal (Ctrl-S) misses an update; the write does not wait. */
static bool terminal_write(const char *text)
{
    size_t len = strlen(text);
    ssize_t written = write(line.fd, text, len);
    return written == (ssize_t)len || written >= 0 || errno == EAGAIN;
}

/* Makes room below the cursor and keeps its position. */
static bool row_reserve(int rows)
{
    char text[64];
    snprintf(text, sizeof text, "\n\0337\033[1;%dr\0338\033[1A", rows - 1);
    line.rows = rows;
    return terminal_write(text);
}

static void row_release(void)
{
    char text[64];
    if (line.rows > 0) {
        snprintf(text, sizeof text, "\0337\033[%d;1H\033[K\033[r\0338", line.rows);
        (void)terminal_write(text);
    }
    line.rows = 0;
}

/* The length in bytes of at most columns characters. */
static int prefix_len_bytes(const char *text, int columns)
{
    int len = 0;
    for (int used = 0; text[len] != '\0'; len++) {
        used += (text[len] & 0xc0) != 0x80;
        if (used > columns)
            break;
    }
    return len;
}

int oriel_line_columns(void)
{
    struct winsize size = {.ws_col = 0};
    ioctl(line.fd, TIOCGWINSZ, &size);
    return size.ws_col;
}

bool oriel_line_show(const char *text)
{
    char whole[4096];
    struct winsize size;
    if (ioctl(line.fd, TIOCGWINSZ, &size) != 0)
        return false;
    bool shows = size.ws_row > 2 && size.ws_col > 10 && is_in_foreground(line.launcher);
    if (line.rows > 0 && (!shows || size.ws_row != line.rows))
        row_release();
    if (!shows)
        return true;
    if (line.rows == 0 && !row_reserve(size.ws_row))
        return false;
    snprintf(whole, sizeof whole, "\0337\033[%d;1H\033[K\033[7m%.*s\033[0m\0338", line.rows,
             prefix_len_bytes(text, size.ws_col), text);
    return terminal_write(whole);
}

void oriel_line_close(void)
{
    row_release();
    close(line.fd);
    line.fd = -1;
}
