/* The pool of datatypes of a case, and buffers for them.  Type maps are small, and several items
 * fit into a window. Vast types have a bound that overflows, or nearly does, in a product or sum.
 * They are for targets, which must refuse the type itself or its range. */
#include "random_buffers.h"

#include <stdio.h>
#include <string.h>

enum { MIDDLE = SIDE_BYTES / 2, SMALL_BYTES = 128, REACH_BYTES = 400 };

int sides_alike(const struct test_type *a, const struct test_type *b)
{
    if (a == b)
        return 2;
    return a->group == b->group && a->extent_bytes == b->extent_bytes &&
           a->value_group == b->value_group && a->value_bytes == b->value_bytes;
}

static bool is_padded(const struct test_type *model)
{
    return model->group == GROUP_PAIR &&
           model->extent_bytes != model->value_bytes + model->index_bytes;
}

static void add_good(struct side_type *out, struct random *random)
{
    for (;;) {
        struct random_signature signature = one_in(random, 4)
                                                ? random_signature_any(random)
                                                : random_signature_of(random_leaf_any(random));
        random_type_make(&out->map, &signature, random, one_in(random, 2) ? 0 : 2);
        size_t element_bytes =
            signature.leaves[0]->model->value_bytes + signature.leaves[0]->model->index_bytes;
        bool unclear = false;
        out->mixed = false;
        out->padded = is_padded(signature.leaves[0]->model);
        for (int i = 1; i < signature.count; i++) {
            int alike = sides_alike(signature.leaves[i]->model, signature.leaves[0]->model);
            out->mixed = out->mixed || alike == 0;
            out->padded = out->padded || is_padded(signature.leaves[i]->model);
            unclear = unclear || alike == 1;
        }
        out->model = signature.leaves[0]->model;
        out->elements = out->mixed ? out->map.size_bytes > 0
                                   : (int)((size_t)out->map.size_bytes / element_bytes);
        out->state = out->map.size_bytes == 0 ? SIDE_EMPTY : SIDE_GOOD;
        out->type = out->map.type;
        if (!unclear && out->map.size_bytes <= SMALL_BYTES && out->map.low >= -REACH_BYTES &&
            out->map.high <= REACH_BYTES)
            return;
        random_type_free(&out->map);
    }
}

/* Of int32s, at absolute addresses. */
static void add_absolute(struct side_type *out, unsigned char *buffer)
{
    MPI_Aint base;
    MPI_Get_address(buffer, &base);
    MPI_Aint displs[2] = {base, base + 12};
    int lengths[2] = {1, 2};
    MPI_Type_create_hindexed(2, lengths, displs, MPI_INT32_T, &out->type);
    MPI_Type_commit(&out->type);
    out->absolute = true;
    out->elements = 3;
    out->map = (struct random_type){
        .type = out->type, .derived = true, .size_bytes = 12, .extent = 20, .high = 20};
    for (int i = 0; i < 12; i++)
        out->map.map[i] = i < 4 ? i : 8 + i;
}

static bool add_vast(struct side_type *out, int which)
{
    MPI_Datatype inner;
    int twos[2] = {1, 1};
    MPI_Aint far = (MPI_Aint)1 << 62;
    MPI_Aint displs[2] = {0, which % 2 ? far : -far};
    int code = MPI_SUCCESS;
    switch (which) {
    case 0: code = MPI_Type_create_hvector(5, 1, far, MPI_INT32_T, &out->type); break;
    case 1: code = MPI_Type_create_hvector(3, 1, -far, MPI_INT32_T, &out->type); break;
    case 2:
    case 3: code = MPI_Type_create_hindexed(2, twos, displs, MPI_INT32_T, &out->type); break;
    case 4:
        MPI_Type_create_hvector(3, 1, (MPI_Aint)1 << 61, MPI_INT32_T, &inner);
        code = MPI_Type_create_hvector(3, 1, (MPI_Aint)3 << 60, inner, &out->type);
        MPI_Type_free(&inner);
        break;
    default:
        MPI_Type_create_resized(MPI_INT32_T, 0, far, &inner);
        code = MPI_Type_contiguous(4, inner, &out->type);
        MPI_Type_free(&inner);
        break;
    }
    if (code != MPI_SUCCESS || MPI_Type_commit(&out->type) != MPI_SUCCESS)
        return false;
    out->map.type = out->type;
    out->map.derived = true;
    out->elements = which < 2 ? 5 - 2 * which : which < 4 ? 2 : which == 4 ? 9 : 4;
    out->map.size_bytes = 4 * out->elements;
    snprintf(out->map.text, sizeof out->map.text, "vast %d", which);
    return true;
}

