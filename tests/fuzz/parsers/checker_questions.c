/* Questions of other nodes' checkers to this node: arbitrary questions on authenticated
 * connections.  No question reads or writes outside its subject, each ends, and the shared data of
 * this node's ranks stays intact. */
#include "checker_shm.h"

#include "check/remote/remote_answer.h"
#include "check/remote/remote_socket.h"
#include "check/remote/remote_waits.h"
#include "check/report/finding.h"
#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/remote/history_proxy.h"
#include "check/order/rank_clocks.h"
#include "check/report/call_sites.h"

enum {
    WORLD = 4,
    OWN = 0,
    NEIGHBOUR = 1,
    QUESTIONS_MOST = 32,
    DATA_MOST_BYTES = 2400,
    PARTS = 2,
    TICKETS = 4
};
enum {
    SITE_NUMBER_BYTES = 16,
    SITE_MODULE_BYTES = ORIEL_RECORD_LONG + 24
}; /* entries of the tables of sites.c */
static const uint64_t window = 77, comm = 78;

static oriel_shm_offset parts[PARTS]; /* histories; 0: shared memory was full */
static uint64_t tickets[TICKETS];
static struct oriel_member_states *notes;

/* The question in progress. */
static struct {
    struct oriel_check_remote_request request;
    char data[DATA_MOST_BYTES];
    size_t data_bytes;
    bool begun;
    bool answered;
    uint64_t word;
} wire;

/* --- stubs for the rest of the checker --- */

int oriel_check_remote_node_of(int world_rank)
{
    return world_rank < 0 || world_rank >= WORLD ? -1 : world_rank > NEIGHBOUR;
}

int oriel_check_remote_own_node(void)
{
    return 0;
}

int oriel_check_remote_node_count(void)
{
    return 2;
}

bool oriel_check_remote_ask(int node, struct oriel_check_remote_request *request,
                            const struct iovec *given, int given_count,
                            struct oriel_check_remote_answer *answer, void *data, size_t room_bytes)
{
    (void)node, (void)request, (void)given, (void)given_count, (void)answer, (void)data,
        (void)room_bytes;
    abort();
}

void oriel_finding_count(const char *what)
{
    look_at(what, strlen(what));
}

bool oriel_check_remote_read(int fd, void *data, size_t len_bytes)
{
    (void)fd;
    if (!wire.begun) {
        REQUIRE(len_bytes == sizeof wire.request);
        memcpy(data, &wire.request, len_bytes);
        wire.begun = true;
        return true;
    }
    if (len_bytes > wire.data_bytes)
        return false;
    if (len_bytes > 0)
        memcpy(data, wire.data, len_bytes);
    return true;
}

bool oriel_check_remote_write(int fd, struct iovec *given, int count)
{
    const struct oriel_check_remote_answer *answer = given[0].iov_base;
    (void)fd;
    REQUIRE(count == 2 && given[0].iov_len == sizeof *answer &&
            answer->len_bytes == given[1].iov_len);
    look_at(given[1].iov_base, given[1].iov_len);
    wire.answered = true;
    wire.word = answer->word;
    return true;
}

/* --- questions --- */

static uint64_t draw_place(struct input *input)
{
    const uint64_t list[] = {parts[0], parts[1], window, comm, oriel_shm_place(notes)};
    return draw_number(input, list, 5);
}

static uint64_t draw_word(struct input *input)
{
    const uint64_t list[] = {tickets[0],
                             tickets[1],
                             tickets[2],
                             tickets[3],
                             ORIEL_ACCESS_GROUP + 1,
                             ORIEL_ACCESS_GROUP + 2,
                             ORIEL_ACCESS_REQUEST_DONE,
                             ORIEL_ACCESS_FLUSHED_OTHER};
    return draw_number(input, list, 8);
}

/* The checker's own kinds too: "PART", "NOTES", "SITES", "WAITS", "GATH", a window's, the lock of
 * overlapping windows. */
