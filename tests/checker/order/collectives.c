/* The checker's collectives: order follows the data, and a collective without a model orders all
 * ranks. */
#include "order.h"

#include <stdlib.h>
#include <string.h>

static int ones[RANKS_MOST], zeros[RANKS_MOST], displs[RANKS_MOST], in[4 * RANKS_MOST],
    out[4 * RANKS_MOST];
static MPI_Datatype types[RANKS_MOST];
static const int root = 1;

static void prepare(void)
{
    for (int i = 0; i < RANKS_MOST; i++) {
        ones[i] = 1;
        zeros[i] = 0;
        displs[i] = i;
        types[i] = MPI_INT;
    }
}

/* --- all to all --- */

static void all_1(int which, MPI_Comm comm)
{
    switch (which) {
    case 0: MPI_Barrier(comm); break;
    case 1: MPI_Allgather(out, 1, MPI_INT, in, 1, MPI_INT, comm); break;
    case 2: MPI_Allgatherv(out, 1, MPI_INT, in, ones, displs, MPI_INT, comm); break;
    case 3: MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm); break;
    case 4: MPI_Alltoallv(out, ones, displs, MPI_INT, in, ones, displs, MPI_INT, comm); break;
    case 5: MPI_Alltoallw(out, ones, zeros, types, in, ones, zeros, types, comm); break;
    case 6: MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, comm); break;
    case 7: MPI_Reduce_scatter(out, in, ones, MPI_INT, MPI_SUM, comm); break;
    default: MPI_Reduce_scatter_block(out, in, 1, MPI_INT, MPI_SUM, comm);
    }
}

