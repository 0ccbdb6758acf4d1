/* Texts in buffers of fixed size, and the parts of findings in them that the library and the
 * `oriel` command write alike. */
#ifndef ORIEL_CHECK_REPORT_REPORT_TEXT_H
#define ORIEL_CHECK_REPORT_REPORT_TEXT_H

#include "check/report/finding_record.h"

#include <stddef.h>

/* A text; an excess is cut off. */
struct oriel_text {
    char *bytes;
    size_t room, used;
};
void oriel_text_add(struct oriel_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds a location: "app.c:12 in main". Paths below the current folder are relative to it. */
void oriel_text_place(struct oriel_text *text, const struct oriel_code_address *place);

/* The path relative to the current folder if it is below it, else the whole path. */
const char *oriel_text_path(const char *path);

/* Adds "rank 2", or "ranks 0-3, 7"; nothing if no rank is known. */
void oriel_text_ranks(struct oriel_text *text, const struct oriel_record_finding *record);

/* Writes the text to standard error in one write. */
void oriel_text_write(const struct oriel_text *text);

#endif
