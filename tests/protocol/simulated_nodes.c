/* Creates windows over several nodes for tests, with the real message dispatch
 * (src/internode/target/am_dispatch.c) and a replacement for the operations of rma/ that moves
 * single words. Every failure ends the process. */
#include "simulated_nodes.h"

#include "memory/net_address.h"
#include "internode/origin/origin_rma.h"
#include "sync/access_words.h"
#include "sync/pscw_counters.h"
#include "internode/target/am_dispatch.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int32_t nodes_count = 2;

/* What the ranks exchange at creation. */
static struct exchange {
    struct {
        uint64_t remote_id;
        uint64_t control_offset;
        uint64_t common_offset; /* a leader's */
        uint64_t offset;
        uint32_t address_bytes;
        char address[ORIEL_NET_ADDRESS_BYTES];
    } ranks[TEAM_MOST];
} * exchange;

static uint64_t alloc_block(uint64_t len_bytes)
{
    uint64_t offset = 0;
    team_expect(oriel_file_alloc(len_bytes, 2 * ORIEL_CACHE_LINE, &offset) == ORIEL_OK);
    memset(oriel_file_base() + offset, 0, len_bytes);
    return offset;
}

static void free_block(const void *block)
{
    oriel_file_free((uint64_t)((const char *)block - oriel_file_base()));
}

int32_t nodes_node_of(int32_t rank)
{
    return team->seed % 2 == 0 ? rank % nodes_count : rank * nodes_count / team->n;
}

static int32_t leader_of(int32_t node)
{
    int32_t rank = 0;
    while (nodes_node_of(rank) != node)
        rank++;
    return rank;
}

int32_t nodes_remote_rank(const struct oriel_window *window)
{
    return nodes_node_of(window->rank) == 0 ? leader_of(1) : 0;
}

/* --- operations --- */

static _Atomic uint64_t *own_word(const struct oriel_window *window, uint64_t word)
{
    return (_Atomic uint64_t *)window->base + word;
}

uint64_t nodes_load(const struct oriel_window *window, uint64_t word)
{
    return atomic_load_explicit(own_word(window, word), memory_order_relaxed);
}

uint64_t nodes_peek(const struct oriel_window *whole, int32_t rank, uint64_t word)
{
    const char *memory = whole->memory_bases[rank] + exchange->ranks[rank].offset;
    return atomic_load_explicit((const _Atomic uint64_t *)memory + word, memory_order_acquire);
}

_Atomic uint64_t *nodes_queue(const struct oriel_window *whole, int32_t rank)
{
    struct oriel_control *control =
        (struct oriel_control *)(whole->control_bases[rank] + exchange->ranks[rank].control_offset);
    return &control->lock.queue;
}

_Atomic bool nodes_serve_nothing;

void oriel_internode_serve_operation(struct oriel_window *window,
                                     const struct oriel_net_requester *asker,
                                     const struct oriel_internode_head *head,
                                     const struct oriel_net_received *message)
{
    (void)message;
    oriel_delay();
    while (atomic_load(&nodes_serve_nothing))
        usleep(1000);
    if (head->kind == ORIEL_INTERNODE_PUT && head->a < NODES_WORDS) {
        atomic_store_explicit(own_word(window, head->a), head->b, memory_order_relaxed);
    } else if (head->a >= NODES_WORDS) {
        oriel_internode_record_failure(
            window, head->from, oriel_fail(ORIEL_E_RANGE, "word %d is not there", (int)head->a));
        if (head->kind == ORIEL_INTERNODE_GET)
            oriel_internode_reply(window, asker, head->from, NULL, 0);
    } else {
        team_expect(head->kind == ORIEL_INTERNODE_GET);
        uint64_t value = nodes_load(window, head->a);
        oriel_internode_reply(window, asker, head->from, &(struct iovec){&value, sizeof value}, 1);
    }
}

enum oriel_status nodes_put(struct oriel_window *window, int32_t target, uint64_t word,
                            uint64_t value)
{
    struct oriel_net_peer *peer;
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_PUT, .a = word, .b = value};
    if (!oriel_is_internode(window, target)) {
        atomic_store_explicit((_Atomic uint64_t *)oriel_window_direct(window, target, 0) + word,
                              value, memory_order_relaxed);
        return ORIEL_OK;
    }
    enum oriel_status status = oriel_internode_enter(window, target, &peer);
    return status != ORIEL_OK ? status : oriel_internode_send(window, target, peer, &head, NULL, 0);
}

