/* Texts for people: colours, and lines of the terminal's width. */
#ifndef ORIEL_CLI_TEXT_STYLE_H
#define ORIEL_CLI_TEXT_STYLE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

enum { ORIEL_TEXT_UNWRAPPED = INT_MAX }; /* the width of a text that no terminal shows */

struct oriel_text_style {
    bool color;
    int width; /* columns */
};

/* Whether to print colours. choice: the value of --color, auto, always or never, or NULL for auto;
 * ends the command for another one. NO_COLOR counts for auto. */
bool oriel_color_choose(const char *choice, bool is_terminal);

/* The width that COLUMNS requests, else that of the terminal, which is 0 if it is unknown or there
 * is none. Returns 0 if neither is known. */
int oriel_text_columns(int terminal_columns);

/* The same for a descriptor, or ORIEL_TEXT_UNWRAPPED. */
int oriel_text_width(int fd);

/* Prints the text in lines of at most width columns, of which the first begins at column used, and
 * the others after indent. */
void oriel_text_wrap(FILE *out, const char *text, int used, int indent, int width);

#endif
