/* A program of its host MPI that prints its arguments and its initial preload. It never initialises
 * MPI. It therefore runs without a launcher and sees the environment as the loader did. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void print_variable(const char *name)
{
    const char *value = getenv(name);
    printf("%s=%s\n", name, value == NULL ? "(unset)" : value);
}

int main(int argc, char **argv)
{
    int version = 0;
    int subversion = 0;
    MPI_Get_version(&version, &subversion); /* makes the host's library necessary */
    for (int i = 0; i < argc; i++)
        printf("argv[%d]=%s\n", i, argv[i]);
    print_variable("LD_PRELOAD");
    print_variable("ORIEL_PRELOADED");
    return version > 0 ? 0 : 1;
}
