/* Answers of other nodes' checkers to this process: arbitrary answers to all its questions.  No
 * answer reads or writes outside its purpose, deadlock snapshots read only valid data, and each
 * question ends.  This process is rank 2 of five, on the second of three nodes. */
#include "checker_shm.h"

#include "check/remote/remote_socket.h"
#include "check/remote/remote_waits.h"
#include "check/deadlock/deadlock.h"
#include "check/report/finding_internal.h"
#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/remote/history_proxy.h"
#include "check/order/rank_clocks.h"
#include "check/report/call_sites.h"

#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

enum { WORLD = 5, OWN = 2, NEIGHBOUR = 3, NODES = 3, ACTS_MOST = 24, NODE_SHIFT = 44 };
static const uint64_t window = 77, comm = 78;
static const int node_of[WORLD] = {0, 0, 1, 1, 2};

static struct input input;
static struct {
    uint64_t kind;
    int node;
    bool headed; /* the answer's header has been read */
} wire;

enum { FDS = 1024, REPORTS_MOST_BYTES = 8 * sizeof(struct oriel_wait_report) };
static int node_by_fd[FDS];

/* Each node's report of its waiting ranks, repeated while a snapshot reads it: a stuck rank stays
 * stuck. */
static struct {
    bool repeats;
    size_t len_bytes[NODES];
    char reports[NODES][REPORTS_MOST_BYTES];
} repeated;

/* --- stubs for the rest of the checker --- */

void oriel_finding_count(const char *what)
{
    look_at(what, strlen(what));
}

void oriel_finding_report(const struct oriel_finding *finding)
{
    struct oriel_record_site site;
    look_at(finding->detail, strlen(finding->detail));
    REQUIRE(finding->window == NULL || strnlen(finding->window, ORIEL_WAIT_NAME) < ORIEL_WAIT_NAME);
    oriel_site_describe(&finding->here, &site);
    REQUIRE(memchr(site.place.module, '\0', sizeof site.place.module) != NULL);
    oriel_site_describe(&finding->other, &site);
    REQUIRE(memchr(site.place.module, '\0', sizeof site.place.module) != NULL);
}

void oriel_text_add(struct oriel_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text->bytes + text->used, text->room - text->used, format, args);
    va_end(args);
    text->used += len < 0                                 ? 0
                  : (size_t)len < text->room - text->used ? (size_t)len
                                                          : text->room - text->used - 1;
}

int oriel_check_remote_connect(const struct oriel_check_remote_address *to, int thread)
{
    REQUIRE(to->ports[thread] != 0);
    const int fd = input_byte(&input) % 64 == 0 ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(fd < FDS);
    if (fd >= 0)
        node_by_fd[fd] = to->ports[thread] / 2 - 1;
    return fd;
}

bool oriel_check_remote_write(int fd, struct iovec *parts, int count)
{
    const struct oriel_check_remote_request *request = parts[0].iov_base;
    REQUIRE(fd >= 0 && fd < FDS && parts[0].iov_len == sizeof *request);
    wire.node = node_by_fd[fd];
    for (int i = 0; i < count; i++)
        look_at(parts[i].iov_base, parts[i].iov_len);
    wire.kind = request->kind;
    wire.headed = false;
    return input_byte(&input) % 128 != 0;
}

/* --- answers --- */

static size_t right_bytes(void)
{
    switch (wire.kind) {
    case ORIEL_CHECK_REMOTE_TAKE:
    case ORIEL_CHECK_REMOTE_TAKE_RANK:
    case ORIEL_CHECK_REMOTE_TAKE_ALL:
    case ORIEL_CHECK_REMOTE_FLOOR: return WORLD * sizeof(oriel_tick);
    case ORIEL_CHECK_REMOTE_ADD: return input_below(&input, 4) * sizeof(struct oriel_conflict);
    case ORIEL_CHECK_REMOTE_MEMBER_STATE: return sizeof(struct oriel_member_state_answer);
    case ORIEL_CHECK_REMOTE_SITE: return input_byte(&input) % 2 == 0 ? 16 : ORIEL_RECORD_LONG + 24;
    case ORIEL_CHECK_REMOTE_HANDLE: return ORIEL_PART_HANDLE_BYTES;
    case ORIEL_CHECK_REMOTE_WAITS:
        return (1 + input_below(&input, WORLD)) * sizeof(struct oriel_wait_report);
    case ORIEL_CHECK_REMOTE_PROGRESS:
        return oriel_collective_progress_bytes((int)input_below(&input, WORLD + 1),
                                               input_byte(&input) % 2 == 0);
    default: return 0;
    }
}

