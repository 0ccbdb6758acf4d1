/* The program's windows as the checker knows them: what each member passed to the creation, the
 * state of this process's epochs, and the part in shared memory that all members use. An entry
 * exists from after the window's creation until before its end. A thread may use an entry that it
 * has found as long as MPI allows it to use the window. */
#ifndef ORIEL_CHECK_WINDOW_CHECKED_WINDOW_H
#define ORIEL_CHECK_WINDOW_CHECKED_WINDOW_H

#include "check/deadlock/wait_records.h"
#include "check/local/local_accesses.h"
#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/report/call_sites.h"
#include "check/window/epoch_rules.h"
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

/* What each member sends to the others at creation. */
struct oriel_checked_member {
    uint64_t id; /* the first member counts windows: the window's id */
    int64_t size_bytes;
    int64_t disp_unit;
    uint64_t promises;
    uint32_t world_rank;
    uint32_t flavour;
    /* in a window over several nodes: the history of this member's memory (history_proxy.h); 0:
     * none */
    uint64_t part;
    uint64_t locks;         /* likewise, of the first member: the history of the held locks */
    uint64_t notifications; /* number of its counters of notifications */
    struct oriel_site site;
};

/* One member's part of the shared data. */
struct oriel_share {
    /* of the accesses to this member's memory; 0 before the first access */
    oriel_shm_offset history;
    oriel_shm_offset words; /* word clocks of that memory; likewise */
    int32_t pid;            /* 0: the member has no entry yet */
    int32_t device;         /* the GPU of that memory, or -1 */
    /* 1 more than the last of the counts below that this member has incremented, in order to meet
     * all others */
    _Atomic uint32_t met;
};

/* Counts that members increment while the window is freed. */
enum oriel_ending_count {
    ORIEL_ENDING_ARRIVED, /* in MPI_Win_free */
    ORIEL_ENDING_NEEDS_FENCE,
    ORIEL_ENDING_STUCK, /* epochs that could not be ended */
    ORIEL_ENDING_SETTLED,
    ORIEL_ENDING_LEFT, /* this data is no longer needed */
    ORIEL_ENDING_LENT, /* memory handles that were made, before the end */
    ORIEL_ENDING_COUNTS,
};

/* Data that all members of a window on one node share; in the checker's shared memory. */
struct oriel_window_shared {
    _Atomic uint32_t counts[ORIEL_ENDING_COUNTS];
    _Atomic uint32_t locked_all; /* MPI_Win_lock_all was used */
    _Atomic uint32_t bulk;       /* accumulates of many elements were used */
    oriel_shm_offset locks;      /* history of the held locks: a member is a byte */
    struct oriel_share shares[];
};

enum { ORIEL_LATE_WORDS = 16 };

struct oriel_late_word {
    int32_t target;
    int64_t offset;
};

/* Of a window that was opened from a memory handle: whose memory it is. Such a window has one
 * target. Its lock and the words of its memory have the keys of the owner's window, and offsets in
 * the history are those there. */
struct oriel_opened {
    uint64_t owner_id; /* of the owner's window; 0: this window was not opened */
    int32_t owner_n, owner_rank;
    uint32_t first_world_rank; /* of rank 0 there */
    int64_t owner_size_bytes;
    int64_t from;           /* offset of the part */
    oriel_shm_offset words; /* 0: under keys */
    bool has_remote_words;  /* the keys lead to words on the owner's node */
};

struct oriel_attached_list;
struct oriel_notified;
struct oriel_window_request;
struct oriel_text_format;

/* What a small operation on a member needs to know of it; filled by callsite_cache.c. One cache
 * line. */
struct oriel_window_target {
    _Alignas(64) uint64_t ready; /* valid as long as this equals oriel_check_changes */
    uint32_t epoch;              /* number of the call that opened the epoch: oriel_site's */
    uint32_t disp_unit;          /* 0: it does not fit */
    uint64_t size_bytes;
    uint64_t easy_disps; /* displacements below this leave room for a whole cell before the end */
    oriel_shm_offset history;
    struct oriel_history_ground ground;
    struct oriel_text_format *words; /* NULL: none yet */
    /* the member's memory as mapped in this process, set at creation; NULL: not known */
    const char *memory;
};

/* Closure of oriel_window_conflict. */
struct oriel_conflict_place {
    const struct oriel_checked *window;
    int32_t target;
};

