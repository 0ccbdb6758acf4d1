/* The diagnoses: a table of functions over the sums of a group of windows. Each states the problem
 * with its figures, the remedy, and the time that it costs, which orders them. Those that cost
 * little are left out. */
#include "cli/verdict.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/figures.h"
#include "cli/verdict_group.h"

/* The thresholds; docs/reference/statistics.md explains them. */
enum {
    COST_PERCENT = 5,  /* of the time of all ranks, and */
    COST_MS = 10,      /* in all: less is not worth a sentence */
    RANK_PERCENT = 60, /* of the waiting: from here on it is for this rank */
    TINY_BYTES = 64,
    TINY_OPERATIONS = 16, /* for one call that completes them */
    WINDOWS_CREATED = 10, /* by each rank */
    FLUSHED_PERCENT = 90, /* flushes, of the operations */
    BUSY_WAIT_US = 100,   /* on average: other replies take less */
};

enum {
    LATE_CAUSES = 1 << ORIEL_CAUSE_late_fence | 1 << ORIEL_CAUSE_late_post |
                  1 << ORIEL_CAUSE_late_complete | 1 << ORIEL_CAUSE_late_notification
};

/* --- parts of sentences --- */

static __attribute__((format(printf, 2, 3))) void say(char text[ORIEL_VERDICT_TEXT],
                                                      const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, ORIEL_VERDICT_TEXT - used, format, args);
    va_end(args);
}

/* ", in exchange at halo.c:61", if the call site is known. */
static void say_site(const struct oriel_window_groups *groups, uint8_t kind, bool by_waiting,
                     struct oriel_diagnosis *out)
{
    const struct oriel_site_sum *site = oriel_window_group_site(groups, kind, by_waiting);
    if (site == NULL)
        return;
    oriel_site_sums_text(&groups->job->sites, site, out->site);
    say(out->problem, ", in %s", out->site);
}

/* The ranks that others waited for, by these causes. */
struct blame {
    uint64_t whole_ns, rank_ns;
    int32_t rank; /* the one with most of it, rank_ns; -1: none */
};

static struct blame blame_find(const struct oriel_window_groups *groups, unsigned causes)
{
    struct blame blame = {.rank = -1};
    for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++)
        if ((causes & 1U << cause) != 0)
            blame.whole_ns += groups->now.causes_ns[cause];
    for (int32_t rank = 0; rank < groups->job->head->ranks; rank++) {
        uint64_t ns = 0;
        for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++)
            if ((causes & 1U << cause) != 0)
                ns += groups->now.caused_ns[rank][cause];
        if (ns > blame.rank_ns) {
            blame.rank_ns = ns;
            blame.rank = rank;
        }
    }
    return blame;
}

static bool is_single(const struct blame *blame)
{
    return blame->rank >= 0 &&
           100 * (double)blame->rank_ns >= RANK_PERCENT * (double)blame->whole_ns;
}

/* The kind of operation with most time. */
static uint8_t main_operation(const struct oriel_window_group *group)
{
    int most = 0;
    for (int i = 1; i < ORIEL_COUNTED_OPERATIONS; i++)
        if (group->operations[i].time_ns > group->operations[most].time_ns)
            most = i;
    return (uint8_t)most;
}

/* "puts" if all of these operations, count in number, are of that kind, otherwise "operations". */
static void say_operations(const struct oriel_window_group *group, uint8_t kind, uint64_t count,
                           char text[ORIEL_VERDICT_TEXT])
{
    bool is_only = group->operations[kind].count == count;
    say(text, "%ss", is_only ? oriel_counted_operations[kind].name : "operation");
}

/* Puts, gets and accumulates: operations whose data the origin need not await. */
static struct oriel_sum moves_sum(const struct oriel_window_group *group)
{
    static const uint8_t kinds[] = {ORIEL_COUNTS_put, ORIEL_COUNTS_get, ORIEL_COUNTS_accumulate};
    struct oriel_sum sum = {.count = 0};
    for (size_t i = 0; i < sizeof kinds; i++) {
        sum.count += group->operations[kinds[i]].count;
        sum.bytes += group->operations[kinds[i]].bytes;
        sum.time_ns += group->operations[kinds[i]].time_ns;
    }
    return sum;
}

