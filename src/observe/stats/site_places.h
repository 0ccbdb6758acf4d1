/* The places of this process's call sites, numbered from 1: modules and offsets, or lines of
 * Python. They are in the memory file, so rank 0 can read those of a process that does not reach
 * MPI_Finalize. Entries are complete before the count includes them, and never change. This header
 * does not need mpi.h. */
#ifndef ORIEL_OBSERVE_STATS_SITE_PLACES_H
#define ORIEL_OBSERVE_STATS_SITE_PLACES_H

#include "base/code_address.h"

#include <stdint.h>

enum { ORIEL_PLACES_MOST = 511 };

struct oriel_site_places {
    _Atomic uint32_t count;
    uint32_t reserved[15];
    struct oriel_code_address places[ORIEL_PLACES_MOST];
};

/* Where a call is, in the program. */
struct oriel_site_place {
    uint64_t address; /* below 2^56, another one for each place */
    uint16_t number;  /* 0: unknown, or there are too many */
};

/* Finds the place of the call that returns to the address: there, or further up the stack of this
 * thread, or in Python. Takes about a microsecond. The caller holds no lock, because the
 * interpreter's may be acquired. */
struct oriel_site_place oriel_site_place_find(const void *address);

/* The place of that number; NULL for 0. */
const struct oriel_code_address *oriel_site_place_at(uint16_t number);

/* The offset of the list in the memory file; 0: there is none. */
uint64_t oriel_site_places_offset(void);

/* At the end of a traced run: asks the command for the lines of all places, and describes them
 * again in the trace. */
void oriel_site_places_resolve(void);

#endif
