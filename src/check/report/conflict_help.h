/* The fix for a conflict of two accesses, from their kinds, ranks and epochs: which lock, which
 * missing call, and where. */
#ifndef ORIEL_CHECK_REPORT_CONFLICT_HELP_H
#define ORIEL_CHECK_REPORT_CONFLICT_HELP_H

#include "check/report/finding.h"

/* Writes the fix for the finding's help, with placeholders for lines. finding: here and other with
 * their openings, and the target. is_early: the later access's rank knew of the earlier one, which
 * was not complete. */
void oriel_conflict_help(const struct oriel_conflict *conflict, const struct oriel_finding *finding,
                         bool is_early, char out[ORIEL_RECORD_LONG]);

/* The same for two uses of a buffer that is no window memory. */
void oriel_buffer_help(const struct oriel_access *earlier, const struct oriel_finding *finding,
                       char out[ORIEL_RECORD_LONG]);

#endif
