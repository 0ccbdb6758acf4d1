/* Puts and gets of a dynamic window that cross the end of an attached region where some regions are
 * memory of a GPU: each run of bytes has its own path. */
#ifndef ORIEL_RMA_MIXED_REGIONS_H
#define ORIEL_RMA_MIXED_REGIONS_H

#include "datatype/copy_layout.h"
#include "datatype/operands.h"
#include "rma/path_select.h"

/* Whether the bytes of the target's side cross the end of the region of the first one. */
bool oriel_regions_are_crossed(const struct oriel_window *window, const struct oriel_span *target);

static inline bool oriel_regions_are_mixed(const struct oriel_window *window,
                                           const struct oriel_span *target)
{
    return window->targets[target->rank].placement == ORIEL_PLACEMENT_REGIONS &&
           oriel_unlikely(
               oriel_load_relaxed(&oriel_window_control(window, target->rank)->has_device)) &&
           oriel_regions_are_crossed(window, target);
}

/* Moves all bytes of the source side. here is in host memory. */
enum oriel_status oriel_mixed_transfer(const struct oriel_window *window,
                                       const struct oriel_span *target,
                                       const struct oriel_items *at_target, char *here,
                                       const struct oriel_items *at_origin, bool to_target);

#endif
