/* See random_layouts.h. Offsets follow from the definition of each constructor, not from a walk of
 * its result. */
#include "random_layouts.h"

#include <stdlib.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"

enum { BRANCHES = 6 };

/* Runs of `each` elements of a kind, stride_bytes apart. */
struct segment {
    enum oriel_kind kind;
    uint64_t each;
    uint64_t runs;
    int64_t stride_bytes;
    int64_t offset_bytes;
};

static uint64_t extent_of(enum oriel_kind kind)
{
    return oriel_kinds[kind].extent_bytes;
}

static void add_element(struct random_layout *out, enum oriel_kind kind, int64_t at)
{
    const struct oriel_kind_properties *properties = &oriel_kinds[kind];
    out->offsets[out->elements] = at;
    out->kinds[out->elements++] = kind;
    for (uint32_t i = 0; i < properties->extent_bytes; i++)
        if (!properties->padded || i < properties->value_bytes ||
            (i >= properties->index_offset &&
             i < properties->index_offset + properties->index_bytes))
            out->bytes[out->moved++] = at + i;
}

static void add_items(struct random_layout *out, const struct segment *segments, uint64_t count)
{
    uint64_t elements = 1;
    uint64_t bytes = 1;
    for (uint64_t i = 0; i < count; i++) {
        elements += out->count * segments[i].runs * segments[i].each;
        bytes += out->count * segments[i].runs * segments[i].each * extent_of(segments[i].kind);
    }
    out->offsets = malloc(elements * sizeof *out->offsets);
    out->kinds = malloc(elements * sizeof *out->kinds);
    out->bytes = malloc(bytes * sizeof *out->bytes);
    assert_true(out->offsets != NULL && out->kinds != NULL && out->bytes != NULL);
    for (uint64_t item = 0; item < out->count; item++)
        for (uint64_t i = 0; i < count; i++)
            for (uint64_t run = 0; run < segments[i].runs; run++)
                for (uint64_t k = 0; k < segments[i].each; k++)
                    add_element(out, segments[i].kind,
                                (int64_t)item * out->type.extent_bytes + segments[i].offset_bytes +
                                    (int64_t)run * segments[i].stride_bytes +
                                    (int64_t)(k * extent_of(segments[i].kind)));
}

static void finish(struct random_layout *out, struct oriel_node *node,
                   const struct segment *segments, uint64_t count)
{
    struct oriel_type *type = &out->type;
    assert_non_null(node);
    type->layout = node;
    type->kind = node->kind;
    type->elements = node->elements;
    type->size_bytes = node->size_bytes;
    type->dense =
        node->form == ORIEL_NODE_RUN && (uint64_t)type->extent_bytes == oriel_run_bytes(node);
    type->plain_bytes = type->dense && !node->padded ? type->extent_bytes : INT64_MAX;
    add_items(out, segments, count);
    assert_int_equal(out->elements, out->count * type->elements);
    assert_int_equal(out->moved, out->count * type->size_bytes);
    assert_true(oriel_layout_bounds(node, out->count, type->extent_bytes, &out->low_bytes,
                                    &out->high_bytes));
}

static enum oriel_kind any_kind(void)
{
    static const enum oriel_kind kinds[] = {ORIEL_KIND_CHAR,      ORIEL_KIND_INT16,
                                            ORIEL_KIND_INT32,     ORIEL_KIND_DOUBLE,
                                            ORIEL_KIND_SHORT_INT, ORIEL_KIND_DOUBLE_INT,
                                            ORIEL_KIND_LONG_INT,  ORIEL_KIND_LONG_DOUBLE_INT};
    return kinds[below(sizeof kinds / sizeof kinds[0])];
}

static struct segment draw_segment(enum oriel_kind kind, uint64_t about, int64_t *end_bytes)
{
    struct segment segment = {
        .kind = kind, .each = 1 + below(below(3) == 0 ? about : 4), .runs = 1};
    const uint64_t run_bytes = segment.each * extent_of(kind);
    segment.offset_bytes = *end_bytes + (int64_t)(below(3) == 0 ? 0 : 8 * below(5));
    segment.stride_bytes = (int64_t)(run_bytes + (below(4) == 0 ? 0
                                                  : below(2)    ? 8 * below(4)
                                                                : below(9)));
    if (below(2))
        segment.runs = 1 + below(about / segment.each + 2);
    *end_bytes = segment.offset_bytes + (int64_t)(segment.runs - 1) * segment.stride_bytes +
                 (int64_t)run_bytes;
    if (below(4) == 0) {
        segment.offset_bytes += (int64_t)(segment.runs - 1) * segment.stride_bytes;
        segment.stride_bytes = -segment.stride_bytes;
    }
    return segment;
}

