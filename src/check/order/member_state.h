/* What members of a window have said of themselves that others are judged by: fences and their assertions, posts and starts,
 * regions that are attached, who frees the window.  It stands on the board of the first member's machine, but for regions, which
 * stand where they are attached; each question is worked on there as a whole, under one lock, whoever asks.  windows.c finds and
 * asks; remote_serve.c answers other machines. */
#ifndef ORIEL_CHECK_ORDER_MEMBER_STATE_H
#define ORIEL_CHECK_ORDER_MEMBER_STATE_H

#include "check/access/history.h"
#include "check/order/clock.h"
#include "check/shm/shm.h"

enum oriel_member_state_kind {
    ORIEL_MEMBER_FENCE, /* member; number, assert, site: differs and the first one's site; gone_rank and gone_site */
    ORIEL_MEMBER_NO_PUT, /* other: whether its fence of that number promises so, and the site */
    ORIEL_MEMBER_POST,   /* member, for other; assert, tick, site */
    ORIEL_MEMBER_START, /* member, of other; site: posts, tick and site of the last one; gone_rank: other does not post */
    ORIEL_MEMBER_NO_POST,  /* member, for other: the call failed that the last note was of */
    ORIEL_MEMBER_NO_START, /* member, of other: likewise */
    ORIEL_MEMBER_NO_FENCE, /* member: likewise; number */
    ORIEL_MEMBER_POSTED,   /* of member, by other: posts, assert and site of the last one */
    ORIEL_MEMBER_END, /* member is in MPI_Win_free; site: found: another one has fenced more often, site */
    ORIEL_MEMBER_UNEQUAL, /* member's pair of that number with more starts (assert 0: more posts): found, rank, site */
    ORIEL_MEMBER_WANTED, /* member: found: enum oriel_wanted; rank; of a post that waits for a start, its site */
    ORIEL_MEMBER_ATTACH, /* member; extent */
    ORIEL_MEMBER_DETACH, /* member; extent's offset */
    ORIEL_MEMBER_ATTACHED, /* other; extent: found: all of it; else the run that is not, and the region nearest to it */
    ORIEL_MEMBER_KINDS,
};

/* What another member waits for in vain. */
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

/* A stretch of a member's memory; 0 bytes: there is none. */
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

/* Those of this machine, made by the first of its members, of which there are so many here; NULL: the board is full. */
struct oriel_member_states *oriel_member_states_find(uint64_t window, int n, int members_here);

/* A member of this machine needs them no more; the last one frees them. */
void oriel_member_states_leave(uint64_t window);

/* What is asked of this machine's, by a member here. */
void oriel_member_state_work(struct oriel_member_states *notes,
                             const struct oriel_member_state_ask *ask,
                             struct oriel_member_state_answer *answer);

/* The same for a member elsewhere; false: there are none any more, or the question is none. */
bool oriel_member_state_answer(uint64_t window, const struct oriel_member_state_ask *ask,
                               struct oriel_member_state_answer *answer);

#endif
