/* A program over Global Arrays, which Debian builds over ARMCI-MPI: blocks of two- and
 * three-dimensional arrays, counters, scattered elements, ghosts, matrix products, groups. Each
 * case compares whole arrays with their expected contents. `oriel check` must find nothing in it.
 */
#include "cases.h"

#include "../../mpi/skip_finalize.h"

#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdlib.h>

enum { EDGE = 37, TASKS = 300 };

static double one = 1;

static int square(const char *name)
{
    int dims[] = {EDGE, EDGE};
    int array = NGA_Create(C_DBL, 2, dims, (char *)name, NULL);
    GA_Zero(array);
    return array;
}

static double value_at(int row, int column)
{
    return row * 100.0 + column + 1;
}

/* Every rank puts some rows, into any owner's memory. */
static void fill_by_puts(int array, double factor)
{
    double row[EDGE];
    int ld = EDGE;
    for (int i = rank; i < EDGE; i += ranks) {
        for (int k = 0; k < EDGE; k++)
            row[k] = factor * value_at(i, k);
        int lo[] = {i, 0}, hi[] = {i, EDGE - 1};
        NGA_Put(array, lo, hi, row, &ld);
    }
    GA_Sync();
}

static void whole(int array, double (*into)[EDGE])
{
    int lo[] = {0, 0}, hi[] = {EDGE - 1, EDGE - 1}, ld = EDGE;
    NGA_Get(array, lo, hi, into, &ld);
}

static void blocks_are_put_added_and_got(void)
{
    int array = square("blocks"), ld = EDGE;
    double(*all)[EDGE] = malloc(sizeof(double[EDGE][EDGE]));
    fill_by_puts(array, 1);
    whole(array, all);
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++)
            CHECK(all[i][k] == value_at(i, k), "%d,%d is %g", i, k, all[i][k]);
    GA_Sync();
    /* All ranks add to one block that spans the memory of several ranks. */
    double block[EDGE][EDGE], scale = 0.5;
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++)
            block[i][k] = 2 * (rank + 1);
    int lo[] = {3, 5}, hi[] = {EDGE - 4, EDGE - 6};
    for (int i = 0; i < 10; i++)
        NGA_Acc(array, lo, hi, block, &ld, &scale);
    GA_Sync();
    whole(array, all);
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++) {
            int inside = i >= lo[0] && i <= hi[0] && k >= lo[1] && k <= hi[1];
            double wanted = value_at(i, k) + (inside ? 10.0 * ranks * (ranks + 1) / 2 : 0);
            CHECK(all[i][k] == wanted, "%d,%d is %g, not %g", i, k, all[i][k], wanted);
        }
    free(all);
    GA_Destroy(array);
}

static void counters_share_out_tasks(void)
{
    int dims = 3, at = 2, counter = NGA_Create(C_LONG, 1, &dims, "counter", NULL), length = TASKS;
    int done = NGA_Create(C_INT, 1, &length, "done", NULL), unit = 1, mark = 1;
    GA_Zero(counter);
    GA_Zero(done);
    for (long task; (task = NGA_Read_inc(counter, &at, 1)) < TASKS;) {
        int index = (int)task;
        NGA_Acc(done, &index, &index, &mark, &unit, &mark);
    }
    GA_Sync();
    int seen[TASKS], lo = 0, hi = TASKS - 1;
    NGA_Get(done, &lo, &hi, seen, &unit);
    for (int i = 0; i < TASKS; i++)
        CHECK(seen[i] == 1, "task %d was done %d times", i, seen[i]);
    GA_Destroy(done);
    GA_Destroy(counter);
}

/* Each rank has the elements whose number is its own modulo the ranks. */
static void elements_are_scattered_and_gathered(void)
{
    int array = square("elements"), most = EDGE * EDGE / ranks + 1, count = 0;
    int(*indices)[2] = malloc((size_t)most * sizeof *indices);
    double *values = malloc((size_t)most * sizeof *values),
           *seen = malloc((size_t)most * sizeof *seen);
    for (int i = rank; i < EDGE * EDGE; i += ranks) {
        int n = i * 11 % (EDGE * EDGE);
        indices[count][0] = n / EDGE;
        indices[count][1] = n % EDGE;
        values[count++] = n + 0.5;
    }
    NGA_Scatter_flat(array, values, indices[0], count);
    GA_Sync();
    NGA_Scatter_acc_flat(array, values, indices[0], count, &one);
    GA_Sync();
    for (int i = 0; i < count; i++)
        indices[i][0] = EDGE - 1 - indices[i][0];
    NGA_Gather_flat(array, seen, indices[0], count);
    for (int i = 0; i < count; i++) {
        double wanted = 2 * (indices[i][0] * EDGE + indices[i][1] + 0.5);
        CHECK(seen[i] == wanted, "%d,%d is %g, not %g", indices[i][0], indices[i][1], seen[i],
              wanted);
    }
    free(indices);
    free(values);
    free(seen);
    GA_Destroy(array);
}

