/* Serves one request after the other on this node's shared memory. The contents of a request are
 * checked first (remote_validate.h). An invalid request gets no answer, and its connection is
 * closed. */
#include "check/remote/remote_answer.h"

#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/order/rank_clocks.h"
#include "check/order/word_clocks.h"
#include "check/remote/history_proxy.h"
#include "check/remote/remote_socket.h"
#include "check/remote/remote_validate.h"
#include "check/remote/remote_waits.h"
#include "check/report/call_sites.h"

#include <stdlib.h>
#include <string.h>

enum { CONFLICTS = 16 };

_Static_assert(sizeof(struct oriel_member_state_answer) <= ORIEL_SITE_SLOT_BYTES,
               "an answer to a question about a window has room");
_Static_assert((int)ORIEL_PART_HANDLE_BYTES <= (int)ORIEL_SITE_SLOT_BYTES,
               "an answer about a handle has room");

struct found {
    struct oriel_conflict conflicts[CONFLICTS];
    size_t count;
};

static void conflict_collect(const struct oriel_conflict *conflict, void *closure)
{
    struct found *found = closure;
    if (found->count < CONFLICTS)
        found->conflicts[found->count++] = *conflict;
}

/* Returns false if the access is invalid. */
static bool access_add(const struct oriel_check_remote_request *request, char *data,
                       struct found *found, uint64_t *ticket)
{
    size_t clock_bytes = (size_t)oriel_order_width() * sizeof(oriel_tick);
    struct oriel_access *access = (struct oriel_access *)(void *)data;
    struct oriel_access_extent *extents =
        (struct oriel_access_extent *)(void *)(data + sizeof *access + clock_bytes);
    size_t count = (request->len_bytes - sizeof *access - clock_bytes) / sizeof *extents;
    if (!oriel_check_remote_access_is_valid(access, extents, count))
        return false;
    access->snapshot =
        oriel_order_snapshot_of((const oriel_tick *)(const void *)(data + sizeof *access));
    *ticket = oriel_history_add(request->words[0], access, extents, count, conflict_collect, found);
    oriel_order_snapshot_release(access->snapshot);
    return true;
}

static void history_update_serve(const struct oriel_check_remote_request *request)
{
    const uint64_t *words = request->words;
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_COMPLETE:
        oriel_history_complete(words[0], (int32_t)words[1], words[3], words[2]);
        break;
    case ORIEL_CHECK_REMOTE_COMPLETE_ONE:
        oriel_history_complete_one(words[0], words[1], words[2]);
        break;
    case ORIEL_CHECK_REMOTE_FLAG:
        oriel_history_flag(words[0], (int32_t)words[1], (uint8_t)words[2]);
        break;
    default: oriel_history_request_done(words[0], words[1]); break;
    }
}

static struct iovec member_state_serve(struct oriel_check_remote_worker *worker,
                                       const struct oriel_check_remote_request *request,
                                       uint64_t *answered)
{
    struct oriel_member_state_ask ask;
    struct oriel_member_state_answer *out =
        (struct oriel_member_state_answer *)(void *)worker->data;
    memcpy(&ask, worker->data, sizeof ask);
    *answered = oriel_member_state_answer(request->words[0], &ask, out);
    return (struct iovec){.iov_base = out, .iov_len = *answered ? sizeof *out : 0};
}

/* If the member leaves a history meanwhile, in an incorrect program, the history stays until this
 * is done. */
static bool history_request_serve(struct oriel_check_remote_worker *worker,
                                  const struct oriel_check_remote_request *request,
                                  struct found *found, uint64_t *ticket)
{
    bool holds = true;
    if (!oriel_part_enter(request->words[0]))
        return true;
    if (request->kind == ORIEL_CHECK_REMOTE_ADD)
        holds = access_add(request, worker->data, found, ticket);
    else
        history_update_serve(request);
    oriel_part_leave(request->words[0]);
    return holds;
}

/* Of words that local processes have in a table, too. */
static void give_serve(const struct oriel_check_remote_request *request, const oriel_tick *clock)
{
    const uint64_t *words = request->words;
    if (!oriel_word_join_by_key(&request->key, clock))
        oriel_given_join(&request->key, (uint32_t)words[0], words[1] != 0, clock);
}

static bool take_serve(const struct oriel_check_remote_request *request, oriel_tick *out,
                       bool *made)
{
    const uint64_t *words = request->words;
    return oriel_word_take_by_key(&request->key, out) ||
           oriel_given_take(&request->key, (uint32_t)words[0], (unsigned)words[1], out, made);
}