static const struct test_type *int32_model(void)
{
    for (size_t i = 0; i < test_type_count; i++)
        if (strcmp(test_types[i].name, "MPI_INT32_T") == 0)
            return &test_types[i];
    return &test_types[0];
}

void sides_open(struct sides *sides, struct random *random)
{
    random_leaves_start();
    sides->recent = NULL;
    for (int i = 0; i < SIDE_TYPES; i++) {
        struct side_type *out = &sides->types[i];
        *out = (struct side_type){.state = SIDE_GOOD, .model = int32_model(), .elements = 1};
        if (i == 0) {
            out->state = SIDE_NULL;
            out->type = MPI_DATATYPE_NULL;
        } else if (i == 1) {
            out->state = SIDE_UNCOMMITTED;
            MPI_Type_contiguous(2, MPI_INT32_T, &out->type);
            out->map = (struct random_type){
                .type = out->type, .derived = true, .size_bytes = 8, .extent = 8, .high = 8};
        } else if (i == 2) {
            out->state = SIDE_EMPTY;
            MPI_Type_contiguous(0, MPI_INT32_T, &out->type);
            MPI_Type_commit(&out->type);
            out->map = (struct random_type){.type = out->type, .derived = true};
            out->elements = 0;
        } else if (i < 5) {
            add_absolute(out, sides->buffers[i - 3] + MIDDLE);
        } else if (i < 11 && add_vast(out, i - 5)) {
            out->state = SIDE_VAST;
        } else {
            add_good(out, random);
        }
    }
}

void sides_close(struct sides *sides)
{
    for (int i = 0; i < SIDE_TYPES; i++)
        if (sides->types[i].state != SIDE_NULL)
            random_type_free(&sides->types[i].map);
}

static MPI_Count draw_count(bool wide, struct random *random)
{
    switch (random_below(random, 16)) {
    case 0: return 0;
    case 1:
        return one_in(random, 2) ? -1 - below(random, 3)
               : wide            ? (MPI_Count)fuzz_bad_aint(random)
                                 : fuzz_bad_int(random);
    case 2: return below(random, 400);
    default: return 1 + below(random, 6);
    }
}

/* The types that a side may have: bad ones are rare, absolute ones belong to their buffer, vast
 * ones to targets. */
static const struct side_type *draw_type(struct sides *sides, int b, struct random *random)
{
    for (;;) {
        int i = one_in(random, 6) ? below(random, 11) : 11 + below(random, SIDE_TYPES - 11);
        const struct side_type *type = &sides->types[i];
        if ((type->absolute && i - 3 != b) || (type->state == SIDE_VAST && b >= 0))
            continue;
        return type;
    }
}

void side_draw(struct sides *sides, struct side *side, int b, bool wide, struct random *random)
{
    side->type = draw_type(sides, b, random);
    side->count = draw_count(wide, random);
    side->addr = side->origin =
        b >= 0 ? sides->buffers[b] + MIDDLE + below(random, 2) * below(random, 64) : NULL;
    if (b >= 0 && side->type->absolute) {
        side->addr = MPI_BOTTOM;
        side->origin = sides->buffers[b] + MIDDLE;
    } else if (b >= 0 && (side->count == 0 || side->type->state == SIDE_EMPTY) &&
               one_in(random, 2)) {
        side->addr = NULL;
    }
}

bool side_fits(const struct sides *sides, const struct side *side, int b, MPI_Count len_bytes)
{
    MPI_Aint low, high;
    if (len_bytes == 0)
        return true;
    if (len_bytes > SIDE_BYTES)
        return false;
    random_type_bounds(&side->type->map, (int)((len_bytes - 1) / side->type->map.size_bytes + 1),
                       &low, &high);
    MPI_Aint at = side->origin - sides->buffers[b];
    return at + low >= 0 && at + high <= SIDE_BYTES;
}

void sides_fill(struct sides *sides, struct random *random)
{
    uint64_t word = 0;
    for (size_t i = 0; i < sizeof sides->buffers; i++) {
        word = i % 8 ? word >> 8 : random_next(random);
        ((unsigned char *)sides->buffers)[i] = (unsigned char)word;
    }
    memcpy(sides->expected, sides->buffers, sizeof sides->expected);
}

void sides_check(struct sides *sides)
{
    static const char *const names[] = {"origin", "result", "compare"};
    for (int b = 0; b < 3; b++) {
        if (memcmp(sides->expected[b], sides->buffers[b], SIDE_BYTES) == 0)
            continue;
        CHECK(false, "%.250s: the buffer of the %s changed", fuzz_description(), names[b]);
        memcpy(sides->expected[b], sides->buffers[b], SIDE_BYTES);
    }
}
