/* See internode_wire.h. Also replaces the functions of memory/ that rma/ calls, for a window that
 * no other process has. */
#include "internode_wire.h"

#include "base/tls_cache.h"
#include "memory/agent_area.h"
#include "memory/file.h"
#include "rma/device_pipeline.h"
#include "rma/region_lookup.h"
#include "sync/notify.h"
#include "internode/origin/origin_sync.h"

#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"

enum { MOST_WAITING = 4096 };

struct wire wire;

static struct oriel_target targets_here[2];
static struct oriel_target targets_remote[2];
static struct oriel_group group;
static struct oriel_peer peer;
static struct oriel_peer *peers[2] = {NULL, &peer};
static char *bases[2];
static char file[1 << 16];

static struct {
    struct oriel_internode_request *request;
    bool failed;
    char *data;
    uint64_t len_bytes;
} waiting[MOST_WAITING];
static unsigned waiting_count;
static struct oriel_internode_request *being_served; /* NULL for a message without an answer */

const struct oriel_transport oriel_transport_cma;
const struct oriel_transport oriel_transport_agent;

enum oriel_status oriel_agent_update(const struct oriel_remote *there, enum oriel_kind kind,
                                     enum oriel_operator operator, const struct oriel_piece * in,
                                     const struct oriel_piece *out, unsigned count)
{
    (void)there, (void)kind, (void)operator,(void) in, (void)out, (void)count;
    abort();
}

enum oriel_status oriel_agent_swap(const struct oriel_remote *there, const void *desired,
                                   const void *wanted, void *found, uint64_t len_bytes)
{
    (void)there, (void)desired, (void)wanted, (void)found, (void)len_bytes;
    abort();
}

bool oriel_region_lookup_hold(const struct oriel_window *window, int32_t target, uint64_t address,
                              uint64_t len_bytes)
{
    (void)window, (void)target;
    return address >= wire.attached_from && address <= wire.attached_to &&
           len_bytes <= wire.attached_to - address;
}

bool oriel_region_lookup_find(const struct oriel_window *window, int32_t target, uint64_t address,
                              struct oriel_region_lookup *out)
{
    if (!oriel_region_lookup_hold(window, target, address, 1))
        return false;
    *out = (struct oriel_region_lookup){wire.attached_from, wire.attached_to, 0, 0};
    return true;
}

/* The target has no counters of notifications. */
enum oriel_status oriel_notify_check(const struct oriel_window *window, int32_t target, int number)
{
    (void)number;
    assert_true(window == &wire.there && target == 1);
    return oriel_fail(ORIEL_E_ARG, "no counters");
}

void oriel_notify_wake(struct oriel_notify_area *area, struct oriel_notify_counter *counter)
{
    (void)area, (void)counter;
    abort();
}

bool oriel_internode_has_failed(const struct oriel_window *window, int32_t from)
{
    (void)window, (void)from;
    abort(); /* after a notification that is served */
}

enum oriel_status oriel_internode_flush_rdma(struct oriel_window *window, int32_t target)
{
    assert_true(window == &wire.here && target == 1);
    return ORIEL_OK;
}

enum oriel_status oriel_internode_flush_local(struct oriel_window *window, int32_t target)
{
    return oriel_internode_flush_rdma(window, target);
}

/* Device memory does not occur. */
enum oriel_status oriel_pipeline_transfer(struct oriel_window *window,
                                          const struct oriel_span *target, char *here,
                                          const struct oriel_side *origin, uint64_t total_bytes,
                                          bool to_target)
{
    (void)window, (void)target, (void)here, (void)origin, (void)total_bytes, (void)to_target;
    abort();
}

