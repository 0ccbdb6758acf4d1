/* Gathers, computes, scatters. Elements of all sides match in the order of the type maps: in each
 * step the cursors advance by the same number of elements.
 *
 * A target is gathered only if its type map has no byte twice. Otherwise two elements of one step
 * could be the same memory, and one of the two updates would be lost. Then, and where its blocks
 * are long, the kernel works in place, one block after the other.
 *
 * A step scatters to the target only elements that it gathered there, so bytes in the holes never
 * change. Of padded pairs only the fields move: the padding may lie outside of the buffer. */
#include "rma/scattered.h"

#include "datatype/copy_blocks.h"
#include "transport/shared/copy_strided.h"

enum {
    SHORT_ELEMENTS = 256, /* on average, in a block: longer blocks are worth a walk of their own */
    /* the same; from here on in place, since a gathered target costs two copies */
    IN_PLACE_ELEMENTS = 8,
};

static bool has_blocks_below(const struct oriel_part *part, uint64_t elements)
{
    return !oriel_part_is_dense(part) && part->node->elements / elements < part->node->runs;
}

bool oriel_scattered_pays(const struct oriel_part *part)
{
    return has_blocks_below(part, SHORT_ELEMENTS);
}

/* part may be NULL. */
static bool side_open(struct oriel_scattered_side *side, const struct oriel_part *part)
{
    side->present = part != NULL;
    side->dense = part == NULL || oriel_part_is_dense(part);
    side->at = part != NULL ? part->at : NULL;
    return side->dense ||
           oriel_cursor_open(&side->cursor, part->node, part->count, part->stride_bytes);
}

static void side_close(struct oriel_scattered_side *side)
{
    if (!side->dense)
        oriel_cursor_close(&side->cursor);
}

bool oriel_scattered_open(struct oriel_scattered *out, enum oriel_kind kind, enum oriel_operator op,
                          const struct oriel_part *target, const struct oriel_part *origin,
                          const struct oriel_part *result)
{
    out->kind = &oriel_kinds[kind];
    out->kernel = out->kind->plain[op];
    out->stores = op != ORIEL_OPERATOR_NO_OP;
    out->in_place = !has_blocks_below(target, IN_PLACE_ELEMENTS) ||
                    !oriel_layout_apart(target->node, target->count, target->stride_bytes);
    out->origin.dense = out->result.dense = out->target.dense = out->again.dense = true;
    if (side_open(&out->origin, origin) && side_open(&out->result, result) &&
        side_open(&out->target, target) && side_open(&out->again, target))
        return true;
    oriel_scattered_close(out);
    return false;
}

void oriel_scattered_close(struct oriel_scattered *scattered)
{
    side_close(&scattered->origin);
    side_close(&scattered->result);
    side_close(&scattered->target);
    side_close(&scattered->again);
}

/* Copies count padded pairs at equal distances, field by field. */
static void copy_pairs(const struct oriel_kind_properties *kind, char *to, int64_t to_stride,
                       const char *from, int64_t from_stride, uint64_t count)
{
    oriel_copy_runs(to, to_stride, from, from_stride, kind->value_bytes, count);
    oriel_copy_runs(to + kind->index_offset, to_stride, from + kind->index_offset, from_stride,
                    kind->index_bytes, count);
}

/* Padded pairs are never in lists of blocks. */
static void copy_padded(const struct oriel_kind_properties *kind,
                        const struct oriel_block_group *group, char *first, char *stage,
                        bool gathers)
{
    const bool singles = group->block_bytes == kind->extent_bytes;
    const uint64_t blocks = singles ? 1 : group->count;
    const uint64_t pairs = singles ? group->count : group->block_bytes / kind->extent_bytes;
    const int64_t in_stage = kind->extent_bytes;
    const int64_t there = singles ? group->stride_bytes : in_stage;
    for (uint64_t i = 0; i < blocks;
         i++, first = oriel_at(first, group->stride_bytes), stage += group->block_bytes) {
        if (gathers)
            copy_pairs(kind, stage, in_stage, first, there, pairs);
        else
            copy_pairs(kind, first, there, stage, in_stage, pairs);
    }
}

