/* Rebuilds a datatype as a layout, level by level, as its constructors are defined (MPI-4.1, 5.1.2 to 5.1.6).  Extents of old
 * types are asked of the host, since they may have been resized.  datatype.c calls. */
#include "ops/flatten.h"

#include "host/contents.h"
#include "host/host.h"

#include <stdlib.h>

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

/* A product of displacements; where it overflows, one that makes every layout vast. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t plus(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* One item of old. */
static struct oriel_node *item_of(MPI_Datatype old, enum oriel_status *status)
{
    struct oriel_node *item = NULL;
    if (*status == ORIEL_OK)
        *status = oriel_flatten(old, &item);
    return *status == ORIEL_OK ? item : NULL;
}

/* count items of old, one extent apart. */
static struct oriel_node *block(MPI_Datatype old, int64_t count, enum oriel_status *status)
{
    return oriel_node_loop((uint64_t)count, extent_of(old), item_of(old, status));
}

/* What the list constructors have in common: blocks of given lengths at given displacements. */
struct list {
    int64_t count;
    const int64_t *lengths;       /* or */
    int64_t length;               /* of every block, when lengths is NULL */
    const int64_t *displacements;
    int64_t unit_bytes;           /* of displacements; 0: each in bytes */
    const MPI_Datatype *types;    /* one each, when many_types */
    bool many_types;
};

static struct oriel_node *make_list(const struct list *list, enum oriel_status *status)
{
    struct oriel_branch *branches = calloc((size_t)list->count + 1, sizeof *branches);
    struct oriel_node *item = list->many_types ? NULL : item_of(list->types[0], status);
    int64_t extent_bytes = list->many_types ? 0 : extent_of(list->types[0]);
    for (int64_t i = 0; branches != NULL && i < list->count; i++) {
        int64_t length = list->lengths != NULL ? list->lengths[i] : list->length;
        branches[i].offset_bytes = times(list->displacements[i], list->unit_bytes != 0 ? list->unit_bytes : 1);
        branches[i].node = list->many_types
                               ? block(list->types[i], length, status)
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
static struct oriel_node *make_subarray(const struct oriel_contents *contents, enum oriel_status *status)
{
    int64_t n = contents->numbers[0];
    const int64_t *sizes = contents->numbers + 1;
    const int64_t *subsizes = sizes + n;
    const int64_t *starts = subsizes + n;
    bool fortran = starts[n] == MPI_ORDER_FORTRAN;
    int64_t stride_bytes = extent_of(contents->types[0]);
    int64_t offset_bytes = 0;
    struct oriel_node *node = block(contents->types[0], 1, status);
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
static struct oriel_node *make_darray(const struct oriel_contents *contents, enum oriel_status *status)
{
    const int64_t *numbers = contents->numbers;
    int64_t n = numbers[2];
    const int64_t *gsizes = numbers + 3;
    const int64_t *distributions = gsizes + n;
    const int64_t *arguments = distributions + n;
    const int64_t *psizes = arguments + n;
    bool fortran = psizes[n] == MPI_ORDER_FORTRAN;
    int64_t stride_bytes = extent_of(contents->types[0]);
    struct oriel_node *node = block(contents->types[0], 1, status);
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

static struct oriel_node *rebuild(const struct oriel_contents *contents, enum oriel_status *status)
{
    const int64_t *numbers = contents->numbers;
    const MPI_Datatype *types = contents->types;
    int64_t count = numbers[0];
    switch (contents->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return block(types[0], 1, status);
    case MPI_COMBINER_CONTIGUOUS:
        return block(types[0], count, status);
    case MPI_COMBINER_VECTOR:
        return oriel_node_loop((uint64_t)count, times(numbers[2], extent_of(types[0])), block(types[0], numbers[1], status));
    case MPI_COMBINER_HVECTOR:
        return oriel_node_loop((uint64_t)count, numbers[2], block(types[0], numbers[1], status));
    case MPI_COMBINER_INDEXED:
        return make_list(&(struct list){count, numbers + 1, 0, numbers + 1 + count, extent_of(types[0]), types, false},
                         status);
    case MPI_COMBINER_HINDEXED:
        return make_list(&(struct list){count, numbers + 1, 0, numbers + 1 + count, 0, types, false}, status);
    case MPI_COMBINER_INDEXED_BLOCK:
        return make_list(&(struct list){count, NULL, numbers[1], numbers + 2, extent_of(types[0]), types, false}, status);
    case MPI_COMBINER_HINDEXED_BLOCK:
        return make_list(&(struct list){count, NULL, numbers[1], numbers + 2, 0, types, false}, status);
    case MPI_COMBINER_STRUCT:
        return make_list(&(struct list){count, numbers + 1, 0, numbers + 1 + count, 0, types, true}, status);
    case MPI_COMBINER_SUBARRAY:
        return make_subarray(contents, status);
    case MPI_COMBINER_DARRAY:
        return make_darray(contents, status);
    default:
        *status = oriel_fail(ORIEL_E_TYPE, "the datatype has a constructor that is not known (%d)", contents->combiner);
        return NULL;
    }
}

static enum oriel_status flatten_leaf(MPI_Datatype datatype, const struct oriel_contents *contents, struct oriel_node **out)
{
    int size_bytes = 0;
    enum oriel_kind kind = oriel_type_predefined(datatype);
    if (contents->combiner != MPI_COMBINER_NAMED && oriel_host()->Type_size(datatype, &size_bytes) == MPI_SUCCESS)
        kind = oriel_type_parameterised(contents->combiner, size_bytes, contents->numbers[0]);
    if (kind == ORIEL_KIND_NONE)
        return oriel_fail(ORIEL_E_TYPE, "the datatype has a predefined type that is not known");
    *out = oriel_node_run(kind, 1);
    return *out != NULL ? ORIEL_OK : no_memory();
}

enum oriel_status oriel_flatten(MPI_Datatype datatype, struct oriel_node **out)
{
    struct oriel_contents contents;
    enum oriel_status status = oriel_contents_open(datatype, &contents);
    if (status != ORIEL_OK)
        return status;
    if (oriel_contents_is_leaf(contents.combiner))
        status = flatten_leaf(datatype, &contents, out);
    else
        *out = rebuild(&contents, &status);
    oriel_contents_close(&contents);
    if (status == ORIEL_OK && *out == NULL)
        status = no_memory();
    if (status == ORIEL_OK && (*out)->vast)
        status = oriel_fail(ORIEL_E_TYPE, "the datatype reaches farther than any memory");
    if (status != ORIEL_OK) {
        oriel_node_free(*out);
        *out = NULL;
    }
    return status;
}
