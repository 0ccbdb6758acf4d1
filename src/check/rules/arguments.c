/* Checks the arguments of operations and synchronisations against the window: ranks, assertions,
 * datatypes, sizes, ranges (MPI-4.1, 13.3). Findings name the values of both sides. */
#include "check/window/operation.h"

#include "base/tls_cache.h"
#include "check/access/datatype_runs.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { TYPES_KNOWN = 16 };

static bool argument_report(const struct oriel_checked *window, struct oriel_finding *finding,
                            enum oriel_rule rule, const struct oriel_site *site, const char *format,
                            ...) __attribute__((format(printf, 5, 6), cold));

/* Reports a finding. Always returns false. */
static bool argument_report(const struct oriel_checked *window, struct oriel_finding *finding,
                            enum oriel_rule rule, const struct oriel_site *site, const char *format,
                            ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->detail, sizeof finding->detail, format, arguments);
    va_end(arguments);
    finding->rule = rule;
    oriel_window_report(window, finding, site);
    return false;
}

bool oriel_argument_assert(struct oriel_checked *window, int assert, int taken,
                           const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    if ((assert & ~taken) == 0)
        return true;
    return argument_report(window, &finding, ORIEL_RULE_ARGUMENT, site,
                           "The assertion %d has bits that are invalid for this call.", assert);
}

static __attribute__((noinline, cold)) bool rank_report(const struct oriel_checked *window,
                                                        int rank, const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.target = rank;
    return argument_report(window, &finding, ORIEL_RULE_RANK, site,
                           "The window has the ranks 0 to %d.", window->n - 1);
}

bool oriel_argument_rank(struct oriel_checked *window, int rank, const struct oriel_site *site)
{
    return oriel_likely((uint32_t)rank < (uint32_t)window->n) || rank_report(window, rank, site);
}

bool oriel_argument_lock_type(struct oriel_checked *window, int lock_type,
                              const struct oriel_site *site)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    if (lock_type == MPI_LOCK_EXCLUSIVE || lock_type == MPI_LOCK_SHARED)
        return true;
    return argument_report(window, &finding, ORIEL_RULE_ARGUMENT, site,
                           "The lock type %d is invalid.", lock_type);
}

/* --- datatypes, operators and sizes --- */

static bool operation_report(struct oriel_operation *operation, enum oriel_rule rule,
                             const char *detail)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.target = operation->target_rank;
    return argument_report(operation->window, &finding, rule, &operation->site, "%s", detail);
}

/* Finds the type in a cache per thread. Programs use a few datatypes in turn; rma/ caches only the
 * last. */
static bool type_find_cached(MPI_Datatype datatype, const struct oriel_type **type)
{
    static _Thread_local struct {
        uint64_t generation;
        uint64_t key;
        const struct oriel_type *type;
    } known[TYPES_KNOWN];
    uint64_t key = oriel_type_key(datatype);
    uint64_t generation = oriel_tls_cache_begin();
    unsigned at = (key ^ key >> 5 ^ key >> 10) % TYPES_KNOWN;
    if (oriel_unlikely(known[at].key != key || known[at].generation != generation)) {
        if (oriel_type_find(datatype, type) != ORIEL_OK)
            return false;
        known[at].generation = generation;
        known[at].key = key;
        known[at].type = *type;
    }
    *type = known[at].type;
    return true;
}

static bool side_type_find(struct oriel_operation *operation, const char *which, MPI_Count count,
                           MPI_Datatype datatype, const struct oriel_type **type)
{
    if (oriel_unlikely(count < 0))
        return operation_report(
            operation, ORIEL_RULE_ARGUMENT,
            oriel_text_format("The %s's count, %lld, is negative.", which, (long long)count));
    if (type != &operation->target_type && datatype == operation->target_datatype) {
        *type = operation->target_type;
        return true;
    }
    if (oriel_likely(type_find_cached(datatype, type)))
        return true;
    return operation_report(
        operation, ORIEL_RULE_DATATYPE,
        oriel_text_format("The %s's datatype is invalid or not committed.", which));
}

