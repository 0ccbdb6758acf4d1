/* Member states of a window in this node's shared memory. Each step records a call and also checks
 * it against the records of other members. So of two calls that conflict, the second sees the
 * first. */
#include "check/order/member_state.h"

#include "check/order/attached_regions.h"

#include <mpi.h>

/* Epochs that an origin has started to a target, and posts of the target to it; in the target's
 * list. */
struct pair {
    oriel_shm_offset next;
    int32_t origin;
    int32_t post_assert;
    uint64_t starts, posts;
    oriel_tick post_tick; /* the target's number at its last post */
    struct oriel_site start_site, post_site;
};

struct member {
    oriel_shm_offset regions;
    oriel_shm_offset pairs; /* by origin; this member is the target */
    uint64_t fences;        /* number of fences that this member has called */
    uint64_t no_put[2];     /* number of the fence with MPI_MODE_NOPUT, by its parity */
    struct oriel_site no_put_site[2];
    struct oriel_site fence_site;
    struct oriel_site free_site;
    uint32_t freeing; /* this member is in MPI_Win_free */
};

/* The last fences: no member is two fences ahead of another. */
struct fence {
    uint64_t number;
    int32_t assert;
    struct oriel_site site;
};

enum { FENCES = 4 };

struct oriel_member_states {
    struct oriel_shm_lock lock; /* of everything below */
    int32_t n;
    int32_t members_here, left; /* of this node */
    bool ending;                /* some member is freeing the window */
    struct fence fences[FENCES];
    struct member members[];
};

/* --- fences --- */

static const int alike = MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;

/* The first member that begins a fence records its assertion; the others compare theirs. */
static void fence_compare(struct oriel_member_states *states,
                          const struct oriel_member_state_ask *ask,
                          struct oriel_member_state_answer *answer)
{
    struct fence *fence = &states->fences[ask->number % FENCES];
    if (fence->number != ask->number) {
        *fence = (struct fence){.number = ask->number, .assert = ask->assert, .site = ask->site};
        return;
    }
    answer->site = fence->site;
    answer->found = ((fence->assert ^ ask->assert) & alike) != 0;
}

/* A member that is in MPI_Win_free with fewer fences never joins this one. */
static void fence_record(struct oriel_member_states *states,
                         const struct oriel_member_state_ask *ask,
                         struct oriel_member_state_answer *answer)
{
    struct member *own = &states->members[ask->member];
    own->fences = ask->number;
    own->fence_site = ask->site;
    if (ask->assert & MPI_MODE_NOPUT) {
        own->no_put[ask->number % 2] = ask->number;
        own->no_put_site[ask->number % 2] = ask->site;
    }
    fence_compare(states, ask, answer);
    for (int32_t i = 0; i < states->n && states->ending && answer->gone_rank < 0; i++)
        if (states->members[i].freeing && states->members[i].fences < ask->number) {
            answer->gone_rank = i;
            answer->gone_site = states->members[i].free_site;
        }
}

/* If no other member has begun the fence, its assertion is removed. */
static void fence_undo(struct oriel_member_states *states, const struct oriel_member_state_ask *ask)
{
    struct member *own = &states->members[ask->member];
    if (own->fences != ask->number || own->fences == 0)
        return;
    own->fences--;
    if (own->no_put[ask->number % 2] == ask->number)
        own->no_put[ask->number % 2] = 0;
    for (int32_t i = 0; i < states->n; i++)
        if (states->members[i].fences >= ask->number)
            return;
    states->fences[ask->number % FENCES].number = 0;
}

static void no_put_find(const struct oriel_member_states *states,
                        const struct oriel_member_state_ask *ask,
                        struct oriel_member_state_answer *answer)
{
    const struct member *target = &states->members[ask->other];
    answer->found = target->no_put[ask->number % 2] == ask->number;
    answer->site = target->no_put_site[ask->number % 2];
}

/* --- posts and starts --- */

/* Makes the pair if needed. NULL: the shared memory is full. */
static struct pair *pair_find_or_make(struct oriel_member_states *states, int32_t target,
                                      int32_t origin)
{
    struct member *member = &states->members[target];
    for (oriel_shm_offset place = member->pairs; place != 0;) {
        struct pair *pair = oriel_shm_at(place);
        if (pair->origin == origin)
            return pair;
        place = pair->next;
    }
    oriel_shm_offset made = oriel_shm_allocate(sizeof(struct pair));
    struct pair *pair = oriel_shm_at(made);
    if (pair == NULL)
        return NULL;
    pair->origin = origin;
    pair->next = member->pairs;
    member->pairs = made;
    return pair;
}

static void post_record(struct oriel_member_states *states,
                        const struct oriel_member_state_ask *ask)
{
    struct pair *pair = pair_find_or_make(states, ask->member, ask->other);
    if (pair == NULL)
        return;
    pair->posts++;
    pair->post_assert = ask->assert;
    pair->post_tick = ask->tick;
    pair->post_site = ask->site;
}

