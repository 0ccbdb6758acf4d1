/* The flattener, on arbitrary trees of datatype constructors, described by a simulated host. The
 * layout must move the bytes that MPI defines (MPI-4.1, 5.1.2 to 5.1.6), in their order. The test
 * computes them element by element in 128 bits. The flattener may refuse a type only if a number
 * does not fit 64 bits. */
#include "random_datatypes.h"

enum { WALKED_MOST = 1500, OFFSETS_MOST = 32 * WALKED_MOST };

static struct {
    bool overflows;                /* a number of some type */
    int64_t offsets[OFFSETS_MOST]; /* offsets of the moved bytes, in order */
    uint64_t offset_count;
} all;

/* --- MPI's definitions --- */

static wide check(wide number)
{
    all.overflows |= number > INT64_MAX || number < INT64_MIN;
    const wide most = (wide)1 << 100;
    return number > most ? most : number < -most ? -most : number;
}

static wide product(wide a, wide b)
{
    const bool is_far = a != 0 && (b > ((wide)1 << 100) / (a < 0 ? -a : a) ||
                                   b < -(((wide)1 << 100) / (a < 0 ? -a : a)));
    return check(is_far ? (wide)1 << 100 : a * b);
}

/* Appends to out: count items of part, stride_bytes apart, from offset_bytes on. */
static void add(struct random_datatype *out, const struct random_datatype *part, wide count,
                wide stride_bytes, wide offset_bytes)
{
    if (count == 0 || part->elements == 0)
        return;
    const wide last_bytes = product(count - 1, stride_bytes);
    const wide low_bytes =
        check(offset_bytes + part->low_bytes + (last_bytes < 0 ? last_bytes : 0));
    const wide high_bytes =
        check(offset_bytes + part->high_bytes + (last_bytes > 0 ? last_bytes : 0));
    check(offset_bytes);
    check(part->high_bytes + (last_bytes > 0 ? last_bytes : 0));
    check(part->low_bytes + (last_bytes < 0 ? last_bytes : 0));
    out->low_bytes = out->elements == 0 || low_bytes < out->low_bytes ? low_bytes : out->low_bytes;
    out->high_bytes =
        out->elements == 0 || high_bytes > out->high_bytes ? high_bytes : out->high_bytes;
    out->elements = check(out->elements + product(count, part->elements));
    out->size_bytes = check(out->size_bytes + product(count, part->size_bytes));
}

/* One block of a type, as a type of its own. */
static struct random_datatype block_of(const struct random_datatype *part, wide count)
{
    struct random_datatype block = {.elements = 0};
    add(&block, part, count, part->extent_bytes, 0);
    return block;
}

/* Offset and number of items of the block of index i; false where there is none.  For constructors
 * that are lists of blocks. */
static bool list_block(const struct random_datatype *type, int64_t i, int64_t *length,
                       wide *offset_bytes, const struct random_datatype **part)
{
    const int64_t count = type->numbers[0];
    const int64_t *numbers = type->numbers;
    *part = random_datatype_of(type->types[type->combiner == MPI_COMBINER_STRUCT ? i : 0]);
    const bool same = type->combiner == MPI_COMBINER_INDEXED_BLOCK ||
                      type->combiner == MPI_COMBINER_HINDEXED_BLOCK;
    const bool items =
        type->combiner == MPI_COMBINER_INDEXED || type->combiner == MPI_COMBINER_INDEXED_BLOCK;
    *length = same ? numbers[1] : numbers[1 + i];
    *offset_bytes =
        product(same ? numbers[2 + i] : numbers[1 + count + i], items ? (*part)->extent_bytes : 1);
    return i < count;
}

