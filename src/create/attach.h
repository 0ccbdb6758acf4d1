/* Attaching memory to a dynamic window and detaching it (MPI-4.1, 13.2.4).  Local; any number of threads may call.  api/ and the
 * end of a window call. */
#ifndef ORIEL_CREATE_ATTACH_H
#define ORIEL_CREATE_ATTACH_H

#include "create/user_memory.h"
#include "window/window.h"

/* Attaches [address, address + size_bytes) of this process.  ORIEL_E_ATTACH when a part of it is attached already, when it
 * passes the end of the address space, or when there is no memory for the table.  Nothing is attached for size 0, but the
 * address can be detached. */
enum oriel_status oriel_attach(struct oriel_window *window, uint64_t address, uint64_t size_bytes);

/* Detaches what was attached at address; ORIEL_E_ATTACH when nothing was.  Memory that was promoted for it is private again. */
enum oriel_status oriel_detach(struct oriel_window *window, uint64_t address);

/* ORIEL_WAY_* of all that is attached; into reason (of room bytes) why some of it is reached by copies, the last reason that
 * there was. */
unsigned oriel_attached_ways(struct oriel_window *window, char *reason, size_t room);

/* Detaches all.  How many bytes the program has unmapped or replaced meanwhile. */
uint64_t oriel_attached_close(struct oriel_window *window);

#endif
