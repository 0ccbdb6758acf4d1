#include "places.h"

#include "device.h"

#include <stdlib.h>
#include <string.h>

const char *const place_names[] = {"host", "device", "mapped", "private", "managed", "pinned"};

void *place_alloc(enum place place, size_t size_bytes)
{
    switch (place) {
    case ON_DEVICE: return device_alloc(size_bytes);
    case MAPPED: return device_map(size_bytes, true);
    case PRIVATE: return device_map(size_bytes, false);
    case MANAGED: return device_alloc_managed(size_bytes);
    case PINNED: return device_alloc_pinned(size_bytes);
    default: return malloc(size_bytes);
    }
}

void place_free(enum place place, void *memory, size_t size_bytes)
{
    switch (place) {
    case ON_DEVICE:
    case MANAGED: device_free(memory); break;
    case MAPPED:
    case PRIVATE: device_unmap(memory, size_bytes); break;
    case PINNED: device_free_pinned(memory); break;
    default: free(memory);
    }
}

static bool cpu_accesses(enum place place)
{
    return place != ON_DEVICE && place != MAPPED && place != PRIVATE;
}

void place_write(enum place place, void *memory, const void *from, size_t len_bytes)
{
    if (cpu_accesses(place))
        memcpy(memory, from, len_bytes);
    else
        device_write(memory, from, len_bytes);
}

void place_read(enum place place, void *to, const void *memory, size_t len_bytes)
{
    if (cpu_accesses(place))
        memcpy(to, memory, len_bytes);
    else
        device_read(to, memory, len_bytes);
}
