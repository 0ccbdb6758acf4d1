/* Calls of two members that belong together: posts and starts, fences and their counts. At the end
 * of the window, calls without a counterpart are reported, and members that wait for one are
 * released (windows_free.c). The later of two calls makes the report. */
#include "check/window/window_steps.h"

#include <stdio.h>

static void paired_call_report(const struct oriel_checked *window, enum oriel_rule rule,
                               int32_t target, const struct oriel_site *site,
                               const struct oriel_site *other, const char *detail)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.rule = rule;
    finding.target = target;
    finding.other = *other;
    snprintf(finding.detail, sizeof finding.detail, "%s", detail);
    oriel_window_report(window, &finding, site);
}

/* --- post and start --- */

void oriel_paired_post(struct oriel_checked *window, int32_t origin, int assert,
                       const struct oriel_site *site)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {.kind = ORIEL_MEMBER_POST,
                                         .member = window->rank,
                                         .other = origin,
                                         .assert = assert,
                                         .tick = oriel_order_now(),
                                         .site = *site};
    oriel_window_ask(window, 0, &ask, &answer);
}

/* Whether the target's last post is ordered before this call. */
static bool post_is_ordered(const struct oriel_checked *window, int32_t target,
                            oriel_tick post_tick)
{
    oriel_shm_offset snapshot = oriel_order_snapshot();
    bool known =
        snapshot == 0 ||
        post_tick <=
            oriel_order_snapshot_clock(
                snapshot)[oriel_clock_index((int)window->members[target].world_rank, post_tick)];
    oriel_order_snapshot_release(snapshot);
    return known;
}

void oriel_paired_start(struct oriel_checked *window, int32_t target, int assert,
                        const struct oriel_site *site)
{
    static const struct oriel_site none = {.call = 0};
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {
        .kind = ORIEL_MEMBER_START, .member = window->rank, .other = target, .site = *site};
    if (!oriel_window_ask(window, 0, &ask, &answer) || !answer.found)
        return;
    if (answer.gone_rank >= 0)
        paired_call_report(
            window, ORIEL_RULE_UNMATCHED_GROUPS, target, site, &answer.gone_site,
            oriel_text_format("Rank %d frees the window without an MPI_Win_post for this rank.",
                              target));
    bool posted = answer.posts >= window->started[target];
    if (window->ordered && (assert &MPI_MODE_NOCHECK) &&
        !(posted && post_is_ordered(window, target, answer.tick)))
        paired_call_report(window, ORIEL_RULE_NOCHECK_START, target, site,
                           posted ? &answer.site : &none,
                           "The target's MPI_Win_post is not ordered before this call.");
}

void oriel_paired_call_failed(struct oriel_checked *window, int32_t other, bool starts)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {.kind =
                                             starts ? ORIEL_MEMBER_NO_START : ORIEL_MEMBER_NO_POST,
                                         .member = window->rank,
                                         .other = other};
    oriel_window_ask(window, 0, &ask, &answer);
}

/* --- calls without a counterpart at the end --- */

/* Reports this member's pairs with more starts, or more posts, than the other side. */
static void unequal_pairs_report(struct oriel_checked *window, bool starts,
                                 const struct oriel_site *site)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {
        .kind = ORIEL_MEMBER_UNEQUAL, .member = window->rank, .assert = starts};
    for (; ask.number < (uint64_t)window->n && oriel_window_ask(window, 0, &ask, &answer) &&
           answer.found;
         ask.number++)
        paired_call_report(
            window, ORIEL_RULE_UNMATCHED_GROUPS, starts ? window->rank : answer.rank, &answer.site,
            site,
            starts ? oriel_text_format("Rank %d has not called MPI_Win_post for rank %d.",
                                       window->rank, answer.rank)
                   : oriel_text_format("Rank %d has not called MPI_Win_start for rank %d.",
                                       answer.rank, window->rank));
}

void oriel_paired_window_end(struct oriel_checked *window, const struct oriel_site *site)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {
        .kind = ORIEL_MEMBER_END, .member = window->rank, .site = *site};
    if (!oriel_window_ask(window, 0, &ask, &answer))
        return;
    if (answer.found)
        paired_call_report(window, ORIEL_RULE_FENCE_COUNTS, window->rank, &answer.site, site,
                           oriel_text_format("Rank %d frees the window without calling this fence.",
                                             window->rank));
    unequal_pairs_report(window, true, site);
}

void oriel_paired_window_ended(struct oriel_checked *window, const struct oriel_site *site)
{
    unequal_pairs_report(window, false, site);
}

enum oriel_wanted oriel_paired_wanted(struct oriel_checked *window, const struct oriel_site *site,
                                      int32_t *rank)
{
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {.kind = ORIEL_MEMBER_WANTED, .member = window->rank};
    if (!oriel_window_ask(window, 0, &ask, &answer))
        return ORIEL_WANTED_NOTHING;
    *rank = answer.rank;
    if (answer.found > ORIEL_WANTED_FENCE && answer.rank < 0)
        return ORIEL_WANTED_NOTHING;
    if (answer.found == ORIEL_WANTED_START)
        paired_call_report(
            window, ORIEL_RULE_UNMATCHED_GROUPS, window->rank, &answer.site, site,
            oriel_text_format("Rank %d frees the window without an MPI_Win_start for rank %d.",
                              window->rank, *rank));
    return (enum oriel_wanted)answer.found;
}
