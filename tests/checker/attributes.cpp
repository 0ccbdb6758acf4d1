/* Attributes and error handlers through the host's own C++ classes, whose callbacks receive
 * references to objects. Under the checker, callbacks receive the right objects, and the checker
 * sees the calls inside MPICH's error handlers. The exit status is 1 otherwise.
 * Skipped where the host has no such classes. */
#include "../../include/oriel/mpi_win.hpp"

#include <cstdio>

#if ORIEL_MPI_WIN
int main()
{
    std::printf("skipped: this host's mpi.h has no classes\n");
    return 77;
}
#else
static int seen;

static int copied(const MPI::Comm &comm, int, void *, void *in, void *out, bool &flag)
{
    seen += comm.Get_size();
    *(void **)out = in;
    flag = true;
    return MPI_SUCCESS;
}

static int deleted(MPI::Comm &comm, int, void *, void *)
{
    seen += 10 * comm.Get_size();
    return MPI_SUCCESS;
}

static void failed(MPI::Comm &comm, int *, ...)
{
    seen += 100 * comm.Get_size();
#ifndef OPEN_MPI
    MPI::COMM_WORLD.Barrier();
#endif
}

/* Two puts. They are ordered only if the checker sees the barrier in the handler. */
static void put_around_an_error(MPI::Intracomm &comm)
{
    int rank = MPI::COMM_WORLD.Get_rank();
    int *base;
    MPI_Win win;
    MPI_Win_allocate(sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    MPI_Win_lock_all(0, win);
    if (rank == 1) {
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
        MPI_Win_flush(0, win);
    }
    comm.Send(&rank, 1, MPI::INT, 7, 0); /* there is no such rank */
#ifdef OPEN_MPI
    MPI::COMM_WORLD.Barrier();
#endif
    if (rank == 0)
        MPI_Put(&rank, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    MPI::Init(argc, argv);
    int keyval = MPI::Comm::Create_keyval(copied, deleted, 0);
    MPI::COMM_SELF.Set_attr(keyval, &seen);
    MPI::Intracomm copy = MPI::COMM_SELF.Dup();
    MPI::Errhandler handler = MPI::Comm::Create_errhandler(failed);
    copy.Set_errhandler(handler);
    put_around_an_error(copy);
    copy.Free();
    MPI::COMM_SELF.Delete_attr(keyval);
    handler.Free();
    MPI::Finalize();
    return seen == 121 ? 0 : 1;
}
#endif
