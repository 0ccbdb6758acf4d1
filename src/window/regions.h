/* The memory attached to a dynamic window (MPI-4.1, 13.2.4): each rank keeps a table of its regions in its own memory file,
 * and origins look addresses up there.  Attach and detach are local and any number of threads may call them; a lookup waits
 * for nobody. */
#ifndef ORIEL_WINDOW_REGIONS_H
#define ORIEL_WINDOW_REGIONS_H

#include "window/window.h"

/* Attaches [address, address + size_bytes) of this process.  ORIEL_E_ATTACH when a part of it is attached already, when it
 * passes the end of the address space, or when there is no memory for the table.  Nothing is attached for size 0, but the
 * address can be detached. */
enum oriel_status oriel_regions_attach(struct oriel_window *window, uint64_t address, uint64_t size_bytes);

/* Detaches the region that starts at address; ORIEL_E_ATTACH when none does. */
enum oriel_status oriel_regions_detach(struct oriel_window *window, uint64_t address);

/* Whether all of [address, address + len_bytes) is attached at the target, in one region or in several that touch. */
bool oriel_regions_hold(const struct oriel_window *window, int32_t target, uint64_t address, uint64_t len_bytes);

/* Gives the tables back: detaches all. */
void oriel_regions_close(struct oriel_window *window);

#endif