static uint64_t product_or_max(MPI_Count count, uint64_t each)
{
    uint64_t product;
    return __builtin_mul_overflow((uint64_t)count, each, &product) ? UINT64_MAX : product;
}

static __attribute__((noinline, cold)) bool size_report(struct oriel_operation *operation,
                                                        const char *from, uint64_t from_bytes,
                                                        const char *into, uint64_t into_bytes)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.target = operation->target_rank;
    return argument_report(operation->window, &finding, ORIEL_RULE_SIZES_DIFFER, &operation->site,
                           "The %s side has %" PRIu64 " bytes, the %s side has room for %" PRIu64
                           ".",
                           from, from_bytes, into, into_bytes);
}

static bool size_fits(struct oriel_operation *operation, const char *from, uint64_t from_bytes,
                      const char *into, uint64_t into_bytes)
{
    return oriel_likely(from_bytes <= into_bytes) ||
           size_report(operation, from, from_bytes, into, into_bytes);
}

/* Reports an operator that MPI does not define on the elements. Returns true where hosts compute it
 * nevertheless. */
static __attribute__((noinline, cold)) bool undefined_operator(struct oriel_operation *operation,
                                                               enum oriel_kind kind)
{
    if (oriel_kinds[kind].plain[operation->applied] == NULL)
        return operation_report(operation, ORIEL_RULE_ARGUMENT,
                                "The operator is not defined on this datatype.");
    operation_report(
        operation, ORIEL_RULE_ARGUMENT,
        "The operator is not defined on this datatype. Hosts treat it as integers of one byte, and "
        "differ in their signedness.");
    return true;
}

static __attribute__((noinline, cold)) bool undefined_swap(struct oriel_operation *operation)
{
    operation_report(
        operation, ORIEL_RULE_ARGUMENT,
        "MPI_Compare_and_swap is not defined on this datatype, only on integers, logicals and "
        "bytes.");
    return true;
}

/* Reports sides that are not of one predefined datatype. Returns true where hosts copy the elements
 * nevertheless. */
static __attribute__((noinline, cold)) bool unlike_types(struct oriel_operation *operation,
                                                         const struct oriel_type *side, bool copied)
{
    copied = copied && !side->layout->padded && !operation->target_type->layout->padded;
    operation_report(
        operation, ORIEL_RULE_DATATYPE,
        copied ? "Accumulates need datatypes of one predefined datatype, the same on all sides. "
                 "Hosts copy the bytes."
               : "Accumulates need datatypes of one predefined datatype, the same on both sides.");
    return copied;
}

static uint64_t elements_of(MPI_Count count, const struct oriel_type *type)
{
    return count > 0 ? type->elements : 0;
}

/* Struct datatypes that Oriel takes as pairs (datatype/struct_types.h). */
static void sides_take_pairs(struct oriel_operation *operation)
{
    const bool on_pairs = operation->op == MPI_MINLOC || operation->op == MPI_MAXLOC ||
                          operation->op == MPI_REPLACE || operation->op == MPI_NO_OP;
    const struct oriel_type *pair = operation->target_type->as_pair;
    const struct oriel_type *origin = operation->origin_type;
    if (oriel_likely(pair == NULL) || operation->swaps || !on_pairs ||
        (origin != NULL && (origin->as_pair == NULL || origin->as_pair->kind != pair->kind)))
        return;
    operation->target_type = pair;
    if (origin != NULL)
        operation->origin_type = origin->as_pair;
}

/* Checks that, if any element moves, both sides have one predefined datatype and the operator is
 * defined on it. */
