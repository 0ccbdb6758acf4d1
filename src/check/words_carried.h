/* The clocks that words of a memory carry: accumulates that write give theirs to the word, and those that fetch take the word's
 * (windows_access.c says why).  A memory's words stand in the board, for all processes; each is made when first given to.
 * windows_access.c and windows.c call. */
#ifndef ORIEL_CHECK_WORDS_CARRIED_H
#define ORIEL_CHECK_WORDS_CARRIED_H

#include "check/board.h"
#include "check/clock.h"

#define ORIEL_WORD_BULK UINT64_MAX /* the one that stands for accumulates of many elements */

/* Of a memory of about so many bytes (0: nobody knows).  0 when the board is full. */
oriel_place oriel_words_make(uint64_t size_bytes);
void oriel_words_free(oriel_place words);

struct oriel_word;

/* The own clock goes to the word at the offset; then the own number is raised.  fetches: and the word's is taken.  False, and
 * nothing has happened: the board is full. */
bool oriel_word_give(oriel_place words, uint64_t offset, bool fetches);

/* The same in two steps, between which this thread does a locked instruction (base/atomic.h), and gives and takes nothing.  now:
 * the own number.  NULL: the board is full.  Not where several threads may be at work. */
struct oriel_word *oriel_word_offer(oriel_place words, uint64_t offset, oriel_tick now, bool *offered);
void oriel_word_give_offered(struct oriel_word *word, bool offered, bool fetches);

/* Takes the word's clock.  False: nobody has given, or not all have given here, for the board was full at times. */
bool oriel_word_take(oriel_place words, uint64_t offset);

/* The same of one that this process has given to, and fetched from, just now. */
bool oriel_word_take_again(struct oriel_word *word);

#endif
