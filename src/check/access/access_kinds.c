/* Traits, found in the checker's shared memory by a key of their fields. Each thread caches the
 * traits that it looked up last. */
#include "check/access/access_kinds.h"

#include "base/atomic.h"

enum { CACHED = 64 }; /* a power of 2 */

#define TRAIT_KEY UINT64_C(0x5452414954) /* "TRAIT": larger than every kind in order.h */

struct cached_trait {
    struct oriel_key key;
    uint64_t turn; /* oriel_shm_turn() of the lookup */
    oriel_shm_offset trait;
};

static struct oriel_key trait_key(const struct oriel_access *access)
{
    const struct oriel_site *site = &access->site;
    return (struct oriel_key){{
        TRAIT_KEY << 24 | (uint64_t)access->kind << 16 | (uint64_t)access->op << 8 |
            access->element,
        site->address,
        (uint64_t)access->phase << 40 | (uint64_t)access->flags << 32 | (uint64_t)site->call << 16 |
            site->epoch,
        (uint64_t)(uint32_t)access->origin << 32 | site->world_rank,
    }};
}

struct trait_filling {
    const struct oriel_access *access;
    oriel_shm_offset trait;
};

static bool trait_fill(void *at, bool made, void *closure)
{
    struct trait_filling *filling = closure;
    struct oriel_access *common = at;
    if (made) {
        *common = *filling->access;
        common->snapshot = 0;
        common->complete = common->issued = ORIEL_TICK_PENDING;
        common->group = 0;
    }
    filling->trait = oriel_shm_place(at);
    return true;
}

oriel_shm_offset oriel_trait_of(const struct oriel_access *access)
{
    static _Thread_local struct cached_trait cache[CACHED];
    struct oriel_key key = trait_key(access);
    uint64_t mixed = (key.words[1] ^ key.words[2] ^ key.words[0] << 3 ^ key.words[3] << 7) *
                     UINT64_C(0x9e3779b97f4a7c15);
    struct cached_trait *cached = &cache[mixed >> 58];
    uint64_t turn = oriel_shm_turn();
    if (oriel_likely(cached->key.words[0] == key.words[0] && cached->key.words[1] == key.words[1] &&
                     cached->key.words[2] == key.words[2] && cached->key.words[3] == key.words[3] &&
                     cached->turn == turn))
        return cached->trait;
    struct trait_filling filling = {.access = access};
    if (!oriel_shm_work(&key, sizeof *access, trait_fill, &filling))
        return 0;
    *cached = (struct cached_trait){key, turn, filling.trait};
    return filling.trait;
}
