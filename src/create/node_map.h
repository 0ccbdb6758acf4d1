/* Which ranks of a window are of which machine, and how the machines come to know each other while it is made.  Processes are
 * of one machine when the kernel that they see is the same and they see each other's numbers (boot and PID namespace); then
 * they must be able to open each other's memory files.  ORIEL_NODE_SIZE divides a machine into several for tests.  Creation
 * calls. */
#ifndef ORIEL_CREATE_NODE_MAP_H
#define ORIEL_CREATE_NODE_MAP_H

#include "internode/internode.h"

#include <mpi.h>

struct attempt;

/* Machines count from 0 in the order of their leaders, the lowest ranks on each. */
/* How a machine's leader is reached. */
struct oriel_told {
    uint64_t address_bytes; /* 0: not at all */
    char address[ORIEL_NET_ADDRESS_BYTES];
};

struct oriel_meeting {
    int32_t count;
    int32_t own;
    int32_t here;            /* ranks of the own one */
    int32_t *numbers;        /* by win_rank */
    int32_t *leaders;        /* by machine */
    struct oriel_told *told; /* by machine */
    int *spans;              /* of each rank's part of told: bytes of all, then where each begins */
    enum oriel_status status; /* of this process's start of the net */
    char reason[200];
};

/* This process's machine, as a number that no other has.  whole: without ORIEL_NODE_SIZE. */
uint64_t oriel_machine_number(bool whole);

/* Between steps 2 and 3 of creation: who is where; where there are several machines, all start the net and tell each other how
 * their leaders are reached.  Collective. */
enum oriel_status oriel_machines_meet(struct attempt *attempt);

/* Whether the window can span the machines: ORIEL_E_OTHER with the reason when not. */
enum oriel_status oriel_machines_reach(const struct attempt *attempt);

/* In step 3, at a leader: the common words of its machine, allocated and filled. */
enum oriel_status oriel_machines_fill(struct attempt *attempt);

/* The window's far half, before all agree that the window exists: from here on messages for it are served. */
enum oriel_status oriel_machines_open(struct attempt *attempt);

/* Ends that; nothing where there is none. */
void oriel_machines_close(struct oriel_window *window);

void oriel_meeting_free(struct oriel_meeting *meeting);

#endif
