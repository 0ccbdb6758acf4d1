/* The table of keys in the checker's shared memory: chains of entries under striped locks. A single
 * store links or unlinks an entry, so a process that dies meanwhile leaves a valid table. */
#include "check/shm/shm_internal.h"

#include <string.h>

struct entry {
    oriel_shm_offset next;
    struct oriel_key key;
    uint64_t len_bytes; /* of the block after the entry */
};
_Static_assert(sizeof(struct entry) % 16 == 0, "a key's block is aligned as an allocation");

/* The words of keys are small numbers that differ in a few bits. */
static uint64_t key_hash(const struct oriel_key *key)
{
    uint64_t h = 0;
    for (int i = 0; i < 4; i++) {
        h = (h ^ key->words[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h * UINT64_C(0xbf58476d1ce4e5b9) >> 20;
}

/* Returns the head of the key's chain, with its lock held. */
static oriel_shm_offset *chain_lock(const struct oriel_key *key, struct oriel_shm_lock **lock)
{
    uint64_t bucket = key_hash(key) & (oriel_shm_head->buckets - 1);
    *lock = &oriel_shm_head->stripes[bucket % ORIEL_SHM_STRIPES];
    oriel_shm_lock(*lock);
    return &oriel_shm_head->bucket[bucket];
}

/* Returns the link to the key's entry, or the last link of the chain, which is 0. */
static oriel_shm_offset *link_find(oriel_shm_offset *link, const struct oriel_key *key)
{
    while (*link != 0) {
        struct entry *entry = oriel_shm_at(*link);
        if (memcmp(&entry->key, key, sizeof *key) == 0)
            break;
        link = &entry->next;
    }
    return link;
}

static struct entry *entry_make_at(oriel_shm_offset *link, const struct oriel_key *key,
                                   size_t len_bytes)
{
    oriel_shm_offset place = oriel_shm_allocate(sizeof(struct entry) + len_bytes);
    struct entry *entry = oriel_shm_at(place);
    if (entry == NULL)
        return NULL;
    entry->key = *key;
    entry->len_bytes = len_bytes;
    *link = place;
    return entry;
}

static void entry_unlink(oriel_shm_offset *link)
{
    oriel_shm_offset place = *link;
    struct entry *entry = oriel_shm_at(place);
    *link = entry->next;
    oriel_shm_free(place, sizeof *entry + entry->len_bytes);
}

oriel_shm_offset oriel_shm_find(const struct oriel_key *key, size_t len_bytes,
                                void (*init)(void *at))
{
    struct oriel_shm_lock *lock;
    if (!oriel_shm_is_open())
        return 0;
    oriel_shm_offset *link = link_find(chain_lock(key, &lock), key);
    struct entry *entry = oriel_shm_at(*link);
    if (entry == NULL) {
        /* Initialised before it is linked: a process that dies meanwhile leaves no incomplete
         * entry. */
        oriel_shm_offset unlinked = 0;
        entry = entry_make_at(&unlinked, key, len_bytes);
        if (entry != NULL && init != NULL)
            init(entry + 1);
        *link = unlinked;
    }
    oriel_shm_unlock(lock);
    return oriel_shm_place(entry == NULL ? NULL : entry + 1);
}

bool oriel_shm_work(const struct oriel_key *key, size_t len_bytes, oriel_shm_work_fn *work,
                    void *closure)
{
    struct oriel_shm_lock *lock;
    if (!oriel_shm_is_open())
        return false;
    oriel_shm_offset *link = link_find(chain_lock(key, &lock), key);
    bool made = *link == 0 && len_bytes > 0;
    struct entry *entry = made ? entry_make_at(link, key, len_bytes) : oriel_shm_at(*link);
    if (entry != NULL && !work(entry + 1, made, closure))
        entry_unlink(link);
    oriel_shm_unlock(lock);
    return entry != NULL;
}

void oriel_shm_drop(const struct oriel_key *key)
{
    struct oriel_shm_lock *lock;
    if (!oriel_shm_is_open())
        return;
    oriel_shm_offset *link = link_find(chain_lock(key, &lock), key);
    if (*link != 0)
        entry_unlink(link);
    oriel_shm_unlock(lock);
}
