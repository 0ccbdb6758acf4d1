/* The trace of this process from MPI_Init to MPI_Finalize: the file, the run it belongs to, the
 * writer. On any failure here, the program continues untraced. */
#include "observe/trace/trace.h"

#include "base/log.h"
#include "base/options.h"
#include "base/wait.h"
#include "host/host.h"
#include "observe/observe.h"
#include "observe/stats/observed_window.h"
#include "observe/trace/trace_clocks.h"
#include "observe/trace/trace_file.h"
#include "observe/trace/trace_write.h"
#include "oriel/oriel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LEAST_BYTES = 4096 }; /* of a file with any content */

static char path[PATH_MAX]; /* also used by the writer, so not from malloc (trace_ring.c) */
static struct oriel_trace_header header;
static struct oriel_trace_host host;
static struct oriel_trace_selection selection;
static struct oriel_trace_clock first_clock;
static struct oriel_trace_clock last_clock;
static pid_t taking_part; /* this process's pid; a forked child is not traced */

/* The command line, with spaces between its words. */
static void find_program(char *out, size_t room)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, out, room - 1) : 0;
    if (fd >= 0)
        close(fd);
    while (got > 0 && out[got - 1] == '\0')
        got--;
    for (ssize_t i = 0; i < got; i++)
        if (out[i] == '\0')
            out[i] = ' ';
}

static void fill_header(int32_t world_rank, int32_t world_size, const struct oriel_trace_run *run)
{
    struct timespec real;
    header = (struct oriel_trace_header){
        .magic = ORIEL_TRACE_MAGIC,
        .version = ORIEL_TRACE_VERSION,
        .header_bytes = sizeof header,
        .event_bytes = sizeof(struct oriel_trace_event),
        .world_rank = world_rank,
        .world_size = world_size,
        .pid = (int32_t)getpid(),
        .job = {run->job[0], run->job[1]},
        .node = {run->node[0], run->node[1]},
        .begin_ns = oriel_now_ns(),
    };
    clock_gettime(CLOCK_REALTIME, &real);
    header.begin_real_ns = (uint64_t)real.tv_sec * UINT64_C(1000000000) + (uint64_t)real.tv_nsec;
    (void)gethostname(header.machine_name, sizeof header.machine_name - 1);
    snprintf(header.host, sizeof header.host, "%s", oriel_host_name());
    snprintf(header.oriel, sizeof header.oriel, "%s", ORIEL_VERSION);
    find_program(header.program, sizeof header.program);
}

/* Removes the files of an earlier run with more ranks, which no rank of this run writes. Other
 * files stay. */
static void clear_folder(const char *folder, int32_t world_size)
{
    DIR *listing = opendir(folder);
    if (listing == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        int rank = -1;
        int end = 0;
        (void)sscanf(entry->d_name, "rank-%d.oriel%n", &rank, &end);
        bool is_other =
            rank >= world_size && end > 0 && entry->d_name[end] == '\0' &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path;
        if (is_other && oriel_trace_file_is_trace(path))
            (void)unlink(path);
    }
    closedir(listing);
}

/* NULL, or why this rank cannot be traced. */
static const char *open_file(const char *folder, int32_t world_rank, int32_t world_size)
{
    if (oriel_options()->trace_limit_bytes < LEAST_BYTES)
        return "ORIEL_TRACE_LIMIT is less than 4K";
    if (world_rank == 0)
        clear_folder(folder, world_size);
    if (snprintf(path, sizeof path, "%s/rank-%d.oriel", folder, (int)world_rank) >=
        (int)sizeof path)
        return strerrordesc_np(ENAMETOOLONG);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return strerrordesc_np(errno);
    return oriel_trace_writer_open(path, oriel_options()->trace_limit_bytes);
}

void oriel_trace_start(int32_t world_rank, int32_t world_size)
{
    const char *folder = oriel_options()->trace;
    struct oriel_trace_run run;
    if (folder == NULL || folder[0] == '\0')
        return;
    if (oriel_observe_is_spawned()) {
        if (world_rank == 0)
            oriel_warn_job("ORIEL_TRACE: spawned processes are not traced");
        return;
    }
    oriel_traced_start(world_rank);
    const char *refusal = open_file(folder, world_rank, world_size);
    oriel_trace_clocks_begin(world_rank, world_size, refusal, &run);
    taking_part = getpid();
    if (refusal != NULL)
        return;
    fill_header(world_rank, world_size, &run);
    first_clock = run.clock;
    oriel_traced_selection(&selection);
    bool is_selected = selection.sample > 1 || selection.filter[0] != '\0';
    oriel_host_version(host.version, sizeof host.version);
    (void)oriel_trace_writer_begin(&header, &host, is_selected ? &selection : NULL,
                                   run.is_aligned ? &first_clock : NULL);
}

/* An untraced rank may still have to answer for its node's clock. */
void oriel_trace_stop(uint64_t end_ns)
{
    bool was_tracing = oriel_tracing;
    oriel_tracing = false;
    if (taking_part == 0 || taking_part != getpid())
        return;
    bool is_known = oriel_trace_clocks_end(&last_clock);
    if (was_tracing)
        oriel_trace_writer_end(is_known ? &last_clock : NULL, end_ns);
}
