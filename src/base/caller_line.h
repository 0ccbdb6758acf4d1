/* The program's line that called MPI, as messages show it. */
#ifndef ORIEL_BASE_CALLER_LINE_H
#define ORIEL_BASE_CALLER_LINE_H

#include "base/code_address.h"

#include <stddef.h>

enum { ORIEL_CALLER_LINE_BYTES = 160 };

/* "app.c:41", or "app+0x1234", which addr2line resolves, if the module has no debug information or
 * there is no `oriel` command next to the library. caller is from oriel_code_address_caller; its
 * description is filled in. Starts the command, which takes some ten milliseconds, and caches what
 * it answers. */
void oriel_caller_line_find(struct oriel_code_address *caller, char out[ORIEL_CALLER_LINE_BYTES]);

#endif
