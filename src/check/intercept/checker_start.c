/* Start and end of the checker. After MPI_Init the ranks of each node map one shared memory, and
 * the nodes connect to each other. If that fails anywhere, nothing is checked, or order between
 * nodes is not. In MPI_Finalize, after the program's own callbacks on MPI_COMM_SELF, unfreed
 * windows are reported and the findings of all ranks are merged. In between, oriel_check_running is
 * true. */
#include "check/window/window_steps.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/options.h"
#include "check/deadlock/wait_records.h"
#include "check/intercept/callbacks.h"
#include "check/intercept/communicators.h"
#include "check/order/thread_order.h"
#include "check/remote/remote.h"
#include "datatype/datatype.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What each rank of MPI_COMM_WORLD sends to the others. The first rank of each node speaks for all
 * of the node. */
struct start_message {
    char path[120]; /* of the shared memory */
    uint64_t made;
    struct oriel_check_remote_address address;
};

/* by rank of MPI_COMM_WORLD; nodes are numbered from 0 in the order of their first ranks */
static int *node_of;
static int nodes_count;
static bool reaches_all;
static bool is_threaded = true;
static int world_size;
static int world_rank;

bool oriel_start_reaches_all_nodes(void)
{
    return reaches_all;
}

bool oriel_start_is_threaded(void)
{
    return is_threaded;
}

/* --- nodes --- */

/* Processes of one kernel that see each other's process ids share memory; never 0. */
static uint64_t node_number(void)
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

static bool nodes_find(void)
{
    uint64_t own = node_number();
    uint64_t *numbers = calloc((size_t)(unsigned)world_size, sizeof *numbers);
    node_of = calloc((size_t)(unsigned)world_size, sizeof *node_of);
    nodes_count = 0;
    bool found = oriel_host_allgather(MPI_COMM_WORLD, "the checker", &own, sizeof own, numbers,
                                      NULL) == ORIEL_OK &&
                 numbers != NULL && node_of != NULL;
    for (int i = 0; i < world_size && found; i++) {
        int like = 0;
        while (numbers[like] != numbers[i])
            like++;
        node_of[i] = like < i ? node_of[like] : nodes_count++;
    }
    free(numbers);
    return found;
}

static int node_first_rank(int node)
{
    int first = 0;
    while (node_of[first] != node)
        first++;
    return first;
}

static bool is_first_of_node(void)
{
    return node_first_rank(node_of[world_rank]) == world_rank;
}

/* --- meeting --- */

static bool addresses_store(const struct start_message *all)
{
    struct oriel_check_remote_address *addresses =
        calloc((size_t)(unsigned)nodes_count, sizeof *addresses);
    for (int i = 0; i < nodes_count && addresses != NULL; i++)
        addresses[i] = all[node_first_rank(i)].address;
    bool kept =
        addresses != NULL &&
        oriel_check_remote_start(node_of, world_size, node_of[world_rank], addresses, nodes_count);
    free(addresses);
    return kept;
}

/* The node's first rank creates the shared memory and serves other nodes; the node's other ranks
 * join. */
static bool shm_make_or_join(void)
{
    struct start_message own = {.made = 0};
    struct start_message *all = calloc((size_t)(unsigned)world_size, sizeof *all);
    if (is_first_of_node()) {
        own.made = oriel_shm_make(world_size, own.path, sizeof own.path) == ORIEL_OK;
        if (own.made && nodes_count > 1 && !oriel_check_remote_serve(&own.address))
            oriel_warn("other nodes cannot reach the checker of this rank's node: %s [O25]",
                       oriel_fail_message());
    }
    bool joined = oriel_host_allgather(MPI_COMM_WORLD, "the checker", &own, sizeof own, all,
                                       NULL) == ORIEL_OK &&
                  all != NULL;
    const struct start_message *first = joined ? &all[node_first_rank(node_of[world_rank])] : NULL;
    joined = joined && first->made && addresses_store(all) &&
             (is_first_of_node() || oriel_shm_join(first->path) == ORIEL_OK);
    free(all);
    return joined;
}

