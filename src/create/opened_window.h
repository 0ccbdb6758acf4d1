/* Parts of a window of a memory handle: of one that a process has opened (memory_open.c), and of
 * the owner's for a process on another node (memory_serve.c). */
#ifndef ORIEL_CREATE_OPENED_WINDOW_H
#define ORIEL_CREATE_OPENED_WINDOW_H

#include "window/holders.h"

/* A window of n ranks, one or two, without anything of a handle; NULL without memory. */
struct oriel_window *oriel_opened_window_alloc(int32_t n);

/* Takes an entry in an area of window->group's process 0, and opens the files that the window
 * needs. Then the handle stays as it is until the entry is left. */
enum oriel_status oriel_opened_window_enter(struct oriel_window *window, uint64_t area,
                                            uint64_t key);

/* Everything but the carrier. keeps_entry: the entry shows a lock that is lost. */
void oriel_opened_window_release(struct oriel_window *window, bool keeps_entry);

#endif
