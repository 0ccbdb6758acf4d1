/* What notified access is for (include/oriel/ext.h): a word for a rank that waits for it, and the
 * exchange of halos with 26 neighbours in a periodic grid of ranks. Each by notified puts, and by
 * what MPI has: post-start-complete-wait, fence, and messages. Hosts have no notified puts; their
 * time for that pattern is that of messages, their fastest way. The ranks keep pace, and check what
 * arrived in every step. timing.c drives the table at the end. */
#include "rma.h"

#include "oriel/ext.h"

#include <string.h>

enum { SIDES = 3, NEIGHBOURS = SIDES * SIDES * SIDES - 1, TURNS = 2 };

static uint64_t value_of(const struct rma_run *run, int rank, uint64_t operation)
{
    return data_word(rma_origin_seed(run, rank), 0) + operation;
}

static void word_store(char *at, uint64_t value)
{
    memcpy(at, &value, sizeof value);
}

static uint64_t word_load(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* Notified puts need an epoch: one for the whole pattern. */
static void epoch_open(struct rma_run *run)
{
    MPI_Win_lock_all(0, run->win);
}

static void epoch_close(struct rma_run *run)
{
    MPI_Win_unlock_all(run->win);
}

/* ---- a word for a rank that waits ----
 * Operation k is from rank k % 2 to the other one of ranks 0 and 1. A batch begins before the word
 * of the last one is checked: words alternate. */

static size_t word_of(const struct rma_run *run)
{
    return run->batch % 2 * sizeof(uint64_t);
}

static void word_expect(struct rma_run *run, int from)
{
    run->wrong |= word_load(run->mine + word_of(run)) != value_of(run, from, run->done);
}

static void pass_by_messages(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; run->rank < 2 && i < count; i++, run->done++) {
        const int from = (int)(run->done % 2), to = 1 - from;
        if (run->rank == from) {
            word_store(run->buffer, value_of(run, from, run->done));
            MPI_Send(run->buffer, 1, MPI_UINT64_T, to, 0, MPI_COMM_WORLD);
        } else {
            MPI_Recv(run->mine + word_of(run), 1, MPI_UINT64_T, from, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            word_expect(run, from);
        }
    }
}

/* The flush, which makes the buffer reusable, is in the time in which the other rank works. */
static void pass_notified(struct rma_run *run, uint64_t count)
{
    if (!MPIX_Query_oriel()) {
        pass_by_messages(run, count);
        return;
    }
    for (uint64_t i = 0; run->rank < 2 && i < count; i++, run->done++) {
        const int from = (int)(run->done % 2), to = 1 - from;
        if (run->rank == from) {
            word_store(run->buffer, value_of(run, from, run->done));
            MPIX_Put_notify(run->buffer, 1, MPI_UINT64_T, to,
                            run->begin[to] + (MPI_Aint)word_of(run), 1, MPI_UINT64_T, 0, run->win);
            MPI_Win_flush_local(to, run->win);
        } else {
            MPIX_Win_notify_wait(run->win, 0, 1);
            word_expect(run, from);
        }
    }
}

static void pair_open(struct rma_run *run)
{
    const int other = 1 - run->rank;
    if (run->rank < 2)
        run->to = rma_group_make(&other, 1);
}

/* A rank posts for the answer before it sends, so that the other one never waits for the post. */
static void pass_by_pscw(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; run->rank < 2 && i < count; i++, run->done++) {
        const int from = (int)(run->done % 2), to = 1 - from;
        if (run->rank == from) {
            word_store(run->buffer, value_of(run, from, run->done));
            if (i + 1 < count)
                MPI_Win_post(run->to, 0, run->win);
            MPI_Win_start(run->to, 0, run->win);
            MPI_Put(run->buffer, 1, MPI_UINT64_T, to, run->begin[to] + (MPI_Aint)word_of(run), 1,
                    MPI_UINT64_T, run->win);
            MPI_Win_complete(run->win);
        } else {
            if (i == 0)
                MPI_Win_post(run->to, 0, run->win);
            MPI_Win_wait(run->win);
            word_expect(run, from);
        }
    }
}

