/* Which ranks of a window are on which node, and how the nodes exchange addresses during creation.
 * Processes are on one node when they see the same kernel and each other's process ids (boot id and
 * PID namespace). They must then be able to open each other's memory files. For tests,
 * ORIEL_NODE_SIZE divides a node into several. */
#ifndef ORIEL_CREATE_NODE_MAP_H
#define ORIEL_CREATE_NODE_MAP_H

#include "internode/internode.h"

#include <mpi.h>

struct create_state;

/* The net address of a node's leader. */
struct oriel_leader_address {
    uint64_t address_bytes; /* 0: unreachable */
    char address[ORIEL_NET_ADDRESS_BYTES];
};

/* Nodes are numbered from 0 in the order of their leaders, the lowest ranks on each. */
struct oriel_node_map {
    int32_t count;
    int32_t own;
    int32_t node_ranks;                           /* ranks on this node */
    int32_t *node_by_rank;                        /* node by win_rank */
    int32_t *leader_by_node;                      /* win_rank by node */
    struct oriel_leader_address *address_by_node; /* by node */
    /* each rank's part of address_by_node: the lengths of all parts, then their starts */
    int *spans;
    enum oriel_status status; /* of starting this process's net */
    char reason[200];
};

/* This process's node, as a unique number. whole: ignores ORIEL_NODE_SIZE. */
uint64_t oriel_node_id(bool whole);

/* Between steps 2 and 3 of creation: maps ranks to nodes. If there are several nodes, all ranks
 * start the net and exchange the addresses of the leaders. Collective. */
enum oriel_status oriel_node_map_exchange(struct create_state *state);

/* Whether the window can span the nodes. Returns ORIEL_E_OTHER with the reason if not. */
enum oriel_status oriel_node_map_check(const struct create_state *state);

/* Step 3 on a leader: allocates and fills the common words of its node. */
enum oriel_status oriel_node_map_fill(struct create_state *state);

/* Creates the window's internode state, before all ranks agree that the window exists. From here
 * on, messages for it are served. */
enum oriel_status oriel_node_map_open(struct create_state *state);

/* Starts this process's net, unless it runs. */
enum oriel_status oriel_node_map_net_start(void);

/* Whether the job has ranks on other nodes, as its launcher says, or the net runs already. */
bool oriel_node_map_job_spans_nodes(void);

/* The reverse; no effect if there is none. */
void oriel_node_map_close(struct oriel_window *window);

void oriel_node_map_free(struct oriel_node_map *map);

#endif
