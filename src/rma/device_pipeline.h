/* Puts and gets between nodes with a large buffer in device memory. */
#ifndef ORIEL_RMA_DEVICE_PIPELINE_H
#define ORIEL_RMA_DEVICE_PIPELINE_H

#include "datatype/operands.h"
#include "internode/origin/origin_rma.h"

enum {
    /* Size of a part: at 25 GB/s its copy takes 10 us, twice what the driver needs to begin it and
     * to wait for it. A multiple of a message and of a page. */
    ORIEL_PIPELINE_PART_BYTES = 4 * ORIEL_NET_DATA_BYTES,
};

/* oriel_put or oriel_get of total_bytes with an internode target. The items at here are all in one
 * allocation of device memory. */
enum oriel_status oriel_pipeline_transfer(struct oriel_window *window,
                                          const struct oriel_span *target, char *here,
                                          const struct oriel_side *origin, uint64_t total_bytes,
                                          bool to_target);

#endif
