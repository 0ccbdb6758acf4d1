/* Open addressing with linear probing under a sequence lock.
 *
 *   Reader:
 *   T1: load version until it is even (acquire)
 *   T2: probe
 *   T3: load version again, after an acquire fence; if it has changed, go to T1
 *
 *   Writer:
 *   T4: make version odd, then a release fence
 *   T5: change the slots
 *   T6: make version even (release)
 *
 * A reader that has seen any store of T5 sees T4 in its T3 and starts again. Writers exclude each
 * other with the mutex, and their critical sections are short. Removal moves later keys back, so it
 * leaves no tombstones and turnover does not grow the table. Growth allocates new slots and retires
 * the old ones until the table is closed, because a reader may still read them. Together the
 * retired slots are no larger than the new ones. */
#include "base/hash_table.h"

#include "base/atomic.h"

#include <stdlib.h>

struct slot {
    _Atomic uint64_t key;
    _Atomic(void *) value; /* NULL if the slot is empty */
};

struct oriel_hash_table_slots {
    struct oriel_hash_table_slots *retired;
    uint64_t mask;
    uint64_t used;
    struct slot slot[];
};

static uint64_t key_hash(uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return key ^ (key >> 29);
}

static void *slot_value(const struct slot *slot)
{
    return atomic_load_explicit(&slot->value, memory_order_relaxed);
}

static uint64_t slot_key(const struct slot *slot)
{
    return atomic_load_explicit(&slot->key, memory_order_relaxed);
}

static void slot_store(struct slot *slot, uint64_t key, void *value)
{
    atomic_store_explicit(&slot->key, key, memory_order_relaxed);
    atomic_store_explicit(&slot->value, value, memory_order_relaxed);
}

/* The slot of key, or the empty slot where key would be inserted. The search also terminates during
 * a concurrent change, possibly with a wrong result. */
static struct slot *slot_find(struct oriel_hash_table_slots *slots, uint64_t key)
{
    uint64_t at = key_hash(key);
    for (uint64_t i = 0; i < slots->mask; i++, at++) {
        struct slot *slot = &slots->slot[at & slots->mask];
        if (slot_value(slot) == NULL || slot_key(slot) == key)
            return slot;
    }
    return &slots->slot[at & slots->mask];
}

void *oriel_hash_table_find(struct oriel_hash_table *table, uint64_t key)
{
    for (;;) {
        uint64_t version = atomic_load_explicit(&table->version, memory_order_acquire); /* T1 */
        struct oriel_hash_table_slots *slots =
            atomic_load_explicit(&table->slots, memory_order_acquire);
        void *value = NULL;
        if (slots != NULL) {
            struct slot *slot = slot_find(slots, key); /* T2 */
            value = slot_value(slot);
            if (slot_key(slot) != key)
                value = NULL;
        }
        atomic_thread_fence(memory_order_acquire);
        if (version % 2 == 0 &&
            atomic_load_explicit(&table->version, memory_order_relaxed) == version) /* T3 */
            return value;
        oriel_cpu_relax();
    }
}

static void write_begin(struct oriel_hash_table *table)
{
    uint64_t version = atomic_load_explicit(&table->version, memory_order_relaxed);
    atomic_store_explicit(&table->version, version + 1, memory_order_relaxed); /* T4 */
    atomic_thread_fence(memory_order_release);
}

static void write_end(struct oriel_hash_table *table)
{
    uint64_t version = atomic_load_explicit(&table->version, memory_order_relaxed);
    atomic_store_explicit(&table->version, version + 1, memory_order_release); /* T6 */
}

/* Doubles the number of slots and keeps the keys. */
static bool slots_grow(struct oriel_hash_table *table)
{
    struct oriel_hash_table_slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    uint64_t size = old == NULL ? 64 : 2 * (old->mask + 1);
    struct oriel_hash_table_slots *slots = calloc(1, sizeof *slots + size * sizeof slots->slot[0]);
    if (slots == NULL)
        return false;
    slots->mask = size - 1;
    slots->retired = old;
    for (uint64_t i = 0; old != NULL && i <= old->mask; i++)
        if (slot_value(&old->slot[i]) != NULL)
            slot_store(slot_find(slots, slot_key(&old->slot[i])), slot_key(&old->slot[i]),
                       slot_value(&old->slot[i]));
    slots->used = old == NULL ? 0 : old->used;
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return true;
}