static struct oriel_key draw_key(struct input *input)
{
    static const uint64_t kinds[] = {ORIEL_ORDER_MESSAGE,
                                     ORIEL_ORDER_POST,
                                     ORIEL_ORDER_WORD,
                                     ORIEL_ORDER_COUNT,
                                     ORIEL_ORDER_CLOCKS,
                                     0x50415254,
                                     0x4e4f544553,
                                     0x5349544553,
                                     0x5741495453,
                                     0x47415448,
                                     100,
                                     101};
    struct oriel_key key = {.words = {kinds[input_below(input, 12)], draw_place(input)}};
    const uint8_t how = input_byte(input);
    if (how % 8 == 0)
        key.words[0] = input_word(input);
    key.words[2] = how % 4 == 1;
    key.words[3] = how % 8 == 2 ? input_word(input) : 0;
    return key;
}

static struct oriel_site draw_site(struct input *input)
{
    return (struct oriel_site){.address = draw_word(input),
                               .world_rank = input_byte(input),
                               .call = input_byte(input),
                               .epoch = input_byte(input)};
}

static struct oriel_access_extent draw_extent(struct input *input)
{
    struct oriel_access_extent extent = {.offset = input_byte(input),
                                         .len_bytes = input_below(input, 100),
                                         .count = 1 + input_below(input, 4),
                                         .stride_bytes = input_byte(input)};
    const uint8_t how = input_byte(input);
    if (how % 8 == 0)
        extent.offset =
            (int64_t)(how % 16 == 0 ? input_word(input)
                                    : (uint64_t)input_byte(input) << (input_byte(input) % 64));
    if (how % 8 == 1)
        extent.len_bytes = how % 16 == 1 ? input_word(input)
                                         : (uint64_t)input_byte(input) << (input_byte(input) % 64);
    if (how % 8 == 2 || how % 8 == 4)
        extent.count = how % 16 == 2 ? input_word(input)
                                     : (uint64_t)input_byte(input) << (input_byte(input) % 64);
    if (how % 8 == 3 || how % 8 == 4)
        extent.stride_bytes = (int64_t)(how % 16 == 3 ? input_word(input)
                                                      : (uint64_t)(int64_t)(int8_t)input_byte(input)
                                                            << (input_byte(input) % 57));
    return extent;
}

static void put(const void *bytes, size_t len_bytes)
{
    if (len_bytes > sizeof wire.data - wire.data_bytes)
        return;
    memcpy(wire.data + wire.data_bytes, bytes, len_bytes);
    wire.data_bytes += len_bytes;
}

static void draw_clock(struct input *input)
{
    for (int i = 0; i < WORLD; i++) {
        const oriel_tick tick =
            input_byte(input) % 8 == 0 ? input_word(input) : input_below(input, 9);
        put(&tick, sizeof tick);
    }
}

static void draw_access(struct input *input)
{
    const uint8_t how = input_byte(input);
    struct oriel_access access = {.kind = (uint8_t)(ORIEL_ACCESS_GET + how % 3),
                                  .op = input_byte(input) % 16,
                                  .element = input_byte(input) % 32,
                                  .origin = (int32_t)(how / 4 % WORLD),
                                  .issued = input_below(input, 9),
                                  .site = draw_site(input)};
    access.flags = how % 8 == 0 ? input_byte(input) : how % 8 == 1 ? ORIEL_ACCESS_ALONE : 0;
    access.group = how % 16 == 2 ? draw_word(input) : how % 16 < 6 ? ORIEL_ACCESS_GROUP + 1 : 0;
    if (how == 255)
        input_take(input, &access, sizeof access);
    if (how % 32 == 7)
        access.origin = (int32_t)input_word(input);
    put(&access, sizeof access);
    draw_clock(input);
    for (uint32_t left = input_below(input, 5); left > 0; left--) {
        const struct oriel_access_extent extent = draw_extent(input);
        put(&extent, sizeof extent);
    }
}

static void draw_note(struct input *input)
{
    struct oriel_member_state_ask ask = {.kind = input_below(input, ORIEL_MEMBER_KINDS + 1),
                                         .member = (int32_t)input_below(input, WORLD),
                                         .other = (int32_t)input_below(input, WORLD),
                                         .assert = input_byte(input),
                                         .number = draw_word(input),
                                         .tick = input_byte(input),
                                         .site = draw_site(input),
                                         .extent = draw_extent(input)};
    const uint8_t how = input_byte(input);
    if (how % 8 == 0)
        ask.member = (int32_t)input_word(input);
    if (how % 8 == 1)
        ask.other = (int32_t)input_word(input);
    put(&ask, sizeof ask);
}

