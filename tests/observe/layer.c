/* A program's own communication layer, in a shared library: layered.c calls it. */
#include "layer.h"

#include <unistd.h>

enum { LATE_US = 100000 };

void layer_exchange(MPI_Win win, int to, int is_late)
{
    int value = to;
    MPI_Put(&value, 1, MPI_INT, to, 0, 1, MPI_INT, win); /* SITE put */
    if (is_late)
        usleep(LATE_US);
    MPI_Win_fence(0, win); /* WAITS for the late rank */
}
