/* Finds epochs in the calls of a rank, one rank after another. */
#ifndef ORIEL_CLI_REPORT_HTML_EPOCHS_H
#define ORIEL_CLI_REPORT_HTML_EPOCHS_H

#include "cli/report/html_parts.h"
#include "cli/report/html_spans.h"

struct oriel_page_epochs;

struct oriel_page_epochs *oriel_page_epochs_new(uint32_t windows);

/* Receives an epoch, with its kind, when an event or the end of the rank ends it. */
typedef void oriel_page_epoch_take(void *context, const struct oriel_page_span *epoch);
void oriel_page_epochs_add(struct oriel_page_epochs *epochs, const struct oriel_page_event *event,
                           oriel_page_epoch_take *take, void *context);
void oriel_page_epochs_rank_end(struct oriel_page_epochs *epochs, int32_t rank,
                                oriel_page_epoch_take *take, void *context);
void oriel_page_epochs_free(struct oriel_page_epochs *epochs);

/* Names by kind; ends with NULL. */
extern const char *const oriel_page_epoch_kinds[];

#endif