void random_layout_make(struct random_layout *out, enum oriel_kind kind, uint64_t about)
{
    struct segment segments[BRANCHES];
    const uint64_t count = below(3) == 0 ? 1 : 1 + below(BRANCHES);
    const uint64_t items = 1 + below(4);
    int64_t end_bytes = below(2) ? 0 : -(int64_t)(8 * below(30));
    const int64_t first_bytes = end_bytes;
    struct oriel_branch *branches = malloc(count * sizeof *branches);
    assert_non_null(branches);
    for (uint64_t i = 0; i < count; i++) {
        enum oriel_kind one = kind == ORIEL_KIND_NONE && (i == 0 || below(2)) ? any_kind()
                              : kind == ORIEL_KIND_NONE                       ? segments[i - 1].kind
                                                                              : kind;
        segments[i] = draw_segment(one, about / count / items + 1, &end_bytes);
    }
    for (uint64_t i = count; i > 1; i--) { /* type map order differs from the order of offsets */
        uint64_t other = below(3) == 0 ? below(i) : i - 1;
        struct segment swapped = segments[i - 1];
        segments[i - 1] = segments[other];
        segments[other] = swapped;
    }
    for (uint64_t i = 0; i < count; i++)
        branches[i] = (struct oriel_branch){
            segments[i].offset_bytes,
            oriel_node_loop(segments[i].runs, segments[i].stride_bytes,
                            oriel_node_run(segments[i].kind, segments[i].each))};
    *out = (struct random_layout){.count = items};
    out->type.extent_bytes = end_bytes - first_bytes + (int64_t)(below(2) ? 0 : 8 * below(4));
    finish(out, oriel_node_list(count, branches), segments, count);
}

void random_layout_make_within(struct random_layout *out, enum oriel_kind kind, uint64_t about,
                               uint64_t most_bytes)
{
    random_layout_make(out, kind, about);
    while ((uint64_t)(out->high_bytes - out->low_bytes) > most_bytes) {
        random_layout_free(out);
        random_layout_make(out, kind, about);
    }
}

void random_layout_dense(struct random_layout *out, enum oriel_kind kind, uint64_t elements)
{
    const struct segment segment = {.kind = kind, .each = 1, .runs = 1};
    *out = (struct random_layout){.count = elements};
    out->type.extent_bytes = (int64_t)extent_of(kind);
    finish(out, oriel_node_run(kind, 1), &segment, 1);
}

void random_layout_free_type(struct random_layout *layout)
{
    oriel_node_free(layout->type.layout);
    memset(&layout->type, 0xee, sizeof layout->type);
    layout->type.layout = NULL;
}

void random_layout_free(struct random_layout *layout)
{
    oriel_node_free(layout->type.layout);
    free(layout->offsets);
    free(layout->kinds);
    free(layout->bytes);
}

void random_bytes_fill(char *memory, uint64_t len_bytes)
{
    for (uint64_t i = 0; i < len_bytes; i++)
        memory[i] = (char)below(256);
}

/* Values are static, so the padding of a long double is zero, rather than stack contents. */
static void fill_element(enum oriel_kind kind, char *at)
{
    const int number = 1 + (int)below(7);
    switch (kind) {
#define REAL(name, c_type)                                                                         \
    case ORIEL_KIND_##name: {                                                                      \
        static c_type value;                                                                       \
        value = (c_type)number;                                                                    \
        memcpy(at, &value, sizeof value);                                                          \
        return;                                                                                    \
    }
#define COMPLEX(name, c_type, real) REAL(name, c_type)
#define PAIR(name, c_type, index_type)                                                             \
    case ORIEL_KIND_##name: {                                                                      \
        static c_type value;                                                                       \
        value = (c_type)number;                                                                    \
        index_type index = (index_type)below(3);                                                   \
        memcpy(at, &value, sizeof value);                                                          \
        memcpy(at + oriel_kinds[kind].index_offset, &index, sizeof index);                         \
        return;                                                                                    \
    }
#define COMPOSED(name, c_type, index_type) PAIR(name, c_type, index_type)
#define HALF(name, parts)
#define INTEGER(name, c_type, unsigned_type)
#define WIDE(name, c_type, unsigned_type)
#define LOGICAL(name, c_type)
#define BITS(name, c_type, like)
#define LETTERS(name, c_type, like)
#define OPAQUE(name, c_type)
#include "reduce/kinds.def"
    default:
        for (uint32_t i = 0; i < oriel_kinds[kind].extent_bytes; i++)
            at[i] = (char)below(256);
    }
}

void random_layout_fill(const struct random_layout *layout, char *memory)
{
    for (uint64_t i = 0; i < layout->elements; i++)
        fill_element(layout->kinds[i], memory + layout->offsets[i]);
}
