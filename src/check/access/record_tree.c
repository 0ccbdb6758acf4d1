/* The tree of records: a treap. A record's most is never below the end of a record in its subtree.
 * Recursion is as deep as the tree, about forty levels for millions of records. */
#include "check/access/record_tree.h"

#include "base/atomic.h"

#include <string.h>

static struct oriel_record *record_at(struct oriel_records *records, oriel_record_number number)
{
    return oriel_record_at(records, number);
}

bool oriel_records_init(struct oriel_records *records, uint64_t size_bytes)
{
    *records = (struct oriel_records){.chance = 2463534242u};
    return oriel_pages_make(&records->pages, size_bytes);
}

void oriel_records_empty(struct oriel_records *records)
{
    records->root = records->unused = 0;
    records->made = records->live = 0;
    oriel_pages_unmark_all(&records->pages);
}

static size_t slab_bytes(unsigned slab)
{
    return ((size_t)ORIEL_RECORD_SLAB_FIRST << slab) * sizeof(struct oriel_record) +
           ORIEL_CACHE_LINE;
}

void oriel_records_free(struct oriel_records *records)
{
    for (unsigned slab = 0; slab < ORIEL_RECORD_SLABS && records->slabs[slab] != 0; slab++)
        oriel_shm_free(records->places[slab], slab_bytes(slab));
    oriel_pages_free(&records->pages);
}

uint64_t oriel_records_bytes(const struct oriel_records *records)
{
    uint64_t bytes = 0;
    for (unsigned slab = 0; slab < ORIEL_RECORD_SLABS && records->slabs[slab] != 0; slab++)
        bytes += slab_bytes(slab);
    return bytes;
}

static bool slab_add(struct oriel_records *records, unsigned slab)
{
    if (slab == ORIEL_RECORD_SLABS)
        return false;
    if (records->slabs[slab] != 0) /* by a process that died before it used the slab */
        return true;
    oriel_shm_offset place = oriel_shm_allocate(slab_bytes(slab));
    if (place == 0)
        return false;
    uintptr_t first = ((uintptr_t)oriel_shm_at(place) + ORIEL_CACHE_LINE - 1) / ORIEL_CACHE_LINE *
                      ORIEL_CACHE_LINE;
    records->places[slab] = place;
    records->slabs[slab] = (int64_t)(first - (uintptr_t)records);
    return true;
}

oriel_record_number oriel_record_make(struct oriel_records *records)
{
    oriel_record_number number = records->unused;
    if (number != 0) {
        records->unused = record_at(records, number)->next;
    } else {
        uint32_t which = records->made / ORIEL_RECORD_SLAB_FIRST + 1;
        bool first = records->made % ORIEL_RECORD_SLAB_FIRST == 0 && (which & (which - 1)) == 0;
        if (first && !slab_add(records, 31u - (unsigned)__builtin_clz(which)))
            return 0;
        number = ++records->made;
    }
    struct oriel_record *record = record_at(records, number);
    memset(record, 0, sizeof *record);
    records->chance ^= records->chance << 13;
    records->chance ^= records->chance >> 17;
    records->chance ^= records->chance << 5;
    record->priority = records->chance;
    records->serial = (records->serial + 1) & 0x7fffffffu;
    record->serial = records->serial;
    records->live++;
    return number;
}

void oriel_record_drop(struct oriel_records *records, oriel_record_number number)
{
    struct oriel_record *record = record_at(records, number);
    record->serial = UINT32_MAX; /* no ticket contains it */
    record->next = records->unused;
    records->unused = number;
    records->live--;
}

/* In order of first byte, then of number. */
static bool sorts_before(const struct oriel_access_extent *a, oriel_record_number number_a,
                         const struct oriel_access_extent *b, oriel_record_number number_b)
{
    return a->offset != b->offset ? a->offset < b->offset : number_a < number_b;
}

static void update_most(struct oriel_records *records, struct oriel_record *record)
{
    int64_t most = oriel_byte_runs_end(&record->runs);
    if (record->left != 0 && record_at(records, record->left)->most > most)
        most = record_at(records, record->left)->most;
    if (record->right != 0 && record_at(records, record->right)->most > most)
        most = record_at(records, record->right)->most;
    record->most = most;
}

/* Divides the subtree into the records before the given one and those after it. */
static void split_subtree(struct oriel_records *records, oriel_record_number tree,
                          const struct oriel_record *record, oriel_record_number number,
                          oriel_record_number *low, oriel_record_number *high)
{
    if (tree == 0) {
        *low = *high = 0;
        return;
    }
    struct oriel_record *top = record_at(records, tree);
    if (sorts_before(&top->runs, tree, &record->runs, number)) {
        *low = tree;
        split_subtree(records, top->right, record, number, &top->right, high);
    } else {
        *high = tree;
        split_subtree(records, top->left, record, number, low, &top->left);
    }
    update_most(records, top);
}

static void mark_pages(struct oriel_records *records, const struct oriel_access_extent *runs,
                       int by)
{
    oriel_pages_mark(&records->pages, runs->offset, oriel_byte_runs_end(runs), by);
}

static void insert_in_tree(struct oriel_records *records, oriel_record_number number)
{
    struct oriel_record *record = record_at(records, number);
    int64_t end = oriel_byte_runs_end(&record->runs);
    oriel_record_number *link = &records->root;
    while (*link != 0) {
        struct oriel_record *top = record_at(records, *link);
        if (top->priority < record->priority)
            break;
        if (top->most < end)
            top->most = end;
        link = sorts_before(&top->runs, *link, &record->runs, number) ? &top->right : &top->left;
    }
    oriel_record_number tree = *link;
    split_subtree(records, tree, record, number, &record->left, &record->right);
    update_most(records, record);
    *link = number;
}

