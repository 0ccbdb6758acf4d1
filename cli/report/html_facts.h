/* What a page tells of a run and its windows beside what was counted.
 * page.c calls. */
#ifndef ORIEL_CLI_REPORT_HTML_FACTS_H
#define ORIEL_CLI_REPORT_HTML_FACTS_H

#include "cli/report/html_parts.h"

/* The names of what is counted, by the rows of counters.def. */
void oriel_page_names(json_t *out);

json_t *oriel_page_facts(const struct oriel_page_run *run);
json_t *oriel_page_window_facts(const struct oriel_page_run *run, uint32_t place);

#endif
