/* What words.c offers: the words of a text, each with its hash.
 * A word is a longest run of the letters a to z and A to Z, in lower case; every other byte separates.
 * A word of more than 48 letters is cut to its first 48, so longer words that begin alike count as one. */
#ifndef WORDCOUNT_WORDS_H
#define WORDCOUNT_WORDS_H

#include <stddef.h>
#include <stdint.h>

enum { WORD_BYTES = 48 };

struct word {
    uint64_t hash;
    char text[WORD_BYTES]; /* padded with zero bytes, not terminated when full */
};

/* Spreads a number over all 64 bits. */
uint64_t hash_mix(uint64_t x);

/* Never 0, and bit 0 is clear: the table has its own use for both. */
uint64_t text_hash(const char text[WORD_BYTES]);

/* Returns how many words the text has, and writes them when `words` is not NULL. */
size_t text_split(const char *text, size_t len_bytes, struct word *words);

/* Collective: rank 0 reads the file, all receive its contents, to be freed. NULL on all ranks, after a message
 * from rank 0, when it cannot be read. */
char *text_load(const char *path, int rank, size_t *len_bytes);

#endif
