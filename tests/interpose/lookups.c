/* A program that is not linked to MPI looks up MPI's functions at run time, as interpreters do.
 * Each method of finding MPI_Put puts into the same window, and the value must arrive.
 *   lookups LIBRARY PLUGIN ALONE [conflict | deepbind | namespace | copy FILE] LIBRARY is the
 *   host's. PLUGIN is linked to it. ALONE is not linked to MPI and defines an MPI_Put of its own.
 *   "conflict" makes two puts into the same memory, for the checker. The other words load a library
 *   in a form that Oriel does not serve. */
#include "lookups.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef __typeof__(MPI_Put) put_fn;

static void *library; /* the host's, loaded with RTLD_LOCAL */
static int failures;
static long *memory;
static int rank, size;
static MPI_Win win;
static int puts_each = 1;

#ifdef OPEN_MPI
#define PREDEFINED(type, name, symbol) ((type)dlsym(library, symbol))
#else
#define PREDEFINED(type, name, symbol) name
#endif
#define WORLD   PREDEFINED(MPI_Comm, MPI_COMM_WORLD, "ompi_mpi_comm_world")
#define NO_INFO PREDEFINED(MPI_Info, MPI_INFO_NULL, "ompi_mpi_info_null")
#define LONG    PREDEFINED(MPI_Datatype, MPI_LONG, "ompi_mpi_long")

/* An MPI function by the host's handle. */
#define BY_HANDLE(name) ((__typeof__(name) *)dlsym(library, #name))

static void expect(int holds, const char *what)
{
    if (holds)
        return;
    printf("rank %d: not so: %s\n", rank, what);
    failures++;
}

static void *opened(const char *path, int flags)
{
    void *handle = dlopen(path, RTLD_NOW | flags);
    if (handle == NULL) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return handle;
}

/* A put by this function arrives. */
static void expect_put(put_fn *put, const char *how)
{
    static long next;
    long value = ++next * 1000 + rank;
    BY_HANDLE(MPI_Win_fence)(0, win);
    for (int i = 0; put != NULL && i < puts_each; i++)
        put(&value, 1, LONG, (rank + 1) % size, 3, 1, LONG, win);
    BY_HANDLE(MPI_Win_fence)(0, win);
    expect(memory[3] == next * 1000 + (rank + size - 1) % size, how);
}

static put_fn *plugin_put;
static int linked(const void *origin, int count, MPI_Datatype type, int target, MPI_Aint disp,
                  int target_count, MPI_Datatype target_type, MPI_Win window)
{
    return plugin_put(origin, count, type, target, disp, target_count, target_type, window);
}

static int is_in(void *address, const char *file)
{
    Dl_info info;
    return address != NULL && dladdr(address, &info) != 0 && strstr(info.dli_fname, file) != NULL;
}

/* Names that are not Oriel's resolve as they do without Oriel. */
static void expect_others(const char *library_name, void *plugin, void *own_put)
{
    expect(is_in(dlsym(library, "MPI_Type_size"), library_name),
           "a function that Oriel has not is the host's");
    expect(dlsym(library, "MPI_Put") == dlsym(RTLD_DEFAULT, "MPI_Put") ||
               getenv("LOOKUPS_TOOL") != NULL,
           "handles and links have the same function");
    expect(dlerror() == NULL, "no error is left");
    expect(dlsym(library, "MPI_Nothing") == NULL, "a name that nothing has is not found");
    const char *error = dlerror();
    expect(error != NULL && strstr(error, "MPI_Nothing") != NULL, "dlerror has its name");
    expect(dlvsym(library, "MPI_Put", "ANY_1.0") == NULL, "no host has versions");
    put_fn *own = (put_fn *)dlsym(own_put, "MPI_Put");
    expect(own != NULL && own(NULL, 0, LONG, 0, 0, 0, LONG, win) == ALONE,
           "a library without MPI keeps its MPI_Put");
    expect(dlsym(own_put, "PMPI_Put") == NULL, "and has no PMPI_Put");
    void *(*found)(const char *) = (void *(*)(const char *))dlsym(plugin, "plugin_next");
    expect(found("getppid") != dlsym(plugin, "getppid") && is_in(found("getppid"), "libc.so"),
           "RTLD_NEXT finds libc's");
    expect(dlsym(RTLD_NEXT, "getppid") == found("getppid"),
           "RTLD_NEXT of the program finds it too");
}

