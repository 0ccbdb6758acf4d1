/* The device memory of other ranks of the node that this process has mapped for a window. The
 * owner's struct oriel_gpu_shared is in its memory file. Thread-safe. */
#ifndef ORIEL_RMA_DEVICE_MAPS_H
#define ORIEL_RMA_DEVICE_MAPS_H

#include "gpu/share.h"
#include "window/window.h"

/* This process's address of an address in the target's device memory; mapped at the first call.
 * NULL with the reason if it cannot be mapped. Later calls for the window give the same reason, and
 * try again only if the program had not loaded the driver. */
char *oriel_device_maps_find(const struct oriel_window *window, int32_t target,
                             const struct oriel_gpu_shared *shared, uint64_t address);

/* When the window ends. */
void oriel_device_maps_close(const struct oriel_window *window);

#endif
