/* Leaks memory in a callback that the host calls in MPI_Finalize: hosts.supp must not hide the leak
 * because of the host's frames below it. Run by the test rows under valgrind. */
#include <mpi.h>
#include <stdlib.h>

void *volatile lost;

static int lose_in_callback(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)comm, (void)key, (void)value, (void)extra;
    lost = malloc(77);
    lost = NULL;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int key = MPI_KEYVAL_INVALID;
    MPI_Init(&argc, &argv);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, lose_in_callback, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    MPI_Comm_free_keyval(&key);
    MPI_Finalize();
    return 0;
}
