/* The rules of MPI-4.1, 13.5 that relate one epoch to another, and the texts of their violations.
 * Only correct calls change the state; a wrong call changes nothing but the set of expected
 * counterparts. The caller holds the window's lock. */
#include "check/window/epoch_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *oriel_text_format(const char *format, ...)
{
    enum { WORDS = 4, ROOM = 160 };
    static _Thread_local char words[WORDS][ROOM];
    static _Thread_local unsigned next;
    char *out = words[next++ % WORDS];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(out, ROOM, format, arguments);
    va_end(arguments);
    return out;
}

enum oriel_status oriel_epochs_open(struct oriel_epochs *epochs, int32_t n)
{
    *epochs = (struct oriel_epochs){.n = n};
    size_t count = n > 0 ? (size_t)n : 1;
    epochs->targets = calloc(count, sizeof *epochs->targets);
    epochs->sites = calloc(count, sizeof *epochs->sites);
    epochs->started = calloc(count, sizeof *epochs->started);
    epochs->posted = calloc(count, sizeof *epochs->posted);
    if (epochs->targets != NULL && epochs->sites != NULL && epochs->started != NULL &&
        epochs->posted != NULL)
        return ORIEL_OK;
    oriel_epochs_close(epochs);
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for the epochs of a window");
}

void oriel_epochs_close(struct oriel_epochs *epochs)
{
    free(epochs->targets);
    free(epochs->sites);
    free(epochs->started);
    free(epochs->posted);
    *epochs = (struct oriel_epochs){0};
}

static enum oriel_verdict violation_fill(struct oriel_finding *finding, enum oriel_rule rule,
                                         int32_t target, const struct oriel_site *opening,
                                         const char *help, const char *detail)
{
    finding->rule = rule;
    finding->target = target;
    if (opening != NULL)
        finding->opening = *opening;
    finding->help = help;
    if (detail != NULL)
        snprintf(finding->detail, sizeof finding->detail, "%s", detail);
    return ORIEL_VERDICT_WRONG;
}

/* Checks for an open epoch where another one begins, which 13.5 forbids. */
static enum oriel_verdict open_epoch_check(const struct oriel_epochs *epochs, bool fence_counts,
                                           struct oriel_finding *finding)
{
    if (epochs->locked > 0) {
        int32_t target = epochs->last_locked;
        return violation_fill(finding, ORIEL_RULE_MIXED_EPOCHS, target, &epochs->sites[target],
                              oriel_text_format("the lock at @opening is still held: call "
                                                "MPI_Win_unlock(%d, win) before @here",
                                                target),
                              "The target is still locked by this rank.");
    }
    if (epochs->lock_all.open)
        return violation_fill(
            finding, ORIEL_RULE_MIXED_EPOCHS, -1, &epochs->lock_all.site,
            "the lock at @opening is still held: call MPI_Win_unlock_all(win) before @here",
            "The window is still locked by this rank.");
    if (epochs->start.open)
        return violation_fill(
            finding, ORIEL_RULE_MIXED_EPOCHS, -1, &epochs->start.site,
            "call MPI_Win_complete(win) before @here, for MPI_Win_start at @opening",
            "The access epoch of MPI_Win_start is still open.");
    if (fence_counts && epochs->fence.open && epochs->used)
        return violation_fill(
            finding, ORIEL_RULE_MIXED_EPOCHS, -1, &epochs->fence.site,
            "call MPI_Win_fence(MPI_MODE_NOSUCCEED, win) before @here, on all ranks of the window",
            "Operations followed the last fence, so its epoch is still open.");
    return ORIEL_VERDICT_RIGHT;
}