static bool accumulate_is_right(struct oriel_operation *operation)
{
    sides_take_pairs(operation);
    const struct oriel_type *target = operation->target_type;
    const struct oriel_type *origin = operation->origin_type;
    if (!operation->swaps) {
        operation->applied = oriel_operator_find(operation->op);
        if (operation->applied == ORIEL_OPERATOR_NONE)
            return operation_report(operation, ORIEL_RULE_ARGUMENT,
                                    "The operator is not predefined.");
    }
    if (elements_of(operation->target_count, target) == 0 ||
        (origin != NULL && elements_of(operation->origin_count, origin) == 0))
        return true;
    if (target->kind == ORIEL_KIND_NONE || (origin != NULL && origin->kind != target->kind))
        return unlike_types(operation, origin != NULL ? origin : target,
                            operation->op == MPI_REPLACE || operation->op == MPI_NO_OP);
    if (operation->swaps)
        return target->kind != ORIEL_KIND_CHAR || undefined_swap(operation);
    return oriel_kind_defines(target->kind, operation->applied) ||
           undefined_operator(operation, target->kind);
}

/* Checks that the result has room for the target's data and, if any element moves, the target's
 * type. */
static bool result_is_right(struct oriel_operation *operation, uint64_t at_target)
{
    const struct oriel_type *target = operation->target_type;
    if (!side_type_find(operation, "result", operation->result_count, operation->result_datatype,
                        &operation->result_type) ||
        !size_fits(operation, "target", at_target, "result",
                   product_or_max(operation->result_count, operation->result_type->size_bytes)))
        return false;
    if (operation->result_type->as_pair != NULL &&
        operation->result_type->as_pair->kind == target->kind)
        operation->result_type = operation->result_type->as_pair;
    if (oriel_likely(operation->result_type->kind == target->kind))
        return true;
    const struct oriel_type *origin = operation->origin_type;
    const bool moves =
        at_target > 0 && (origin == NULL || elements_of(operation->origin_count, origin) > 0);
    return !moves || unlike_types(operation, operation->result_type, true);
}

bool oriel_argument_operation(struct oriel_operation *operation)
{
    bool no_op = operation->accumulates && !operation->swaps && operation->op == MPI_NO_OP;
    operation->applied = ORIEL_OPERATOR_NONE;
    operation->origin_type = NULL;
    if (!side_type_find(operation, "target", operation->target_count, operation->target_datatype,
                        &operation->target_type))
        return false;
    if (!no_op && !side_type_find(operation, "origin", operation->origin_count,
                                  operation->origin_datatype, &operation->origin_type))
        return false;
    if (operation->accumulates && !accumulate_is_right(operation))
        return false;
    uint64_t at_target =
        product_or_max(operation->target_count, operation->target_type->size_bytes);
    operation->items = (uint64_t)operation->target_count;
    operation->moving_bytes = at_target;
    if (operation->target_type->elements == 0)
        operation->items = 0;
    operation->result_type = operation->target_type;
    if (operation->result_addr != NULL && !operation->swaps &&
        !result_is_right(operation, at_target))
        return false;
    if (operation->origin_type == NULL)
        return true;
    uint64_t at_origin =
        product_or_max(operation->origin_count, operation->origin_type->size_bytes);
    if (operation->kind == ORIEL_ACCESS_GET)
        return size_fits(operation, "target", at_target, "origin", at_origin);
    /* the target's whole range must be inside the window even if fewer bytes move (MPI-4.1,
     * 13.3.1) */
    operation->moving_bytes = at_origin;
    return size_fits(operation, "origin", at_origin, "target", at_target);
}

/* --- ranges --- */

/* Guesses whether the program gave the window's size in elements and forgot to multiply it to
 * bytes. It is not enough that the access would fit then, because that is so for every small
 * overrun too. One of three conditions must hold too: the access ends exactly where that many
 * elements end; the size is not a multiple of the element; or the access is more than an element
 * beyond the end. */
