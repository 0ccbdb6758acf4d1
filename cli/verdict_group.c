/* Windows are sorted by call site and name. */
#include "cli/verdict_group.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const char *site_of(const struct oriel_window_groups *groups, uint32_t window)
{
    const struct oriel_window_sum *sum = &groups->job->windows[window];
    return sum->shared_by != 0 ? groups->shared_site : sum->site;
}

static const char *name_of(const struct oriel_window_groups *groups, uint32_t window)
{
    const struct oriel_window_sum *sum = &groups->job->windows[window];
    return sum->shared_by != 0 ? groups->shared_name : sum->name;
}

static int compare_titles(const struct oriel_window_groups *groups, uint32_t a, uint32_t b)
{
    int order = strcmp(site_of(groups, a), site_of(groups, b));
    return order != 0 ? order : strcmp(name_of(groups, a), name_of(groups, b));
}

static int compare_windows_by_title(const void *left, const void *right, void *context)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    int order = compare_titles(context, a, b);
    return order != 0 ? order : (a > b) - (a < b);
}

static void group_sum_add(struct oriel_sum *sum, const struct oriel_sum *more)
{
    sum->count += more->count;
    sum->bytes += more->bytes;
    sum->time_ns += more->time_ns;
    sum->waited += more->waited;
}

static void group_time_add(struct oriel_time_sum *sum, const struct oriel_time_sum *more)
{
    sum->count += more->count;
    sum->time_ns += more->time_ns;
    sum->waiting_ns += more->waiting_ns;
    sum->waited += more->waited;
}

static bool is_slow(const struct oriel_member_sum *member)
{
    return member->reason[0] != '\0' &&
           (member->path == ORIEL_PATH_cma || member->path == ORIEL_PATH_agent ||
            member->path == ORIEL_PATH_host);
}

static void members_add(struct oriel_window_group *group, const struct oriel_window_sum *window,
                        int32_t ranks)
{
    for (int32_t i = 0; i < window->n; i++) {
        const struct oriel_member_sum *member = &window->members[i];
        if (group->slow == NULL && is_slow(member))
            group->slow = member;
        for (int cause = 0; cause < ORIEL_COUNTED_CAUSES; cause++)
            if (member->world_rank >= 0 && member->world_rank < ranks)
                group->caused_ns[member->world_rank][cause] += member->caused_ns[cause];
    }
}

static void group_window_add(struct oriel_window_group *group,
                             const struct oriel_window_sum *window, int32_t ranks)
{
    group->windows += window->shared_by != 0 ? window->shared_by : 1;
    for (int i = 0; i < ORIEL_COUNTED_OPERATIONS; i++)
        group_sum_add(&group->operations[i], &window->operations[i]);
    for (int i = 0; i < ORIEL_COUNTED_PATHS; i++)
        group_sum_add(&group->paths[i], &window->paths[i]);
    for (int i = 0; i < ORIEL_COUNTED_CALLS; i++)
        group_time_add(&group->calls[i], &window->calls[i]);
    for (int i = 0; i < ORIEL_COUNTED_CAUSES; i++)
        group->causes_ns[i] += window->causes_ns[i];
    members_add(group, window, ranks);
}

static bool may_have_created_shared(const struct oriel_job_sum *job,
                                    const struct oriel_site_sum *site)
{
    return site->kind == ORIEL_TRACE_CALL + ORIEL_CALL_OF_create &&
           (site->window == ORIEL_WINDOWS_SEVERAL || job->windows[site->window].shared_by != 0);
}

/* The name of all windows of the line that created the shared ones; "" if they have several. */
static const char *shared_name_find(const struct oriel_window_groups *groups)
{
    const char *name = NULL;
    for (size_t i = 0; i < groups->job->windows_count; i++) {
        const struct oriel_window_sum *window = &groups->job->windows[i];
        if (window->shared_by != 0 || strcmp(window->site, groups->shared_site) != 0)
            continue;
        if (name != NULL && strcmp(name, window->name) != 0)
            return "";
        name = window->name;
    }
    return name != NULL ? name : "";
}

/* Finds the line if only one can have created the windows that share one sum. */
static void shared_site_find(struct oriel_window_groups *groups)
{
    const struct oriel_site_sums *sites = &groups->job->sites;
    unsigned found = 0;
    for (size_t i = 0; i < sites->count; i++)
        if (may_have_created_shared(groups->job, &sites->list[i]) && found++ == 0 &&
            sites->list[i].place != ORIEL_PLACE_OTHERS)
            oriel_site_sums_text(sites, &sites->list[i], groups->shared_site);
    if (found != 1)
        groups->shared_site[0] = '\0';
    groups->shared_name = groups->shared_site[0] != '\0' ? shared_name_find(groups) : "";
}