static struct oriel_sum operations_sum(const struct oriel_window_group *group)
{
    struct oriel_sum sum = {.count = 0};
    for (int i = 0; i < ORIEL_COUNTED_OPERATIONS; i++) {
        sum.count += group->operations[i].count;
        sum.time_ns += group->operations[i].time_ns;
        sum.waited += group->operations[i].waited;
    }
    return sum;
}

/* --- the diagnoses: each returns false if it does not hold --- */

/* Ranks wait in a fence, in MPI_Win_free, start or wait, or for a notification, for one that comes
 * late. */
static bool late_rank(const struct oriel_window_groups *groups, struct oriel_diagnosis *out)
{
    static const struct {
        uint8_t call;
        const char *name;
    } waits[] = {{ORIEL_CALL_OF_fence, "MPI_Win_fence"},
                 {ORIEL_CALL_OF_free, "MPI_Win_free"},
                 {ORIEL_CALL_OF_start, "MPI_Win_start"},
                 {ORIEL_CALL_OF_wait, "MPI_Win_wait"},
                 {ORIEL_CALL_OF_notify_wait, "MPIX_Win_notify_wait"}};
    char title[ORIEL_WINDOW_TITLE], time[ORIEL_FIGURE], share[ORIEL_FIGURE];
    struct blame late = blame_find(groups, LATE_CAUSES);
    size_t most = 0;
    for (size_t i = 1; i < sizeof waits / sizeof waits[0]; i++)
        if (groups->now.calls[waits[i].call].waiting_ns >
            groups->now.calls[waits[most].call].waiting_ns)
            most = i;
    oriel_window_group_title(groups, title);
    out->cost_ns = is_single(&late) ? late.rank_ns : late.whole_ns;
    oriel_time_text(time, out->cost_ns);
    if (is_single(&late)) {
        out->rank = late.rank;
        say(out->problem, "Rank %d is late: the others wait %s for it, most in %s of %s",
            (int)late.rank, time, waits[most].name, title);
        say(out->remedy, "Load imbalance: give rank %d less work", (int)late.rank);
    } else {
        oriel_share_text(share, late.rank_ns, late.whole_ns);
        say(out->problem,
            "Ranks are late in turns: the others wait %s, for no single rank more "
            "than %s of it, most in %s of %s",
            time, share, waits[most].name, title);
        say(out->remedy, "The work between two synchronisations differs: divide it more evenly, "
                         "or synchronise less often");
    }
    say_site(groups, (uint8_t)(ORIEL_TRACE_CALL + waits[most].call), true, out);
    return true;
}

static bool lock_contention(const struct oriel_window_groups *groups, struct oriel_diagnosis *out)
{
    char title[ORIEL_WINDOW_TITLE], time[ORIEL_FIGURE], each[ORIEL_FIGURE];
    char waited_text[ORIEL_FIGURE], count_text[ORIEL_FIGURE];
    struct blame held = blame_find(groups, 1U << ORIEL_CAUSE_busy_lock);
    const struct oriel_time_sum *lock = &groups->now.calls[ORIEL_CALL_OF_lock];
    const struct oriel_time_sum *all = &groups->now.calls[ORIEL_CALL_OF_lock_all];
    uint64_t waited = lock->waited + all->waited;
    oriel_window_group_title(groups, title);
    oriel_time_text(time, held.whole_ns);
    out->cost_ns = held.whole_ns;
    if (waited == 0) {
        say(out->problem, "Atomic operations on %s wait %s for each other", title, time);
        say_site(groups, main_operation(&groups->now), false, out);
        say(out->remedy, "Distribute them over more targets or windows");
        return true;
    }
    say(out->problem, "Locks of %s are contended: %s of %s wait, %s each and %s in all", title,
        oriel_count_text(waited_text, waited),
        oriel_count_text(count_text, lock->count + all->count),
        oriel_time_text(each, (lock->waiting_ns + all->waiting_ns) / waited), time);
    if (is_single(&held)) {
        out->rank = held.rank;
        say(out->problem, ", most for rank %d", (int)held.rank);
    }
    say_site(groups,
             ORIEL_TRACE_CALL + (lock->waiting_ns >= all->waiting_ns ? ORIEL_CALL_OF_lock
                                                                     : ORIEL_CALL_OF_lock_all),
             true, out);
    say(out->remedy, "Hold the lock for a shorter time, or use MPI_LOCK_SHARED or atomic "
                     "operations instead");
    return true;
}