struct reading {
    struct oriel_internode_request internode;
    uint64_t *got;
};

static void receive_word(struct oriel_net_request *request, const struct oriel_net_received *answer)
{
    struct reading *reading = (struct reading *)request;
    if (!oriel_internode_reply_check(&reading->internode, answer))
        return;
    team_expect(answer->len_bytes == sizeof *reading->got);
    memcpy(reading->got, answer->data, sizeof *reading->got);
}

enum oriel_status nodes_get(struct oriel_window *window, int32_t target, uint64_t word,
                            uint64_t *got)
{
    struct oriel_net_peer *peer;
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_GET, .a = word};
    if (!oriel_is_internode(window, target)) {
        *got =
            atomic_load_explicit((_Atomic uint64_t *)oriel_window_direct(window, target, 0) + word,
                                 memory_order_relaxed);
        return ORIEL_OK;
    }
    enum oriel_status status = oriel_internode_enter(window, target, &peer);
    if (status != ORIEL_OK)
        return status;
    struct reading *reading = calloc(1, sizeof *reading);
    team_expect(reading != NULL);
    reading->internode.net.take = receive_word;
    reading->got = got;
    return oriel_internode_send_request(window, target, peer, &head, NULL, 0, &reading->internode);
}

uint64_t nodes_read(struct oriel_window *window, int32_t target, uint64_t word)
{
    uint64_t value = UINT64_MAX;
    team_expect(nodes_get(window, target, word, &value) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, target) == ORIEL_OK);
    return value;
}

void nodes_await_turns(const struct oriel_window *window)
{
    while ((uint32_t)atomic_load(&window->control->lock.queue) !=
           oriel_load_acquire(&window->control->lock.departed))
        sched_yield();
    team_barrier();
}

void nodes_expect_free(const struct oriel_window *window)
{
    uint64_t queue = atomic_load(&window->control->lock.queue);
    team_expect(window->control->lock.serving == (uint32_t)(queue >> 32) &&
                window->control->lock.departed == (uint32_t)queue);
    team_expect(window->common->gate.word == 0 && window->internode->locks == NULL &&
                !oriel_locks_held(window));
}

_Atomic bool nodes_refuse_counters;

struct oriel_pscw_counter *__real_oriel_internode_partner(struct oriel_window *window,
                                                          int32_t rank);
struct oriel_pscw_counter *__wrap_oriel_internode_partner(struct oriel_window *window,
                                                          int32_t rank);

struct oriel_pscw_counter *__wrap_oriel_internode_partner(struct oriel_window *window, int32_t rank)
{
    return atomic_load(&nodes_refuse_counters) ? NULL
                                               : __real_oriel_internode_partner(window, rank);
}

/* --- windows --- */

static void parts_publish(int32_t n)
{
    static uint64_t remote_ids; /* differ by rank, so a wrong one is noticed */
    size_t len_bytes;
    team_expect(oriel_net_address_open(&oriel_am_dispatch_service) == ORIEL_OK);
    const void *address = oriel_net_address(&len_bytes);
    exchange->ranks[team_rank].remote_id = ++remote_ids * 100 + (uint64_t)team_rank;
    exchange->ranks[team_rank].control_offset = alloc_block(sizeof(struct oriel_control));
    exchange->ranks[team_rank].offset = alloc_block(NODES_WORDS * sizeof(uint64_t));
    exchange->ranks[team_rank].address_bytes = (uint32_t)len_bytes;
    memcpy(exchange->ranks[team_rank].address, address, len_bytes);
    if (leader_of(nodes_node_of(team_rank)) == team_rank)
        exchange->ranks[team_rank].common_offset = alloc_block(
            oriel_common_bytes(n) + sizeof(struct oriel_nodes) +
            (uint64_t)nodes_count * (sizeof(struct oriel_node_entry) + ORIEL_NET_ADDRESS_BYTES));
}

static void fill_nodes(struct oriel_nodes *nodes)
{
    uint64_t at = sizeof *nodes + (uint64_t)nodes_count * sizeof nodes->node[0];
    nodes->count = nodes_count;
    nodes->own = nodes_node_of(team_rank);
    for (int32_t i = 0; i < nodes_count; i++) {
        int32_t leader = leader_of(i);
        uint32_t len_bytes = exchange->ranks[leader].address_bytes;
        nodes->node[i] =
            (struct oriel_node_entry){team->members[leader].process, leader, len_bytes, at};
        memcpy((char *)nodes + at, exchange->ranks[leader].address, len_bytes);
        at += ORIEL_NET_ADDRESS_BYTES;
    }
}

