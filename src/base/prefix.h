/* The installation to which this code belongs. */
#ifndef ORIEL_BASE_PREFIX_H
#define ORIEL_BASE_PREFIX_H

#include <limits.h>
#include <stdbool.h>

/* Writes the path of the folder that has bin/oriel and lib/oriel/HOST/, in the build folder and
 * when installed; "" for the root. Returns false for code that is in neither, such as a unit
 * test. */
bool oriel_prefix_find(char out[PATH_MAX]);

#endif