static void draw_data(struct input *input)
{
    static char any[1100];
    const uint8_t how = input_byte(input);
    size_t len_bytes = 0;
    switch (how % 16 == 0 ? (uint64_t)ORIEL_CHECK_REMOTE_KINDS : wire.request.kind) {
    case ORIEL_CHECK_REMOTE_GIVE: draw_clock(input); return;
    case ORIEL_CHECK_REMOTE_ADD: draw_access(input); return;
    case ORIEL_CHECK_REMOTE_MEMBER_STATE: draw_note(input); return;
    case ORIEL_CHECK_REMOTE_SITE:
        len_bytes = how % 4 == 1 ? SITE_NUMBER_BYTES : how % 4 == 2 ? 0 : SITE_MODULE_BYTES;
        break;
    case ORIEL_CHECK_REMOTE_KINDS: len_bytes = input_below(input, sizeof any); break;
    default: return;
    }
    memset(any, 'a', sizeof any);
    for (size_t at = 0; at < len_bytes && input->left_bytes > 0; at += 40)
        any[at] = (char)input_byte(input);
    put(any, len_bytes);
}

static void draw_question(struct input *input)
{
    const uint8_t how = input_byte(input);
    memset(&wire, 0, sizeof wire);
    wire.request.kind =
        how % 64 == 0 ? input_word(input) : input_below(input, ORIEL_CHECK_REMOTE_KINDS);
    wire.request.key = draw_key(input);
    wire.request.words[0] = draw_place(input);
    for (int i = 1; i < 4; i++)
        wire.request.words[i] = draw_word(input);
    if (wire.request.kind == ORIEL_CHECK_REMOTE_SITE) {
        wire.request.words[0] = input_below(input, 3);
        wire.request.words[1] = draw_number(input, (const uint64_t[]){1023, 1024, 4095, 4096}, 4);
    }
    draw_data(input);
    if (how % 16 == 2)
        wire.data_bytes = input_below(input, (uint32_t)wire.data_bytes + 1);
    wire.request.len_bytes =
        how % 32 == 1 ? draw_number(input, (const uint64_t[]){UINT64_MAX, UINT64_MAX - 1023}, 2)
                      : wire.data_bytes;
}

static void ask(struct input *input, struct oriel_check_remote_worker desks[2])
{
    draw_question(input);
    bool leaf = wire.request.kind >= ORIEL_CHECK_REMOTE_LEAVES;
    if (input_byte(input) % 32 == 0)
        leaf = !leaf;
    REQUIRE(oriel_check_remote_answer(&desks[leaf], -1) == wire.answered);
    if (wire.answered && wire.request.kind == ORIEL_CHECK_REMOTE_ADD && wire.word != 0)
        tickets[input_byte(input) % TICKETS] = wire.word;
}

/* --- this node's own accesses --- */

static void ignore_conflict(const struct oriel_conflict *conflict, void *closure)
{
    (void)closure;
    look_at(conflict, sizeof *conflict);
    REQUIRE(conflict->earlier.origin >= 0 && conflict->earlier.origin < WORLD);
}

/* To this process, the neighbour's accesses are those of another process. */
static void access_here(struct input *input, oriel_shm_offset history)
{
    const oriel_shm_offset snapshot = oriel_order_snapshot();
    struct oriel_access access = {.kind = (uint8_t)(input_byte(input) % 5),
                                  .origin = OWN,
                                  .snapshot = snapshot,
                                  .issued = oriel_order_now(),
                                  .site = {.call = 1, .address = input_byte(input)}};
    const struct oriel_access_extent extent = {
        .offset = input_byte(input), .len_bytes = 1 + input_below(input, 80), .count = 1};
    const uint64_t ticket = oriel_history_add(history, &access, &extent, 1, ignore_conflict, NULL);
    if (input_byte(input) % 2 == 0)
        oriel_history_complete(history, OWN, 0, oriel_order_now());
    else
        oriel_history_complete_one(history, ticket, oriel_order_now());
    oriel_order_snapshot_release(snapshot);
}

