/* Where the elements of a datatype lie: a tree of runs, loops, lists and blocks, as small as the datatype's own description.  A
 * tree is made once, then read by any number of threads; cursors walk it.  Nothing here knows mpi.h; flatten.c builds, copy_remote.c,
 * copy_layout.c and accumulate.c walk. */
#ifndef ORIEL_DATATYPE_LAYOUT_H
#define ORIEL_DATATYPE_LAYOUT_H

#include "reduce/kind.h"

#include <stddef.h>

/* What copies remember beside a node (copy_plan.c), each from malloc; the list only grows until the node is freed. */
struct oriel_memo {
    struct oriel_memo *next;
};

enum oriel_node_form {
    ORIEL_NODE_RUN,    /* count elements of one kind, one behind the other */
    ORIEL_NODE_LOOP,   /* count times the child, stride_bytes apart */
    ORIEL_NODE_LIST,   /* count branches, each a child at an offset, in the order of the type map */
    ORIEL_NODE_BLOCKS, /* a list of nothing but runs without padding: count blocks of bytes */
};

/* A displacement or stride that does not fit its number: what lies there makes a layout vast. */
#define ORIEL_NOWHERE INT64_MAX

struct oriel_branch;

/* Whether no byte of a node moves twice. */
enum oriel_apart { ORIEL_APART_UNKNOWN, ORIEL_APART_YES, ORIEL_APART_UNCLEAR };

struct oriel_node {
    enum oriel_node_form form;
    enum oriel_kind
        kind; /* of every element below; ORIEL_KIND_NONE when they differ or there are none */
    uint64_t count;
    int64_t stride_bytes;
    struct oriel_node *child;
    struct oriel_branch *branches;
    int64_t *offsets;     /* of the blocks */
    uint64_t *lengths;    /* of the blocks in bytes; NULL when all have block_bytes */
    uint64_t block_bytes; /* 0 when they differ */
    uint64_t elements;    /* below this node */
    uint64_t size_bytes;  /* that move: without holes and padding */
    int64_t
        low_bytes; /* the first byte that moves, relative to the node's own place; 0 when nothing moves */
    int64_t high_bytes;    /* behind the last byte that moves; likewise */
    uint64_t runs;         /* below this node; UINT64_MAX: more than fit the number */
    unsigned depth;        /* 1 for a run */
    bool vast;             /* the sums above do not fit their numbers: no memory has room for it */
    bool padded;           /* some of the elements are padded pairs */
    _Atomic uint8_t apart; /* enum oriel_apart: found out when it is first asked for */
    unsigned
        references; /* parents, or owners; constructors change a node in place only while there is one */
    uint64_t
        number; /* no other node ever has it; 0 on nodes that no constructor made, which have no memos */
    struct oriel_memo *_Atomic memos;
    _Atomic bool walked; /* piece by piece, once at least: the next time a plan pays */
};

struct oriel_branch {
    int64_t offset_bytes;
    struct oriel_node *node;
};

/* Constructors take over their children, also when they return NULL because memory is exhausted.  A NULL child is passed on
 * as NULL.  They simplify: a loop over runs that touch is a run, loops that continue each other are one loop, a list of runs is
 * blocks, or a loop where these are alike and equally far apart. */
struct oriel_node *oriel_node_run(enum oriel_kind kind, uint64_t count);
struct oriel_node *oriel_node_loop(uint64_t count, int64_t stride_bytes, struct oriel_node *child);
struct oriel_node *oriel_node_list(uint64_t count,
                                   struct oriel_branch *branches); /* branches: from malloc */

/* Many numbers, of either width; both NULL: none. */
struct oriel_numbers {
    const int *narrow;
    const int64_t *wide;
};

static inline int64_t oriel_number(const struct oriel_numbers *numbers, uint64_t which)
{
    return numbers->narrow != NULL ? numbers->narrow[which] : numbers->wide[which];
}

/* What the list constructors of MPI have in common: blocks of given lengths at given displacements. */
struct oriel_listed {
    uint64_t count;
    struct oriel_numbers lengths; /* or */
    int64_t length;               /* of every block, when there are no lengths */
    struct oriel_numbers displacements;
    int64_t unit_bytes; /* of displacements; may be 0, as an extent may */
};

