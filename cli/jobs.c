/* Finds processes by the links in /proc/<pid>/fd, as peers find each other's memory files, and
 * reads their headers, states and records. A process is identified by its pid and start time. Its
 * own file must agree with both. */
#include "cli/jobs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked_open.h"
#include "cli/cli.h"
#include "cli/trace_text.h"
#include "memory/file.h"
#include "observe/stats/record.h"

/* --- from /proc --- */

struct stat_line {
    char run;
    int32_t parent;
    uint64_t start_time;
};

static bool text_file_read(const char *path, char *text, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, room - 1);
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len > 0;
}

static bool proc_stat_read(int32_t pid, struct stat_line *out)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    const char *field = text_file_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    int parent;
    unsigned long long start_time;
    if (field == NULL ||
        sscanf(field + 1,
               " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
               &out->run, &parent, &start_time) != 3)
        return false;
    out->parent = parent;
    out->start_time = start_time;
    return true;
}

int32_t oriel_process_parent(int32_t pid)
{
    struct stat_line line;
    return proc_stat_read(pid, &line) ? line.parent : 0;
}

/* The pid in the process's own pid namespace: the last of several, in a container. */
static int32_t pid_in_own_namespace(int32_t pid)
{
    char path[64];
    char text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    const char *at = text_file_read(path, text, sizeof text) ? strstr(text, "\nNSpid:") : NULL;
    int32_t number = pid;
    for (at = at != NULL ? at + strlen("\nNSpid:") : NULL;
         at != NULL && (*at == '\t' || isdigit((unsigned char)*at));) {
        char *end;
        number = (int32_t)strtol(at, &end, 10);
        at = end > at ? end : NULL;
    }
    return number;
}

/* Launchers and shells may be between the two. */
static bool is_descendant(int32_t pid, int32_t ancestor)
{
    for (int depth = 0; pid > 1 && depth < 100; depth++) {
        if (pid == ancestor)
            return true;
        pid = oriel_process_parent(pid);
    }
    return false;
}

bool oriel_jobs_has(const struct oriel_jobs *jobs, size_t first, size_t end, int32_t pid)
{
    for (size_t i = first; i < end; i++)
        if (jobs->processes[i].pid == pid ||
            (!jobs->processes[i].has_ended && is_descendant(jobs->processes[i].pid, pid)))
            return true;
    return false;
}

/* --- discovery --- */

static bool process_is_known(const struct oriel_jobs *jobs, int32_t pid, uint64_t start_time)
{
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->processes[i].pid == pid && jobs->processes[i].start_time == start_time)
            return true;
    return false;
}

/* True when the process created the file itself: it is neither inherited nor forged. */
static bool memory_file_is_own(const struct oriel_file_header *header, int32_t pid,
                               uint64_t start_time, int number)
{
    const struct oriel_identity *owner = &header->identity;
    return header->magic == ORIEL_FILE_MAGIC && owner->start_time == start_time &&
           owner->memory_fd == number && owner->pid == pid_in_own_namespace(pid);
}

static void process_append(struct oriel_jobs *jobs, const struct oriel_process *process)
{
    struct oriel_process *grown =
        oriel_alloc_checked(realloc(jobs->processes, (jobs->count + 1) * sizeof *grown));
    grown[jobs->count++] = *process;
    jobs->processes = grown;
}

/* The link's name proves nothing: a process with its own file system can give any file that name.
 * Memory files are on a tmpfs. */
static int memory_file_open(int directory, const char *name, struct stat *out)
{
    struct statfs place;
    int seen = oriel_checked_path_open(directory, name, out);
    if (seen < 0 || (fstatfs(seen, &place) == 0 && place.f_type == TMPFS_MAGIC))
        return seen < 0 ? -1 : oriel_checked_reopen(seen, O_RDONLY | O_NONBLOCK);
    close(seen);
    return -1;
}

/* Adds the process when name is its memory file; returns false otherwise. */
static bool memory_file_try(struct oriel_jobs *jobs, int32_t pid, uint64_t start_time,
                            int directory, const char *name)
{
    static const char wanted[] = "/memfd:oriel (deleted)";
    char target[sizeof wanted + 1];
    struct oriel_file_header header;
    struct stat owner;
    ssize_t len = readlinkat(directory, name, target, sizeof target);
    if (len != sizeof wanted - 1 || memcmp(target, wanted, sizeof wanted - 1) != 0)
        return false;
    int fd = memory_file_open(directory, name, &owner);
    if (fd < 0)
        return false;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        !memory_file_is_own(&header, pid, start_time, atoi(name))) {
        close(fd);
        return false;
    }
    struct oriel_process process = {
        .pid = pid, .start_time = start_time, .fd = fd, .user = owner.st_uid, .world_rank = -1};
    if (header.version != ORIEL_FILE_VERSION)
        snprintf(process.why, sizeof process.why,
                 "it uses another version of Oriel (memory file %u, this command reads %d)",
                 (unsigned)header.version, ORIEL_FILE_VERSION);
    process_append(jobs, &process);
    return true;
}

