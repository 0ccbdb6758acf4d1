/* The windows of the program as the checker knows them: who and what their members gave, the state of this process's epochs, and
 * what all members share in the board.  An entry is made behind the window's creation and goes before its end; what a thread has
 * found stays valid while MPI allows it to use the window.  windows*.c, arguments.c and promises.c call. */
#ifndef ORIEL_CHECK_INTERCEPT_WINDOWS_H
#define ORIEL_CHECK_INTERCEPT_WINDOWS_H

#include "check/deadlock/wait_records.h"
#include "check/local/local_accesses.h"
#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"
#include "check/rules/epoch_rules.h"
#include "host/host.h"

#include <pthread.h>
#include <stdatomic.h>

enum oriel_check_flavour {
    ORIEL_CHECK_CREATE,
    ORIEL_CHECK_ALLOCATE,
    ORIEL_CHECK_SHARED,
    ORIEL_CHECK_DYNAMIC,
};

/* Info keys that promise something. */
enum oriel_promise {
    ORIEL_PROMISE_NO_LOCKS = 1,
    ORIEL_PROMISE_SAME_SIZE = 2,
    ORIEL_PROMISE_SAME_DISP_UNIT = 4,
    ORIEL_PROMISE_OPS_SET = 8,  /* accumulate_ops is set */
    ORIEL_PROMISE_SAME_OP = 16, /* to same_op */
};

/* What each member tells the others at creation. */
struct oriel_checked_member {
    uint64_t id; /* the first member's counts: the window's */
    int64_t size_bytes;
    int64_t disp_unit;
    uint64_t promises;
    uint32_t world_rank;
    uint32_t flavour;
    uint64_t
        part; /* of a window over several machines: the history of this member's memory (history_proxy.h); 0: there is none */
    uint64_t locks; /* likewise, of the first member: that of the locks held */
    struct oriel_site site;
};

/* One member's part of what all share. */
struct oriel_share {
    oriel_shm_offset history; /* of the accesses to this member's memory; 0 before the first */
    oriel_shm_offset words;   /* that carry order there; likewise */
    int32_t pid;              /* 0: it has not made its entry yet */
    _Atomic uint32_t
        met; /* 1 more than the last of the counts below that this member has added itself to, to meet all others */
};

/* What members count while the window is freed. */
enum oriel_ending_count {
    ORIEL_ENDING_ARRIVED, /* in MPI_Win_free */
    ORIEL_ENDING_NEEDS_FENCE,
    ORIEL_ENDING_STUCK, /* epochs could not be ended */
    ORIEL_ENDING_SETTLED,
    ORIEL_ENDING_LEFT, /* all of this is needed no more */
    ORIEL_ENDING_COUNTS,
};

/* What all members of a window on one machine share; in the board. */
struct oriel_window_shared {
    _Atomic uint32_t counts[ORIEL_ENDING_COUNTS];
    _Atomic uint32_t locked_all; /* MPI_Win_lock_all was used */
    _Atomic uint32_t bulk;       /* accumulates of many elements were */
    oriel_shm_offset locks;      /* history of the locks held: a member is a byte */
    struct oriel_share shares[];
};

enum { ORIEL_LATE_WORDS = 16 };

struct oriel_late_word {
    int32_t target;
    int64_t offset;
};

struct oriel_attached_list;
struct oriel_window_request;
struct oriel_words;

/* What a small operation on a member needs to know of it, which callsite_cache.c has found out.  One line. */
struct oriel_window_target {
    _Alignas(64) uint64_t ready; /* true as long as this is oriel_check_changes */
    uint32_t epoch;              /* number of the call that opened it: oriel_site's */
    uint32_t disp_unit;          /* 0: it is larger */
    uint64_t size_bytes;
    uint64_t easy_disps; /* displacements below this have a cell's bytes before the end */
    oriel_shm_offset history;
    struct oriel_history_ground ground;
    struct oriel_words *words; /* NULL: there are none yet */
    const char
        *memory; /* the member's, as this process has it, from creation on; NULL: it is not known */
};

/* What oriel_window_conflict gets as its closure. */
struct oriel_conflict_place {
    const struct oriel_checked *window;
    int32_t target;
};

