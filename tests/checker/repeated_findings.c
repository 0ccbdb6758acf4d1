/* A finding in a loop: only its first occurrence may search the stack and the modules. This program
 * counts those searches, by functions of its own in front of libc's. The host's own copies, in a
 * call that the checker does not know, are no finding. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { OCCURRENCES = 1000, ROOM = 4096 };

typedef int backtrace_fn(void **frames, int room);
typedef int visit_fn(struct dl_phdr_info *info, size_t size, void *closure);
typedef int iterate_fn(visit_fn *visit, void *closure);

static unsigned stacks, modules;

int backtrace(void **frames, int room);

int backtrace(void **frames, int room)
{
    backtrace_fn *next = (backtrace_fn *)dlsym(RTLD_NEXT, "backtrace");
    stacks++;
    return next(frames, room);
}

int dl_iterate_phdr(visit_fn *visit, void *closure)
{
    iterate_fn *next = (iterate_fn *)dlsym(RTLD_NEXT, "dl_iterate_phdr");
    modules++;
    return next(visit, closure);
}

static char values[64];

/* The compiler must not make instructions of it. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

/* One call site: the compiler knows no number of copies for which it could make another. */
__attribute__((noinline)) static void copy_often(char *buffer, const volatile int *count)
{
    for (int i = 0; i < *count; i++)
        copy(buffer, values, sizeof values);
}

static int searches(const char *what, char *buffer)
{
    volatile int count = 1;
    copy_often(buffer, &count);
    stacks = modules = 0;
    count = OCCURRENCES;
    copy_often(buffer, &count);
    if (stacks + modules == 0)
        return 0;
    printf("FAILED: %u searches of the stack and %u of the modules for %s\n", stacks, modules,
           what);
    return 1;
}

int main(int argc, char **argv)
{
    static char buffer[ROOM];
    int position = 0;
    char *memory;
    MPI_Request request;
    MPI_Win win;
    int failures;

    MPI_Init(&argc, &argv);
    MPI_Irecv(buffer, sizeof buffer, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    MPI_Pack(values, sizeof values, MPI_CHAR, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
    failures = searches("a buffer", buffer);
    MPI_Send(buffer, 0, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    MPI_Win_allocate(ROOM, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(buffer, sizeof buffer, MPI_CHAR, 0, 0, sizeof buffer, MPI_CHAR, win);
    failures += searches("memory of a window", memory);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    MPI_Finalize();
    return failures;
}
