/* The real-time signal that stops threads, borrowed from the program for a short time. */
#ifndef ORIEL_MEMORY_PROMOTE_STOP_SIGNAL_H
#define ORIEL_MEMORY_PROMOTE_STOP_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef void oriel_stop_handler(int signal, siginfo_t *info, void *context);

/* Whether the program does not use the signal: its action is the default, or still our handler. */
bool oriel_stop_signal_is_free(int signal, oriel_stop_handler *handler);

/* All such signals, as bits. */
uint64_t oriel_stop_signal_free_set(oriel_stop_handler *handler);

void oriel_stop_signal_install(int signal, oriel_stop_handler *handler);

/* Sends the signal to a thread of this process with a nonzero number. Returns 0 or an errno. */
int oriel_stop_signal_send(int signal, int32_t tid, uint64_t number);

/* The number, or 0 if this process did not send the signal with one. */
uint64_t oriel_stop_signal_read(const siginfo_t *info);

/* Returns the signal to the program. late: a thread has not received it yet, so the handler stays
 * installed. The default action would end the process, and discarding the signal in transit would
 * interrupt waits. blocked: a thread blocks the signal and might later receive it with sigwait, so
 * it is discarded in any case. */
void oriel_stop_signal_return(int signal, oriel_stop_handler *handler, bool late, bool blocked);

#endif