static void posted_answer(const struct pair *pair, struct oriel_member_state_answer *answer)
{
    answer->found = 1;
    answer->posts = pair->posts;
    answer->assert = pair->post_assert;
    answer->tick = pair->post_tick;
    answer->site = pair->post_site;
}

/* found 0: nothing is known of the pair. */
static void start_record(struct oriel_member_states *states,
                         const struct oriel_member_state_ask *ask,
                         struct oriel_member_state_answer *answer)
{
    struct pair *pair = pair_find_or_make(states, ask->other, ask->member);
    if (pair == NULL)
        return;
    pair->starts++;
    pair->start_site = ask->site;
    posted_answer(pair, answer);
    const struct member *target = &states->members[ask->other];
    if (target->freeing && pair->starts > pair->posts) {
        answer->gone_rank = ask->other;
        answer->gone_site = target->free_site;
    }
}

static void post_undo(struct oriel_member_states *states, const struct oriel_member_state_ask *ask)
{
    struct pair *pair = pair_find_or_make(states, ask->member, ask->other);
    if (pair != NULL && pair->posts > 0)
        pair->posts--;
}

static void start_undo(struct oriel_member_states *states, const struct oriel_member_state_ask *ask)
{
    struct pair *pair = pair_find_or_make(states, ask->other, ask->member);
    if (pair != NULL && pair->starts > 0)
        pair->starts--;
}

static void posted_find(struct oriel_member_states *states,
                        const struct oriel_member_state_ask *ask,
                        struct oriel_member_state_answer *answer)
{
    const struct pair *pair = pair_find_or_make(states, ask->other, ask->member);
    if (pair != NULL)
        posted_answer(pair, answer);
}

static void unequal_pair_find(const struct oriel_member_states *states,
                              const struct oriel_member_state_ask *ask,
                              struct oriel_member_state_answer *answer)
{
    uint64_t number = 0;
    for (oriel_shm_offset place = states->members[ask->member].pairs; place != 0;) {
        const struct pair *pair = oriel_shm_at(place);
        bool unequal = ask->assert != 0 ? pair->starts > pair->posts : pair->posts > pair->starts;
        if (unequal && number++ == ask->number) {
            answer->found = 1;
            answer->rank = pair->origin;
            answer->site = ask->assert != 0 ? pair->start_site : pair->post_site;
            return;
        }
        place = pair->next;
    }
}

/* --- the end --- */

static void free_record(struct oriel_member_states *states,
                        const struct oriel_member_state_ask *ask,
                        struct oriel_member_state_answer *answer)
{
    struct member *own = &states->members[ask->member];
    own->freeing = 1;
    own->free_site = ask->site;
    states->ending = true;
    for (int32_t i = 0; i < states->n && !answer->found; i++)
        if (states->members[i].fences > own->fences) {
            answer->found = 1;
            answer->site = states->members[i].fence_site;
        }
}

/* Finds a member that waits for a start of this one. */
static void waiting_post_find(const struct oriel_member_states *states, int32_t origin,
                              struct oriel_member_state_answer *answer)
{
    for (int32_t i = 0; i < states->n; i++)
        for (oriel_shm_offset place = states->members[i].freeing ? 0 : states->members[i].pairs;
             place != 0;) {
            const struct pair *pair = oriel_shm_at(place);
            if (pair->origin == origin && pair->posts > pair->starts) {
                answer->found = ORIEL_WANTED_START;
                answer->rank = i;
                answer->site = pair->post_site;
                return;
            }
            place = pair->next;
        }
}

static void wanted_call_find(struct oriel_member_states *states,
                             const struct oriel_member_state_ask *ask,
                             struct oriel_member_state_answer *answer)
{
    struct member *own = &states->members[ask->member];
    for (int32_t i = 0; i < states->n; i++)
        if (states->members[i].fences > own->fences) {
            own->fences++;
            answer->found = ORIEL_WANTED_FENCE;
            return;
        }
    for (oriel_shm_offset place = own->pairs; place != 0;) {
        const struct pair *pair = oriel_shm_at(place);
        if (pair->starts > pair->posts) {
            answer->found = ORIEL_WANTED_POST;
            answer->rank = pair->origin;
            return;
        }
        place = pair->next;
    }
    waiting_post_find(states, ask->member, answer);
}

/* --- regions --- */

static struct oriel_member_range extent_range(const struct oriel_access_extent *extent)
{
    return (struct oriel_member_range){.address = (uint64_t)extent->offset,
                                       .len_bytes = extent->len_bytes};
}

