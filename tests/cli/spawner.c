/* Spawns itself once by MPI_Comm_spawn, with an argument.  The child prints whether Oriel is in
 * front of its MPI. If the host cannot spawn, the status is 77. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    char child[] = "child";
    char *arguments[] = {child, NULL};
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len = 0;
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &len);
    if (argc > 1) {
        printf("child: %s\n", strstr(version, "Oriel") != NULL ? "Oriel" : "host");
        MPI_Comm_get_parent(&other);
    } else {
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
        if (MPI_Comm_spawn(argv[0], arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &other,
                           MPI_ERRCODES_IGNORE) != MPI_SUCCESS)
            return 77;
    }
    MPI_Comm_disconnect(&other);
    MPI_Finalize();
    return 0;
}