static inline int64_t oriel_listed_length(const struct oriel_listed *listed, uint64_t which)
{
    const bool have_one = listed->lengths.narrow == NULL && listed->lengths.wide == NULL;
    return have_one ? listed->length : oriel_number(&listed->lengths, which);
}

/* What oriel_node_list makes of blocks of the item, extent_bytes apart in each, without a node for each of them.  It takes nothing
 * over; NULL where they are not runs without padding, where a number overflows, or when memory is exhausted. */
struct oriel_node *oriel_node_blocks(const struct oriel_node *item, int64_t extent_bytes,
                                     const struct oriel_listed *listed);

/* One more owner of the node, which a constructor may take over in its place.  Not thread-safe: trees are built by one thread. */
struct oriel_node *oriel_node_share(struct oriel_node *node);

void oriel_node_free(struct oriel_node *node);

static inline uint64_t oriel_block_bytes(const struct oriel_node *blocks, uint64_t which)
{
    return blocks->lengths != NULL ? blocks->lengths[which] : blocks->block_bytes;
}

/* What a run takes, the padding of pairs included. */
static inline uint64_t oriel_run_bytes(const struct oriel_node *run)
{
    return run->count * oriel_kinds[run->kind].extent_bytes;
}

/* Runs of one kind at equal distances: what a cursor stands on.  The first run may be partly used. */
struct oriel_batch {
    enum oriel_kind kind; /* of blocks of several kinds: one without padding */
    int64_t at_bytes;     /* of the next byte that moves, relative to the buffer */
    uint64_t left_bytes;  /* from there to the end of the run; 0: nothing is left */
    uint64_t run_bytes;   /* of a whole run, the padding of pairs included */
    uint64_t further;     /* whole runs behind this one */
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

/* Stands on the first element of count items, extent_bytes apart; false when memory is exhausted. */
bool oriel_cursor_open(struct oriel_cursor *cursor, const struct oriel_node *node, uint64_t count,
                       int64_t extent_bytes);
void oriel_cursor_close(struct oriel_cursor *cursor);

/* Makes batch the next one when the present one is used up; false at the end. */
bool oriel_cursor_fill(struct oriel_cursor *cursor);

/* Uses len_bytes of the current run, at most left_bytes; steps over the padding of pairs. */
void oriel_batch_use(struct oriel_batch *batch, uint64_t len_bytes);

/* As oriel_batch_use, of whole elements from the start of one. */
void oriel_batch_use_elements(struct oriel_batch *batch, uint64_t len_bytes);

/* Uses whole runs from the start of one, at most 1 + further. */
void oriel_batch_use_runs(struct oriel_batch *batch, uint64_t runs);

/* Blocks that follow each other in the type map. */
struct oriel_block_group {
    int64_t at_bytes;        /* of the first block, or of what the offsets are relative to */
    const int64_t *offsets;  /* of the blocks; NULL: they lie at equal distances */
    const uint64_t *lengths; /* of the blocks; NULL: all are block_bytes long */
    int64_t stride_bytes;    /* the distances, without offsets */
    uint64_t block_bytes;
    uint64_t count;     /* at least 1 */
    uint64_t len_bytes; /* of all of them */
};

/* Uses whole elements of the next blocks, or of a part of one: at most most_bytes, a multiple of
 * the element.  Returns false at the end. */
bool oriel_cursor_blocks(struct oriel_cursor *cursor, uint64_t most_bytes,
                         struct oriel_block_group *out);

/* How many bytes from at_bytes on move without a hole: the rest of the run, or of a padded pair's field. */
uint64_t oriel_batch_piece(const struct oriel_batch *batch);

/* Returns whether no byte of count items moves twice.  False also where that takes more than one
 * look at the offsets: of blocks in no order, for example. */
bool oriel_layout_apart(const struct oriel_node *node, uint64_t count, int64_t extent_bytes);

/* The bytes from the first to behind the last that move of count items, relative to the buffer; false when that overflows, or how
 * many bytes move. */
bool oriel_layout_bounds(const struct oriel_node *node, uint64_t count, int64_t extent_bytes,
                         int64_t *low_bytes, int64_t *high_bytes);

#endif