/* The caller holds the mutex. */
static bool slots_reserve(struct oriel_hash_table *table)
{
    struct oriel_hash_table_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_relaxed);
    return (slots != NULL && 2 * (slots->used + 1) <= slots->mask) || slots_grow(table);
}

bool oriel_hash_table_reserve(struct oriel_hash_table *table)
{
    pthread_mutex_lock(&table->mutex);
    bool ok = slots_reserve(table);
    pthread_mutex_unlock(&table->mutex);
    return ok;
}

bool oriel_hash_table_set_nolock(struct oriel_hash_table *table, uint64_t key, void *value)
{
    bool ok = slots_reserve(table);
    if (ok) {
        struct oriel_hash_table_slots *slots =
            atomic_load_explicit(&table->slots, memory_order_relaxed);
        struct slot *slot = slot_find(slots, key);
        slots->used += slot_value(slot) == NULL;
        write_begin(table);
        slot_store(slot, key, value);
        write_end(table);
    }
    return ok;
}

bool oriel_hash_table_set(struct oriel_hash_table *table, uint64_t key, void *value)
{
    pthread_mutex_lock(&table->mutex);
    bool ok = oriel_hash_table_set_nolock(table, key, value);
    pthread_mutex_unlock(&table->mutex);
    return ok;
}

/* Empties a slot and moves back the keys whose probe sequence would end at it. */
static void slot_remove(struct oriel_hash_table_slots *slots, uint64_t hole)
{
    for (uint64_t at = (hole + 1) & slots->mask; slot_value(&slots->slot[at]) != NULL;
         at = (at + 1) & slots->mask) {
        struct slot *slot = &slots->slot[at];
        uint64_t home = key_hash(slot_key(slot)) & slots->mask;
        if (((at - home) & slots->mask) < ((at - hole) & slots->mask))
            continue; /* its probe sequence starts after the hole */
        slot_store(&slots->slot[hole], slot_key(slot), slot_value(slot));
        hole = at;
    }
    slot_store(&slots->slot[hole], 0, NULL);
}

bool oriel_hash_table_remove_nolock(struct oriel_hash_table *table, uint64_t key, const void *value)
{
    bool removed = false;
    struct oriel_hash_table_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (slots != NULL) {
        struct slot *slot = slot_find(slots, key);
        removed = value != NULL && slot_value(slot) == value && slot_key(slot) == key;
        if (removed) {
            write_begin(table);
            slot_remove(slots, (uint64_t)(slot - slots->slot));
            write_end(table);
            slots->used--;
        }
    }
    return removed;
}

bool oriel_hash_table_remove(struct oriel_hash_table *table, uint64_t key, const void *value)
{
    pthread_mutex_lock(&table->mutex);
    bool removed = oriel_hash_table_remove_nolock(table, key, value);
    pthread_mutex_unlock(&table->mutex);
    return removed;
}

void oriel_hash_table_visit(struct oriel_hash_table *table,
                            void (*visit)(void *value, void *context), void *context)
{
    pthread_mutex_lock(&table->mutex);
    struct oriel_hash_table_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_relaxed);
    for (uint64_t i = 0; slots != NULL && i <= slots->mask; i++)
        if (slot_value(&slots->slot[i]) != NULL)
            visit(slot_value(&slots->slot[i]), context);
    pthread_mutex_unlock(&table->mutex);
}

void oriel_hash_table_close(struct oriel_hash_table *table)
{
    struct oriel_hash_table_slots *slots =
        atomic_load_explicit(&table->slots, memory_order_relaxed);
    atomic_store_explicit(&table->slots, NULL, memory_order_relaxed);
    while (slots != NULL) {
        struct oriel_hash_table_slots *retired = slots->retired;
        free(slots);
        slots = retired;
    }
}
