/* Figures as text for the terminal. */
#include "cli/figures.h"

#include <inttypes.h>
#include <stdio.h>

const char *oriel_count_text(char text[ORIEL_FIGURE], uint64_t count)
{
    char plain[ORIEL_FIGURE];
    int len = snprintf(plain, sizeof plain, "%" PRIu64, count);
    char *out = text;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            *out++ = ',';
        *out++ = plain[i];
    }
    *out = '\0';
    return text;
}

/* Three digits and a unit; each unit is step times the previous one. */
static const char *scaled_text(char text[ORIEL_FIGURE], double value, double step,
                               const char *const units[], unsigned count)
{
    unsigned unit = 0;
    while (unit + 1 < count && value >= (step > 1000 ? 1000 : 999.5)) {
        value /= step;
        unit++;
    }
    snprintf(text, ORIEL_FIGURE, "%.*f %s",
             unit == 0 || value >= 99.95 ? 0
             : value >= 9.995            ? 1
                                         : 2,
             value, units[unit]);
    return text;
}

const char *oriel_bytes_text(char text[ORIEL_FIGURE], uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    return scaled_text(text, (double)bytes, 1024, units, sizeof units / sizeof units[0]);
}

const char *oriel_time_text(char text[ORIEL_FIGURE], uint64_t ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    return scaled_text(text, (double)ns, 1000, units, sizeof units / sizeof units[0]);
}

const char *oriel_share_text(char text[ORIEL_FIGURE], uint64_t part, uint64_t whole)
{
    snprintf(text, ORIEL_FIGURE, whole == 0 ? "-" : "%.0f %%",
             whole == 0 ? 0 : 100.0 * (double)part / (double)whole);
    return text;
}
