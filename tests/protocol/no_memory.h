/* Simulated lack of memory for messages, as a thread requests it. */
#ifndef ORIEL_TESTS_PROTOCOL_NO_MEMORY_H
#define ORIEL_TESTS_PROTOCOL_NO_MEMORY_H

#include <stdbool.h>

/* This thread gets no buffers from the net's pools. */
extern _Thread_local bool no_buffers_here;

/* The pool of this process's agent gives out no buffers: for arriving messages and for answers. */
extern _Atomic bool no_buffers_of_agent;

/* calloc fails in this thread; the other flag makes it fail in the agent's thread of this
 * process. */
extern _Thread_local bool no_heap_here;
extern _Atomic bool no_heap_of_agent;

#endif
