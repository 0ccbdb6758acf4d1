/* Messages of other nodes for a window: arbitrary messages, of any senders, in any order.  No
 * message reads or writes outside the window's memory, which is between bytes that the address
 * sanitiser watches. Each request gets one answer. The window has four ranks, two of them on this
 * node, and this process is rank 1.  Between messages the input lets time pass, lets ranks of this
 * node arrive at the gate, and lets processes die. Requests queued for a lock are thereby served,
 * refused or dropped later. */
#include "fuzzer.h"

#include "base/tls_cache.h"
#include "memory/agent_area.h"
#include "memory/mechanism.h"
#include "memory/net_address.h"
#include "internode/origin/origin_rma.h"
#include "rma/region_lookup.h"
#include "internode/origin/origin_peers.h"
#include "sync/lock_all_gate.h"
#include "internode/origin/liveness.h"
#include "internode/target/am_dispatch.h"

#include <sanitizer/asan_interface.h>

enum { RANKS = 4, SELF = 1, LOST = 3 };
enum {
    WINDOW_BYTES = 704,
    GUARD_BYTES = 4096,
    MESSAGES_MOST = 24,
    DATA_MOST_BYTES = 1500,
    COUNTERS = 2, /* of notifications */
    WINDOW_ID = 77
};

const struct oriel_transport oriel_transport_agent;

static _Alignas(4096) char memory[GUARD_BYTES + WINDOW_BYTES + GUARD_BYTES];
static char *const exposed = memory + GUARD_BYTES;

/* The contents of memory files. */
static struct {
    _Alignas(ORIEL_CACHE_LINE) struct oriel_control controls[RANKS];
    _Alignas(ORIEL_CACHE_LINE) char common[sizeof(struct oriel_common) +
                                           RANKS * sizeof(struct oriel_target)];
    _Alignas(struct oriel_nodes) char nodes[sizeof(struct oriel_nodes)];
    _Alignas(ORIEL_CACHE_LINE) char notifications[sizeof(struct oriel_notify_area) +
                                                  COUNTERS * sizeof(struct oriel_notify_counter)];
} file;
static struct oriel_common *const common = (struct oriel_common *)file.common;

static struct oriel_peer peers_here[2];
static struct oriel_pscw_counter partners[RANKS];
static struct oriel_window window;
static unsigned answers[MESSAGES_MOST];

/* Events other than messages. */
static struct {
    uint64_t now_ns;
    bool copies;        /* the kernel copies memory that not every process can load */
    bool waits_in_vain; /* the process that could admit waiting ranks has died */
    bool holders_die;   /* remote ranks that hold a lock die when they are next checked */
    bool lost[RANKS];   /* dead ranks, whose outstanding requests get no answer */
} world;

/* --- stubs for the rest of the library --- */

void oriel_net_answer(const struct oriel_net_requester *asker, const struct oriel_net_bytes *answer)
{
    volatile char sum = 0;
    uint64_t len_bytes = 0;
    const struct oriel_internode_reply *head = answer->head;
    REQUIRE(asker->words[1] < MESSAGES_MOST);
    REQUIRE(answer->head_bytes ==
            (head->status == ORIEL_OK ? ORIEL_INTERNODE_REPLY_OK_BYTES : sizeof *head));
    answers[asker->words[1]]++;
    for (unsigned i = 0; i < answer->pieces; i++) {
        for (size_t at = 0; at < answer->data[i].iov_len; at++)
            sum = (char)(sum + ((const char *)answer->data[i].iov_base)[at]);
        len_bytes += answer->data[i].iov_len;
    }
    REQUIRE(len_bytes <= ORIEL_NET_DATA_BYTES);
}

/* The origin's half, stubbed at link time: never called. */
_Noreturn void never_called(void);
void never_called(void)
{
    abort();
}

uint64_t __wrap_oriel_now_ns(void);
uint64_t __wrap_oriel_now_ns(void)
{
    return world.now_ns;
}

/* A rank's peer, whose address encodes the rank. */
static char peers_on_other_nodes[RANKS];