/* Returns the data that follows the answer. */
static struct iovec request_serve(struct oriel_check_remote_worker *worker,
                                  const struct oriel_check_remote_request *request,
                                  struct oriel_check_remote_answer *answer)
{
    const uint64_t *words = request->words;
    size_t clock_bytes = (size_t)oriel_order_width() * sizeof(oriel_tick);
    struct iovec clock = {.iov_base = memset(worker->clock, 0, clock_bytes),
                          .iov_len = clock_bytes};
    struct iovec nothing = {.iov_len = 0};
    bool any = false;
    bool made = false;
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_GIVE:
        give_serve(request, (const oriel_tick *)(const void *)worker->data);
        return nothing;
    case ORIEL_CHECK_REMOTE_TAKE:
        any = take_serve(request, worker->clock, &made);
        answer->word = (uint64_t)any | (uint64_t)made << 1 | (uint64_t)oriel_given_was_lost() << 2;
        return any ? clock : nothing;
    case ORIEL_CHECK_REMOTE_FORGET: oriel_shm_drop(&request->key); return nothing;
    case ORIEL_CHECK_REMOTE_TAKE_RANK:
        answer->word = oriel_rank_take((int)words[0], worker->clock);
        return clock;
    case ORIEL_CHECK_REMOTE_TAKE_ALL: oriel_ranks_take_all(-1, worker->clock); return clock;
    case ORIEL_CHECK_REMOTE_DOUBT:
        if (words[0] != 0)
            oriel_given_leave();
        else
            oriel_given_set_doubtful();
        return nothing;
    case ORIEL_CHECK_REMOTE_COUNT:
        answer->word = oriel_given_count(&request->key, (uint32_t)words[0]) |
                       (uint64_t)oriel_given_client_was_lost() << 32;
        return nothing;
    case ORIEL_CHECK_REMOTE_FLOOR:
        oriel_ranks_floor(worker->clock, &any);
        answer->word = any;
        return clock;
    case ORIEL_CHECK_REMOTE_MEMBER_STATE: return member_state_serve(worker, request, &answer->word);
    case ORIEL_CHECK_REMOTE_SITE:
        return (struct iovec){.iov_base = worker->data,
                              .iov_len = oriel_site_slot((uint32_t)words[0], (uint32_t)words[1],
                                                         worker->data, (size_t)request->len_bytes,
                                                         &answer->word)};
    case ORIEL_CHECK_REMOTE_HANDLE:
        answer->word = oriel_part_load_here(&request->key, worker->data);
        return (struct iovec){.iov_base = worker->data,
                              .iov_len = answer->word != 0 ? ORIEL_PART_HANDLE_BYTES : 0};
    default:
        return (struct iovec){
            .iov_base = worker->data,
            .iov_len = oriel_check_remote_waits_answer(request, worker->data, &answer->word)};
    }
}

static bool data_reserve(struct oriel_check_remote_worker *worker, size_t len_bytes)
{
    if (len_bytes <= worker->data_bytes)
        return true;
    char *more = realloc(worker->data, len_bytes);
    if (more == NULL)
        return false;
    worker->data = more;
    worker->data_bytes = len_bytes;
    return true;
}

static size_t answer_room_bytes(const struct oriel_check_remote_request *request)
{
    return request->kind < ORIEL_CHECK_REMOTE_QUIET ? ORIEL_SITE_SLOT_BYTES
                                                    : oriel_check_remote_waits_bytes();
}

static bool is_history_request(const struct oriel_check_remote_request *request)
{
    return request->kind >= ORIEL_CHECK_REMOTE_ADD &&
           request->kind <= ORIEL_CHECK_REMOTE_REQUEST_DONE;
}

bool oriel_check_remote_answer(struct oriel_check_remote_worker *worker, int fd)
{
    struct oriel_check_remote_request request;
    struct oriel_check_remote_answer answer = {.word = 0};
    struct found found = {.count = 0};
    struct iovec parts[2] = {{.iov_base = &answer, .iov_len = sizeof answer}};
    if (!oriel_check_remote_read(fd, &request, sizeof request) ||
        !oriel_check_remote_request_is_valid(&request) ||
        (request.kind >= ORIEL_CHECK_REMOTE_LEAVES) != worker->leaf ||
        !data_reserve(worker, request.len_bytes + answer_room_bytes(&request)) ||
        !oriel_check_remote_read(fd, worker->data, request.len_bytes))
        return false;
    if (!is_history_request(&request))
        parts[1] = request_serve(worker, &request, &answer);
    else if (history_request_serve(worker, &request, &found, &answer.word))
        parts[1] = (struct iovec){.iov_base = found.conflicts,
                                  .iov_len = found.count * sizeof found.conflicts[0]};
    else
        return false;
    answer.len_bytes = parts[1].iov_len;
    return oriel_check_remote_write(fd, parts, 2);
}

bool oriel_check_remote_worker_open(struct oriel_check_remote_worker *worker, bool leaf)
{
    *worker = (struct oriel_check_remote_worker){.leaf = leaf};
    worker->clock = calloc((size_t)oriel_order_width(), sizeof *worker->clock);
    return worker->clock != NULL;
}

void oriel_check_remote_worker_close(struct oriel_check_remote_worker *worker)
{
    free(worker->data);
    free(worker->clock);
    *worker = (struct oriel_check_remote_worker){.leaf = false};
}
