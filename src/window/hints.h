/* The hints of a window (MPI-4.1, 13.2.1): one row each in hints.def, the value in use as text.  Oriel's semantics do not
 * depend on any but noncontig and minimum_alignment, which only creation reads.  Creation and api/ call. */
#ifndef ORIEL_WINDOW_HINTS_H
#define ORIEL_WINDOW_HINTS_H

#include "base/status.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIEL_HINT_BYTES = 64 };

struct oriel_hints {
#define HINT(field, key, initial, sort) char field[ORIEL_HINT_BYTES];
#include "window/hints.def"
#undef HINT
};

/* The defaults. */
void oriel_hints_init(struct oriel_hints *hints);

/* Takes over the hints that info holds; MPI_INFO_NULL holds none.  ORIEL_E_INFO when it is not an info object. */
enum oriel_status oriel_hints_read(struct oriel_hints *hints, MPI_Info info);

/* The same on a window that exists: what only creation reads stays as it is. */
enum oriel_status oriel_hints_update(struct oriel_hints *hints, MPI_Info info);

/* How others reach this rank's memory (create/path_info.h). */
struct oriel_paths {
    char ways
        [64]; /* "arena", "promoted", "cma", "agent" of its machine's ranks, "ucx" of others, joined by "+"; or empty */
    char reason[480]; /* why not better; empty where nothing is better */
};

/* A new info object with every hint that has a value, and the value in use; and, under keys of Oriel's own, the paths. */
enum oriel_status oriel_hints_write(const struct oriel_hints *hints,
                                    const struct oriel_paths *paths, MPI_Info *out);

/* The memory of all ranks is in one piece, whatever this one asked for: its own part has the alignment that its address, if not
 * NULL, happens to have. */
void oriel_hints_set_contiguous(struct oriel_hints *hints, const void *address);

bool oriel_hint_is_true(const char *value);

/* mpi_minimum_memory_alignment in bytes: a power of two of at most ORIEL_MAP_ALIGN. */
uint64_t oriel_hints_alignment(const struct oriel_hints *hints);

#endif