enum oriel_verdict oriel_epochs_fence(struct oriel_epochs *epochs, bool no_precede, bool no_succeed,
                                      const struct oriel_site *site, struct oriel_finding *finding)
{
    enum oriel_verdict verdict = open_epoch_check(epochs, false, finding);
    if (verdict == ORIEL_VERDICT_RIGHT && epochs->post.open)
        verdict =
            violation_fill(finding, ORIEL_RULE_MIXED_EPOCHS, -1, &epochs->post.site,
                           "call MPI_Win_wait(win) before @here, for MPI_Win_post at @opening",
                           "The exposure epoch of MPI_Win_post is still open.");
    if (verdict == ORIEL_VERDICT_RIGHT && no_precede && epochs->used)
        verdict = violation_fill(finding, ORIEL_RULE_NOPRECEDE, -1, &epochs->fence.site, NULL,
                                 "This rank has issued operations since the last fence.");
    epochs->fence = (struct oriel_epoch){.open = !no_succeed, .site = *site};
    epochs->no_succeed = no_succeed;
    epochs->used = false;
    epochs->fences++;
    return verdict;
}

enum oriel_verdict oriel_epochs_start(struct oriel_epochs *epochs, const int32_t *ranks,
                                      int32_t count, const struct oriel_site *site,
                                      struct oriel_finding *finding)
{
    enum oriel_verdict verdict;
    if (epochs->start.open)
        verdict = violation_fill(finding, ORIEL_RULE_START_TWICE, -1, &epochs->start.site,
                                 "call MPI_Win_complete(win) between @opening and @here", NULL);
    else
        verdict = open_epoch_check(epochs, true, finding);
    if (verdict != ORIEL_VERDICT_RIGHT) {
        epochs->start.refused = true;
        return verdict;
    }
    epochs->fence.open = false;
    epochs->start = (struct oriel_epoch){.open = true, .site = *site};
    memcpy(epochs->started, ranks, (size_t)count * sizeof *ranks);
    epochs->started_count = count;
    for (int32_t i = 0; i < count; i++)
        epochs->targets[ranks[i]] |= ORIEL_TARGET_STARTED;
    return ORIEL_VERDICT_RIGHT;
}

enum oriel_verdict oriel_epochs_complete(struct oriel_epochs *epochs, struct oriel_finding *finding)
{
    if (epochs->start.refused) {
        epochs->start.refused = false;
        return ORIEL_VERDICT_ECHO;
    }
    if (!epochs->start.open)
        return violation_fill(finding, ORIEL_RULE_COMPLETE_WITHOUT_START, -1, NULL,
                              "call MPI_Win_start(group, 0, win) before @here, or remove @here",
                              NULL);
    epochs->start.open = false;
    for (int32_t i = 0; i < epochs->started_count; i++)
        epochs->targets[epochs->started[i]] &= (uint8_t)~ORIEL_TARGET_STARTED;
    return ORIEL_VERDICT_RIGHT;
}

enum oriel_verdict oriel_epochs_post(struct oriel_epochs *epochs, const int32_t *ranks,
                                     int32_t count, const struct oriel_site *site,
                                     struct oriel_finding *finding)
{
    enum oriel_verdict verdict = ORIEL_VERDICT_RIGHT;
    if (epochs->post.open)
        verdict = violation_fill(finding, ORIEL_RULE_POST_TWICE, -1, &epochs->post.site,
                                 "call MPI_Win_wait(win) between @opening and @here", NULL);
    if (verdict != ORIEL_VERDICT_RIGHT) {
        epochs->post.refused = true;
        return verdict;
    }
    /* reported, and opened nevertheless: no host refuses it */
    if (epochs->fence.open && epochs->used)
        verdict = open_epoch_check(epochs, true, finding);
    epochs->post = (struct oriel_epoch){.open = true, .site = *site};
    memcpy(epochs->posted, ranks, (size_t)count * sizeof *ranks);
    epochs->posted_count = count;
    return verdict;
}

enum oriel_verdict oriel_epochs_wait(struct oriel_epochs *epochs, struct oriel_finding *finding)
{
    if (epochs->post.refused) {
        epochs->post.refused = false;
        return ORIEL_VERDICT_ECHO;
    }
    if (!epochs->post.open)
        return violation_fill(finding, ORIEL_RULE_WAIT_WITHOUT_POST, -1, NULL,
                              "call MPI_Win_post(group, 0, win) before @here, or remove @here",
                              NULL);
    return ORIEL_VERDICT_RIGHT;
}

