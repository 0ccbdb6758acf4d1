/* Rebuilds a datatype as a layout, level by level, according to the definitions of its constructors
 * (MPI-4.1, 5.1.2 to 5.1.6). Extents of old types come from the host, because they may have been
 * resized. An old type that occurs again reuses its tree node, so repeated nesting costs only the
 * number of levels. */
#include "datatype/flatten.h"

#include "base/hash_table.h"
#include "datatype/struct_types.h"
#include "host/contents.h"
#include "host/host.h"

#include <stdlib.h>

enum { DEPTH_MOST = 256 }; /* of nested constructors, limited by a thread's stack */

/* A derived datatype whose tree node exists. Its contents stay open to the end, so no handle is
 * reused for another datatype meanwhile. */
struct flattened_type {
    struct flattened_type *next;
    struct oriel_contents contents;
    struct oriel_node *node;
};

/* The state while one datatype is flattened. */
struct flattening {
    enum oriel_status status;
    unsigned depth;
    struct flattened_type *flattened;
    struct oriel_hash_table nodes; /* handle -> node */
};

static enum oriel_status layout_no_memory(void)
{
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for the layout of a datatype");
}

static int64_t type_extent(MPI_Datatype datatype)
{
    MPI_Aint low;
    MPI_Aint extent = 0;
    oriel_host()->Type_get_extent(datatype, &low, &extent);
    return extent;
}

/* Products and sums of displacements. The result is ORIEL_OFFSET_OVERFLOW if it overflows or an
 * operand has that value; 0 times any value is 0. */
static int64_t offset_multiply(int64_t a, int64_t b)
{
    int64_t product;
    if (a != 0 && b == ORIEL_OFFSET_OVERFLOW)
        return ORIEL_OFFSET_OVERFLOW;
    return __builtin_mul_overflow(a, b, &product) ? ORIEL_OFFSET_OVERFLOW : product;
}

static int64_t offset_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (a == ORIEL_OFFSET_OVERFLOW || b == ORIEL_OFFSET_OVERFLOW)
        return ORIEL_OFFSET_OVERFLOW;
    return __builtin_add_overflow(a, b, &sum) ? ORIEL_OFFSET_OVERFLOW : sum;
}

static struct oriel_node *item_node(struct flattening *all, MPI_Datatype old);

/* count items of old, one extent apart. */
static struct oriel_node *block_node(struct flattening *all, MPI_Datatype old, int64_t count)
{
    return oriel_node_loop((uint64_t)count, type_extent(old), item_node(all, old));
}

/* Blocks of one type. */
static struct oriel_node *list_node(struct flattening *all, MPI_Datatype old,
                                    const struct oriel_block_list *listed)
{
    struct oriel_node *item = item_node(all, old);
    const int64_t extent_bytes = type_extent(old);
    struct oriel_node *blocks = item != NULL ? oriel_node_blocks(item, extent_bytes, listed) : NULL;
    struct oriel_branch *branches =
        blocks == NULL ? calloc(listed->count + 1, sizeof *branches) : NULL;
    for (uint64_t i = 0; branches != NULL && i < listed->count; i++) {
        branches[i].offset_bytes =
            offset_multiply(oriel_number(&listed->displacements, i), listed->unit_bytes);
        branches[i].node = oriel_node_loop((uint64_t)oriel_block_list_length(listed, i),
                                           extent_bytes, oriel_node_share(item));
    }
    oriel_node_free(item);
    return blocks != NULL || branches == NULL ? blocks : oriel_node_list(listed->count, branches);
}

/* numbers: count, lengths, displacements. */
static struct oriel_node *struct_node(struct flattening *all, const struct oriel_contents *contents)
{
    const int64_t count = oriel_contents_number(contents, 0);
    const enum oriel_kind half = oriel_struct_half_of(contents);
    if (half != ORIEL_KIND_NONE)
        return oriel_node_run(half, 1);
    struct oriel_branch *branches = calloc((size_t)count + 1, sizeof *branches);
    for (int64_t i = 0; branches != NULL && i < count; i++)
        branches[i] = (struct oriel_branch){
            oriel_contents_number(contents, 1 + count + i),
            block_node(all, contents->types[i], oriel_contents_number(contents, 1 + i))};
    return branches != NULL ? oriel_node_list((uint64_t)count, branches) : NULL;
}

