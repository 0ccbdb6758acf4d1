/* Describes, packs and unpacks pieces of layouts (pack.h). Touches memory of this process only. */
#include "internode/origin/pack.h"

#include "transport/shared/copy_strided.h"
#include "transport/transport.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t describe_runs(struct oriel_batch *batch, uint64_t runs,
                              struct oriel_internode_batch *out)
{
    *out = (struct oriel_internode_batch){.at_bytes = batch->at_bytes,
                                          .stride_bytes = runs > 1 ? batch->stride_bytes : 0,
                                          .run_bytes = (uint32_t)batch->run_bytes,
                                          .runs = (uint32_t)runs};
    oriel_batch_use_runs(batch, runs);
    return runs;
}

/* len_bytes that are contiguous in memory. */
static void describe_part(struct oriel_batch *batch, uint64_t len_bytes,
                          struct oriel_internode_batch *out)
{
    *out = (struct oriel_internode_batch){
        .at_bytes = batch->at_bytes, .run_bytes = (uint32_t)len_bytes, .runs = 1};
    oriel_batch_use(batch, len_bytes);
}

/* Describes whole pairs as pairs, and parts of a pair separately. */
static uint64_t describe_pairs(struct oriel_batch *batch, uint64_t most_bytes,
                               struct oriel_internode_batch *out)
{
    const enum oriel_kind kind = batch->kind;
    const uint64_t extent_bytes = oriel_kinds[kind].extent_bytes;
    const uint64_t pair_bytes = oriel_kind_moving_bytes(kind);
    const uint64_t run_bytes = batch->run_bytes / extent_bytes * pair_bytes;
    const bool between = (uint64_t)(batch->at_bytes - batch->start_bytes) % extent_bytes == 0;
    uint64_t moved;
    if (batch->left_bytes == batch->run_bytes && most_bytes >= run_bytes) {
        moved = run_bytes *
                describe_runs(batch, smaller(1 + batch->further, most_bytes / run_bytes), out);
        out->kind = kind;
    } else if (between && most_bytes >= pair_bytes) {
        uint64_t pairs = smaller(batch->left_bytes / extent_bytes, most_bytes / pair_bytes);
        describe_part(batch, pairs * extent_bytes, out);
        out->kind = kind;
        moved = pairs * pair_bytes;
    } else {
        moved = smaller(oriel_batch_piece(batch), most_bytes);
        describe_part(batch, moved, out);
        out->kind = ORIEL_KIND_CHAR;
    }
    return moved;
}

uint64_t oriel_internode_describe(struct oriel_batch *batch, uint64_t most_bytes,
                                  struct oriel_internode_batch *out)
{
    if (oriel_kinds[batch->kind].padded)
        return describe_pairs(batch, most_bytes, out);
    const uint64_t run_bytes = batch->run_bytes;
    uint64_t moved;
    if (batch->left_bytes == run_bytes && most_bytes >= run_bytes) {
        moved = run_bytes *
                describe_runs(batch, smaller(1 + batch->further, most_bytes / run_bytes), out);
    } else {
        moved = smaller(batch->left_bytes, most_bytes);
        describe_part(batch, moved, out);
    }
    out->kind = ORIEL_KIND_CHAR;
    return moved;
}

/* Copies one run of pairs field by field; returns the number of bytes copied. */
static uint64_t pairs_copy(char *packed, char *pairs, const struct oriel_internode_batch *batch,
                           bool pack)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[batch->kind];
    char *next = packed;
    for (uint64_t at = 0; at < batch->run_bytes; at += kind->extent_bytes) {
        char *value = pairs + at;
        char *index = value + kind->index_offset;
        memcpy(pack ? next : value, pack ? value : next, kind->value_bytes);
        next += kind->value_bytes;
        memcpy(pack ? next : index, pack ? index : next, kind->index_bytes);
        next += kind->index_bytes;
    }
    return (uint64_t)(next - packed);
}

static uint64_t batch_copy(char *packed, const struct oriel_internode_batch *batch, char *base,
                           bool pack)
{
    char *first = oriel_at(base, batch->at_bytes);
    const uint64_t len_bytes = (uint64_t)batch->run_bytes * batch->runs;
    if (oriel_kinds[batch->kind].padded) {
        uint64_t moved = 0;
        for (uint32_t i = 0; i < batch->runs; i++)
            moved += pairs_copy(packed + moved, oriel_at(first, (int64_t)i * batch->stride_bytes),
                                batch, pack);
        return moved;
    }
    if (batch->runs == 1)
        memcpy(pack ? packed : first, pack ? first : packed, len_bytes);
    else if (pack)
        oriel_copy_runs(packed, batch->run_bytes, first, batch->stride_bytes, batch->run_bytes,
                        batch->runs);
    else
        oriel_copy_runs(first, batch->stride_bytes, packed, batch->run_bytes, batch->run_bytes,
                        batch->runs);
    return len_bytes;
}

uint64_t oriel_internode_pack(char *packed, const struct oriel_internode_batch *batch,
                              const void *base)
{
    return batch_copy(packed, batch, (char *)(uintptr_t)base, true);
}

uint64_t oriel_internode_unpack(const char *packed, const struct oriel_internode_batch *batch,
                                void *base)
{
    return batch_copy((char *)(uintptr_t)packed, batch, base, false);
}