struct oriel_checked {
    pthread_mutex_t mutex; /* epochs, tickets, late words */
    MPI_Win win;
    MPI_Group group;
    uint64_t id;
    struct oriel_opened opened;
    int32_t n;
    int32_t rank; /* n in an opened window: members has this process after the targets */
    enum oriel_check_flavour flavour;
    uint64_t promises;
    bool here;    /* all members are on this node: common is used */
    bool ordered; /* the order of all members is known: accesses are compared */
    const void *base;
    struct oriel_checked_member *members;
    struct oriel_epochs epochs;
    struct oriel_window_shared *common;
    /* of this node; NULL: other members are not asked for anything */
    struct oriel_member_states *notes;
    struct oriel_collective_progress *progress; /* NULL: waits on the window are not recorded */
    /* other memory in which this process's loads and stores are watched */
    struct oriel_attached_list *attached;
    struct oriel_window_request *asked; /* unfinished operations with requests */
    struct oriel_thread_debts *debts;
    struct oriel_notified *notified; /* notifications given and taken; NULL: none */
    bool lends;                      /* this process has made memory handles of it */
    uint8_t *touched;                /* for each member: enum oriel_touched of this process */
    bool touched_any;
    uint32_t touched_histories; /* members whose history has outstanding accesses of this process */
    oriel_local_group *buffers; /* of operations without a request, for each member */
    uint64_t *holds;            /* tickets of locks; [n]: of lock_all */
    uint32_t *started;          /* epochs to each member whose posts are taken */
    uint32_t *posted;           /* epochs to each member as origin */
    /* the last epoch to each member for which that member has not promised MPI_MODE_NOPUT */
    uint64_t *unpromised;
    uint8_t *untaken; /* members whose post had not arrived at the start */
    int32_t *spare;   /* room for the ranks of a group where allocation fails */
    _Atomic bool spare_taken;
    uint8_t *lazy; /* members whose lock by MPI_Win_lock_all may not be acquired yet */
    /* words that fetching accumulates may have read later */
    struct oriel_late_word late[ORIEL_LATE_WORDS];
    uint32_t late_count;
    bool late_more;           /* more than there is room for */
    int32_t late_more_target; /* the target of all of them; -1: several targets */
    bool threaded;            /* MPI_THREAD_MULTIPLE: the mutex is needed */
    /* one rank only, or served by Oriel on one node: operations are complete when they return */
    bool prompt;
    /* the clock snapshot from before the last synchronisation gave its clock; 0: none */
    oriel_shm_offset since;
    bool all_unchecked; /* MPI_Win_lock_all had MPI_MODE_NOCHECK */
    bool known_all;     /* the entries of all exclusive locks were taken once for lock_all */
    struct oriel_conflict_place *places; /* the members, as closures of oriel_window_conflict */
    struct oriel_window_target *paths;   /* to each member */
    struct oriel_checked *next_kept;     /* list of windows that are freed but stay allocated */
};

/* Changes with each change of the set of windows, or of their promises. */
extern _Atomic uint64_t oriel_checked_version __attribute__((visibility("hidden")));

/* The last window that this thread has looked up. */
struct oriel_checked_last {
    uint64_t version;
    MPI_Win win;
    struct oriel_checked *window;
};
extern _Thread_local struct oriel_checked_last oriel_checked_last
    __attribute__((visibility("hidden")));
void oriel_checked_look(MPI_Win win, uint64_t version);

/* The window of the handle; NULL: the checker does not know it. */
static inline struct oriel_checked *oriel_checked_find(MPI_Win win)
{
    uint64_t version = atomic_load_explicit(&oriel_checked_version, memory_order_acquire);
    if (__builtin_expect(oriel_checked_last.version != version || oriel_checked_last.win != win, 0))
        oriel_checked_look(win, version);
    return oriel_checked_last.window;
}

/* The site of a call of the program. */
struct oriel_site oriel_site_make(const void *address, enum oriel_call call);

/* The same for a call that opens an epoch: `epoch` is its own number, for the sites of the
 * operations in that epoch. */
struct oriel_site oriel_site_opening(const void *address, enum oriel_call call);

/* --- findings about a window --- */

/* Reports a finding about the window, and fills in its name and flavour. */
void oriel_window_report(const struct oriel_checked *window, struct oriel_finding *finding,
                         const struct oriel_site *here);

/* Opens the record of a wait for other members (oriel_wait_open), with the window's name. */
bool oriel_window_wait_open(const struct oriel_checked *window, const struct oriel_site *site,
                            enum oriel_wait_mode mode);

