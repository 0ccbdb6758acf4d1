/* A replacement for UCX, for a fuzzer that plays the other nodes. It records this process's
 * questions, and answers with the input's bytes.  replies.c is the program, replies_net.c the
 * network. */
#ifndef ORIEL_TESTS_FUZZERS_REPLIES_H
#define ORIEL_TESTS_FUZZERS_REPLIES_H

#include "fuzzer.h"

#include "base/identity.h"

#include <stdbool.h>

enum { OWN, HERE, LEADER, OTHER, RANKS }; /* two ranks on this node, two on another */

/* The process of a rank, and its session there. */
struct oriel_identity identity_of(int rank);
uint64_t session_of(int rank);

/* An address as a process publishes it, of exactly the length that this returns, at most
 * ADDRESS_MOST. */
enum { ADDRESS_MOST = 64 };
size_t address_of(uint64_t session, uint32_t agent_bytes, char *out);

/* The displacement of all operations in a target's memory. */
enum { DISPLACEMENT = 3 };

/* From here on answers come from the input; once it is used up, all connections break.
 * has_devices: devices put and get without the target's process; has_verbs: they belong to UCX,
 * which may keep connections open. */
void replies_open(struct input *input, bool has_devices, bool has_verbs);

/* All questions have ended; drops all state. */
void replies_close(void);

/* Peers outside a foreign leader's authority are unchanged. */
void replies_check_peers(void);

#endif
