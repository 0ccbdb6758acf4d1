/* Windows on a communicator of an MPI session, without MPI_Init. One program of its own, since the other tests
 * start the world model. Exit status 77 where the host has no sessions. */
#include <mpi.h>
#include <stdio.h>

#if MPI_VERSION >= 4
static int try_window(MPI_Comm comm)
{
    int rank, size, wrong = 0;
    long *base, value;
    MPI_Win win;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, comm, &base, &win);
    value = rank + 1;
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
    MPI_Win_fence(0, win);
    wrong += *base != (rank + size - 1) % size + 1;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Request request;
    MPI_Rget(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(0, win);
    wrong += value != size;
    MPI_Win_free(&win);
    return wrong;
}

int main(void)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int wrong = 0, all = 0, rank;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS)
        return 1;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "oriel.tests.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    for (int round = 0; round < 3; round++)
        wrong += try_window(comm);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_rank(comm, &rank);
    if (rank == 0)
        printf("%s windows_work_in_a_session\n", all == 0 ? "ok" : "not ok");
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    return all != 0;
}
#else
int main(void)
{
    puts("skip windows_work_in_a_session: the host has no MPI sessions");
    return 77;
}
#endif
