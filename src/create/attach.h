/* Attaches memory to a dynamic window and detaches it (MPI-4.1, 13.2.4). Local; thread-safe. */
#ifndef ORIEL_CREATE_ATTACH_H
#define ORIEL_CREATE_ATTACH_H

#include "create/user_memory.h"
#include "window/window.h"

/* Attaches [address, address + size_bytes) of this process. Returns ORIEL_E_ATTACH if a part of it
 * is already attached, if it passes the end of the address space, or if there is no memory for the
 * table. With size 0 nothing is attached, but the address can be detached. */
enum oriel_status oriel_attach(struct oriel_window *window, uint64_t address, uint64_t size_bytes);

/* Detaches the memory that was attached at address. Returns ORIEL_E_ATTACH if there is none. Memory
 * that was promoted for it becomes private again. */
enum oriel_status oriel_detach(struct oriel_window *window, uint64_t address);

/* The ORIEL_PATH_* of all attached memory. Stores in reason (of room bytes) the last reason why
 * some of it is reached by copies. */
unsigned oriel_attached_paths(struct oriel_window *window, char *reason, size_t room);

/* Detaches everything. Returns the number of bytes that the program has unmapped or replaced
 * meanwhile. */
uint64_t oriel_attached_close(struct oriel_window *window);

#endif
