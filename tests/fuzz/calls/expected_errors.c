/* The requirements of MPI-4.1, 13.3 and of the error classes in 13.6 on an operation with these
 * arguments.  A call with several faults may report any of them.  Where an operation accesses
 * nothing, faults of the unused arguments may pass. */
#include "operate.h"

#include <string.h>

typedef __int128 wide;

bool operation_puts(const struct operation *operation)
{
    const enum fuzz_function function = operation->function;
    return function == FUZZ_Put || function == FUZZ_Put_c || function == FUZZ_Rput ||
           function == FUZZ_Rput_c || function == FUZZ_Put_notify;
}

bool operation_gets(const struct operation *operation)
{
    const enum fuzz_function function = operation->function;
    return function == FUZZ_Get || function == FUZZ_Get_c || function == FUZZ_Rget ||
           function == FUZZ_Rget_c || function == FUZZ_Get_notify;
}

bool operation_swaps(const struct operation *operation)
{
    return operation->function == FUZZ_Compare_and_swap ||
           operation->function == FUZZ_Rcompare_and_swap;
}

bool operation_fetches_one(const struct operation *operation)
{
    return operation->function == FUZZ_Fetch_and_op || operation->function == FUZZ_Rfetch_and_op ||
           operation->function == FUZZ_Fetch_and_op_list;
}

static unsigned side_faults(const struct side *side)
{
    unsigned faults = side->count < 0 ? FAULT_COUNT : 0;
    if (side->type->state == SIDE_NULL || side->type->state == SIDE_UNCOMMITTED)
        faults |= FAULT_TYPE;
    return faults;
}

static bool is_usable(const struct side *side)
{
    return side_faults(side) == 0;
}

/* Of items with any number. */
static wide bytes_of(const struct side *side)
{
    return is_usable(side) ? (wide)side->count * side->type->map.size_bytes : 0;
}

static wide elements_of(const struct side *side)
{
    return is_usable(side) ? (wide)side->count * side->type->elements : 0;
}

/* Byte by byte; a library may also require the gaps between the bytes to be attached. */
static struct verdict attached_verdict(const struct operation *operation,
                                       const struct observed_window *observed, wide low, wide high)
{
    const struct side *target = &operation->target;
    const struct random_type *map = &target->type->map;
    wide offset = observed_offset(observed, operation->rank, operation->disp);
    bool pairs = target->type->model->group == GROUP_PAIR;
    if (observed_is_attached(observed, operation->rank, low, high - low))
        return (struct verdict){0, pairs ? FAULT_RANGE : 0};
    if (high - low > OBSERVED_SPAN_BYTES)
        return (struct verdict){FAULT_RANGE, 0};
    for (MPI_Count item = 0; item < target->count; item++)
        for (int i = 0; i < map->size_bytes; i++)
            if (!observed_is_attached(observed, operation->rank,
                                      offset + item * (wide)map->extent + map->map[i], 1))
                return (struct verdict){FAULT_RANGE, 0};
    return (struct verdict){0, FAULT_RANGE};
}

/* A pair may count with its padding, or without. */
static struct verdict range_verdict(const struct operation *operation,
                                    const struct observed_window *observed)
{
    const struct side *target = &operation->target;
    const struct random_type *map = &target->type->map;
    wide size = observed->size[operation->rank];
    wide offset = observed_offset(observed, operation->rank, operation->disp);
    if (bytes_of(target) == 0)
        return (struct verdict){0, 0};
    if (observed->attached == NULL && operation->disp < 0)
        return (struct verdict){FAULT_DISP, 0};
    if (target->type->state == SIDE_VAST || target->type->absolute)
        return (struct verdict){FAULT_RANGE, 0};
    wide last = (wide)(target->count - 1) * map->extent;
    wide low = offset + map->low + (last < 0 ? last : 0);
    wide high = offset + map->high + (last > 0 ? last : 0);
    if (observed->attached != NULL)
        return attached_verdict(operation, observed, low, high);
    if (low < 0 || high > size)
        return (struct verdict){FAULT_RANGE, 0};
    return (struct verdict){
        0, target->type->model->group == GROUP_PAIR && high + 16 > size ? FAULT_RANGE : 0};
}

