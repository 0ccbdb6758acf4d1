/* Random datatypes in three steps: a plan with a constructor's arguments, the map that MPI-4.1,
 * 5.1.2 to 5.1.6, defines for the plan, and the call of the host's constructor. Blocks are mostly
 * contiguous, which also allows destinations; some overlap. Intermediate types are freed at once,
 * as programs do. */
#include "random_plan.h"
#include "random_types.h"

#include <stdio.h>
#include <string.h>

enum { LEAVES_MOST = 96 };

static struct {
    struct random_leaf leaves[LEAVES_MOST];
    size_t count;
} known;

/* Excludes types that a host handles wrongly, found by comparing its pack with the map. For a
 * structure with a part without bytes MPICH 4.0 divides by zero when it packs, and Open MPI 4.1
 * packs several items wrongly. derived.c has such a structure. Open MPI refuses a darray of a type
 * without bytes (MPI_ERR_TYPE). */
static bool hosts_nest(int combiner, const struct random_type *const olds[RANDOM_PARTS])
{
    bool some_empty = false;
    for (int i = 0; i < RANDOM_PARTS; i++)
        some_empty = some_empty || olds[i]->size_bytes == 0;
    return !some_empty || (combiner != MPI_COMBINER_STRUCT && combiner != MPI_COMBINER_DARRAY);
}

/* MPICH packs long doubles, and from version 5 on all numbers of 16 bytes, as values or as bytes:
 * the contents of their padding are unspecified. */
static bool host_packs_bytes(const struct test_type *model)
{
#ifdef MPICH_VERSION
    bool is_complex = model->group == GROUP_COMPLEX || model->group == GROUP_QUAD_COMPLEX;
    return model->value_bytes / (is_complex ? 2 : 1) != sizeof(long double);
#else
    (void)model;
    return true;
#endif
}

static void leaf_add(MPI_Datatype type, const char *model_name)
{
    int size_bytes = 0;
    if (type == MPI_DATATYPE_NULL || known.count == LEAVES_MOST ||
        MPI_Type_size(type, &size_bytes) != MPI_SUCCESS)
        return;
    for (size_t i = 0; i < test_type_count; i++) {
        const struct test_type *model = &test_types[i];
        if (strcmp(model->name, model_name) == 0 &&
            (size_t)size_bytes == model->value_bytes + model->index_bytes &&
            host_packs_bytes(model))
            known.leaves[known.count++] = (struct random_leaf){type, model};
    }
}

void random_leaves_start(void)
{
    static const int digits[] = {2, 4, 9, 18};
    static const char *const integers[] = {"MPI_INT8_T", "MPI_INT16_T", "MPI_INT32_T",
                                           "MPI_INT64_T"};
    MPI_Datatype type;
    known.count = 0;
    for (size_t i = 0; i < test_type_count; i++)
        leaf_add(test_types[i].type, test_types[i].name);
    for (size_t i = 0; i < COUNT_OF(digits); i++)
        if (MPI_Type_create_f90_integer(digits[i], &type) == MPI_SUCCESS)
            leaf_add(type, integers[i]);
    for (int i = 0; i < 2; i++) {
        if (MPI_Type_create_f90_real(i ? 15 : 6, MPI_UNDEFINED, &type) == MPI_SUCCESS)
            leaf_add(type, i ? "MPI_DOUBLE" : "MPI_FLOAT");
        if (MPI_Type_create_f90_complex(i ? 15 : 6, MPI_UNDEFINED, &type) == MPI_SUCCESS)
            leaf_add(type, i ? "MPI_C_DOUBLE_COMPLEX" : "MPI_C_FLOAT_COMPLEX");
    }
}

const struct random_leaf *random_leaf_any(struct random *random)
{
    return &known.leaves[random_below(random, known.count)];
}

struct random_signature random_signature_of(const struct random_leaf *leaf)
{
    return (struct random_signature){1, {leaf}};
}

struct random_signature random_signature_any(struct random *random)
{
    struct random_signature signature = {1 + (int)random_below(random, SIGNATURE_MOST), {NULL}};
    for (int i = 0; i < signature.count; i++)
        signature.leaves[i] = random_leaf_any(random);
    return signature;
}

static int below(struct random *random, int limit)
{
    return (int)random_below(random, (uint64_t)limit);
}
static bool one_in(struct random *random, int chances)
{
    return random_below(random, (uint64_t)chances) == 0;
}
/* Mostly 1 to 3, now and then 0. */
static int few(struct random *random)
{
    return one_in(random, 12) ? 0 : 1 + below(random, 3);
}
/* In bytes; mostly whole words. */
static MPI_Aint gap(struct random *random)
{
    return below(random, 4) * (one_in(random, 4) ? 1 : 8);
}