/* The remedy against a reason; the last one is for all others. */
static const char *slow_path_remedy(const struct oriel_member_sum *memory, uint32_t flavour)
{
    static const struct {
        const char *reason, *remedy;
    } remedies[] = {
        {"ORIEL_BYPASS", "Run without ORIEL_BYPASS"},
        {"ORIEL_PROMOTE=never",
         "Allocate the memory with MPI_Win_allocate or MPI_Alloc_mem, or run "
         "without ORIEL_PROMOTE=never"},
        {"ORIEL_AGENT=never", "Allocate the memory with MPI_Win_allocate or MPI_Alloc_mem, or run "
                              "without ORIEL_AGENT=never"},
        {"too much of the run time", "Keep the window for longer, or allocate the memory with "
                                     "MPI_Win_allocate or MPI_Alloc_mem"},
        {"ORIEL_NET=off", "Run without ORIEL_NET=off"},
        {"a POSIX file descriptor as handle type",
         "Allocate the memory with cuMemAlloc, or give cuMemCreate a POSIX file descriptor as "
         "handle type"},
        {"its driver moves", "Use device memory in place of managed memory"},
        {"has not loaded the driver", "Load the GPU's driver in all ranks before the window is "
                                      "created"},
    };
    enum { DYNAMIC = 3 };
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++)
        if (strstr(memory->reason, remedies[i].reason) != NULL)
            return remedies[i].remedy;
    return memory->path == ORIEL_PATH_host ? "\"oriel info\" shows what this node lacks"
           : flavour == DYNAMIC            ? "Attach memory of MPI_Alloc_mem"
                                : "Allocate the memory with MPI_Win_allocate or MPI_Alloc_mem";
}

/* The copies of a waiting target (polled) are of memory that the other paths copy, too. */
static bool slow_path(const struct oriel_window_groups *groups, struct oriel_diagnosis *out)
{
    static const uint8_t slow_paths[] = {ORIEL_PATH_polled, ORIEL_PATH_cma, ORIEL_PATH_agent,
                                         ORIEL_PATH_host};
    const struct oriel_window_group *now = &groups->now;
    struct oriel_sum all = operations_sum(now);
    uint8_t kind = main_operation(now);
    uint64_t slow = 0;
    char title[ORIEL_WINDOW_TITLE], time[ORIEL_FIGURE], share[ORIEL_FIGURE];
    for (size_t i = 0; i < sizeof slow_paths; i++)
        slow += now->paths[slow_paths[i]].count;
    if (now->slow == NULL || slow == 0 || slow > all.count)
        return false;
    out->cost_ns = (uint64_t)((double)all.time_ns * (double)slow / (double)all.count);
    say(out->problem, "%s of the ", oriel_share_text(share, slow, all.count));
    say_operations(now, kind, all.count, out->problem);
    say(out->problem, " on %s are slow, by %s, and take %s",
        oriel_window_group_title(groups, title), oriel_counted_paths[now->slow->path].name,
        oriel_time_text(time, out->cost_ns));
    say_site(groups, kind, false, out);
    say(out->problem, " (%s)", now->slow->reason);
    say(out->remedy, "%s", slow_path_remedy(now->slow, groups->job->windows[now->first].flavour));
    return true;
}

