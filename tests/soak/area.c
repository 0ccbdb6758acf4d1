/* Areas: elements of one type on which accumulates of several actors may overlap, with a reason why
 * the result is known. The reasons: one commutative operator; one actor in its own order; tickets
 * whose set is known; contests whose winner the memory shows. This file chooses an area's layout.
 * The owner fills the area before the first phase, and its mode lasts for the step. */
#include "step.h"

#include <string.h>

enum { TRIES = 12, DEPTH = 3, PADDING = 0x5a };

bool type_is_integer(const struct test_type *type)
{
    return type->group == GROUP_SIGNED || type->group == GROUP_UNSIGNED;
}

static bool leaf_suits(const struct random_leaf *leaf, enum area_mode mode)
{
    if (mode == AREA_SIGNAL)
        return type_is_integer(leaf->model) && leaf->model->value_bytes == 8;
    if (mode >= AREA_TICKET)
        return type_is_integer(leaf->model) && leaf->model->value_bytes >= 4;
    return type_is_computed(leaf->model);
}

uint64_t area_load(const struct area *area, const unsigned char *element)
{
    uint64_t value = 0;
    memcpy(&value, element, area->leaf->model->value_bytes);
    return value;
}

/* All of the type's elements are at distinct multiples of the element size. */
static bool is_on_grid(const struct random_type *type, const struct random_leaf *leaf)
{
    int extent = (int)leaf->model->extent_bytes,
        size_bytes = (int)(leaf->model->value_bytes + leaf->model->index_bytes);
    if (type->size_bytes > size_bytes * ELEMENTS_MOST || type->extent % extent != 0 ||
        !random_type_is_disjoint(type, 1))
        return false;
    for (int i = 0; i < type->size_bytes; i += size_bytes)
        if (type->map[i] % extent != 0)
            return false;
    return type->size_bytes > 0;
}

static void variants_make(struct area *area, struct random *random)
{
    struct random_signature signature = random_signature_of(area->leaf);
    for (int k = 0; k < VARIANTS; k++) {
        random_type_make(&area->variants[k], &signature, random, k == 0 ? 0 : DEPTH);
        for (int turn = 0; turn < TRIES && !is_on_grid(&area->variants[k], area->leaf); turn++) {
            random_type_free(&area->variants[k]);
            random_type_make(&area->variants[k], &signature, random, turn + 1 < TRIES ? DEPTH : 0);
        }
    }
}

static bool mode_suits(const struct plan *plan, enum area_mode mode)
{
    if (mode == AREA_SIGNAL)
        return plan->epoch == EPOCH_LOCK_ALL && plan->alone && plan->window->mixes_no_op;
    if (mode == AREA_GUARDED)
        return plan->epoch == EPOCH_LOCK;
    return mode != AREA_CAS_ADD || epoch_is_passive(plan->epoch);
}

/* A free stretch of the region that displacements can address. */
static bool stretch_find(struct plan *plan, struct area *area, size_t len_bytes)
{
    struct region *region = &plan->window->regions[area->rank][area->segment];
    if (region->model == NULL || region->size < len_bytes)
        return false;
    size_t unit = (size_t)region->unit;
    area->offset = random_below(&plan->random, (region->size - len_bytes) / unit + 1) * unit;
    if (one_in(&plan->random, 4) == 0 && unit < area->leaf->model->extent_bytes)
        area->offset = area->offset / (unit * 8) * unit * 8;
    for (size_t i = 0; i < len_bytes; i++)
        if (region->claims[area->offset + i].kind != CLAIM_NONE)
            return false;
    return true;
}

static void fill(struct plan *plan, struct area *area)
{
    struct region *region = &plan->window->regions[area->rank][area->segment];
    const struct test_type *type = area->leaf->model;
    size_t len_bytes = type->extent_bytes * (size_t)area->elements;
    for (int i = 0; i < area->elements; i++) {
        unsigned char *element = region->model + area->offset + (size_t)i * type->extent_bytes;
        if (area->mode < AREA_TICKET)
            type_fill(type, element, &plan->random, PADDING);
        else if (i == 0)
            type_set(type, element, below(&plan->random, 50));
        else /* guarded elements are equal; data after a flag may be anything */
            memcpy(element, element - type->extent_bytes, type->extent_bytes);
    }
    area->start = area->mode < AREA_TICKET ? 0 : area_load(area, region->model + area->offset);
    for (size_t i = 0; i < len_bytes; i++)
        region->claims[area->offset + i].kind = CLAIM_RESERVED;
    if (area->rank == plan->window->group->me)
        store_note(plan, region, area->offset, len_bytes);
}

void area_make(struct plan *plan)
{
    struct random *random = &plan->random;
    struct area *area = &plan->areas[plan->area_count];
    *area = (struct area){.phase = -1};
    do
        area->mode = plan->epoch == EPOCH_LOCK && one_in(random, 3)
                         ? AREA_GUARDED
                         : (enum area_mode)below(random, AREA_MODES);
    while (!mode_suits(plan, area->mode));
    do
        area->leaf = random_leaf_any(random);
    while (!leaf_suits(area->leaf, area->mode));
    area->elements = area->mode < AREA_TICKET || area->mode == AREA_SIGNAL
                         ? between(random, 2, ELEMENTS_MOST)
                     : area->mode == AREA_GUARDED ? 2
                                                  : 1;
    for (int turn = 0; turn < TRIES; turn++) {
        area->rank = area->mode == AREA_GUARDED ? plan->hot : below(random, plan->window->group->n);
        area->segment = below(random, plan->window->segments);
        if (stretch_find(plan, area, area->leaf->model->extent_bytes * (size_t)area->elements)) {
            variants_make(area, random);
            fill(plan, area);
            plan->area_count++;
            return;
        }
    }
}