static void matrices_are_multiplied_and_transposed(void)
{
    int a = square("a"), b = square("b"), c = square("c"), t = square("t");
    double(*all)[EDGE] = malloc(sizeof(double[EDGE][EDGE]));
    fill_by_puts(a, 1);
    fill_by_puts(b, 0.5);
    GA_Dgemm('N', 'T', EDGE, EDGE, EDGE, 2, a, b, 0, c);
    whole(c, all);
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++) {
            double sum = 0;
            for (int j = 0; j < EDGE; j++)
                sum += value_at(i, j) * value_at(k, j);
            CHECK(all[i][k] == sum, "product %d,%d is %g, not %g", i, k, all[i][k], sum);
        }
    GA_Transpose(a, t);
    whole(t, all);
    double dot = 0;
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++) {
            CHECK(all[i][k] == value_at(k, i), "transposed %d,%d is %g", i, k, all[i][k]);
            dot += value_at(i, k) * value_at(i, k) / 2;
        }
    CHECK(GA_Ddot(a, b) == dot, "dot product");
    GA_Add(&one, a, &one, a, c);
    GA_Copy(c, t);
    CHECK(GA_Ddot(t, b) == 2 * dot, "of a sum");
    free(all);
    GA_Destroy(a);
    GA_Destroy(b);
    GA_Destroy(c);
    GA_Destroy(t);
}

/* The halo of every block, corners and the periodic edges included. */
static void ghosts_equal_the_neighbours_data(void)
{
    int dims[] = {24, 20, 6}, width[] = {1, 2, 1}, least[] = {3, 5, 6};
    int array = NGA_Create_ghosts(C_INT, 3, dims, width, "ghosts", least);
    int lo[3], hi[3], ld[2], extent[3];
    NGA_Distribution(array, rank, lo, hi);
    if (lo[0] >= 0 && hi[0] >= lo[0]) {
        int *own;
        NGA_Access(array, lo, hi, &own, ld);
        for (int i = lo[0]; i <= hi[0]; i++)
            for (int j = lo[1]; j <= hi[1]; j++)
                for (int k = lo[2]; k <= hi[2]; k++)
                    own[((i - lo[0]) * ld[0] + j - lo[1]) * ld[1] + k - lo[2]] =
                        (i * 100 + j) * 100 + k;
        NGA_Release_update(array, lo, hi);
    }
    GA_Sync();
    GA_Update_ghosts(array);
    if (lo[0] >= 0 && hi[0] >= lo[0]) {
        int *all;
        NGA_Access_ghosts(array, extent, &all, ld);
        for (int i = 0; i < extent[0]; i++)
            for (int j = 0; j < extent[1]; j++)
                for (int k = 0; k < extent[2]; k++) {
                    int x = (lo[0] + i - width[0] + dims[0]) % dims[0],
                        y = (lo[1] + j - width[1] + dims[1]) % dims[1];
                    int z = (lo[2] + k - width[2] + dims[2]) % dims[2],
                        got = all[(i * ld[0] + j) * ld[1] + k];
                    CHECK(got == (x * 100 + y) * 100 + z, "ghost %d,%d,%d is %d", i, j, k, got);
                }
        NGA_Release_ghosts(array);
    }
    GA_Destroy(array);
}

static void strided_and_periodic_blocks(void)
{
    int array = square("strides"), ld = 4;
    int lo[] = {EDGE - 2, EDGE - 2}, hi[] = {EDGE + 1, EDGE + 1};
    double block[4][4], back[4][4], sparse[4][4];
    for (int i = 0; i < 16; i++)
        block[i / 4][i % 4] = i + 1;
    if (rank == ranks - 1) {
        NGA_Periodic_put(array, lo, hi, block, &ld);
        NGA_Periodic_acc(array, lo, hi, block, &ld, &one);
    }
    GA_Sync();
    NGA_Periodic_get(array, lo, hi, back, &ld);
    for (int i = 0; i < 16; i++)
        CHECK(back[i / 4][i % 4] == 2 * (i + 1), "periodic %d is %g", i, back[i / 4][i % 4]);
    GA_Sync();
    int from[] = {4, 4}, to[] = {13, 13}, skip[] = {3, 3};
    if (rank == 0)
        NGA_Strided_put(array, from, to, skip, block, &ld);
    GA_Sync();
    NGA_Strided_get(array, from, to, skip, sparse, &ld);
    for (int i = 0; i < 16; i++)
        CHECK(sparse[i / 4][i % 4] == i + 1, "strided %d is %g", i, sparse[i / 4][i % 4]);
    GA_Destroy(array);
}