static bool map_block(struct random_type *out, const struct random_type *old, MPI_Aint at,
                      MPI_Count length)
{
    if (length * old->size_bytes > MAP_MOST_BYTES - out->size_bytes)
        return false;
    for (MPI_Count i = 0; i < length; i++)
        for (int k = 0; k < old->size_bytes; k++)
            out->map[out->size_bytes++] = (int)(at + i * old->extent + old->map[k]);
    return true;
}

/* True if the array constructor includes the element at the index of a dimension. */
static bool array_contains(const struct random_plan *plan, int d, MPI_Count index)
{
    if (plan->combiner == MPI_COMBINER_SUBARRAY)
        return index >= plan->starts[d] && index < plan->starts[d] + plan->subsizes[d];
    if (plan->distributions[d] == MPI_DISTRIBUTE_NONE)
        return true;
    MPI_Count block = plan->arguments[d];
    if (plan->arguments[d] == MPI_DISTRIBUTE_DFLT_DARG)
        block = plan->distributions[d] == MPI_DISTRIBUTE_CYCLIC
                    ? 1
                    : (plan->sizes[d] + plan->processes[d] - 1) / plan->processes[d];
    return index / block % plan->processes[d] == plan->coordinates[d];
}

static bool map_array(struct random_type *out, const struct random_type *old,
                      const struct random_plan *plan)
{
    MPI_Count all = 1;
    for (int d = 0; d < plan->dimensions; d++)
        all *= plan->sizes[d];
    for (MPI_Count i = 0; i < all; i++) {
        bool taken = true;
        MPI_Count rest = i;
        for (int k = 0; k < plan->dimensions; k++) {
            int d = plan->order == MPI_ORDER_FORTRAN ? k : plan->dimensions - 1 - k;
            taken = taken && array_contains(plan, d, rest % plan->sizes[d]);
            rest /= plan->sizes[d];
        }
        if (taken && !map_block(out, old, i * old->extent, 1))
            return false;
    }
    return true;
}

/* Blocks at consecutive units, in any order, from a possibly negative unit on; or anywhere. */
static void plan_list(struct random_plan *plan, const struct random_type *const olds[RANDOM_PARTS],
                      struct random *random)
{
    MPI_Count at = -below(random, 6);
    bool anywhere = one_in(random, 8);
    bool equal = plan->combiner == MPI_COMBINER_INDEXED_BLOCK ||
                 plan->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    plan->parts = few(random);
    plan->length = few(random);
    for (int i = 0; i < plan->parts; i++) {
        const struct random_type *old = olds[i];
        plan->lengths[i] = equal ? plan->length : few(random);
        MPI_Aint span = plan->lengths[i] * old->extent;
        if (plan->unit == 1 && span < old->high - old->low)
            span = old->high - old->low;
        plan->displs[i] = anywhere ? below(random, 40) - 20 : at - (plan->unit == 1 ? old->low : 0);
        at += plan->unit == 1 ? span + gap(random) : plan->lengths[i] + below(random, 3);
    }
    for (int i = plan->parts - 1;
         plan->combiner != MPI_COMBINER_STRUCT && i > 0 && !equal && one_in(random, 2); i--) {
        MPI_Count length = plan->lengths[0], displ = plan->displs[0];
        plan->lengths[0] = plan->lengths[i];
        plan->displs[0] = plan->displs[i];
        plan->lengths[i] = length;
        plan->displs[i] = displ;
    }
}

static void plan_vector(struct random_plan *plan, const struct random_type *old,
                        struct random *random)
{
    plan->parts = few(random);
    plan->length = few(random);
    if (plan->unit == 1)
        plan->stride = (plan->length ? plan->length - 1 : 0) * old->extent + old->high - old->low +
                       gap(random);
    else
        plan->stride = plan->length + below(random, 3);
    if (one_in(random, 3))
        plan->stride = -plan->stride;
    if (one_in(random, 10))
        plan->stride = below(random, 5) - 2;
    for (int i = 0; i < plan->parts; i++) {
        plan->lengths[i] = plan->length;
        plan->displs[i] = i * plan->stride;
    }
}

