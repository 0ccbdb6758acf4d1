/* The positions of a datatype's elements: a tree of runs, loops, lists and blocks, as small as the
 * datatype's own description. One thread builds a tree, then any number of threads read it with
 * cursors. This file does not use mpi.h. */
#ifndef ORIEL_DATATYPE_LAYOUT_H
#define ORIEL_DATATYPE_LAYOUT_H

#include "reduce/kind.h"

#include <stddef.h>

/* Cached copy plans of a node (copy_plan.c), each from malloc. The list only grows until the node
 * is freed. */
struct oriel_memo {
    struct oriel_memo *next;
};

enum oriel_node_form {
    ORIEL_NODE_RUN,    /* count contiguous elements of one kind */
    ORIEL_NODE_LOOP,   /* count times the child, stride_bytes apart */
    ORIEL_NODE_LIST,   /* count branches, each a child at an offset, in the order of the type map */
    ORIEL_NODE_BLOCKS, /* a list of only runs without padding: count blocks of bytes */
};

/* A displacement or stride that overflows its type. It makes the layout vast. */
#define ORIEL_OFFSET_OVERFLOW INT64_MAX

struct oriel_branch;

/* Whether the bytes of a node are disjoint: none moves twice. */
enum oriel_apart { ORIEL_APART_UNKNOWN, ORIEL_APART_YES, ORIEL_APART_UNCLEAR };

struct oriel_node {
    enum oriel_node_form form;
    /* of every element below; ORIEL_KIND_NONE if they differ or there are none */
    enum oriel_kind kind;
    uint64_t count;
    int64_t stride_bytes;
    struct oriel_node *child;
    struct oriel_branch *branches;
    int64_t *offsets;     /* of the blocks */
    uint64_t *lengths;    /* of the blocks in bytes; NULL if all have block_bytes */
    uint64_t block_bytes; /* 0 if they differ */
    uint64_t elements;    /* below this node */
    uint64_t size_bytes;  /* that move, without holes and padding */
    int64_t low_bytes;  /* first byte that moves, relative to the node's origin; 0 if none moves */
    int64_t high_bytes; /* end of the last byte that moves; 0 if none moves */
    uint64_t runs;      /* below this node; UINT64_MAX if the number overflows */
    unsigned depth;     /* 1 for a run */
    bool vast;          /* the sums above overflow: no memory is large enough */
    bool padded;        /* some of the elements are padded pairs */
    _Atomic uint8_t apart; /* enum oriel_apart, computed at the first query */
    /* number of parents or owners; constructors change a node in place only if it is 1 */
    unsigned references;
    /* unique for all time; 0 on nodes that no constructor made, which have no memos */
    uint64_t number;
    struct oriel_memo *_Atomic memos;
    _Atomic bool walked; /* copied piece by piece at least once: next time a plan pays */
};

struct oriel_branch {
    int64_t offset_bytes;
    struct oriel_node *node;
};

/* Constructors take ownership of their children, also if they return NULL because memory is
 * exhausted. For a NULL child they return NULL. They simplify: a loop over adjacent runs becomes a
 * run, and loops that continue each other become one loop. A list of runs becomes blocks, or a loop
 * if the runs are identical and have equal distances. */
struct oriel_node *oriel_node_run(enum oriel_kind kind, uint64_t count);
struct oriel_node *oriel_node_loop(uint64_t count, int64_t stride_bytes, struct oriel_node *child);
struct oriel_node *oriel_node_list(uint64_t count,
                                   struct oriel_branch *branches); /* branches: from malloc */

/* An array of numbers of either width; both NULL if there is none. */
struct oriel_numbers {
    const int *narrow;
    const int64_t *wide;
};

static inline int64_t oriel_number(const struct oriel_numbers *numbers, uint64_t which)
{
    return numbers->narrow != NULL ? numbers->narrow[which] : numbers->wide[which];
}

/* The common form of MPI's list constructors: blocks of given lengths at given displacements. */
struct oriel_block_list {
    uint64_t count;
    struct oriel_numbers lengths; /* or length */
    int64_t length;               /* of every block, if there are no lengths */
    struct oriel_numbers displacements;
    int64_t unit_bytes; /* of displacements; may be 0, like an extent */
};

static inline int64_t oriel_block_list_length(const struct oriel_block_list *listed, uint64_t which)
{
    const bool have_one = listed->lengths.narrow == NULL && listed->lengths.wide == NULL;
    return have_one ? listed->length : oriel_number(&listed->lengths, which);
}

