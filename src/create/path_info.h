/* Reports the paths by which other ranks reach a rank's memory: for ORIEL_VERBOSE, and for the info
 * object of MPI_Win_get_info. */
#ifndef ORIEL_CREATE_PATH_INFO_H
#define ORIEL_CREATE_PATH_INFO_H

#include "window/hints.h"
#include "window/window.h"

/* For the calling rank's own memory. */
struct oriel_path_info oriel_path_info_get(struct oriel_window *window);

/* With ORIEL_VERBOSE, prints one line about this rank's memory to standard error. call: the MPI
 * function. */
void oriel_path_info_report(struct oriel_window *window, const char *call);

/* Saves the window's name for a warning after the host has freed the window. */
void oriel_path_info_save_name(struct oriel_window *window);

/* Warns that the program has unmapped or replaced lost_bytes of the window's memory; no effect for
 * 0. call: the MPI function. */
void oriel_path_info_warn_lost(const struct oriel_window *window, const char *call,
                               uint64_t lost_bytes);

#endif