struct oriel_checked {
    pthread_mutex_t mutex; /* epochs, tickets, late words */
    MPI_Win win;
    MPI_Group group;
    uint64_t id;
    int32_t n;
    int32_t rank;
    enum oriel_check_flavour flavour;
    uint64_t promises;
    bool here;    /* all members are on this machine: common is there */
    bool ordered; /* order is known of all members: accesses are compared */
    const void *base;
    struct oriel_checked_member *members;
    struct oriel_epochs epochs;
    struct oriel_window_shared *common;
    struct oriel_member_states *notes; /* this machine's; NULL: nothing is asked of other members */
    struct oriel_collective_progress *gathering; /* NULL: waits on it are not noted */
    struct oriel_attached_list
        *attached; /* what else this process's loads and stores are watched in */
    struct oriel_window_request *asked; /* operations with requests that are open */
    uint8_t *touched;                   /* of each member: what of this process is pending there */
    bool touched_any;
    uint32_t touched_histories; /* members whose history holds pending accesses of this process */
    oriel_local_group *buffers; /* of operations on each member that have no request */
    uint64_t *holds;            /* tickets of locks; [n]: of lock_all */
    uint32_t *started;          /* epochs to each member, posts of which are taken */
    uint32_t *posted;           /* epochs to each member as origin */
    uint64_t *
        unpromised; /* the last epoch to each member, of which it has not promised that nobody puts */
    uint8_t *untaken; /* members whose post was not there yet at start */
    int32_t *spare;   /* room for the ranks of a group, where there is no memory for them */
    _Atomic bool spare_taken;
    uint8_t *lazy; /* members whose lock by MPI_Win_lock_all may not be held yet */
    struct oriel_late_word
        late[ORIEL_LATE_WORDS]; /* words that fetching accumulates may have read later */
    uint32_t late_count;
    bool late_more;           /* than there is room for */
    int32_t late_more_target; /* whose they all are; -1: of several */
    bool threaded;            /* MPI_THREAD_MULTIPLE: the mutex is needed */
    bool
        prompt; /* one rank's, or served by Oriel on one machine: operations are done when they return */
    oriel_shm_offset since; /* the moment before the last synchronisation gave its clock; 0: none */
    bool all_unchecked;     /* MPI_Win_lock_all had MPI_MODE_NOCHECK */
    bool known_all;         /* every exclusive lock's entry was taken once for lock_all */
    struct oriel_conflict_place *places; /* the members, for oriel_window_conflict */
    struct oriel_window_target *ways;    /* to each member */
    struct oriel_checked *next_kept;     /* of those that are freed and stay */
};

/* Another number after each change of the windows that there are, or of their promises. */
extern _Atomic uint64_t oriel_checked_version __attribute__((visibility("hidden")));

/* The window that this thread has asked for last. */
struct oriel_checked_last {
    uint64_t version;
    MPI_Win win;
    struct oriel_checked *window;
};
extern _Thread_local struct oriel_checked_last oriel_checked_last
    __attribute__((visibility("hidden")));
void oriel_checked_look(MPI_Win win, uint64_t version);

/* The window of the handle, NULL when the checker does not know it. */
static inline struct oriel_checked *oriel_checked_find(MPI_Win win)
{
    uint64_t version = atomic_load_explicit(&oriel_checked_version, memory_order_acquire);
    if (__builtin_expect(oriel_checked_last.version != version || oriel_checked_last.win != win, 0))
        oriel_checked_look(win, version);
    return oriel_checked_last.window;
}

/* The site of a call by the program. */
struct oriel_site oriel_site_make(const void *address, enum oriel_call call);

/* The same of one that opens an epoch: epoch is its own number, for the sites of what follows. */
struct oriel_site oriel_site_opening(const void *address, enum oriel_call call);

/* --- findings about a window --- */

/* A finding about it, with its name and flavour filled in; the name lives as long as the text given. */
void oriel_window_tell(const struct oriel_checked *window, struct oriel_finding *finding,
                       const struct oriel_site *here);

/* Begins to note a wait for what others do with the window (oriel_wait_open), with its name. */
bool oriel_window_wait_open(const struct oriel_checked *window, const struct oriel_site *site);

/* The bytes, with the elements that they are at that target. */
void oriel_window_place(const struct oriel_checked *window, struct oriel_finding *finding,
                        int32_t target, int64_t offset, uint64_t len_bytes);

/* --- going on after a finding --- */

/* A fatal error handler of the window is replaced by MPI_ERRORS_RETURN until the end, which returns what the program shall get
 * for the call's code. */