/* The same node as oriel_node_list for blocks of the item, extent_bytes apart within a block, but
 * without a node for each block. Takes no ownership. Returns NULL if the blocks are not runs
 * without padding, if a number overflows, or if memory is exhausted. */
struct oriel_node *oriel_node_blocks(const struct oriel_node *item, int64_t extent_bytes,
                                     const struct oriel_block_list *listed);

/* Adds an owner to the node; a constructor may take ownership in its place. Not thread-safe: one
 * thread builds a tree. */
struct oriel_node *oriel_node_share(struct oriel_node *node);

void oriel_node_free(struct oriel_node *node);

static inline uint64_t oriel_block_bytes(const struct oriel_node *blocks, uint64_t which)
{
    return blocks->lengths != NULL ? blocks->lengths[which] : blocks->block_bytes;
}

/* The bytes that a run occupies, including the padding of pairs. */
static inline uint64_t oriel_run_bytes(const struct oriel_node *run)
{
    return run->count * oriel_kinds[run->kind].extent_bytes;
}

/* Runs of one kind with equal strides: the position of a cursor. The first run may be partly
 * consumed. */
struct oriel_batch {
    enum oriel_kind kind; /* for blocks of several kinds: a kind without padding */
    int64_t at_bytes;     /* of the next byte that moves, relative to the buffer */
    uint64_t left_bytes;  /* from there to the end of the run; 0 if nothing is left */
    uint64_t run_bytes;   /* of a whole run, including the padding of pairs */
    uint64_t further;     /* number of whole runs after this one */
    int64_t stride_bytes; /* from one run's start to the next */
    int64_t start_bytes;  /* of this run */
};

enum { ORIEL_CURSOR_DEPTH = 24 };

struct oriel_frame {
    const struct oriel_node *node;
    uint64_t next;
    int64_t base_bytes;
};

struct oriel_cursor {
    struct oriel_batch batch;
    struct oriel_frame *frames; /* own, or from malloc for deep trees */
    unsigned depth;
    struct oriel_node items; /* the loop over the items of the operation */
    struct oriel_frame own[ORIEL_CURSOR_DEPTH];
};

/* Opens a cursor at the first element of count items, extent_bytes apart. Returns false if memory
 * is exhausted. */
bool oriel_cursor_open(struct oriel_cursor *cursor, const struct oriel_node *node, uint64_t count,
                       int64_t extent_bytes);
void oriel_cursor_close(struct oriel_cursor *cursor);

/* Loads the next batch if the current one is consumed. Returns false at the end. */
bool oriel_cursor_fill(struct oriel_cursor *cursor);

/* Consumes len_bytes of the current run, at most left_bytes; skips the padding of pairs. */
void oriel_batch_use(struct oriel_batch *batch, uint64_t len_bytes);

/* The same for whole elements, from the start of an element. */
void oriel_batch_use_elements(struct oriel_batch *batch, uint64_t len_bytes);

/* Consumes whole runs from the start of a run, at most 1 + further. */
void oriel_batch_use_runs(struct oriel_batch *batch, uint64_t runs);

/* Blocks that are consecutive in the type map. */
struct oriel_block_group {
    int64_t at_bytes;        /* of the first block, or the base of the offsets */
    const int64_t *offsets;  /* of the blocks; NULL if they have equal strides */
    const uint64_t *lengths; /* of the blocks; NULL if all are block_bytes long */
    int64_t stride_bytes;    /* the stride, if there are no offsets */
    uint64_t block_bytes;
    uint64_t count;     /* at least 1 */
    uint64_t len_bytes; /* of all of them */
};

/* Consumes whole elements of the next blocks, or of a part of one. most_bytes is the maximum, a
 * multiple of the element size. Returns false at the end. */
bool oriel_cursor_blocks(struct oriel_cursor *cursor, uint64_t most_bytes,
                         struct oriel_block_group *out);

/* The number of contiguous bytes from at_bytes that move: the rest of the run, or of a padded
 * pair's field. */
uint64_t oriel_batch_piece(const struct oriel_batch *batch);

/* True if no byte of count items moves twice. Also false if one pass over the offsets cannot
 * decide, such as for blocks in no order. */
bool oriel_layout_apart(const struct oriel_node *node, uint64_t count, int64_t extent_bytes);

/* The range of bytes that move of count items, relative to the buffer; *high_bytes is exclusive.
 * Returns false if the range or the number of bytes overflows. */
bool oriel_layout_bounds(const struct oriel_node *node, uint64_t count, int64_t extent_bytes,
                         int64_t *low_bytes, int64_t *high_bytes);

#endif