static bool looks_like_elements(const struct oriel_operation *operation, uint64_t low_bytes,
                                uint64_t high_bytes, uint64_t *each_bytes)
{
    const struct oriel_type *type = operation->target_type;
    uint64_t size_bytes = (uint64_t)operation->window->members[operation->target_rank].size_bytes;
    uint64_t unit = (uint64_t)operation->window->members[operation->target_rank].disp_unit;
    uint64_t element_bytes = type->elements == 0 ? 1 : type->size_bytes / type->elements;
    uint64_t meant_bytes;
    *each_bytes = unit > 1 ? unit : element_bytes;
    if (*each_bytes <= 1 || size_bytes <= *each_bytes ||
        __builtin_mul_overflow(size_bytes, *each_bytes, &meant_bytes))
        return false;
    return high_bytes == meant_bytes ||
           (high_bytes < meant_bytes &&
            (size_bytes % *each_bytes != 0 || low_bytes > size_bytes + *each_bytes));
}

/* How the access would fit: by another displacement, or in a larger window. */
static void range_remedy(const struct oriel_operation *operation, int64_t low_bytes,
                         int64_t high_bytes, char *help, size_t room)
{
    const struct oriel_checked_member *member = &operation->window->members[operation->target_rank];
    const int64_t unit = member->disp_unit > 1 ? member->disp_unit : 1;
    const int64_t steps =
        high_bytes > member->size_bytes ? (high_bytes - member->size_bytes - 1) / unit + 1 : 0;
    const int64_t disp = operation->target_disp;
    if (low_bytes < 0)
        snprintf(help, room, "let the displacement be at least %" PRId64 ", not %" PRId64,
                 disp + (-low_bytes - 1) / unit + 1, disp);
    else if (low_bytes >= steps * unit)
        snprintf(help, room,
                 "let the displacement be at most %" PRId64 ", not %" PRId64
                 ", or let rank %d make the window with %" PRId64 " bytes at @made",
                 disp - steps, disp, operation->target_rank, high_bytes);
    else
        snprintf(help, room,
                 "access fewer elements, or let rank %d make the window with %" PRId64
                 " bytes at @made",
                 operation->target_rank, high_bytes);
}

static bool range_report(struct oriel_operation *operation, int64_t low_bytes, int64_t high_bytes)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    char help[ORIEL_RECORD_LONG];
    const struct oriel_checked_member *member = &operation->window->members[operation->target_rank];
    uint64_t each_bytes;
    oriel_window_place(operation->window, &finding, operation->target_rank, low_bytes,
                       (uint64_t)(high_bytes - low_bytes));
    finding.help = help;
    if (low_bytes >= 0 &&
        looks_like_elements(operation, (uint64_t)low_bytes, (uint64_t)high_bytes, &each_bytes)) {
        snprintf(help, sizeof help, "multiply the size by %" PRIu64 " at @made", each_bytes);
        return argument_report(
            operation->window, &finding, ORIEL_RULE_RANGE, &operation->site,
            "Rank %d's window has %" PRId64 " bytes. This looks like a number of elements: %" PRId64
            " elements of %" PRIu64 " bytes would have room for the access.",
            operation->target_rank, member->size_bytes, member->size_bytes, each_bytes);
    }
    range_remedy(operation, low_bytes, high_bytes, help, sizeof help);
    return argument_report(operation->window, &finding, ORIEL_RULE_RANGE, &operation->site,
                           "Rank %d's window has %" PRId64
                           " bytes, in displacement units of %" PRId64 ".",
                           operation->target_rank, member->size_bytes, member->disp_unit);
}