static void process_search(struct oriel_jobs *jobs, int32_t pid)
{
    char path[64];
    struct stat_line line;
    struct stat owner;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if ((geteuid() != 0 && (stat(path, &owner) != 0 || owner.st_uid != geteuid())) ||
        !proc_stat_read(pid, &line) || process_is_known(jobs, pid, line.start_time))
        return;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *links = opendir(path);
    if (links == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(links)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]) &&
            memory_file_try(jobs, pid, line.start_time, dirfd(links), entry->d_name))
            break;
    closedir(links);
}

/* Each known process uses one descriptor. */
static void descriptor_limit_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void oriel_jobs_find(struct oriel_jobs *jobs)
{
    DIR *all = opendir("/proc");
    if (all == NULL)
        oriel_die("/proc: %s", strerror(errno));
    if (jobs->count == 0)
        descriptor_limit_raise();
    for (struct dirent *entry; (entry = readdir(all)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0]))
            process_search(jobs, (int32_t)atoi(entry->d_name));
    closedir(all);
}

/* --- reading --- */

enum { TRIES = 100, RECORDS_MOST = 64 * ORIEL_RECORDS_MOST, RECORD_FREED = 2 /* record.h */ };

/* The kernel's loads for one call are not ordered with those of another by the calls alone. */
static bool state_sequence_read(int fd, uint32_t *out)
{
    const off_t at = (off_t)(ORIEL_FILE_STATE_OFFSET + offsetof(struct oriel_state, changed));
    atomic_thread_fence(memory_order_acquire);
    const bool is_read = pread(fd, out, sizeof *out, at) == (ssize_t)sizeof *out;
    atomic_thread_fence(memory_order_acquire);
    return is_read;
}

/* Reads a consistent copy of the state page; false while the process keeps changing it. */
static bool state_read(int fd, struct oriel_state *out)
{
    for (int i = 0; i < TRIES; i++) {
        uint32_t before, after;
        if (!state_sequence_read(fd, &before) ||
            pread(fd, out, sizeof *out, (off_t)ORIEL_FILE_STATE_OFFSET) != (ssize_t)sizeof *out ||
            !state_sequence_read(fd, &after))
            return false;
        if (before % 2 == 0 && before == after)
            return true;
    }
    return false;
}

static void wait_copy(const struct oriel_state *state, struct oriel_wait_seen *out)
{
    *out = (struct oriel_wait_seen){.what = state->waiting < ORIEL_WAITING_COUNT
                                                ? (enum oriel_waiting)state->waiting
                                                : ORIEL_WAITING_NOTHING,
                                    .rank = state->rank,
                                    .world_rank = state->world_rank_waited,
                                    .window_id = state->window_id,
                                    .turn = state->turn,
                                    .since_ns = state->since_ns,
                                    .looked_ns = state->looked_ns,
                                    .others = state->others};
    for (size_t i = 0; i < sizeof out->ranks / sizeof out->ranks[0]; i++)
        out->ranks[i] = state->ranks[i];
    for (size_t i = 0; i < sizeof out->window_name; i++)
        out->window_name[i] = state->window_name[i];
    oriel_trace_text_clean(out->window_name, sizeof out->window_name);
    for (size_t i = 0; i < sizeof state->place / sizeof state->place[0]; i++) {
        uint64_t word = state->place[i];
        memcpy((char *)&out->place + i * sizeof word, &word, sizeof word);
    }
}

static void record_copy(const struct oriel_window_record *record, uint64_t offset,
                        struct oriel_record_seen *out)
{
    *out = (struct oriel_record_seen){.offset = offset,
                                      .window_id = record->window_id,
                                      .flavour = record->flavour,
                                      .is_freed = record->state == RECORD_FREED};
    memcpy(out->name, record->name, sizeof out->name);
    oriel_trace_text_clean(out->name, sizeof out->name);
    for (int i = 0; i < ORIEL_COUNTED_PATHS; i++) {
        out->operations += record->paths[i].count;
        out->bytes += record->paths[i].bytes;
    }
}

/* Reads the records of all windows so far, at most one per window and thread. The limit ends a
 * damaged chain. Returns their number. */
static size_t records_copy(int fd, uint64_t newest, struct oriel_record_seen **out)
{
    size_t count = 0;
    struct oriel_window_record record;
    struct oriel_record_seen *list = NULL;
    for (; newest != 0 && newest <= INT64_MAX && count < RECORDS_MOST; newest = record.next) {
        if (pread(fd, &record, sizeof record, (off_t)newest) != (ssize_t)sizeof record)
            break;
        if ((count & (count - 1)) == 0) /* room for 1, 2, 4 ... */
            list = oriel_alloc_checked(realloc(list, (count == 0 ? 1 : 2 * count) * sizeof *list));
        record_copy(&record, newest, &list[count++]);
    }
    *out = list;
    return count;
}

