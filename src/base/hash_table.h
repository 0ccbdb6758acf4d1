/* A table from 64-bit keys to pointers, read without a lock.  Readers see either the old or the new value of a key that
 * is being changed; writers exclude each other by the table's own mutex.  Any layer may use it. */
#ifndef ORIEL_BASE_HASH_TABLE_H
#define ORIEL_BASE_HASH_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct oriel_hash_table_slots;

struct oriel_hash_table {
    pthread_mutex_t mutex;
    _Atomic uint64_t version; /* odd while a writer is at work */
    _Atomic(struct oriel_hash_table_slots *) slots;
};

#define ORIEL_HASH_TABLE_INIT                                                                      \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .version = 0, .slots = NULL                            \
    }

/* The value of key, or NULL. */
void *oriel_hash_table_find(struct oriel_hash_table *table, uint64_t key);

/* Sets the value (never NULL) of key, replacing what was there; false when memory is exhausted. */
bool oriel_hash_table_set(struct oriel_hash_table *table, uint64_t key, void *value);

/* Makes room, so that the next key that is set needs no memory; false when memory is exhausted. */
bool oriel_hash_table_reserve(struct oriel_hash_table *table);

/* Removes key if its value is still the one given; true when it was. */
bool oriel_hash_table_remove(struct oriel_hash_table *table, uint64_t key, const void *value);

/* The same two where the caller has a mutex of its own that keeps all other writers out. */
bool oriel_hash_table_set_alone(struct oriel_hash_table *table, uint64_t key, void *value);
bool oriel_hash_table_remove_alone(struct oriel_hash_table *table, uint64_t key, const void *value);

/* Calls visit for every value, with the writers shut out: visit must not change the table. */
void oriel_hash_table_visit(struct oriel_hash_table *table,
                            void (*visit)(void *value, void *context), void *context);

/* Frees the slots, not the values; nobody may read or write any more. */
void oriel_hash_table_close(struct oriel_hash_table *table);

#endif
