/* Contests: operations of several actors on one element. The order of arrival decides each single
 * result, but the set of results is known: tickets, replaces, one winning swap, sums by loops of
 * swaps or under exclusive locks; and data published by a flag. The fetched values show the order
 * of arrival. The ranks add them up at the end of the step. */
#include "step.h"

#include "../mpi/operation_forms.h"

#include <string.h>

enum { JOINED_MOST = 60, OF_EACH = 2 };

static void element_note(struct plan *plan, const struct area *area, uint64_t value,
                         size_t len_bytes)
{
    struct region *region = area_region(plan, area);
    memcpy(region->model + area->offset, &value, area->leaf->model->value_bytes);
    for (size_t i = 0; i < len_bytes; i++)
        region->writers[area->offset + i] = (uint16_t)(plan->op_count + 1);
}

/* A single element of an area: its location and datatype. */
static void single_draw(struct plan *plan, struct op *op, uint64_t value)
{
    const struct area *area = &plan->areas[op->area];
    int first;
    op->segment = area->segment;
    op->result_open = true;
    area_single(plan, op, &plan->random, &first);
    op->value = area_load(area, (const unsigned char *)&value);
    area_buffers(plan, op, (const unsigned char *)&value, NULL);
}

static void ticket_draw(struct plan *plan, struct op *op)
{
    static const enum op_kind kinds[] = {OP_FETCH, OP_GET_ACCUMULATE};
    struct area *area = &plan->areas[op->area];
    bool swaps = area->mode == AREA_SWAP;
    op->kind = kinds[below(&plan->random, 2)];
    op->form = op->kind == OP_FETCH ? 0
                                    : below(&plan->random, FORMS) &
                                          (epoch_is_passive(plan->epoch) ? FORMS - 1 : FORM_LARGE);
    for (size_t i = 0; i < test_op_count; i++)
        if (test_ops[i].op == (swaps ? MPI_REPLACE : MPI_SUM))
            op->operator= & test_ops[i];
    single_draw(plan, op, swaps ? random_next(&plan->random) : 1);
    area->sum += op->value;
    element_note(plan, area, area->start + area->sum, area->leaf->model->extent_bytes);
}

static void elect_draw(struct plan *plan, struct op *op)
{
    struct area *area = &plan->areas[op->area];
    op->kind = OP_SWAP;
    single_draw(plan, op, random_next(&plan->random));
    buffer_make(&op->compare, &op->origin, &(struct random){plan->random.state},
                actor_is_here(op->actor));
    memcpy(op->compare.bytes + op->compare.at, &area->start, area->leaf->model->value_bytes);
    memcpy(op->compare.wanted, op->compare.bytes, op->compare.len_bytes);
    element_note(plan, area, op->value, area->leaf->model->extent_bytes);
}

/* Loops that the executing actor runs alone. */
static void add_draw(struct plan *plan, struct op *op)
{
    struct area *area = &plan->areas[op->area];
    op->kind = OP_CAS_ADD;
    op->value = 1 + random_below(&plan->random, 1000);
    area->sum += op->value;
    area_single(plan, op, &plan->random, &(int){0});
    op->segment = area->segment;
    element_note(plan, area, area->start + area->sum, area->leaf->model->extent_bytes);
}

/* Two elements that every holder of the lock finds equal. Exclusive holders add to both. */
static void guarded_draw(struct plan *plan, struct op *op, bool exclusive)
{
    struct area *area = &plan->areas[op->area];
    size_t extent = area->leaf->model->extent_bytes;
    op->kind = OP_GUARDED;
    op->value = exclusive ? 1 + random_below(&plan->random, 1000) : 0;
    area->sum += op->value;
    op->segment = area->segment;
    op->disp = (MPI_Aint)area->offset / area_region(plan, area)->unit;
    op->to = (struct side){&area->variants[0], 2};
    unsigned char *first = area_region(plan, area)->model + area->offset;
    element_note(plan, area, area->start + area->sum, 2 * extent);
    memcpy(first + extent, first, extent);
}

/* The first operation writes the elements after the flag and then the flag. Later ones wait for the
 * flag and read the elements. */
static void signal_draw(struct plan *plan, struct op *op)
{
    struct area *area = &plan->areas[op->area];
    struct region *region = area_region(plan, area);
    op->target = area->rank;
    op->segment = area->segment;
    op->len_bytes = area->leaf->model->extent_bytes * (size_t)area->elements;
    op->kind = area->joined == 0 ? OP_SIGNAL : OP_AWAIT;
    op->disp = (MPI_Aint)area->offset / region->unit;
    unsigned char *bytes = region->model + area->offset;
    if (op->kind == OP_SIGNAL) {
        uint64_t before = area_load(area, bytes);
        do
            bytes_draw(bytes, op->len_bytes, &plan->random);
        while (area_load(area, bytes) == before);
        element_note(plan, area, area_load(area, bytes), op->len_bytes);
    }
    op->value = area_load(area, bytes);
    op->origin = op->to = (struct side){&area->variants[0], area->elements};
    buffer_make(&op->from, &op->origin, &(struct random){plan->random.state},
                actor_is_here(op->actor));
    buffer_want(&op->from, &op->origin, bytes);
    if (op->kind == OP_SIGNAL)
        memcpy(op->from.bytes, op->from.wanted, op->from.len_bytes);
}