/* New records precede those that were read before, which stay in their order. */
static void record_rates_set(const struct oriel_process *process, struct oriel_record_seen *records,
                             size_t count, double seconds)
{
    size_t more = count - process->records_count;
    for (size_t i = 0; count >= process->records_count && i < process->records_count; i++) {
        const struct oriel_record_seen *before = &process->records[i];
        struct oriel_record_seen *now = &records[more + i];
        if (now->offset != before->offset || now->operations < before->operations ||
            now->bytes < before->bytes)
            continue;
        now->operations_rate = (double)(now->operations - before->operations) / seconds;
        now->bytes_rate = (double)(now->bytes - before->bytes) / seconds;
    }
}

static void records_sum(struct oriel_process *process, uint64_t newest)
{
    uint64_t operations = 0, bytes = 0;
    uint64_t before_ns = process->read_ns;
    struct oriel_record_seen *records;
    size_t count = records_copy(process->fd, newest, &records);
    for (size_t i = 0; i < count; i++) {
        operations += records[i].operations;
        bytes += records[i].bytes;
    }
    process->read_ns = oriel_now_ns();
    double seconds = (double)(process->read_ns - before_ns) / 1e9;
    bool two = before_ns != 0 && seconds > 0 && operations >= process->operations &&
               bytes >= process->bytes;
    process->operations_rate = two ? (double)(operations - process->operations) / seconds : -1;
    process->bytes_rate = two ? (double)(bytes - process->bytes) / seconds : -1;
    process->operations = operations;
    process->bytes = bytes;
    if (two)
        record_rates_set(process, records, count, seconds);
    free(process->records);
    process->records = records;
    process->records_count = count;
}

static void state_copy(struct oriel_process *process, const struct oriel_state *state)
{
    process->has_state = true;
    process->job = state->job;
    process->world_rank = state->world_rank;
    process->world_size = state->world_size;
    memcpy(process->program, state->program, sizeof process->program);
    memcpy(process->host, state->host, sizeof process->host);
    memcpy(process->host_version, state->host_version, sizeof process->host_version);
    oriel_trace_text_clean(process->program, sizeof process->program);
    oriel_trace_text_clean(process->host, sizeof process->host);
    oriel_trace_text_clean(process->host_version, sizeof process->host_version);
    wait_copy(state, &process->wait);
    process->counts = state->records != 0;
    if (process->counts)
        records_sum(process, state->records);
}

static void process_update(struct oriel_process *process)
{
    struct stat_line line;
    struct oriel_file_header header;
    struct oriel_state state;
    if (process->has_ended)
        return;
    process->wait.what = ORIEL_WAITING_NOTHING;
    process->has_ended = !proc_stat_read(process->pid, &line) ||
                         line.start_time != process->start_time || line.run == 'Z';
    if (process->has_ended || process->why[0] != '\0')
        return;
    process->run = line.run;
    if (pread(process->fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        !state_read(process->fd, &state))
        return;
    process->has_left = header.state == ORIEL_FILE_FINALISED;
    if (state.magic != ORIEL_STATE_MAGIC)
        return;
    if (state.version == ORIEL_STATE_VERSION)
        state_copy(process, &state);
    else
        snprintf(process->why, sizeof process->why,
                 "it uses another version of Oriel (state %u, this command reads %d)",
                 (unsigned)state.version, ORIEL_STATE_VERSION);
}

static int compare_processes(const void *a, const void *b)
{
    const struct oriel_process *left = a, *right = b;
    if (left->job != right->job)
        return left->job < right->job ? -1 : 1;
    if (left->user != right->user)
        return left->user < right->user ? -1 : 1;
    if (left->world_rank != right->world_rank)
        return left->world_rank < right->world_rank ? -1 : 1;
    return (left->pid > right->pid) - (left->pid < right->pid);
}

void oriel_jobs_read(struct oriel_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        process_update(&jobs->processes[i]);
    if (jobs->count > 0)
        qsort(jobs->processes, jobs->count, sizeof *jobs->processes, compare_processes);
}

size_t oriel_jobs_end(const struct oriel_jobs *jobs, size_t first)
{
    size_t end = first;
    while (end < jobs->count && jobs->processes[end].job == jobs->processes[first].job &&
           jobs->processes[end].user == jobs->processes[first].user)
        end++;
    return end;
}

static bool job_has_ended(const struct oriel_jobs *jobs, size_t first, size_t end)
{
    for (size_t i = first; i < end; i++)
        if (!jobs->processes[i].has_ended)
            return false;
    return true;
}

static void process_close(struct oriel_process *process)
{
    close(process->fd);
    free(process->records);
}

void oriel_jobs_remove_ended(struct oriel_jobs *jobs)
{
    size_t kept = 0;
    for (size_t first = 0, end; first < jobs->count; first = end) {
        end = oriel_jobs_end(jobs, first);
        bool over = job_has_ended(jobs, first, end);
        for (size_t i = first; i < end; i++)
            if (over)
                process_close(&jobs->processes[i]);
            else
                jobs->processes[kept++] = jobs->processes[i];
    }
    jobs->count = kept;
}

void oriel_jobs_close(struct oriel_jobs *jobs)
{
    for (size_t i = 0; i < jobs->count; i++)
        process_close(&jobs->processes[i]);
    free(jobs->processes);
    *jobs = (struct oriel_jobs){.count = 0};
}