void oriel_epochs_waited(struct oriel_epochs *epochs)
{
    epochs->post.open = false;
}

enum oriel_verdict oriel_epochs_lock(struct oriel_epochs *epochs, int32_t target, bool exclusive,
                                     bool no_check, const struct oriel_site *site,
                                     struct oriel_finding *finding)
{
    enum oriel_verdict verdict = ORIEL_VERDICT_RIGHT;
    if (epochs->targets[target] & ORIEL_TARGET_LOCKED)
        verdict = violation_fill(
            finding, ORIEL_RULE_LOCK_TWICE, target, &epochs->sites[target],
            oriel_text_format("call MPI_Win_unlock(%d, win) between @opening and @here", target),
            NULL);
    else if (epochs->lock_all.open)
        verdict = violation_fill(finding, ORIEL_RULE_LOCK_TWICE, target, &epochs->lock_all.site,
                                 "call MPI_Win_unlock_all(win) between @opening and @here",
                                 "MPI_Win_lock_all has already locked all ranks.");
    else if (epochs->start.open || (epochs->fence.open && epochs->used))
        verdict = open_epoch_check(epochs, true, finding);
    if (verdict != ORIEL_VERDICT_RIGHT) {
        finding->target = target;
        epochs->targets[target] |= ORIEL_TARGET_REFUSED;
        return verdict;
    }
    epochs->fence.open = false;
    epochs->targets[target] |= exclusive ? ORIEL_TARGET_EXCLUSIVE : ORIEL_TARGET_SHARED;
    if (no_check)
        epochs->targets[target] |= ORIEL_TARGET_NOCHECK;
    epochs->sites[target] = *site;
    epochs->last_locked = target;
    epochs->locked++;
    return ORIEL_VERDICT_RIGHT;
}

static void last_locked_update(struct oriel_epochs *epochs)
{
    for (int32_t i = 0; i < epochs->n && epochs->locked > 0; i++)
        if (epochs->targets[i] & ORIEL_TARGET_LOCKED) {
            epochs->last_locked = i;
            return;
        }
}

enum oriel_verdict oriel_epochs_unlock(struct oriel_epochs *epochs, int32_t target,
                                       struct oriel_finding *finding)
{
    uint8_t *state = &epochs->targets[target];
    if (*state & ORIEL_TARGET_REFUSED) {
        *state &= (uint8_t)~ORIEL_TARGET_REFUSED;
        return ORIEL_VERDICT_ECHO;
    }
    if (*state & ORIEL_TARGET_LOCKED) {
        *state &= (uint8_t) ~(ORIEL_TARGET_LOCKED | ORIEL_TARGET_NOCHECK);
        epochs->locked--;
        if (epochs->last_locked == target)
            last_locked_update(epochs);
        return ORIEL_VERDICT_RIGHT;
    }
    if (epochs->lock_all.open)
        return violation_fill(finding, ORIEL_RULE_UNLOCK_WITHOUT_LOCK, target,
                              &epochs->lock_all.site,
                              "call MPI_Win_unlock_all(win) instead, for the lock at @opening",
                              "The window was locked by MPI_Win_lock_all.");
    return violation_fill(
        finding, ORIEL_RULE_UNLOCK_WITHOUT_LOCK, target, NULL,
        oriel_text_format("call MPI_Win_lock(MPI_LOCK_SHARED, %d, 0, win) before @here", target),
        NULL);
}

