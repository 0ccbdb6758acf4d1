/* The checkers of several machines.  What is known of order stands on the boards of the machines, each thing on one of them: a
 * key at its home (order.h), the history of a member's memory where the member runs, the numbers of call sites on the first
 * machine.  Who needs something that stands on another board asks that machine's server, a thread of its first rank
 * (remote_serve.c), and goes on with the answer.  start.c starts and stops it; ask is for remote_order.c and history_proxy.c.
 *
 * Why that is right.
 * F1 Each thing has one home, and whoever works on it there, a process of the machine or its server, does so under the same
 *    locks.  So what the files of order and histories argue for one board holds for all of them.
 * F2 A call returns when it is done at the home.  So "given before the call is passed on" and "stands in the history before it is
 *    issued" mean the same for a home far away: whoever is let go on by the call behind finds it there.
 * F3 An answer waits for nobody who waits.  The server has two threads: one does all that may ask further (a history that has
 *    grown asks all machines for their floor), the other one answers just those questions, and asks nobody.
 * F4 A machine whose server has gone takes its board with it.  Who notices tells no conflict any more: what it does not know may
 *    have been order.  A server that loses one who asked says so on its board (oriel_given_lose): from then on more is taken. */
#ifndef ORIEL_CHECK_REMOTE_REMOTE_H
#define ORIEL_CHECK_REMOTE_REMOTE_H

#include "check/shm/shm.h"

#include <stdbool.h>
#include <sys/uio.h>

enum { ORIEL_CHECK_REMOTE_ADDRESSES = 8 };

/* Where a machine's server listens, for all ranks of the others. */
struct oriel_check_remote_address {
    uint64_t
        key[2]; /* by which both ends know each other; it is told over MPI alone (remote_auth.c) */
    uint16_t ports[2]; /* of the two threads; 0: there is none */
    uint16_t count;
    uint16_t families[ORIEL_CHECK_REMOTE_ADDRESSES];
    uint8_t addresses[ORIEL_CHECK_REMOTE_ADDRESSES][16];
};

/* The server of this machine: by its first rank, once the board is mapped.  False, with a reason: there is none. */
bool oriel_check_remote_serve(struct oriel_check_remote_address *out);
void oriel_check_remote_serve_stop(void);

/* Who is where: machine_of[rank] for each of MPI_COMM_WORLD, machines counted from 0, addresses by machine.  Copied. */
bool oriel_check_remote_start(const int *machine_of, int world_size, int own_machine,
                              const struct oriel_check_remote_address *addresses,
                              int machines_count);

/* Whether all other machines answer; if not, with a reason. */
bool oriel_check_remote_try(void);

/* From now on order and call sites are those of all machines. */
void oriel_check_remote_span(void);
void oriel_check_remote_stop(void);

/* The machine of a rank, and this one. */
int oriel_check_remote_machine(int world_rank);
int oriel_check_remote_own_machine(void);
int oriel_check_remote_machines(void);

/* A server did not answer, or a rank is no longer checked, which was counted: order may be unknown. */
bool oriel_check_remote_is_lost(void);

/* Whether what all members count arrives: nobody has lost this machine's server, nor that of a machine on which this process has
 * counted and which has said so (oriel_check_remote_note_gap). */
bool oriel_check_remote_counts_all(void);
void oriel_check_remote_note_gap(void);

/* --- asking --- */

enum oriel_check_remote_kind {
    ORIEL_CHECK_REMOTE_GIVE,      /* key; takers, whether only more; a clock */
    ORIEL_CHECK_REMOTE_TAKE,      /* key; takers, how: found | made << 1 | lost << 2; a clock */
    ORIEL_CHECK_REMOTE_FORGET,    /* key */
    ORIEL_CHECK_REMOTE_TAKE_RANK, /* rank: whether it is there; a clock */
    ORIEL_CHECK_REMOTE_TAKE_ALL,  /* : a clock */
    ORIEL_CHECK_REMOTE_DOUBT, /* whether a rank has left (oriel_order_leave) */
    ORIEL_CHECK_REMOTE_COUNT, /* key; more: the number, and 1 << 32 where the server has lost one who asked */
    ORIEL_CHECK_REMOTE_ADD, /* history; struct oriel_access, clock, extents: ticket; conflicts */
    ORIEL_CHECK_REMOTE_COMPLETE,     /* history, origin, number, ticket */
    ORIEL_CHECK_REMOTE_COMPLETE_ONE, /* history, ticket, number */
    ORIEL_CHECK_REMOTE_FLAG,         /* history, origin, flags */
    ORIEL_CHECK_REMOTE_REQUEST_DONE, /* history, ticket */
    ORIEL_CHECK_REMOTE_LEAVES,       /* from here on: asked of the thread that asks nobody */
    ORIEL_CHECK_REMOTE_FLOOR = ORIEL_CHECK_REMOTE_LEAVES, /* : whether any rank runs; a clock */
    ORIEL_CHECK_REMOTE_NOTE, /* window; struct oriel_member_state_ask: whether it was answered; struct oriel_member_state_answer */
    ORIEL_CHECK_REMOTE_SITE, /* table, slot; what it shall hold if it is empty, or nothing: what it holds */
    ORIEL_CHECK_REMOTE_QUIET, /* from here on: nobody misses the answer */
    ORIEL_CHECK_REMOTE_WAITS = ORIEL_CHECK_REMOTE_QUIET, /* : struct oriel_wait_report */
    ORIEL_CHECK_REMOTE_GATHERING, /* id, is_window: struct oriel_collective_progress */
    ORIEL_CHECK_REMOTE_GIVEN,     /* key: whether it was given */
    ORIEL_CHECK_REMOTE_KINDS,
};

struct oriel_check_remote_request {
    uint64_t kind;
    uint64_t len_bytes; /* of what follows */
    struct oriel_key key;
    uint64_t words[4];
};

struct oriel_check_remote_answer {
    uint64_t len_bytes;
    uint64_t word;
};

/* Asks a machine; parts follow the request, whose length is set here.  The answer's data goes to data; one that has no room there
 * is none.  False: no answer will come any more. */
bool oriel_check_remote_ask(int machine, struct oriel_check_remote_request *request,
                            const struct iovec *parts, int parts_count,
                            struct oriel_check_remote_answer *answer, void *data,
                            size_t room_bytes);

/* The question about a window's members (member_state.h). */
struct oriel_member_state_ask;
struct oriel_member_state_answer;
bool oriel_check_remote_note(int machine, uint64_t window, const struct oriel_member_state_ask *ask,
                             struct oriel_member_state_answer *answer);

#endif
