/* Lines of the program's source files, each file read once. */
#ifndef ORIEL_CLI_CHECK_SOURCE_LINES_H
#define ORIEL_CLI_CHECK_SOURCE_LINES_H

#include <stddef.h>

#include "base/code_address.h"

enum oriel_source_state {
    ORIEL_SOURCE_READ,
    ORIEL_SOURCE_MISSING, /* no line is known, or the file cannot be read, or has no such line */
    ORIEL_SOURCE_NEWER,   /* the file is newer than the module: its lines have changed */
};

/* The line of a place, without its end; valid as long as this process. */
enum oriel_source_state oriel_source_line(const struct oriel_code_address *place, const char **line,
                                          size_t *len_bytes);

/* The line before it, likewise; NULL for the first one. After ORIEL_SOURCE_READ. */
const char *oriel_source_line_before(const struct oriel_code_address *place, size_t *len_bytes);

#endif