enum oriel_verdict oriel_epochs_lock_all(struct oriel_epochs *epochs, const struct oriel_site *site,
                                         struct oriel_finding *finding)
{
    enum oriel_verdict verdict = ORIEL_VERDICT_RIGHT;
    if (epochs->lock_all.open)
        verdict = violation_fill(finding, ORIEL_RULE_LOCK_TWICE, -1, &epochs->lock_all.site,
                                 "call MPI_Win_unlock_all(win) between @opening and @here", NULL);
    else if (epochs->locked > 0)
        verdict = violation_fill(
            finding, ORIEL_RULE_LOCK_TWICE, epochs->last_locked,
            &epochs->sites[epochs->last_locked],
            oriel_text_format("call MPI_Win_unlock(%d, win) between @opening and @here",
                              epochs->last_locked),
            NULL);
    else if (epochs->start.open || (epochs->fence.open && epochs->used))
        verdict = open_epoch_check(epochs, true, finding);
    if (verdict != ORIEL_VERDICT_RIGHT) {
        epochs->lock_all.refused = true;
        return verdict;
    }
    epochs->fence.open = false;
    epochs->lock_all = (struct oriel_epoch){.open = true, .site = *site};
    return ORIEL_VERDICT_RIGHT;
}

enum oriel_verdict oriel_epochs_unlock_all(struct oriel_epochs *epochs,
                                           struct oriel_finding *finding)
{
    if (epochs->lock_all.refused) {
        epochs->lock_all.refused = false;
        return ORIEL_VERDICT_ECHO;
    }
    if (epochs->lock_all.open) {
        epochs->lock_all.open = false;
        return ORIEL_VERDICT_RIGHT;
    }
    if (epochs->locked > 0)
        return violation_fill(
            finding, ORIEL_RULE_UNLOCK_WITHOUT_LOCK, -1, &epochs->sites[epochs->last_locked],
            oriel_text_format("call MPI_Win_unlock(%d, win) instead, for the lock at @opening",
                              epochs->last_locked),
            "The rank was locked by MPI_Win_lock.");
    return violation_fill(finding, ORIEL_RULE_UNLOCK_WITHOUT_LOCK, -1, NULL,
                          "call MPI_Win_lock_all(0, win) before @here", NULL);
}

static bool is_echo(const struct oriel_epochs *epochs, int32_t target)
{
    return epochs->start.refused || epochs->lock_all.refused ||
           (target >= 0 && (epochs->targets[target] & ORIEL_TARGET_REFUSED));
}

enum oriel_verdict oriel_epochs_flush(struct oriel_epochs *epochs, int32_t target,
                                      struct oriel_finding *finding)
{
    if (epochs->lock_all.open ||
        (target < 0 ? epochs->locked > 0 : oriel_epochs_passive(epochs, target)))
        return ORIEL_VERDICT_RIGHT;
    if (is_echo(epochs, target))
        return ORIEL_VERDICT_ECHO;
    const char *missing =
        target < 0 ? "call MPI_Win_lock_all(0, win) before @here"
                   : oriel_text_format(
                         "call MPI_Win_lock(MPI_LOCK_SHARED, %d, 0, win) before @here", target);
    if (epochs->locked > 0)
        return violation_fill(finding, ORIEL_RULE_FLUSH_OUTSIDE_EPOCH, target,
                              &epochs->sites[epochs->last_locked], missing,
                              oriel_text_format("This rank has locked rank %d, not rank %d.",
                                                epochs->last_locked, target));
    const struct oriel_site *opening = target < 0 ? NULL : oriel_epochs_opening(epochs, target);
    return violation_fill(
        finding, ORIEL_RULE_FLUSH_OUTSIDE_EPOCH, target, opening, missing,
        opening == NULL
            ? NULL
            : "The open epoch is not a passive target epoch: its end completes the operations.");
}

static enum oriel_verdict missing_epoch_fill(const struct oriel_epochs *epochs, int32_t target,
                                             struct oriel_finding *finding)
{
    if (epochs->start.open)
        return violation_fill(
            finding, ORIEL_RULE_WRONG_TARGET, target, &epochs->start.site,
            oriel_text_format("name rank %d in the group of MPI_Win_start at @opening", target),
            NULL);
    if (epochs->locked > 0)
        return violation_fill(
            finding, ORIEL_RULE_WRONG_TARGET, target, &epochs->sites[epochs->last_locked],
            oriel_text_format("call MPI_Win_lock(MPI_LOCK_SHARED, %d, 0, win) before @here",
                              target),
            oriel_text_format("This rank has locked rank %d, not rank %d.", epochs->last_locked,
                              target));
    if (epochs->no_succeed && !epochs->fence.open)
        return violation_fill(finding, ORIEL_RULE_NOSUCCEED, target, &epochs->fence.site,
                              "call MPI_Win_fence(0, win) instead of "
                              "MPI_Win_fence(MPI_MODE_NOSUCCEED, win) at @opening",
                              NULL);
    return violation_fill(finding, ORIEL_RULE_OUTSIDE_EPOCH, target, NULL,
                          oriel_text_format("call MPI_Win_lock(MPI_LOCK_SHARED, %d, 0, win), "
                                            "MPI_Win_fence or MPI_Win_start before @here",
                                            target),
                          NULL);
}

