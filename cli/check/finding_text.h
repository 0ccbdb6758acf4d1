/* Findings for people: source lines with marks, colours, lines of the terminal's width. */
#ifndef ORIEL_CLI_CHECK_FINDING_TEXT_H
#define ORIEL_CLI_CHECK_FINDING_TEXT_H

#include <stdio.h>

#include "check/report/finding_record.h"
#include "cli/text_style.h"

/* What the finding is, in one line: "unordered MPI_Put and MPI_Get of the same bytes". The caller
 * frees the text. */
char *oriel_finding_headline(const struct oriel_record_finding *record);

/* The fix for this case, or the rule's remedy, with lines for its placeholders. The caller frees
 * it. */
char *oriel_finding_help(const struct oriel_record_finding *record);

/* "element 3 (bytes 24 to 31)"; "" if no bytes are known. The caller frees it. */
char *oriel_finding_bytes(const struct oriel_record_finding *record);

/* "app.c:12 in main". The caller frees it. */
char *oriel_finding_place(const struct oriel_code_address *place);

/* The lines of the program with their marks, as oriel_finding_print draws them without colours; ""
 * if no line can be quoted. The caller frees it. */
char *oriel_finding_source(const struct oriel_record_finding *record, int width);

/* Prints the whole finding. */
void oriel_finding_print(FILE *out, const struct oriel_record_finding *record,
                         const struct oriel_text_style *style);

#endif
