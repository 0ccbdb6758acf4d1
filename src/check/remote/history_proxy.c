/* Parts of windows. history.c handles the histories of this node; requests to other nodes handle
 * theirs. A part's number is the history's offset, with the number of the node, plus 1, in the bits
 * above it. */
#include "check/remote/history_proxy.h"

#include "check/order/order.h"
#include "check/remote/remote_validate.h"

#include <string.h>

enum { NODE_SHIFT = 44, CONFLICTS = 16 };

/* The block under the key of a part that is open or has users. */
struct open_part {
    uint32_t users;
    uint32_t closed;
};

static struct oriel_key part_key(oriel_shm_offset history)
{
    return (struct oriel_key){
        .words = {UINT64_C(0x50415254), history}}; /* "PART": greater than all kinds of order.h */
}

uint64_t oriel_part_share(oriel_shm_offset history)
{
    struct oriel_key key = part_key(history);
    return history == 0 || oriel_shm_find(&key, sizeof(struct open_part), NULL) == 0
               ? 0
               : (uint64_t)(unsigned)(oriel_check_remote_own_node() + 1) << NODE_SHIFT | history;
}

uint64_t oriel_part_open(void)
{
    const oriel_shm_offset history = oriel_history_make(0);
    const uint64_t number = oriel_part_share(history);
    if (history != 0 && number == 0)
        oriel_history_free(history);
    return number;
}

/* The last user removes the key, and then frees the history. */
static bool part_close_in_work(void *at, bool made, void *last)
{
    struct open_part *part = at;
    (void)made;
    part->closed = 1;
    *(bool *)last = part->users == 0;
    return part->users > 0;
}

static bool part_enter_in_work(void *at, bool made, void *entered)
{
    struct open_part *part = at;
    (void)made;
    *(bool *)entered = !part->closed;
    part->users += !part->closed;
    return true;
}

static bool part_leave_in_work(void *at, bool made, void *last)
{
    struct open_part *part = at;
    (void)made;
    *(bool *)last = --part->users == 0 && part->closed;
    return !*(bool *)last;
}

static bool part_work(oriel_shm_offset history, oriel_shm_work_fn *work)
{
    struct oriel_key key = part_key(history);
    bool answer = false;
    return oriel_shm_work(&key, 0, work, &answer) && answer;
}

void oriel_part_close(oriel_shm_offset history)
{
    const struct oriel_key key = part_key(history);
    bool last = true; /* of one that was never open */
    oriel_shm_work(&key, 0, part_close_in_work, &last);
    if (last)
        oriel_history_free(history);
}

bool oriel_part_enter(oriel_shm_offset history)
{
    return part_work(history, part_enter_in_work);
}

void oriel_part_leave(oriel_shm_offset history)
{
    if (part_work(history, part_leave_in_work))
        oriel_history_free(history);
}

static int part_node(uint64_t number)
{
    return (int)(number >> NODE_SHIFT) - 1;
}

static oriel_shm_offset part_history(uint64_t number)
{
    return number & ((UINT64_C(1) << NODE_SHIFT) - 1);
}

oriel_shm_offset oriel_part_of(uint64_t number)
{
    return part_node(number) == oriel_check_remote_own_node() ? part_history(number) : number;
}

bool oriel_part_is_remote(oriel_shm_offset part)
{
    return part >> NODE_SHIFT != 0;
}

