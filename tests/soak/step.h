/* A step: epochs of one window, or of two at once, planned by all members alike (plan.c, raw.c,
 * area.c) and executed (run.c, pscw.c, execute.c, settle.c).  A plan has phases; a later phase
 * knows everything written in an earlier one. Invariant of a phase: each byte that an operation
 * touches is in one of three classes. It is read only, or it belongs to one actor, or it is part of
 * an area whose operations may run in any order.  An actor is one thread of one rank; the plan
 * contains its operations in program order. */
#ifndef ORIEL_TESTS_SOAK_STEP_H
#define ORIEL_TESTS_SOAK_STEP_H

#include "soak.h"

#include "../../include/oriel/ext.h"

enum epoch { EPOCH_FENCE, EPOCH_PSCW, EPOCH_LOCK, EPOCH_LOCK_ALL };

/* The plans of a step: one, two that all threads execute in any interleaving, or two with a thread
 * each. */
enum company { COMPANY_NONE, COMPANY_MIXED, COMPANY_APART };

enum op_kind {
    OP_PUT,
    OP_GET,
    OP_ACCUMULATE,
    OP_GET_ACCUMULATE, /* in the order of operation_forms.h */
    OP_FETCH,
    OP_SWAP,
    OP_CAS_ADD,
    OP_GUARDED,
    OP_SIGNAL,
    OP_AWAIT,
    OP_STORE,
    OP_LOCK,
    OP_UNLOCK,
    OP_FLUSH,
    OP_FLUSH_ALL,
    OP_FLUSH_LOCAL,
    OP_FLUSH_LOCAL_ALL,
    OP_SYNC,
    OP_PAUSE,
    OP_COMPUTE,
    OP_FORK,
    OP_ATTACH,
    OP_SEND,
    OP_RECEIVE
};

struct side {
    const struct random_type *type;
    int count;
};

/* One argument's memory in the program, with guards. Only the bytes in wanted may change in it. */
struct buffer {
    unsigned char *bytes, *wanted;
    size_t len_bytes;
    MPI_Aint at; /* address of displacement 0 */
    bool alloc_mem;
    /* in a window, which compares it; of the other members only the address is valid then */
    bool inside;
};

struct op {
    enum op_kind kind;
    int phase, actor;
    int target, segment; /* a rank in the window, or MPI_PROC_NULL */
    MPI_Aint disp;       /* in units from the region's first byte */
    int form;            /* of operation_forms.h */
    bool persists;       /* its persistent form */
    int counter;         /* 1 more than the number of the counter that it notifies; 0: none */
    struct side origin, result, to;
    const struct test_op *operator; /* NULL: MPI_NO_OP */
    int area;                       /* or -1 */
    int assert;                     /* of a lock; its kind is in lock */
    int lock;
    size_t len_bytes; /* of stores */
    uint64_t value;   /* the operand of a contest's operation */
    bool free_types, result_open;
    /* of this rank: */
    struct buffer from, into, compare;
    bool settled;
    uint64_t fetched;
};

enum area_mode {
    AREA_SHARED,
    AREA_CHAIN,
    AREA_TICKET,
    AREA_SWAP,
    AREA_ELECT,
    AREA_CAS_ADD,
    AREA_GUARDED,
    AREA_SIGNAL,
    AREA_MODES
};

/* Elements of one type that only accumulates touch, except for guarded ones and data after a
 * flag. */
struct area {
    enum area_mode mode;
    const struct random_leaf *leaf;
    int rank, segment, elements;
    size_t offset;
    struct random_type
        variants[VARIANTS]; /* of the leaf, all elements on the grid; the first is the leaf */
    int phase;              /* of the members below, or -1 */
    const struct test_op *operator; /* of all actors, in AREA_SHARED */
    int actor;                      /* of AREA_CHAIN; the producer of AREA_SIGNAL */
    const struct test_op *last;     /* of AREA_CHAIN: the operator since the last flush */
    bool touched, swapped;          /* since then */
    int flush;
    int joined;          /* number of operations of contests, all phases */
    uint64_t start, sum; /* of those: the first value, and the sum of their operands */
};

struct store {
    struct region *region;
    size_t offset, len_bytes;
    unsigned char *bytes;
};

struct pool {
    struct random_signature signature;
    bool accumulates;
    struct random_type types[VARIANTS];
};

struct plan {
    struct soak_window *window;
    enum epoch epoch;
    int phases, phase;
    bool alone;          /* the only thread on it */
    int thread, threads; /* of each rank: the first of them, and their number */
    int hot;             /* the target that many actors lock */
    struct random random;
    struct op *ops;
    int op_count, op_room;
    struct area areas[AREAS_MOST];
    int area_count;
    struct store *stores; /* of this rank, before the first phase */
    int store_count, store_room;
    struct pool pools[SIGNATURES];
    bool access[PHASES_MOST][RANKS_MOST][RANKS_MOST]; /* EPOCH_PSCW: origin, target */
    bool written[PHASES_MOST][RANKS_MOST];
    bool stored[PHASES_MOST][RANKS_MOST];    /* by gets into the window's own memory */
    bool inside[PHASES_MOST][RANKS_MOST];    /* origin buffers in the window's own memory */
    int assert[PHASES_MOST + 1][RANKS_MOST]; /* of fences and posts */
    int start_assert[PHASES_MOST];
    int order[PHASES_MOST][RANKS_MOST]; /* EPOCH_PSCW: bits of pscw.c */
    uint16_t flushes[RANKS_MOST * THREADS_MOST][RANKS_MOST];
    size_t wide_bytes;  /* moved by transfers that may be long, by all actors */
    size_t tried_bytes; /* with those that found no location, which cost the same time */
};