struct oriel_quiet {
    MPI_Win win;
    MPI_Errhandler saved;
    bool quiet;
};
void oriel_quiet_begin(struct oriel_quiet *quiet, MPI_Win win);
int oriel_quiet_end(struct oriel_quiet *quiet, int code);

/* --- order and histories --- */

/* A key of this window. */
struct oriel_key oriel_window_key(const struct oriel_checked *window, enum oriel_order_kind kind,
                                  uint64_t first, uint64_t second);

/* Made unless another process has done so first; with common. */
oriel_shm_offset oriel_window_make_history(const struct oriel_checked *window, int32_t target);
oriel_shm_offset oriel_window_make_words(const struct oriel_checked *window, int32_t target);

static inline oriel_shm_offset oriel_window_made(const oriel_shm_offset *place)
{
    return atomic_load_explicit((const _Atomic oriel_shm_offset *)place, memory_order_acquire);
}

/* The history of a member's memory (history_proxy.h), made when first wanted; 0: there is none, the board is full. */
static inline oriel_shm_offset oriel_window_history(const struct oriel_checked *window,
                                                    int32_t target)
{
    if (!window->ordered)
        return 0;
    if (window->common == NULL)
        return window->members[target].part;
    oriel_shm_offset made = oriel_window_made(&window->common->shares[target].history);
    return made != 0 ? made : oriel_window_make_history(window, target);
}

/* The words of a member's memory, likewise; 0 also for windows over several machines. */
static inline oriel_shm_offset oriel_window_words(const struct oriel_checked *window,
                                                  int32_t target)
{
    if (window->common == NULL)
        return 0;
    oriel_shm_offset made = oriel_window_made(&window->common->shares[target].words);
    return made != 0 ? made : oriel_window_make_words(window, target);
}

/* Operations on the target (-1: on all) are complete, and their buffers in windows' memory free: before the call that completes
 * them.  oriel_window_completed follows behind the call, for the other buffers. */
void oriel_window_complete(struct oriel_checked *window, int32_t target);
void oriel_window_completed(struct oriel_checked *window, int32_t target);

/* The same of one target, in a window with order. */
void oriel_window_complete_target(struct oriel_checked *window, int32_t target);
void oriel_window_completed_target(struct oriel_checked *window, int32_t target);

/* What operations on the target (-1: on all) have fetched is there by now, so that what its words gave until now is taken.  ends:
 * all of them are complete, and read nothing later. */
void oriel_window_take_late(struct oriel_checked *window, int32_t target, bool ends);

/* The host or Oriel has refused an operation on the target, which was right as far as could be seen: nobody knows what of it, and
 * of those before it, has happened, and what is left is blamed for nothing. */
void oriel_window_refused(struct oriel_checked *window, int32_t target);

/* Takes the posts of the last start as far as they are there: of one target, waiting for it, or of all that are there. */
void oriel_window_take_post(struct oriel_checked *window, int32_t target,
                            const struct oriel_site *site);
void oriel_window_take_posts(struct oriel_checked *window);

/* Waits until the target's lock is held, by reading a byte of it that there is, and takes it. */
void oriel_window_take_lazy_lock(struct oriel_checked *window, int32_t target,
                                 MPI_Aint target_disp);

bool oriel_start_on_this_machine(int32_t world_rank);

/* Whether a member is, or over several machines may be, no longer checked (callback_scope.h). */
bool oriel_window_has_left(const struct oriel_checked *window);

/* Asks what stands on that member's machine; false: nobody knows. */
bool oriel_window_ask(const struct oriel_checked *window, int32_t member,
                      const struct oriel_member_state_ask *ask,
                      struct oriel_member_state_answer *answer);

/* The conflict of two accesses to a member's memory: closure is a struct oriel_conflict_place. */
void oriel_window_conflict(const struct oriel_conflict *conflict, void *closure);

/* Order by an atomic instruction of the program on a member's memory: oriel_atomic_fn, with a struct oriel_conflict_place. */
void oriel_window_order_atomic(void *closure, int64_t offset, bool gives);

/* A conflict of accesses to this process's own memory outside windows: offsets are addresses. */
void oriel_buffer_conflict(const struct oriel_conflict *conflict, void *closure);

/* --- start and end (start.c) --- */

bool oriel_start_reaches_all(void);
bool oriel_start_is_threaded(void);

/* MPI_Finalize is about to be passed on: what windows there still are. */
void oriel_windows_finalise(const struct oriel_site *site);

#endif
