/* Whether this process runs under valgrind, whose search for lost memory reads all that is mapped.  Anybody may call. */
#ifndef ORIEL_BASE_VALGRIND_H
#define ORIEL_BASE_VALGRIND_H

#include <stdbool.h>

bool oriel_valgrind(void);

#endif
