/* The epochs of one process on one window as MPI-4.1, 13.5 defines them, apart from Oriel's own: which call is right now, and
 * what is missing where one is wrong.  Knows no processes and no window but numbers; whoever calls holds the window's lock.  A
 * wrong call has no effect, but its counterpart that follows is expected: it is an echo, neither told nor passed on. windows*.c
 * call. */
#ifndef ORIEL_CHECK_RULES_EPOCH_RULES_H
#define ORIEL_CHECK_RULES_EPOCH_RULES_H

#include "base/status.h"
#include "check/report/finding.h"

enum oriel_verdict {
    ORIEL_VERDICT_RIGHT,
    ORIEL_VERDICT_WRONG, /* the finding is filled in: rule, target, opening, missing, detail */
    ORIEL_VERDICT_ECHO,  /* of a call that was wrong before */
};

enum oriel_target_state { /* bits, one byte for each target */
                          ORIEL_TARGET_SHARED = 1,
                          ORIEL_TARGET_EXCLUSIVE = 2,
                          ORIEL_TARGET_NOCHECK = 4, /* of a lock */
                          ORIEL_TARGET_STARTED = 8,
                          ORIEL_TARGET_REFUSED =
                              16, /* a lock of it was wrong: its unlock is awaited */
};
#define ORIEL_TARGET_LOCKED (ORIEL_TARGET_SHARED | ORIEL_TARGET_EXCLUSIVE)

/* An epoch of the whole window, or its absence. */
struct oriel_epoch {
    bool open;
    bool refused; /* its opening was wrong: its end is awaited */
    struct oriel_site site;
};

struct oriel_epochs {
    int32_t n;
    int32_t locked;      /* targets that are locked one by one */
    int32_t last_locked; /* one of them, for texts */
    bool used;           /* operations followed the last fence */
    bool no_succeed;     /* which had MPI_MODE_NOSUCCEED */
    uint64_t fences;     /* so far */
    struct oriel_epoch fence;
    struct oriel_epoch start;
    struct oriel_epoch post;
    struct oriel_epoch lock_all;
    int32_t *started; /* the group of start, as ranks of the window */
    int32_t started_count;
    int32_t *posted; /* the group of post */
    int32_t posted_count;
    uint8_t *targets;         /* enum oriel_target_state */
    struct oriel_site *sites; /* of the targets' locks */
};

enum oriel_status oriel_epochs_open(struct oriel_epochs *epochs, int32_t n);
void oriel_epochs_close(struct oriel_epochs *epochs);

/* What follows comes before the call itself.  target -1: all. */
enum oriel_verdict oriel_epochs_fence(struct oriel_epochs *epochs, bool no_precede, bool no_succeed,
                                      const struct oriel_site *site, struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_start(struct oriel_epochs *epochs, const int32_t *ranks,
                                      int32_t count, const struct oriel_site *site,
                                      struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_complete(struct oriel_epochs *epochs,
                                         struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_post(struct oriel_epochs *epochs, const int32_t *ranks,
                                     int32_t count, const struct oriel_site *site,
                                     struct oriel_finding *finding);
/* MPI_Win_wait and MPI_Win_test; the epoch ends with oriel_epochs_waited. */
enum oriel_verdict oriel_epochs_wait(struct oriel_epochs *epochs, struct oriel_finding *finding);
void oriel_epochs_waited(struct oriel_epochs *epochs);

/* The call that was noted as right has failed: its epoch has not begun, and that of the fence before it is as it was.  target -1:
 * MPI_Win_lock_all. */
void oriel_epochs_start_failed(struct oriel_epochs *epochs, bool fenced);
/* Likewise of a fence; before: the epochs as they were. */
void oriel_epochs_fence_failed(struct oriel_epochs *epochs, const struct oriel_epochs *before);
void oriel_epochs_lock_failed(struct oriel_epochs *epochs, int32_t target, bool fenced);

enum oriel_verdict oriel_epochs_lock(struct oriel_epochs *epochs, int32_t target, bool exclusive,
                                     bool no_check, const struct oriel_site *site,
                                     struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_unlock(struct oriel_epochs *epochs, int32_t target,
                                       struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_lock_all(struct oriel_epochs *epochs, const struct oriel_site *site,
                                         struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_unlock_all(struct oriel_epochs *epochs,
                                           struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_flush(struct oriel_epochs *epochs, int32_t target,
                                      struct oriel_finding *finding);
enum oriel_verdict oriel_epochs_operation(const struct oriel_epochs *epochs, int32_t target,
                                          bool has_request, struct oriel_finding *finding);
/* It was right and has not failed: the epoch of a fence is used. */
void oriel_epochs_operated(struct oriel_epochs *epochs, int32_t target);

/* Whether an epoch is open that MPI_Win_free (finalising: MPI_Finalize) must not meet. */
enum oriel_verdict oriel_epochs_end(struct oriel_epochs *epochs, bool finalising,
                                    struct oriel_finding *finding);

/* The call that opened the epoch in which the target is accessed now; NULL: none. */
const struct oriel_site *oriel_epochs_opening(const struct oriel_epochs *epochs, int32_t target);

/* Whether operations on the target belong to a lock. */
static inline bool oriel_epochs_passive(const struct oriel_epochs *epochs, int32_t target)
{
    return epochs->lock_all.open || (epochs->targets[target] & ORIEL_TARGET_LOCKED);
}

/* Words for a missing call: in memory of the calling thread that lasts until the next ones. */
const char *oriel_words(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
