/* Open addressing with linear probing.  A removed key keeps its slot, with a NULL value, for as long as another key's
 * probe may have to pass it, that is until the slot behind it is empty.  Growing makes new slots and retires the old ones
 * to the table's end of life, because a reader may still look at them: together they are no larger than the new ones. */
#include "base/table.h"

#include "base/atomic.h"

#include <stdlib.h>

struct slot {
    _Atomic uint64_t key; /* key + 1, 0 when the slot was never used */
    _Atomic(void *) value;
};

struct oriel_table_slots {
    struct oriel_table_slots *retired; /* older slots that readers may still look at */
    uint64_t mask;
    uint64_t used; /* slots with a key, removed ones too */
    struct slot slot[];
};

static uint64_t hash(uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return key ^ (key >> 29);
}

static struct slot *find_slot(struct oriel_table_slots *slots, uint64_t stored)
{
    for (uint64_t i = hash(stored);; i++) {
        struct slot *slot = &slots->slot[i & slots->mask];
        uint64_t found = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (found == stored || found == 0)
            return slot;
    }
}

void *oriel_table_find(struct oriel_table *table, uint64_t key)
{
    struct oriel_table_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    if (slots == NULL)
        return NULL;
    return atomic_load_explicit(&find_slot(slots, key + 1)->value, memory_order_acquire);
}

/* Copies the live slots into new ones with room for as many again. */
static bool rebuild(struct oriel_table *table)
{
    struct oriel_table_slots *old = atomic_load_explicit(&table->slots, memory_order_relaxed);
    uint64_t live = 0;
    for (uint64_t i = 0; old != NULL && i <= old->mask; i++)
        live += atomic_load_explicit(&old->slot[i].value, memory_order_relaxed) != NULL;
    uint64_t size = 64;
    while (size < 4 * (live + 1))
        size *= 2;
    struct oriel_table_slots *slots = calloc(1, sizeof *slots + size * sizeof slots->slot[0]);
    if (slots == NULL)
        return false;
    slots->mask = size - 1;
    slots->retired = old;
    for (uint64_t i = 0; old != NULL && i <= old->mask; i++) {
        void *value = atomic_load_explicit(&old->slot[i].value, memory_order_relaxed);
        if (value == NULL)
            continue;
        uint64_t stored = atomic_load_explicit(&old->slot[i].key, memory_order_relaxed);
        struct slot *slot = find_slot(slots, stored);
        atomic_store_explicit(&slot->value, value, memory_order_relaxed);
        atomic_store_explicit(&slot->key, stored, memory_order_relaxed);
        slots->used++;
    }
    atomic_store_explicit(&table->slots, slots, memory_order_release);
    return true;
}

bool oriel_table_set(struct oriel_table *table, uint64_t key, void *value)
{
    bool ok = true;
    pthread_mutex_lock(&table->mutex);
    struct oriel_table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (slots == NULL || 2 * (slots->used + 1) > slots->mask) {
        ok = rebuild(table);
        slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    }
    if (ok) {
        struct slot *slot = find_slot(slots, key + 1);
        slots->used += atomic_load_explicit(&slot->key, memory_order_relaxed) == 0;
        atomic_store_explicit(&slot->value, value, memory_order_release);
        atomic_store_explicit(&slot->key, key + 1, memory_order_release);
    }
    pthread_mutex_unlock(&table->mutex);
    return ok;
}

/* Empties the removed slot at index, and the removed ones before it, when no probe has to pass them any more. */
static void empty_backwards(struct oriel_table_slots *slots, uint64_t index)
{
    for (;; index--) {
        struct slot *slot = &slots->slot[index & slots->mask];
        struct slot *behind = &slots->slot[(index + 1) & slots->mask];
        if (atomic_load_explicit(&behind->key, memory_order_relaxed) != 0 ||
            atomic_load_explicit(&slot->key, memory_order_relaxed) == 0 ||
            atomic_load_explicit(&slot->value, memory_order_relaxed) != NULL)
            return;
        atomic_store_explicit(&slot->key, 0, memory_order_release);
        slots->used--;
    }
}

bool oriel_table_remove(struct oriel_table *table, uint64_t key, const void *value)
{
    bool removed = false;
    pthread_mutex_lock(&table->mutex);
    struct oriel_table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    if (slots != NULL) {
        struct slot *slot = find_slot(slots, key + 1);
        removed = value != NULL && atomic_load_explicit(&slot->value, memory_order_relaxed) == value;
        if (removed) {
            atomic_store_explicit(&slot->value, NULL, memory_order_release);
            empty_backwards(slots, (uint64_t)(slot - slots->slot));
        }
    }
    pthread_mutex_unlock(&table->mutex);
    return removed;
}

void oriel_table_visit(struct oriel_table *table, void (*visit)(void *value, void *context), void *context)
{
    struct oriel_table_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
    for (uint64_t i = 0; slots != NULL && i <= slots->mask; i++) {
        void *value = atomic_load_explicit(&slots->slot[i].value, memory_order_acquire);
        if (value != NULL)
            visit(value, context);
    }
}

void oriel_table_close(struct oriel_table *table)
{
    struct oriel_table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
    atomic_store_explicit(&table->slots, NULL, memory_order_relaxed);
    while (slots != NULL) {
        struct oriel_table_slots *retired = slots->retired;
        free(slots);
        slots = retired;
    }
}