struct oriel_net_peer *oriel_internode_peer_known(struct oriel_window *whose, int32_t target)
{
    (void)whose;
    return target < 2 ? NULL : (struct oriel_net_peer *)(void *)&peers_on_other_nodes[target];
}

enum oriel_status oriel_net_check(struct oriel_net_peer *peer)
{
    if (world.holders_die)
        world.lost[(char *)peer - peers_on_other_nodes] = true;
    return world.holders_die ? ORIEL_E_PEER : ORIEL_OK;
}

const struct oriel_nodes *oriel_internode_nodes(const struct oriel_window *whose)
{
    (void)whose;
    return (struct oriel_nodes *)file.nodes;
}

/* Exposure of the window's memory to a device, which this test ignores. */
struct oriel_net_exposed {
    char text[100];
};
static struct oriel_net_exposed device_key;
static bool is_exposed;

struct oriel_net_exposed *oriel_net_expose(void *base, size_t len_bytes)
{
    REQUIRE(!is_exposed && base != NULL && len_bytes > 0 && window.device_memory == NULL);
    is_exposed = true;
    return &device_key;
}

const void *oriel_net_exposed_key(const struct oriel_net_exposed *it, size_t *len_bytes)
{
    REQUIRE(is_exposed);
    *len_bytes = sizeof it->text;
    return it->text;
}

void oriel_net_unexpose(struct oriel_net_exposed *it)
{
    REQUIRE(is_exposed && it == &device_key);
    is_exposed = false;
}

void oriel_internode_keys_close(struct oriel_internode *far)
{
    REQUIRE(far->exposed == NULL); /* withdrawn before */
}

void oriel_internode_peers_close(struct oriel_window *whose)
{
    (void)whose;
}

struct oriel_pscw_counter *oriel_internode_partner(struct oriel_window *whose, int32_t rank)
{
    (void)whose;
    REQUIRE(rank >= 0 && rank < RANKS);
    return &partners[rank];
}

const struct oriel_net_address_area *oriel_net_address_of(const char *file_base)
{
    static const struct oriel_net_address_area reached = {.address_bytes = 5, .address = "where"};
    return file_base != NULL ? &reached : NULL;
}

enum oriel_status oriel_liveness_lock(void *context)
{
    (void)context;
    return world.waits_in_vain ? ORIEL_E_PEER : ORIEL_OK;
}

enum oriel_status oriel_liveness_lock_all_holders(void *context)
{
    return oriel_liveness_lock(context);
}

char *oriel_file_base(void)
{
    static _Alignas(ORIEL_PAGE_BYTES) char first_page[ORIEL_PAGE_BYTES];
    return first_page;
}

enum oriel_status oriel_mechanism_probe_cma(struct oriel_peer *who)
{
    (void)who;
    return world.copies ? ORIEL_OK : ORIEL_E_OTHER;
}

static enum oriel_status copy_there(const struct oriel_remote *to, const void *from,
                                    uint64_t len_bytes)
{
    memcpy(to->direct, from, len_bytes);
    return ORIEL_OK;
}

static enum oriel_status copy_here(const struct oriel_remote *from, void *to, uint64_t len_bytes)
{
    memcpy(to, from->direct, len_bytes);
    return ORIEL_OK;
}

static enum oriel_status copy_pieces_to_target(const struct oriel_remote *to,
                                               const struct oriel_piece *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        memcpy(oriel_at(to->direct, pieces[i].offset_bytes), pieces[i].here, pieces[i].len_bytes);
    return ORIEL_OK;
}

static enum oriel_status copy_pieces_here(const struct oriel_remote *from,
                                          const struct oriel_piece *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        memcpy(pieces[i].here, oriel_at(from->direct, pieces[i].offset_bytes), pieces[i].len_bytes);
    return ORIEL_OK;
}

const struct oriel_transport oriel_transport_cma = {.name = "copies",
                                                    .write = copy_there,
                                                    .read = copy_here,
                                                    .write_pieces = copy_pieces_to_target,
                                                    .read_pieces = copy_pieces_here};

