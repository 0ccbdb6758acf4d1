/* Attributes by the host's own classes for C++, whose functions take references to objects: under the checker they get the right
 * ones.  Ends with 1 where not. */
#include <mpi.h>

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
}

int main(int argc, char **argv)
{
    MPI::Init(argc, argv);
    int keyval = MPI::Comm::Create_keyval(copied, deleted, 0);
    MPI::COMM_SELF.Set_attr(keyval, &seen);
    MPI::Intracomm copy = MPI::COMM_SELF.Dup();
    MPI::Errhandler handler = MPI::Comm::Create_errhandler(failed);
    copy.Set_errhandler(handler);
    copy.Send(&seen, 1, MPI::INT, 7, 0); /* there is no such rank */
    copy.Free();
    MPI::COMM_SELF.Delete_attr(keyval);
    handler.Free();
    MPI::Finalize();
    return seen == 121 ? 0 : 1;
}