/* Whether an array constructor includes the element of this index in a dimension. */
static bool takes(const struct random_datatype *type, int d, int64_t index)
{
    const int64_t *numbers = type->numbers;
    if (type->combiner == MPI_COMBINER_SUBARRAY) {
        const int64_t n = numbers[0];
        return index >= numbers[1 + 2 * n + d] &&
               index < numbers[1 + 2 * n + d] + numbers[1 + n + d];
    }
    const int64_t n = numbers[2];
    const int64_t size = numbers[3 + d];
    const int64_t processes = numbers[3 + 3 * n + d];
    int64_t block = numbers[3 + 2 * n + d];
    int64_t coordinate = numbers[1];
    for (int64_t k = n - 1; k > d; k--)
        coordinate /= numbers[3 + 3 * n + k];
    if (numbers[3 + n + d] == MPI_DISTRIBUTE_NONE)
        return true;
    if (block == MPI_DISTRIBUTE_DFLT_DARG)
        block =
            numbers[3 + n + d] == MPI_DISTRIBUTE_CYCLIC ? 1 : (size + processes - 1) / processes;
    return index / block % processes == coordinate % processes;
}

/* Calls visit for each included element of an array constructor, in type-map order. */
static void visit_array(const struct random_datatype *type,
                        void (*visit)(const struct random_datatype *part, wide offset_bytes,
                                      void *context),
                        void *context)
{
    const bool sub = type->combiner == MPI_COMBINER_SUBARRAY;
    const int n = (int)type->numbers[sub ? 0 : 2];
    const int64_t *sizes = type->numbers + (sub ? 1 : 3);
    const bool fortran = type->numbers[sub ? 1 + 3 * n : 3 + 4 * n] == MPI_ORDER_FORTRAN;
    const struct random_datatype *part = random_datatype_of(type->types[0]);
    int64_t elements = 1;
    for (int d = 0; d < n; d++)
        elements *= sizes[d];
    for (int64_t element = 0; element < elements; element++) {
        int64_t rest = element;
        bool taken = true;
        for (int k = 0; k < n; k++) {
            const int d = fortran ? k : n - 1 - k; /* fastest dimension first */
            taken = taken && takes(type, d, rest % sizes[d]);
            rest /= sizes[d];
        }
        if (taken)
            visit(part, product(element, part->extent_bytes), context);
    }
}

static void add_element(const struct random_datatype *part, wide offset_bytes, void *out)
{
    add(out, part, 1, 0, offset_bytes);
}

void random_datatype_sum_up(struct random_datatype *type)
{
    const struct random_datatype *part = random_datatype_of(type->types[0]);
    const int64_t *numbers = type->numbers;
    struct random_datatype block;
    int64_t length;
    wide offset_bytes;
    type->elements = type->size_bytes = type->low_bytes = type->high_bytes = 0;
    switch (type->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: add(type, part, 1, 0, 0); break;
    case MPI_COMBINER_CONTIGUOUS: add(type, part, numbers[0], part->extent_bytes, 0); break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        block = block_of(part, numbers[1]);
        add(type, &block, numbers[0],
            product(numbers[2], type->combiner == MPI_COMBINER_VECTOR ? part->extent_bytes : 1), 0);
        break;
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY: visit_array(type, add_element, type); break;
    default:
        for (int64_t i = 0; i < numbers[0] && list_block(type, i, &length, &offset_bytes, &part);
             i++) {
            block = block_of(part, length);
            add(type, &block, 1, 0, offset_bytes);
        }
    }
}

static void walk(const struct random_datatype *type, wide at_bytes);

static void walk_items(const struct random_datatype *part, wide count, wide stride_bytes,
                       wide at_bytes)
{
    for (wide i = 0; part->elements > 0 && i < count; i++)
        walk(part, at_bytes + i * stride_bytes);
}

static void walk_element(const struct random_datatype *part, wide offset_bytes, void *at_bytes)
{
    walk(part, *(wide *)at_bytes + offset_bytes);
}

static void note(wide at_bytes, uint32_t len_bytes)
{
    for (uint32_t i = 0; i < len_bytes; i++) {
        REQUIRE(all.offset_count < OFFSETS_MOST);
        all.offsets[all.offset_count++] = (int64_t)(at_bytes + i);
    }
}

