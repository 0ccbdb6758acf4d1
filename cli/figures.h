/* Figures as text for the terminal: three digits and a unit. */
#ifndef ORIEL_CLI_FIGURES_H
#define ORIEL_CLI_FIGURES_H

#include <stdint.h>

/* The end of a noun after that number. */
static inline const char *oriel_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

enum { ORIEL_FIGURE = 32 };

/* Write to text and return it: "1,234", "1.50 KiB", "12.3 ms", "30 %" ("-" of nothing). */
const char *oriel_count_text(char text[ORIEL_FIGURE], uint64_t count);
const char *oriel_bytes_text(char text[ORIEL_FIGURE], uint64_t bytes);
const char *oriel_time_text(char text[ORIEL_FIGURE], uint64_t ns);
const char *oriel_share_text(char text[ORIEL_FIGURE], uint64_t part, uint64_t whole);

#endif
