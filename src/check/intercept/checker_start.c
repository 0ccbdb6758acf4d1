/* The checker's start and end: behind MPI_Init the ranks of each machine come to one board, the machines to each other, and if
 * that fails anywhere, nothing is checked, or without order between machines; in MPI_Finalize, behind the program's own callbacks
 * on MPI_COMM_SELF, what is left over is told and the findings of all ranks meet.  Between them oriel_check_running is true.
 * Programs call. */
#include "check/intercept/windows_table.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/options.h"
#include "check/deadlock/wait_records.h"
#include "check/intercept/callbacks.h"
#include "check/order/communicators.h"
#include "check/remote/remote.h"
#include "datatype/datatype.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What each rank of MPI_COMM_WORLD tells the others: the first rank of each machine for all of it. */
struct arrival {
    char path[120]; /* of the board */
    uint64_t made;
    struct oriel_check_remote_address address;
};

static int
    *machine_of; /* by rank of MPI_COMM_WORLD, counted from 0 in the order of their first ranks */
static int machines_count;
static bool reaches_all;
static bool threaded = true;
static int world_size;
static int world_rank;

bool oriel_start_on_this_machine(int32_t rank)
{
    return rank >= 0 && rank < world_size && machine_of[rank] == machine_of[world_rank];
}

bool oriel_start_reaches_all(void)
{
    return reaches_all;
}

bool oriel_start_is_threaded(void)
{
    return threaded;
}

/* --- machines --- */

/* Processes of one kernel that see each other's numbers share a board; never 0. */
static uint64_t machine_number(void)
{
    char text[64] = "";
    struct stat processes = {.st_ino = 0};
    uint64_t number = UINT64_C(0xcbf29ce484222325);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t len_bytes = read(fd, text, sizeof text - 1);
        close(fd);
        text[len_bytes < 0 ? 0 : len_bytes] = '\0';
    }
    if (stat("/proc/self/ns/pid", &processes) == 0)
        number ^= (uint64_t)processes.st_ino * UINT64_C(0x9e3779b97f4a7c15);
    for (const char *at = text; *at != '\0'; at++)
        number = (number ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    int node_size = oriel_options()->node_size;
    if (node_size > 0)
        number =
            (number ^ (uint64_t)(unsigned)(world_rank / node_size + 1)) * UINT64_C(0x100000001b3);
    return number | 1;
}

static bool find_machines(void)
{
    uint64_t own = machine_number();
    uint64_t *numbers = calloc((size_t)(unsigned)world_size, sizeof *numbers);
    machine_of = calloc((size_t)(unsigned)world_size, sizeof *machine_of);
    machines_count = 0;
    bool found = oriel_host_gather(MPI_COMM_WORLD, "the checker", &own, sizeof own, numbers,
                                   NULL) == ORIEL_OK &&
                 numbers != NULL && machine_of != NULL;
    for (int i = 0; i < world_size && found; i++) {
        int like = 0;
        while (numbers[like] != numbers[i])
            like++;
        machine_of[i] = like < i ? machine_of[like] : machines_count++;
    }
    free(numbers);
    return found;
}

static int first_of(int machine)
{
    int first = 0;
    while (machine_of[first] != machine)
        first++;
    return first;
}

static bool is_first_here(void)
{
    return first_of(machine_of[world_rank]) == world_rank;
}

/* --- coming together --- */

static bool keep_addresses(const struct arrival *all)
{
    struct oriel_check_remote_address *addresses =
        calloc((size_t)(unsigned)machines_count, sizeof *addresses);
    for (int i = 0; i < machines_count && addresses != NULL; i++)
        addresses[i] = all[first_of(i)].address;
    bool kept = addresses != NULL &&
                oriel_check_remote_start(machine_of, world_size, machine_of[world_rank], addresses,
                                         machines_count);
    free(addresses);
    return kept;
}

/* The machine's first rank makes the board, and serves other machines; all others of it join. */
static bool come_to_board(void)
{
    struct arrival own = {.made = 0};
    struct arrival *all = calloc((size_t)(unsigned)world_size, sizeof *all);
    if (is_first_here()) {
        own.made = oriel_shm_make(world_size, own.path, sizeof own.path) == ORIEL_OK;
        if (own.made && machines_count > 1 && !oriel_check_remote_serve(&own.address))
            oriel_warn("the checker of rank %d's machine cannot be asked by others: %s", world_rank,
                       oriel_fail_message());
    }
    bool joined =
        oriel_host_gather(MPI_COMM_WORLD, "the checker", &own, sizeof own, all, NULL) == ORIEL_OK &&
        all != NULL;
    const struct arrival *first = joined ? &all[first_of(machine_of[world_rank])] : NULL;
    joined = joined && first->made && keep_addresses(all) &&
             (is_first_here() || oriel_shm_join(first->path) == ORIEL_OK);
    free(all);
    return joined;
}

/* A child that the program forks has no MPI of its own. */
static void stop_in_child(void)
{
    oriel_check_running = false;
}

static bool watch_forks(void)
{
    static _Atomic bool watching;
    return oriel_fork_watch(&watching, NULL, NULL, stop_in_child) == ORIEL_OK;
}

static bool start_parts(bool threads)
{
    return oriel_order_start(world_rank, world_size) == ORIEL_OK &&
           oriel_sites_start() == ORIEL_OK && oriel_finding_start() == ORIEL_OK &&
           oriel_local_start(oriel_buffer_conflict, NULL, oriel_window_order_atomic) == ORIEL_OK &&
           oriel_waits_start(world_rank, world_size, threads) == ORIEL_OK &&
           oriel_type_start() == ORIEL_OK && oriel_host_alone(MPI_COMM_WORLD) == ORIEL_OK &&
           watch_forks();
}