static void walk(const struct random_datatype *type, wide at_bytes)
{
    const struct random_datatype *part = random_datatype_of(type->types[0]);
    const struct oriel_kind_properties *kind;
    const int64_t *numbers = type->numbers;
    int64_t length;
    wide offset_bytes;
    switch (type->combiner) {
    case MPI_COMBINER_NAMED:
        kind = &oriel_kinds[type->kind];
        note(at_bytes, kind->padded ? kind->value_bytes : kind->extent_bytes);
        if (kind->padded)
            note(at_bytes + kind->index_offset, kind->index_bytes);
        break;
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED: walk(part, at_bytes); break;
    case MPI_COMBINER_CONTIGUOUS: walk_items(part, numbers[0], part->extent_bytes, at_bytes); break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        for (int64_t i = 0; type->elements > 0 && i < numbers[0]; i++)
            walk_items(part, numbers[1], part->extent_bytes,
                       at_bytes +
                           (wide)i * numbers[2] *
                               (type->combiner == MPI_COMBINER_VECTOR ? part->extent_bytes : 1));
        break;
    case MPI_COMBINER_SUBARRAY:
    case MPI_COMBINER_DARRAY: visit_array(type, walk_element, &at_bytes); break;
    default:
        for (int64_t i = 0; i < numbers[0] && list_block(type, i, &length, &offset_bytes, &part);
             i++)
            walk_items(part, length, part->extent_bytes, at_bytes + offset_bytes);
    }
}

/* --- comparing --- */

static void expect(uint64_t *at, int64_t offset_bytes, uint64_t len_bytes)
{
    for (uint64_t i = 0; i < len_bytes; i++) {
        REQUIRE(*at < all.offset_count && all.offsets[*at] == offset_bytes + (int64_t)i);
        ++*at;
    }
}

static void compare_bytes(const struct oriel_node *layout, uint64_t count, int64_t extent_bytes)
{
    struct oriel_cursor cursor;
    uint64_t at = 0;
    REQUIRE(oriel_cursor_open(&cursor, layout, count, extent_bytes));
    while (oriel_cursor_fill(&cursor)) {
        struct oriel_batch *batch = &cursor.batch;
        const uint64_t piece_bytes = oriel_batch_piece(batch);
        REQUIRE(piece_bytes > 0 && piece_bytes <= batch->left_bytes);
        expect(&at, batch->at_bytes, piece_bytes);
        oriel_batch_use(batch, piece_bytes);
    }
    oriel_cursor_close(&cursor);
    REQUIRE(at == all.offset_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    struct oriel_node *layout;
    int64_t low_bytes;
    int64_t high_bytes;
    random_datatype_start();
    all.overflows = false;
    all.offset_count = 0;
    const uint64_t count = input_below(&input, 4);
    const int number = random_datatype_make(&input, 1 + (int)input_below(&input, DEPTH));
    const struct random_datatype *type = random_datatype_of(random_datatype_handle(number));
    const enum oriel_status status = oriel_flatten(random_datatype_handle(number), &layout);
    REQUIRE(status == ORIEL_OK || (status == ORIEL_E_TYPE && all.overflows));
    if (status != ORIEL_OK)
        return 0;
    REQUIRE(layout->elements == type->elements && layout->size_bytes == type->size_bytes);
    REQUIRE(type->elements == 0 ||
            (layout->low_bytes == type->low_bytes && layout->high_bytes == type->high_bytes));
    struct random_datatype items = {.elements = 0};
    const bool fitted = !all.overflows;
    add(&items, type, (wide)count, type->extent_bytes, 0);
    const bool bounded =
        oriel_layout_bounds(layout, count, type->extent_bytes, &low_bytes, &high_bytes);
    REQUIRE(bounded || !fitted || all.overflows || items.elements == 0);
    REQUIRE(!bounded || items.elements == 0 ||
            (low_bytes == items.low_bytes && high_bytes == items.high_bytes));
    if (bounded && items.elements <= WALKED_MOST) {
        walk_items(type, (wide)count, type->extent_bytes, 0);
        compare_bytes(layout, count, type->extent_bytes);
    }
    oriel_node_free(layout);
    return 0;
}