/* An operator that computes nothing. */
static bool copies(const struct operation *operation)
{
    return operation->op == MPI_REPLACE || (operation->op == MPI_NO_OP && operation->fetches);
}

/* The two sides of an accumulate. They may differ where no data moves, or where elements without
 * padding are copied. */
static struct verdict match_verdict(const struct side *side, const struct side *target, bool copied)
{
    int alike = sides_alike(side->type->model, target->type->model);
    struct verdict verdict = {0, 0};
    if (elements_of(side) == 0 || elements_of(target) == 0)
        return verdict;
    if (copied && !side->type->padded && !target->type->padded)
        return verdict;
    bool mixed = side->type->mixed || target->type->mixed;
    if (alike < 2 || mixed)
        verdict.may = FAULT_TYPE;
    if (mixed || alike == 0)
        verdict.must = FAULT_TYPE;
    return verdict;
}

static struct verdict op_verdict(const struct operation *operation)
{
    const struct test_type *model = operation->target.type->model;
    struct verdict verdict = {0, 0};
    if (operation->op == MPI_NO_OP && operation->accumulates && !operation->fetches)
        verdict.must = FAULT_OP;
    if (!is_usable(&operation->target) || operation->op == MPI_NO_OP)
        return verdict;
    bool moves = operation->single || operation->moved_bytes > 0;
    if (moves && operation->target.type->mixed && operation->op != MPI_REPLACE)
        return (struct verdict){verdict.must, FAULT_OP}; /* there is no single type to check */
    for (size_t i = 0; i < test_op_count; i++) {
        if (test_ops[i].op != operation->op)
            continue;
        if (moves && !type_allows(model, operation->op) && !type_tolerates(model, operation->op))
            return (struct verdict){FAULT_OP, 0};
        if (moves && model->value_bytes >= 16 && operation->op != MPI_REPLACE)
            verdict.may = FAULT_OP;
        return verdict;
    }
    return (struct verdict){FAULT_OP, 0}; /* user-defined, or none */
}

static void join(struct verdict *verdict, struct verdict other)
{
    verdict->must |= other.must;
    verdict->may |= other.may;
}

static struct verdict transfer_verdict(struct operation *operation)
{
    bool to_target = operation_puts(operation);
    struct verdict verdict = {side_faults(&operation->origin) | side_faults(&operation->target), 0};
    wide here = bytes_of(&operation->origin), there = bytes_of(&operation->target);
    if (to_target ? here > there : there > here)
        join(&verdict, (struct verdict){FAULT_TRUNCATE, 0});
    operation->moved_bytes = (MPI_Aint)(here < there ? here : there);
    return verdict;
}

/* One element of a predefined datatype. */
static struct verdict single_verdict(struct operation *operation)
{
    const struct side_type *type = operation->target.type;
    struct verdict verdict = {side_faults(&operation->target), 0};
    bool swaps = operation_swaps(operation);
    if (type->state != SIDE_NULL && type->state != SIDE_UNCOMMITTED && type->map.derived)
        join(&verdict, type->elements == 1 && !type->mixed ? (struct verdict){0, FAULT_TYPE}
                                                           : (struct verdict){FAULT_TYPE, 0});
    if (swaps && is_usable(&operation->target) && !type_allows_swap(type->model) &&
        !type_is_letters(type->model))
        join(&verdict, (struct verdict){FAULT_TYPE, 0});
    operation->moved_bytes = (MPI_Aint)bytes_of(&operation->target);
    return verdict;
}