static void plan_array(struct random_plan *plan, struct random *random)
{
    static const int distributions[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                                        MPI_DISTRIBUTE_NONE};
    plan->dimensions = 1 + below(random, RANDOM_DIMENSIONS);
    plan->order = one_in(random, 2) ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
    plan->grid_size = 1;
    plan->grid_rank = 0;
    for (int d = 0; d < plan->dimensions; d++) {
        plan->sizes[d] = 1 + below(random, plan->dimensions == 1 ? 9 : 5);
        plan->subsizes[d] = 1 + below(random, (int)plan->sizes[d]);
        plan->starts[d] = below(random, (int)(plan->sizes[d] - plan->subsizes[d]) + 1);
        plan->distributions[d] = distributions[below(random, 3)];
        plan->processes[d] =
            plan->distributions[d] == MPI_DISTRIBUTE_NONE ? 1 : 1 + below(random, 3);
        plan->coordinates[d] = below(random, plan->processes[d]);
        plan->arguments[d] = 1 + below(random, 3);
        if (plan->distributions[d] ==
            MPI_DISTRIBUTE_BLOCK) /* the processes must cover the whole array */
            plan->arguments[d] +=
                ((int)plan->sizes[d] + plan->processes[d] - 1) / plan->processes[d] - 1;
        if (plan->distributions[d] == MPI_DISTRIBUTE_NONE || one_in(random, 2))
            plan->arguments[d] = MPI_DISTRIBUTE_DFLT_DARG;
        plan->grid_size *= plan->processes[d];
        plan->grid_rank = plan->grid_rank * plan->processes[d] + plan->coordinates[d];
    }
}

static void plan_make(struct random_plan *plan, const struct random_type *const olds[RANDOM_PARTS],
                      struct random *random)
{
    const struct random_type *old = olds[0];
    switch (plan->combiner) {
    case MPI_COMBINER_VECTOR:
        plan->unit = old->extent;
        plan_vector(plan, old, random);
        return;
    case MPI_COMBINER_HVECTOR: plan_vector(plan, old, random); return;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
        plan->unit = old->extent;
        plan_list(plan, olds, random);
        return;
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_HINDEXED_BLOCK:
    case MPI_COMBINER_STRUCT: plan_list(plan, olds, random); return;
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY: plan_array(plan, random); return;
    default: /* contiguous, dup, resized */
        plan->parts = 1;
        plan->lengths[0] = plan->combiner == MPI_COMBINER_CONTIGUOUS ? few(random) : 1;
        plan->displs[0] = 0;
        plan->low = old->low - gap(random);
        plan->extent = old->high - plan->low + gap(random);
        if (one_in(random, 6))
            plan->extent = 1 + gap(random);
    }
}

/* The bounds of the map and the host's extent. */
static void finish(struct random_type *type)
{
    MPI_Aint low_bound;
    MPI_Type_get_extent(type->type, &low_bound, &type->extent);
    type->low = type->size_bytes ? type->map[0] : 0;
    type->high = type->low;
    for (int i = 0; i < type->size_bytes; i++) {
        type->low = type->map[i] < type->low ? type->map[i] : type->low;
        type->high = type->map[i] + 1 > type->high ? type->map[i] + 1 : type->high;
    }
}

static void make_leaf(struct random_type *out, const struct random_leaf *leaf)
{
    const struct test_type *model = leaf->model;
    out->type = leaf->type;
    out->derived = false;
    out->size_bytes = 0;
    for (size_t i = 0; i < model->value_bytes; i++)
        out->map[out->size_bytes++] = (int)i;
    for (size_t i = 0; i < model->index_bytes; i++)
        out->map[out->size_bytes++] = (int)(model->index_offset_bytes + i);
    snprintf(out->text, sizeof out->text, "%s", model->name);
    finish(out);
}

/* A structure of several leaves, at increasing offsets that differ from type to type. */
static void make_record(struct random_type *out, const struct random_signature *signature,
                        struct random *random)
{
    static const int ones[SIGNATURE_MOST] = {1, 1, 1};
    MPI_Datatype types[SIGNATURE_MOST];
    MPI_Aint displs[SIGNATURE_MOST], at = 0;
    if (signature->count == 1) {
        make_leaf(out, signature->leaves[0]);
        return;
    }
    int used = 0;
    struct random_type leaf;
    out->size_bytes = 0;
    for (int i = 0; i < signature->count; i++) {
        make_leaf(&leaf, signature->leaves[i]);
        types[i] = leaf.type;
        displs[i] = at + gap(random);
        at = displs[i] + leaf.extent;
        map_block(out, &leaf, displs[i], 1);
        used += snprintf(out->text + used, sizeof out->text - (size_t)used, "%s%.24s",
                         i ? "+" : "record of ", leaf.text);
    }
    MPI_Type_create_struct(signature->count, ones, displs, types, &out->type);
    out->derived = true;
    finish(out);
}

