/* What is told about the ways on which others reach a rank's memory: by ORIEL_VERBOSE, and by the info that MPI_Win_get_info
 * returns.  Creation, attachment and api/ call. */
#ifndef ORIEL_CREATE_PATH_INFO_H
#define ORIEL_CREATE_PATH_INFO_H

#include "window/hints.h"
#include "window/window.h"

/* For the calling rank's own memory. */
struct oriel_paths oriel_paths_of(struct oriel_window *window);

/* One line to standard error for this rank's memory, with ORIEL_VERBOSE.  call: the MPI function. */
void oriel_paths_note(struct oriel_window *window, const char *call);

/* Keeps the window's name for a warning that comes when the host knows the window no more. */
void oriel_paths_keep_name(struct oriel_window *window);

/* Warns that the program has taken so many bytes away under the window; nothing for 0.  call: the MPI function. */
void oriel_paths_warn_lost(const struct oriel_window *window, const char *call,
                           uint64_t lost_bytes);

#endif
