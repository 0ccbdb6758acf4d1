/* The end of an MPI session that had windows sets its handle to MPI_SESSION_NULL. A separate
 * program, since the other tests start the world model; one session, since hosts cannot always
 * start another. Exit status 77 where the host has no sessions. */
#include <mpi.h>
#include <stdio.h>

#ifdef MPI_SESSION_NULL
int main(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Win win;
    long *base;
    int wrong = 0, all = 0, rank;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS ||
        session == MPI_SESSION_NULL)
        return 1;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "oriel.tests.session_end", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, comm, &base, &win);
    *base = rank;
    MPI_Win_fence(0, win);
    wrong += *base != rank;
    MPI_Win_free(&win);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    all += MPI_Session_finalize(&session) != MPI_SUCCESS || session != MPI_SESSION_NULL;
    if (rank == 0 || all)
        printf("%s a_finalized_session_is_null\n", all == 0 ? "ok" : "not ok");
    return all != 0;
}
#else
int main(void)
{
    puts("skip a_finalized_session_is_null: the host has no MPI sessions");
    return 77;
}
#endif
