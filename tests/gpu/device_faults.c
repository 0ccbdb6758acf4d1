/* Scenarios of ../mpi/fault.h: a rank dies while others put into and get from its memory, with
 * large buffers in device memory. The next operation on it must fail as well, and soon: the pinned
 * buffers are free again. */
#include "device.h"

#include "../mpi/fault.h"

static double *buffer;

static void nothing(void)
{
}

static int put(void)
{
    return MPI_Put(buffer, FAULT_ELEMENTS, MPI_DOUBLE, victim, 0, FAULT_ELEMENTS, MPI_DOUBLE, win);
}

static int get(void)
{
    return MPI_Get(buffer, FAULT_ELEMENTS, MPI_DOUBLE, victim, 0, FAULT_ELEMENTS, MPI_DOUBLE, win);
}

static int flush(int code)
{
    return code != MPI_SUCCESS ? code : MPI_Win_flush(victim, win);
}

/* Until an error, then once more, and once with a rank that lives. */
static int repeat(int (*operate)(void))
{
    const double end = seconds_now() + 15;
    const int other = (world_rank + 1) % world_size == victim ? world_rank : world_rank + 1;
    buffer = device_alloc(FAULT_ELEMENTS * sizeof *buffer);
    device_fill(buffer, 0, FAULT_ELEMENTS * sizeof *buffer);
    int code = MPI_Win_lock_all(0, win);
    while (code == MPI_SUCCESS && seconds_now() < end)
        code = flush(operate());
    if (code != MPI_SUCCESS && flush(operate()) == MPI_SUCCESS)
        return MPI_SUCCESS;
    if (MPI_Get(buffer, FAULT_ELEMENTS, MPI_DOUBLE, other % world_size, 0, FAULT_ELEMENTS,
                MPI_DOUBLE, win) != MPI_SUCCESS)
        return MPI_SUCCESS;
    return code;
}

static int wait_put(void)
{
    return repeat(put);
}

static int wait_get(void)
{
    return repeat(get);
}

const struct scenario scenarios[] = {
    {"put", nothing, nothing, wait_put, false, NULL, true},
    {"get", nothing, nothing, wait_get, false, NULL, true},
};
const size_t scenario_count = sizeof scenarios / sizeof scenarios[0];
