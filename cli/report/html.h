/* The HTML page of `oriel report -o`: the traces of a run, the findings of a checked run, or both;
 * or the comparison of two runs. It is one file that loads nothing else, and its size is bounded
 * for runs of any length (html.c). */
#ifndef ORIEL_CLI_REPORT_HTML_H
#define ORIEL_CLI_REPORT_HTML_H

#include "cli/report/compare.h"
#include "cli/report/findings_reader.h"
#include "cli/report/reported_run.h"

#include <stdbool.h>
#include <stdio.h>

/* Each input may be NULL. The run has traces, and has been summed. When the page cannot be written,
 * returns false with a line on complaints and leaves no file. */
bool oriel_html_write(const char *path, const struct oriel_reported_run *run,
                      const struct oriel_findings_file *found,
                      const struct oriel_comparison *comparison, FILE *complaints);

#endif
