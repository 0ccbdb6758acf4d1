/* Starts and ends observation: the options that request it, the replacement of table entries, and
 * the output at the end. Not thread-safe, since MPI starts and ends once. */
#include "observe/stats/observed_call.h"
#include "observe/stats/pause.h"
#include "observe/stats/program_region.h"
#include "observe/stats/site_places.h"

#include "base/log.h"
#include "base/options.h"
#include "host/host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct oriel_api oriel_observe_before;
bool oriel_observe_threads = true;
_Atomic bool oriel_observe_began_late;

bool oriel_observe_gathers;

static char statistics_file[PATH_MAX]; /* "": standard error */
static uint64_t begin_ns;              /* of observation */

/* --- ORIEL_STATS --- */

/* Makes the path absolute, since the program may change its folder. */
static bool find_path(const char *name, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    bool whole = name[0] == '/';
    if (!whole && getcwd(folder, sizeof folder) == NULL)
        return false;
    return snprintf(out, PATH_MAX, "%s%s%s", whole ? "" : folder, whole ? "" : "/", name) <
           PATH_MAX;
}

/* Checks by opening the file. A file that did not exist is removed again, since the job may never
 * write it. An existing file is truncated, so an earlier job's output is not mistaken for this
 * one's. A pipe is not opened: its reader would see the close as the end of its input. */
static bool can_write(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        return access(path, W_OK) == 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool is_new = fd >= 0;
    if (!is_new && errno == EEXIST)
        /* cppcheck-suppress resourceLeak; the first call opened none */
        fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_fine =
        is_new || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || ftruncate(fd, 0) == 0;
    close(fd);
    if (is_new)
        unlink(path);
    return is_fine;
}

bool oriel_observe_is_spawned(void)
{
    MPI_Comm parent = MPI_COMM_NULL;
    return oriel_host()->Comm_get_parent(&parent) == MPI_SUCCESS && parent != MPI_COMM_NULL;
}

static void read_statistics(const char *value, bool is_rank_0)
{
    size_t len = value == NULL ? 0 : strlen(value);
    oriel_observe_gathers = len > 0 && strcmp(value, "0") != 0;
    if (!oriel_observe_gathers || strcmp(value, "1") == 0)
        return;
    if (len <= 5 || strcmp(value + len - 5, ".json") != 0) {
        oriel_observe_gathers = false;
        if (is_rank_0)
            oriel_warn_job(
                "ORIEL_STATS=%s is neither 1 nor the name of a .json file: nothing is counted "
                "[O20]",
                value);
    } else if (is_rank_0 && !oriel_observe_is_spawned() &&
               (!find_path(value, statistics_file) || !can_write(statistics_file))) {
        oriel_warn_job("ORIEL_STATS: %s cannot be written: %s: the table will be printed [O20]",
                       value, strerror(errno));
        statistics_file[0] = '\0';
    }
}

/* --- start and end --- */

static int observe_stop(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    (void)extra;
    uint64_t end_ns = oriel_now_ns();
    oriel_program_regions_stop();
    oriel_observation_stop();
    if (oriel_tracing)
        oriel_site_places_resolve();
    oriel_trace_stop(end_ns);
    if (oriel_observe_gathers)
        oriel_statistics_write(statistics_file, end_ns - begin_ns);
    return MPI_SUCCESS;
}

static bool attach_observe_stop(void)
{
    const struct oriel_host_calls *host = oriel_host();
    int keyval;
    if (host->Comm_create_keyval(MPI_COMM_NULL_COPY_FN, observe_stop, &keyval, NULL) != MPI_SUCCESS)
        return false;
    bool is_attached = host->Comm_set_attr(MPI_COMM_SELF, keyval, NULL) == MPI_SUCCESS;
    host->Comm_free_keyval(&keyval);
    return is_attached;
}

/* --- the entries --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_prepared;
static bool is_observing;

static void prepare_locked(const struct oriel_api *table)
{
    if (!is_prepared)
        oriel_observe_before = *table;
    is_prepared = true;
}

void oriel_observe_prepare(const struct oriel_api *table)
{
    pthread_mutex_lock(&mutex);
    prepare_locked(table);
    pthread_mutex_unlock(&mutex);
}

static void entries_replace(struct oriel_api *table, bool is_late)
{
    pthread_mutex_lock(&mutex);
    prepare_locked(table);
    if (!is_observing) {
        is_observing = true;
        oriel_waiting_start();
        oriel_observed_call_start();
        atomic_store_explicit(&oriel_observe_began_late, is_late, memory_order_relaxed);
        oriel_observe_operations(table);
        oriel_observe_synchronisation(table);
        oriel_observe_requests(table);
        oriel_observe_creation(table);
        oriel_observe_levels(table);
    }
    pthread_mutex_unlock(&mutex);
}

void oriel_observe_count(struct oriel_api *table)
{
    entries_replace(table, true);
}

void oriel_observe_start(struct oriel_api *table)
{
    oriel_observe_prepare(table);
    const struct oriel_options *options = oriel_options();
    int rank = 0;
    int ranks = 1;
    oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank);
    oriel_host()->Comm_size(MPI_COMM_WORLD, &ranks);
    read_statistics(options->stats, rank == 0);
    if ((!oriel_observe_gathers && !options->watch && options->trace == NULL) ||
        !attach_observe_stop())
        return;
    begin_ns = oriel_now_ns();
    oriel_trace_start(rank, ranks);
    if (!oriel_observe_gathers && !options->watch && !oriel_tracing)
        return;
    oriel_observe_threads = oriel_host_has_threads();
    oriel_program_regions_start();
    entries_replace(table, false);
}
