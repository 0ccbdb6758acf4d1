/* Maps ranks to nodes, and fills the words in which a node's ranks find the other nodes.
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

static uint64_t mix(uint64_t hash, const void *bytes, size_t len_bytes)
{
    const unsigned char *next = bytes;
    for (size_t i = 0; i < len_bytes; i++)
        hash = (hash ^ next[i]) * 0x100000001b3u;
    return hash;
}

/* Read once: a process never changes its node, and creating a window takes microseconds. */
static _Atomic uint64_t known_number;

static uint64_t kernel_number(void)
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
    known = mix(mix(0xcbf29ce484222325u, boot, sizeof boot), &inode, sizeof inode) | 1;
    atomic_store_explicit(&known_number, known, memory_order_relaxed);
    return known;
}

uint64_t oriel_machine_number(bool whole)
{
    uint64_t number = kernel_number();
    int initialized = 0;
    int rank = 0;
    int size = oriel_options()->node_size;
    if (size == 0 || whole || oriel_host()->Initialized(&initialized) != MPI_SUCCESS ||
        !initialized || oriel_host()->Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS)
        return number;
    int part = rank / size;
    return mix(number, &part, sizeof part);
}

void oriel_meeting_free(struct oriel_meeting *meeting)
{
    if (meeting == NULL)
        return;
    free(meeting->numbers);
    free(meeting->leaders);
    free(meeting->told);
    free(meeting->spans);
    free(meeting);
}

/* Numbers the nodes; the first rank on each leads it. */
static bool count_machines(struct oriel_meeting *meeting, const struct attempt *attempt)
{
    struct oriel_hash_table known =
        ORIEL_HASH_TABLE_INIT; /* from a node's id to its leader's rank, plus 1 */
    bool done = true;
    int32_t n = attempt->window->n;
    for (int32_t i = 0; i < n && done; i++) {
        uint64_t machine = attempt->records[i].member.machine;
        uintptr_t leader = (uintptr_t)oriel_hash_table_find(&known, machine);
        if (leader == 0) {
            meeting->leaders[meeting->count] = i;
            meeting->numbers[i] = meeting->count++;
            done = oriel_hash_table_set(&known, machine, (void *)((uintptr_t)i + 1));
        } else {
            meeting->numbers[i] = meeting->numbers[leader - 1];
        }
    }
    oriel_hash_table_close(&known);
    meeting->own = meeting->numbers[attempt->window->rank];
    for (int32_t i = 0; i < n; i++)
        meeting->here += meeting->numbers[i] == meeting->own;
    return done;
}

static bool are_together(const struct attempt *attempt)
{
    for (int32_t i = 1; i < attempt->window->n; i++)
        if (attempt->records[i].member.machine != attempt->records[0].member.machine)
            return false;
    return true;
}

static struct oriel_meeting *make_meeting(const struct attempt *attempt)
{
    uint32_t n = (uint32_t)attempt->window->n;
    struct oriel_meeting *meeting = calloc(1, sizeof *meeting);
    if (meeting == NULL)
        return NULL;
    meeting->numbers = calloc(n, sizeof *meeting->numbers);
    meeting->leaders = calloc(n, sizeof *meeting->leaders);
    if (meeting->numbers != NULL && meeting->leaders != NULL && count_machines(meeting, attempt)) {
        meeting->told = calloc((uint32_t)meeting->count, sizeof *meeting->told);
        meeting->spans = calloc(n, 2 * sizeof *meeting->spans);
        if (meeting->told != NULL && meeting->spans != NULL)
            return meeting;
    }
    oriel_meeting_free(meeting);
    return NULL;
}

static enum oriel_status start_net(void)
{
    if (oriel_options()->net == ORIEL_NET_OFF)
        return oriel_fail(ORIEL_E_OTHER, "ORIEL_NET=off");
    struct oriel_net_service service = oriel_service;
    service.has_threads = oriel_host_has_threads();
    return oriel_reached_open(&service);
}

/* Exchanges the addresses of all leaders. */
static enum oriel_status tell_addresses(struct attempt *attempt)
{
    struct oriel_meeting *meeting = attempt->machines;
    int32_t n = attempt->window->n;
    struct oriel_told own = {.address_bytes = 0};
    struct attempt_watch known;
    if (meeting->leaders[meeting->own] == attempt->window->rank && meeting->status == ORIEL_OK)
        memcpy(&own, oriel_reached_of(oriel_file_base()), sizeof own);
    for (int32_t i = 0, at = 0; i < n; i++) {
        meeting->spans[n + i] = at;
        if (meeting->leaders[meeting->numbers[i]] == i)
            at += meeting->spans[i] = (int)sizeof own;
    }
    oriel_create_state_watch_open(&known, attempt);
    enum oriel_status status =
        oriel_host_gather_some(attempt->creation->comm, attempt->creation->call, &own,
                               meeting->spans, meeting->spans + n, meeting->told, &known.watch);
    oriel_create_state_watch_close(&known);
    for (int32_t i = 0; i < meeting->count && status == ORIEL_OK; i++)
        if (meeting->told[i].address_bytes > ORIEL_NET_ADDRESS_BYTES)
            meeting->told[i].address_bytes = 0;
    return status;
}
_Static_assert(sizeof(struct oriel_told) == sizeof(struct oriel_reached), "told is a copy of it");

/* Whether all ranks have the memory for the next steps. A rank that lacks it reports that before it
 * leaves. */
