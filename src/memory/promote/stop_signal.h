/* The real-time signal that stops threads, borrowed from the program for a moment.  stop_threads.c calls. */
#ifndef ORIEL_MEMORY_PROMOTE_STOP_SIGNAL_H
#define ORIEL_MEMORY_PROMOTE_STOP_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef void oriel_stop_handler(int signal, siginfo_t *info, void *context);

/* Whether the program has no use for the signal: it does nothing, or has our handler still. */
bool oriel_stop_signal_is_free(int signal, oriel_stop_handler *handler);

/* All such signals, as bits. */
uint64_t oriel_stop_signals_free(oriel_stop_handler *handler);

void oriel_stop_signal_take(int signal, oriel_stop_handler *handler);

/* Sends it to a thread of this process with a number that is not 0: 0, or an errno. */
int oriel_stop_signal_send(int signal, int32_t tid, uint64_t number);

/* The number; 0 where this process did not send it so. */
uint64_t oriel_stop_signal_read(const siginfo_t *info);

/* The signal goes back to the program.  late: somebody has not taken it yet, so that its handler stays: taken by default it would
 * end the process, and dropped on the way it would cut waits short.  blocked: somebody blocks it, who might take it by sigwait
 * one day, so it is dropped all the same. */
void oriel_stop_signal_give_back(int signal, oriel_stop_handler *handler, bool late, bool blocked);

#endif