static bool not_attached_report(struct oriel_operation *operation, struct oriel_member_range run,
                                struct oriel_member_range nearest)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    operation->withheld = !oriel_rank_is_on_this_node(
        (int32_t)operation->window->members[operation->target_rank].world_rank);
    oriel_window_place(operation->window, &finding, operation->target_rank, (int64_t)run.address,
                       run.len_bytes);
    if (nearest.len_bytes == 0)
        return argument_report(operation->window, &finding, ORIEL_RULE_NOT_ATTACHED,
                               &operation->site, "Rank %d has attached no memory.",
                               operation->target_rank);
    uint64_t end = nearest.address + nearest.len_bytes;
    bool above = run.address < nearest.address;
    return argument_report(operation->window, &finding, ORIEL_RULE_NOT_ATTACHED, &operation->site,
                           "The nearest region that rank %d has attached is %#" PRIx64
                           " to %#" PRIx64 ", %" PRIu64 " bytes %s.",
                           operation->target_rank, nearest.address, end,
                           above ? nearest.address - run.address : run.address - nearest.address,
                           above ? "above" : "below");
}

static bool attached_range_check(struct oriel_operation *operation)
{
    struct oriel_extents extents;
    struct oriel_checked *window = operation->window;
    bool right = true;
    operation->offset = operation->target_disp;
    if (operation->items == 0)
        return true;
    if (oriel_extents_open(&extents, operation->target_type, operation->items, operation->offset,
                           UINT64_MAX) == ORIEL_OK)
        for (size_t i = 0; i < extents.count && right; i++) {
            struct oriel_member_state_answer answer;
            struct oriel_member_state_ask ask = {.kind = ORIEL_MEMBER_ATTACHED,
                                                 .other = operation->target_rank,
                                                 .extent = extents.list[i]};
            right = !oriel_window_ask(window, operation->target_rank, &ask, &answer) ||
                    answer.found || not_attached_report(operation, answer.run, answer.nearest);
        }
    oriel_extents_close(&extents);
    return right;
}

/* Computes the range of the operation at a target that is not dynamic; the displacement is not
 * negative. Returns false on overflow. */
static bool target_bytes_find(const struct oriel_operation *operation, int64_t *offset,
                              int64_t *low_bytes, int64_t *high_bytes)
{
    const struct oriel_type *type = operation->target_type;
    const struct oriel_checked_member *member = &operation->window->members[operation->target_rank];
    return !__builtin_mul_overflow((int64_t)operation->target_disp, member->disp_unit, offset) &&
           oriel_layout_bounds(type->layout, operation->items, type->extent_bytes, low_bytes,
                               high_bytes) &&
           !__builtin_add_overflow(*low_bytes, *offset, low_bytes) &&
           !__builtin_add_overflow(*high_bytes, *offset, high_bytes);
}

void oriel_argument_place(const struct oriel_operation *operation, struct oriel_finding *finding)
{
    int64_t offset, low_bytes, high_bytes;
    if (operation->items > 0 && operation->window->flavour != ORIEL_CHECK_DYNAMIC &&
        operation->target_disp >= 0 &&
        target_bytes_find(operation, &offset, &low_bytes, &high_bytes) && low_bytes >= 0)
        oriel_window_place(operation->window, finding, operation->target_rank, low_bytes,
                           (uint64_t)(high_bytes - low_bytes));
}

bool oriel_argument_range(struct oriel_operation *operation)
{
    int64_t low_bytes;
    int64_t high_bytes;
    int64_t offset;
    if (operation->window->flavour == ORIEL_CHECK_DYNAMIC)
        return attached_range_check(operation);
    operation->offset = 0;
    if (operation->items == 0)
        return true;
    if (oriel_unlikely(operation->target_disp < 0))
        return operation_report(
            operation, ORIEL_RULE_NEGATIVE_DISPLACEMENT,
            oriel_text_format("The displacement is %lld.", (long long)operation->target_disp));
    if (oriel_unlikely(!target_bytes_find(operation, &offset, &low_bytes, &high_bytes)))
        return operation_report(operation, ORIEL_RULE_RANGE, "The access is beyond any memory.");
    operation->offset = offset + operation->window->opened.from;
    return oriel_likely(low_bytes >= 0 &&
                        high_bytes <=
                            operation->window->members[operation->target_rank].size_bytes) ||
           range_report(operation, low_bytes, high_bytes);
}