static bool tiny_operations(const struct oriel_window_groups *groups, struct oriel_diagnosis *out)
{
    static const uint8_t closing[] = {ORIEL_CALL_OF_fence, ORIEL_CALL_OF_complete,
                                      ORIEL_CALL_OF_unlock, ORIEL_CALL_OF_unlock_all,
                                      ORIEL_CALL_OF_flush};
    const struct oriel_window_group *now = &groups->now;
    struct oriel_sum moves = moves_sum(now);
    uint8_t kind = main_operation(now);
    uint64_t closed = 0;
    char title[ORIEL_WINDOW_TITLE], count[ORIEL_FIGURE], bytes[ORIEL_FIGURE], time[ORIEL_FIGURE];
    for (size_t i = 0; i < sizeof closing; i++)
        closed += now->calls[closing[i]].count;
    closed = closed == 0 ? 1 : closed;
    if (moves.count / TINY_OPERATIONS < closed || moves.bytes / moves.count > TINY_BYTES)
        return false;
    out->cost_ns = moves.time_ns;
    say(out->problem, "%s ", oriel_count_text(count, moves.count));
    say_operations(now, kind, moves.count, out->problem);
    say(out->problem, " of %s on %s take %s, %s for each call that completes them",
        oriel_bytes_text(bytes, moves.bytes / moves.count), oriel_window_group_title(groups, title),
        oriel_time_text(time, moves.time_ns), oriel_count_text(count, moves.count / closed));
    say_site(groups, kind, false, out);
    say(out->remedy, "Move neighbouring elements in one operation, by its count or a datatype");
    return true;
}

static uint64_t ranks_reported(const struct oriel_job_sum *job)
{
    uint64_t ranks = 0;
    for (int32_t i = 0; i < job->head->ranks; i++)
        ranks += job->has_reported[i] != ORIEL_REPORTED_NOTHING;
    return ranks;
}

/* Waiting in MPI_Win_free is that for a late rank. */
static bool create_in_loop(const struct oriel_window_groups *groups, struct oriel_diagnosis *out)
{
    const struct oriel_time_sum *create = &groups->now.calls[ORIEL_CALL_OF_create];
    const struct oriel_time_sum *end = &groups->now.calls[ORIEL_CALL_OF_free];
    uint64_t ranks = ranks_reported(groups->job);
    char count[ORIEL_FIGURE], time[ORIEL_FIGURE];
    if (ranks == 0 || create->count / ranks < WINDOWS_CREATED)
        return false;
    out->cost_ns = create->time_ns + end->time_ns - end->waiting_ns;
    say(out->problem, "Creating and freeing %s windows on each rank takes %s",
        oriel_count_text(count, create->count / ranks), oriel_time_text(time, out->cost_ns));
    say_site(groups, ORIEL_TRACE_CALL + ORIEL_CALL_OF_create, false, out);
    say(out->remedy, "Create one window before the loop, and keep it");
    return true;
}

static bool flush_after_each(const struct oriel_window_groups *groups, struct oriel_diagnosis *out)
{
    const struct oriel_time_sum *flush = &groups->now.calls[ORIEL_CALL_OF_flush];
    struct oriel_sum moves = moves_sum(&groups->now);
    char title[ORIEL_WINDOW_TITLE], flushes[ORIEL_FIGURE], count[ORIEL_FIGURE], time[ORIEL_FIGURE];
    if (moves.count == 0 || 2 * moves.count < operations_sum(&groups->now).count ||
        100 * (double)flush->count < FLUSHED_PERCENT * (double)moves.count)
        return false;
    out->cost_ns = flush->time_ns;
    say(out->problem, "%s flushes for %s ", oriel_count_text(flushes, flush->count),
        oriel_count_text(count, moves.count));
    say_operations(&groups->now, main_operation(&groups->now), moves.count, out->problem);
    say(out->problem, " on %s take %s", oriel_window_group_title(groups, title),
        oriel_time_text(time, flush->time_ns));
    say_site(groups, ORIEL_TRACE_CALL + ORIEL_CALL_OF_flush, false, out);
    say(out->remedy, "Flush once, after the last operation whose result is needed");
    return true;
}

/* A short wait is that of a reply. A long one is that the target's thread has no processor, or that
 * its process is stopped. */
