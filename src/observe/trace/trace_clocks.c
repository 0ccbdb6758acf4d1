/* Each rank sends HELLO to rank 0 and then answers its messages: PING requests its time, KNOWN ends
 * the exchange with rank 0's result. At the end only the first ranks of other nodes do this again.
 * Rank 0 records, by its own clock, when a PING was sent and when the answer arrived. The answer's
 * time is estimated as the midpoint, plus or minus half the round trip.
 *
 * Messages are small and use MPI_COMM_WORLD while it has no messages of the program: in MPI_Init,
 * and in MPI_Finalize, where they have a tag that programs rarely use. */
#include "observe/trace/trace_clocks.h"

#include "base/log.h"
#include "base/options.h"
#include "base/wait.h"
#include "create/node_map.h"
#include "host/host.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
    TAG = 32501,
    ROUND_TRIPS = 500,
    TRIPS_NS = 50000000, /* for one node */
    ALL_TRIPS_NS = 2000000000,
    /* how long rank 0 waits for absent ranks; they wait twice as long for rank 0 */
    PATIENCE_S = 10,
    SPINS = 20,
};

enum kind { HELLO = 1, PING, PONG, KNOWN };

struct message {
    uint64_t kind;
    uint64_t node[2];               /* HELLO */
    uint64_t job[2];                /* KNOWN */
    struct oriel_trace_clock clock; /* KNOWN; own_ns: PONG */
    uint64_t is_aligned;            /* KNOWN: whether clock is aligned */
    uint64_t leads;                 /* KNOWN: this rank answers again at the end */
    char refusal[80];               /* HELLO */
};

/* On rank 0: the rank that answers for a node, and the node's clock. The first is rank 0's own. */
struct node {
    uint64_t id[2];
    int32_t leader;
    bool is_known;
    struct oriel_trace_clock clock;
};

static struct {
    bool is_zero; /* rank 0 */
    bool leads;   /* the first rank of another node than rank 0's */
    uint64_t node[2];
    struct node *nodes;
    int32_t nodes_count;
} world;

/* --- messages: an abandoned one is left to the host, with its buffer --- */

struct parcel {
    MPI_Request request;
    struct message message;
};

static struct parcel *parcel_post(int32_t to, const struct message *message)
{
    struct parcel *parcel = malloc(sizeof *parcel);
    if (parcel == NULL)
        return NULL;
    parcel->message = *message;
    if (oriel_host()->Isend(&parcel->message, (int)sizeof parcel->message, MPI_BYTE, to, TAG,
                            MPI_COMM_WORLD, &parcel->request) == MPI_SUCCESS)
        return parcel;
    free(parcel);
    return NULL;
}

static struct parcel *parcel_expect(int32_t from)
{
    struct parcel *parcel = calloc(1, sizeof *parcel);
    if (parcel != NULL &&
        oriel_host()->Irecv(&parcel->message, (int)sizeof parcel->message, MPI_BYTE, from, TAG,
                            MPI_COMM_WORLD, &parcel->request) == MPI_SUCCESS)
        return parcel;
    free(parcel);
    return NULL;
}

