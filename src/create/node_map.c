/* Maps ranks to nodes, and fills the shared words through which a node's ranks find the other
 * nodes.
 *
 * No process stores data about all other processes. Each node has one table of targets and one of
 * nodes, in its leader's memory file. A process asks the leader of another node for the address of
 * a process there when it first needs it (internode/origin/origin_peers.c). */
#include "create/node_map.h"

#include "base/hash_table.h"
#include "base/log.h"
#include "base/options.h"
#include "create/create_state.h"
#include "host/host.h"
#include "internode/origin/origin_sync.h"
#include "internode/target/am_dispatch.h"
#include "memory/net_address.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t hash_add_bytes(uint64_t hash, const void *bytes, size_t len_bytes)
{
    const unsigned char *next = bytes;
    for (size_t i = 0; i < len_bytes; i++)
        hash = (hash ^ next[i]) * 0x100000001b3u;
    return hash;
}

/* Read once: a process never changes its node, and creating a window must take
 * microseconds only. */
static _Atomic uint64_t known_number;

static uint64_t kernel_node_id(void)
{
    uint64_t known = atomic_load_explicit(&known_number, memory_order_relaxed);
    if (known != 0)
        return known;
    char boot[64] = "";
    struct stat processes = {.st_ino = 0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t len_bytes = read(fd, boot, sizeof boot);
        close(fd);
        if (len_bytes < 0)
            boot[0] = '\0';
    }
    if (stat("/proc/self/ns/pid", &processes) != 0)
        processes.st_ino = 0;
    uint64_t inode = (uint64_t)processes.st_ino;
    known = hash_add_bytes(hash_add_bytes(0xcbf29ce484222325u, boot, sizeof boot), &inode,
                           sizeof inode) |
            1;
    atomic_store_explicit(&known_number, known, memory_order_relaxed);
    return known;
}

