/* Where a buffer, or the memory of a window, is. */
#ifndef ORIEL_TESTS_GPU_PLACES_H
#define ORIEL_TESTS_GPU_PLACES_H

#include <stdbool.h>
#include <stddef.h>

enum place {
    ON_HOST,
    ON_DEVICE,
    MAPPED,  /* by the program, for a descriptor */
    PRIVATE, /* mapped by the program, for no other process */
    MANAGED,
    PINNED,
    PLACES
};
extern const char *const place_names[];

void *place_alloc(enum place place, size_t size_bytes);
void place_free(enum place place, void *memory, size_t size_bytes);

/* Between a place and host memory; complete on return. */
void place_write(enum place place, void *memory, const void *from, size_t len_bytes);
void place_read(enum place place, void *to, const void *memory, size_t len_bytes);

#endif
