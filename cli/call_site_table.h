/* The table of a job's call sites, for terminals. */
#ifndef ORIEL_CLI_CALL_SITE_TABLE_H
#define ORIEL_CLI_CALL_SITE_TABLE_H

#include "cli/statistics.h"

/* Prints those with most time, if there are any. The call sites are at the end of the lines, or in
 * lines of their own where that exceeds width. all: the option that shows all. */
void oriel_call_site_table_print(const struct oriel_job_sum *job, int width, const char *all,
                                 FILE *out);

#endif
