/* Writes Oriel's own lines to standard error, one write per line. ORIEL_VERBOSE controls notes,
 * never warnings. A line that is too long is cut and ends in "...". */
#include "base/log.h"

#include "base/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* If standard error is closed, the text is discarded. */
void oriel_log_write(const char *text, size_t len_bytes)
{
    for (size_t done = 0; done < len_bytes;) {
        ssize_t written = write(STDERR_FILENO, text + done, len_bytes - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        done += (size_t)written;
    }
}

static void write_line(const char *format, va_list args)
{
    char line[1024];
    int used = snprintf(line, sizeof line, "oriel[%d]: ", (int)getpid());
    const size_t room = sizeof line - (size_t)used - 1;
    if ((size_t)vsnprintf(line + used, room, format, args) >= room)
        memcpy(line + sizeof line - 5, "...", 4);
    size_t len_bytes = strlen(line);
    line[len_bytes++] = '\n';
    oriel_log_write(line, len_bytes);
}

void oriel_warn(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

void oriel_note(const char *format, ...)
{
    if (oriel_options()->verbose < 1)
        return;
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}
