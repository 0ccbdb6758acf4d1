/* Interactions of processes without MPI: barriers with a counter, flags around a ring, contended
 * locks and additions. They are the limits of active epochs, of contended locks and of the hot
 * word. A team is forked for each loop and starts together, when all processes are ready. A waiting
 * process spins for a while and then yields. Barriers also exist for processes in a session each.
 * The scheduler may group processes by session, and then a yield gives the processor to no other
 * process. Some launchers create such sessions. raw.c drives the table at the end. */
#define _GNU_SOURCE
#include "raw.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schedule.h"

enum { LOOKS = 200, LINE_BYTES = 64 };

/* A word on its own cache line. */
struct line {
    _Alignas(LINE_BYTES) _Atomic uint64_t word;
};

/* In pages that all processes share; words count from the beginning of a batch. */
struct team {
    /* of the loop: processes ready, start, end, total number of operations */
    struct line arrived, go, stop, done;
    _Alignas(LINE_BYTES) _Atomic uint32_t opened; /* number of openings of the sleeping barrier */
    struct line counter; /* the barrier, and the lock word of the contended locks */
    struct line value;   /* the data that locks protect, and the hot word */
    struct line posted[RAW_RANKS], completed[RAW_RANKS]; /* flags that others raise for this rank */
    struct line slot[RAW_RANKS];                         /* written by the left neighbour */
    _Atomic uint64_t from[RAW_RANKS][RAW_RANKS];         /* [to][from]: written by rank `from` */
};

struct member {
    struct team *team;
    int rank, ranks;
    uint64_t batch, first; /* number of the first operation */
    bool wrong;
};

static size_t span(const struct raw_run *run)
{
    (void)run;
    return sizeof(struct team);
}

static void prepare(struct raw_run *run)
{
    memset(run->to, 0, sizeof(struct team));
}

static uint64_t word_load(struct line *line)
{
    return atomic_load_explicit(&line->word, memory_order_acquire);
}

static void word_store(struct line *line, uint64_t value)
{
    atomic_store_explicit(&line->word, value, memory_order_release);
}

static void wait_for(struct line *line, uint64_t least)
{
    for (int looks = 0; word_load(line) < least; looks++)
        if (looks >= LOOKS)
            sched_yield();
}

static int right_of(const struct member *me)
{
    return (me->rank + 1) % me->ranks;
}

static int left_of(const struct member *me)
{
    return (me->rank + me->ranks - 1) % me->ranks;
}

static uint64_t value_of(const struct member *me, int rank, uint64_t operation)
{
    return (me->batch * RAW_RANKS + (uint64_t)rank) * UINT64_C(0x9e3779b97f4a7c15) + operation;
}

static void put_right(const struct member *me, uint64_t operation)
{
    atomic_store_explicit(&me->team->slot[right_of(me)].word, value_of(me, me->rank, operation),
                          memory_order_relaxed);
}

static void expect_left(struct member *me, uint64_t operation)
{
    me->wrong |= word_load(&me->team->slot[me->rank]) != value_of(me, left_of(me), operation);
}

/* ---- loops in which all processes advance together: `count` operations each ---- */

/* One word that only grows: the others wait for the last arrival.  The flags of two processes are
 * as fast on one line and slower on two; a second word for waiting costs another exchange of cache
 * lines. */
static void barrier_spin(const struct member *me, uint64_t round)
{
    struct line *counter = &me->team->counter;
    const uint64_t all = (round + 1) * (uint64_t)me->ranks;
    if (atomic_fetch_add(&counter->word, 1) + 1 != all)
        wait_for(counter, all);
}

static void barrier(struct member *me, uint64_t count)
{
    for (uint64_t k = me->first; k < me->first + count; k++)
        barrier_spin(me, k);
}