/* Tries plans until one fits into the map. */
static void construct(struct random_type *out, int combiner,
                      const struct random_type *const olds[RANDOM_PARTS], struct random *random)
{
    struct random_plan plan;
    bool fits = false;
    while (!fits) {
        plan = (struct random_plan){.combiner = combiner, .unit = 1};
        for (int i = 0; i < RANDOM_PARTS; i++)
            plan.olds[i] = olds[i]->type;
        plan_make(&plan, olds, random);
        out->size_bytes = 0;
        fits = random_host_strides(plan.stride * plan.unit) &&
               (plan.dimensions == 0 || map_array(out, olds[0], &plan));
        for (int i = 0; i < plan.parts && fits; i++)
            fits = map_block(out, olds[i], plan.displs[i] * plan.unit, plan.lengths[i]);
    }
    random_plan_build(&plan, random, &out->type);
    out->derived = true;
}

static void make_tree(struct random_type *out, const struct random_signature *signature,
                      struct random *random, int depth)
{
    static const struct {
        int combiner;
        const char *name;
    } constructors[] = {
        {MPI_COMBINER_CONTIGUOUS, "contiguous"},
        {MPI_COMBINER_VECTOR, "vector"},
        {MPI_COMBINER_HVECTOR, "hvector"},
        {MPI_COMBINER_INDEXED, "indexed"},
        {MPI_COMBINER_HINDEXED, "hindexed"},
        {MPI_COMBINER_INDEXED_BLOCK, "indexed_block"},
        {MPI_COMBINER_HINDEXED_BLOCK, "hindexed_block"},
        {MPI_COMBINER_STRUCT, "struct"},
        {MPI_COMBINER_SUBARRAY, "subarray"},
        {MPI_COMBINER_DARRAY, "darray"},
        {MPI_COMBINER_RESIZED, "resized"},
        {MPI_COMBINER_DUP, "dup"},
    };
    if (depth == 0) {
        make_record(out, signature, random);
        return;
    }
    struct random_type children[RANDOM_PARTS];
    const struct random_type *olds[RANDOM_PARTS];
    size_t chosen = random_below(random, COUNT_OF(constructors));
    int different =
        constructors[chosen].combiner == MPI_COMBINER_STRUCT ? 1 + below(random, RANDOM_PARTS) : 1;
    for (int i = 0; i < different; i++)
        make_tree(&children[i], signature, random, i == 0 ? depth - 1 : below(random, depth));
    for (int i = 0; i < RANDOM_PARTS; i++)
        olds[i] = &children[i % different];
    if (!hosts_nest(constructors[chosen].combiner, olds))
        chosen = COUNT_OF(constructors) - 1; /* dup */
    construct(out, constructors[chosen].combiner, olds, random);
    snprintf(out->text, sizeof out->text, "%s of %.220s", constructors[chosen].name,
             children[0].text);
    finish(out);
    for (int i = 0; i < different; i++)
        random_type_free(&children[i]);
}

void random_type_make(struct random_type *type, const struct random_signature *signature,
                      struct random *random, int depth)
{
    make_tree(type, signature, random, below(random, depth + 1));
    if (type->derived)
        MPI_Type_commit(&type->type);
}

void random_type_free(struct random_type *type)
{
    if (type->derived)
        MPI_Type_free(&type->type);
}

void random_type_bounds(const struct random_type *type, int count, MPI_Aint *low, MPI_Aint *high)
{
    MPI_Aint last = (count > 0 ? count - 1 : 0) * type->extent;
    *low = type->low + (last < 0 ? last : 0);
    *high = type->high + (last > 0 ? last : 0);
}

bool random_type_is_disjoint(const struct random_type *type, int count)
{
    unsigned char seen[4 * MAP_MOST_BYTES] = {0};
    MPI_Aint low, high;
    random_type_bounds(type, count, &low, &high);
    if (high - low > (MPI_Aint)sizeof seen)
        return false;
    for (int i = 0; i < count * type->size_bytes; i++)
        if (seen[i / type->size_bytes * type->extent + type->map[i % type->size_bytes] - low]++)
            return false;
    return true;
}

void random_type_gather(const struct random_type *type, int len_bytes, const unsigned char *buffer,
                        unsigned char *packed)
{
    for (int i = 0; i < len_bytes; i++)
        packed[i] = buffer[i / type->size_bytes * type->extent + type->map[i % type->size_bytes]];
}

void random_type_scatter(const struct random_type *type, int len_bytes, unsigned char *buffer,
                         const unsigned char *packed)
{
    for (int i = 0; i < len_bytes; i++)
        buffer[i / type->size_bytes * type->extent + type->map[i % type->size_bytes]] = packed[i];
}