static void all_2(int which, MPI_Comm comm)
{
    MPI_Request request;
    switch (which) {
    case 0: MPI_Ibarrier(comm, &request); break;
    case 1: MPI_Iallgather(out, 1, MPI_INT, in, 1, MPI_INT, comm, &request); break;
    case 2: MPI_Iallgatherv(out, 1, MPI_INT, in, ones, displs, MPI_INT, comm, &request); break;
    case 3: MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm, &request); break;
    case 4:
        MPI_Ialltoallv(out, ones, displs, MPI_INT, in, ones, displs, MPI_INT, comm, &request);
        break;
    case 5: MPI_Ialltoallw(out, ones, zeros, types, in, ones, zeros, types, comm, &request); break;
    case 6: MPI_Iallreduce(out, in, 1, MPI_INT, MPI_SUM, comm, &request); break;
    case 7: MPI_Ireduce_scatter(out, in, ones, MPI_INT, MPI_SUM, comm, &request); break;
    default: MPI_Ireduce_scatter_block(out, in, 1, MPI_INT, MPI_SUM, comm, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Several calls in a row: a fast rank is in the next call while a slow rank is in the last. The
 * test then examines the end of one call. */
static void all_of(void (*call)(int which, MPI_Comm comm), MPI_Comm comm)
{
    for (int which = 0; which < 9; which++) {
        for (int i = 0; i < 5; i++)
            call(which, comm);
        mark(2 * which);
        call(which, comm);
        for (int i = 0; i < size; i++)
            EXPECT_KNOWS(i, 2 * which);
        meet();
        mark(2 * which + 1);
        for (int i = 0; i < size; i++)
            EXPECT(i == rank || !knows(i, 2 * which + 1));
        meet();
    }
    EXPECT(unknown_calls() == 0);
}

static void all_to_all_orders_all(void)
{
    all_of(all_1, MPI_COMM_WORLD);
}

static void all_to_all_with_requests_orders_all(void)
{
    all_of(all_2, MPI_COMM_WORLD);
}

/* --- in one direction --- */

static void from_root(int which)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (which) {
    case 0: MPI_Bcast(in, 1, MPI_INT, root, MPI_COMM_WORLD); break;
    case 1: MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, root, MPI_COMM_WORLD); break;
    case 2: MPI_Scatterv(out, ones, displs, MPI_INT, in, 1, MPI_INT, root, MPI_COMM_WORLD); break;
    case 3: MPI_Ibcast(in, 1, MPI_INT, root, MPI_COMM_WORLD, &request); break;
    case 4: MPI_Iscatter(out, 1, MPI_INT, in, 1, MPI_INT, root, MPI_COMM_WORLD, &request); break;
    default:
        MPI_Iscatterv(out, ones, displs, MPI_INT, in, 1, MPI_INT, root, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void from_the_root_orders_all_after_the_root(void)
{
    for (int which = 0; which < 6; which++) {
        mark(which);
        from_root(which);
        for (int i = 0; i < size; i++)
            EXPECT(knows(i, which) == (i == rank || i == root));
        meet();
    }
}

static void to_root(int which)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (which) {
    case 0: MPI_Reduce(out, in, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD); break;
    case 1: MPI_Gather(out, 1, MPI_INT, in, 1, MPI_INT, root, MPI_COMM_WORLD); break;
    case 2: MPI_Gatherv(out, 1, MPI_INT, in, ones, displs, MPI_INT, root, MPI_COMM_WORLD); break;
    case 3: MPI_Ireduce(out, in, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD, &request); break;
    case 4: MPI_Igather(out, 1, MPI_INT, in, 1, MPI_INT, root, MPI_COMM_WORLD, &request); break;
    default:
        MPI_Igatherv(out, 1, MPI_INT, in, ones, displs, MPI_INT, root, MPI_COMM_WORLD, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void to_the_root_orders_the_root_after_all(void)
{
    for (int which = 0; which < 6; which++) {
        mark(which);
        to_root(which);
        for (int i = 0; i < size; i++)
            EXPECT(knows(i, which) == (i == rank || rank == root));
        meet();
    }
}

static void scans_order_upwards(void)
{
    for (int which = 0; which < 4; which++) {
        MPI_Request request = MPI_REQUEST_NULL;
        mark(which);
        if (which == 0)
            MPI_Scan(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else if (which == 1)
            MPI_Exscan(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        else if (which == 2)
            MPI_Iscan(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        else
            MPI_Iexscan(out, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < size; i++)
            EXPECT(knows(i, which) == (i <= rank));
        meet();
    }
}

static void several_requests_end_in_any_order(void)
{
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++) {
        mark(i);
        MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++) {
        EXPECT_KNOWS(i, 1);
        EXPECT(i == rank || !knows(i, 2));
    }
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 2);
}

/* --- neighbours, files, nothing --- */

/* The remaining collectives; two elements from each rank, its own number. */
static void with_neighbours(int which, MPI_Comm ring)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Aint bytes[2] = {0, sizeof(int)};
    out[0] = out[1] = rank;
    in[0] = in[1] = -1;
    switch (which) {
    case 0: MPI_Ineighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring, &request); break;
    case 1: MPI_Neighbor_allgatherv(out, 1, MPI_INT, in, ones, displs, MPI_INT, ring); break;
    case 2:
        MPI_Ineighbor_allgatherv(out, 1, MPI_INT, in, ones, displs, MPI_INT, ring, &request);
        break;
    case 3: MPI_Neighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring); break;
    case 4:
        MPI_Neighbor_alltoallv(out, ones, displs, MPI_INT, in, ones, displs, MPI_INT, ring);
        break;
    case 5:
        MPI_Ineighbor_alltoallv(out, ones, displs, MPI_INT, in, ones, displs, MPI_INT, ring,
                                &request);
        break;
    case 6: MPI_Neighbor_alltoallw(out, ones, bytes, types, in, ones, bytes, types, ring); break;
    default:
        MPI_Ineighbor_alltoallw(out, ones, bytes, types, in, ones, bytes, types, ring, &request);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void neighbours_are_ordered(void)
{
    int dims[1] = {size}, on[1] = {1};
    MPI_Comm ring;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, on, 0, &ring);
    meet();
    mark(0);
    MPI_Neighbor_allgather(out, 1, MPI_INT, in, 1, MPI_INT, ring);
    EXPECT_KNOWS((rank + 1) % size, 0);
    EXPECT_KNOWS((rank + size - 1) % size, 0);
    meet();
    mark(1);
    MPI_Ineighbor_alltoall(out, 1, MPI_INT, in, 1, MPI_INT, ring, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_KNOWS((rank + 1) % size, 1);
    for (int which = 0; which < 8; which++) {
        meet();
        mark(2 + which);
        with_neighbours(which, ring);
        EXPECT_KNOWS((rank + 1) % size, 2 + which);
        EXPECT_KNOWS((rank + size - 1) % size, 2 + which);
        EXPECT(in[0] == (rank + size - 1) % size && in[1] == (rank + 1) % size);
    }
    EXPECT(unknown_calls() == 0);
    MPI_Comm_free(&ring);
}

static void files_order_all(void)
{
    char path[] = "/tmp/oriel-order-XXXXXX";
    MPI_File file;
    int word = rank;
    if (rank == 0) {
        int fd = mkstemp(path);
        EXPECT(fd >= 0);
    }
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    meet();
    EXPECT(unknown_calls() == 0);
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                      &file) != MPI_SUCCESS)
        return;
    mark(0);
    MPI_File_write_at_all(file, 4 * rank, &word, 1, MPI_INT, MPI_STATUS_IGNORE);
    meet();
    MPI_File_sync(file);
    for (int i = 0; i < size; i++)
        EXPECT_KNOWS(i, 0);
    EXPECT(unknown_calls() == 3);
    MPI_File_close(&file);
}

static void counts_of_zero_leave_nothing(void)
{
    for (int i = 0; i < 4000; i++) {
        MPI_Reduce(out, in, 0, MPI_INT, MPI_SUM, i % size, MPI_COMM_WORLD);
        MPI_Bcast(in, i % 5 == 0, MPI_INT, i % size, MPI_COMM_WORLD);
        MPI_Scan(out, in, i % 3 == 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        if (i % 100 == 0)
            meet();
    }
}

static const struct order_case cases[] = {
    CASE(all_to_all_orders_all, 2),
    CASE(all_to_all_with_requests_orders_all, 2),
    CASE(from_the_root_orders_all_after_the_root, 2),
    CASE(to_the_root_orders_the_root_after_all, 2),
    CASE(scans_order_upwards, 2),
    CASE(several_requests_end_in_any_order, 2),
    CASE(neighbours_are_ordered, 2),
    CASE(files_order_all, 2),
    CASE(counts_of_zero_leave_nothing, 2),
};

int main(int argc, char **argv)
{
    prepare();
    return order_main(argc, argv, cases, (int)(sizeof cases / sizeof cases[0]), UINT64_C(4) << 20);
}