/* All of low is before all of high. */
static oriel_record_number join_subtrees(struct oriel_records *records, oriel_record_number low,
                                         oriel_record_number high)
{
    if (low == 0 || high == 0)
        return low != 0 ? low : high;
    struct oriel_record *a = record_at(records, low);
    struct oriel_record *b = record_at(records, high);
    if (a->priority >= b->priority) {
        a->right = join_subtrees(records, a->right, high);
        update_most(records, a);
        return low;
    }
    b->left = join_subtrees(records, low, b->left);
    update_most(records, b);
    return high;
}

static oriel_record_number remove_from_subtree(struct oriel_records *records,
                                               oriel_record_number tree, oriel_record_number number)
{
    struct oriel_record *top = record_at(records, tree);
    if (tree == number)
        return join_subtrees(records, top->left, top->right);
    if (sorts_before(&top->runs, tree, &record_at(records, number)->runs, number))
        top->right = remove_from_subtree(records, top->right, number);
    else
        top->left = remove_from_subtree(records, top->left, number);
    update_most(records, top);
    return tree;
}

void oriel_record_insert(struct oriel_records *records, oriel_record_number number, bool marked)
{
    if (!marked)
        mark_pages(records, &record_at(records, number)->runs, 1);
    insert_in_tree(records, number);
}

void oriel_record_remove(struct oriel_records *records, oriel_record_number number)
{
    records->root = remove_from_subtree(records, records->root, number);
    mark_pages(records, &record_at(records, number)->runs, -1);
}

/* Marks the pages of runs that are not pages of other. */
static void mark_pages_outside(struct oriel_records *records,
                               const struct oriel_access_extent *runs,
                               const struct oriel_access_extent *other, int by)
{
    const int64_t inside = (1 << ORIEL_PAGE_SHIFT) - 1;
    int64_t low = runs->offset & ~inside;
    int64_t high = (oriel_byte_runs_end(runs) + inside) & ~inside;
    int64_t other_low = other->offset & ~inside;
    int64_t other_high = (oriel_byte_runs_end(other) + inside) & ~inside;
    if (low < other_low)
        oriel_pages_mark(&records->pages, low, high < other_low ? high : other_low, by);
    if (high > other_high)
        oriel_pages_mark(&records->pages, low > other_high ? low : other_high, high, by);
}

void oriel_record_change(struct oriel_records *records, oriel_record_number number,
                         const struct oriel_access_extent *runs)
{
    struct oriel_record *record = record_at(records, number);
    int64_t end = oriel_byte_runs_end(runs);
    mark_pages_outside(records, runs, &record->runs, 1);
    mark_pages_outside(records, &record->runs, runs, -1);
    if (runs->offset != record->runs.offset || end < oriel_byte_runs_end(&record->runs)) {
        records->root = remove_from_subtree(records, records->root, number);
        record->runs = *runs;
        insert_in_tree(records, number);
        return;
    }
    record->runs = *runs;
    for (oriel_record_number tree = records->root;;) {
        struct oriel_record *top = record_at(records, tree);
        if (top->most < end)
            top->most = end;
        if (tree == number)
            return;
        tree = sorts_before(&top->runs, tree, runs, number) ? top->right : top->left;
    }
}

struct search {
    struct oriel_records *records;
    int64_t low;
    int64_t high;
    const struct oriel_access_extent *after;
    oriel_record_number after_number;
    struct oriel_record_hits *hits;
};

static void search_subtree(const struct search *search, oriel_record_number tree)
{
    while (tree != 0) {
        struct oriel_record *top = record_at(search->records, tree);
        if (top->most <= search->low)
            return;
        bool is_after = search->after == NULL ||
                        sorts_before(search->after, search->after_number, &top->runs, tree);
        if (is_after && top->left != 0)
            search_subtree(search, top->left);
        if (top->runs.offset >= search->high || search->hits->count == ORIEL_RECORD_HITS)
            return;
        if (is_after && oriel_byte_runs_end(&top->runs) > search->low)
            search->hits->numbers[search->hits->count++] = tree;
        tree = top->right;
    }
}

void oriel_records_find(struct oriel_records *records, int64_t low, int64_t high,
                        const struct oriel_access_extent *after, oriel_record_number after_number,
                        struct oriel_record_hits *hits)
{
    hits->count = 0;
    search_subtree(&(struct search){records, low, high, after, after_number, hits}, records->root);
}

static oriel_record_number sweep_subtree(struct oriel_records *records, oriel_record_number tree,
                                         oriel_record_gone_fn *gone, void *closure)
{
    if (tree == 0)
        return 0;
    struct oriel_record *top = record_at(records, tree);
    oriel_record_number left = sweep_subtree(records, top->left, gone, closure);
    oriel_record_number right = sweep_subtree(records, top->right, gone, closure);
    if (gone(top, closure)) {
        mark_pages(records, &top->runs, -1);
        oriel_record_drop(records, tree);
        return join_subtrees(records, left, right);
    }
    top->left = left;
    top->right = right;
    update_most(records, top);
    return tree;
}

void oriel_records_sweep(struct oriel_records *records, oriel_record_gone_fn *gone, void *closure)
{
    records->root = sweep_subtree(records, records->root, gone, closure);
}
