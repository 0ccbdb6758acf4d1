/* The hints of a window (MPI-4.1, 13.2.1): one row per hint in hints.def, and the current value as
 * text. Oriel's semantics depend only on noncontig, minimum_alignment, notifications,
 * memory_kinds and wanted_kinds, which only window creation reads, and on cuda_stream. */
#ifndef ORIEL_WINDOW_HINTS_H
#define ORIEL_WINDOW_HINTS_H

#include "base/status.h"
#include "memory/pages.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { ORIEL_HINT_BYTES = 64 };

struct oriel_hints {
#define HINT(field, key, initial, sort) char field[ORIEL_HINT_BYTES];
#include "window/hints.def"
#undef HINT
};

/* Sets the defaults. */
void oriel_hints_init(struct oriel_hints *hints);

/* Accepts the hints in info; MPI_INFO_NULL has none. Returns ORIEL_E_INFO when info is not an info
 * object. */
enum oriel_status oriel_hints_read(struct oriel_hints *hints, MPI_Info info);

/* The same on an existing window. Hints that only creation reads stay unchanged. */
enum oriel_status oriel_hints_update(struct oriel_hints *hints, MPI_Info info);

/* How other ranks reach this rank's memory (create/path_info.h). */
struct oriel_path_info {
    /* "direct", "promoted", "cma", "agent" for ranks on this node, "ucx" for remote ranks, joined
     * by "+"; or empty */
    char names[64];
    /* who performs operations of other ranks on it, without calls of this rank: "origin" (they),
     * "thread" (one of this rank), or both, joined by "+" */
    char progress[16];
    char reason[480]; /* why no better path is in use; empty if there is none */
};

/* Creates an info object with the current value of each hint that has one, and with the paths under
 * Oriel's own keys. */
enum oriel_status oriel_hints_write(const struct oriel_hints *hints,
                                    const struct oriel_path_info *paths, MPI_Info *out);

/* Records that the memory of all ranks is contiguous, whatever this rank requested. The alignment
 * becomes that of the address, at most the requested one; NULL leaves it unchanged. */
void oriel_hints_set_contiguous(struct oriel_hints *hints, const void *address);

bool oriel_hint_is_true(const char *value);

/* mpi_minimum_memory_alignment in bytes: a power of two of at most ORIEL_MAP_ALIGN. */
uint64_t oriel_hints_alignment(const struct oriel_hints *hints);

/* oriel_numa_node: where the calling rank's memory is to come from. "local" is the NUMA node of the
 * calling thread now. */
struct oriel_pages_placement oriel_hints_placement(const struct oriel_hints *hints);

/* oriel_cuda_stream: the program's stream of a GPU; false without the hint. */
bool oriel_hints_stream(const struct oriel_hints *hints, uint64_t *out);

/* mpi_assert_memory_alloc_kinds: whether buffers may be device memory. True without the hint. */
bool oriel_hints_allow_device(const struct oriel_hints *hints);

/* mpi_memory_alloc_kinds: whether Oriel allocates device memory. */
bool oriel_hints_want_device(const struct oriel_hints *hints);

/* It is not in effect. */
void oriel_hints_clear_placement(struct oriel_hints *hints);

/* oriel_notifications: the number of the calling rank's counters. */
uint32_t oriel_hints_notifications(const struct oriel_hints *hints);

#endif
