/* Memory of each process's own, which the others neither map nor may copy, and requests to the agents of others for it: each
 * rank has a share of SHARE_BYTES in every process's.  The tests of the agent use it. */
#ifndef ORIEL_TESTS_PROTOCOL_ASKING_H
#define ORIEL_TESTS_PROTOCOL_ASKING_H

#include "fabricate.h"
#include "memory/agent_area.h"
#include "transport/transport.h"

enum { SHARE_BYTES = 100000 };

extern char *asking_memory; /* of this process: SHARE_BYTES for each rank */

/* Collective: every process serves, and says where its memory is. */
void asking_open(struct oriel_window *window);

/* The own share of a target's memory. */
struct oriel_remote asking_share(const struct oriel_window *window, int32_t target);

void asking_fill(char *bytes, uint64_t len_bytes);

/* Random bytes of a random number: what was written is what is read. */
void asking_write_and_read(const struct oriel_remote *there);

#endif
