/* Rebuilds a datatype as a layout, level by level, as its constructors are defined (MPI-4.1, 5.1.2 to 5.1.6).  Extents of old
 * types are asked of the host, since they may have been resized.  An old type that is met again is the same node: what is nested
 * twice at each of many levels costs no more than its levels.  datatype.c calls. */
#include "ops/flatten.h"

#include "base/table.h"
#include "host/contents.h"
#include "host/host.h"

#include <stdlib.h>

enum { DEPTH_MOST = 256 }; /* of constructors: a thread's stack must have room for them */

/* A derived datatype whose node is made.  Its contents stay open to the end, so that no handle comes to mean another datatype. */
struct made {
    struct made *next;
    struct oriel_contents contents;
    struct oriel_node *node;
};

/* One datatype being flattened. */
struct flattening {
    enum oriel_status status;
    unsigned depth;
    struct made *made;
    struct oriel_table nodes; /* handle -> node */
};

static enum oriel_status no_memory(void)
{
    return oriel_fail(ORIEL_E_NO_MEM, "no memory for the layout of a datatype");
}

static int64_t extent_of(MPI_Datatype datatype)
{
    MPI_Aint low;
    MPI_Aint extent = 0;
    oriel_host()->Type_get_extent(datatype, &low, &extent);
    return extent;
}

/* Products and sums of displacements: ORIEL_NOWHERE where they overflow, and what is made of that. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    if (a != 0 && b == ORIEL_NOWHERE)
        return ORIEL_NOWHERE;
    return __builtin_mul_overflow(a, b, &product) ? ORIEL_NOWHERE : product;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    if (a == ORIEL_NOWHERE || b == ORIEL_NOWHERE)
        return ORIEL_NOWHERE;
    return __builtin_add_overflow(a, b, &sum) ? ORIEL_NOWHERE : sum;
}

static struct oriel_node *item_of(struct flattening *all, MPI_Datatype old);

/* count items of old, one extent apart. */
static struct oriel_node *block(struct flattening *all, MPI_Datatype old, int64_t count)
{
    return oriel_node_loop((uint64_t)count, extent_of(old), item_of(all, old));
}

/* What the list constructors have in common: blocks of given lengths at given displacements. */
struct list {
    int64_t count;
    const int64_t *lengths;       /* or */
    int64_t length;               /* of every block, when lengths is NULL */
    const int64_t *displacements;
    int64_t unit_bytes;           /* of displacements; may be 0, as an extent may */
    const MPI_Datatype *types;    /* one each, when many_types */
    bool many_types;
};

static struct oriel_node *make_list(struct flattening *all, const struct list *list)
{
    struct oriel_branch *branches = calloc((size_t)list->count + 1, sizeof *branches);
    struct oriel_node *item = list->many_types ? NULL : item_of(all, list->types[0]);
    int64_t extent_bytes = list->many_types ? 0 : extent_of(list->types[0]);
    for (int64_t i = 0; branches != NULL && i < list->count; i++) {
        int64_t length = list->lengths != NULL ? list->lengths[i] : list->length;
        branches[i].offset_bytes = times(list->displacements[i], list->unit_bytes);
        branches[i].node = list->many_types
                               ? block(all, list->types[i], length)
                               : oriel_node_loop((uint64_t)length, extent_bytes, oriel_node_share(item));
    }
    oriel_node_free(item);
    return branches != NULL ? oriel_node_list((uint64_t)list->count, branches) : NULL;
}

/* A node that starts offset_bytes further on. */
static struct oriel_node *shift(struct oriel_node *node, int64_t offset_bytes)
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
static struct oriel_node *make_subarray(struct flattening *all, const struct oriel_contents *contents)
{
    int64_t n = contents->numbers[0];
    const int64_t *sizes = contents->numbers + 1;
    const int64_t *subsizes = sizes + n;
    const int64_t *starts = subsizes + n;
    bool fortran = starts[n] == MPI_ORDER_FORTRAN;
    int64_t stride_bytes = extent_of(contents->types[0]);
    int64_t offset_bytes = 0;
    struct oriel_node *node = block(all, contents->types[0], 1);
    for (int64_t k = 0; k < n; k++) {
        int64_t d = fortran ? k : n - 1 - k; /* from the dimension that varies fastest */
        node = oriel_node_loop((uint64_t)subsizes[d], stride_bytes, node);
        offset_bytes = plus(offset_bytes, times(starts[d], stride_bytes));
        stride_bytes = times(stride_bytes, sizes[d]);
    }
    return shift(node, offset_bytes);
}