enum { STARTED = 1, REACHES = 2 };

/* What is so on all ranks: of this process's own bits. */
static uint32_t agree(uint32_t bits)
{
    uint32_t agreed = 0;
    return oriel_host_agree(MPI_COMM_WORLD, "the checker", bits, &agreed, NULL) == ORIEL_OK ? agreed
                                                                                            : 0;
}

/* Once every rank has started: from then on servers may be asked. */
static void span_machines(void)
{
    bool reaches = !is_first_here() || machines_count == 1 || oriel_check_remote_try();
    reaches_all = (agree(reaches ? REACHES : 0) & REACHES) != 0;
    if (reaches_all && machines_count > 1)
        oriel_check_remote_span();
    if (!reaches)
        oriel_warn("rank %d does not reach the checkers of all machines (%s): the order between "
                   "machines is not looked at",
                   world_rank, oriel_fail_message());
    if (!reaches_all)
        oriel_finding_count(
            "windows over several machines: the order of accesses was not looked at");
    if (machines_count > 1 && !reaches_all)
        oriel_finding_count(
            "waits for ranks of other machines: deadlocks with them were not looked for");
}

typedef int query_fn(int *provided);

static void start(bool threads)
{
    const struct oriel_host_calls *host = oriel_host();
    if (oriel_options()->bypass || host->Comm_size(MPI_COMM_WORLD, &world_size) != MPI_SUCCESS ||
        host->Comm_rank(MPI_COMM_WORLD, &world_rank) != MPI_SUCCESS ||
        !(agree(find_machines() ? STARTED : 0) & STARTED))
        return;
    bool right = come_to_board() && start_parts(threads);
    if (!(agree(right ? STARTED : 0) & STARTED)) {
        if (!right)
            oriel_warn("rank %d cannot come to the checker's memory (%s): nothing is checked",
                       world_rank, oriel_fail_message());
        oriel_check_remote_serve_stop();
        return;
    }
    span_machines();
    int level = MPI_THREAD_MULTIPLE;
    query_fn *query = (query_fn *)oriel_host_symbol("PMPI_Query_thread");
    threaded = query == NULL || query(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
    oriel_check_several = oriel_check_several || threaded;
    oriel_check_alone = !threaded && level != MPI_THREAD_SERIALIZED;
    oriel_comm_find(MPI_COMM_WORLD); /* each machine knows it, whether or not its ranks use it */
    if (is_first_here())
        oriel_deadlock_start(machines_count == 1 || !reaches_all ? ORIEL_DEADLOCK_HERE
                             : world_rank == 0                   ? ORIEL_DEADLOCK_ALL
                                                                 : ORIEL_DEADLOCK_MARKS);
    oriel_check_running = true;
}

static void stop(const struct oriel_site *site)
{
    oriel_check_look(); /* at what callbacks have left held */
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
    oriel_check_remote_serve_stop();
    oriel_check_remote_stop();
}

static struct oriel_site finalize_site;
static bool stops_with_self;

static void stop_at_end(void)
{
    if (oriel_check_running)
        stop(&finalize_site);
}

static int stop_with_self(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    stop_at_end();
    return MPI_SUCCESS;
}

/* MPI-4.1, 11.2.4: attributes of MPI_COMM_SELF are deleted first of all at MPI_Finalize, the last one first, while MPI still works.
 * This one is older than all of the program's, whose callbacks may communicate and free windows, and younger than the library's. */
static void attach_stop(void)
{
    const struct oriel_host_calls *host = oriel_host();
    int keyval;
    if (!oriel_check_running || host->Comm_create_keyval(MPI_COMM_NULL_COPY_FN, stop_with_self,
                                                         &keyval, NULL) != MPI_SUCCESS)
        return;
    stops_with_self = host->Comm_set_attr(MPI_COMM_SELF, keyval, NULL) == MPI_SUCCESS;
    host->Comm_free_keyval(&keyval);
}

ORIEL_EXPORT int PMPI_Init(int *argc, char ***argv)
{
    int code = oriel_host()->Init(argc, argv);
    oriel_check_enter();
    if (code == MPI_SUCCESS) {
        start(false);
        attach_stop();
    }
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Init(int *argc, char ***argv) __attribute__((weak, alias("PMPI_Init")));

ORIEL_EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    oriel_waits_before();
    int code = oriel_host()->Init_thread(argc, argv, required, provided);
    oriel_check_enter();
    if (code == MPI_SUCCESS) {
        start(*provided >= MPI_THREAD_SERIALIZED);
        attach_stop();
    }
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
    if (!oriel_window_look())
        return behind();
    finalize_site = oriel_site_make(ORIEL_CALLER, ORIEL_CALL_Finalize);
    if (!stops_with_self)
        stop(&finalize_site);
#ifdef OPEN_MPI
    oriel_callback_failed_at_end = stop_at_end;
#endif
    int code = behind();
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));

ORIEL_EXPORT int PMPI_Abort(MPI_Comm comm, int errorcode)
{
    abort_fn *behind = (abort_fn *)oriel_host_symbol("PMPI_Abort");
    if (oriel_window_look())
        oriel_check_leave();
    if (oriel_check_running) /* also from where nothing is looked at: MPI allows it in reduction operators */
        oriel_finding_end_alone();
    return behind(comm, errorcode);
}
ORIEL_EXPORT int MPI_Abort(MPI_Comm comm, int errorcode) __attribute__((weak, alias("PMPI_Abort")));
