/* A window whose ranks are on several simulated nodes. The file does by hand what
 * src/create/node_map.c does with the host's collectives. Processes of two nodes reach each other
 * only by messages. The team's own window (team.h) spans all nodes, and tests use it to inspect
 * memory. Teams of processes only: a process has one net. */
#ifndef ORIEL_TESTS_PROTOCOL_SIMULATED_NODES_H
#define ORIEL_TESTS_PROTOCOL_SIMULATED_NODES_H

#include "internode/origin/origin_sync.h"

#include "make_window.h"

/* The target refuses puts and gets from offset NODES_BEYOND on. */
enum { NODES_WORDS = 64, NODES_BEYOND = NODES_WORDS };

/* Collective over the team: NODES_WORDS zeroes on each rank, on nodes_count nodes. The team's
 * seed decides whether neighbours share a node or ranks are assigned to nodes round-robin. */
struct oriel_window *nodes_open(void);

/* Likewise; every rank has closed its last epoch. */
void nodes_close(struct oriel_window *window);

/* Stops the net of this process, at the end of a test's body. */
void nodes_stop(void);

/* This process executes no operations of other ranks. */
extern _Atomic bool nodes_serve_nothing;

/* This process has no memory for the counters of posts and completes of other ranks. */
extern _Atomic bool nodes_refuse_counters;

int32_t nodes_node_of(int32_t rank);

/* The lowest rank on another node than this process. */
int32_t nodes_remote_rank(const struct oriel_window *window);

/* Operations on words of a rank's memory. On another node they are complete after a flush, and got
 * is written by then. */
enum oriel_status nodes_put(struct oriel_window *window, int32_t target, uint64_t word,
                            uint64_t value);
enum oriel_status nodes_get(struct oriel_window *window, int32_t target, uint64_t word,
                            uint64_t *got);

/* This rank's own memory, which the agent's thread writes. */
uint64_t nodes_load(const struct oriel_window *window, uint64_t word);

/* The present value of a word of the most recently opened window, read through the team's own
 * window. */
uint64_t nodes_peek(const struct oriel_window *whole, int32_t rank, uint64_t word);

/* The queue of its lock, likewise. */
_Atomic uint64_t *nodes_queue(const struct oriel_window *whole, int32_t rank);

/* Called by all ranks: returns when no rank owns or waits for any lock of the window. A rank that
 * has left its position (J5 in internode/target/lock_all_queue.c) is in the queue until its
 * turn. */
void nodes_await_turns(const struct oriel_window *window);

/* No rank owns or waits for this rank's lock or the gate. */
void nodes_expect_free(const struct oriel_window *window);

/* A get and its flush. */
uint64_t nodes_read(struct oriel_window *window, int32_t target, uint64_t word);

/* As team_run, for a number of ranks on a number of nodes; and for a selection of both, up to eight
 * ranks on four nodes. */
extern int32_t nodes_count;
void nodes_run(int32_t n, int32_t nodes, team_body *body);
void nodes_run_sizes(team_body *body);

/* team_prepare, plus what all processes share. Ends the program if ranks are threads. */
void nodes_prepare(int argc, char **argv);

#endif
