/* Memory whose path depends on the address: memory attached to a dynamic window (MPI-4.1, 13.2.4),
 * and memory of MPI_Win_create that is of several kinds. Each rank has a table of its regions in
 * its own memory file, where origins look addresses up (rma/region_lookup.h). Changes are local and
 * thread-safe. */
#ifndef ORIEL_CREATE_REGIONS_H
#define ORIEL_CREATE_REGIONS_H

#include "memory/promote/registry.h"
#include "window/window.h"

/* Adds the ranges of one piece of memory, in ascending order without gaps. They stay until they are
 * removed. Returns ORIEL_E_ATTACH when a part of it is already in the table, or when there is no
 * memory for the table. */
enum oriel_status oriel_regions_insert(struct oriel_window *window,
                                       const struct oriel_memory_range *ranges, size_t count);

/* Removes everything that was inserted with the first range at address. Returns ORIEL_E_ATTACH if
 * there is none. */
enum oriel_status oriel_regions_remove(struct oriel_window *window, uint64_t address);

/* Frees the tables. */
void oriel_regions_close(struct oriel_window *window);

#endif
