/* Walks two layouts in parallel, with cursors or a lighter form of them. Both have the same number
 * of bytes, so they end together. */
#include "datatype/pair_types.h"

#include "transport/shared/copy_strided.h"

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A cursor over one node that is a run, a loop of runs or blocks. That covers nearly all cases at a
 * fraction of the cost. */
struct light_cursor {
    const struct oriel_node *node;
    uint64_t next;
    uint64_t left_bytes;
    int64_t at_bytes;
};

static bool is_light(const struct oriel_node *node)
{
    return node->form == ORIEL_NODE_RUN || node->form == ORIEL_NODE_BLOCKS ||
           (node->form == ORIEL_NODE_LOOP && node->child->form == ORIEL_NODE_RUN);
}

static inline bool light_fill(struct light_cursor *light)
{
    const struct oriel_node *node = light->node;
    const uint64_t i = light->next;
    if (light->left_bytes > 0)
        return true;
    if (i == (node->form == ORIEL_NODE_RUN ? 1 : node->count))
        return false;
    light->next++;
    light->at_bytes = node->form == ORIEL_NODE_RUN    ? 0
                      : node->form == ORIEL_NODE_LOOP ? (int64_t)i * node->stride_bytes
                                                      : node->offsets[i];
    light->left_bytes = node->form == ORIEL_NODE_RUN    ? node->size_bytes
                        : node->form == ORIEL_NODE_LOOP ? node->child->size_bytes
                                                        : oriel_block_bytes(node, i);
    return true;
}

static inline void light_use(struct light_cursor *light, uint64_t len_bytes)
{
    light->at_bytes += (int64_t)len_bytes;
    light->left_bytes -= len_bytes;
}

/* Two nodes of equal size that are walked together, with light cursors if possible. */
struct cursor_pair {
    bool light;
    struct light_cursor to_light, from_light;
    struct oriel_cursor to, from;
};

static bool pair_open(struct cursor_pair *pair, const struct oriel_part *to,
                      const struct oriel_part *from)
{
    pair->light = to->count == 1 && from->count == 1 && is_light(to->node) && is_light(from->node);
    if (pair->light) {
        pair->to_light = (struct light_cursor){to->node, 0, 0, 0};
        pair->from_light = (struct light_cursor){from->node, 0, 0, 0};
        return true;
    }
    if (!oriel_cursor_open(&pair->to, to->node, to->count, to->stride_bytes))
        return false;
    if (oriel_cursor_open(&pair->from, from->node, from->count, from->stride_bytes))
        return true;
    oriel_cursor_close(&pair->to);
    return false;
}

static void pair_close(struct cursor_pair *pair)
{
    if (pair->light)
        return;
    oriel_cursor_close(&pair->from);
    oriel_cursor_close(&pair->to);
}

/* Returns the next piece that is contiguous on both sides and advances; false at the end. */
static inline __attribute__((always_inline)) bool pair_next(struct cursor_pair *pair,
                                                            struct oriel_pair_piece *piece)
{
    if (pair->light) {
        if (!light_fill(&pair->to_light) || !light_fill(&pair->from_light))
            return false;
        uint64_t len_bytes = min_u64(pair->to_light.left_bytes, pair->from_light.left_bytes);
        *piece = (struct oriel_pair_piece){pair->to_light.at_bytes, pair->from_light.at_bytes,
                                           len_bytes};
        light_use(&pair->to_light, len_bytes);
        light_use(&pair->from_light, len_bytes);
        return true;
    }
    if (!oriel_cursor_fill(&pair->to) || !oriel_cursor_fill(&pair->from))
        return false;
    uint64_t len_bytes = min_u64(pair->to.batch.left_bytes, pair->from.batch.left_bytes);
    *piece =
        (struct oriel_pair_piece){pair->to.batch.at_bytes, pair->from.batch.at_bytes, len_bytes};
    oriel_batch_use(&pair->to.batch, len_bytes);
    oriel_batch_use(&pair->from.batch, len_bytes);
    return true;
}

bool oriel_pair_copy(const struct oriel_part *to, const struct oriel_part *from)
{
    struct cursor_pair pair;
    struct oriel_pair_piece piece;
    if (!pair_open(&pair, to, from))
        return false;
    while (pair_next(&pair, &piece))
        oriel_move_any(oriel_at(to->at, piece.to_bytes), oriel_at(from->at, piece.from_bytes),
                       piece.len_bytes);
    pair_close(&pair);
    return true;
}

unsigned oriel_pair_pieces(const struct oriel_part *to, const struct oriel_part *from,
                           struct oriel_pair_piece *pieces, unsigned most)
{
    struct cursor_pair pair;
    unsigned count = 0;
    if (!pair_open(&pair, to, from))
        return 0;
    while (count < most && pair_next(&pair, &pieces[count]))
        count++;
    pair_close(&pair);
    return count;
}
