/* A point between two steps of a protocol where a test build waits for a random time, so unlikely
 * orderings become likely. In the library it is empty. */
#ifndef ORIEL_BASE_DELAY_H
#define ORIEL_BASE_DELAY_H

#ifndef ORIEL_DELAYS
#define ORIEL_DELAYS 0
#endif

#if ORIEL_DELAYS
void oriel_delay(void);
#else
static inline void oriel_delay(void)
{
}
#endif

#endif
