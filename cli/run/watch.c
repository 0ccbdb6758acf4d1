/* The watcher: once a second it reads the state of this node's ranks, as `oriel top` does, and
 * shows one line.
 *
 * Rank 0's `oriel run` starts it before that process becomes the program, through an intermediate
 * child and in a session of its own. The program therefore has no unexpected child, and signals to
 * the job's process group do not reach the watcher. It ends when the process that became the
 * program ends, which its pidfd reports at once. It closes all descriptors of the launcher, except
 * standard error when the line goes there: a launcher waits until those of its ranks are closed. */
#include "cli/run/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/job.h"
#include "cli/cli.h"
#include "cli/run/watch_line.h"
#include "cli/top/top.h"

enum { REFRESH_MS = 1000, LINE_INTERVAL_MAX_S = 60, SEARCH_READINGS = 10 };

static const uint64_t second_ns = UINT64_C(1000000000);

/* --- the line --- */

static bool waits_equal(const struct oriel_waits *waits, size_t a, size_t b, int32_t *ranks)
{
    const struct oriel_wait_seen *one = &waits->processes[a].wait,
                                 *other = &waits->processes[b].wait;
    int32_t *theirs = ranks + ORIEL_STATE_RANKS;
    if (one->what != other->what || one->window_id != other->window_id ||
        one->world_rank != other->world_rank)
        return false;
    size_t count = oriel_waits_for(waits, a, ranks);
    return oriel_waits_for(waits, b, theirs) == count &&
           memcmp(ranks, theirs, count * sizeof *ranks) == 0;
}

/* The index of the rank that has waited longest; waits->count if none has waited for a second. */
static size_t longest_wait_find(const struct oriel_waits *waits)
{
    size_t longest = waits->count;
    for (size_t i = 0; i < waits->count; i++) {
        const struct oriel_wait_seen *wait = &waits->processes[i].wait;
        if (wait->what != ORIEL_WAITING_NOTHING && wait->since_ns + second_ns < waits->now_ns &&
            (longest == waits->count || wait->since_ns < waits->processes[longest].wait.since_ns))
            longest = i;
    }
    return longest;
}

/* Prints the rank that has waited longest, and all ranks in the same wait. */
static void longest_wait_print(const struct oriel_waits *waits, const char *before, bool is_short,
                               FILE *out)
{
    int32_t *ranks = oriel_alloc(3 * ORIEL_STATE_RANKS * sizeof *ranks);
    int32_t *alike = ranks + 2 * (size_t)ORIEL_STATE_RANKS;
    size_t longest = longest_wait_find(waits), count = 0;
    for (size_t i = 0; longest < waits->count && i < waits->count && count < ORIEL_STATE_RANKS; i++)
        if (waits_equal(waits, longest, i, ranks))
            alike[count++] = waits->processes[i].world_rank;
    if (count > 0) {
        fputs(before, out);
        oriel_ranks_print(alike, count, out);
        fputs(" in ", out);
        oriel_waits_print_wait(waits, longest, is_short, out);
    }
    free(ranks);
}

struct rings {
    FILE *out;
    const char *before;
    size_t count;
};

static void deadlock_print(const int32_t *ranks, size_t count, void *context)
{
    struct rings *rings = context;
    fputs(rings->count++ == 0 ? rings->before : ", ", rings->out);
    for (size_t i = 0; i < count; i++)
        fprintf(rings->out, "%d -> ", (int)ranks[i]);
    fprintf(rings->out, "%d", (int)ranks[0]);
}

/* Returns the line, and whether there is a deadlock. The short one has only what waits, so that the
 * window and the ranks waited for are not cut off. */
static char *line_compose(struct oriel_waits *waits, bool is_short, bool *is_deadlock)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = oriel_alloc_checked(open_memstream(&text, &len));
    struct rings rings = {.out = out, .before = is_short ? "deadlock: " : ", deadlock: "};
    fputs("oriel: ", out);
    if (waits->count == 0) {
        fputs("no window yet", out);
    } else {
        if (!is_short)
            oriel_top_title(waits, out);
        /* First, because lines are cut at the terminal's width. */
        oriel_waits_rings(waits, deadlock_print, &rings);
        longest_wait_print(waits, rings.count > 0 ? "; " : is_short ? "" : ": ", is_short, out);
    }
    fclose(out);
    *is_deadlock = rings.count > 0;
    return text;
}

/* --- the watcher --- */

