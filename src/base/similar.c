/* Counts the letters that must be inserted, removed, replaced or exchanged with their neighbour to
 * turn one name into another (the optimal string alignment distance). A name is near if that is at
 * most a third of the misspelt one's length, or 1 for short ones, or if it begins with the misspelt
 * one. */
#include "base/similar.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { LEN_MAX = 40 }; /* no name of Oriel is longer */

static bool is_same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t distance_count(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t rows[3][LEN_MAX + 1]; /* row i % 3: the distances of a's first i letters */
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = smaller(above[j], row[j - 1]) + 1;
            row[j] = smaller(row[j], above[j - 1] + !is_same_letter(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) &&
                is_same_letter(a[i - 2], b[j - 1]))
                row[j] = smaller(row[j], rows[(i + 1) % 3][j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

void oriel_similar_start(struct oriel_similar *similar, const char *wrong, size_t wrong_len)
{
    size_t near = wrong_len < 6 ? 1 : wrong_len / 3;
    *similar = (struct oriel_similar){
        .wrong = wrong, .wrong_len = wrong_len, .distance = (wrong_len == 0 ? 0 : near) + 1};
}

void oriel_similar_offer(struct oriel_similar *similar, const char *name)
{
    size_t len = strlen(name);
    if (similar->wrong_len > LEN_MAX || len > LEN_MAX)
        return;
    size_t distance = distance_count(similar->wrong, similar->wrong_len, name, len);
    if (distance > 1 && similar->wrong_len > 1 &&
        strncasecmp(similar->wrong, name, similar->wrong_len) == 0)
        distance = 1;
    if (distance < similar->distance) {
        similar->found = name;
        similar->distance = distance;
    }
}
