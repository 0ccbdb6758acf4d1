/* Memory that is reached in different ways, by address: what is attached to a dynamic window (MPI-4.1, 13.2.4), and memory of
 * MPI_Win_create that is of several sorts.  Each rank keeps a table of its regions in its own memory file, where origins look
 * addresses up (rma/region_lookup.h).  Changes are local and any number of threads may make them. */
#ifndef ORIEL_CREATE_REGIONS_H
#define ORIEL_CREATE_REGIONS_H

#include "memory/promote/registry.h"
#include "window/window.h"

/* Adds the stretches of one piece of memory, in ascending order without a gap.  They are kept by address and stay until they
 * are removed.  ORIEL_E_ATTACH when a part of it is in the table already or when there is no memory for the table. */
enum oriel_status oriel_regions_insert(struct oriel_window *window,
                                       const struct oriel_memory_range *stretches, size_t count);

/* Removes all that was inserted with the first stretch at address; ORIEL_E_ATTACH when nothing was. */
enum oriel_status oriel_regions_remove(struct oriel_window *window, uint64_t address);

/* Gives the tables back. */
void oriel_regions_close(struct oriel_window *window);

#endif