/* One dimension of a distributed array: what the process at coordinate of processes has of size indices. */
struct dimension {
    int64_t size;
    int64_t block; /* indices that stand together */
    int64_t processes;
    int64_t coordinate;
};

static struct dimension dimension_of(int64_t size, int64_t distribution, int64_t argument, int64_t processes,
                                     int64_t coordinate)
{
    struct dimension dimension = {size, size, processes, coordinate};
    if (distribution == MPI_DISTRIBUTE_BLOCK)
        dimension.block = argument == MPI_DISTRIBUTE_DFLT_DARG ? (size + processes - 1) / processes : argument;
    else if (distribution == MPI_DISTRIBUTE_CYCLIC)
        dimension.block = argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument;
    else
        dimension.processes = 1; /* not distributed */
    return dimension;
}

/* The blocks of one dimension, whole ones in a loop and the last, shorter one behind it.  Takes over the node below. */
static struct oriel_node *distribute(const struct dimension *dimension, int64_t stride_bytes, struct oriel_node *below)
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
    branches[0].offset_bytes = times(first, stride_bytes);
    branches[0].node = oriel_node_loop((uint64_t)whole, times(cycle, stride_bytes),
                                       oriel_node_loop((uint64_t)dimension->block, stride_bytes, oriel_node_share(below)));
    branches[1].offset_bytes = times(first + whole * cycle, stride_bytes);
    branches[1].node = oriel_node_loop((uint64_t)rest, stride_bytes, below);
    return oriel_node_list(2, branches);
}

/* A distributed array, from its fastest dimension up.  numbers: size, rank, ndims, gsizes, distribs, dargs, psizes, order. */
static struct oriel_node *make_darray(struct flattening *all, const struct oriel_contents *contents)
{
    const int64_t *numbers = contents->numbers;
    int64_t n = numbers[2];
    const int64_t *gsizes = numbers + 3;
    const int64_t *distributions = gsizes + n;
    const int64_t *arguments = distributions + n;
    const int64_t *psizes = arguments + n;
    bool fortran = psizes[n] == MPI_ORDER_FORTRAN;
    int64_t stride_bytes = extent_of(contents->types[0]);
    struct oriel_node *node = block(all, contents->types[0], 1);
    for (int64_t level = 0; level < n; level++) {
        int64_t d = fortran ? level : n - 1 - level;
        int64_t coordinate = numbers[1]; /* the process grid is in C order whatever the array's (MPI-4.1, 5.1.4) */
        for (int64_t k = n - 1; k > d; k--)
            coordinate /= psizes[k];
        struct dimension dimension =
            dimension_of(gsizes[d], distributions[d], arguments[d], psizes[d], coordinate % psizes[d]);
        node = distribute(&dimension, stride_bytes, node);
        stride_bytes = times(stride_bytes, gsizes[d]);
    }
    return node;
}

static struct oriel_node *rebuild(struct flattening *all, const struct oriel_contents *contents)
{
    const int64_t *numbers = contents->numbers;
    const MPI_Datatype *types = contents->types;
    int64_t count = numbers[0];
    switch (contents->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return block(all, types[0], 1);
    case MPI_COMBINER_CONTIGUOUS:
        return block(all, types[0], count);
    case MPI_COMBINER_VECTOR:
        return oriel_node_loop((uint64_t)count, times(numbers[2], extent_of(types[0])), block(all, types[0], numbers[1]));
    case MPI_COMBINER_HVECTOR:
        return oriel_node_loop((uint64_t)count, numbers[2], block(all, types[0], numbers[1]));
    case MPI_COMBINER_INDEXED:
        return make_list(all, &(struct list){count, numbers + 1, 0, numbers + 1 + count, extent_of(types[0]), types, false});
    case MPI_COMBINER_HINDEXED:
        return make_list(all, &(struct list){count, numbers + 1, 0, numbers + 1 + count, 1, types, false});
    case MPI_COMBINER_INDEXED_BLOCK:
        return make_list(all, &(struct list){count, NULL, numbers[1], numbers + 2, extent_of(types[0]), types, false});
    case MPI_COMBINER_HINDEXED_BLOCK:
        return make_list(all, &(struct list){count, NULL, numbers[1], numbers + 2, 1, types, false});
    case MPI_COMBINER_STRUCT:
        return make_list(all, &(struct list){count, numbers + 1, 0, numbers + 1 + count, 1, types, true});
    case MPI_COMBINER_SUBARRAY:
        return make_subarray(all, contents);
    case MPI_COMBINER_DARRAY:
        return make_darray(all, contents);
    default:
        all->status =
            oriel_fail(ORIEL_E_TYPE, "the datatype has a constructor that is not known (%d)", contents->combiner);
        return NULL;
    }
}

