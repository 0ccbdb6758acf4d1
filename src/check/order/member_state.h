/* Calls of a window's members that calls of other members are checked against: fences and their
 * assertions, posts and starts, attached regions, MPI_Win_free. The states are in the shared memory
 * of the first member's node; regions are on the node where they are attached. Each question is
 * processed there as a whole under one lock, for members of all nodes. */
#ifndef ORIEL_CHECK_ORDER_MEMBER_STATE_H
#define ORIEL_CHECK_ORDER_MEMBER_STATE_H

#include "check/common/access_types.h"
#include "check/common/clock.h"
#include "check/shm/shm.h"

enum oriel_member_state_kind {
    /* member; number, assert, site: found: the assertion differs from the first one, with its site;
     * gone_rank and gone_site */
    ORIEL_MEMBER_FENCE,
    ORIEL_MEMBER_NO_PUT, /* other: found: its fence of that number promises so; site */
    ORIEL_MEMBER_POST,   /* member, for other; assert, tick, site */
    /* member, of other; site: posts, tick and site of the last post; gone_rank: other does not
     * post */
    ORIEL_MEMBER_START,
    ORIEL_MEMBER_NO_POST,  /* member, for other: undoes the last record, because the call failed */
    ORIEL_MEMBER_NO_START, /* member, of other: likewise */
    ORIEL_MEMBER_NO_FENCE, /* member: likewise; number */
    ORIEL_MEMBER_POSTED,   /* of member, by other: posts, assert and site of the last one */
    /* member is in MPI_Win_free; site: found: another member has called more fences; site */
    ORIEL_MEMBER_END,
    /* member's pair of that number with more starts (assert 0: more posts): found, rank, site */
    ORIEL_MEMBER_UNEQUAL,
    /* member: found: enum oriel_wanted; rank; site of a post that waits for a start */
    ORIEL_MEMBER_WANTED,
    ORIEL_MEMBER_ATTACH, /* member; extent */
    ORIEL_MEMBER_DETACH, /* member; extent's offset */
    /* other; extent: found: all of it is attached; else the first run that is not, and the nearest
     * region */
    ORIEL_MEMBER_ATTACHED,
    ORIEL_MEMBER_KINDS,
};

/* A call that another member waits for in vain. */
enum oriel_wanted {
    ORIEL_WANTED_NOTHING,
    ORIEL_WANTED_FENCE,
    ORIEL_WANTED_POST,
    ORIEL_WANTED_START
};

struct oriel_member_state_ask {
    uint32_t kind; /* enum oriel_member_state_kind */
    int32_t member, other;
    int32_t assert;
    uint64_t number;
    oriel_tick tick;
    struct oriel_site site;
    struct oriel_access_extent extent;
};

/* A range of a member's memory; 0 bytes: none. */
struct oriel_member_range {
    uint64_t address, len_bytes;
};

struct oriel_member_state_answer {
    uint32_t found; /* or differs */
    int32_t rank;
    int32_t gone_rank; /* -1: none */
    int32_t assert;
    uint64_t posts;
    oriel_tick tick;
    struct oriel_site site, gone_site;
    struct oriel_member_range run, nearest;
};

struct oriel_member_states;

/* Finds the states of this node; the first of its members_here members makes them. NULL: the shared
 * memory is full. */
struct oriel_member_states *oriel_member_states_find(uint64_t window, int n, int members_here);

/* A member of this node no longer needs the states; the last one frees them. */
void oriel_member_states_leave(uint64_t window);

/* Processes a question of a member on this node. */
void oriel_member_state_work(struct oriel_member_states *notes,
                             const struct oriel_member_state_ask *ask,
                             struct oriel_member_state_answer *answer);

/* Does the same for a member on another node. Returns false if the states are gone or the question
 * is invalid. */
bool oriel_member_state_answer(uint64_t window, const struct oriel_member_state_ask *ask,
                               struct oriel_member_state_answer *answer);

#endif
