/* Shared parts of the programs of fault.h: the window, a survivor's report on an error, and the
 * report files. */
#include "fault.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int world_rank, world_size, victim = 1;
bool with_victim;
MPI_Win win;
MPI_Group victim_group;
MPI_Comm living_ranks, fresh;
double *bulk;
static double *base; /* of the window's memory at this rank */
static double *own;  /* the same if the program owns it, else NULL */

double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* UCX 1.13 aborts a process on an assertion if its first connection breaks before it is
 * complete. */
void connect_all(void)
{
    MPI_Win_lock_all(0, win);
    for (int rank = 0; rank < world_size; rank++)
        MPI_Get(&bulk[rank], 1, MPI_DOUBLE, rank, 0, 1, MPI_DOUBLE, win);
    MPI_Win_unlock_all(win);
}

void post_to_survivors(MPI_Win posted)
{
    MPI_Group world, survivors;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_excl(world, 1, &victim, &survivors);
    MPI_Win_post(survivors, 0, posted);
}

void hold_connection_open(const char *folder, bool (*dies)(int rank),
                          void (*outlast)(const char *folder, int size, pid_t process))
{
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    const char *size = getenv("PMI_SIZE") ? getenv("PMI_SIZE") : getenv("OMPI_COMM_WORLD_SIZE");
    pid_t process = getpid();
    if (!rank || !size || !dies(atoi(rank)) || fork() != 0)
        return;
    outlast(folder, atoi(size), process);
    if (getppid() == process)
        kill(process, SIGKILL);
    _exit(0);
}

void window_make(bool allocate)
{
    MPI_Aint size_bytes = (MPI_Aint)(FAULT_ELEMENTS * sizeof(double));
    MPI_Group world;
    if (allocate) {
        MPI_Win_allocate(size_bytes, sizeof(double), MPI_INFO_NULL, living_ranks, &base, &win);
    } else {
        base = own = calloc(FAULT_ELEMENTS, sizeof(double));
        MPI_Win_create(base, size_bytes, sizeof(double), MPI_INFO_NULL, living_ranks, &win);
    }
    memset(base, 0, (size_t)size_bytes);
    bulk = calloc(FAULT_ELEMENTS, sizeof(double));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Comm_group(living_ranks, &world);
    MPI_Group_incl(world, 1, &victim, &victim_group);
}

void window_forget(void)
{
    MPI_Group_free(&victim_group);
    free(bulk);
    free(own);
    own = NULL;
}

/* The library's own message if it has one, else the error's text. */
static void describe(int code, char text[MPI_MAX_ERROR_STRING])
{
    const char *(*last_error)(void);
    void *address = dlsym(RTLD_DEFAULT, "oriel_last_error");
    int length = 0;
    memcpy(&last_error, &address, sizeof address);
    if (address && code != MPI_SUCCESS)
        snprintf(text, MPI_MAX_ERROR_STRING, "%s", last_error());
    else
        MPI_Error_string(code, text, &length);
}

void verdict_of(const struct scenario *scenario, int code, double seconds, char line[VERDICT_BYTES])
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    describe(code, text);
    const char *verdict = class == MPI_ERR_OTHER ? "error"
                          : scenario->may_succeed || (scenario->remote_only && with_victim)
                              ? "allowed"
                              : "success";
    if (class != MPI_SUCCESS && class != MPI_ERR_OTHER)
        verdict = "other-class";
    snprintf(line, VERDICT_BYTES, "%s %.3f %s", verdict, seconds, text);
}

const struct scenario *scenario_find(const char *name)
{
    for (size_t i = 0; i < scenario_count; i++)
        if (strcmp(name, scenarios[i].name) == 0)
            return &scenarios[i];
    fprintf(stderr, "no scenario %s\n", name);
    exit(2);
}

void file_write(const char *folder, const char *name, int rank, const char *text)
{
    char path[4096], unfinished[4096];
    snprintf(path, sizeof path, "%s/%s.%d", folder, name, rank);
    snprintf(unfinished, sizeof unfinished, "%s/unfinished.%d", folder, rank);
    FILE *file = fopen(unfinished, "w");
    fprintf(file, "%s\n", text);
    fclose(file);
    rename(unfinished, path);
}

bool file_exists(const char *folder, const char *name, int rank)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%d", folder, name, rank);
    return access(path, F_OK) == 0;
}