bool contest_draw(struct plan *plan, struct op *op, bool exclusive)
{
    struct area *area = &plan->areas[op->area];
    if (area->joined >= JOINED_MOST)
        return false;
    op->kind = OP_FETCH;
    op->operator= NULL;
    switch (area->mode) {
    case AREA_TICKET:
    case AREA_SWAP: ticket_draw(plan, op); break;
    case AREA_ELECT: elect_draw(plan, op); break;
    case AREA_SIGNAL: signal_draw(plan, op); break;
    case AREA_GUARDED: guarded_draw(plan, op, exclusive); break;
    default: add_draw(plan, op);
    }
    area->joined++;
    op_push(plan, op);
    return true;
}

/* Tickets as bits: powers of two, one per ticket, add up to all bits only if no two tickets are
 * equal. */
static uint64_t share_of(const struct area *area, const struct op *op)
{
    uint64_t fetched = area_load(area, (const unsigned char *)&op->fetched);
    if (area->mode == AREA_TICKET)
        return fetched - area->start < JOINED_MOST ? (uint64_t)1 << (fetched - area->start)
                                                   : (uint64_t)1 << 63;
    return area->mode == AREA_SWAP ? fetched : fetched == area->start;
}

static void contest_judge(struct plan *plan, struct area *area, uint64_t shares, uint64_t last)
{
    struct region *region = area_region(plan, area);
    static const char *const names[] = {
        [AREA_TICKET] = "tickets", [AREA_SWAP] = "replaces", [AREA_ELECT] = "swaps"};
    uint64_t wanted = area->mode == AREA_TICKET ? ((uint64_t)1 << area->joined) - 1 : 1,
             cut = UINT64_MAX;
    if (area->joined == 0)
        return;
    if (area->mode == AREA_SWAP) { /* each value is fetched once, or is there at the end */
        shares += last;
        cut = area->leaf->model->value_bytes == 4 ? UINT32_MAX : UINT64_MAX;
        wanted = area->start + area->sum;
    }
    if ((shares & cut) != (wanted & cut))
        fail("window %d, rank %d, offset %zu: %d %s of %s gave %#llx, not %#llx, together; the "
             "element was %#llx and is %#llx",
             plan->window->number, area->rank, area->offset, area->joined, names[area->mode],
             area->leaf->model->name, (unsigned long long)shares, (unsigned long long)wanted,
             (unsigned long long)area->start, (unsigned long long)last);
    for (int i = 0; i < plan->op_count && area->mode == AREA_ELECT; i++) {
        const struct op *op = &plan->ops[i];
        if (op->area >= 0 && &plan->areas[op->area] == area && actor_is_here(op->actor) &&
            op->fetched != area->start && op->fetched != last)
            fail("%s fetched %#llx, neither the first value %#llx nor the winner's %#llx",
                 op_text(plan, op), (unsigned long long)op->fetched,
                 (unsigned long long)area->start, (unsigned long long)last);
    }
    if (area->mode != AREA_TICKET)
        memcpy(region->model + area->offset, &last, area->leaf->model->value_bytes);
}

void contests_settle(struct plan *plan)
{
    uint64_t sums[AREAS_MOST][OF_EACH] = {{0}};
    int contests = 0;
    for (int i = 0; i < plan->area_count; i++) {
        const struct area *area = &plan->areas[i];
        if (area->mode != AREA_TICKET && area->mode != AREA_SWAP && area->mode != AREA_ELECT)
            continue;
        contests++;
        if (area->rank == plan->window->group->me)
            sums[i][1] = area_load(area, area_region(plan, area)->at + area->offset);
        for (int k = 0; k < plan->op_count; k++)
            if (plan->ops[k].area == i && actor_is_here(plan->ops[k].actor))
                sums[i][0] += share_of(area, &plan->ops[k]);
    }
    if (contests == 0)
        return;
    sum_all(sums[0], AREAS_MOST * OF_EACH, plan->window->comm);
    for (int i = 0; i < plan->area_count; i++)
        if (plan->areas[i].mode >= AREA_TICKET && plan->areas[i].mode <= AREA_ELECT)
            contest_judge(plan, &plan->areas[i], sums[i][0], sums[i][1]);
}
