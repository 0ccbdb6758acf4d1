/* The rings between the threads that make events and the one that writes them: one for each thread, so that neither waits.  An
 * event that finds its ring full is dropped and counted.  trace.c opens and empties them; trace.h's oriel_trace_add fills. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_RING_H
#define ORIEL_OBSERVE_TRACE_TRACE_RING_H

#include "observe/trace/trace_format.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether events are taken: rung is called, in the thread that adds, each time that half a ring has been filled. */
void oriel_trace_rings_open(void (*rung)(void));

/* A look at all rings: what is in them now, and how many events were dropped so far. */
struct oriel_trace_look {
    uint64_t dropped;
    uint32_t rings;
};
struct oriel_trace_look oriel_trace_rings_look(void);

/* Gives the events that the last look has seen to take, in pieces, and frees their places; false from take ends it.  Only the
 * thread that has looked may call. */
void oriel_trace_rings_empty(bool (*take)(const struct oriel_trace_event *events, size_t count));

#endif