static enum oriel_status meet_with_memory(struct attempt *attempt)
{
    uint32_t all_have;
    attempt->machines = make_meeting(attempt);
    enum oriel_status status =
        oriel_create_state_agree(attempt, attempt->machines != NULL, &all_have);
    return status != ORIEL_OK || all_have
               ? status
               : oriel_fail(ORIEL_E_NO_MEM, "a rank has no memory for %d ranks on several machines",
                            (int)attempt->window->n);
}

enum oriel_status oriel_machines_meet(struct attempt *attempt)
{
    if (attempt->board != NULL || are_together(attempt))
        return ORIEL_OK;
    /* MPICH nevertheless creates a shared window, in which every node has memory of its own. */
    if (attempt->creation->flavour == ORIEL_FLAVOUR_SHARED &&
        !oriel_host_shares_memory(attempt->creation->comm))
        return oriel_fail(ORIEL_E_SHARED, "not all ranks share memory with each other");
    enum oriel_status status = meet_with_memory(attempt);
    if (status != ORIEL_OK)
        return status;
    attempt->machines->status = start_net();
    if (attempt->machines->status != ORIEL_OK)
        snprintf(attempt->machines->reason, sizeof attempt->machines->reason, "%s",
                 oriel_fail_message());
    attempt->window->here = attempt->machines->here;
    attempt->window->leader = attempt->machines->leaders[attempt->machines->own];
    return tell_addresses(attempt);
}

enum oriel_status oriel_machines_reach(const struct attempt *attempt)
{
    const struct oriel_meeting *meeting = attempt->machines;
    if (meeting == NULL)
        return ORIEL_OK;
    if (attempt->creation->flavour == ORIEL_FLAVOUR_SHARED)
        return oriel_fail(ORIEL_E_OTHER, "the ranks are on %d machines", (int)meeting->count);
    if (meeting->status != ORIEL_OK)
        return oriel_fail(ORIEL_E_OTHER, "the ranks are on %d machines: %s", (int)meeting->count,
                          meeting->reason);
    for (int32_t i = 0; i < meeting->count; i++)
        if (meeting->told[i].address_bytes == 0)
            return oriel_fail(ORIEL_E_OTHER, "rank %d cannot be reached from other machines",
                              (int)meeting->leaders[i]);
    return ORIEL_OK;
}

static void fill_machines(struct oriel_machines *machines, const struct attempt *attempt)
{
    const struct oriel_meeting *meeting = attempt->machines;
    uint64_t at = sizeof *machines + (uint64_t)meeting->count * sizeof machines->machine[0];
    machines->count = meeting->count;
    machines->own = meeting->own;
    for (int32_t i = 0; i < meeting->count; i++) {
        machines->machine[i] =
            (struct oriel_machine){.process = attempt->records[meeting->leaders[i]].member.process,
                                   .leader = meeting->leaders[i],
                                   .address_bytes = (uint32_t)meeting->told[i].address_bytes,
                                   .address = at};
        memcpy((char *)machines + at, meeting->told[i].address, meeting->told[i].address_bytes);
        at += meeting->told[i].address_bytes;
    }
}

static uint64_t machines_bytes(const struct oriel_meeting *meeting)
{
    uint64_t len_bytes =
        sizeof(struct oriel_machines) + (uint64_t)meeting->count * sizeof(struct oriel_machine);
    for (int32_t i = 0; i < meeting->count; i++)
        len_bytes += meeting->told[i].address_bytes;
    return len_bytes;
}

enum oriel_status oriel_machines_fill(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    const struct oriel_meeting *meeting = attempt->machines;
    uint64_t machines_at = oriel_common_bytes(window->n);
    uint64_t offset;
    oriel_create_state_give_back(
        window->common_offset); /* of rank 0, which has no room for the nodes */
    window->common_offset = -1;
    enum oriel_status status =
        oriel_create_state_alloc(machines_at + machines_bytes(meeting), 2 * ORIEL_CACHE_LINE,
                                 &window->common_offset, &offset);
    if (status != ORIEL_OK)
        return status;
    struct oriel_common *common = (struct oriel_common *)(oriel_file_base() + offset);
    oriel_create_state_fill_common(common, window->n, oriel_create_state_gathered,
                                   attempt->records);
    common->here = meeting->here;
    common->machines_offset = machines_at;
    for (int32_t i = 0; i < window->n; i++)
        if (meeting->numbers[i] != meeting->own)
            common->targets[i] =
                (struct oriel_target){.offset = attempt->records[i].far_id,
                                      .disp_unit = attempt->records[i].target.disp_unit,
                                      .size_bytes = attempt->records[i].target.size_bytes,
                                      .address = attempt->records[i].target.address,
                                      .control_offset = (uint64_t)meeting->numbers[i],
                                      .mechanism = ORIEL_BY_NETWORK};
    fill_machines((struct oriel_machines *)((char *)common + machines_at), attempt);
    atomic_store_explicit(&window->control->common_offset, offset, memory_order_release);
    return ORIEL_OK;
}

enum oriel_status oriel_machines_open(struct attempt *attempt)
{
    if (attempt->machines == NULL)
        return ORIEL_OK;
    attempt->window->far = oriel_internode_make(attempt->own.far_id, attempt->window->n);
    if (attempt->window->far == NULL || !oriel_serve_add(attempt->window))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a window over %d machines",
                          (int)attempt->machines->count);
    return ORIEL_OK;
}

void oriel_machines_close(struct oriel_window *window)
{
    if (window->far == NULL)
        return;
    oriel_serve_remove(window);
    oriel_internode_free(window->far);
    window->far = NULL;
}
