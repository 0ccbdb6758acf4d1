/* Each check enforces the limit that the user of the value relies on. */
#include "check/remote/remote_validate.h"

#include "base/deadlock_set.h"
#include "check/order/member_state.h"
#include "check/order/order.h"
#include "check/remote/history_proxy.h"
#include "check/report/call_sites.h"

#include <string.h>

static const uint64_t data_most = UINT64_C(1) << 32;  /* of a request */
static const int64_t address_most = INT64_C(1) << 57; /* above the last byte of any process */

static bool is_rank(int64_t rank)
{
    return rank >= 0 && rank < oriel_shm_world_size();
}

/* --- requests --- */

static size_t clock_bytes(void)
{
    return (size_t)(unsigned)oriel_order_width() * sizeof(oriel_tick);
}

static bool length_holds(const struct oriel_check_remote_request *request)
{
    uint64_t fixed_bytes = sizeof(struct oriel_access) + clock_bytes();
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_GIVE: return request->len_bytes == clock_bytes();
    case ORIEL_CHECK_REMOTE_ADD:
        return request->len_bytes >= fixed_bytes && request->len_bytes <= data_most &&
               (request->len_bytes - fixed_bytes) % sizeof(struct oriel_access_extent) == 0;
    case ORIEL_CHECK_REMOTE_MEMBER_STATE:
        return request->len_bytes == sizeof(struct oriel_member_state_ask);
    case ORIEL_CHECK_REMOTE_SITE: return request->len_bytes <= ORIEL_SITE_SLOT_BYTES;
    default: return request->len_bytes == 0;
    }
}

/* Entries under one kind of key have one size and form, and the checker keeps other entries than
 * clocks too. */
static bool key_holds(const struct oriel_check_remote_request *request)
{
    uint64_t kind = request->key.words[0];
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_GIVE:
    case ORIEL_CHECK_REMOTE_TAKE: return kind >= ORIEL_ORDER_MESSAGE && kind < ORIEL_ORDER_COUNT;
    case ORIEL_CHECK_REMOTE_FORGET: return kind >= ORIEL_ORDER_MESSAGE && kind <= ORIEL_ORDER_COUNT;
    case ORIEL_CHECK_REMOTE_COUNT: return kind == ORIEL_ORDER_COUNT;
    case ORIEL_CHECK_REMOTE_HANDLE: return kind == ORIEL_PART_HANDLE;
    default: return true;
    }
}

/* ORIEL_TICK_PENDING would leave an access pending that counts as complete. Flags of other kinds
 * describe how the access was added. */
static bool words_hold(const struct oriel_check_remote_request *request)
{
    const uint64_t flags = ORIEL_ACCESS_FLUSHED_LOCAL | ORIEL_ACCESS_FLUSHED_OTHER;
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_COMPLETE:
    case ORIEL_CHECK_REMOTE_COMPLETE_ONE: return request->words[2] != ORIEL_TICK_PENDING;
    case ORIEL_CHECK_REMOTE_FLAG: return (request->words[2] & ~flags) == 0;
    default: return true;
    }
}

bool oriel_check_remote_request_is_valid(const struct oriel_check_remote_request *request)
{
    return request->kind < ORIEL_CHECK_REMOTE_KINDS && length_holds(request) &&
           key_holds(request) && words_hold(request);
}

/* --- accesses --- */

static bool extent_holds(const struct oriel_access_extent *extent)
{
    int64_t low = extent->offset;
    int64_t last;
    if (extent->len_bytes == 0 || extent->count == 0)
        return true;
    if (extent->count > (uint64_t)address_most || extent->len_bytes > (uint64_t)address_most ||
        __builtin_mul_overflow((int64_t)(extent->count - 1), extent->stride_bytes, &last) ||
        __builtin_add_overflow(extent->offset, last, &last))
        return false;
    int64_t high = last > low ? last : low;
    low = last < low ? last : low;
    return low >= 0 && high <= address_most - (int64_t)extent->len_bytes &&
           extent->stride_bytes > -address_most && extent->stride_bytes < address_most;
}

bool oriel_check_remote_access_is_valid(const struct oriel_access *access,
                                        const struct oriel_access_extent *extents, size_t count)
{
    const unsigned flags = ORIEL_ACCESS_SAME_OP | ORIEL_ACCESS_ANY_OP | ORIEL_ACCESS_ALONE;
    bool holds = access->kind >= ORIEL_ACCESS_GET && access->kind <= ORIEL_ACCESS_ACCUMULATE &&
                 (access->flags & ~flags) == 0 && is_rank(access->origin) &&
                 access->complete == ORIEL_TICK_PENDING &&
                 (access->group == 0 || access->group >= ORIEL_ACCESS_GROUP);
    for (size_t i = 0; i < count && holds; i++)
        holds = extent_holds(&extents[i]);
    return holds;
}

bool oriel_check_remote_conflicts_are_valid(const struct oriel_conflict *conflicts,
                                            size_t len_bytes)
{
    bool holds = len_bytes % sizeof *conflicts == 0;
    for (size_t i = 0; i < len_bytes / sizeof *conflicts && holds; i++) {
        struct oriel_access_extent bytes = {
            .offset = conflicts[i].offset, .len_bytes = conflicts[i].len_bytes, .count = 1};
        unsigned char aliased; /* a bool is 0 or 1 */
        memcpy(&aliased, &conflicts[i].alias, 1);
        holds = is_rank(conflicts[i].earlier.origin) && bytes.len_bytes > 0 &&
                extent_holds(&bytes) && aliased <= 1;
    }
    return holds;
}

/* --- waits --- */

bool oriel_check_remote_reports_are_valid(const struct oriel_wait_report *reports, size_t len_bytes)
{
    bool holds = len_bytes % sizeof *reports == 0;
    for (size_t i = 0; i < len_bytes / sizeof *reports && holds; i++) {
        const struct oriel_wait_noted *noted = &reports[i].record.noted;
        holds = is_rank(reports[i].rank) &&
                (reports[i].state == ORIEL_DEADLOCK_SET_WAITS ||
                 reports[i].state == ORIEL_DEADLOCK_SET_FINISHED) &&
                noted->count <= ORIEL_WAIT_NEEDS &&
                memchr(noted->name, '\0', sizeof noted->name) != NULL;
    }
    return holds;
}

bool oriel_check_remote_progress_is_valid(const struct oriel_collective_progress *progress,
                                          size_t len_bytes)
{
    bool holds =
        len_bytes >= sizeof *progress && progress->n > 0 && progress->n <= oriel_shm_world_size() &&
        oriel_collective_progress_bytes(progress->n, progress->has_locks != 0) == len_bytes;
    for (int i = 0; i < (holds ? progress->n : 0) && holds; i++) {
        holds = is_rank((int64_t)progress->slots[i].world_rank - 1);
    }
    return holds;
}