/* A forked child has no MPI of its own. */
static void stop_in_child(void)
{
    oriel_check_running = oriel_check_left = false;
}

static bool watch_forks(void)
{
    static _Atomic bool watching;
    return oriel_fork_register(&watching, NULL, NULL, stop_in_child) == ORIEL_OK;
}

static bool checker_parts_start(bool threads)
{
    return oriel_order_start(world_rank, world_size) == ORIEL_OK &&
           oriel_call_sites_start() == ORIEL_OK && oriel_finding_start() == ORIEL_OK &&
           oriel_local_start(oriel_buffer_conflict, NULL, oriel_window_order_atomic) == ORIEL_OK &&
           oriel_wait_records_start(world_rank, world_size, threads) == ORIEL_OK &&
           oriel_type_start() == ORIEL_OK &&
           oriel_host_singleton_create(MPI_COMM_WORLD) == ORIEL_OK && watch_forks();
}

enum { STARTED = 1, REACHES = 2, THREADS = 4 };

/* The bits that are set on all ranks. */
static uint32_t bits_agree(uint32_t bits)
{
    uint32_t agreed = 0;
    return oriel_host_agree(MPI_COMM_WORLD, "the checker", bits, &agreed, NULL) == ORIEL_OK ? agreed
                                                                                            : 0;
}

/* Called once every rank has started. Servers may be asked from then on. */
static void nodes_connect(void)
{
    bool reaches = !is_first_of_node() || nodes_count == 1 || oriel_check_remote_try();
    reaches_all = (bits_agree(reaches ? REACHES : 0) & REACHES) != 0;
    if (reaches_all && nodes_count > 1)
        oriel_check_remote_connect_all();
    if (!reaches)
        oriel_warn("this rank does not reach the checkers of all nodes (%s): order between nodes "
                   "is not checked [O25]",
                   oriel_fail_message());
    if (!reaches_all)
        oriel_finding_count("windows over several nodes: the order of accesses was not checked");
    if (nodes_count > 1 && !reaches_all)
        oriel_finding_count(
            "waits for ranks of other nodes: deadlocks with them were not detected");
}

__attribute__((constructor)) static void complaints_leave(void)
{
    oriel_options_leave_complaints();
}

typedef int query_fn(int *provided);

static int thread_level(void)
{
    int level = MPI_THREAD_MULTIPLE;
    query_fn *query = (query_fn *)oriel_host_symbol("PMPI_Query_thread");
    return query == NULL || query(&level) != MPI_SUCCESS ? MPI_THREAD_MULTIPLE : level;
}

/* Whether all that orders this rank's threads is seen: the program is instrumented, and has no
 * library that orders threads in its own way (OpenMP by LLVM or Intel, TBB). */
static bool threads_are_seen(int level)
{
    static const char *const unseen[] = {"__kmpc_fork_call", "TBB_runtime_interface_version"};
    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++)
        if (dlsym(RTLD_DEFAULT, unseen[i]) != NULL)
            return false;
    return oriel_check_watches && level != MPI_THREAD_SINGLE;
}