static struct oriel_node *make_leaf(struct flattening *all, MPI_Datatype datatype, const struct oriel_contents *contents)
{
    int size_bytes = -1;
    enum oriel_kind kind = oriel_type_predefined(datatype);
    if (kind != ORIEL_KIND_NONE)
        return oriel_node_run(kind, 1);
    oriel_host()->Type_size(datatype, &size_bytes);
    if (contents->combiner == MPI_COMBINER_NAMED && size_bytes == 0) /* MPI-1's MPI_LB and MPI_UB */
        return oriel_node_list(0, calloc(1, sizeof(struct oriel_branch)));
    if (contents->combiner != MPI_COMBINER_NAMED)
        kind = oriel_type_parameterised(contents->combiner, size_bytes, contents->numbers[0]);
    if (kind != ORIEL_KIND_NONE)
        return oriel_node_run(kind, 1);
    all->status = oriel_fail(ORIEL_E_TYPE, "the datatype has a predefined type that is not known");
    return NULL;
}

/* Makes the node of a datatype that is met for the first time, and keeps it for the next. */
static struct oriel_node *make_item(struct flattening *all, MPI_Datatype datatype)
{
    struct made *made = calloc(1, sizeof *made);
    if (made == NULL)
        return NULL;
    all->status = oriel_contents_open(datatype, &made->contents);
    if (all->status != ORIEL_OK) {
        free(made);
        return NULL;
    }
    made->next = all->made;
    all->made = made;
    made->node = oriel_contents_is_leaf(made->contents.combiner) ? make_leaf(all, datatype, &made->contents)
                                                                  : rebuild(all, &made->contents);
    if (made->node != NULL)
        oriel_table_set(&all->nodes, (uint64_t)(uintptr_t)datatype, made->node); /* a cache: it may fail */
    return oriel_node_share(made->node);
}

/* One item of old; NULL after an error, or when memory is exhausted. */
static struct oriel_node *item_of(struct flattening *all, MPI_Datatype old)
{
    if (all->status != ORIEL_OK)
        return NULL;
    struct oriel_node *known = oriel_table_find(&all->nodes, (uint64_t)(uintptr_t)old);
    if (known != NULL)
        return oriel_node_share(known);
    if (all->depth == DEPTH_MOST) {
        all->status = oriel_fail(ORIEL_E_TYPE, "the datatype is nested deeper than %d constructors", DEPTH_MOST);
        return NULL;
    }
    all->depth++;
    struct oriel_node *item = make_item(all, old);
    all->depth--;
    return item;
}

static void close_all(struct flattening *all)
{
    for (struct made *next, *made = all->made; made != NULL; made = next) {
        next = made->next;
        oriel_node_free(made->node);
        oriel_contents_close(&made->contents);
        free(made);
    }
    oriel_table_close(&all->nodes);
}

enum oriel_status oriel_flatten(MPI_Datatype datatype, struct oriel_node **out)
{
    struct flattening all = {.status = ORIEL_OK, .nodes = ORIEL_TABLE_INIT};
    *out = item_of(&all, datatype);
    enum oriel_status status = all.status;
    if (status == ORIEL_OK && *out == NULL)
        status = no_memory();
    if (status == ORIEL_OK && (*out)->vast)
        status = oriel_fail(ORIEL_E_TYPE, "the datatype reaches farther than any memory");
    close_all(&all);
    if (status != ORIEL_OK) {
        oriel_node_free(*out);
        *out = NULL;
    }
    return status;
}
