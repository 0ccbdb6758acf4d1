/* Finds epochs in the calls of a rank, one rank after another. */
#ifndef ORIEL_CLI_REPORT_HTML_EPOCHS_H
#define ORIEL_CLI_REPORT_HTML_EPOCHS_H

#include "cli/report/html_parts.h"
#include "cli/report/html_spans.h"

struct oriel_html_epochs;

struct oriel_html_epochs *oriel_html_epochs_new(uint32_t windows);

/* Receives an epoch, with its kind, when an event or the end of the rank ends it. */
typedef void oriel_html_epoch_visit(void *context, const struct oriel_html_span *epoch);
void oriel_html_epochs_add(struct oriel_html_epochs *epochs, const struct oriel_html_event *event,
                           oriel_html_epoch_visit *take, void *context);
void oriel_html_epochs_rank_end(struct oriel_html_epochs *epochs, int32_t rank,
                                oriel_html_epoch_visit *take, void *context);
void oriel_html_epochs_free(struct oriel_html_epochs *epochs);

/* Names by kind; ends with NULL. */
extern const char *const oriel_html_epoch_kinds[];

#endif