bool oriel_region_lookup_hold(const struct oriel_window *whose, int32_t target, uint64_t address,
                              uint64_t len_bytes)
{
    const uint64_t from = (uint64_t)(uintptr_t)exposed;
    (void)whose, (void)target;
    return address >= from && address - from <= WINDOW_BYTES &&
           len_bytes <= WINDOW_BYTES - (address - from);
}

bool oriel_region_lookup_find(const struct oriel_window *whose, int32_t target, uint64_t address,
                              struct oriel_region_lookup *out)
{
    const uint64_t from = (uint64_t)(uintptr_t)exposed;
    *out = (struct oriel_region_lookup){from, from + WINDOW_BYTES, 0, 0};
    return oriel_region_lookup_hold(whose, target, address, 1);
}

/* --- the window --- */

static void open_window(bool is_dynamic)
{
    static struct oriel_peer *peers[RANKS] = {&peers_here[0], &peers_here[1], NULL, NULL};
    static char *bases[RANKS] = {(char *)&file, (char *)&file, NULL, NULL};
    static char *memory_bases[RANKS] = {memory, memory, NULL, NULL};
    static struct oriel_group_id ids[RANKS];
    static _Atomic uint8_t access[RANKS];
    static struct oriel_group group = {.n = RANKS, .peers = peers, .bases = bases, .ids = ids};
    memset(&file, 0, sizeof file);
    memset(partners, 0, sizeof partners);
    memset(exposed, 1, WINDOW_BYTES);
    peers_here[0].base = peers_here[1].base = (char *)&file;
    for (int32_t i = 0; i < RANKS; i++) {
        ids[i].id[0] = (uint64_t)i;
        common->targets[i] =
            (struct oriel_target){.disp_unit = 1, .placement = ORIEL_PLACEMENT_NETWORK};
        if (i > 1)
            continue;
        common->targets[i].control_offset = (uint64_t)((char *)&file.controls[i] - (char *)&file);
        common->targets[i].placement =
            is_dynamic ? ORIEL_PLACEMENT_REGIONS : ORIEL_PLACEMENT_DIRECT;
        common->targets[i].offset = GUARD_BYTES;
        common->targets[i].size_bytes = common->targets[i].direct_bytes =
            is_dynamic ? 0 : WINDOW_BYTES;
        common->targets[i].address = is_dynamic ? 0 : (uint64_t)(uintptr_t)exposed;
    }
    ((struct oriel_nodes *)file.nodes)->count = 2;
    file.controls[SELF].notify_count = COUNTERS;
    file.controls[SELF].notify_offset = (uint64_t)(file.notifications - (char *)&file);
    window = (struct oriel_window){.n = RANKS,
                                   .rank = SELF,
                                   .here = 2,
                                   .targets = common->targets,
                                   .memory_bases = memory_bases,
                                   .access = access,
                                   .control_bases = bases,
                                   .common = common,
                                   .control = &file.controls[SELF],
                                   .group = &group,
                                   .base = exposed,
                                   .flavour =
                                       is_dynamic ? ORIEL_FLAVOUR_DYNAMIC : ORIEL_FLAVOUR_ALLOCATE};
    window.internode = oriel_internode_make(WINDOW_ID, RANKS);
    REQUIRE(window.internode != NULL && oriel_am_dispatch_add(&window));
    atomic_store(&window.internode->is_finished, true);
}

/* --- messages --- */

/* Offsets in and around the window, and arbitrary ones. */
static uint64_t draw_place(struct input *input)
{
    const uint8_t byte = input_byte(input);
    if (byte >= 240)
        return input_word(input);
    const int64_t offset = (int64_t)input_below(input, WINDOW_BYTES + 96) - 48;
    const uint64_t base =
        window.flavour == ORIEL_FLAVOUR_DYNAMIC ? (uint64_t)(uintptr_t)exposed : 0;
    return (byte % 4 != 0 ? base : 0) + (uint64_t)offset;
}

static uint64_t draw_length(struct input *input)
{
    static const uint64_t edges[] = {0, 1, 8, 16, 63 << 10, INT32_MAX, UINT32_MAX, UINT64_MAX};
    const uint8_t byte = input_byte(input);
    return byte < 200 ? byte : byte < 240 ? edges[byte % 8] : input_word(input);
}