void wire_open(enum oriel_placement placement)
{
    const bool dynamic = placement == ORIEL_PLACEMENT_REGIONS;
    memset(&wire, 0, sizeof wire);
    wire.memory = calloc(1, WIRE_ALL_BYTES);
    assert_non_null(wire.memory);
    char *window = wire.memory + WIRE_GUARD_BYTES;
    peer.base = file;
    bases[1] = wire.memory;
    group = (struct oriel_group){.n = 2, .peers = peers, .bases = bases};
    struct oriel_target target = {
        .disp_unit = 1, .size_bytes = dynamic ? 0 : WIRE_WINDOW_BYTES, .placement = placement};
    target.address = dynamic ? 0 : (uint64_t)(uintptr_t)window;
    if (placement == ORIEL_PLACEMENT_DIRECT) {
        target.offset = WIRE_GUARD_BYTES;
        target.direct_bytes = WIRE_WINDOW_BYTES;
    }
    wire.attached_from = (uint64_t)(uintptr_t)window;
    wire.attached_to = wire.attached_from + WIRE_WINDOW_BYTES;
    targets_remote[1] = target;
    targets_here[1] = (struct oriel_target){
        .disp_unit = 1, .size_bytes = target.size_bytes, .placement = ORIEL_PLACEMENT_NETWORK};
    wire.there =
        (struct oriel_window){.n = 2,
                              .rank = 1,
                              .targets = targets_remote,
                              .memory_bases = bases,
                              .control_bases = bases,
                              .group = &group,
                              .flavour = dynamic ? ORIEL_FLAVOUR_DYNAMIC : ORIEL_FLAVOUR_CREATE};
    wire.here = (struct oriel_window){
        .n = 2, .rank = 0, .targets = targets_here, .flavour = wire.there.flavour};
}

void wire_close(void)
{
    wire_deliver();
    free(wire.memory);
    free(wire.data);
}

void wire_serve(const struct oriel_internode_head *head, const char *data, uint64_t len_bytes)
{
    static const struct oriel_net_requester asker;
    /* with the exact length, so a sanitizer detects overruns */
    char *own = malloc(len_bytes > 0 ? len_bytes : 1);
    assert_non_null(own);
    if (len_bytes > 0)
        memcpy(own, data, len_bytes);
    const struct oriel_net_received message = {head, sizeof *head, own, len_bytes};
    unsigned before = wire.answers;
    const bool asked =
        head->kind == ORIEL_INTERNODE_GET || head->kind == ORIEL_INTERNODE_SWAP ||
        (head->kind == ORIEL_INTERNODE_ACCUMULATE && (head->d >> 16 & ORIEL_INTERNODE_RETURNS));
    oriel_internode_serve_operation(&wire.there, &asker, head, &message);
    assert_int_equal(wire.answers - before, asked ? 1 : 0);
    free(own);
}

static void send_message(struct oriel_internode_head *head, const struct iovec *data,
                         unsigned pieces)
{
    wire.len_bytes = 0;
    for (unsigned i = 0; i < pieces; i++)
        wire.len_bytes += data[i].iov_len;
    assert_true(wire.len_bytes <= ORIEL_NET_DATA_BYTES);
    wire.data = realloc(wire.data, wire.len_bytes + 1);
    assert_non_null(wire.data);
    char *next = wire.data;
    for (unsigned i = 0; i < pieces; i++) {
        memcpy(next, data[i].iov_base, data[i].iov_len);
        next += data[i].iov_len;
        wire.last_piece = data[i].iov_base;
    }
    head->window = 7;
    head->from = 0;
    wire.head = *head;
    wire.messages++;
    wire.data_bytes += wire.len_bytes;
    wire_serve(head, wire.data, wire.len_bytes);
}

enum oriel_status oriel_internode_enter(struct oriel_window *window, int32_t target,
                                        struct oriel_net_peer **out)
{
    assert_ptr_equal(window, &wire.here);
    assert_int_equal(target, 1);
    *out = NULL;
    return ORIEL_OK;
}

enum oriel_status oriel_internode_send(struct oriel_window *window, int32_t target,
                                       struct oriel_net_peer *there,
                                       struct oriel_internode_head *head, const struct iovec *data,
                                       unsigned pieces)
{
    (void)window, (void)target, (void)there;
    being_served = NULL;
    send_message(head, data, pieces);
    return ORIEL_OK;
}

/* No pages move here: one page of a memory file, for announcements, suffices. */
char *oriel_file_base(void)
{
    static _Alignas(ORIEL_PAGE_BYTES) char first_page[ORIEL_PAGE_BYTES];
    return first_page;
}

/* This process's memory is accessed directly. */
enum oriel_status oriel_mechanism_probe_cma(struct oriel_peer *who)
{
    (void)who;
    return ORIEL_E_OTHER;
}