/* ---- halo exchange ----
 * A message in direction d has the slot d at its target. A neighbour may be one step ahead, also in
 * the next batch, but not two: slots and counters of even and odd steps differ. */

static struct {
    int to[NEIGHBOURS], from[NEIGHBOURS]; /* by direction */
    uint64_t step;                        /* all batches together */
} halo;

/* Direction d in each dimension: -1, 0 or 1. The one that is 0 in all is left out. */
static void offset_of(int direction, int offset[SIDES])
{
    int rest = direction < NEIGHBOURS / 2 ? direction : direction + 1;
    for (int side = 0; side < SIDES; side++, rest /= SIDES)
        offset[side] = rest % SIDES - 1;
}

static int rank_at(const int sizes[SIDES], int rank, const int offset[SIDES], int sign)
{
    int at = 0;
    for (int side = 0, scale = 1; side < SIDES; scale *= sizes[side++]) {
        const int here = rank / scale % sizes[side];
        at += (here + sign * offset[side] + sizes[side]) % sizes[side] * scale;
    }
    return at;
}

static void halo_open(struct rma_run *run)
{
    int sizes[SIDES] = {0}, offset[SIDES];
    MPI_Dims_create(run->ranks, SIDES, sizes);
    halo.step = 0;
    for (int d = 0; d < NEIGHBOURS; d++) {
        offset_of(d, offset);
        halo.to[d] = rank_at(sizes, run->rank, offset, 1);
        halo.from[d] = rank_at(sizes, run->rank, offset, -1);
    }
}

static void halo_open_notified(struct rma_run *run)
{
    halo_open(run);
    epoch_open(run);
}

/* The neighbours, each once; in small grids the rank itself is one. */
static void halo_open_pscw(struct rma_run *run)
{
    int ranks[NEIGHBOURS] = {0}, count = 0;
    halo_open(run);
    for (int d = 0; d < NEIGHBOURS; d++) {
        int known = 0;
        while (known < count && ranks[known] != halo.to[d])
            known++;
        ranks[known] = halo.to[d];
        count += known == count;
    }
    run->to = rma_group_make(ranks, count);
}

static void halo_open_fence(struct rma_run *run)
{
    halo_open(run);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, run->win);
}

static size_t halo_span(const struct rma_run *run)
{
    return TURNS * NEIGHBOURS * run->len_bytes;
}

static char *message_of(const struct rma_run *run, int direction)
{
    return run->buffer + (size_t)direction * run->len_bytes;
}

static size_t slot_of(const struct rma_run *run, int direction)
{
    return (size_t)(halo.step % TURNS * NEIGHBOURS + (uint64_t)direction) * run->len_bytes;
}

static int count_of(const struct rma_run *run)
{
    return (int)(run->len_bytes / sizeof(uint64_t));
}

static MPI_Aint disp_of(const struct rma_run *run, int direction)
{
    return run->begin[halo.to[direction]] + (MPI_Aint)slot_of(run, direction);
}

static void halo_prepare(struct rma_run *run)
{
    data_fill(run->buffer, NEIGHBOURS * run->len_bytes, rma_origin_seed(run, run->rank));
}

/* Each message of a step begins with a new word. */
static void halo_pack(struct rma_run *run)
{
    const uint64_t value = value_of(run, run->rank, run->done);
    for (int d = 0; d < NEIGHBOURS; d++)
        word_store(message_of(run, d), value + (uint64_t)d);
}

static void halo_arrived(struct rma_run *run)
{
    for (int d = 0; d < NEIGHBOURS; d++)
        run->wrong |= word_load(run->mine + slot_of(run, d)) !=
                      value_of(run, halo.from[d], run->done) + (uint64_t)d;
    run->done++;
    halo.step++;
}

