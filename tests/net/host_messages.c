/* A host's messages between nodes, without windows: the precondition of the rows over nets.
 * TEST_NODES is the number of nodes. Words from both neighbours arrive, large and small. A plain
 * MPI program, run by the test rows. */
#include "../mpi/skip_finalize.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGE = 1 << 18 };

static int rank, size;

/* The number of different processor names among the ranks. */
static int named_nodes(void)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length, count = 0;
    char *names = malloc((size_t)size * sizeof(name));
    MPI_Get_processor_name(name, &length);
    MPI_Allgather(name, sizeof(name), MPI_CHAR, names, sizeof(name), MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) {
        int first = 0;
        while (strcmp(names + (size_t)first * sizeof(name), names + (size_t)i * sizeof(name)) != 0)
            first++;
        count += first == i;
    }
    free(names);
    return count;
}

/* The number of nodes according to the host's own detection of shared memory. */
static int node_count(void)
{
    MPI_Comm node;
    int node_rank, leader, count;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    leader = node_rank == 0;
    MPI_Allreduce(&leader, &count, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_free(&node);
    return count;
}

static int wrong_words(int count)
{
    int right = (rank + 1) % size, left = (rank + size - 1) % size, wrong = 0;
    int *sent = malloc((size_t)count * sizeof(int)), *received = calloc((size_t)count, sizeof(int));
    for (int i = 0; i < count; i++)
        sent[i] = rank * 7 + i;
    MPI_Sendrecv(sent, count, MPI_INT, right, 0, received, count, MPI_INT, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++)
        wrong += received[i] != left * 7 + i;
    free(sent);
    free(received);
    return wrong;
}

int main(int argc, char **argv)
{
    const char *wanted = getenv("TEST_NODES");
    int wanted_nodes = wanted ? atoi(wanted) : 1, wrong, worst, named, nodes;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    named = named_nodes();
    nodes = node_count();
    wrong = wrong_words(1) + wrong_words(LARGE);
    MPI_Allreduce(&wrong, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks on %d nodes by name, %d by shared memory, wanted %d; wrong words: %d\n",
               size, named, nodes, wanted_nodes, worst);
    wrong = named != wanted_nodes || nodes != wanted_nodes || worst != 0;
    leave_without_finalize(wrong);
    MPI_Finalize();
    return wrong;
}
