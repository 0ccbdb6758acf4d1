/* The full-screen mode of `oriel top`. The terminal is restored when it ends, however it ends. */
#ifndef ORIEL_CLI_TOP_SCREEN_H
#define ORIEL_CLI_TOP_SCREEN_H

#include <stdbool.h>

/* True when standard input and output are a terminal with the necessary features. */
bool oriel_screen_available(void);

void oriel_screen_open(void);

/* The columns of the screen. */
int oriel_screen_columns(void);

/* Shows as much of the text as fits, and how many lines do not. Escape sequences have no width. */
void oriel_screen_show(const char *text);

/* Waits for a key, at most ms. Returns the key; 0 if none was pressed, or when the terminal's size
 * changes; ORIEL_SCREEN_END when a signal arrives or the terminal is gone. */
enum { ORIEL_SCREEN_END = -1 };
int oriel_screen_key(int ms);

/* Restores the terminal. If a signal ended the screen, raises it again with its default action. */
void oriel_screen_close(void);

#endif