struct watcher {
    int32_t pid; /* of the process that becomes the program */
    int ended;   /* pidfd of that process, readable when it has ended */
    bool on_terminal;
    struct oriel_jobs jobs;
    struct oriel_waits waits;
    unsigned readings;        /* number of readings so far */
    unsigned next_s, every_s; /* for lines on standard error */
    bool was_deadlock;
};

static volatile sig_atomic_t stop_requested;

static void stop_request(int number)
{
    (void)number;
    stop_requested = 1;
}

/* Reads the job's processes on this node. New processes are searched for in each of the first
 * SEARCH_READINGS readings, and then in every SEARCH_READINGS-th. */
static void job_read(struct watcher *watcher)
{
    size_t first = 0, end = 0;
    if (watcher->readings++ < SEARCH_READINGS || watcher->readings % SEARCH_READINGS == 0)
        oriel_jobs_find(&watcher->jobs);
    oriel_jobs_read(&watcher->jobs);
    for (bool found = false; end < watcher->jobs.count && !found;) {
        first = end;
        end = oriel_jobs_end(&watcher->jobs, first);
        found = watcher->jobs.processes[first].has_state &&
                oriel_jobs_has(&watcher->jobs, first, end, watcher->pid);
        if (!found)
            first = end;
    }
    oriel_waits_open(&watcher->waits,
                     watcher->jobs.processes + (watcher->jobs.count > 0 ? first : 0), end - first);
}

/* Returns false when the line can no longer be shown. */
static bool line_show(struct watcher *watcher, unsigned now_s)
{
    bool is_deadlock;
    char *text = line_compose(&watcher->waits, false, &is_deadlock);
    bool shown = true;
    if (watcher->on_terminal) {
        int columns = oriel_line_columns();
        if (columns > 0 && strlen(text) > (size_t)columns &&
            longest_wait_find(&watcher->waits) < watcher->waits.count) {
            free(text);
            text = line_compose(&watcher->waits, true, &is_deadlock);
        }
        shown = oriel_line_show(text);
    } else if (now_s >= watcher->next_s || (is_deadlock && !watcher->was_deadlock)) {
        size_t len = strlen(text);
        text[len] = '\n'; /* Replaces the terminating NUL, which write does not need. */
        shown = write(STDERR_FILENO, text, len + 1) >= 0;
        watcher->every_s =
            watcher->every_s * 2 < LINE_INTERVAL_MAX_S ? watcher->every_s * 2 : LINE_INTERVAL_MAX_S;
        watcher->next_s = now_s + watcher->every_s;
    }
    watcher->was_deadlock = is_deadlock;
    free(text);
    return shown;
}

static void standard_streams_set(const struct watcher *watcher)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    if (watcher->on_terminal)
        dup2(nothing, STDERR_FILENO);
    close(nothing);
}

static _Noreturn void watcher_run(struct watcher *watcher)
{
    struct sigaction action = {.sa_handler = stop_request};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    prctl(PR_SET_NAME, "oriel-watch");
    struct pollfd ended = {.fd = watcher->ended, .events = POLLIN};
    for (unsigned now_s = 1; !stop_requested; now_s++) {
        int count = poll(&ended, 1, REFRESH_MS);
        if (count != 0 && !(count < 0 && errno == EINTR))
            break;
        job_read(watcher);
        if (!line_show(watcher, now_s))
            break;
    }
    if (watcher->on_terminal)
        oriel_line_close();
    _exit(0);
}

/* Closes the descriptors that the launcher gave to this process. */
static void watcher_start(int ended)
{
    struct watcher *watcher = oriel_alloc(sizeof *watcher);
    watcher->pid = (int32_t)getppid();
    watcher->next_s = watcher->every_s = 1;
    setsid();
    (void)syscall(SYS_close_range, STDERR_FILENO + 1, ended - 1, 0);
    (void)syscall(SYS_close_range, ended + 1, ~0U, 0);
    watcher->ended = ended;
    watcher->on_terminal = oriel_line_open(watcher->pid);
    standard_streams_set(watcher);
    if (fork() == 0)
        watcher_run(watcher);
    _exit(0);
}

void oriel_watch_start(void)
{
    oriel_env_set("ORIEL_WATCH", "1");
    if (oriel_job_rank() > 0)
        return;
    int ended = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (ended < 0)
        oriel_die("--watch: cannot watch this process: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        watcher_start(ended);
    if (child < 0)
        oriel_die("--watch: cannot start the watcher: %s", strerror(errno));
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
}