void oriel_window_groups_open(const struct oriel_job_sum *job, struct oriel_window_groups *out)
{
    size_t count = job->windows_count;
    uint32_t number = 0;
    *out = (struct oriel_window_groups){
        .job = job,
        .order = oriel_alloc((count + 1) * sizeof *out->order),
        .of_window = oriel_alloc((count + 1) * sizeof *out->of_window),
        .now.caused_ns = oriel_alloc(((size_t)job->head->ranks + 1) * sizeof *out->now.caused_ns)};
    for (uint32_t i = 0; i < count; i++)
        out->order[i] = i;
    shared_site_find(out);
    qsort_r(out->order, count, sizeof *out->order, compare_windows_by_title, out);
    for (size_t i = 0; i < count; i++) {
        number += i > 0 && compare_titles(out, out->order[i - 1], out->order[i]) != 0;
        out->of_window[out->order[i]] = number;
    }
}

bool oriel_window_groups_next(struct oriel_window_groups *groups)
{
    const struct oriel_job_sum *job = groups->job;
    struct oriel_window_group *now = &groups->now;
    if (groups->next == job->windows_count)
        return false;
    uint32_t first = groups->order[groups->next];
    memset(now->caused_ns, 0, (size_t)job->head->ranks * sizeof *now->caused_ns);
    *now = (struct oriel_window_group){
        .number = groups->of_window[first], .first = first, .caused_ns = now->caused_ns};
    while (groups->next < job->windows_count &&
           groups->of_window[groups->order[groups->next]] == now->number)
        group_window_add(now, &job->windows[groups->order[groups->next++]], job->head->ranks);
    return true;
}

void oriel_window_groups_close(struct oriel_window_groups *groups)
{
    free(groups->order);
    free(groups->of_window);
    free(groups->now.caused_ns);
}

static uint64_t kind_ns(const struct oriel_window_group *group, uint8_t kind, bool by_waiting)
{
    if (kind < ORIEL_TRACE_CALL)
        /* cppcheck-suppress arrayIndexOutOfBoundsCond; the reader refuses other kinds */
        return group->operations[kind].time_ns;
    const struct oriel_time_sum *calls = &group->calls[kind - ORIEL_TRACE_CALL];
    return by_waiting ? calls->waiting_ns : calls->time_ns;
}

/* A row of several windows has no sum for each. If it is the only such row of its kind, it has what
 * the group's other rows do not have. */
const struct oriel_site_sum *oriel_window_group_site(const struct oriel_window_groups *groups,
                                                     uint8_t kind, bool by_waiting)
{
    const struct oriel_site_sums *sites = &groups->job->sites;
    const struct oriel_site_sum *most = NULL, *several = NULL;
    unsigned several_count = 0;
    uint64_t most_ns = 0, rest_ns = kind_ns(&groups->now, kind, by_waiting);
    const uint64_t half_ns = rest_ns / 2;
    for (size_t i = 0; i < sites->count; i++) {
        const struct oriel_site_sum *site = &sites->list[i];
        uint64_t ns = by_waiting ? site->waiting_ns : site->time_ns;
        if (site->kind != kind)
            continue;
        if (site->window == ORIEL_WINDOWS_SEVERAL) {
            several = site;
            several_count++;
            continue;
        }
        if (groups->of_window[site->window] != groups->now.number)
            continue;
        rest_ns -= ns < rest_ns ? ns : rest_ns;
        if (ns >= most_ns) {
            most = site;
            most_ns = ns;
        }
    }
    if (several_count == 1 && rest_ns > most_ns) {
        most = several;
        most_ns = rest_ns;
    }
    bool is_known = most != NULL && most->place != ORIEL_PLACE_OTHERS && most_ns >= half_ns;
    return is_known ? most : NULL;
}

const char *oriel_window_group_title(const struct oriel_window_groups *groups,
                                     char out[ORIEL_WINDOW_TITLE])
{
    const struct oriel_window_group *now = &groups->now;
    const struct oriel_window_sum *window = &groups->job->windows[now->first];
    if (window->name[0] != '\0')
        snprintf(out, ORIEL_WINDOW_TITLE, "\"%s\"", window->name);
    else if (now->windows > 1 && window->site[0] != '\0')
        snprintf(out, ORIEL_WINDOW_TITLE, "the windows of %s", window->site);
    else if (now->windows > 1)
        snprintf(out, ORIEL_WINDOW_TITLE, "several windows");
    else
        snprintf(out, ORIEL_WINDOW_TITLE, "window %u", (unsigned)now->first + 1);
    return out;
}
