/* A window whose ranks are on several machines, as far as Oriel can tell: what src/create/node_map.c does by the host's
 * collectives is done by hand, and the processes of two "machines" reach each other by the net alone.  The team's own window
 * (team.h) spans all of them all the same and is what the tests look with.  Teams of processes only: a process has one net. */
#ifndef ORIEL_TESTS_PROTOCOL_APART_H
#define ORIEL_TESTS_PROTOCOL_APART_H

#include "internode/origin/origin_sync.h"

#include "fabricate.h"

/* A put or get from APART_BEYOND on is refused by its target. */
enum { APART_WORDS = 64, APART_BEYOND = APART_WORDS };

/* Collective over the team: APART_WORDS zeroes on each rank, on apart_machines machines.  The team's seed decides whether
 * neighbours are of one machine or are dealt to the machines in turn. */
struct oriel_window *apart_open(void);

/* Likewise; every rank has left its last epoch. */
void apart_close(struct oriel_window *window);

/* Ends the net of this process, at the end of a test's body. */
void apart_stop(void);

/* This process does no operation of others. */
extern _Atomic bool apart_dawdles;

/* This process has no memory to count what others post and complete. */
extern _Atomic bool apart_counts_nobody;

int32_t apart_machine(int32_t rank);

/* The lowest rank of another machine than this process's. */
int32_t apart_elsewhere(const struct oriel_window *window);

/* Operations on words of a rank's memory, complete after a flush where that is far.  got is written by then. */
enum oriel_status apart_put(struct oriel_window *window, int32_t target, uint64_t word,
                            uint64_t value);
enum oriel_status apart_get(struct oriel_window *window, int32_t target, uint64_t word,
                            uint64_t *got);

/* The own memory, which the agent's thread writes. */
uint64_t apart_look(const struct oriel_window *window, uint64_t word);

/* A word of the window that was opened last, as it is at this moment, by way of the team's own window. */
uint64_t apart_peek(const struct oriel_window *whole, int32_t rank, uint64_t word);

/* The queue of its lock, likewise. */
_Atomic uint64_t *apart_queue(const struct oriel_window *whole, int32_t rank);

/* Nobody has this rank's lock or the gate, or wants them. */
void apart_expect_free(const struct oriel_window *window);

/* A get and its flush. */
uint64_t apart_read(struct oriel_window *window, int32_t target, uint64_t word);

/* As team_run, for so many ranks on so many machines; and for a choice of both up to eight ranks on four machines. */
extern int32_t apart_machines;
void apart_run(int32_t n, int32_t nodes, team_body *body);
void apart_run_sizes(team_body *body);

/* team_prepare, and what all processes share; ends the program where ranks are threads. */
void apart_prepare(int argc, char **argv);

#endif
