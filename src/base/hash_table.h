/* A table from 64-bit keys to pointers with lock-free reads. During a change a reader sees either
 * the old or the new value of the key. Writers exclude each other with the table's mutex. */
#ifndef ORIEL_BASE_HASH_TABLE_H
#define ORIEL_BASE_HASH_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct oriel_hash_table_slots;

struct oriel_hash_table {
    pthread_mutex_t mutex;
    _Atomic uint64_t version; /* odd during a change */
    _Atomic(struct oriel_hash_table_slots *) slots;
};

#define ORIEL_HASH_TABLE_INIT                                                                      \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .version = 0, .slots = NULL                            \
    }

/* The value of key, or NULL. */
void *oriel_hash_table_find(struct oriel_hash_table *table, uint64_t key);

/* Sets the value of key (not NULL) and replaces any old value. Returns false if memory is
 * exhausted. */
bool oriel_hash_table_set(struct oriel_hash_table *table, uint64_t key, void *value);

/* Reserves space, so the next insertion needs no memory. Returns false if memory is exhausted. */
bool oriel_hash_table_reserve(struct oriel_hash_table *table);

/* Removes key if its value is still the given one. Returns true if it did. */
bool oriel_hash_table_remove(struct oriel_hash_table *table, uint64_t key, const void *value);

/* The same two functions for callers that exclude all other writers with their own mutex. */
bool oriel_hash_table_set_nolock(struct oriel_hash_table *table, uint64_t key, void *value);
bool oriel_hash_table_remove_nolock(struct oriel_hash_table *table, uint64_t key,
                                    const void *value);

/* Calls visit for every value while it holds the writers' mutex; visit must not change the
 * table. */
void oriel_hash_table_visit(struct oriel_hash_table *table,
                            void (*visit)(void *value, void *context), void *context);

/* Frees the slots, not the values. No reader or writer may use the table any more. */
void oriel_hash_table_close(struct oriel_hash_table *table);

#endif
