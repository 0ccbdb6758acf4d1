/* The full-screen mode of `oriel top`. The terminal is restored when it ends, however it ends. */
#ifndef ORIEL_CLI_TOP_SCREEN_H
#define ORIEL_CLI_TOP_SCREEN_H

#include <stdbool.h>

/* True when standard input and output are a terminal with the necessary features. */
bool oriel_screen_available(void);

void oriel_screen_open(void);

/* Shows as much of the text as fits. */
void oriel_screen_show(const char *text);

/* Waits until the next update is due or the terminal's size changes. Returns false when the user
 * quits or a signal arrives. */
bool oriel_screen_wait(int ms);

/* Restores the terminal. If a signal ended the screen, raises it again with its default action. */
void oriel_screen_close(void);

#endif