static struct verdict accumulate_verdict(struct operation *operation)
{
    struct verdict verdict = {side_faults(&operation->target), 0};
    const struct side *origin = &operation->origin, *target = &operation->target,
                      *result = &operation->result;
    bool with_origin = operation->op != MPI_NO_OP || !operation->fetches,
         copied = copies(operation);
    wide there = bytes_of(target), moved = there;
    unsigned ignored = side_faults(origin);
    join(&verdict, with_origin ? (struct verdict){ignored, 0} : (struct verdict){0, ignored});
    if (target->type->mixed && (!copied || target->type->padded))
        join(&verdict, moved > 0 && !with_origin ? (struct verdict){FAULT_TYPE, 0}
                                                 : (struct verdict){0, FAULT_TYPE});
    if (with_origin) {
        struct verdict types = match_verdict(origin, target, copied);
        join(&verdict, types);
        if (bytes_of(origin) > there)
            join(&verdict, types.must == 0 ? (struct verdict){FAULT_TRUNCATE, 0}
                                           : (struct verdict){0, FAULT_TRUNCATE});
        if (bytes_of(origin) < moved)
            moved = bytes_of(origin);
    }
    if (operation->fetches) {
        join(&verdict, (struct verdict){side_faults(result), 0});
        if (moved > 0)
            join(&verdict, match_verdict(result, target, true));
        if (is_usable(result) && there > bytes_of(result))
            join(&verdict, moved > bytes_of(result) ? (struct verdict){FAULT_TRUNCATE, 0}
                                                    : (struct verdict){0, FAULT_TRUNCATE});
    }
    operation->moved_bytes = (MPI_Aint)moved;
    return verdict;
}

/* A missing buffer that the operation reads or writes. */
static struct verdict buffer_verdict(const struct side *side, bool needed)
{
    const wide most = INT64_MAX / 2;
    wide reach = (wide)side->count * side->type->map.extent;
    if (elements_of(side) == 0)
        return (struct verdict){0, 0};
    if (side->addr != NULL ||
        side->type
            /* a library may refuse a side larger than any memory, even if little of it is used */
            ->absolute)
        return (struct verdict){
            0, reach > most || reach < -most || bytes_of(side) > most ? FAULT_BUFFER : 0};
    return needed ? (struct verdict){FAULT_BUFFER, 0} : (struct verdict){0, FAULT_BUFFER};
}

static struct verdict buffers_verdict(const struct operation *operation, bool moves)
{
    bool reads = !(operation->fetches && operation->op == MPI_NO_OP) || operation_swaps(operation);
    struct verdict verdict = buffer_verdict(&operation->origin, reads && moves);
    if (operation->fetches)
        join(&verdict, buffer_verdict(&operation->result, moves));
    if (operation_swaps(operation) && operation->no_compare)
        join(&verdict,
             moves ? (struct verdict){FAULT_BUFFER, 0} : (struct verdict){0, FAULT_BUFFER});
    return verdict;
}

struct verdict operation_judge(struct operation *operation, const struct observed_window *observed)
{
    struct verdict verdict;
    bool good_rank = operation->rank >= 0 && operation->rank < observed->n;
    bool has_op = operation->accumulates || operation_fetches_one(operation);
    operation->moved_bytes = 0;
    operation->nothing = true;
    if (operation->rank == MPI_PROC_NULL)
        return (struct verdict){
            0, operation->op == MPI_NO_OP && !operation->fetches && has_op ? FAULT_OP : 0};
    if (operation->single)
        verdict = single_verdict(operation);
    else if (operation->accumulates)
        verdict = accumulate_verdict(operation);
    else
        verdict = transfer_verdict(operation);
    operation->nothing = bytes_of(&operation->target) == 0;
    if (has_op)
        join(&verdict, op_verdict(operation));
    if (operation->nothing || operation->moved_bytes == 0) {
        unsigned may = verdict.must & FAULT_TRUNCATE;
        if (operation->nothing || operation->accumulates)
            verdict = (struct verdict){verdict.must & ~may, verdict.may | may};
    }
    if (operation->target.type->state == SIDE_VAST)
        verdict.may |= FAULT_TYPE;
    join(&verdict, buffers_verdict(operation, operation->moved_bytes > 0));
    join(&verdict, good_rank ? epochs_allow(&observed->epochs, operation->rank)
                             : (struct verdict){FAULT_RANK, 0});
    if (good_rank)
        join(&verdict, range_verdict(operation, observed));
    if (operation->notifies)
        join(&verdict, (struct verdict){notify_fault(operation->number), 0});
    return verdict;
}