static bool busy_target(const struct oriel_window_groups *groups, struct oriel_diagnosis *out)
{
    static const uint8_t calls[] = {ORIEL_CALL_OF_complete,   ORIEL_CALL_OF_lock,
                                    ORIEL_CALL_OF_unlock,     ORIEL_CALL_OF_lock_all,
                                    ORIEL_CALL_OF_unlock_all, ORIEL_CALL_OF_flush};
    struct blame busy = blame_find(groups, 1U << ORIEL_CAUSE_busy_target);
    uint64_t waited = operations_sum(&groups->now).waited;
    const struct oriel_time_sum *sums = groups->now.calls;
    uint8_t most = calls[0];
    char title[ORIEL_WINDOW_TITLE], time[ORIEL_FIGURE], each[ORIEL_FIGURE];
    for (size_t i = 0; i < sizeof calls; i++) {
        waited += sums[calls[i]].waited;
        most = sums[calls[i]].waiting_ns > sums[most].waiting_ns ? calls[i] : most;
    }
    if (waited == 0 || busy.whole_ns / waited < BUSY_WAIT_US * UINT64_C(1000))
        return false;
    out->cost_ns = busy.whole_ns;
    oriel_window_group_title(groups, title);
    if (is_single(&busy)) {
        out->rank = busy.rank;
        say(out->problem, "Rank %d is", (int)busy.rank);
    } else {
        say(out->problem, "Targets are");
    }
    say(out->problem, " slow to reply: operations on %s wait %s, %s each time", title,
        oriel_time_text(time, busy.whole_ns), oriel_time_text(each, busy.whole_ns / waited));
    if (sums[most].waiting_ns >= busy.whole_ns / 2)
        say_site(groups, (uint8_t)(ORIEL_TRACE_CALL + most), true, out);
    else
        say_site(groups, main_operation(&groups->now), false, out);
    say(out->remedy, groups->now.slow != NULL
                         ? "Allocate the memory with MPI_Win_allocate, which needs no reply within "
                           "a node"
                         : "Leave a processor free for the thread of each target that replies");
    return true;
}

/* compares: kinds of calls, so a trace of some kinds has no answer */
static const struct {
    const char *name;
    bool (*find)(const struct oriel_window_groups *groups, struct oriel_diagnosis *out);
    bool compares;
} diagnoses[] = {
    {"late_rank", late_rank, false},           {"lock_contention", lock_contention, false},
    {"slow_path", slow_path, false},           {"tiny_operations", tiny_operations, true},
    {"create_in_loop", create_in_loop, false}, {"flush_after_each", flush_after_each, true},
    {"busy_target", busy_target, false},
};

/* --- notes --- */

static bool is_filtered(const struct oriel_job_sum *job)
{
    return job->filter != NULL && job->filter[0] != '\0';
}

/* Whether the trace has only some kinds of calls (observe/trace/trace_filter.h). */
static bool has_some_kinds(const struct oriel_job_sum *job)
{
    return is_filtered(job) &&
           (strncmp(job->filter, "call=", 5) == 0 || strstr(job->filter, ";call=") != NULL);
}

static char *note_begin(struct oriel_verdict *verdict)
{
    return verdict->notes[verdict->notes_count++];
}

static void note_pauses(const struct oriel_job_sum *job, struct oriel_verdict *out)
{
    char share[ORIEL_FIGURE];
    if (job->paused_ns == 0)
        return;
    uint64_t ranks = job->paused_ranks > 0 ? (uint64_t)job->paused_ranks : 1;
    say(note_begin(out),
        "%d of %d ranks %s paused by MPI_Pcontrol for %s of the run%s; the figures are those of "
        "the rest",
        (int)job->paused_ranks, (int)ranks_reported(job), ranks == 1 ? "was" : "were",
        oriel_share_text(share, job->paused_ns / ranks, job->head->ran_ns),
        ranks == 1 ? "" : " on average");
}

/* A sample whose events would have taken half of the room: 10, 20, 50, 100 and so on. The rest is
 * for calls that are not sampled. */
static uint64_t sample_that_fits(const struct oriel_job_sum *job)
{
    double wanted = 2 * (double)(job->events + job->dropped) / (double)job->events;
    uint64_t sample = 10;
    for (int step = 0; (double)sample < wanted && sample < ORIEL_TRACE_SAMPLE_MOST / 10; step++)
        sample = step % 3 == 1 ? sample / 2 * 5 : 2 * sample;
    return sample * (job->sample > 1 ? job->sample : 1);
}

