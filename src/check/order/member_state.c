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
static void compare_fence(struct oriel_member_states *notes,
                          const struct oriel_member_state_ask *ask,
                          struct oriel_member_state_answer *answer)
{
    struct fence *fence = &notes->fences[ask->number % FENCES];
    if (fence->number != ask->number) {
        *fence = (struct fence){.number = ask->number, .assert = ask->assert, .site = ask->site};
        return;
    }
    answer->site = fence->site;
    answer->found = ((fence->assert ^ ask->assert) & alike) != 0;
}

/* A member that is in MPI_Win_free with fewer fences never joins this one. */
static void note_fence(struct oriel_member_states *notes, const struct oriel_member_state_ask *ask,
                       struct oriel_member_state_answer *answer)
{
    struct member *own = &notes->members[ask->member];
    own->fences = ask->number;
    own->fence_site = ask->site;
    if (ask->assert & MPI_MODE_NOPUT) {
        own->no_put[ask->number % 2] = ask->number;
        own->no_put_site[ask->number % 2] = ask->site;
    }
    compare_fence(notes, ask, answer);
    for (int32_t i = 0; i < notes->n && notes->ending && answer->gone_rank < 0; i++)
        if (notes->members[i].freeing && notes->members[i].fences < ask->number) {
            answer->gone_rank = i;
            answer->gone_site = notes->members[i].free_site;
        }
}

/* If no other member has begun the fence, its assertion is removed. */
static void forget_fence(struct oriel_member_states *notes,
                         const struct oriel_member_state_ask *ask)
{
    struct member *own = &notes->members[ask->member];
    if (own->fences != ask->number || own->fences == 0)
        return;
    own->fences--;
    if (own->no_put[ask->number % 2] == ask->number)
        own->no_put[ask->number % 2] = 0;
    for (int32_t i = 0; i < notes->n; i++)
        if (notes->members[i].fences >= ask->number)
            return;
    notes->fences[ask->number % FENCES].number = 0;
}

static void find_no_put(const struct oriel_member_states *notes,
                        const struct oriel_member_state_ask *ask,
                        struct oriel_member_state_answer *answer)
{
    const struct member *target = &notes->members[ask->other];
    answer->found = target->no_put[ask->number % 2] == ask->number;
    answer->site = target->no_put_site[ask->number % 2];
}

/* --- posts and starts --- */