/* Reports the conflicts that the node has found, with the clock that this process has cached. */
static uint64_t remote_part_add(oriel_shm_offset part, const struct oriel_access *access,
                                const struct oriel_access_extent *extents, size_t count,
                                oriel_conflict_fn *tell, void *closure)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_ADD,
                                                 .words = {part_history(part)}};
    struct oriel_check_remote_answer answer;
    struct oriel_conflict conflicts[CONFLICTS];
    const oriel_tick *clock = oriel_order_snapshot_clock(access->snapshot);
    if (clock == NULL) /* the shared memory is full: no comparison */
        return 0;
    struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)access, .iov_len = sizeof *access},
        {.iov_base = (void *)(uintptr_t)clock,
         .iov_len = (size_t)oriel_order_width() * sizeof *clock},
        {.iov_base = (void *)(uintptr_t)extents, .iov_len = count * sizeof *extents},
    };
    if (!oriel_check_remote_ask(part_node(part), &request, parts, 3, &answer, conflicts,
                                sizeof conflicts) ||
        !oriel_check_remote_conflicts_are_valid(conflicts, answer.len_bytes))
        return 0;
    for (size_t i = 0; i < answer.len_bytes / sizeof conflicts[0]; i++) {
        conflicts[i].later = *access;
        tell(&conflicts[i], closure);
    }
    return answer.word;
}

uint64_t oriel_part_add(oriel_shm_offset part, const struct oriel_access *access,
                        const struct oriel_access_extent *extents, size_t count,
                        oriel_conflict_fn *tell, void *closure)
{
    return oriel_part_is_remote(part)
               ? remote_part_add(part, access, extents, count, tell, closure)
               : oriel_history_add(part, access, extents, count, tell, closure);
}

static void remote_part_request(oriel_shm_offset part, uint64_t kind, uint64_t first,
                                uint64_t second, uint64_t third)
{
    struct oriel_check_remote_request request = {
        .kind = kind, .words = {part_history(part), first, second, third}};
    struct oriel_check_remote_answer answer;
    oriel_check_remote_ask(part_node(part), &request, NULL, 0, &answer, NULL, 0);
}

void oriel_part_complete(oriel_shm_offset part, int32_t origin, uint64_t ticket, oriel_tick now)
{
    if (oriel_part_is_remote(part)) {
        remote_part_request(part, ORIEL_CHECK_REMOTE_COMPLETE, (uint64_t)(uint32_t)origin, now,
                            ticket);
        return;
    }
    oriel_history_complete(part, origin, ticket, now);
}

void oriel_part_complete_one(oriel_shm_offset part, uint64_t ticket, oriel_tick now)
{
    if (oriel_part_is_remote(part))
        remote_part_request(part, ORIEL_CHECK_REMOTE_COMPLETE_ONE, ticket, now, 0);
    else
        oriel_history_complete_one(part, ticket, now);
}

void oriel_part_flag(oriel_shm_offset part, int32_t origin, uint8_t flags)
{
    if (oriel_part_is_remote(part))
        remote_part_request(part, ORIEL_CHECK_REMOTE_FLAG, (uint64_t)(uint32_t)origin, flags, 0);
    else
        oriel_history_flag(part, origin, flags);
}

void oriel_part_request_done(oriel_shm_offset part, uint64_t ticket)
{
    if (oriel_part_is_remote(part))
        remote_part_request(part, ORIEL_CHECK_REMOTE_REQUEST_DONE, ticket, 0, 0);
    else
        oriel_history_request_done(part, ticket);
}

static bool handle_load_in_work(void *at, bool made, void *out)
{
    (void)made;
    memcpy(out, at, ORIEL_PART_HANDLE_BYTES);
    return true;
}

bool oriel_part_load_here(const struct oriel_key *key, void *out)
{
    return oriel_shm_work(key, 0, handle_load_in_work, out);
}

bool oriel_part_load_handle(const struct oriel_key *key, void *out)
{
    bool found = oriel_part_load_here(key, out);
    for (int node = 0; node < oriel_check_remote_node_count() && !found; node++) {
        struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_HANDLE,
                                                     .key = *key};
        struct oriel_check_remote_answer answer;
        found = node != oriel_check_remote_own_node() &&
                oriel_check_remote_ask(node, &request, NULL, 0, &answer, out,
                                       ORIEL_PART_HANDLE_BYTES) &&
                answer.word != 0 && answer.len_bytes == ORIEL_PART_HANDLE_BYTES;
    }
    return found;
}