static void checker_start(bool threads)
{
    const struct oriel_host_calls *host = oriel_host();
    int level = thread_level();
    if (oriel_options()->bypass || host->Comm_size(MPI_COMM_WORLD, &world_size) != MPI_SUCCESS ||
        host->Comm_rank(MPI_COMM_WORLD, &world_rank) != MPI_SUCCESS)
        return;
    uint32_t agreed =
        bits_agree((nodes_find() ? STARTED : 0) | (threads_are_seen(level) ? THREADS : 0));
    if (!(agreed & STARTED))
        return;
    if (agreed & THREADS)
        oriel_threads_track();
    bool right = shm_make_or_join() && checker_parts_start(threads);
    if (!(bits_agree(right ? STARTED : 0) & STARTED)) {
        if (!right)
            oriel_warn("this rank cannot use the checker's shared memory (%s): nothing is checked "
                       "[O26]",
                       oriel_fail_message());
        oriel_check_remote_serve_stop();
        return;
    }
    nodes_connect();
    is_threaded = level == MPI_THREAD_MULTIPLE;
    oriel_check_one_thread = !is_threaded && level != MPI_THREAD_SERIALIZED;
    /* threads that take turns in MPI free and copy memory at any time */
    oriel_check_many_threads =
        oriel_check_many_threads || !oriel_check_one_thread || oriel_clock_shift != 0;
    /* so that each node knows it, whether or not its ranks use it */
    oriel_comm_find(MPI_COMM_WORLD);
    if (is_first_of_node())
        oriel_deadlock_start(nodes_count == 1 || !reaches_all ? ORIEL_DEADLOCK_HERE
                             : world_rank == 0                ? ORIEL_DEADLOCK_ALL
                                                              : ORIEL_DEADLOCK_MARKS);
    oriel_threads_start();
    oriel_check_running = true;
}

static void checker_stop(const struct oriel_site *site)
{
    if (!oriel_check_left) { /* else the state of windows and waits is not known */
        oriel_check_look();  /* at what callbacks have left pending */
        oriel_windows_finalise(site);
        oriel_wait_records_finish(site);
    }
    oriel_finding_end();
    oriel_deadlock_stop();
    oriel_wait_records_stop();
    oriel_check_running = oriel_check_left = false;
    oriel_comm_stop();
    oriel_type_stop();
    oriel_host_carrier_stop();
    oriel_local_stop();
    oriel_threads_stop();
    oriel_order_stop();
    oriel_check_remote_serve_stop();
    oriel_check_remote_stop();
}

static struct oriel_site finalize_site;
static bool stops_with_self;

static void stop_at_end(void)
{
    if (oriel_check_running || oriel_check_left)
        checker_stop(&finalize_site);
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

/* MPI-4.1, 11.2.4: MPI_Finalize first deletes the attributes of MPI_COMM_SELF, the last one first,
 * while MPI still works. This one is older than all of the program's, whose callbacks may
 * communicate and free windows, and younger than the library's. */
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
        checker_start(false);
        attach_stop();
    }
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Init(int *argc, char ***argv) __attribute__((weak, alias("PMPI_Init")));

ORIEL_EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    oriel_wait_records_before_init();
    int code = oriel_host()->Init_thread(argc, argv, required, provided);
    oriel_check_enter();
    if (code == MPI_SUCCESS) {
        checker_start(*provided >= MPI_THREAD_SERIALIZED);
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
    finalize_fn *next = (finalize_fn *)oriel_host_symbol("PMPI_Finalize");
    if (!oriel_window_look()) {
        if (oriel_check_left && !stops_with_self)
            checker_stop(&finalize_site);
        return next();
    }
    finalize_site = oriel_site_make(ORIEL_CALLER, ORIEL_CALL_Finalize);
    if (!stops_with_self)
        checker_stop(&finalize_site);
    oriel_callback_failed_at_end = stop_at_end;
    int code = next();
    oriel_check_leave();
    return code;
}
ORIEL_EXPORT int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));

ORIEL_EXPORT int PMPI_Abort(MPI_Comm comm, int errorcode)
{
    abort_fn *next = (abort_fn *)oriel_host_symbol("PMPI_Abort");
    if (oriel_window_look())
        oriel_check_leave();
    if (oriel_check_running ||
        oriel_check_left) /* also in unchecked calls: MPI allows it in reduction operators */
        oriel_finding_end_alone();
    return next(comm, errorcode);
}
ORIEL_EXPORT int MPI_Abort(MPI_Comm comm, int errorcode) __attribute__((weak, alias("PMPI_Abort")));
