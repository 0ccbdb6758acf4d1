/* Reports the paths by which other ranks reach a rank's memory: for ORIEL_VERBOSE, and for the info
 * object of MPI_Win_get_info. */
#ifndef ORIEL_CREATE_PATH_INFO_H
#define ORIEL_CREATE_PATH_INFO_H

#include "window/hints.h"
#include "window/window.h"

/* For the calling rank's own memory. */
struct oriel_path_info oriel_path_info_get(struct oriel_window *window);

/* The ranks of a new window whose memory has the same paths as the calling rank's. */
struct oriel_path_ranks {
    int32_t count, first;
    int32_t count_of_all; /* ranks that have memory */
};

/* With ORIEL_VERBOSE, prints a new window's line. call: the MPI function. */
void oriel_path_info_report(struct oriel_window *window, const char *call,
                            const struct oriel_path_ranks *ranks);

/* The same after MPI_Win_attach. */
void oriel_path_info_report_attached(struct oriel_window *window);

/* Saves the window's label for a warning after the host has freed the window. */
void oriel_path_info_save_label(struct oriel_window *window);

/* Warns that the program has unmapped or replaced lost_bytes of the window's memory; no effect for
 * 0. call: the MPI function. */
void oriel_path_info_warn_lost(const struct oriel_window *window, const char *call,
                               uint64_t lost_bytes);

#endif