/* The same with waiters that sleep at once; the last process wakes all. */
static void barrier_asleep(struct member *me, uint64_t count)
{
    struct line *counter = &me->team->counter;
    _Atomic uint32_t *opened = &me->team->opened;
    for (uint64_t k = me->first; k < me->first + count; k++) {
        if (atomic_fetch_add(&counter->word, 1) + 1 == (k + 1) * (uint64_t)me->ranks) {
            atomic_store(opened, (uint32_t)k + 1);
            syscall(SYS_futex, opened, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        }
        for (uint32_t now; (now = atomic_load(opened)) != (uint32_t)k + 1;)
            syscall(SYS_futex, opened, FUTEX_WAIT, now, NULL, NULL, 0);
    }
}

/* The neighbour's next put must not overwrite this one before it is checked: slots alternate, as in
 * the pattern. */
static void barrier_put(struct member *me, uint64_t count)
{
    struct team *team = me->team;
    for (uint64_t k = me->first; k < me->first + count; k++) {
        const int row = (int)(k % 2);
        atomic_store_explicit(&team->from[right_of(me)][row], value_of(me, me->rank, k),
                              memory_order_relaxed);
        barrier_spin(me, k);
        me->wrong |= atomic_load_explicit(&team->from[me->rank][row], memory_order_relaxed) !=
                     value_of(me, left_of(me), k);
    }
}

/* Rank 1 signals that it is ready; rank 0 puts and signals that. */
static void pair_handshake(struct member *me, uint64_t count)
{
    struct team *team = me->team;
    for (uint64_t k = me->first; k < me->first + count; k++) {
        if (me->rank == 0) {
            wait_for(&team->posted[0], k + 1);
            put_right(me, k);
            word_store(&team->completed[1], k + 1);
        } else {
            word_store(&team->posted[0], k + 1);
            wait_for(&team->completed[1], k + 1);
            expect_left(me, k);
        }
    }
}

/* Two processes: operation k is from process k % 2 to the other, which waits. */
static void pass(struct member *me, uint64_t count)
{
    struct team *team = me->team;
    for (uint64_t k = me->first; k < me->first + count; k++) {
        if (me->rank == (int)(k % 2)) {
            put_right(me, k);
            word_store(&team->completed[right_of(me)], k + 1);
        } else {
            wait_for(&team->completed[me->rank], k + 1);
            expect_left(me, k);
        }
    }
}

static void ring(struct member *me, uint64_t count)
{
    struct team *team = me->team;
    for (uint64_t k = me->first; k < me->first + count; k++) {
        word_store(&team->posted[left_of(me)], k + 1);
        wait_for(&team->posted[me->rank], k + 1);
        put_right(me, k);
        word_store(&team->completed[right_of(me)], k + 1);
        wait_for(&team->completed[me->rank], k + 1);
        expect_left(me, k);
    }
}

static void all_to_all(struct member *me, uint64_t count)
{
    struct team *team = me->team;
    const uint64_t others = (uint64_t)me->ranks - 1;
    for (uint64_t k = me->first; k < me->first + count; k++) {
        for (int to = 0; to < me->ranks; to++)
            if (to != me->rank)
                atomic_fetch_add(&team->posted[to].word, 1);
        wait_for(&team->posted[me->rank], (k + 1) * others);
        for (int step = 1; step < me->ranks; step++) {
            const int to = (me->rank + step) % me->ranks;
            atomic_store_explicit(&team->from[to][me->rank], value_of(me, me->rank, k),
                                  memory_order_relaxed);
            atomic_fetch_add(&team->completed[to].word, 1);
        }
        wait_for(&team->completed[me->rank], (k + 1) * others);
        for (int from = 0; from < me->ranks; from++)
            me->wrong |= from != me->rank &&
                         atomic_load_explicit(&team->from[me->rank][from], memory_order_relaxed) !=
                             value_of(me, from, k);
    }
}

/* ---- loops in which processes do not wait for each other to keep pace: one operation ---- */

static void hot_add(struct member *me, uint64_t k)
{
    (void)k;
    atomic_fetch_add(&me->team->value.word, 1);
}

/* Test, and test-and-set; the protected update is not an atomic instruction. */
static void lock_exclusive(struct member *me, uint64_t k)
{
    struct team *team = me->team;
    (void)k;
    while (atomic_exchange_explicit(&team->counter.word, 1, memory_order_acquire) != 0)
        for (int looks = 0; word_load(&team->counter) != 0; looks++)
            if (looks >= LOOKS)
                sched_yield();
    atomic_store_explicit(&team->value.word,
                          atomic_load_explicit(&team->value.word, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    word_store(&team->counter, 0);
}

static void lock_shared(struct member *me, uint64_t k)
{
    atomic_fetch_add(&me->team->counter.word, 1);
    atomic_store_explicit(&me->team->slot[me->rank].word, value_of(me, me->rank, k),
                          memory_order_relaxed);
    atomic_fetch_sub(&me->team->counter.word, 1);
}

/* To lock all ranks, a rank needs to change only its own word while no rank locks exclusively. */
static void lock_all(struct member *me, uint64_t k)
{
    atomic_fetch_add(&me->team->posted[me->rank].word, 1);
    put_right(me, k);
    atomic_fetch_sub(&me->team->posted[me->rank].word, 1);
}

/* Rank 0 does `count` operations, and then all stop. */
static void run_until_stopped(struct member *me, uint64_t count,
                              void (*one)(struct member *me, uint64_t k))
{
    struct team *team = me->team;
    uint64_t done = 0;
    while (me->rank == 0 ? done < count : word_load(&team->stop) == 0)
        one(me, me->first + done++);
    if (me->rank == 0)
        word_store(&team->stop, 1);
    atomic_fetch_add(&team->done.word, done);
}

/* ---- a team ---- */

static void work(struct member *me, const struct raw_operation *operation, uint64_t count)
{
    if (operation->one)
        run_until_stopped(me, count, operation->one);
    else
        operation->together(me, count);
}

static _Noreturn void partner(struct member *me, const struct raw_operation *operation,
                              uint64_t count)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    me->wrong |= operation->sessions && setsid() != getpid();
    atomic_fetch_add(&me->team->arrived.word, 1);
    wait_for(&me->team->go, 1);
    work(me, operation, count);
    _exit(me->wrong ? 1 : 0);
}

/* When processes do not keep pace, the time of one operation is the mean over all processes. */
static void team_work(struct raw_run *run, uint64_t count)
{
    struct team *team = (struct team *)(void *)run->to;
    struct member me = {.team = team, .ranks = run->ranks, .batch = run->batch, .first = run->done};
    const uint64_t before = word_load(&team->done);
    int partners = 0, status;

    word_store(&team->arrived, 0);
    word_store(&team->go, 0);
    word_store(&team->stop, 0);
    for (me.rank = 1; me.rank < me.ranks; me.rank++) {
        pid_t child = fork();
        if (child == 0)
            partner(&me, run->operation, count);
        partners += child > 0;
    }
    if (partners < run->ranks - 1)
        _exit(2); /* the others die with this process */
    wait_for(&team->arrived, (uint64_t)partners);
    me.rank = 0;
    const double start_s = schedule_clock_s();
    word_store(&team->go, 1);
    work(&me, run->operation, count);
    run->timed_s = schedule_clock_s() - start_s;
    for (; partners > 0; partners--)
        run->wrong |= wait(&status) < 0 || status != 0;
    if (run->operation->one)
        run->timed_s *=
            (double)run->ranks * (double)count / (double)(word_load(&team->done) - before);
    run->wrong |= me.wrong;
    run->done += count;
}

/* ---- checks of the final state ---- */

static struct team *seen(const struct raw_run *run)
{
    return (struct team *)(void *)run->seen;
}

static void barrier_check(struct raw_run *run)
{
    run->wrong |= word_load(&seen(run)->counter) != run->done * (uint64_t)run->ranks;
}

static void completed_check(struct raw_run *run)
{
    run->wrong |= word_load(&seen(run)->completed[1]) < run->done;
}

static void pass_check(struct raw_run *run)
{
    run->wrong |= word_load(&seen(run)->completed[run->done % 2]) < run->done;
}

/* The sum of all additions. */
static void sum_check(struct raw_run *run)
{
    run->wrong |= word_load(&seen(run)->value) != word_load(&seen(run)->done) ||
                  word_load(&seen(run)->counter) != 0;
}

/* Rank 0's last put has arrived, and no lock is held. */
static void put_check(struct raw_run *run, int slot)
{
    const struct member first = {.ranks = run->ranks, .batch = run->batch};
    run->wrong |= word_load(&seen(run)->slot[slot]) != value_of(&first, 0, run->done - 1) ||
                  word_load(&seen(run)->counter) != 0;
    for (int rank = 0; rank < run->ranks; rank++)
        run->wrong |= word_load(&seen(run)->posted[rank]) != 0;
}

static void own_check(struct raw_run *run)
{
    put_check(run, 0);
}

static void right_check(struct raw_run *run)
{
    put_check(run, 1);
}

#define TEAM(its_name, its_check, ...)                                                             \
    {                                                                                              \
        .name = its_name, .shared = true, .ranks_least = 2, .span = span, .prepare = prepare,      \
        .repeat = team_work, .check = its_check, __VA_ARGS__                                       \
    }

const struct raw_operation raw_teams[] = {
    TEAM("raw-barrier", barrier_check, .together = barrier),
    TEAM("raw-barrier-sessions", barrier_check, .together = barrier, .sessions = true),
    TEAM("raw-barrier-asleep", barrier_check, .together = barrier_asleep, .sessions = true),
    TEAM("raw-barrier-put", barrier_check, .together = barrier_put),
    TEAM("raw-pair", completed_check, .together = pair_handshake),
    TEAM("raw-pass", pass_check, .together = pass),
    TEAM("raw-ring", completed_check, .together = ring),
    TEAM("raw-ring-sessions", completed_check, .together = ring, .sessions = true),
    TEAM("raw-all", completed_check, .together = all_to_all),
    TEAM("raw-hot-atomic", sum_check, .one = hot_add),
    TEAM("raw-lock-contended", sum_check, .one = lock_exclusive),
    TEAM("raw-lock-contended-shared", own_check, .one = lock_shared),
    TEAM("raw-lock-all", right_check, .one = lock_all),
    {0},
};