static inline bool epoch_is_passive(enum epoch epoch)
{
    return epoch == EPOCH_LOCK || epoch == EPOCH_LOCK_ALL;
}
static inline int actor_of(const struct plan *plan, int rank, int thread)
{
    return plan->window->group->world[rank] * THREADS_MOST + thread;
}
static inline bool actor_is_here(int actor)
{
    return actor / THREADS_MOST == world_rank;
}
int actor_rank(const struct plan *plan, int actor); /* in the window's group */

/* step.c: one step, over windows drawn from shared. */
void step_random(struct random *shared);

/* plan.c */
struct plan *plan_make(struct soak_window *window, enum epoch epoch, int phases,
                       enum company company, int track, uint64_t number);
void plan_free(struct plan *plan);
int op_push(struct plan *plan, const struct op *op); /* its number, from 1 on */
struct region *op_region(const struct plan *plan, const struct op *op);
void op_flush(struct plan *plan, int actor, int target);
void store_note(struct plan *plan, struct region *region, size_t offset, size_t len_bytes);
/* Whether accumulates of the type have bitwise the same result everywhere: the padding of long
 * doubles is undefined. */
bool type_is_computed(const struct test_type *type);
void buffer_make(struct buffer *buffer, const struct side *side, struct random *random, bool here);
void buffer_free(struct buffer *buffer);
void buffer_want(struct buffer *buffer, const struct side *side, const unsigned char *packed);

/* raw.c: operations on bytes outside areas; false when none was found. */
bool raw_draw(struct plan *plan, int actor, int target);
bool store_draw(struct plan *plan, int actor, int target);
void null_draw(struct plan *plan, int actor);

/* area.c */
enum { ELEMENTS_MOST = 24 };
void area_make(struct plan *plan);
bool type_is_integer(const struct test_type *type);
uint64_t area_load(const struct area *area, const unsigned char *element);
static inline struct region *area_region(const struct plan *plan, const struct area *area)
{
    return &plan->window->regions[area->rank][area->segment];
}

/* update.c: operations on the target's areas; false when none was found. */
bool area_draw(struct plan *plan, int actor, int target, bool exclusive);
void area_single(const struct plan *plan, struct op *op, struct random *random, int *first);
void area_buffers(struct plan *plan, struct op *op, const unsigned char *operands,
                  const unsigned char *fetched);
enum count operator_count(const struct test_op *operator);

/* contest.c: operations whose results are known only as a set. */
bool contest_draw(struct plan *plan, struct op *op, bool exclusive);
void contests_settle(struct plan *plan);

/* run.c */
void plan_prepare(struct plan *plan);
void plan_open(struct plan *plan, int phase);
void plan_close(struct plan *plan, int phase);
void plan_compare(struct plan *plan);

/* pscw.c: the order of calls, drawn last, and the calls. */
void orders_draw(struct plan *plan);
void pscw_open(struct plan *plan, int phase);
void pscw_close(struct plan *plan, int phase);

/* notify.c: whether the operation notifies its target, the call, and the end of a phase. */
void notified_draw(struct plan *plan, struct op *op);
static inline bool op_notifies(const struct op *op)
{
    return op->counter != 0 && op->kind <= OP_ACCUMULATE && (op->form & 1) == 0;
}
struct arguments;
void notified_call(const struct op *op, const struct arguments *arguments, MPI_Win win);
void notifications_take(struct plan *plan, int phase);

/* execute.c: this rank's operations of a phase of all plans, by all its threads. */
struct execution *execution_run(struct plan **plans, int plan_count, int phase);
void execution_end(struct execution *execution); /* the epochs have ended, or all is flushed */

/* settle.c: outstanding operations and their requests. */
struct pending {
    struct plan *plan;
    struct random random;
    struct op **ops;
    MPI_Request *requests; /* parallel to ops */
    int count, room;
};
void pending_add(struct pending *pending, struct op *op, MPI_Request request);
enum { PENDING_ALL = -1000000 };
void pending_flushed(struct pending *pending, int target);
void pending_complete_some(struct pending *pending);
void pending_complete(struct pending *pending);
void pending_free(struct pending *pending);

/* extended.c: other forms of an operation that is planned, and their calls. */
void extended_draw(struct plan *plan, struct op *op);
void persistent_call(const struct op *op, const struct arguments *arguments, const void *compare,
                     MPI_Win win, struct random *random);
MPI_Request fetch_requested(const struct op *op, const struct arguments *arguments,
                            const void *compare, MPI_Win win);
/* Whether it waited for the flag, at its own rank. */
bool flag_await(const struct plan *plan, const struct op *op, MPI_Aint disp, struct random *random);

/* report_difference.c */
const char *op_text(const struct plan *plan, const struct op *op);
void buffer_check(const struct plan *plan, const struct op *op, const struct buffer *buffer,
                  const char *what);
void region_check(const struct plan *plan, int rank, int segment);

#endif
