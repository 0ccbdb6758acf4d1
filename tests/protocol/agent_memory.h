/* Private memory of each process, which other processes neither map nor may copy, and requests to
 * agents for it. Each rank has a share of SHARE_BYTES in every process's memory. */
#ifndef ORIEL_TESTS_PROTOCOL_AGENT_MEMORY_H
#define ORIEL_TESTS_PROTOCOL_AGENT_MEMORY_H

#include "make_window.h"
#include "memory/agent_area.h"
#include "transport/transport.h"

enum { SHARE_BYTES = 100000 };

extern char *agent_memory; /* of this process: SHARE_BYTES for each rank */

/* Collective: every process serves, and publishes the address of its memory. */
void agent_memory_open(struct oriel_window *window);

/* This rank's share of a target's memory. */
struct oriel_remote agent_memory_share(const struct oriel_window *window, int32_t target);

void agent_memory_fill(char *bytes, uint64_t len_bytes);

/* A random number of random bytes: reads return what was written. */
void agent_memory_write_and_read(const struct oriel_remote *there);

#endif
