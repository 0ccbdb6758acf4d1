/* True if this process runs under valgrind, whose search for lost memory reads all mapped
 * memory. */
#ifndef ORIEL_BASE_VALGRIND_H
#define ORIEL_BASE_VALGRIND_H

#include <stdbool.h>

bool oriel_is_under_valgrind(void);

#endif
