/* Cleans text from files and other processes before it is printed or written to a page. */
#ifndef ORIEL_CLI_TRACE_TEXT_H
#define ORIEL_CLI_TRACE_TEXT_H

#include <stddef.h>

/* Length in bytes of the character at text, at most left; 0 when it is not UTF-8. */
size_t oriel_utf8_len(const unsigned char *text, size_t left);

/* Terminates the text within room, and replaces control characters and invalid UTF-8 by '?'. */
void oriel_trace_text_clean(char *text, size_t room);

#endif