static void open_part(int which)
{
    const uint64_t number = oriel_part_open();
    parts[which] = number == 0 ? 0 : oriel_part_of(number);
}

static void close_part(int which)
{
    if (parts[which] != 0) {
        oriel_history_leave(parts[which]);
        oriel_part_close(parts[which]);
    }
    parts[which] = 0;
}

static void do_here(struct input *input)
{
    const int which = (int)input_below(input, PARTS);
    struct oriel_member_state_answer answer;
    struct oriel_member_state_ask ask = {.kind = ORIEL_MEMBER_ATTACH,
                                         .member = OWN,
                                         .extent = {.offset = input_byte(input),
                                                    .len_bytes = 1 + input_below(input, 60),
                                                    .count = 1}};
    switch (input_byte(input) % 8) {
    case 0: close_part(which); break;
    case 1:
        if (parts[which] == 0)
            open_part(which);
        break;
    case 2: ask.kind = ORIEL_MEMBER_DETACH; /* fall through */
    case 3: oriel_member_state_work(notes, &ask, &answer); break;
    default:
        if (parts[which] != 0)
            access_here(input, parts[which]);
    }
}

/* The data of this node's ranks is there, and the checker finds their additions, whatever others
 * have asked. */
static void check_here(struct input *input)
{
    struct oriel_key key = {.words = {ORIEL_ORDER_SYNC, 4711}};
    const struct oriel_member_state_ask note = {.kind = ORIEL_MEMBER_END, .member = OWN};
    struct oriel_member_state_answer answer;
    struct oriel_record_site described;
    oriel_member_state_work(notes, &note, &answer);
    for (uint64_t module = 1; module < 6; module++) {
        oriel_site_describe(&(struct oriel_site){.call = 1, .address = module << 48}, &described);
        REQUIRE(memchr(described.place.module, '\0', sizeof described.place.module) != NULL);
    }
    oriel_order_give(&key, 1);
    REQUIRE(oriel_order_take(&key) || oriel_shm_refused() > 0);
    for (int i = 0; i < PARTS; i++) {
        uint64_t accesses;
        uint64_t bytes;
        if (parts[i] == 0)
            continue;
        REQUIRE(oriel_part_enter(parts[i]));
        oriel_part_leave(parts[i]);
        access_here(input, parts[i]);
        oriel_history_forget(parts[i], 0, 1 << 20);
        oriel_history_size(parts[i], &accesses, &bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    struct oriel_check_remote_worker desks[2];
    memset(tickets, 0, sizeof tickets);
    memset(parts, 0, sizeof parts);
    checker_shm_open(WORLD);
    REQUIRE(oriel_order_start(OWN, WORLD) == ORIEL_OK && oriel_call_sites_start() == ORIEL_OK);
    REQUIRE(oriel_ranks_add(NEIGHBOUR) != NULL &&
            oriel_wait_records_start(OWN, WORLD, false) == ORIEL_OK);
    notes = oriel_member_states_find(window, WORLD, 2);
    REQUIRE(notes != NULL && oriel_collective_progress_find(window, true, WORLD, NULL) != NULL &&
            oriel_collective_progress_find(comm, false, WORLD, NULL) != NULL);
    open_part(0);
    REQUIRE(oriel_check_remote_worker_open(&desks[0], false) &&
            oriel_check_remote_worker_open(&desks[1], true));
    for (int i = 0; i < QUESTIONS_MOST && input.left_bytes > 0; i++) {
        if (input_byte(&input) % 4 == 0)
            do_here(&input);
        ask(&input, desks);
    }
    check_here(&input);
    for (int i = 0; i < PARTS; i++)
        close_part(i);
    oriel_member_states_leave(window);
    for (int i = 0; i < 2; i++)
        oriel_check_remote_worker_close(&desks[i]);
    oriel_wait_records_stop();
    oriel_order_stop();
    checker_shm_close();
    return 0;
}
