/* Memory that the program gives to MPI_Win_create: whether it becomes shared where it lies (memory/promote.h) or is reached by
 * copying, and why.  Creation and free call. */
#ifndef ORIEL_WINDOW_OWN_MEMORY_H
#define ORIEL_WINDOW_OWN_MEMORY_H

#include "window/window.h"

/* Fills in mechanism, offset and the direct part of target, whose address and size_bytes (above 0) are set.  call: the MPI
 * function, for notes.  What is promoted is kept in the window until oriel_promote_release. */
void oriel_own_memory_prepare(struct oriel_window *window, const char *call, struct oriel_target *target);

#endif