/* Records a wait of the call for one need; oriel_wait_done ends it. */
bool oriel_window_wait(const struct oriel_checked *window, const struct oriel_wait_need *need,
                       const void *address, enum oriel_call call);

/* Fills in the bytes, and the elements that they are at that target. */
void oriel_window_place(const struct oriel_checked *window, struct oriel_finding *finding,
                        int32_t target, int64_t offset, uint64_t len_bytes);

/* --- going on after a finding --- */

/* Replaces a fatal error handler of the window by MPI_ERRORS_RETURN until oriel_quiet_end, which
 * returns the code for the program. */
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

/* Creates it unless another process has done so first. Requires common. */
oriel_shm_offset oriel_window_make_history(const struct oriel_checked *window, int32_t target);
oriel_shm_offset oriel_window_make_words(const struct oriel_checked *window, int32_t target);

static inline oriel_shm_offset oriel_window_made(const oriel_shm_offset *place)
{
    return atomic_load_explicit((const _Atomic oriel_shm_offset *)place, memory_order_acquire);
}

/* The history of a member's memory (history_proxy.h), created on first use; 0: none, shared memory
 * is full. */
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

/* The words of a member's memory, likewise; 0 also for windows over several nodes. */
static inline oriel_shm_offset oriel_window_words(const struct oriel_checked *window,
                                                  int32_t target)
{
    if (window->common == NULL)
        return window->opened.words;
    oriel_shm_offset made = oriel_window_made(&window->common->shares[target].words);
    return made != 0 ? made : oriel_window_make_words(window, target);
}

/* Completes the operations on the target (-1: all targets), and releases their buffers in window
 * memory. Before the call that completes them; oriel_window_completed follows after the call, for
 * the other buffers. */
void oriel_window_complete(struct oriel_checked *window, int32_t target);
void oriel_window_completed(struct oriel_checked *window, int32_t target);

/* The same for one target of a window with order. */
void oriel_window_complete_target(struct oriel_checked *window, int32_t target);
void oriel_window_completed_target(struct oriel_checked *window, int32_t target);

/* Completes the operations without requests on the target for processes that know of it. Their
 * buffers are still in use. Of a window with order. */
void oriel_window_complete_for_target(struct oriel_checked *window, int32_t target);

/* Operations on the target (-1: all targets) have fetched by now: takes the clocks that their words
 * have received so far. ends: they are complete and read nothing later. */
void oriel_window_take_late(struct oriel_checked *window, int32_t target, bool ends);

/* The host or Oriel has refused an operation on the target that looked right. Its effect, and that
 * of earlier operations, is unknown: all of them count as complete, so they cause no finding. */
void oriel_window_refused(struct oriel_checked *window, int32_t target);

/* Takes the posts of the last start: the one of a target, for which it waits, or all that have
 * arrived. */
void oriel_window_take_post(struct oriel_checked *window, int32_t target,
                            const struct oriel_site *site);
void oriel_window_take_posts(struct oriel_checked *window);

/* Waits until the target's lock is acquired, by a read of one existing byte of the target, and
 * takes its clock. */
void oriel_window_take_lazy_lock(struct oriel_checked *window, int32_t target,
                                 MPI_Aint target_disp);

bool oriel_rank_is_on_this_node(int32_t world_rank);

/* Whether a member is no longer checked (callback_scope.h). Over several nodes true also where only
 * some rank of the job is. */
bool oriel_window_has_left(const struct oriel_checked *window);

/* Asks the member's node about member states; false: no answer. */
bool oriel_window_ask(const struct oriel_checked *window, int32_t member,
                      const struct oriel_member_state_ask *ask,
                      struct oriel_member_state_answer *answer);

/* Reports a conflict of two accesses to a member's memory; closure: struct oriel_conflict_place. */
void oriel_window_conflict(const struct oriel_conflict *conflict, void *closure);

/* Order by an atomic instruction of the program on a member's memory: an oriel_atomic_fn; closure:
 * struct oriel_conflict_place. */
void oriel_window_order_atomic(void *closure, int64_t offset, bool gives);

/* Reports a conflict of accesses to this process's own memory outside windows; offsets are
 * addresses. */
void oriel_buffer_conflict(const struct oriel_conflict *conflict, void *closure);

/* --- start and end (checker_start.c) --- */

bool oriel_start_reaches_all_nodes(void);
bool oriel_start_is_threaded(void);

/* Before MPI_Finalize is passed on: reports the windows that are left. */
void oriel_windows_finalise(const struct oriel_site *site);

#endif
