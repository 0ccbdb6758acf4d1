/* Entry points around windows. MPI_Init removes Oriel from the environment. MPI_Comm_spawn runs
 * programs under Oriel. MPI_Comm_free leaves the cached rendezvous of a communicator.
 * MPI_Get_library_version names Oriel, and oriel_version and oriel_active answer for it. Programs
 * control observation by MPI_Pcontrol and by regions. */
#include "api/api.h"
#include "api/banner.h"
#include "api/spawn_env.h"
#include "base/log.h"
#include "base/options.h"
#include "create/comm_cache.h"
#include "create/create.h"
#include "observe/observe.h"
#include "observe/stats/program_region.h"
#include "oriel/oriel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number of at least 1 in a variable; 0 for none. */
static long variable_count(const char *name)
{
    const char *text = getenv(name);
    long count = text == NULL ? 0 : strtol(text, NULL, 10);
    return count > 0 ? count : 0;
}

/* Slurm starts N tasks, and MPI makes each a job of its own if it cannot connect to Slurm's PMI.
 * Another launcher's variable with a size of 1 means that the task started that launcher, and the
 * job is as intended. The first task warns for all. */
static void singletons_report(void)
{
    const char *task = getenv("SLURM_PROCID");
    long tasks = variable_count("SLURM_STEP_NUM_TASKS");
    int size = 0;
    if (tasks == 0)
        tasks = variable_count("SLURM_NTASKS");
    if (tasks > 1 && task != NULL && strcmp(task, "0") == 0 && variable_count("PMI_SIZE") != 1 &&
        variable_count("OMPI_COMM_WORLD_SIZE") != 1 &&
        oriel_host()->Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS && size == 1)
        oriel_warn_job(
            "Slurm has %ld tasks, but MPI_COMM_WORLD has 1 rank: start the program with srun "
            "--mpi=pmi2 or --mpi=pmix (srun --mpi=list shows what Slurm has), or with "
            "mpiexec",
            tasks);
}

/* After the host's MPI_Init. */
static int after_host_init(int code)
{
    if (code != MPI_SUCCESS)
        return code;
    oriel_banner_print();
    if (!oriel_options()->bypass) {
        oriel_window_attach_finaliser();
        singletons_report();
    }
    oriel_observe_start(&oriel_api);
    return code;
}

int oriel_entry_Init(int *argc, char ***argv)
{
    oriel_spawn_env_enter(ORIEL_CALLER);
    return after_host_init(oriel_host()->Init(argc, argv));
}

int oriel_entry_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    oriel_spawn_env_enter(ORIEL_CALLER);
    return after_host_init(oriel_host()->Init_thread(argc, argv, required, provided));
}

static int free_comm(const char *call, int (*host_function)(MPI_Comm *), MPI_Comm *comm)
{
    MPI_Comm freed = comm == NULL ? MPI_COMM_NULL : *comm; /* the host refuses both */
    enum oriel_status status = oriel_comm_cache_begin_free(freed);
    if (status != ORIEL_OK)
        return oriel_error_raise_nowhere(call, status);
    int code = host_function(comm);
    oriel_comm_cache_end_free(freed);
    return code;
}

int oriel_entry_Comm_free(MPI_Comm *comm)
{
    return free_comm("MPI_Comm_free", oriel_host()->Comm_free, comm);
}

int oriel_entry_Comm_disconnect(MPI_Comm *comm)
{
    return free_comm("MPI_Comm_disconnect", oriel_host()->Comm_disconnect, comm);
}

ORIEL_EXPORT const char *oriel_version(void)
{
    return ORIEL_VERSION;
}

ORIEL_EXPORT int oriel_active(void)
{
    return !oriel_options()->bypass;
}

ORIEL_EXPORT int PMPIX_Query_oriel(void)
{
    return oriel_active();
}

/* In C it is an inline function of oriel/ext.h. The symbol is for other languages. */
ORIEL_EXPORT int exported_query(void) __asm__("MPIX_Query_oriel")
    __attribute__((weak, alias("PMPIX_Query_oriel")));

ORIEL_EXPORT void oriel_region_begin(const char *name)
{
    oriel_program_region_begin(name);
}

ORIEL_EXPORT void oriel_region_end(const char *name)
{
    oriel_program_region_end(name);
}

/* Observation replaces this entry (observe/stats/pause.c). */
int oriel_entry_Pcontrol(const int level, ...)
{
    return oriel_host()->Pcontrol(level);
}

int oriel_entry_Get_library_version(char *version, int *resultlen)
{
    int code = oriel_host()->Get_library_version(version, resultlen);
    if (code != MPI_SUCCESS)
        return code;
    size_t used = strnlen(version, MPI_MAX_LIBRARY_VERSION_STRING - 1);
    while (used > 0 && version[used - 1] == '\n')
        used--;
    int added =
        snprintf(version + used, MPI_MAX_LIBRARY_VERSION_STRING - used, ", windows by Oriel %s%s",
                 ORIEL_VERSION, oriel_options()->bypass ? " (bypassed)" : "");
    if (added > 0)
        *resultlen = (int)strnlen(version, MPI_MAX_LIBRARY_VERSION_STRING);
    return code;
}

int oriel_entry_Comm_spawn(const char *command, char *argv[], int maxprocs, MPI_Info info, int root,
                           MPI_Comm comm, MPI_Comm *intercomm, int array_of_errcodes[])
{
    struct oriel_spawn spawn;
    int rank;
    if (oriel_host()->Comm_rank(comm, &rank) != MPI_SUCCESS || rank != root ||
        !oriel_spawn_env_wrap(command, argv, &spawn))
        return oriel_host()->Comm_spawn(command, argv, maxprocs, info, root, comm, intercomm,
                                        array_of_errcodes);
    int code = oriel_host()->Comm_spawn(spawn.command, spawn.argv, maxprocs, info, root, comm,
                                        intercomm, array_of_errcodes);
    oriel_spawn_env_unwrap(&spawn);
    return code;
}

int oriel_entry_Comm_spawn_multiple(int count, char *array_of_commands[], char **array_of_argv[],
                                    const int array_of_maxprocs[], const MPI_Info array_of_info[],
                                    int root, MPI_Comm comm, MPI_Comm *intercomm,
                                    int array_of_errcodes[])
{
    int rank;
    bool is_root = oriel_host()->Comm_rank(comm, &rank) == MPI_SUCCESS && rank == root && count > 0;
    struct oriel_spawn *spawns = is_root ? calloc((unsigned)count, sizeof *spawns) : NULL;
    char **commands = is_root ? calloc((unsigned)count, sizeof *commands) : NULL;
    char ***arguments = is_root ? calloc((unsigned)count, sizeof *arguments) : NULL;
    int wrapped = 0;
    while (spawns != NULL && commands != NULL && arguments != NULL && wrapped < count &&
           oriel_spawn_env_wrap(array_of_commands[wrapped],
                                array_of_argv == MPI_ARGVS_NULL ? MPI_ARGV_NULL
                                                                : array_of_argv[wrapped],
                                &spawns[wrapped])) {
        commands[wrapped] = spawns[wrapped].command;
        arguments[wrapped] = spawns[wrapped].argv;
        wrapped++;
    }
    bool all = is_root && wrapped == count;
    int code = oriel_host()->Comm_spawn_multiple(
        count, all ? commands : array_of_commands, all ? arguments : array_of_argv,
        array_of_maxprocs, array_of_info, root, comm, intercomm, array_of_errcodes);
    while (wrapped > 0)
        oriel_spawn_env_unwrap(&spawns[--wrapped]);
    free(spawns);
    free(commands);
    free(arguments);
    return code;
}
