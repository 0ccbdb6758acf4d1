/* A full screen of text on a terminal, which is as it was when that ends, however it ends.  top.c calls. */
#ifndef ORIEL_CLI_TOP_SCREEN_H
#define ORIEL_CLI_TOP_SCREEN_H

#include <stdbool.h>

/* Whether standard input and output are a terminal that can do it. */
bool oriel_screen_is_there(void);

void oriel_screen_open(void);

/* Shows the text, as much as there is room for. */
void oriel_screen_show(const char *text);

/* Waits until it is time for the next picture, or the window has another size; false when the user, or a signal, wants an end. */
bool oriel_screen_wait(int ms);

/* The terminal as it was.  A signal that has ended it ends the process now. */
void oriel_screen_close(void);

#endif