enum oriel_status oriel_internode_send_request(struct oriel_window *window, int32_t target,
                                               struct oriel_net_peer *there,
                                               struct oriel_internode_head *head,
                                               const struct iovec *data, unsigned pieces,
                                               struct oriel_internode_request *request)
{
    (void)there;
    if (waiting_count == MOST_WAITING)
        wire_deliver();
    request->window = window;
    request->target = target;
    being_served = request;
    send_message(head, data, pieces);
    being_served = NULL;
    return ORIEL_OK;
}

/* --- RDMA devices --- */

bool oriel_net_has_devices(void)
{
    return wire.has_devices;
}

struct oriel_net_key *oriel_internode_key(struct oriel_window *window, int32_t target,
                                          struct oriel_net_peer *there)
{
    static char key;
    (void)target, (void)there;
    return window->targets[1].size_bytes > 0 ? (struct oriel_net_key *)(void *)&key : NULL;
}

static char *reach_by_device(uint64_t offset_bytes, size_t len_bytes)
{
    assert_true(len_bytes > 0 && len_bytes <= ORIEL_NET_DATA_BYTES);
    assert_true(offset_bytes <= WIRE_WINDOW_BYTES && len_bytes <= WIRE_WINDOW_BYTES - offset_bytes);
    wire.by_devices++;
    return wire.memory + WIRE_GUARD_BYTES + offset_bytes;
}

enum oriel_status oriel_internode_rdma_put(struct oriel_window *window, int32_t target,
                                           struct oriel_net_key *key, uint64_t offset_bytes,
                                           const void *from, size_t len_bytes)
{
    (void)window, (void)target, (void)key;
    memcpy(reach_by_device(offset_bytes, len_bytes), from, len_bytes);
    return ORIEL_OK;
}

enum oriel_status oriel_internode_rdma_get(struct oriel_window *window, int32_t target,
                                           struct oriel_net_peer *there, struct oriel_net_key *key,
                                           uint64_t offset_bytes, size_t len_bytes,
                                           struct oriel_internode_request *request)
{
    (void)window, (void)target, (void)there, (void)key;
    if (waiting_count == MOST_WAITING)
        wire_deliver();
    char *copy = malloc(len_bytes);
    assert_non_null(copy);
    memcpy(copy, reach_by_device(offset_bytes, len_bytes), len_bytes);
    waiting[waiting_count].request = request;
    waiting[waiting_count].failed = false;
    waiting[waiting_count].data = copy;
    waiting[waiting_count++].len_bytes = len_bytes;
    return ORIEL_OK;
}

bool oriel_internode_reply_check(struct oriel_internode_request *request,
                                 const struct oriel_net_received *answer)
{
    (void)request;
    return answer->head != NULL;
}

void oriel_internode_reply(struct oriel_window *window, const struct oriel_net_requester *asker,
                           int32_t from, const struct iovec *data, unsigned pieces)
{
    (void)window, (void)asker, (void)from;
    wire.answers++;
    uint64_t len_bytes = pieces > 0 ? data->iov_len : 0;
    assert_true(len_bytes <= ORIEL_NET_DATA_BYTES && pieces <= 1);
    char *copy = malloc(len_bytes + 1);
    assert_non_null(copy);
    if (pieces > 0)
        memcpy(copy, data->iov_base, len_bytes);
    if (being_served == NULL) {
        free(copy);
        return;
    }
    waiting[waiting_count].request = being_served;
    waiting[waiting_count].failed = pieces == 0;
    waiting[waiting_count].data = copy;
    waiting[waiting_count++].len_bytes = len_bytes;
}

void oriel_internode_record_failure(struct oriel_window *window, int32_t from,
                                    enum oriel_status status)
{
    (void)window, (void)from;
    wire.failures++;
    wire.failure = status;
}

void wire_deliver(void)
{
    while (waiting_count > 0) {
        unsigned which = (unsigned)below(waiting_count);
        const struct oriel_internode_reply head = {0};
        const struct oriel_net_received answer = {
            waiting[which].failed ? NULL : (const void *)&head, sizeof head, waiting[which].data,
            waiting[which].len_bytes};
        waiting[which].request->net.take(&waiting[which].request->net, &answer);
        free(waiting[which].data);
        free(waiting[which].request);
        waiting[which] = waiting[--waiting_count];
    }
}

/* Only for buffers in the memory of a GPU. */
enum oriel_status oriel_internode_flush(struct oriel_window *window, int32_t target)
{
    (void)window, (void)target;
    fail_msg("no buffer is device memory");
    return ORIEL_OK;
}