/* All words of the last step's messages. */
static void halo_check(struct rma_run *run)
{
    const size_t word = sizeof(uint64_t);
    halo.step--;
    for (int d = 0; d < NEIGHBOURS; d++)
        run->wrong |=
            !data_holds_from(run->mine + slot_of(run, d) + word, (size_t)d * run->len_bytes + word,
                             run->len_bytes - word, rma_origin_seed(run, halo.from[d]));
    halo.step++;
}

static void halo_by_messages(struct rma_run *run, uint64_t count)
{
    /* MPICH declares the array so that gcc warns about MPI_STATUSES_IGNORE */
    MPI_Status *volatile no_statuses = MPI_STATUSES_IGNORE;
    for (uint64_t i = 0; i < count; i++) {
        halo_pack(run);
        for (int d = 0; d < NEIGHBOURS; d++)
            MPI_Irecv(run->mine + slot_of(run, d), count_of(run), MPI_UINT64_T, halo.from[d], d,
                      MPI_COMM_WORLD, &run->requests[d]);
        for (int d = 0; d < NEIGHBOURS; d++)
            MPI_Isend(message_of(run, d), count_of(run), MPI_UINT64_T, halo.to[d], d,
                      MPI_COMM_WORLD, &run->requests[NEIGHBOURS + d]);
        MPI_Waitall(2 * NEIGHBOURS, run->requests, no_statuses);
        halo_arrived(run);
    }
}

static void halo_notified(struct rma_run *run, uint64_t count)
{
    if (!MPIX_Query_oriel()) {
        halo_by_messages(run, count);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        const int turn = (int)(halo.step % TURNS);
        halo_pack(run);
        for (int d = 0; d < NEIGHBOURS; d++)
            MPIX_Put_notify(message_of(run, d), count_of(run), MPI_UINT64_T, halo.to[d],
                            disp_of(run, d), count_of(run), MPI_UINT64_T, turn, run->win);
        MPI_Win_flush_local_all(run->win);
        MPIX_Win_notify_wait(run->win, turn, NEIGHBOURS);
        halo_arrived(run);
    }
}

static void halo_put(struct rma_run *run)
{
    for (int d = 0; d < NEIGHBOURS; d++)
        MPI_Put(message_of(run, d), count_of(run), MPI_UINT64_T, halo.to[d], disp_of(run, d),
                count_of(run), MPI_UINT64_T, run->win);
}

static void halo_by_pscw(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        halo_pack(run);
        MPI_Win_post(run->to, 0, run->win);
        MPI_Win_start(run->to, 0, run->win);
        halo_put(run);
        MPI_Win_complete(run->win);
        MPI_Win_wait(run->win);
        halo_arrived(run);
    }
}

static void halo_by_fence(struct rma_run *run, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        halo_pack(run);
        halo_put(run);
        MPI_Win_fence(0, run->win);
        halo_arrived(run);
    }
}

#define PASS(its_name, its_setup, its_finish, its_repeat, its_counters)                            \
    {                                                                                              \
        .name = its_name, .kind = RMA_ACTIVE, .setup = its_setup, .finish = its_finish,            \
        .repeat = its_repeat, .counters = its_counters                                             \
    }
#define HALO(its_name, its_setup, its_finish, its_repeat, its_counters)                            \
    {                                                                                              \
        .name = its_name, .kind = RMA_ACTIVE, .span = halo_span, .setup = its_setup,               \
        .finish = its_finish, .prepare = halo_prepare, .repeat = its_repeat, .check = halo_check,  \
        .counters = its_counters                                                                   \
    }

const struct rma_pattern rma_notified[] = {
    PASS("pass-notified", epoch_open, epoch_close, pass_notified, 1),
    PASS("pass-pscw", pair_open, NULL, pass_by_pscw, 0),
    HALO("halo-notified", halo_open_notified, epoch_close, halo_notified, TURNS),
    HALO("halo-pscw", halo_open_pscw, NULL, halo_by_pscw, 0),
    HALO("halo-fence", halo_open_fence, NULL, halo_by_fence, 0),
    {0},
};
