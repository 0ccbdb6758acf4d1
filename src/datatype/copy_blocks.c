/* The loops over blocks. Single words and short blocks have separate loops in which the length is a
 * constant. */
#include "datatype/copy_blocks.h"

#include "transport/shared/copy_strided.h"
#include "transport/transport.h"

static inline __attribute__((always_inline)) char *block_at(const struct oriel_row *row, uint64_t i,
                                                            uint64_t len_bytes)
{
    return oriel_at(row->at, row->offsets != NULL ? row->offsets[i] : (int64_t)(i * len_bytes));
}

/* Copies 8-byte words to consecutive addresses: two words make one store. Returns the number of
 * words copied. */
static inline __attribute__((always_inline)) uint64_t gather_words(char *to, struct oriel_row from,
                                                                   uint64_t count)
{
    uint64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (uint64_t k = i; k < i + 4; k += 2)
            oriel_store_16(to + 8 * k,
                           (oriel_v16){oriel_load(block_at(&from, k, 8), 8).narrow,
                                       oriel_load(block_at(&from, k + 1, 8), 8).narrow});
    return i;
}

static inline __attribute__((always_inline)) void
copy_equal_blocks(enum oriel_width width, struct oriel_row to, struct oriel_row from,
                  uint64_t len_bytes, uint64_t count)
{
    uint64_t i = 0;
    if (width == ORIEL_WIDTH_8 && to.offsets == NULL)
        i = gather_words(to.at, from, count);
    for (; i + 4 <= count; i += 4)
        for (uint64_t k = i; k < i + 4; k++)
            oriel_move_run(width, block_at(&to, k, len_bytes), block_at(&from, k, len_bytes),
                           len_bytes);
    for (; i < count; i++)
        oriel_move_run(width, block_at(&to, i, len_bytes), block_at(&from, i, len_bytes),
                       len_bytes);
}

static void copy_unequal_blocks(struct oriel_row to, struct oriel_row from,
                                const struct oriel_node *node)
{
    for (uint64_t i = 0; i < node->count; i++) {
        const uint64_t len_bytes = oriel_block_bytes(node, i);
        oriel_move_any(block_at(&to, i, 0), block_at(&from, i, 0), len_bytes);
        to.at = oriel_at(to.at, to.offsets == NULL ? (int64_t)len_bytes : 0);
        from.at = oriel_at(from.at, from.offsets == NULL ? (int64_t)len_bytes : 0);
    }
}

/* Separate loops for words and short blocks. */
void oriel_copy_blocks(struct oriel_row to, struct oriel_row from, const struct oriel_node *node)
{
    const uint64_t len_bytes = node->block_bytes;
    if (len_bytes == 8)
        copy_equal_blocks(ORIEL_WIDTH_8, to, from, 8, node->count);
    else if (len_bytes == 4)
        copy_equal_blocks(ORIEL_WIDTH_4, to, from, 4, node->count);
    else if (len_bytes == 16)
        copy_equal_blocks(ORIEL_WIDTH_16, to, from, 16, node->count);
    else if (len_bytes == 24)
        copy_equal_blocks(ORIEL_WIDTH_24, to, from, 24, node->count);
    else if (len_bytes == 32)
        copy_equal_blocks(ORIEL_WIDTH_32, to, from, 32, node->count);
    else
        copy_unequal_blocks(to, from, node);
}