static void note_losses(const struct oriel_job_sum *job, struct oriel_verdict *out)
{
    char count[ORIEL_FIGURE], share[ORIEL_FIGURE];
    if (job->dropped == 0)
        return;
    char *note = note_begin(out);
    const bool is_one = job->dropped == 1;
    say(note, "%s event%s ", oriel_count_text(count, job->dropped), oriel_plural(job->dropped));
    say(note,
        "(%s) %s dropped, because the disk was too slow or ORIEL_TRACE_LIMIT was reached, and %s "
        "in no figure: ",
        oriel_share_text(share, job->dropped, job->events + job->dropped), is_one ? "was" : "were",
        is_one ? "is" : "are");
    if (job->events > 0)
        say(note, "--trace-filter or --trace-sample %" PRIu64 " trace less", sample_that_fits(job));
    else
        say(note, "set a higher ORIEL_TRACE_LIMIT");
}

static void notes_make(const struct oriel_job_sum *job, struct oriel_verdict *out)
{
    char count[ORIEL_FIGURE];
    note_pauses(job, out);
    if (is_filtered(job)) {
        char *note = note_begin(out);
        say(note, "Only calls that --trace-filter \"%s\" selects were traced", job->filter);
        if (ranks_reported(job) < (uint64_t)job->head->ranks)
            say(note, ", on %d of %d ranks", (int)ranks_reported(job), (int)job->head->ranks);
    }
    if (job->sample > 1)
        say(note_begin(out),
            "One in %s operations was traced (--trace-sample): counts, bytes and times of "
            "operations are estimates",
            oriel_count_text(count, job->sample));
    note_losses(job, out);
}

/* --- the verdict --- */

static void diagnosis_add(struct oriel_verdict *verdict, const struct oriel_diagnosis *diagnosis)
{
    verdict->diagnoses = oriel_alloc_checked(
        reallocarray(verdict->diagnoses, verdict->count + 1, sizeof *verdict->diagnoses));
    verdict->diagnoses[verdict->count++] = *diagnosis;
}

static void group_diagnose(const struct oriel_window_groups *groups, struct oriel_verdict *verdict)
{
    for (size_t i = 0; i < sizeof diagnoses / sizeof diagnoses[0]; i++) {
        struct oriel_diagnosis found = {.name = diagnoses[i].name,
                                        .window = groups->now.first,
                                        .windows = groups->now.windows,
                                        .rank = -1};
        if ((!diagnoses[i].compares || !has_some_kinds(groups->job)) &&
            diagnoses[i].find(groups, &found) && found.cost_ns >= COST_MS * UINT64_C(1000000) &&
            100 * (double)found.cost_ns >= COST_PERCENT * (double)verdict->all_ns)
            diagnosis_add(verdict, &found);
    }
}

static int compare_costs(const void *left, const void *right)
{
    const struct oriel_diagnosis *a = left, *b = right;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns > b->cost_ns ? -1 : 1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : (a->window > b->window) - (a->window < b->window);
}

void oriel_verdict_make(const struct oriel_job_sum *job, struct oriel_verdict *out)
{
    struct oriel_window_groups groups;
    uint64_t ranks = ranks_reported(job);
    uint64_t all_ns = job->head->ran_ns * ranks;
    memset(out, 0, sizeof *out);
    out->all_ns = all_ns > job->paused_ns ? all_ns - job->paused_ns : 0;
    notes_make(job, out);
    for (size_t i = 0; i < job->sites.count; i++) {
        out->calls_ns += job->sites.list[i].time_ns;
        out->waiting_ns += job->sites.list[i].waiting_ns;
    }
    /* ran_ns is rank 0's. In a short run other ranks can leave MPI_Init much earlier. */
    if (out->all_ns > 0 && out->all_ns < out->calls_ns)
        out->all_ns = out->calls_ns;
    out->ran_ns = ranks > 0 ? out->all_ns / ranks : 0;
    oriel_window_groups_open(job, &groups);
    while (oriel_window_groups_next(&groups))
        group_diagnose(&groups, out);
    oriel_window_groups_close(&groups);
    if (out->count > 0)
        qsort(out->diagnoses, out->count, sizeof *out->diagnoses, compare_costs);
}

void oriel_verdict_free(struct oriel_verdict *verdict)
{
    free(verdict->diagnoses);
}
