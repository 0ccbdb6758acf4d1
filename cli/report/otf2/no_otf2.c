/* Replaces report_otf2.c when Oriel is built without the OTF2 library. */
#include "cli/report/report.h"

bool oriel_report_otf2(const struct oriel_traces *traces, const char *folder)
{
    (void)traces;
    fprintf(stderr,
            "oriel: --otf2 %s: this oriel was built without the OTF2 library (on Debian: "
            "libopen-trace-format2-dev)\n",
            folder);
    return false;
}