/* Fortran's functions are in a separate library, which may not be installed. */
static void expect_fortran(void)
{
#ifdef OPEN_MPI
    void *fortran = dlopen("libmpi_mpifh.so.40", RTLD_NOW | RTLD_LOCAL);
    expect(fortran == NULL ||
               dlsym(fortran, "mpi_win_get_attr_") == dlsym(RTLD_DEFAULT, "ompi_win_get_attr_f"),
           "a function for Fortran by its library's handle");
#else
    void *fortran = dlopen("libmpichfort.so.12", RTLD_NOW | RTLD_LOCAL);
#endif
    if (fortran != NULL)
        expect_put((put_fn *)dlsym(fortran, "MPI_Put"),
                   "MPI_Put by the handle of Fortran's library");
    dlerror();
}

static void load_past(char **words)
{
    void *past = NULL;
    if (strcmp(words[4], "deepbind") == 0)
        past = opened(words[2], RTLD_LOCAL | RTLD_DEEPBIND);
    else if (strcmp(words[4], "namespace") == 0)
        past = dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW);
    else
        past = opened(words[5], RTLD_LOCAL);
    if (past == NULL) {
        printf("skipped: %s\n", dlerror());
        exit(77);
    }
    if (strcmp(words[4], "deepbind") == 0)
        return;
    __typeof__(MPI_Init) *init = (__typeof__(MPI_Init) *)dlsym(past, "MPI_Init");
    __typeof__(MPI_Finalize) *finalize = (__typeof__(MPI_Finalize) *)dlsym(past, "MPI_Finalize");
    init(NULL, NULL);
    finalize();
    exit(0);
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int len = 0;
    if (argc > 4 && strcmp(argv[4], "conflict") == 0)
        puts_each = 2;
    else if (argc > 4)
        load_past(argv);
    library = opened(argv[1], RTLD_LOCAL);
    BY_HANDLE(MPI_Init)(&argc, &argv);
    BY_HANDLE(MPI_Comm_rank)(WORLD, &rank);
    BY_HANDLE(MPI_Comm_size)(WORLD, &size);
    BY_HANDLE(MPI_Get_library_version)(version, &len);
    expect(strstr(version, "Oriel") != NULL, "the version has Oriel's name");
    BY_HANDLE(MPI_Win_allocate)(800, 8, NO_INFO, WORLD, &memory, &win);
    memset(memory, 0, 800);

    void *plugin = opened(argv[2], RTLD_LOCAL), *own_put = opened(argv[3], RTLD_LOCAL),
         *self = opened(NULL, 0);
    plugin_put = (put_fn *)dlsym(plugin, "plugin_put");
    void *(*next)(const char *) = (void *(*)(const char *))dlsym(plugin, "plugin_next");
    void *(*any)(const char *) = (void *(*)(const char *))dlsym(plugin, "plugin_default");
    expect_put((put_fn *)dlsym(library, "MPI_Put"), "MPI_Put by the host's handle");
    expect_put((put_fn *)dlsym(library, "PMPI_Put"), "PMPI_Put by the host's handle");
    expect_put((put_fn *)dlsym(plugin, "MPI_Put"),
               "MPI_Put by the handle of a library that is linked to the host");
    expect_put((put_fn *)dlsym(self, "MPI_Put"), "MPI_Put by the program's handle");
    expect_put((put_fn *)dlsym(RTLD_DEFAULT, "MPI_Put"), "MPI_Put by RTLD_DEFAULT");
    expect_put((put_fn *)dlsym(RTLD_NEXT, "MPI_Put"), "MPI_Put by RTLD_NEXT");
    expect_put(linked, "MPI_Put that a library calls by its links");
    expect_put((put_fn *)any("MPI_Put"), "MPI_Put by RTLD_DEFAULT of a library");
    expect_put((put_fn *)next("MPI_Put"), "MPI_Put by RTLD_NEXT of a library");
    expect_put((put_fn *)dlsym(opened(argv[1], RTLD_GLOBAL), "MPI_Put"),
               "MPI_Put by a handle with RTLD_GLOBAL");
    expect_fortran();
    expect_others(argv[1], plugin, own_put);

    BY_HANDLE(MPI_Win_free)(&win);
    BY_HANDLE(MPI_Finalize)();
    if (rank == 0 && failures == 0)
        printf("all arrived\n");
    return failures > 0;
}
