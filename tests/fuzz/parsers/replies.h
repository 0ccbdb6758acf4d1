/* The network in the place of UCX, for a fuzzer that plays the other machines: it keeps what this process has asked, and answers
 * with what the input says.  replies.c is the program, replies_net.c the network. */
#ifndef ORIEL_TESTS_FUZZERS_REPLIES_H
#define ORIEL_TESTS_FUZZERS_REPLIES_H

#include "fuzzer.h"

#include "base/identity.h"

#include <stdbool.h>

enum { OWN, HERE, LEADER, OTHER, RANKS }; /* two ranks on this machine, two elsewhere */

/* The process of a rank, and its session there. */
struct oriel_identity identity_of(int rank);
uint64_t session_of(int rank);

/* An address as a process tells it, of exactly that many bytes; returns how many, at most ADDRESS_MOST. */
enum { ADDRESS_MOST = 64 };
size_t address_of(uint64_t session, uint32_t agent_bytes, char *out);

/* How far into a target's memory operations go. */
enum { DISPLACEMENT = 3 };

/* From here on answers come from the input; once it is used up all connections break.  has_devices: that put and get by
 * themselves; has_verbs: of UCX's, whose connections are not all closed. */
void replies_open(struct input *input, bool has_devices, bool has_verbs);

/* All that was asked has ended; forgets everything. */
void replies_close(void);

/* Processes that a foreign leader has no say in are where they were. */
void replies_check_peers(void);

#endif