static bool parcel_wait(const struct parcel *parcel, uint64_t deadline_ns)
{
    MPI_Request request = parcel->request;
    for (unsigned tests = 0;; tests++) {
        int done = 0;
        if (oriel_host()->Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return false;
        if (done)
            return true;
        if (tests < SPINS)
            continue;
        if (oriel_now_ns() > deadline_ns)
            return false;
        sched_yield();
    }
}

static bool message_send(int32_t to, const struct message *message, uint64_t deadline_ns)
{
    struct parcel *parcel = parcel_post(to, message);
    if (parcel == NULL || !parcel_wait(parcel, deadline_ns))
        return false;
    free(parcel);
    return true;
}

/* Frees the parcel if the message has arrived; cancels the receive if not. */
static bool parcel_take(struct parcel *parcel, uint64_t deadline_ns, struct message *out)
{
    if (parcel == NULL)
        return false;
    bool has_arrived = parcel_wait(parcel, deadline_ns);
    if (has_arrived)
        *out = parcel->message;
    else if (oriel_host()->Cancel(&parcel->request) != MPI_SUCCESS ||
             oriel_host()->Wait(&parcel->request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        return false;
    free(parcel);
    return has_arrived;
}

static bool message_receive(int32_t from, uint64_t deadline_ns, struct message *out)
{
    return parcel_take(parcel_expect(from), deadline_ns, out);
}

/* --- all ranks but 0 --- */

static bool answer_rank_0(const char *refusal, const uint64_t node[2], struct message *known)
{
    uint64_t deadline_ns = oriel_now_ns() + 2 * PATIENCE_S * SECOND_NS;
    struct message hello = {.kind = HELLO, .node = {node[0], node[1]}};
    snprintf(hello.refusal, sizeof hello.refusal, "%s", refusal == NULL ? "" : refusal);
    if (!message_send(0, &hello, deadline_ns))
        return false;
    while (message_receive(0, deadline_ns, known)) {
        struct message pong = {.kind = PONG, .clock = {.own_ns = oriel_now_ns()}};
        if (known->kind == KNOWN)
            return true;
        if (!message_send(0, &pong, deadline_ns))
            return false;
    }
    return false;
}

/* --- rank 0 --- */

static void clock_measure(struct node *node, uint64_t end_ns)
{
    uint64_t begin_ns = oriel_now_ns();
    node->is_known = false;
    node->clock.error_ns = UINT64_MAX;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        struct message pong;
        struct message ping = {.kind = PING};
        struct parcel *expected = parcel_expect(node->leader);
        uint64_t out_ns = oriel_now_ns();
        if (expected == NULL || !message_send(node->leader, &ping, out_ns + SECOND_NS) ||
            !parcel_take(expected, out_ns + SECOND_NS, &pong))
            return;
        uint64_t in_ns = oriel_now_ns();
        if ((in_ns - out_ns + 1) / 2 < node->clock.error_ns)
            node->clock = (struct oriel_trace_clock){.own_ns = pong.clock.own_ns,
                                                     .zero_ns = out_ns + (in_ns - out_ns) / 2,
                                                     .error_ns = (in_ns - out_ns + 1) / 2};
        node->is_known = true;
        if (in_ns - begin_ns > TRIPS_NS || in_ns > end_ns)
            return;
    }
}

/* The entry of a node. If it is new, it is added with this rank as its leader. NULL if
 * memory is exhausted. */
static struct node *node_of(const uint64_t id[2], int32_t rank)
{
    for (int32_t i = 0; i < world.nodes_count; i++)
        if (memcmp(id, world.nodes[i].id, sizeof world.nodes[i].id) == 0)
            return &world.nodes[i];
    struct node *more = realloc(world.nodes, (size_t)(world.nodes_count + 1) * sizeof *more);
    if (more == NULL)
        return NULL;
    world.nodes = more;
    more += world.nodes_count++;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): id is none of these */
    *more = (struct node){.id = {id[0], id[1]}, .leader = rank};
    return more;
}

/* Ends a rank's exchange with its node's clock. Measures the clock first if the rank is the first
 * of its node. */
static void clock_exchange_end(int32_t rank, const uint64_t node_id[2], const uint64_t job[2],
                               uint64_t end_ns)
{
    struct message known = {.kind = KNOWN, .job = {job[0], job[1]}};
    struct node *node = node_of(node_id, rank);
    if (node != NULL && node->leader == rank)
        clock_measure(node, end_ns);
    if (node != NULL && node->is_known) {
        known.clock = node->clock;
        known.is_aligned = 1;
        known.leads = node->leader == rank;
    }
    (void)message_send(rank, &known, oriel_now_ns() + SECOND_NS);
}

/* Rank 0's warnings about all ranks, one line each. */
struct census {
    int32_t absent, first_absent;
    int32_t refused, first_refused;
    char refusal[80];
};

static void count_refusal(struct census *census, int32_t rank, const char *refusal)
{
    if (refusal == NULL || refusal[0] == '\0')
        return;
    if (census->refused++ > 0)
        return;
    census->first_refused = rank;
    snprintf(census->refusal, sizeof census->refusal, "%s", refusal);
}

static void census_report(const struct census *census, int32_t world_size)
{
    const char *folder = oriel_options()->trace;
    if (census->absent > 0)
        oriel_warn_job("trace: %d of %d ranks (first: rank %d) did not answer within %d s: do they "
                       "run without ORIEL_TRACE? [O23]",
                       census->absent, world_size, census->first_absent, PATIENCE_S);
    if (census->refused > 0)
        oriel_warn_job("ORIEL_TRACE=%s: %s; %d of %d ranks (first: rank %d) are not traced "
                       "[O22]",
                       folder, census->refusal, census->refused, world_size, census->first_refused);
}

static void ask_all(int32_t world_size, const char *refusal, const struct oriel_trace_run *run)
{
    struct census census = {.absent = 0};
    struct parcel **parcels = calloc((uint32_t)world_size, sizeof(struct parcel *));
    struct message *hellos = calloc((uint32_t)world_size, sizeof *hellos);
    int32_t n = parcels != NULL && hellos != NULL ? world_size : 0;
    uint64_t deadline_ns = oriel_now_ns() + PATIENCE_S * SECOND_NS;
    count_refusal(&census, 0, refusal);
    for (int32_t i = 1; i < n; i++)
        parcels[i] = parcel_expect(i);
    for (int32_t i = 1; i < n; i++)
        if (parcel_take(parcels[i], deadline_ns, &hellos[i]))
            count_refusal(&census, i, hellos[i].refusal);
        else if (census.absent++ == 0)
            census.first_absent = i;
    uint64_t end_ns = oriel_now_ns() + ALL_TRIPS_NS;
    for (int32_t i = 1; i < n; i++)
        if (hellos[i].kind == HELLO)
            clock_exchange_end(i, hellos[i].node, run->job, end_ns);
    census_report(&census, world_size);
    free(parcels);
    free(hellos);
}

static void find_node(uint64_t out[2])
{
    struct stat time = {.st_ino = 0};
    out[0] = oriel_node_id(false);
    /* containers may have clocks of their own */
    out[1] = stat("/proc/self/ns/time", &time) == 0 ? (uint64_t)time.st_ino : 0;
}

static void begin_zero(int32_t world_size, const char *refusal, struct oriel_trace_run *out)
{
    uint64_t now_ns = oriel_now_ns();
    if (getrandom(out->job, sizeof out->job, 0) != (ssize_t)sizeof out->job)
        out->job[0] = now_ns;
    out->clock = (struct oriel_trace_clock){.own_ns = now_ns, .zero_ns = now_ns};
    out->is_aligned = true;
    struct node *own = node_of(out->node, 0);
    if (own != NULL) {
        own->clock = out->clock;
        own->is_known = true;
        ask_all(world_size, refusal, out);
    }
}

void oriel_trace_clocks_begin(int32_t world_rank, int32_t world_size, const char *refusal,
                              struct oriel_trace_run *out)
{
    struct message known;
    memset(out, 0, sizeof *out);
    find_node(out->node);
    memcpy(world.node, out->node, sizeof world.node);
    world.is_zero = world_rank == 0;
    if (world.is_zero) {
        begin_zero(world_size, refusal, out);
    } else if (answer_rank_0(refusal, out->node, &known)) {
        memcpy(out->job, known.job, sizeof out->job);
        out->clock = known.clock;
        out->is_aligned = known.is_aligned != 0;
        world.leads = known.leads != 0;
    } else {
        oriel_warn("trace: rank 0 did not answer within %d s: does it run without ORIEL_TRACE? "
                   "This rank's times are not aligned [O23]",
                   2 * PATIENCE_S);
        if (refusal != NULL)
            oriel_warn("ORIEL_TRACE=%s: %s; this rank is not traced [O22]", oriel_options()->trace,
                       refusal);
    }
}

/* A rank that does not answer has only its first clock. */
static void ask_leaders(void)
{
    static const uint64_t no_job[2];
    uint64_t deadline_ns = oriel_now_ns() + PATIENCE_S * SECOND_NS;
    for (int32_t i = 1; i < world.nodes_count; i++) {
        struct message hello;
        if (message_receive(world.nodes[i].leader, deadline_ns, &hello) && hello.kind == HELLO)
            clock_exchange_end(world.nodes[i].leader, world.nodes[i].id, no_job, deadline_ns);
    }
}

bool oriel_trace_clocks_end(struct oriel_trace_clock *out)
{
    struct message known;
    if (world.is_zero && world.nodes_count > 1) {
        ask_leaders();
        out->own_ns = out->zero_ns = oriel_now_ns();
        out->error_ns = 0;
        return true;
    }
    if (!world.leads || !answer_rank_0(NULL, world.node, &known) || known.is_aligned == 0)
        return false;
    *out = known.clock;
    return true;
}
