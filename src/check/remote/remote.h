/* The checkers of several nodes. Each entry of the order is in the shared memory of one node: a key
 * at its home (order.h), the history of a member's memory on the member's node, the numbers of call
 * sites on the first node. A process that needs an entry of another node asks that node's server,
 * and continues with the answer. The server is a thread of the node's first rank (remote_serve.c).
 *
 * Why that is correct:
 * F1: Each entry has one home. Every process that works on it, a process of that node or its
 *     server, does so under the same locks. So the arguments in the files of order and histories
 *     for one shared memory hold for all nodes.
 * F2: A call returns when its effect has happened at the home. So "given before the call is passed
 *     on" and "in the history before it is issued" mean the same for a remote home: a process that
 *     the passed call releases finds the entry there.
 * F3: No answer waits for a waiting thread. The server has two threads. One serves requests that
 *     may need further requests: a history that has grown asks all nodes for their floor. The other
 *     serves exactly these, and asks no node.
 * F4: A node whose server has ended takes its shared memory with it. A process that notices this
 *     reports no conflict any more, because unknown order may exist. A server that loses a process
 *     that asked it records this in its shared memory (oriel_given_set_client_lost): from then on
 *     more order is assumed. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_H
#define ORIEL_CHECK_REMOTE_REMOTE_H

#include "check/shm/shm.h"

#include <stdbool.h>
#include <sys/uio.h>

enum { ORIEL_CHECK_REMOTE_ADDRESSES = 8 };

/* The addresses of a node's server, for all ranks of other nodes. */
struct oriel_check_remote_address {
    uint64_t key[2];   /* authenticates both ends; sent over MPI only (remote_auth.c) */
    uint16_t ports[2]; /* of the two threads; 0: none */
    uint16_t count;
    uint16_t families[ORIEL_CHECK_REMOTE_ADDRESSES];
    uint8_t addresses[ORIEL_CHECK_REMOTE_ADDRESSES][16];
};

/* Starts the server of this node, on its first rank, once the shared memory is mapped.
 * Returns false with a reason if it cannot start. */
bool oriel_check_remote_serve(struct oriel_check_remote_address *out);
void oriel_check_remote_serve_stop(void);

/* Sets the nodes: node_of[rank] for each rank of MPI_COMM_WORLD, nodes counted from 0, addresses
 * by node. The arrays are copied. */
bool oriel_check_remote_start(const int *node_of, int world_size, int own_node,
                              const struct oriel_check_remote_address *addresses, int nodes_count);

/* Whether all other nodes answer; if not, with a reason. */
bool oriel_check_remote_try(void);

/* From now on order and call sites are shared by all nodes. */
void oriel_check_remote_connect_all(void);
/* Connects order.c and call_sites.c to the servers of other nodes (remote_order.c). */
void oriel_check_remote_order_set(void);
void oriel_check_remote_stop(void);

/* The node of a rank, and this one. */
int oriel_check_remote_node_of(int world_rank);
int oriel_check_remote_own_node(void);
int oriel_check_remote_node_count(void);

/* A server did not answer, or a rank is no longer checked; both are counted. Order may be
 * unknown. */
bool oriel_check_remote_is_lost(void);

/* Whether the counts of all members arrive: no process has lost this node's server, and no server
 * on which this process has counted has reported a loss (oriel_check_remote_set_gap). */
bool oriel_check_remote_counts_all(void);
void oriel_check_remote_set_gap(void);

/* --- requests --- */

enum oriel_check_remote_kind {
    ORIEL_CHECK_REMOTE_GIVE, /* key; takers, add only to an existing entry; a clock */
    /* key; takers, how. Answer: found | made << 1 | lost << 2; a clock */
    ORIEL_CHECK_REMOTE_TAKE,
    ORIEL_CHECK_REMOTE_FORGET,    /* key */
    ORIEL_CHECK_REMOTE_TAKE_RANK, /* rank. Answer: whether it is on that node; a clock */
    ORIEL_CHECK_REMOTE_TAKE_ALL,  /* Answer: a clock */
    ORIEL_CHECK_REMOTE_DOUBT,     /* whether a rank has left (oriel_order_leave) */
    /* key; increment. Answer: the new number, and 1 << 32 if the server has lost a process that
     * asked it */
    ORIEL_CHECK_REMOTE_COUNT,
    /* history; struct oriel_access, clock, extents. Answer: ticket; conflicts */
    ORIEL_CHECK_REMOTE_ADD,
    ORIEL_CHECK_REMOTE_COMPLETE,     /* history, origin, number, ticket */
    ORIEL_CHECK_REMOTE_COMPLETE_ONE, /* history, ticket, number */
    ORIEL_CHECK_REMOTE_FLAG,         /* history, origin, flags */
    ORIEL_CHECK_REMOTE_REQUEST_DONE, /* history, ticket */
    ORIEL_CHECK_REMOTE_LEAVES,       /* from here on: for the server's thread that asks no node */
    /* Answer: whether any rank runs; a clock */
    ORIEL_CHECK_REMOTE_FLOOR = ORIEL_CHECK_REMOTE_LEAVES,
    /* window; struct oriel_member_state_ask. Answer: whether it was processed; struct
     * oriel_member_state_answer */
    ORIEL_CHECK_REMOTE_MEMBER_STATE,
    /* table, slot; the entry to store if the slot is empty, or nothing. Answer: the slot's entry */
    ORIEL_CHECK_REMOTE_SITE,
    ORIEL_CHECK_REMOTE_HANDLE, /* key. Answer: whether it is there; ORIEL_PART_HANDLE_BYTES */
    ORIEL_CHECK_REMOTE_QUIET,  /* from here on: a missing answer does no harm */
    ORIEL_CHECK_REMOTE_WAITS = ORIEL_CHECK_REMOTE_QUIET, /* Answer: struct oriel_wait_report */
    ORIEL_CHECK_REMOTE_PROGRESS, /* id, is_window. Answer: struct oriel_collective_progress */
    ORIEL_CHECK_REMOTE_GIVEN,    /* key. Answer: whether it was given */
    ORIEL_CHECK_REMOTE_KINDS,
};

struct oriel_check_remote_request {
    uint64_t kind;
    uint64_t len_bytes; /* of the data after the request */
    struct oriel_key key;
    uint64_t words[4];
};

struct oriel_check_remote_answer {
    uint64_t len_bytes;
    uint64_t word;
};

/* Sends a request to a node; parts follow the request, whose length is set here. The data of the
 * answer goes to data; an answer without room there counts as none. Returns false if no answer will
 * arrive. */
bool oriel_check_remote_ask(int node, struct oriel_check_remote_request *request,
                            const struct iovec *parts, int parts_count,
                            struct oriel_check_remote_answer *answer, void *data,
                            size_t room_bytes);

/* A question about a window's members (member_state.h). */
struct oriel_member_state_ask;
struct oriel_member_state_answer;
bool oriel_check_remote_member_state(int node, uint64_t window,
                                     const struct oriel_member_state_ask *ask,
                                     struct oriel_member_state_answer *answer);

#endif