/* A node at an additional offset of offset_bytes. */
static struct oriel_node *shifted_node(struct oriel_node *node, int64_t offset_bytes)
{
    if (node == NULL || offset_bytes == 0)
        return node;
    struct oriel_branch *branch = malloc(sizeof *branch);
    if (branch == NULL) {
        oriel_node_free(node);
        return NULL;
    }
    *branch = (struct oriel_branch){offset_bytes, node};
    return oriel_node_list(1, branch);
}

/* numbers: ndims, sizes, subsizes, starts, order. */
static struct oriel_node *subarray_node(struct flattening *all,
                                        const struct oriel_contents *contents)
{
    const int64_t n = oriel_contents_number(contents, 0);
    const bool fortran = oriel_contents_number(contents, 1 + 3 * n) == MPI_ORDER_FORTRAN;
    int64_t stride_bytes = type_extent(contents->types[0]);
    int64_t offset_bytes = 0;
    struct oriel_node *node = block_node(all, contents->types[0], 1);
    for (int64_t k = 0; k < n; k++) {
        const int64_t d = fortran ? k : n - 1 - k; /* starts with the fastest-varying dimension */
        const int64_t size = oriel_contents_number(contents, 1 + d);
        const int64_t subsize = oriel_contents_number(contents, 1 + n + d);
        const int64_t start = oriel_contents_number(contents, 1 + 2 * n + d);
        node = oriel_node_loop((uint64_t)subsize, stride_bytes, node);
        offset_bytes = offset_add(offset_bytes, offset_multiply(start, stride_bytes));
        stride_bytes = offset_multiply(stride_bytes, size);
    }
    return shifted_node(node, offset_bytes);
}

/* One dimension of a distributed array: the share of the process at coordinate in size indices. */
struct dimension {
    int64_t size;
    int64_t block; /* number of consecutive indices */
    int64_t processes;
    int64_t coordinate;
};

static struct dimension dimension_of(int64_t size, int64_t distribution, int64_t argument,
                                     int64_t processes, int64_t coordinate)
{
    struct dimension dimension = {size, size, processes, coordinate};
    if (distribution == MPI_DISTRIBUTE_BLOCK)
        dimension.block =
            argument == MPI_DISTRIBUTE_DFLT_DARG ? (size + processes - 1) / processes : argument;
    else if (distribution == MPI_DISTRIBUTE_CYCLIC)
        dimension.block = argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument;
    else
        dimension.processes = 1; /* not distributed */
    return dimension;
}

/* The blocks of one dimension: full ones in a loop, then the shorter last one. Takes ownership of
 * the node below. */
static struct oriel_node *dimension_node(const struct dimension *dimension, int64_t stride_bytes,
                                         struct oriel_node *below)
{
    int64_t first = dimension->coordinate * dimension->block;
    int64_t cycle = dimension->processes * dimension->block;
    int64_t whole = first >= dimension->size ? 0 : (dimension->size - first) / cycle;
    int64_t rest = first >= dimension->size ? 0 : (dimension->size - first) % cycle;
    if (rest >= dimension->block) {
        whole++;
        rest = 0;
    }
    struct oriel_branch *branches = calloc(2, sizeof *branches);
    if (branches == NULL) {
        oriel_node_free(below);
        return NULL;
    }
    branches[0].offset_bytes = offset_multiply(first, stride_bytes);
    branches[0].node = oriel_node_loop(
        (uint64_t)whole, offset_multiply(cycle, stride_bytes),
        oriel_node_loop((uint64_t)dimension->block, stride_bytes, oriel_node_share(below)));
    branches[1].offset_bytes = offset_multiply(first + whole * cycle, stride_bytes);
    branches[1].node = oriel_node_loop((uint64_t)rest, stride_bytes, below);
    return oriel_node_list(2, branches);
}