/* Offsets that may be valid. */
static size_t draw_places(struct input *input, const struct oriel_internode_head *head, char *data)
{
    const bool blocks = (head->d >> 16 & ORIEL_INTERNODE_BLOCKS) != 0;
    uint32_t count = head->c > 30 ? 30 : head->c;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t at = draw_place(input) - head->a * (input_byte(input) % 4 != 0);
        const struct oriel_internode_batch batch = {
            .at_bytes = (int64_t)at,
            .stride_bytes = (int64_t)(draw_length(input) - 40),
            .run_bytes = (uint32_t)draw_length(input),
            .runs = (uint32_t)draw_length(input) % 9,
            .kind = input_byte(input) % 4 == 0 ? input_byte(input) : ORIEL_KIND_CHAR};
        const uint64_t length = draw_length(input);
        if (blocks) {
            memcpy(data + 8 * i, &at, sizeof at);
            memcpy(data + 8 * (count + i), &length, sizeof length);
        } else {
            memcpy(data + i * sizeof batch, &batch, sizeof batch);
        }
    }
    return count * (blocks ? 16 : sizeof(struct oriel_internode_batch));
}

/* The length in the message, or another. */
static size_t draw_operands(struct input *input, const struct oriel_internode_head *head,
                            char *data, size_t room)
{
    const uint32_t kind = head->d >> 8 & 255;
    uint64_t len_bytes = head->b;
    if (head->kind == ORIEL_INTERNODE_ACCUMULATE && kind < ORIEL_KIND_COUNT)
        len_bytes *= oriel_kind_moving_bytes((enum oriel_kind)kind);
    if (head->kind == ORIEL_INTERNODE_GET)
        len_bytes = 0;
    if (head->kind == ORIEL_INTERNODE_SWAP && kind < ORIEL_KIND_COUNT)
        len_bytes = 2 * oriel_kinds[kind].extent_bytes;
    if (len_bytes > room || input_byte(input) % 8 == 0)
        len_bytes = input_below(input, 256);
    input_take(input, data, len_bytes);
    return len_bytes;
}

static bool is_asked(const struct oriel_internode_head *head)
{
    switch (head->kind) {
    case ORIEL_INTERNODE_ACCUMULATE: return (head->d >> 16 & ORIEL_INTERNODE_RETURNS) != 0;
    case ORIEL_INTERNODE_FLUSH:
    case ORIEL_INTERNODE_GET:
    case ORIEL_INTERNODE_SWAP:
    case ORIEL_INTERNODE_LOCK:
    case ORIEL_INTERNODE_UNLOCK:
    case ORIEL_INTERNODE_ADDRESS:
    case ORIEL_INTERNODE_KEY:
    case ORIEL_INTERNODE_OPEN:
    case ORIEL_INTERNODE_CLOSE: return true;
    default: return false;
    }
}

/* The maximum number of answers due. A rank that dies while it waits for a lock, or with an
 * outstanding request under that lock, gets none. */
struct due {
    unsigned most;
    int32_t from;
    bool may_wait;
};

static bool is_answered(const struct due *due, unsigned times)
{
    const bool is_lost =
        due->may_wait && due->from >= 0 && due->from < RANKS && world.lost[due->from];
    return times <= due->most && (times == due->most || is_lost);
}

