/* Runs one scenario of fault.h and reports. A survivor's report is "error SECONDS TEXT" for class
 * MPI_ERR_OTHER, or "success", or "allowed" where a scenario may succeed, or the wrong class. */
#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By host names, or by ORIEL_NODE_SIZE's division of the node. */
static bool is_with_victim(void)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "", its[MPI_MAX_PROCESSOR_NAME];
    int length, size = getenv("ORIEL_NODE_SIZE") ? atoi(getenv("ORIEL_NODE_SIZE")) : 0;
    MPI_Get_processor_name(own, &length);
    memcpy(its, own, sizeof its);
    MPI_Bcast(its, sizeof its, MPI_CHAR, victim, MPI_COMM_WORLD);
    return strcmp(own, its) == 0 && (size == 0 || world_rank / size == victim / size);
}

static bool is_fault(const char *name)
{
    const char *fault = getenv("TEST_FAULT");
    return fault && strcmp(fault, name) == 0;
}

/* Waits until all survivors, and a victim that resumes, have written their reports, or a generous
 * time has passed. */
static void await_reports(const char *folder, int size)
{
    double end = seconds_now() + 20;
    for (int rank = 0; rank < size && seconds_now() < end; rank++)
        while ((rank != victim || is_fault("pause")) && !file_exists(folder, "rank", rank) &&
               seconds_now() < end)
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

static bool is_victim(int rank)
{
    return rank == victim;
}

/* Then resumes a victim that a pause has stopped. */
static void outlast_survivors(const char *folder, int size, pid_t process)
{
    if (is_fault("pause")) {
        while (access(folder, F_OK) == 0 && !paused(process))
            usleep(5000);
        sleep(4);
        kill(process, SIGCONT);
    }
    await_reports(folder, size);
}

static void end_victim(const char *folder)
{
    file_write(folder, "outlived", world_rank, "what should have ended it");
    if (is_fault("stop") || is_fault("pause"))
        raise(SIGSTOP);
    else if (!is_fault("link"))
        raise(SIGKILL);
    if (is_fault("pause"))
        return;
    file_write(folder, "ready", world_rank, "");
    await_reports(folder, world_size);
    _exit(0);
}

/* Survivors wait for a link's fault until their driver reports it; by then large transfers must be
 * outstanding. */
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
    char line[VERDICT_BYTES];
    if (argc != 4) {
        fprintf(stderr, "usage: %s SCENARIO allocate|create FOLDER\n", argv[0]);
        return 2;
    }
    const struct scenario *scenario = scenario_find(argv[1]);
    if (getenv("TEST_VICTIM"))
        victim = atoi(getenv("TEST_VICTIM"));
    signal(SIGUSR1, SIG_IGN);
    hold_connection_open(argv[3], is_victim, outlast_survivors);
    MPI_Init(&argc, &argv);
    signal(SIGUSR1, SIG_IGN); /* MPICH's launcher notifies survivors of the death by this signal */
    living_ranks = MPI_COMM_WORLD;
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
    verdict_of(scenario, code, seconds_now() - begin, line);
    file_write(argv[3], "rank", world_rank, line);
    await_reports(argv[3], world_size);
    _exit(0);
}
