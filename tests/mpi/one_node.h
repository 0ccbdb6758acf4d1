/* The ranks of a communicator's node, judged by the kernel: MPICH 5.0 of Debian reports with
 * MPI_COMM_TYPE_SHARED that no two ranks share memory. */
#ifndef TESTS_MPI_ONE_NODE_H
#define TESTS_MPI_ONE_NODE_H

#include <mpi.h>
#include <sys/stat.h>

/* Simulated nodes have process namespaces of their own. */
static inline MPI_Comm one_node_comm(MPI_Comm comm)
{
    struct stat processes = {.st_ino = 0};
    MPI_Comm node;
    (void)stat("/proc/self/ns/pid", &processes);
    MPI_Comm_split(comm, (int)(processes.st_ino & 0x7fffffff), 0, &node);
    return node;
}

#endif
