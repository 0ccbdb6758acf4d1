/* The words of a text, each with its hash. A word is a maximal run of the letters a to z and A to
 * Z, in lower case; every other byte is a separator. Words of more than 48 letters are cut to the
 * first 48; longer words with the same beginning count as one. */
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

/* Never 0, and bit 0 is clear: the table uses both values itself. */
uint64_t text_hash(const char text[WORD_BYTES]);

/* Returns the number of words in the text, and writes them when `words` is not NULL. */
size_t text_split(const char *text, size_t len_bytes, struct word *words);

/* Collective: rank 0 reads the file, and all ranks receive its contents, to be freed. When it
 * cannot be read, returns NULL on all ranks after a message from rank 0. */
char *text_load(const char *path, int rank, size_t *len_bytes);

#endif