/* A distributed array, from its fastest-varying dimension up. numbers: size, rank, ndims, gsizes,
 * distribs, dargs, psizes, order. */
static struct oriel_node *darray_node(struct flattening *all, const struct oriel_contents *contents)
{
    const int64_t n = oriel_contents_number(contents, 2);
    const int64_t gsizes = 3, distributions = gsizes + n, arguments = distributions + n,
                  psizes = arguments + n; /* index of the first one */
    const bool fortran = oriel_contents_number(contents, psizes + n) == MPI_ORDER_FORTRAN;
    int64_t stride_bytes = type_extent(contents->types[0]);
    struct oriel_node *node = block_node(all, contents->types[0], 1);
    for (int64_t level = 0; level < n; level++) {
        const int64_t d = fortran ? level : n - 1 - level;
        const int64_t size = oriel_contents_number(contents, gsizes + d);
        const int64_t processes = oriel_contents_number(contents, psizes + d);
        /* the process grid is in C order regardless of the array's order (MPI-4.1, 5.1.4) */
        int64_t coordinate = oriel_contents_number(contents, 1);
        for (int64_t k = n - 1; k > d; k--)
            coordinate /= oriel_contents_number(contents, psizes + k);
        const struct dimension dimension = dimension_of(
            size, oriel_contents_number(contents, distributions + d),
            oriel_contents_number(contents, arguments + d), processes, coordinate % processes);
        node = dimension_node(&dimension, stride_bytes, node);
        stride_bytes = offset_multiply(stride_bytes, size);
    }
    return node;
}

/* The numbers from index first on. */
static struct oriel_numbers numbers_from(const struct oriel_contents *contents, int64_t first)
{
    if (first < contents->integer_count)
        return (struct oriel_numbers){contents->integers + first, NULL};
    return (struct oriel_numbers){NULL, contents->wide + (first - contents->integer_count)};
}

/* The blocks of all list constructors except struct. */
static struct oriel_block_list listed_from(const struct oriel_contents *contents)
{
    const int combiner = contents->combiner;
    const int64_t count = oriel_contents_number(contents, 0);
    const bool in_bytes =
        combiner == MPI_COMBINER_HINDEXED || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    const bool one_length =
        combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    struct oriel_block_list listed = {.count = (uint64_t)count,
                                      .displacements =
                                          numbers_from(contents, one_length ? 2 : 1 + count),
                                      .unit_bytes = in_bytes ? 1 : type_extent(contents->types[0])};
    if (one_length)
        listed.length = oriel_contents_number(contents, 1);
    else
        listed.lengths = numbers_from(contents, 1);
    return listed;
}

static struct oriel_node *constructor_node(struct flattening *all,
                                           const struct oriel_contents *contents)
{
    const MPI_Datatype *types = contents->types;
    const int64_t count = oriel_contents_number(contents, 0);
    struct oriel_block_list listed;
    switch (contents->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: return block_node(all, types[0], 1);
    case MPI_COMBINER_CONTIGUOUS: return block_node(all, types[0], count);
    case MPI_COMBINER_VECTOR:
        return oriel_node_loop(
            (uint64_t)count,
            offset_multiply(oriel_contents_number(contents, 2), type_extent(types[0])),
            block_node(all, types[0], oriel_contents_number(contents, 1)));
    case MPI_COMBINER_HVECTOR:
        return oriel_node_loop((uint64_t)count, oriel_contents_number(contents, 2),
                               block_node(all, types[0], oriel_contents_number(contents, 1)));
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        listed = listed_from(contents);
        return list_node(all, types[0], &listed);
    case MPI_COMBINER_STRUCT: return struct_node(all, contents);
    case MPI_COMBINER_SUBARRAY: return subarray_node(all, contents);
    case MPI_COMBINER_DARRAY: return darray_node(all, contents);
    default:
        all->status = oriel_fail(ORIEL_E_TYPE, "the datatype has an unknown constructor (%d)",
                                 contents->combiner);
        return NULL;
    }
}

