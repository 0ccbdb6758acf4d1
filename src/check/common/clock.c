/* Vector clocks. */
#include "check/common/clock.h"

void oriel_clock_take(oriel_tick *into, const oriel_tick *from, int width)
{
    for (int i = 0; i < width; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}
