/* The epochs of one process on one window as MPI-4.1, 13.5 defines them, independent of Oriel's own
 * epochs: whether a call is correct, and which call is missing if not. Works on numbers only,
 * without processes or windows; the caller holds the window's lock. A wrong call has no effect, but
 * its counterpart is expected. That counterpart is an echo, which is neither reported nor passed
 * on. */
#ifndef ORIEL_CHECK_WINDOW_EPOCH_RULES_H
#define ORIEL_CHECK_WINDOW_EPOCH_RULES_H

#include "base/status.h"
#include "check/report/finding.h"

enum oriel_verdict {
    ORIEL_VERDICT_RIGHT,
    ORIEL_VERDICT_WRONG, /* the finding is filled in: rule, target, opening, missing, detail */
    ORIEL_VERDICT_ECHO,  /* counterpart of an earlier wrong call */
};

/* Bits, one byte for each target. */
enum oriel_target_state {
    ORIEL_TARGET_SHARED = 1,
    ORIEL_TARGET_EXCLUSIVE = 2,
    ORIEL_TARGET_NOCHECK = 4, /* of a lock */
    ORIEL_TARGET_STARTED = 8,
    ORIEL_TARGET_REFUSED = 16, /* a lock of it was wrong: its unlock is expected */
};
#define ORIEL_TARGET_LOCKED (ORIEL_TARGET_SHARED | ORIEL_TARGET_EXCLUSIVE)

/* An epoch of the whole window, or none. */
struct oriel_epoch {
    bool open;
    bool refused; /* its opening was wrong: its end is expected */
    struct oriel_site site;
};

struct oriel_epochs {
    int32_t n;
    int32_t locked;      /* targets that are locked individually */
    int32_t last_locked; /* one of them, for texts */
    bool used;           /* operations followed the last fence */
    bool no_succeed;     /* the last fence had MPI_MODE_NOSUCCEED */
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

/* The following functions are for the time before the call itself. target -1: all. */
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
/* For MPI_Win_wait and MPI_Win_test; the epoch ends with oriel_epochs_waited. */
enum oriel_verdict oriel_epochs_wait(struct oriel_epochs *epochs, struct oriel_finding *finding);
void oriel_epochs_waited(struct oriel_epochs *epochs);

/* Undoes a correct call that failed: its epoch has not begun, and the fence's epoch before it is
 * restored. target -1: MPI_Win_lock_all. */
void oriel_epochs_start_failed(struct oriel_epochs *epochs, bool fenced);
/* Does the same for a fence; before: the epochs before it. */
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
/* After a correct operation that has not failed: the fence's epoch is used. */
void oriel_epochs_operated(struct oriel_epochs *epochs, int32_t target);

/* Whether an epoch is open at MPI_Win_free (finalising: at MPI_Finalize), where none may be. */
enum oriel_verdict oriel_epochs_end(struct oriel_epochs *epochs, bool finalising,
                                    struct oriel_finding *finding);

/* Returns the call that opened the epoch in which the target is accessed now; NULL: none. */
const struct oriel_site *oriel_epochs_opening(const struct oriel_epochs *epochs, int32_t target);

/* Whether operations on the target belong to a lock. */
static inline bool oriel_epochs_passive(const struct oriel_epochs *epochs, int32_t target)
{
    return epochs->lock_all.open || (epochs->targets[target] & ORIEL_TARGET_LOCKED);
}

/* Formats a text, such as a missing call. The result is valid until the thread's fourth call after
 * this one. */
const char *oriel_text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