static void copy_group(const struct oriel_kind_properties *kind,
                       const struct oriel_block_group *group, char *at, char *stage, bool gathers)
{
    const uint64_t block_bytes = group->block_bytes;
    char *const first = oriel_at(at, group->at_bytes);
    if (kind->padded) {
        copy_padded(kind, group, first, stage, gathers);
    } else if (group->offsets != NULL) {
        const struct oriel_node blocks = {.count = group->count,
                                          .block_bytes = block_bytes,
                                          .lengths = (uint64_t *)(uintptr_t)group->lengths};
        const struct oriel_row apart = {first, group->offsets};
        const struct oriel_row side_by_side = {stage, NULL};
        oriel_copy_blocks(gathers ? side_by_side : apart, gathers ? apart : side_by_side, &blocks);
    } else if (group->count == 1) {
        oriel_move_any(gathers ? stage : first, gathers ? first : stage, block_bytes);
    } else if (gathers) {
        oriel_copy_runs(stage, (int64_t)block_bytes, first, group->stride_bytes, block_bytes,
                        group->count);
    } else {
        oriel_copy_runs(first, group->stride_bytes, stage, (int64_t)block_bytes, block_bytes,
                        group->count);
    }
}

/* Copies the next len_bytes of a side that is not dense to the stage, or from there. */
static void side_copy(struct oriel_scattered_side *side, const struct oriel_kind_properties *kind,
                      char *stage, uint64_t len_bytes, bool gathers)
{
    struct oriel_block_group group;
    for (; len_bytes > 0 && oriel_cursor_blocks(&side->cursor, len_bytes, &group);
         len_bytes -= group.len_bytes) {
        copy_group(kind, &group, side->at, stage, gathers);
        stage += group.len_bytes;
    }
}

/* Returns the next len_bytes contiguously: in place, or gathered into the stage. NULL if the side
 * is absent. */
static char *side_gather(struct oriel_scattered_side *side,
                         const struct oriel_kind_properties *kind, char *stage, uint64_t len_bytes)
{
    char *at = side->at;
    if (!side->present)
        return NULL;
    if (side->dense) {
        side->at += len_bytes;
        return at;
    }
    side_copy(side, kind, stage, len_bytes, true);
    return stage;
}

static void update_in_place(struct oriel_scattered *scattered, const char *from, char *to,
                            uint64_t len_bytes)
{
    struct oriel_block_group group;
    for (; len_bytes > 0 && oriel_cursor_blocks(&scattered->target.cursor, len_bytes, &group);
         len_bytes -= group.len_bytes) {
        char *at = oriel_at(scattered->target.at, group.at_bytes);
        for (uint64_t i = 0; i < group.count; i++) {
            const uint64_t block_bytes =
                group.lengths != NULL ? group.lengths[i] : group.block_bytes;
            const int64_t block_at =
                group.offsets != NULL ? group.offsets[i] : (int64_t)i * group.stride_bytes;
            scattered->kernel(oriel_at(at, block_at), from, to,
                              block_bytes / scattered->kind->extent_bytes);
            from = from != NULL ? from + block_bytes : NULL;
            to = to != NULL ? to + block_bytes : NULL;
        }
    }
}

void oriel_scattered_update(struct oriel_scattered *scattered, uint64_t count)
{
    char origin_stage[ORIEL_SCATTERED_BYTES] __attribute__((aligned(64)));
    char target_stage[ORIEL_SCATTERED_BYTES] __attribute__((aligned(64)));
    char result_stage[ORIEL_SCATTERED_BYTES] __attribute__((aligned(64)));
    struct oriel_scattered_side *const result = &scattered->result;
    const struct oriel_kind_properties *const kind = scattered->kind;
    const uint64_t len_bytes = count * kind->extent_bytes;
    const char *from = side_gather(&scattered->origin, kind, origin_stage, len_bytes);
    char *to = result->present ? result_stage : NULL;
    if (result->present && result->dense) {
        to = result->at;
        result->at += len_bytes;
    }
    if (scattered->in_place && !scattered->target.dense) {
        update_in_place(scattered, from, to, len_bytes);
    } else {
        scattered->kernel(side_gather(&scattered->target, kind, target_stage, len_bytes), from, to,
                          count);
        if (scattered->stores && !scattered->again.dense)
            side_copy(&scattered->again, kind, target_stage, len_bytes, false);
    }
    if (!result->dense)
        side_copy(result, kind, result_stage, len_bytes, false);
}