/* Makes the pair if needed. NULL: the shared memory is full. */
static struct pair *find_pair(struct oriel_member_states *notes, int32_t target, int32_t origin)
{
    struct member *member = &notes->members[target];
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

static void note_post(struct oriel_member_states *notes, const struct oriel_member_state_ask *ask)
{
    struct pair *pair = find_pair(notes, ask->member, ask->other);
    if (pair == NULL)
        return;
    pair->posts++;
    pair->post_assert = ask->assert;
    pair->post_tick = ask->tick;
    pair->post_site = ask->site;
}

static void tell_posted(const struct pair *pair, struct oriel_member_state_answer *answer)
{
    answer->found = 1;
    answer->posts = pair->posts;
    answer->assert = pair->post_assert;
    answer->tick = pair->post_tick;
    answer->site = pair->post_site;
}

/* found 0: nothing is known of the pair. */
static void note_start(struct oriel_member_states *notes, const struct oriel_member_state_ask *ask,
                       struct oriel_member_state_answer *answer)
{
    struct pair *pair = find_pair(notes, ask->other, ask->member);
    if (pair == NULL)
        return;
    pair->starts++;
    pair->start_site = ask->site;
    tell_posted(pair, answer);
    const struct member *target = &notes->members[ask->other];
    if (target->freeing && pair->starts > pair->posts) {
        answer->gone_rank = ask->other;
        answer->gone_site = target->free_site;
    }
}

static void forget_post(struct oriel_member_states *notes, const struct oriel_member_state_ask *ask)
{
    struct pair *pair = find_pair(notes, ask->member, ask->other);
    if (pair != NULL && pair->posts > 0)
        pair->posts--;
}

static void forget_start(struct oriel_member_states *notes,
                         const struct oriel_member_state_ask *ask)
{
    struct pair *pair = find_pair(notes, ask->other, ask->member);
    if (pair != NULL && pair->starts > 0)
        pair->starts--;
}

static void find_posted(struct oriel_member_states *notes, const struct oriel_member_state_ask *ask,
                        struct oriel_member_state_answer *answer)
{
    const struct pair *pair = find_pair(notes, ask->other, ask->member);
    if (pair != NULL)
        tell_posted(pair, answer);
}

static void find_unequal(const struct oriel_member_states *notes,
                         const struct oriel_member_state_ask *ask,
                         struct oriel_member_state_answer *answer)
{
    uint64_t number = 0;
    for (oriel_shm_offset place = notes->members[ask->member].pairs; place != 0;) {
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

static void note_end(struct oriel_member_states *notes, const struct oriel_member_state_ask *ask,
                     struct oriel_member_state_answer *answer)
{
    struct member *own = &notes->members[ask->member];
    own->freeing = 1;
    own->free_site = ask->site;
    notes->ending = true;
    for (int32_t i = 0; i < notes->n && !answer->found; i++)
        if (notes->members[i].fences > own->fences) {
            answer->found = 1;
            answer->site = notes->members[i].fence_site;
        }
}

/* Finds a member that waits for a start of this one. */
static void find_waiting_post(const struct oriel_member_states *notes, int32_t origin,
                              struct oriel_member_state_answer *answer)
{
    for (int32_t i = 0; i < notes->n; i++)
        for (oriel_shm_offset place = notes->members[i].freeing ? 0 : notes->members[i].pairs;
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

static void find_wanted(struct oriel_member_states *notes, const struct oriel_member_state_ask *ask,
                        struct oriel_member_state_answer *answer)
{
    struct member *own = &notes->members[ask->member];
    for (int32_t i = 0; i < notes->n; i++)
        if (notes->members[i].fences > own->fences) {
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
    find_waiting_post(notes, ask->member, answer);
}

/* --- regions --- */

static struct oriel_member_range stretch_of(const struct oriel_access_extent *extent)
{
    return (struct oriel_member_range){.address = (uint64_t)extent->offset,
                                       .len_bytes = extent->len_bytes};
}

static void find_attached(const struct oriel_member_states *notes,
                          const struct oriel_member_state_ask *ask,
                          struct oriel_member_state_answer *answer)
{
    answer->run = stretch_of(&ask->extent);
    answer->found =
        oriel_attached_has(notes->members[ask->other].regions, &answer->run, ask->extent.count,
                           ask->extent.stride_bytes, &answer->nearest);
}

/* --- questions --- */

void oriel_member_state_work(struct oriel_member_states *notes,
                             const struct oriel_member_state_ask *ask,
                             struct oriel_member_state_answer *answer)
{
    *answer = (struct oriel_member_state_answer){.rank = -1, .gone_rank = -1};
    oriel_shm_lock(&notes->lock);
    switch (ask->kind) {
    case ORIEL_MEMBER_FENCE: note_fence(notes, ask, answer); break;
    case ORIEL_MEMBER_NO_PUT: find_no_put(notes, ask, answer); break;
    case ORIEL_MEMBER_POST: note_post(notes, ask); break;
    case ORIEL_MEMBER_START: note_start(notes, ask, answer); break;
    case ORIEL_MEMBER_NO_POST: forget_post(notes, ask); break;
    case ORIEL_MEMBER_NO_START: forget_start(notes, ask); break;
    case ORIEL_MEMBER_NO_FENCE: forget_fence(notes, ask); break;
    case ORIEL_MEMBER_POSTED: find_posted(notes, ask, answer); break;
    case ORIEL_MEMBER_END: note_end(notes, ask, answer); break;
    case ORIEL_MEMBER_UNEQUAL: find_unequal(notes, ask, answer); break;
    case ORIEL_MEMBER_WANTED: find_wanted(notes, ask, answer); break;
    case ORIEL_MEMBER_ATTACH:
        oriel_attached_add(&notes->members[ask->member].regions, stretch_of(&ask->extent));
        break;
    case ORIEL_MEMBER_DETACH:
        oriel_attached_remove(&notes->members[ask->member].regions, (uint64_t)ask->extent.offset);
        break;
    case ORIEL_MEMBER_ATTACHED: find_attached(notes, ask, answer); break;
    default: break;
    }
    oriel_shm_unlock(&notes->lock);
}

struct question {
    const struct oriel_member_state_ask *ask;
    struct oriel_member_state_answer *answer;
    bool is_right;
};

static bool work_under_key(void *at, bool made, void *closure)
{
    struct oriel_member_states *notes = at;
    struct question *question = closure;
    (void)made;
    question->is_right = question->ask->kind < ORIEL_MEMBER_KINDS &&
                         question->ask->kind != ORIEL_MEMBER_ATTACH &&
                         question->ask->kind != ORIEL_MEMBER_DETACH && question->ask->member >= 0 &&
                         question->ask->member < notes->n && question->ask->other >= 0 &&
                         question->ask->other < notes->n;
    if (question->is_right)
        oriel_member_state_work(notes, question->ask, question->answer);
    return true;
}

static struct oriel_key key_of(uint64_t window)
{
    return (struct oriel_key){
        .words = {UINT64_C(0x4e4f544553), window}}; /* "NOTES": above all kinds of order.h */
}

bool oriel_member_state_answer(uint64_t window, const struct oriel_member_state_ask *ask,
                               struct oriel_member_state_answer *answer)
{
    struct oriel_key key = key_of(window);
    struct question question = {.ask = ask, .answer = answer};
    return oriel_shm_work(&key, 0, work_under_key, &question) && question.is_right;
}

/* --- creation and end --- */

static void init(void *at)
{
    struct oriel_member_states *notes = at;
    oriel_shm_lock_init(&notes->lock);
}

struct oriel_member_states *oriel_member_states_find(uint64_t window, int n, int members_here)
{
    struct oriel_key key = key_of(window);
    size_t len_bytes =
        sizeof(struct oriel_member_states) + (size_t)(unsigned)n * sizeof(struct member);
    struct oriel_member_states *notes = oriel_shm_at(oriel_shm_find(&key, len_bytes, init));
    if (notes == NULL)
        return NULL;
    notes->members_here = members_here; /* all members write the same values */
    notes->n = n;
    return notes;
}

static bool leave(void *at, bool made, void *closure)
{
    struct oriel_member_states *notes = at;
    (void)made;
    (void)closure;
    if (++notes->left < notes->members_here)
        return true;
    for (int32_t i = 0; i < notes->n; i++) {
        struct member *member = &notes->members[i];
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
    struct oriel_key key = key_of(window);
    oriel_shm_work(&key, 0, leave, NULL);
}