uint64_t oriel_node_id(bool whole)
{
    uint64_t number = kernel_node_id();
    int initialized = 0;
    int rank = 0;
    int size = oriel_options()->node_size;
    if (size == 0 || whole || oriel_host()->Initialized(&initialized) != MPI_SUCCESS ||
        !initialized || oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
        return number;
    int part = rank / size;
    return hash_add_bytes(number, &part, sizeof part);
}

void oriel_node_map_free(struct oriel_node_map *map)
{
    if (map == NULL)
        return;
    free(map->node_by_rank);
    free(map->leader_by_node);
    free(map->address_by_node);
    free(map->spans);
    free(map);
}

/* Numbers the nodes; the first rank on each leads it. */
static bool nodes_count(struct oriel_node_map *map, const struct create_state *state)
{
    /* from a node's id to its leader's rank, plus 1 */
    struct oriel_hash_table known = ORIEL_HASH_TABLE_INIT;
    bool done = true;
    int32_t n = state->window->n;
    for (int32_t i = 0; i < n && done; i++) {
        uint64_t machine = state->records[i].member.node;
        uintptr_t leader = (uintptr_t)oriel_hash_table_find(&known, machine);
        if (leader == 0) {
            map->leader_by_node[map->count] = i;
            map->node_by_rank[i] = map->count++;
            done = oriel_hash_table_set(&known, machine, (void *)((uintptr_t)i + 1));
        } else {
            map->node_by_rank[i] = map->node_by_rank[leader - 1];
        }
    }
    oriel_hash_table_close(&known);
    map->own = map->node_by_rank[state->window->rank];
    for (int32_t i = 0; i < n; i++)
        map->node_ranks += map->node_by_rank[i] == map->own;
    return done;
}

static bool all_on_one_node(const struct create_state *state)
{
    for (int32_t i = 1; i < state->window->n; i++)
        if (state->records[i].member.node != state->records[0].member.node)
            return false;
    return true;
}

static struct oriel_node_map *node_map_create(const struct create_state *state)
{
    uint32_t n = (uint32_t)state->window->n;
    struct oriel_node_map *map = calloc(1, sizeof *map);
    if (map == NULL)
        return NULL;
    map->node_by_rank = calloc(n, sizeof *map->node_by_rank);
    map->leader_by_node = calloc(n, sizeof *map->leader_by_node);
    if (map->node_by_rank != NULL && map->leader_by_node != NULL && nodes_count(map, state)) {
        map->address_by_node = calloc((uint32_t)map->count, sizeof *map->address_by_node);
        map->spans = calloc(n, 2 * sizeof *map->spans);
        if (map->address_by_node != NULL && map->spans != NULL)
            return map;
    }
    oriel_node_map_free(map);
    return NULL;
}

enum oriel_status oriel_node_map_net_start(void)
{
    if (oriel_options()->net == ORIEL_NET_OFF)
        return oriel_fail(ORIEL_E_OTHER, "ORIEL_NET=off");
    struct oriel_net_service service = oriel_am_dispatch_service;
    service.has_threads = oriel_host_has_threads();
    return oriel_net_address_open(&service);
}

bool oriel_node_map_job_spans_nodes(void)
{
    int ranks;
    if (oriel_net_is_started())
        return true;
    if (!oriel_host_has_world() || oriel_host()->Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
        return false;
    const int size = oriel_options()->node_size;
    const uint32_t here = size > 0 ? (uint32_t)size : oriel_host_node_ranks();
    return here != 0 && (uint32_t)ranks > here;
}

/* Keeps the reason for the note about the window. A program that runs on several nodes may never
 * ask for notes, so the first rank warns, once, unless the user turned the net off. */
static void net_failure_keep(struct create_state *state)
{
    snprintf(state->node_map->reason, sizeof state->node_map->reason, "%s", oriel_fail_message());
    if (state->window->rank == 0 && oriel_options()->net != ORIEL_NET_OFF)
        oriel_warn("the host creates windows over several nodes: %s [O12]",
                   state->node_map->reason);
}

/* Exchanges the addresses of all leaders. */
static enum oriel_status leader_addresses_exchange(struct create_state *state)
{
    struct oriel_node_map *map = state->node_map;
    int32_t n = state->window->n;
    struct oriel_leader_address own = {.address_bytes = 0};
    struct create_watch known;
    if (map->leader_by_node[map->own] == state->window->rank && map->status == ORIEL_OK)
        memcpy(&own, oriel_net_address_of(oriel_file_base()), sizeof own);
    for (int32_t i = 0, at = 0; i < n; i++) {
        map->spans[n + i] = at;
        if (map->leader_by_node[map->node_by_rank[i]] == i)
            at += map->spans[i] = (int)sizeof own;
    }
    oriel_create_state_watch_open(&known, state);
    enum oriel_status status =
        oriel_host_allgatherv(state->creation->comm, state->creation->call, &own, map->spans,
                              map->spans + n, map->address_by_node, &known.watch);
    oriel_create_state_watch_close(&known);
    for (int32_t i = 0; i < map->count && status == ORIEL_OK; i++)
        if (map->address_by_node[i].address_bytes > ORIEL_NET_ADDRESS_BYTES)
            map->address_by_node[i].address_bytes = 0;
    return status;
}
_Static_assert(sizeof(struct oriel_leader_address) == sizeof(struct oriel_net_address_area),
               "one is a copy of the other");

/* Whether all ranks have the memory for the next steps. A rank that lacks it reports that before it
 * leaves. */
static enum oriel_status node_map_agree_memory(struct create_state *state)
{
    uint32_t all_have;
    state->node_map = node_map_create(state);
    enum oriel_status status = oriel_create_state_agree(state, state->node_map != NULL, &all_have);
    return status != ORIEL_OK || all_have
               ? status
               : oriel_fail(ORIEL_E_NO_MEM, "a rank has no memory for %d ranks on several nodes",
                            (int)state->window->n);
}

enum oriel_status oriel_node_map_exchange(struct create_state *state)
{
    if (state->rendezvous != NULL || all_on_one_node(state))
        return ORIEL_OK;
    /* MPICH nevertheless creates a shared window, in which every node has memory of its own. */
    if (state->creation->flavour == ORIEL_FLAVOUR_SHARED &&
        !oriel_host_shares_memory(state->creation->comm))
        return oriel_fail(ORIEL_E_SHARED, "not all ranks share memory with each other");
    enum oriel_status status = node_map_agree_memory(state);
    if (status != ORIEL_OK)
        return status;
    state->node_map->status = oriel_node_map_net_start();
    if (state->node_map->status != ORIEL_OK)
        net_failure_keep(state);
    state->window->here = state->node_map->node_ranks;
    state->window->leader = state->node_map->leader_by_node[state->node_map->own];
    return leader_addresses_exchange(state);
}

enum oriel_status oriel_node_map_check(const struct create_state *state)
{
    const struct oriel_node_map *map = state->node_map;
    if (map == NULL)
        return ORIEL_OK;
    if (state->creation->flavour == ORIEL_FLAVOUR_SHARED)
        return oriel_fail(ORIEL_E_OTHER, "the ranks are on %d nodes", (int)map->count);
    if (map->status != ORIEL_OK)
        return oriel_fail(ORIEL_E_OTHER, "the ranks are on %d nodes: %s", (int)map->count,
                          map->reason);
    for (int32_t i = 0; i < map->count; i++)
        if (map->address_by_node[i].address_bytes == 0)
            return oriel_fail(ORIEL_E_OTHER, "rank %d cannot be reached from other nodes",
                              (int)map->leader_by_node[i]);
    return ORIEL_OK;
}

static void nodes_fill(struct oriel_nodes *nodes, const struct create_state *state)
{
    const struct oriel_node_map *map = state->node_map;
    uint64_t at = sizeof *nodes + (uint64_t)map->count * sizeof nodes->node[0];
    nodes->count = map->count;
    nodes->own = map->own;
    for (int32_t i = 0; i < map->count; i++) {
        nodes->node[i] = (struct oriel_node_entry){
            .process = state->records[map->leader_by_node[i]].member.process,
            .leader = map->leader_by_node[i],
            .address_bytes = (uint32_t)map->address_by_node[i].address_bytes,
            .address = at};
        memcpy((char *)nodes + at, map->address_by_node[i].address,
               map->address_by_node[i].address_bytes);
        at += map->address_by_node[i].address_bytes;
    }
}

static uint64_t nodes_bytes(const struct oriel_node_map *map)
{
    uint64_t len_bytes =
        sizeof(struct oriel_nodes) + (uint64_t)map->count * sizeof(struct oriel_node_entry);
    for (int32_t i = 0; i < map->count; i++)
        len_bytes += map->address_by_node[i].address_bytes;
    return len_bytes;
}

enum oriel_status oriel_node_map_fill(struct create_state *state)
{
    struct oriel_window *window = state->window;
    const struct oriel_node_map *map = state->node_map;
    uint64_t nodes_at = oriel_common_bytes(window->n);
    uint64_t offset;
    /* Frees the block that rank 0 allocated in step 1: it has no room for the nodes. */
    oriel_create_state_free_block(window->common_offset);
    window->common_offset = -1;
    enum oriel_status status = oriel_create_state_alloc_block(
        nodes_at + nodes_bytes(map), 2 * ORIEL_CACHE_LINE, &window->common_offset, &offset);
    if (status != ORIEL_OK)
        return status;
    struct oriel_common *common = (struct oriel_common *)(oriel_file_base() + offset);
    oriel_create_state_fill_common(common, window->n, oriel_create_state_gathered_record,
                                   state->records);
    common->here = map->node_ranks;
    common->nodes_offset = nodes_at;
    for (int32_t i = 0; i < window->n; i++)
        if (map->node_by_rank[i] != map->own)
            common->targets[i] =
                (struct oriel_target){.offset = state->records[i].internode_id,
                                      .disp_unit = state->records[i].target.disp_unit,
                                      .size_bytes = state->records[i].target.size_bytes,
                                      .address = state->records[i].target.address,
                                      .control_offset = (uint64_t)map->node_by_rank[i],
                                      .placement = ORIEL_PLACEMENT_NETWORK};
    nodes_fill((struct oriel_nodes *)((char *)common + nodes_at), state);
    atomic_store_explicit(&window->control->common_offset, offset, memory_order_release);
    return ORIEL_OK;
}

enum oriel_status oriel_node_map_open(struct create_state *state)
{
    if (state->node_map == NULL)
        return ORIEL_OK;
    state->window->internode = oriel_internode_make(state->own.internode_id, state->window->n);
    if (state->window->internode == NULL || !oriel_am_dispatch_add(state->window))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window over %d nodes",
                          (int)state->node_map->count);
    return ORIEL_OK;
}

void oriel_node_map_close(struct oriel_window *window)
{
    if (window->internode == NULL)
        return;
    oriel_am_dispatch_remove(window);
    oriel_lazy_lock_free(window->internode);
    oriel_internode_free(window->internode);
    window->internode = NULL;
}
