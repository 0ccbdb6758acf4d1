/* A place where a test build loses time at random, so that orderings which are merely likely become unlikely.  In the
 * library it is nothing at all.  Any protocol may use it between the steps of its argument. */
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