static void fill_common(const struct oriel_window *window, struct oriel_common *common)
{
    common->n = window->n;
    common->here = window->here;
    common->nodes_offset = oriel_common_bytes(window->n);
    for (int32_t i = 0; i < window->n; i++) {
        bool is_here = nodes_node_of(i) == nodes_node_of(team_rank);
        common->targets[i] = (struct oriel_target){
            .offset = is_here ? exchange->ranks[i].offset : exchange->ranks[i].remote_id,
            .direct_bytes = is_here ? NODES_WORDS * sizeof(uint64_t) : 0,
            .size_bytes = NODES_WORDS * sizeof(uint64_t),
            .disp_unit = 1,
            .control_offset =
                is_here ? exchange->ranks[i].control_offset : (uint64_t)nodes_node_of(i),
            .placement = is_here ? ORIEL_PLACEMENT_DIRECT : ORIEL_PLACEMENT_NETWORK,
        };
    }
    fill_nodes((struct oriel_nodes *)((char *)common + common->nodes_offset));
}

static void open_internode(struct oriel_window *window)
{
    window->internode = oriel_internode_make(exchange->ranks[team_rank].remote_id, window->n);
    team_expect(window->internode != NULL && oriel_am_dispatch_add(window));
    atomic_store(&window->internode->is_finished, true);
}

struct oriel_window *nodes_open(void)
{
    struct oriel_member members[TEAM_MOST];
    struct oriel_window *window = calloc(1, sizeof *window);
    team_expect(window != NULL && nodes_count <= team->n);
    parts_publish(team->n);
    team_barrier();
    window->n = team->n;
    window->rank = team_rank;
    window->leader = leader_of(nodes_node_of(team_rank));
    for (int32_t i = 0; i < team->n; i++) {
        members[i] =
            (struct oriel_member){team->members[i].process, (uint64_t)nodes_node_of(i) + 7};
        window->here += nodes_node_of(i) == nodes_node_of(team_rank);
    }
    team_expect(oriel_group_acquire(members, sizeof members[0], window->n, window->rank,
                                    &window->group) == ORIEL_OK);
    window->control_bases = window->group->bases;
    window->memory_bases = window->group->bases;
    window->common = (struct oriel_common *)(window->control_bases[window->leader] +
                                             exchange->ranks[window->leader].common_offset);
    if (window->leader == window->rank)
        fill_common(window, window->common);
    team_barrier();
    window->targets = window->common->targets;
    window->control = oriel_window_control(window, window->rank);
    atomic_init(&window->access, window->group->absent);
    window->base = oriel_window_direct(window, window->rank, 0);
    open_internode(window);
    team_barrier();
    return window;
}

void nodes_close(struct oriel_window *window)
{
    struct oriel_internode *remote = window->internode;
    team_barrier();
    oriel_am_dispatch_remove(window);
    team_expect(remote->open == NULL && remote->open_count == 0 && remote->locks == NULL &&
                remote->shares == NULL);
    oriel_lazy_lock_free(remote);
    oriel_internode_free(remote);
    team_barrier(); /* no rank reads the blocks any more */
    oriel_pscw_counters_close(window);
    oriel_access_words_close(window);
    if (window->leader == window->rank)
        free_block(window->common);
    free_block(window->control);
    free_block(window->base);
    oriel_group_release(window->group);
    free(window->started.partners);
    free(window->posted.partners);
    free(window);
}

void nodes_stop(void)
{
    oriel_net_address_close();
}

/* --- running --- */

void nodes_run(int32_t n, int32_t nodes, team_body *body)
{
    nodes_count = nodes;
    team_run(n, body);
}

void nodes_run_sizes(team_body *body)
{
    static const int32_t sizes[][2] = {{2, 2}, {3, 3}, {4, 2}, {6, 3}, {8, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        nodes_run(sizes[i][0], sizes[i][1], body);
}

void nodes_prepare(int argc, char **argv)
{
    team_prepare(argc, argv);
    if (team_has_threads()) {
        printf("skipped: a process has one net\n");
        exit(77);
    }
    exchange =
        mmap(NULL, sizeof *exchange, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(exchange, MAP_FAILED);
}