static struct oriel_node *leaf_node(struct flattening *all, MPI_Datatype datatype,
                                    const struct oriel_contents *contents)
{
    int size_bytes = -1;
    enum oriel_kind kind = oriel_type_predefined(datatype);
    if (kind != ORIEL_KIND_NONE)
        return oriel_node_run(kind, 1);
    oriel_host()->Type_size(datatype, &size_bytes);
    if (contents->combiner == MPI_COMBINER_NAMED && size_bytes == 0) /* MPI-1's MPI_LB and MPI_UB */
        return oriel_node_list(0, calloc(1, sizeof(struct oriel_branch)));
    if (contents->combiner != MPI_COMBINER_NAMED)
        kind = oriel_type_parameterised(contents->combiner, size_bytes,
                                        oriel_contents_number(contents, 0));
    if (kind != ORIEL_KIND_NONE)
        return oriel_node_run(kind, 1);
    all->status = oriel_fail(ORIEL_E_TYPE, "the datatype contains an unknown predefined type");
    return NULL;
}

/* Creates the node of a datatype that occurs for the first time, and caches it. */
static struct oriel_node *item_node_create(struct flattening *all, MPI_Datatype datatype)
{
    struct flattened_type *flattened = calloc(1, sizeof *flattened);
    if (flattened == NULL)
        return NULL;
    all->status = oriel_contents_open(datatype, &flattened->contents);
    if (all->status != ORIEL_OK) {
        free(flattened);
        return NULL;
    }
    flattened->next = all->flattened;
    all->flattened = flattened;
    flattened->node = oriel_contents_is_leaf(flattened->contents.combiner)
                          ? leaf_node(all, datatype, &flattened->contents)
                          : constructor_node(all, &flattened->contents);
    if (flattened->node != NULL)
        oriel_hash_table_set(&all->nodes, (uint64_t)(uintptr_t)datatype,
                             flattened->node); /* a cache: it may fail */
    return oriel_node_share(flattened->node);
}

/* One item of old. NULL after an error, or if memory is exhausted. */
static struct oriel_node *item_node(struct flattening *all, MPI_Datatype old)
{
    if (all->status != ORIEL_OK)
        return NULL;
    struct oriel_node *known = oriel_hash_table_find(&all->nodes, (uint64_t)(uintptr_t)old);
    if (known != NULL)
        return oriel_node_share(known);
    if (all->depth == DEPTH_MOST) {
        all->status = oriel_fail(ORIEL_E_TYPE, "the datatype is nested deeper than %d constructors",
                                 DEPTH_MOST);
        return NULL;
    }
    all->depth++;
    struct oriel_node *item = item_node_create(all, old);
    all->depth--;
    return item;
}

static void flattening_close(struct flattening *all)
{
    for (struct flattened_type *next, *flattened = all->flattened; flattened != NULL;
         flattened = next) {
        next = flattened->next;
        oriel_node_free(flattened->node);
        oriel_contents_close(&flattened->contents);
        free(flattened);
    }
    oriel_hash_table_close(&all->nodes);
}

enum oriel_status oriel_flatten(MPI_Datatype datatype, struct oriel_node **out)
{
    struct flattening all = {.status = ORIEL_OK, .nodes = ORIEL_HASH_TABLE_INIT};
    *out = item_node(&all, datatype);
    enum oriel_status status = all.status;
    if (status == ORIEL_OK && *out == NULL)
        status = layout_no_memory();
    if (status == ORIEL_OK && (*out)->vast)
        status = oriel_fail(ORIEL_E_TYPE, "the datatype's extent exceeds the address space");
    flattening_close(&all);
    if (status != ORIEL_OK) {
        oriel_node_free(*out);
        *out = NULL;
    }
    return status;
}
