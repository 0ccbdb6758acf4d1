/* General facts of a run and its windows for the page. */
#ifndef ORIEL_CLI_REPORT_HTML_FACTS_H
#define ORIEL_CLI_REPORT_HTML_FACTS_H

#include "cli/report/html_parts.h"

/* The names of counters, in the order of counters.def. */
void oriel_html_names(json_t *out);

json_t *oriel_html_facts(const struct oriel_html_run *run);
json_t *oriel_html_window_facts(const struct oriel_html_run *run, uint32_t place);

#endif