static void nonblocking_and_mutexes(void)
{
    int array = square("nonblocking"), ld = EDGE;
    double row[4][EDGE], back[4][EDGE];
    ga_nbhdl_t handles[4];
    for (int i = 0; i < 4; i++) {
        int at = (rank * 4 + i) % EDGE, lo[] = {at, 0}, hi[] = {at, EDGE - 1};
        for (int k = 0; k < EDGE; k++)
            row[i][k] = value_at(at, k);
        NGA_NbPut(array, lo, hi, row[i], &ld, &handles[i]);
    }
    for (int i = 0; i < 4; i++)
        NGA_NbWait(&handles[i]);
    GA_Sync();
    for (int i = 0; i < 4; i++) {
        int at = ((rank + 1) % ranks * 4 + i) % EDGE, lo[] = {at, 0}, hi[] = {at, EDGE - 1};
        NGA_NbGet(array, lo, hi, back[i], &ld, &handles[i]);
    }
    for (int i = 0; i < 4; i++)
        NGA_NbWait(&handles[i]);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < EDGE; k++)
            CHECK(back[i][k] == value_at(((rank + 1) % ranks * 4 + i) % EDGE, k), "row %d: %g", i,
                  back[i][k]);
    GA_Sync();
    GA_Zero(array);
    GA_Create_mutexes(3);
    for (int i = 0; i < 12; i++) {
        int at[] = {EDGE - 1 - i % 3, i % 3};
        double seen;
        GA_Lock(i % 3);
        GA_Init_fence();
        NGA_Get(array, at, at, &seen, &ld);
        seen += 1;
        NGA_Put(array, at, at, &seen, &ld);
        GA_Fence();
        GA_Unlock(i % 3);
    }
    GA_Sync();
    for (int i = 0; i < 3; i++) {
        int at[] = {EDGE - 1 - i, i};
        double seen;
        NGA_Get(array, at, at, &seen, &ld);
        CHECK(seen == 4.0 * ranks, "under mutex %d: %g", i, seen);
    }
    GA_Destroy_mutexes();
    GA_Destroy(array);
}

static void groups_have_arrays_of_their_own(void)
{
    int *list = malloc((size_t)ranks * sizeof *list), members = 0, length = 50, unit = 1,
        values[50];
    for (int i = rank % 2; i < ranks; i += 2)
        list[members++] = i;
    int group = GA_Pgroup_create(list, members);
    int array = NGA_Create_config(C_INT, 1, &length, "of a group", NULL, group);
    GA_Zero(array);
    for (int i = 0; i < length; i++)
        values[i] = i + rank;
    int lo = 0, hi = length - 1, weight = 3;
    NGA_Acc(array, &lo, &hi, values, &unit, &weight);
    GA_Pgroup_sync(group);
    NGA_Get(array, &lo, &hi, values, &unit);
    int of_ranks = 0;
    for (int i = 0; i < members; i++)
        of_ranks += list[i];
    for (int i = 0; i < length; i++)
        CHECK(values[i] == 3 * (members * i + of_ranks), "%d is %d", i, values[i]);
    GA_Destroy(array);
    GA_Pgroup_destroy(group);
    free(list);
    GA_Sync();
}

static void blocks_dealt_in_turn(void)
{
    int dims[] = {EDGE, EDGE}, block[] = {5, 4}, array = GA_Create_handle();
    GA_Set_data(array, 2, dims, C_DBL);
    GA_Set_block_cyclic(array, block);
    GA_Set_array_name(array, "dealt");
    GA_Allocate(array);
    GA_Zero(array);
    double(*all)[EDGE] = malloc(sizeof(double[EDGE][EDGE]));
    fill_by_puts(array, 1);
    whole(array, all);
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++)
            CHECK(all[i][k] == value_at(i, k), "dealt: %d,%d is %g", i, k, all[i][k]);
    free(all);
    GA_Destroy(array);
}

static const struct array_case cases[] = {
    CASE(blocks_are_put_added_and_got),
    CASE(counters_share_out_tasks),
    CASE(elements_are_scattered_and_gathered),
    CASE(matrices_are_multiplied_and_transposed),
    CASE(ghosts_equal_the_neighbours_data),
    CASE(strided_and_periodic_blocks),
    CASE(nonblocking_and_mutexes),
    CASE(groups_have_arrays_of_their_own),
    CASE(blocks_dealt_in_turn),
};

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    GA_Initialize();
    MA_init(C_DBL, 1000000, 1000000); /* the source of GA's work space */
    int status = cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
    GA_Terminate();
    leave_without_finalize(status);
    MPI_Finalize();
    return status;
}
