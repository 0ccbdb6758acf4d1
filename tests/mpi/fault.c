/* Runs one scenario of fault.h and reports.  What a survivor says: "error SECONDS TEXT" of class MPI_ERR_OTHER, or "success", or
 * "allowed" where a scenario may succeed, or the class that is wrong. */
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
MPI_Comm fresh;
double *bulk;

double seconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* UCX 1.13 ends a process by an assertion where a first connection to it breaks before it is complete. */
void connect_all(void)
{
    double value;
    MPI_Win_lock_all(0, win);
    for (int rank = 0; rank < world_size; rank++)
        MPI_Get(&value, 1, MPI_DOUBLE, rank, 0, 1, MPI_DOUBLE, win);
    MPI_Win_unlock_all(win);
}

static void window_make(bool allocate)
{
    MPI_Aint size_bytes = (MPI_Aint)(FAULT_ELEMENTS * sizeof(double));
    MPI_Group world;
    double *base;
    if (allocate) {
        MPI_Win_allocate(size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    } else {
        base = calloc(FAULT_ELEMENTS, sizeof(double));
        MPI_Win_create(base, size_bytes, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    }
    memset(base, 0, (size_t)size_bytes);
    bulk = calloc(FAULT_ELEMENTS, sizeof(double));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &victim, &victim_group);
}

/* By host names, or as ORIEL_NODE_SIZE divides a machine. */
static bool is_with_victim(void)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "", its[MPI_MAX_PROCESSOR_NAME];
    int length, size = getenv("ORIEL_NODE_SIZE") ? atoi(getenv("ORIEL_NODE_SIZE")) : 0;
    MPI_Get_processor_name(own, &length);
    memcpy(its, own, sizeof its);
    MPI_Bcast(its, sizeof its, MPI_CHAR, victim, MPI_COMM_WORLD);
    return strcmp(own, its) == 0 && (size == 0 || world_rank / size == victim / size);
}

/* The library's own words where it has them, else the error's text. */
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

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[4096], unfinished[4096];
    snprintf(path, sizeof path, "%s/%s.%d", folder, name, world_rank);
    snprintf(unfinished, sizeof unfinished, "%s/unfinished.%d", folder, world_rank);
    FILE *file = fopen(unfinished, "w");
    fprintf(file, "%s\n", text);
    fclose(file);
    rename(unfinished, path);
}

static void report(const char *folder, const struct scenario *scenario, int code, double seconds)
{
    char text[MPI_MAX_ERROR_STRING] = "", line[MPI_MAX_ERROR_STRING + 100];
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    describe(code, text);
    const char *verdict = class == MPI_ERR_OTHER ? "error"
                          : scenario->may_succeed || (scenario->far_only && with_victim) ? "allowed" : "success";
    if (class != MPI_SUCCESS && class != MPI_ERR_OTHER)
        verdict = "other-class";
    snprintf(line, sizeof line, "%s %.3f %s", verdict, seconds, text);
    write_file(folder, "rank", line);
}

static bool is_fault(const char *name)
{
    const char *fault = getenv("TEST_FAULT");
    return fault && strcmp(fault, name) == 0;
}

static bool reported(const char *folder, int rank)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/rank.%d", folder, rank);
    return access(path, F_OK) == 0;
}

/* Until all survivors, and who comes back, have written their reports, or have had more than enough time. */
static void await_reports(const char *folder, int size)
{
    double end = seconds_now() + 20;
    for (int rank = 0; rank < size && seconds_now() < end; rank++)
        while ((rank != victim || is_fault("pause")) && !reported(folder, rank) && seconds_now() < end)
            usleep(5000);
}

static bool paused(pid_t process)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    bool read = file && fscanf(file, "%*d %*s %c", &state) == 1;
    if (file)
        fclose(file);
    return !read || state == 'T';
}

/* MPICH's launcher kills all when the connection of one process closes without a farewell, whatever it was told about cleaning
 * up.  A copy of the victim, made before MPI starts, keeps the victim's connection open until the survivors are through; and ends
 * a victim that only stopped. */
static void keep_connection_open(const char *folder)
{
    const char *rank = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
    const char *size = getenv("PMI_SIZE") ? getenv("PMI_SIZE") : getenv("OMPI_COMM_WORLD_SIZE");
    pid_t parent = getpid();
    if (!rank || !size || atoi(rank) != victim || fork() != 0)
        return;
    if (is_fault("pause")) {
        while (access(folder, F_OK) == 0 && !paused(parent))
            usleep(5000);
        sleep(4);
        kill(parent, SIGCONT);
    }
    await_reports(folder, atoi(size));
    if (getppid() == parent)
        kill(parent, SIGKILL);
    _exit(0);
}

static void end_victim(const char *folder)
{
    if (is_fault("stop") || is_fault("pause"))
        raise(SIGSTOP);
    else if (!is_fault("link"))
        raise(SIGKILL);
    if (is_fault("pause"))
        return;
    write_file(folder, "ready", "");
    await_reports(folder, world_size);
    _exit(0);
}

/* Survivors wait for a link's fault as their driver tells them that it is there; what is much is to be on its way already. */
static void await_fault(const char *folder, const struct scenario *scenario)
{
    char path[4096];
    double end = seconds_now() + 20;
    snprintf(path, sizeof path, "%s/fault", folder);
    if (!is_fault("link") || strncmp(scenario->name, "bulk-", 5) == 0)
        return;
    while (access(path, F_OK) != 0 && seconds_now() < end)
        usleep(5000);
}

int main(int argc, char **argv)
{
    const struct scenario *scenario = NULL;
    for (size_t i = 0; argc == 4 && i < scenario_count; i++)
        if (strcmp(argv[1], scenarios[i].name) == 0)
            scenario = &scenarios[i];
    if (!scenario) {
        fprintf(stderr, "usage: %s SCENARIO allocate|create FOLDER\n", argv[0]);
        return 2;
    }
    if (getenv("TEST_VICTIM"))
        victim = atoi(getenv("TEST_VICTIM"));
    signal(SIGUSR1, SIG_IGN);
    keep_connection_open(argv[3]);
    MPI_Init(&argc, &argv);
    signal(SIGUSR1, SIG_IGN); /* MPICH's launcher tells survivors of the death by this signal */
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    with_victim = is_with_victim();
    window_make(strcmp(argv[2], "allocate") == 0);
    if (world_rank == victim)
        scenario->prepare();
    else if (scenario->survivor)
        scenario->survivor();
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(20000);
    if (world_rank == victim) {
        scenario->last_act();
        end_victim(argv[3]);
    }
    await_fault(argv[3], scenario);
    double begin = seconds_now();
    int code = scenario->wait();
    report(argv[3], scenario, code, seconds_now() - begin);
    await_reports(argv[3], world_size);
    _exit(0);
}
