/* One question after the other, on this machine's board.  What is in a question is checked first (remote_validate.h); one that does
 * not hold is not answered, and the connection that it came by ends.  remote_answer.h says who may call. */
#include "check/remote/remote_answer.h"

#include "check/access/history_proxy.h"
#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/order/rank_clocks.h"
#include "check/remote/remote_socket.h"
#include "check/remote/remote_validate.h"
#include "check/remote/remote_waits.h"
#include "check/report/call_sites.h"

#include <stdlib.h>
#include <string.h>

enum { CONFLICTS = 16 };

_Static_assert(sizeof(struct oriel_member_state_answer) <= ORIEL_SITE_SLOT_BYTES,
               "an answer to a question about a window has room");

struct told {
    struct oriel_conflict conflicts[CONFLICTS];
    size_t count;
};

static void collect(const struct oriel_conflict *conflict, void *closure)
{
    struct told *told = closure;
    if (told->count < CONFLICTS)
        told->conflicts[told->count++] = *conflict;
}

/* False: it does not hold. */
static bool add(const struct oriel_check_remote_request *request, char *data, struct told *told,
                uint64_t *ticket)
{
    size_t clock_bytes = (size_t)oriel_shm_world_size() * sizeof(oriel_tick);
    struct oriel_access *access = (struct oriel_access *)(void *)data;
    struct oriel_access_extent *extents =
        (struct oriel_access_extent *)(void *)(data + sizeof *access + clock_bytes);
    size_t count = (request->len_bytes - sizeof *access - clock_bytes) / sizeof *extents;
    if (!oriel_check_remote_access_holds(access, extents, count))
        return false;
    access->moment =
        oriel_order_moment_of((const oriel_tick *)(const void *)(data + sizeof *access));
    *ticket = oriel_history_add(request->words[0], access, extents, count, collect, told);
    oriel_order_moment_release(access->moment);
    return true;
}

static void work_on_history(const struct oriel_check_remote_request *request)
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

static struct iovec answer_note(struct oriel_check_remote_desk *desk,
                                const struct oriel_check_remote_request *request,
                                uint64_t *answered)
{
    struct oriel_member_state_ask ask;
    struct oriel_member_state_answer *out = (struct oriel_member_state_answer *)(void *)desk->data;
    memcpy(&ask, desk->data, sizeof ask);
    *answered = oriel_member_state_answer(request->words[0], &ask, out);
    return (struct iovec){.iov_base = out, .iov_len = *answered ? sizeof *out : 0};
}

/* A history that its member leaves meanwhile, in a program that is wrong, stays until this is done. */
static bool work_on_part(struct oriel_check_remote_desk *desk,
                         const struct oriel_check_remote_request *request, struct told *told,
                         uint64_t *ticket)
{
    bool holds = true;
    if (!oriel_part_enter(request->words[0]))
        return true;
    if (request->kind == ORIEL_CHECK_REMOTE_ADD)
        holds = add(request, desk->data, told, ticket);
    else
        work_on_history(request);
    oriel_part_leave(request->words[0]);
    return holds;
}

