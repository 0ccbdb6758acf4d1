/* A hash table that grows with the envelopes in use.  Where there is no memory for a larger one the old one stays, and its chains
 * grow.  message_matching.c calls, under the lock of its table. */
#include "check/order/envelope_counts.h"

#include <stdlib.h>

enum { BUCKETS_FIRST = 64 };

static uint32_t bucket_of(const struct oriel_matching *matching, struct oriel_envelope envelope)
{
    uint64_t h = ((uint64_t)(uint32_t)envelope.peer << 32 | (uint32_t)envelope.tag) *
                 UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 33) & (matching->buckets - 1);
}

static void grow(struct oriel_matching *matching)
{
    struct oriel_matching old = *matching;
    uint32_t buckets = old.buckets == 0 ? BUCKETS_FIRST : 4 * old.buckets;
    struct oriel_envelope_count **tallies = calloc(buckets, sizeof(struct oriel_envelope_count *));
    if (tallies == NULL)
        return;
    matching->tallies = tallies;
    matching->buckets = buckets;
    for (uint32_t i = 0; i < old.buckets; i++)
        for (struct oriel_envelope_count *tally = old.tallies[i], *next; tally != NULL;
             tally = next) {
            struct oriel_envelope_count **first = &tallies[bucket_of(matching, tally->envelope)];
            next = tally->next;
            tally->next = *first;
            *first = tally;
        }
    free(old.tallies);
}

struct oriel_envelope_count *oriel_envelope_count_of(struct oriel_matching *matching,
                                                     struct oriel_envelope envelope)
{
    if (matching->used >= 2 * matching->buckets)
        grow(matching);
    if (matching->buckets == 0)
        return NULL;
    struct oriel_envelope_count **first = &matching->tallies[bucket_of(matching, envelope)];
    for (struct oriel_envelope_count *tally = *first; tally != NULL; tally = tally->next)
        if (oriel_envelope_same(tally->envelope, envelope))
            return tally;
    struct oriel_envelope_count *tally = calloc(1, sizeof *tally);
    if (tally == NULL)
        return NULL;
    tally->envelope = envelope;
    tally->next = *first;
    *first = tally;
    matching->used++;
    return tally;
}

void oriel_tallies_free(struct oriel_matching *matching)
{
    for (uint32_t i = 0; i < matching->buckets; i++)
        for (struct oriel_envelope_count *tally = matching->tallies[i], *next; tally != NULL;
             tally = next) {
            next = tally->next;
            free(tally);
        }
    free(matching->tallies);
}