static void head(struct oriel_check_remote_answer *answer)
{
    if (wire.kind == ORIEL_CHECK_REMOTE_WAITS && repeated.repeats &&
        repeated.len_bytes[wire.node] > 0) {
        *answer = (struct oriel_check_remote_answer){.len_bytes = repeated.len_bytes[wire.node]};
        return;
    }
    const uint8_t how = input_byte(&input);
    answer->len_bytes = right_bytes();
    if (how % 16 == 0)
        answer->len_bytes = how / 16 % 4 == 0   ? 0
                            : how / 16 % 4 == 1 ? input_word(&input)
                                                : input_below(&input, 4000);
    answer->word = how % 16 == 1 ? input_word(&input) : input_below(&input, 8);
}

static struct oriel_site draw_site(void)
{
    return (struct oriel_site){.address = input_byte(&input) % 2 == 0
                                              ? input_word(&input)
                                              : (uint64_t)(1 + input_byte(&input) % 4) << 48,
                               .call = input_byte(&input)};
}

static void draw_need(struct oriel_wait_need *need)
{
    const uint8_t how = input_byte(&input);
    *need = (struct oriel_wait_need){
        .kind = how % 8,
        .rank = (int32_t)input_below(&input, WORLD + 1) - 1,
        .words = {comm, input_below(&input, 4), input_byte(&input), how & 16 ? window : comm}};
    if (how % 32 == 9)
        need->rank = (int32_t)input_word(&input);
    if (how % 32 == 10)
        input_take(&input, need->words, sizeof need->words);
    if (how & 64)
        need->words[2] |= ORIEL_NEED_OF_WINDOW;
    if (how & 128)
        need->kind |= ORIEL_NEED_MAYBE;
    if (how % 32 == 11)
        need->words[1] = ~(uint64_t)input_byte(&input);
}

static void draw_report(struct oriel_wait_report *report)
{
    const uint8_t how = input_byte(&input);
    struct oriel_wait_noted *noted = &report->record.noted;
    report->rank =
        how % 32 == 0 ? (int32_t)input_word(&input) : (int32_t)input_below(&input, WORLD);
    report->state =
        how % 32 == 1 ? (uint32_t)input_word(&input) : ORIEL_DEADLOCK_SET_WAITS + (how % 4 == 2);
    report->serial = how % 64 == 3 ? input_word(&input) : 1;
    noted->site = draw_site();
    noted->mode = how / 8 % 4 == 0;
    noted->count = how % 32 == 5 ? (uint32_t)input_word(&input) : 1 + input_below(&input, 3);
    memset(noted->name, how % 32 == 3 ? 'n' : 0, sizeof noted->name);
    for (uint32_t i = 0; i < noted->count && i < 4; i++)
        draw_need(&noted->needs[i]);
}

static void draw_progress(struct oriel_collective_progress *progress, size_t len_bytes)
{
    const uint8_t how = input_byte(&input);
    int n = 1;
    while (n < WORLD && oriel_collective_progress_bytes(n, false) != len_bytes &&
           oriel_collective_progress_bytes(n, true) != len_bytes)
        n++;
    progress->n = how % 32 == 0 ? (int32_t)input_word(&input) : n;
    progress->has_locks = oriel_collective_progress_bytes(n, true) == len_bytes;
    progress->id = how & 8 ? window : comm;
    progress->is_window = how & 8;
    for (int i = 0;
         i < n && sizeof *progress + (size_t)(i + 1) * sizeof progress->slots[0] <= len_bytes;
         i++) {
        progress->slots[i].world_rank = how % 32 == 1 ? (int32_t)input_word(&input) : 1 + i;
        progress->slots[i].number = input_below(&input, 5);
        progress->slots[i].last = input_byte(&input) % 4 == 0;
    }
}

static void draw_conflict(struct oriel_conflict *conflict)
{
    const uint8_t how = input_byte(&input);
    conflict->earlier = (struct oriel_access){
        .kind = how % 5, .origin = (int32_t)input_below(&input, WORLD), .site = draw_site()};
    if (how % 16 == 0)
        conflict->earlier.origin = (int32_t)input_word(&input);
    conflict->offset = how % 16 == 1 ? (int64_t)input_word(&input) : input_byte(&input);
    conflict->len_bytes = how % 16 == 2 ? input_word(&input) : 1;
    *(uint8_t *)&conflict->alias = how % 16 == 3 ? input_byte(&input) : 0;
}

