/* Order and call sites of several nodes: each function is one request to the server of the entry's
 * home, or one to each other node. Without an answer nothing is learnt, and no conflict is reported
 * any more (remote.h, F4). */
#include "check/remote/remote.h"

#include "check/order/order.h"
#include "check/order/rank_clocks.h"
#include "check/report/call_sites.h"

#include <stdlib.h>
#include <string.h>

static size_t clock_bytes(void)
{
    return (size_t)oriel_order_width() * sizeof(oriel_tick);
}

static uint64_t key_home(int world_rank)
{
    int node = oriel_check_remote_node_of(world_rank);
    return node < 0 || node == oriel_check_remote_own_node()
               ? 0
               : (uint64_t)(unsigned)(node + 1) << ORIEL_ORDER_HOME_SHIFT;
}

static void remote_give(const struct oriel_key *key, uint32_t takers, bool more,
                        const oriel_tick *clock)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_GIVE,
                                                 .words = {takers, more}};
    struct oriel_check_remote_answer answer;
    struct iovec part = {.iov_base = (void *)(uintptr_t)clock, .iov_len = clock_bytes()};
    int node = oriel_order_key_home(key, &request.key);
    oriel_check_remote_ask(node, &request, &part, 1, &answer, NULL, 0);
}

/* Asks for a clock, which is merged into out. */
static bool clock_ask(int node, struct oriel_check_remote_request *request, uint64_t *word,
                      oriel_tick *out)
{
    struct oriel_check_remote_answer answer;
    oriel_tick *clock = calloc(1, clock_bytes());
    bool asked = clock != NULL &&
                 oriel_check_remote_ask(node, request, NULL, 0, &answer, clock, clock_bytes());
    if (asked && answer.len_bytes == clock_bytes())
        oriel_clock_take(out, clock, oriel_order_width());
    if (asked)
        *word = answer.word;
    free(clock);
    return asked;
}

static bool remote_take(const struct oriel_key *key, uint32_t takers, unsigned how, oriel_tick *out,
                        bool *made, bool *lost)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_TAKE,
                                                 .words = {takers, how}};
    uint64_t word = 0;
    clock_ask(oriel_order_key_home(key, &request.key), &request, &word, out);
    *made = (word & 2) != 0;
    *lost = (word & 4) != 0;
    return (word & 1) != 0;
}

static void remote_forget(const struct oriel_key *key)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_FORGET};
    struct oriel_check_remote_answer answer;
    int node = oriel_order_key_home(key, &request.key);
    oriel_check_remote_ask(node, &request, NULL, 0, &answer, NULL, 0);
}

static bool remote_take_rank(int world_rank, oriel_tick *out)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_TAKE_RANK,
                                                 .words = {(uint64_t)world_rank}};
    uint64_t word = 0;
    clock_ask(oriel_check_remote_node_of(world_rank), &request, &word, out);
    return word != 0;
}

static void remote_take_all(oriel_tick *out)
{
    for (int node = 0; node < oriel_check_remote_node_count(); node++) {
        struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_TAKE_ALL};
        uint64_t word;
        if (node != oriel_check_remote_own_node())
            clock_ask(node, &request, &word, out);
    }
}

static void remote_doubt(bool left)
{
    for (int node = 0; node < oriel_check_remote_node_count(); node++) {
        struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_DOUBT,
                                                     .words = {left}};
        struct oriel_check_remote_answer answer;
        if (node != oriel_check_remote_own_node())
            oriel_check_remote_ask(node, &request, NULL, 0, &answer, NULL, 0);
    }
}

static uint32_t remote_count(const struct oriel_key *key, uint32_t more)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_COUNT, .words = {more}};
    struct oriel_check_remote_answer answer = {.word = 0};
    int node = oriel_order_key_home(key, &request.key);
    oriel_check_remote_ask(node, &request, NULL, 0, &answer, NULL, 0);
    if (answer.word >> 32 != 0)
        oriel_check_remote_set_gap();
    return (uint32_t)answer.word;
}

/* If nothing is known of some node, nothing is known to all. */
static void remote_floor(oriel_tick *out)
{
    oriel_tick *clock = calloc(1, clock_bytes());
    bool known = clock != NULL;
    for (int node = 0; node < oriel_check_remote_node_count() && known; node++) {
        struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_FLOOR};
        struct oriel_check_remote_answer answer;
        if (node == oriel_check_remote_own_node())
            continue;
        known = oriel_check_remote_ask(node, &request, NULL, 0, &answer, clock, clock_bytes()) &&
                answer.len_bytes == clock_bytes();
        for (int i = 0; i < oriel_order_width() && known && answer.word != 0; i++)
            out[i] = clock[i] < out[i] ? clock[i] : out[i];
    }
    if (!known)
        memset(out, 0, clock_bytes());
    free(clock);
}

static bool site_ask(uint32_t table, uint32_t slot, void *entry, size_t entry_bytes, bool claims)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_SITE,
                                                 .words = {table, slot}};
    struct oriel_check_remote_answer answer;
    struct iovec part = {.iov_base = entry, .iov_len = entry_bytes};
    return oriel_check_remote_ask(0, &request, &part, claims, &answer, entry, entry_bytes) &&
           answer.word != 0 && answer.len_bytes == entry_bytes;
}

void oriel_check_remote_order_set(void)
{
    static const struct oriel_order_remote order = {.home = key_home,
                                                    .give = remote_give,
                                                    .take = remote_take,
                                                    .forget = remote_forget,
                                                    .take_rank = remote_take_rank,
                                                    .take_all = remote_take_all,
                                                    .floor = remote_floor,
                                                    .doubt = remote_doubt,
                                                    .count = remote_count};
    oriel_order_remote_set(&order);
    if (oriel_check_remote_own_node() != 0)
        oriel_sites_remote_set(site_ask);
}
