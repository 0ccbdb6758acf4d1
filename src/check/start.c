/* The checker's start and end: behind MPI_Init the ranks of each machine come to one board, and if that fails anywhere, nothing
 * is checked; before MPI_Finalize is passed on, what is left over is told and the findings of all ranks meet.  Between them
 * oriel_check_running is true.  Programs call. */
#include "check/windows_table.h"

#include "base/log.h"
#include "base/options.h"
#include "check/communicators.h"
#include "check/waits.h"
#include "ops/datatype.h"

#include <stdlib.h>
#include <string.h>

/* What each rank of MPI_COMM_WORLD tells the others. */
struct arrival {
    char path[120]; /* of the board, of the first rank of each machine */
    uint64_t made;
};

static uint8_t *here; /* ranks of MPI_COMM_WORLD that are on this machine */
static bool all_here;
static bool threaded = true;
static int world_size;
static int world_rank;

bool oriel_start_on_this_machine(int32_t rank)
{
    return rank >= 0 && rank < world_size && here[rank];
}

bool oriel_start_all_here(void)
{
    return all_here;
}

bool oriel_start_is_threaded(void)
{
    return threaded;
}

/* As the host sees it. */
static bool ask_host(void)
{
    const struct oriel_host_calls *host = oriel_host();
    MPI_Comm together = MPI_COMM_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    int *ranks = calloc(2 * (size_t)(unsigned)world_size, sizeof *ranks);
    bool known = ranks != NULL &&
                 host->Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &together) == MPI_SUCCESS &&
                 host->Comm_group(together, &group) == MPI_SUCCESS && host->Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS;
    for (int i = 0; i < world_size && known; i++)
        ranks[i] = i;
    known = known && host->Group_translate_ranks(world, world_size, ranks, group, ranks + world_size) == MPI_SUCCESS;
    for (int i = 0; i < world_size && known; i++)
        here[i] = ranks[world_size + i] != MPI_UNDEFINED;
    if (group != MPI_GROUP_NULL)
        host->Group_free(&group);
    if (world != MPI_GROUP_NULL)
        host->Group_free(&world);
    if (together != MPI_COMM_NULL)
        host->Comm_free(&together);
    free(ranks);
    return known;
}

static bool find_neighbours(void)
{
    int node_size = oriel_options()->node_size;
    here = calloc((size_t)(unsigned)world_size, sizeof *here);
    if (here == NULL)
        return false;
    if (node_size == 0)
        return ask_host();
    for (int i = 0; i < world_size; i++)
        here[i] = i / node_size == world_rank / node_size;
    return true;
}

/* The machine's first rank makes the board, all others of it join. */
static bool come_to_board(void)
{
    int first = 0;
    while (first < world_size && !here[first])
        first++;
    struct arrival own = {.made = 0};
    struct arrival *all = calloc((size_t)(unsigned)world_size, sizeof *all);
    if (first == world_rank)
        own.made = oriel_board_make(world_size, own.path, sizeof own.path) == ORIEL_OK;
    bool joined = all != NULL && oriel_host_gather(MPI_COMM_WORLD, "the checker", &own, sizeof own, all, NULL) == ORIEL_OK &&
                  first < world_size && all[first].made;
    if (joined && first != world_rank)
        joined = oriel_board_join(all[first].path) == ORIEL_OK;
    free(all);
    return joined;
}

static bool start_parts(bool threads)
{
    return oriel_order_start(world_rank, world_size) == ORIEL_OK && oriel_sites_start() == ORIEL_OK &&
           oriel_finding_start() == ORIEL_OK && oriel_local_start(oriel_buffer_conflict, NULL) == ORIEL_OK &&
           oriel_waits_start(world_rank, world_size, threads) == ORIEL_OK && oriel_host_alone(MPI_COMM_WORLD) == ORIEL_OK;
}

typedef int query_fn(int *provided);

/* A child that the program forks has no MPI of its own. */
static void stop_in_child(void)
{
    oriel_check_running = false;
}

static bool is_first_here(void)
{
    int first = 0;
    while (!here[first])
        first++;
    return first == world_rank;
}

static void start(bool threads)
{
    const struct oriel_host_calls *host = oriel_host();
    uint32_t agreed = 0;
    if (oriel_options()->bypass || host->Comm_size(MPI_COMM_WORLD, &world_size) != MPI_SUCCESS ||
        host->Comm_rank(MPI_COMM_WORLD, &world_rank) != MPI_SUCCESS)
        return;
    bool right = find_neighbours();
    if (oriel_host_agree(MPI_COMM_WORLD, "the checker", right, &agreed, NULL) != ORIEL_OK || !agreed)
        return;
    right = come_to_board() && start_parts(threads);
    if (oriel_host_agree(MPI_COMM_WORLD, "the checker", right, &agreed, NULL) != ORIEL_OK || !agreed) {
        if (!right)
            oriel_warn("rank %d cannot come to the checker's memory (%s): nothing is checked", world_rank, oriel_fail_message());
        return;
    }
    all_here = true;
    for (int i = 0; i < world_size; i++)
        all_here = all_here && here[i];
    if (!all_here)
        oriel_finding_count("windows over several machines: the order of accesses was not looked at");
    int level = MPI_THREAD_MULTIPLE;
    query_fn *query = (query_fn *)oriel_host_symbol("PMPI_Query_thread");
    threaded = query == NULL || query(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
    oriel_local_order_atomics(oriel_window_order_atomic);
    oriel_type_start();
    pthread_atfork(NULL, NULL, stop_in_child);
    if (is_first_here())
        oriel_deadlock_start();
    oriel_check_running = true;
}

static void stop(const struct oriel_site *site)
{
    oriel_windows_finalise(site);
    oriel_waits_finish(site);
    oriel_finding_end();
    oriel_deadlock_stop();
    oriel_waits_stop();
    oriel_check_running = false;
    oriel_comm_stop();
    oriel_type_stop();
    oriel_host_carrier_stop();
    oriel_local_stop();
    oriel_order_stop();
}

ORIEL_EXPORT int PMPI_Init(int *argc, char ***argv)
{
    int code = oriel_host()->Init(argc, argv);
    oriel_check_enter();
    if (code == MPI_SUCCESS)
        start(false);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Init(int *argc, char ***argv) __attribute__((weak, alias("PMPI_Init")));

ORIEL_EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    oriel_waits_before();
    int code = oriel_host()->Init_thread(argc, argv, required, provided);
    oriel_check_enter();
    if (code == MPI_SUCCESS)
        start(*provided >= MPI_THREAD_SERIALIZED);
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
    __attribute__((weak, alias("PMPI_Init_thread")));

typedef int finalize_fn(void);
typedef int abort_fn(MPI_Comm comm, int errorcode);

ORIEL_EXPORT int PMPI_Finalize(void)
{
    finalize_fn *behind = (finalize_fn *)oriel_host_symbol("PMPI_Finalize");
    if (oriel_window_look()) {
        struct oriel_site site = oriel_site_make(ORIEL_CALLER, ORIEL_CALL_Finalize);
        stop(&site);
        oriel_check_leave();
    }
    return behind();
}
ORIEL_EXPORT int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));

ORIEL_EXPORT int PMPI_Abort(MPI_Comm comm, int errorcode)
{
    abort_fn *behind = (abort_fn *)oriel_host_symbol("PMPI_Abort");
    if (oriel_window_look()) {
        oriel_finding_end_alone();
        oriel_check_leave();
    }
    return behind(comm, errorcode);
}
ORIEL_EXPORT int MPI_Abort(MPI_Comm comm, int errorcode) __attribute__((weak, alias("PMPI_Abort")));