static void draw_note(struct oriel_member_state_answer *answer)
{
    *answer = (struct oriel_member_state_answer){
        .found = input_byte(&input) % 4, .rank = (int32_t)input_word(&input), .gone_rank = -1};
}

static void fill(void *data, size_t len_bytes)
{
    char *at = data;
    const size_t all_bytes = len_bytes;
    if (wire.kind == ORIEL_CHECK_REMOTE_WAITS && repeated.repeats &&
        repeated.len_bytes[wire.node] == len_bytes) {
        memcpy(data, repeated.reports[wire.node], len_bytes);
        return;
    }
    memset(data, 0, len_bytes);
    const uint8_t how = input_byte(&input);
    if (how % 32 == 0)
        input_take(&input, data, len_bytes);
    else if (wire.kind == ORIEL_CHECK_REMOTE_ADD)
        for (; len_bytes >= sizeof(struct oriel_conflict);
             at += sizeof(struct oriel_conflict), len_bytes -= sizeof(struct oriel_conflict))
            draw_conflict((struct oriel_conflict *)(void *)at);
    else if (wire.kind == ORIEL_CHECK_REMOTE_WAITS)
        for (; len_bytes >= sizeof(struct oriel_wait_report);
             at += sizeof(struct oriel_wait_report), len_bytes -= sizeof(struct oriel_wait_report))
            draw_report((struct oriel_wait_report *)(void *)at);
    else if (wire.kind == ORIEL_CHECK_REMOTE_PROGRESS &&
             len_bytes >= sizeof(struct oriel_collective_progress))
        draw_progress(data, len_bytes);
    else if (wire.kind == ORIEL_CHECK_REMOTE_MEMBER_STATE &&
             len_bytes == sizeof(struct oriel_member_state_answer))
        draw_note(data);
    else if (wire.kind == ORIEL_CHECK_REMOTE_SITE)
        memset(data, how, len_bytes);
    else
        for (; len_bytes >= sizeof(uint64_t); at += sizeof(uint64_t), len_bytes -= sizeof(uint64_t))
            *(uint64_t *)(void *)at = input_below(&input, 20);
    if (wire.kind == ORIEL_CHECK_REMOTE_WAITS && repeated.repeats &&
        all_bytes <= REPORTS_MOST_BYTES) {
        memcpy(repeated.reports[wire.node], data, all_bytes);
        repeated.len_bytes[wire.node] = all_bytes;
    }
}

bool oriel_check_remote_read(int fd, void *data, size_t len_bytes)
{
    REQUIRE(fd >= 0);
    if (!wire.headed) {
        REQUIRE(len_bytes == sizeof(struct oriel_check_remote_answer));
        head(data);
        wire.headed = true;
        return true;
    }
    if (len_bytes > 0)
        fill(data, len_bytes);
    return input_byte(&input) % 128 != 0;
}

/* --- questions of this process --- */

static uint64_t ticket;

static void tell(const struct oriel_conflict *conflict, void *closure)
{
    (void)closure;
    REQUIRE(conflict->earlier.origin >= 0 && conflict->earlier.origin < WORLD &&
            conflict->later.origin == OWN);
    REQUIRE(conflict->offset + (int64_t)conflict->len_bytes > 0 &&
            (conflict->alias == 0 || conflict->alias == 1));
    look_at(conflict, sizeof *conflict);
}

static void use_part(oriel_shm_offset part)
{
    const struct oriel_access access = {.kind = ORIEL_ACCESS_PUT,
                                        .origin = OWN,
                                        .snapshot = ORIEL_SNAPSHOT_LIVE,
                                        .site = {.call = 1}};
    const struct oriel_access_extent extent = {.offset = 8, .len_bytes = 8, .count = 1};
    switch (input_byte(&input) % 5) {
    case 0: oriel_part_complete(part, OWN, 0, oriel_order_now()); break;
    case 1: oriel_part_complete_one(part, ticket, oriel_order_now()); break;
    case 2: oriel_part_flag(part, OWN, ORIEL_ACCESS_FLUSHED_OTHER); break;
    case 3: oriel_part_request_done(part, ticket); break;
    default: ticket = oriel_part_add(part, &access, &extent, 1, tell, NULL);
    }
}

