/* A ring of blocks in the memory of GPUs: each rank puts its block into the memory of the rank to
 * its right, until every block is back where it began.
 *
 * With Oriel and a GPU's driver (libcuda.so.1) the window is device memory, which is also the origin
 * of the puts: no block passes through host memory. Without either it is host memory, because the
 * MPIs do not accept other.
 *
 * A CUDA program has cudaMalloc, cudaMemcpy and cudaDeviceSynchronize here. This one calls the
 * driver itself, so that no toolkit is needed to compile it.
 * Run: mpiexec -n 4 oriel run ./ring_gpu */
#include <dlfcn.h>
#include <mpi.h>
#include <oriel/ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1 << 16, BYTES = N * sizeof(double) };

static struct {
    int (*init)(unsigned flags);
    int (*retain)(void **context, int device);
    int (*use)(void *context);
    int (*alloc)(unsigned long long *memory, size_t size);
    int (*release)(unsigned long long memory);
    int (*copy)(unsigned long long to, unsigned long long from, size_t size);
    int (*synchronize)(void);
} cuda;
static int on_gpu;

/* Returns 1 if this process can use a GPU. */
static int gpu_open(void)
{
    static void *driver;
    void *context;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (driver == NULL)
        return 0;
    *(void **)&cuda.init = dlsym(driver, "cuInit");
    *(void **)&cuda.retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
    *(void **)&cuda.use = dlsym(driver, "cuCtxSetCurrent");
    *(void **)&cuda.alloc = dlsym(driver, "cuMemAlloc_v2");
    *(void **)&cuda.release = dlsym(driver, "cuMemFree_v2");
    *(void **)&cuda.copy = dlsym(driver, "cuMemcpy");
    *(void **)&cuda.synchronize = dlsym(driver, "cuCtxSynchronize");
    return cuda.init(0) == 0 && cuda.retain(&context, 0) == 0 && cuda.use(context) == 0;
}

static void *memory_alloc(size_t size)
{
    unsigned long long memory;
    if (!on_gpu)
        return malloc(size);
    return cuda.alloc(&memory, size) == 0 ? (void *)memory : NULL;
}

static void memory_free(void *memory)
{
    if (on_gpu)
        cuda.release((unsigned long long)memory);
    else
        free(memory);
}

/* Complete when it returns: MPI does not wait for the program's own copies and kernels. */
static void memory_copy(void *to, const void *from, size_t size)
{
    if (!on_gpu) {
        memcpy(to, from, size);
    } else if (cuda.copy((unsigned long long)to, (unsigned long long)from, size) != 0 ||
               cuda.synchronize() != 0) {
        fprintf(stderr, "ring_gpu: a copy failed\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static double value(int rank, int i)
{
    return rank * 1000.0 + i;
}

int main(int argc, char **argv)
{
    static double block[N];
    int rank, ranks, wrong = 0, can;
    double *blocks; /* two: one arrives while the other one is sent */
    MPI_Win win;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    can = MPIX_Query_oriel() && gpu_open();
    MPI_Allreduce(&can, &on_gpu, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    blocks = memory_alloc(2 * BYTES);
    if (blocks == NULL) {
        fprintf(stderr, "ring_gpu: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < N; i++)
        block[i] = value(rank, i);
    memory_copy(blocks, block, BYTES);

    MPI_Win_create(blocks, 2 * BYTES, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int step = 0; step < ranks; step++) {
        const int from = step % 2 * N, to = (step + 1) % 2 * N;
        MPI_Put(blocks + from, N, MPI_DOUBLE, (rank + 1) % ranks, to, N, MPI_DOUBLE, win);
        MPI_Win_fence(step + 1 < ranks ? 0 : MPI_MODE_NOSUCCEED, win);
    }
    memory_copy(block, blocks + ranks % 2 * N, BYTES);
    for (int i = 0; i < N; i++)
        wrong += block[i] != value(rank, i);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %d wrong numbers after a round of %d ranks, in %s memory\n",
               wrong ? "WRONG" : "right", wrong, ranks, on_gpu ? "device" : "host");
    MPI_Win_free(&win);
    memory_free(blocks);
    MPI_Finalize();
    return wrong != 0;
}