enum oriel_verdict oriel_epochs_operation(const struct oriel_epochs *epochs, int32_t target,
                                          bool has_request, struct oriel_finding *finding)
{
    if (oriel_epochs_passive(epochs, target))
        return ORIEL_VERDICT_RIGHT;
    bool started = (epochs->targets[target] & ORIEL_TARGET_STARTED) != 0;
    if (!started && is_echo(epochs, target))
        return ORIEL_VERDICT_ECHO;
    if (!started && (!epochs->fence.open || epochs->locked > 0))
        return missing_epoch_fill(epochs, target, finding);
    if (!has_request)
        return ORIEL_VERDICT_RIGHT;
    return violation_fill(
        finding, ORIEL_RULE_REQUEST_IN_ACTIVE_EPOCH, target,
        started ? &epochs->start.site : &epochs->fence.site,
        oriel_text_format("call MPI_Win_lock(MPI_LOCK_SHARED, %d, 0, win) before @here", target),
        NULL);
}

void oriel_epochs_operated(struct oriel_epochs *epochs, int32_t target)
{
    bool started = (epochs->targets[target] & ORIEL_TARGET_STARTED) != 0;
    if (epochs->fence.open && epochs->locked == 0 && !started &&
        !oriel_epochs_passive(epochs, target))
        epochs->used = true;
}

enum oriel_verdict oriel_epochs_end(struct oriel_epochs *epochs, bool finalising,
                                    struct oriel_finding *finding)
{
    enum oriel_rule rule = finalising ? ORIEL_RULE_FINALIZE_IN_EPOCH : ORIEL_RULE_FREE_IN_EPOCH;
    enum oriel_verdict verdict = open_epoch_check(epochs, true, finding);
    if (verdict == ORIEL_VERDICT_RIGHT && epochs->post.open)
        verdict =
            violation_fill(finding, rule, -1, &epochs->post.site,
                           "call MPI_Win_wait(win) before @here, for MPI_Win_post at @opening",
                           "The exposure epoch of MPI_Win_post is still open.");
    finding->rule = rule;
    return verdict;
}

const struct oriel_site *oriel_epochs_opening(const struct oriel_epochs *epochs, int32_t target)
{
    if (epochs->targets[target] & ORIEL_TARGET_LOCKED)
        return &epochs->sites[target];
    return epochs->lock_all.open ? &epochs->lock_all.site
           : epochs->start.open  ? &epochs->start.site
           : epochs->fence.open  ? &epochs->fence.site
                                 : NULL;
}

void oriel_epochs_start_failed(struct oriel_epochs *epochs, bool fenced)
{
    struct oriel_finding none;
    oriel_epochs_complete(epochs, &none);
    epochs->fence.open = fenced;
}

void oriel_epochs_fence_failed(struct oriel_epochs *epochs, const struct oriel_epochs *before)
{
    epochs->fence = before->fence;
    epochs->no_succeed = before->no_succeed;
    epochs->used = before->used;
    epochs->fences = before->fences;
}

void oriel_epochs_lock_failed(struct oriel_epochs *epochs, int32_t target, bool fenced)
{
    struct oriel_finding none;
    if (target < 0)
        oriel_epochs_unlock_all(epochs, &none);
    else
        oriel_epochs_unlock(epochs, target, &none);
    epochs->fence.open = fenced;
}
