/* The rings between the threads that produce events and the one that writes them: one per thread,
 * so neither waits. An event that finds its ring full is dropped and counted. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_RING_H
#define ORIEL_OBSERVE_TRACE_TRACE_RING_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Enables the rings. rung runs in the producer's thread each time that half a ring has been
 * filled. */
void oriel_trace_rings_open(void (*rung)(void));

/* A snapshot of all rings: their current contents, and the number of events dropped so far. */
struct oriel_trace_snapshot {
    uint64_t dropped;
    uint32_t rings;
};
struct oriel_trace_snapshot oriel_trace_rings_snapshot(void);

/* Passes the events of the last snapshot to take, in pieces, and frees their slots; false from take
 * ends it. Only the thread that took the snapshot may call it. */
void oriel_trace_rings_empty(bool (*take)(const struct oriel_trace_event *events, size_t count));

#endif