/* What follows the answer. */
static struct iovec work(struct oriel_check_remote_desk *desk,
                         const struct oriel_check_remote_request *request,
                         struct oriel_check_remote_answer *answer)
{
    const uint64_t *words = request->words;
    size_t clock_bytes = (size_t)oriel_shm_world_size() * sizeof(oriel_tick);
    struct iovec clock = {.iov_base = memset(desk->clock, 0, clock_bytes), .iov_len = clock_bytes};
    struct iovec nothing = {.iov_len = 0};
    bool any = false;
    bool made = false;
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_GIVE:
        oriel_given_join(&request->key, (uint32_t)words[0], words[1] != 0,
                         (const oriel_tick *)(const void *)desk->data);
        return nothing;
    case ORIEL_CHECK_REMOTE_TAKE:
        any = oriel_given_take(&request->key, (uint32_t)words[0], (unsigned)words[1], desk->clock,
                               &made);
        answer->word = (uint64_t)any | (uint64_t)made << 1 | (uint64_t)oriel_given_was_lost() << 2;
        return any ? clock : nothing;
    case ORIEL_CHECK_REMOTE_FORGET: oriel_shm_drop(&request->key); return nothing;
    case ORIEL_CHECK_REMOTE_TAKE_RANK:
        answer->word = oriel_rank_take((int)words[0], desk->clock);
        return clock;
    case ORIEL_CHECK_REMOTE_TAKE_ALL: oriel_ranks_take_all(-1, desk->clock); return clock;
    case ORIEL_CHECK_REMOTE_DOUBT:
        if (words[0] != 0)
            oriel_given_leave();
        else
            oriel_given_doubt();
        return nothing;
    case ORIEL_CHECK_REMOTE_COUNT:
        answer->word = oriel_given_count(&request->key, (uint32_t)words[0]) |
                       (uint64_t)oriel_given_lost_asker() << 32;
        return nothing;
    case ORIEL_CHECK_REMOTE_FLOOR:
        oriel_ranks_floor(desk->clock, &any);
        answer->word = any;
        return clock;
    case ORIEL_CHECK_REMOTE_NOTE: return answer_note(desk, request, &answer->word);
    case ORIEL_CHECK_REMOTE_SITE:
        return (struct iovec){.iov_base = desk->data,
                              .iov_len = oriel_site_slot((uint32_t)words[0], (uint32_t)words[1],
                                                         desk->data, (size_t)request->len_bytes,
                                                         &answer->word)};
    default:
        return (struct iovec){
            .iov_base = desk->data,
            .iov_len = oriel_check_remote_waits_answer(request, desk->data, &answer->word)};
    }
}

static bool make_room(struct oriel_check_remote_desk *desk, size_t len_bytes)
{
    if (len_bytes <= desk->data_bytes)
        return true;
    char *more = realloc(desk->data, len_bytes);
    if (more == NULL)
        return false;
    desk->data = more;
    desk->data_bytes = len_bytes;
    return true;
}

static size_t answer_room_bytes(const struct oriel_check_remote_request *request)
{
    return request->kind < ORIEL_CHECK_REMOTE_QUIET ? ORIEL_SITE_SLOT_BYTES
                                                    : oriel_check_remote_waits_bytes();
}

static bool is_of_part(const struct oriel_check_remote_request *request)
{
    return request->kind >= ORIEL_CHECK_REMOTE_ADD &&
           request->kind <= ORIEL_CHECK_REMOTE_REQUEST_DONE;
}

bool oriel_check_remote_answer(struct oriel_check_remote_desk *desk, int fd)
{
    struct oriel_check_remote_request request;
    struct oriel_check_remote_answer answer = {.word = 0};
    struct told told = {.count = 0};
    struct iovec parts[2] = {{.iov_base = &answer, .iov_len = sizeof answer}};
    if (!oriel_check_remote_read(fd, &request, sizeof request) ||
        !oriel_check_remote_request_holds(&request) ||
        (request.kind >= ORIEL_CHECK_REMOTE_LEAVES) != desk->leaf ||
        !make_room(desk, request.len_bytes + answer_room_bytes(&request)) ||
        !oriel_check_remote_read(fd, desk->data, request.len_bytes))
        return false;
    if (!is_of_part(&request))
        parts[1] = work(desk, &request, &answer);
    else if (work_on_part(desk, &request, &told, &answer.word))
        parts[1] = (struct iovec){.iov_base = told.conflicts,
                                  .iov_len = told.count * sizeof told.conflicts[0]};
    else
        return false;
    answer.len_bytes = parts[1].iov_len;
    return oriel_check_remote_write(fd, parts, 2);
}

bool oriel_check_remote_desk_open(struct oriel_check_remote_desk *desk, bool leaf)
{
    *desk = (struct oriel_check_remote_desk){.leaf = leaf};
    desk->clock = calloc((size_t)oriel_shm_world_size(), sizeof *desk->clock);
    return desk->clock != NULL;
}

void oriel_check_remote_desk_close(struct oriel_check_remote_desk *desk)
{
    free(desk->data);
    free(desk->clock);
    *desk = (struct oriel_check_remote_desk){.leaf = false};
}