static void attached_find(const struct oriel_member_states *states,
                          const struct oriel_member_state_ask *ask,
                          struct oriel_member_state_answer *answer)
{
    answer->run = extent_range(&ask->extent);
    answer->found =
        oriel_attached_has(states->members[ask->other].regions, &answer->run, ask->extent.count,
                           ask->extent.stride_bytes, &answer->nearest);
}

/* --- questions --- */

void oriel_member_state_work(struct oriel_member_states *states,
                             const struct oriel_member_state_ask *ask,
                             struct oriel_member_state_answer *answer)
{
    *answer = (struct oriel_member_state_answer){.rank = -1, .gone_rank = -1};
    oriel_shm_lock(&states->lock);
    switch (ask->kind) {
    case ORIEL_MEMBER_FENCE: fence_record(states, ask, answer); break;
    case ORIEL_MEMBER_NO_PUT: no_put_find(states, ask, answer); break;
    case ORIEL_MEMBER_POST: post_record(states, ask); break;
    case ORIEL_MEMBER_START: start_record(states, ask, answer); break;
    case ORIEL_MEMBER_NO_POST: post_undo(states, ask); break;
    case ORIEL_MEMBER_NO_START: start_undo(states, ask); break;
    case ORIEL_MEMBER_NO_FENCE: fence_undo(states, ask); break;
    case ORIEL_MEMBER_POSTED: posted_find(states, ask, answer); break;
    case ORIEL_MEMBER_END: free_record(states, ask, answer); break;
    case ORIEL_MEMBER_UNEQUAL: unequal_pair_find(states, ask, answer); break;
    case ORIEL_MEMBER_WANTED: wanted_call_find(states, ask, answer); break;
    case ORIEL_MEMBER_ATTACH:
        oriel_attached_add(&states->members[ask->member].regions, extent_range(&ask->extent));
        break;
    case ORIEL_MEMBER_DETACH:
        oriel_attached_remove(&states->members[ask->member].regions, (uint64_t)ask->extent.offset);
        break;
    case ORIEL_MEMBER_ATTACHED: attached_find(states, ask, answer); break;
    default: break;
    }
    oriel_shm_unlock(&states->lock);
}

struct question {
    const struct oriel_member_state_ask *ask;
    struct oriel_member_state_answer *answer;
    bool is_right;
};

static bool work_under_key(void *at, bool made, void *closure)
{
    struct oriel_member_states *states = at;
    struct question *question = closure;
    (void)made;
    question->is_right = question->ask->kind < ORIEL_MEMBER_KINDS &&
                         question->ask->kind != ORIEL_MEMBER_ATTACH &&
                         question->ask->kind != ORIEL_MEMBER_DETACH && question->ask->member >= 0 &&
                         question->ask->member < states->n && question->ask->other >= 0 &&
                         question->ask->other < states->n;
    if (question->is_right)
        oriel_member_state_work(states, question->ask, question->answer);
    return true;
}

static struct oriel_key states_key(uint64_t window)
{
    return (struct oriel_key){
        .words = {UINT64_C(0x4e4f544553), window}}; /* "NOTES": above all kinds of order.h */
}

bool oriel_member_state_answer(uint64_t window, const struct oriel_member_state_ask *ask,
                               struct oriel_member_state_answer *answer)
{
    struct oriel_key key = states_key(window);
    struct question question = {.ask = ask, .answer = answer};
    return oriel_shm_work(&key, 0, work_under_key, &question) && question.is_right;
}

/* --- creation and end --- */

static void states_init(void *at)
{
    struct oriel_member_states *states = at;
    oriel_shm_lock_init(&states->lock);
}

struct oriel_member_states *oriel_member_states_find(uint64_t window, int n, int members_here)
{
    struct oriel_key key = states_key(window);
    size_t len_bytes =
        sizeof(struct oriel_member_states) + (size_t)(unsigned)n * sizeof(struct member);
    struct oriel_member_states *states = oriel_shm_at(oriel_shm_find(&key, len_bytes, states_init));
    if (states == NULL)
        return NULL;
    states->members_here = members_here; /* all members write the same values */
    states->n = n;
    return states;
}

static bool member_leave(void *at, bool made, void *closure)
{
    struct oriel_member_states *states = at;
    (void)made;
    (void)closure;
    if (++states->left < states->members_here)
        return true;
    for (int32_t i = 0; i < states->n; i++) {
        struct member *member = &states->members[i];
        oriel_attached_empty(&member->regions);
        while (member->pairs != 0) {
            oriel_shm_offset pair = member->pairs;
            member->pairs = ((struct pair *)oriel_shm_at(pair))->next;
            oriel_shm_free(pair, sizeof(struct pair));
        }
    }
    return false;
}

void oriel_member_states_leave(uint64_t window)
{
    struct oriel_key key = states_key(window);
    oriel_shm_work(&key, 0, member_leave, NULL);
}
