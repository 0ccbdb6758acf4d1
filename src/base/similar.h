/* The nearest of several names to a misspelt one, for "did you mean". Used by the library for
 * variables and by the command for commands and options. */
#ifndef ORIEL_BASE_SIMILAR_H
#define ORIEL_BASE_SIMILAR_H

#include <stddef.h>

struct oriel_similar {
    const char *wrong; /* the misspelt name, not terminated */
    size_t wrong_len;
    const char *found; /* the nearest name so far; NULL when none is near enough */
    size_t distance;   /* of found; otherwise one more than is near enough */
};

void oriel_similar_start(struct oriel_similar *similar, const char *wrong, size_t wrong_len);

/* Compares one more name, without regard to case. Of equally near names the first is found. */
void oriel_similar_offer(struct oriel_similar *similar, const char *name);

#endif
