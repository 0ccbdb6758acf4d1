/* The HTML page of `oriel report -o`: what the traces of a run, the findings of a checked one, or both show, as one file that
 * loads nothing.  What is in it is bounded, however long the run was (page.c says how). report.c calls. */
#ifndef ORIEL_CLI_REPORT_HTML_H
#define ORIEL_CLI_REPORT_HTML_H

#include "cli/report/findings_reader.h"
#include "cli/report/trace_merge.h"

#include <stdbool.h>
#include <stdio.h>

/* Either may be NULL.  False, with a line on complaints, when the page could not be written; then there is none. */
bool oriel_page_write(const char *path, const struct oriel_traces *traces,
                      const struct oriel_found *found, FILE *complaints);

#endif
