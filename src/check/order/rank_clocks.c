/* Rows of clocks, and clocks under keys. Only its process writes a row; a taker of a whole row
 * requests a larger number from it (order.c, O2). */
#include "check/order/rank_clocks.h"

#include "check/order/order.h"

/* Under ORIEL_ORDER_CLOCKS. */
struct ranks {
    _Atomic uint32_t doubtful;
    _Atomic uint32_t lost;
    _Atomic oriel_shm_offset rows[];
};

/* An entry under a key. */
struct given {
    uint32_t takers; /* 0: the entry stays */
    uint32_t taken;
    oriel_tick clock[];
};

static struct ranks *ranks;
const _Atomic uint32_t *oriel_given_lost;
static int width;

void oriel_clock_take(oriel_tick *into, const oriel_tick *from, int clock_width)
{
    for (int i = 0; i < clock_width; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}

bool oriel_ranks_open(void)
{
    struct oriel_key key = {{ORIEL_ORDER_CLOCKS, 0, 0, 0}};
    width = oriel_order_width();
    ranks = oriel_shm_at(
        oriel_shm_find(&key, sizeof *ranks + (size_t)width * sizeof(oriel_shm_offset), NULL));
    oriel_given_lost = ranks == NULL ? NULL : &ranks->lost;
    return ranks != NULL;
}

struct oriel_rank *oriel_ranks_add(int index)
{
    oriel_shm_offset place =
        oriel_shm_allocate(sizeof(struct oriel_rank) + (size_t)width * sizeof(oriel_tick));
    struct oriel_rank *rank = oriel_shm_at(place);
    if (rank == NULL)
        return NULL;
    /* the first number of its slot */
    atomic_store(&rank->known[index],
                 oriel_clock_step() | ((oriel_tick)(unsigned)index & (oriel_clock_step() - 1)));
    atomic_store(&rank->state, ORIEL_RANK_RUNNING);
    atomic_store_explicit(&ranks->rows[index], place, memory_order_release);
    return rank;
}

static struct oriel_rank *row_at(int index)
{
    return oriel_shm_at(atomic_load_explicit(&ranks->rows[index], memory_order_acquire));
}

struct oriel_rank *oriel_rank_at(int world_rank)
{
    return world_rank < 0 || world_rank >= oriel_shm_world_size()
               ? NULL
               : row_at(oriel_clock_index(world_rank, 0));
}

static void tick_raise_to(oriel_tick *into, oriel_tick tick)
{
    if (tick > *into)
        *into = tick;
}

bool oriel_row_take(int index, oriel_tick *out)
{
    struct oriel_rank *rank = row_at(index);
    if (rank == NULL)
        return false;
    atomic_fetch_add(&rank->asked, 1); /* O2 */
    for (int i = 0; i < width; i++)
        tick_raise_to(&out[i], oriel_rank_tick(rank, i));
    return true;
}

bool oriel_rank_take(int world_rank, oriel_tick *out)
{
    if (oriel_rank_at(world_rank) == NULL)
        return false;
    for (oriel_tick slot = 0; slot < oriel_clock_step(); slot++)
        oriel_row_take(oriel_clock_index(world_rank, slot), out);
    return true;
}

void oriel_ranks_take_all(int but, oriel_tick *out)
{
    for (int index = 0; index < width; index++)
        if (index != but)
            oriel_row_take(index, out);
}

void oriel_ranks_floor(oriel_tick *out, bool *any)
{
    for (int index = 0; index < width; index++) {
        const struct oriel_rank *rank = row_at(index);
        if (rank == NULL ||
            atomic_load_explicit(&rank->state, memory_order_acquire) != ORIEL_RANK_RUNNING)
            continue;
        for (int i = 0; i < width; i++) {
            oriel_tick tick = oriel_rank_tick(rank, i);
            out[i] = !*any || tick < out[i] ? tick : out[i];
        }
        *any = true;
    }
}

/* --- entries under keys --- */

struct joining {
    uint32_t takers;
    const oriel_tick *clock;
};

static bool given_clock_merge(void *at, bool made, void *closure)
{
    const struct joining *joining = closure;
    struct given *given = at;
    if (made)
        given->takers = joining->takers;
    oriel_clock_take(given->clock, joining->clock, width);
    return true;
}

static size_t given_bytes(void)
{
    return sizeof(struct given) + (size_t)width * sizeof(oriel_tick);
}

void oriel_given_join(const struct oriel_key *key, uint32_t takers, bool more,
                      const oriel_tick *clock)
{
    struct joining joining = {.takers = takers, .clock = clock};
    if (!oriel_shm_work(key, more ? 0 : given_bytes(), given_clock_merge, &joining) && !more)
        oriel_given_set_lost();
}

struct taking {
    uint32_t takers;
    unsigned how;
    oriel_tick *out;
    bool made;
};

static bool given_clock_take(void *at, bool made, void *closure)
{
    struct taking *taking = closure;
    struct given *given = at;
    taking->made = made;
    if (made)
        given->takers = taking->takers;
    if (taking->how & ORIEL_GIVEN_TAKES)
        oriel_clock_take(taking->out, given->clock, width);
    if (taking->how & ORIEL_GIVEN_COUNTS)
        given->taken++;
    return given->takers == 0 || given->taken < given->takers;
}

bool oriel_given_take(const struct oriel_key *key, uint32_t takers, unsigned how, oriel_tick *out,
                      bool *made)
{
    struct taking taking = {.takers = takers, .how = how, .out = out};
    bool found = oriel_shm_work(key, takers > 0 ? given_bytes() : 0, given_clock_take, &taking);
    *made = taking.made;
    return found;
}

static bool counter_add(void *at, bool made, void *closure)
{
    uint32_t *number = at;
    uint32_t *more = closure;
    (void)made;
    *number += *more;
    *more = *number;
    return true;
}

uint32_t oriel_given_count(const struct oriel_key *key, uint32_t more)
{
    oriel_shm_work(key, sizeof(uint32_t), counter_add, &more);
    return more;
}

void oriel_given_set_lost(void)
{
    atomic_fetch_or(&ranks->lost, ORIEL_GIVEN_LOST);
}

void oriel_given_set_client_lost(void)
{
    atomic_fetch_or(&ranks->lost, ORIEL_GIVEN_LOST_CLIENT);
}

void oriel_given_set_doubtful(void)
{
    atomic_store(&ranks->doubtful, 1);
}

void oriel_given_leave(void)
{
    oriel_given_set_doubtful();
    atomic_fetch_or(&ranks->lost, ORIEL_GIVEN_LOST_RANK);
}

bool oriel_given_has_left(void)
{
    return ranks != NULL &&
           (atomic_load_explicit(&ranks->lost, memory_order_acquire) & ORIEL_GIVEN_LOST_RANK) != 0;
}

bool oriel_given_is_doubtful(void)
{
    return atomic_load_explicit(&ranks->doubtful, memory_order_relaxed) != 0;
}
