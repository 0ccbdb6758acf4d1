/* The regions and pauses of a run as OTF2 wants them: entered and left in the order of time, in the
 * location of their thread. Traces have them in the order in which they end. Pauses are in a
 * location of their own, since they overlap calls and regions. Memory grows with their number. */
#ifndef ORIEL_CLI_REPORT_OTF2_OTF2_MARKS_H
#define ORIEL_CLI_REPORT_OTF2_OTF2_MARKS_H

#include "cli/report/trace_merge.h"

enum {
    ORIEL_OTF2_PAUSES = 256,                      /* threads have smaller numbers */
    ORIEL_OTF2_LOCATIONS = ORIEL_OTF2_PAUSES + 1, /* of a rank */
    ORIEL_OTF2_PAUSED = 0                         /* the name of pauses */
};

struct oriel_otf2_step {
    int64_t at_ns;
    uint32_t name; /* index into names */
    bool is_enter; /* else left */
};

struct oriel_otf2_marks;

struct oriel_otf2_marks *oriel_otf2_marks_new(const struct oriel_traces *traces);
void oriel_otf2_marks_free(struct oriel_otf2_marks *marks);

/* Names by index; sets their number. */
const char *const *oriel_otf2_marks_names(const struct oriel_otf2_marks *marks, uint32_t *count);

/* The next step of that location (rank * ORIEL_OTF2_LOCATIONS + thread) until that time. Returns
 * false if there is none. */
bool oriel_otf2_marks_step(struct oriel_otf2_marks *marks, uint64_t location, int64_t until_ns,
                           struct oriel_otf2_step *out);

#endif
