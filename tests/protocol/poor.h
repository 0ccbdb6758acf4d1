/* Lack of memory for messages, while a thread asks for it. */
#ifndef ORIEL_TESTS_PROTOCOL_POOR_H
#define ORIEL_TESTS_PROTOCOL_POOR_H

#include <stdbool.h>

/* This thread gets no buffers from the net's pools. */
extern _Thread_local bool poor_here;

/* Nobody gets one from the pool of this process's agent: for what comes, and for answers. */
extern _Atomic bool poor_agent;

/* calloc gives this thread nothing; nor, for the other, the agent's thread of this process. */
extern _Thread_local bool poor_heap_here;
extern _Atomic bool poor_heap_of_agent;

#endif