static void use_order(struct oriel_key key)
{
    key.words[0] |= oriel_order_home((int)input_below(&input, WORLD));
    switch (input_byte(&input) % 8) {
    case 0: oriel_order_give(&key, 2); break;
    case 1: oriel_order_take(&key); break;
    case 2: oriel_order_end(&key, 2, true); break;
    case 3: oriel_order_take_rank((int)input_below(&input, WORLD)); break;
    case 4: oriel_order_unknown_end(); break;
    case 5: {
        oriel_tick floor[WORLD];
        oriel_order_floor(floor);
        look_at(floor, sizeof floor);
        break;
    }
    case 6: oriel_order_set_doubtful(); break;
    default: oriel_order_forget(&key);
    }
}

static void ask_note(void)
{
    const struct oriel_member_state_ask ask = {.kind = ORIEL_MEMBER_WANTED};
    struct oriel_member_state_answer answer;
    if (oriel_check_remote_member_state(0, window, &ask, &answer))
        look_at(&answer, sizeof answer);
}

static void use_sites(void)
{
    struct oriel_record_site described;
    const struct oriel_site made = draw_site();
    oriel_site_describe(&made, &described);
    REQUIRE(memchr(described.place.module, '\0', sizeof described.place.module) != NULL);
    const struct oriel_site numbered = oriel_site_numbered((uint16_t)input_word(&input), OWN);
    oriel_site_describe(&numbered, &described);
    look_at(described.call, strlen(described.call));
    oriel_site_code((const void *)(uintptr_t)use_sites);
}

static void look(void)
{
    struct oriel_deadlock finder;
    REQUIRE(oriel_deadlock_open(&finder, WORLD, 0));
    finder.look.remote = oriel_check_remote_waits();
    memset(repeated.len_bytes, 0, sizeof repeated.len_bytes);
    repeated.repeats = input_byte(&input) % 4 != 0;
    for (uint64_t i = 0; i < 6; i++)
        if (oriel_deadlock_find(&finder, 1000 * (i + 1)) > 0) {
            oriel_deadlock_report(&finder);
            break;
        }
    oriel_deadlock_close(&finder);
}

static void act(uint64_t here)
{
    const uint64_t parts[] = {(uint64_t)1 << NODE_SHIFT | 4096, (uint64_t)3 << NODE_SHIFT | 4096,
                              here};
    switch (input_byte(&input) % 8) {
    case 0: use_part(oriel_part_of(parts[input_below(&input, 3)])); break;
    case 1:
    case 2:
        use_order((struct oriel_key){.words = {ORIEL_ORDER_LOCK, window, input_below(&input, 3)}});
        break;
    case 3: ask_note(); break;
    case 4: use_sites(); break;
    case 5: {
        const struct oriel_key key = {.words = {ORIEL_ORDER_COUNT | oriel_order_home(0), window}};
        oriel_order_count(&key, 1);
        break;
    }
    default: look();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct oriel_check_remote_address addresses[NODES] = {0};
    input = (struct input){data, len_bytes};
    memset(&wire, 0, sizeof wire);
    ticket = 0;
    for (int i = 0; i < NODES; i++)
        addresses[i] = (struct oriel_check_remote_address){
            .count = 1, .ports = {(uint16_t)(2 * i + 2), (uint16_t)(2 * i + 3)}};
    checker_shm_open(WORLD);
    REQUIRE(oriel_check_remote_start(node_of, WORLD, node_of[OWN], addresses, NODES));
    REQUIRE(oriel_order_start(OWN, WORLD) == ORIEL_OK && oriel_call_sites_start() == ORIEL_OK);
    REQUIRE(oriel_ranks_add(NEIGHBOUR) != NULL &&
            oriel_wait_records_start(OWN, WORLD, false) == ORIEL_OK);
    REQUIRE(oriel_collective_progress_find(window, true, WORLD, NULL) != NULL &&
            oriel_collective_progress_find(comm, false, WORLD, NULL) != NULL);
    const uint64_t here = oriel_part_open();
    REQUIRE(here != 0);
    oriel_check_remote_connect_all();
    for (int i = 0; i < ACTS_MOST && input.left_bytes > 0; i++)
        act(here);
    oriel_history_leave(oriel_part_of(here));
    oriel_wait_records_stop();
    oriel_order_stop();
    oriel_check_remote_stop();
    checker_shm_close();
    return 0;
}