static struct due send_message(struct input *input, unsigned number)
{
    const uint8_t how = input_byte(input);
    const struct oriel_net_requester asker = {{0, number}};
    struct oriel_internode_head head = {.window = how % 32 == 0 ? input_word(input) : WINDOW_ID,
                                        .kind = input_below(input, ORIEL_INTERNODE_CLOSE + 2),
                                        .from = (int32_t)input_below(input, RANKS + 2) - 1,
                                        .a = draw_place(input),
                                        .b = draw_length(input),
                                        .c = (uint32_t)draw_length(input) * (how % 4 != 0)};
    head.c = how % 8 != 1 && head.c > 0 ? 1 + head.c % 5 : head.c;
    if (head.kind == ORIEL_INTERNODE_LOCK && how % 16 != 4) {
        head.a %= ORIEL_INTERNODE_WANTS_ALL_IN_TURN + 2;
        head.b %= 4;
    }
    head.d = (uint32_t)input_word(input);
    if (how % 16 != 2)
        head.d = oriel_internode_word(head.d % ORIEL_OPERATOR_COUNT,
                                      (head.d >> 8) % ORIEL_KIND_COUNT, head.d >> 16 & 3);
    if (how % 16 == 6)
        head.notifies = (uint32_t)draw_length(input) % (how < 128 ? COUNTERS + 2 : UINT32_MAX);
    const struct oriel_identity from = {
        .id = {how % 32 == 3 ? input_word(input) : (uint64_t)head.from, 0}};
    static char data[30 * sizeof(struct oriel_internode_batch) + DATA_MOST_BYTES];
    size_t len_bytes = draw_places(input, &head, data);
    len_bytes += draw_operands(input, &head, data + len_bytes, DATA_MOST_BYTES);
    char *exact = malloc(len_bytes > 0 ? len_bytes : 1);
    REQUIRE(exact != NULL);
    memcpy(exact, data, len_bytes);
    const bool short_head = how % 64 == 5;
    const struct oriel_net_received message = {&head, sizeof head - short_head, exact, len_bytes};
    oriel_am_dispatch_service.serve(&asker, &from, &message);
    free(exact);
    const unsigned most = !short_head && head.kind <= ORIEL_INTERNODE_CLOSE && is_asked(&head);
    const bool may_wait = head.kind < ORIEL_INTERNODE_ADDRESS;
    return (struct due){most, head.from, may_wait};
}

/* --- events between messages --- */

static void lose(void)
{
    const struct oriel_identity who = {.id = {LOST, 0}};
    world.lost[LOST] = true;
    oriel_am_dispatch_service.lost(&who);
}

/* Ranks of this node that request, hold and release lock_all. */
static void pass_gate(unsigned how)
{
    struct oriel_lock_all_gate *gate = &common->gate;
    const uint64_t word = atomic_load(&gate->word);
    switch (how % 4) {
    case 0: atomic_store(&gate->readers_waiting, 1); break;
    case 1:
        atomic_store(&gate->readers_waiting, 0);
        oriel_event_signal(&gate->admissions);
        break;
    case 2:
        if ((uint32_t)word == 0 || word >= ORIEL_GATE_READER)
            atomic_fetch_add(&gate->word, ORIEL_GATE_READER);
        break;
    default:
        if (word >= ORIEL_GATE_READER)
            oriel_gate_leave_reader(gate);
        break;
    }
}

static void happen(struct input *input)
{
    const uint8_t what = input_byte(input);
    switch (what % 8) {
    case 3: world.now_ns += what / 8 * UINT64_C(20000000); break;
    case 4: pass_gate(what / 8); break;
    case 5: world.waits_in_vain = !world.waits_in_vain; break;
    case 6: world.holders_die = !world.holders_die; break;
    case 7: lose(); break;
    default: break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    struct due due[MESSAGES_MOST];
    unsigned count = 0;
    __asan_poison_memory_region(memory, GUARD_BYTES);
    __asan_poison_memory_region(exposed + WINDOW_BYTES, GUARD_BYTES);
    memset(answers, 0, sizeof answers);
    const uint8_t how = input_byte(&input);
    memset(&world, 0, sizeof world);
    world.copies = how % 8 >= 4;
    open_window(how % 2 != 0);
    window.device_memory = how % 16 >= 8 ? exposed : NULL;
    while (input.left_bytes > 0 && count < MESSAGES_MOST) {
        if (how % 4 >= 2)
            happen(&input);
        due[count] = send_message(&input, count);
        count++;
        if (oriel_am_dispatch_service.look())
            (void)oriel_am_dispatch_service.look();
    }
    lose();
    oriel_am_dispatch_remove(&window);
    oriel_internode_free(window.internode);
    for (unsigned i = 0; i < count; i++)
        REQUIRE(is_answered(&due[i], answers[i]));
    return 0;
}
