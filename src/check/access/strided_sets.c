/* Sets of runs at equal distances. Distances are positive and longer than the runs, unless there is
 * only one run. oriel_byte_runs_tidy and the other functions make only such sets. */
#include "check/access/strided_sets.h"

#if ORIEL_HAS_INT128
typedef oriel_uint128 wide_product;
#else
typedef uint64_t wide_product; /* products of strides and counts: enough for memories of some GiB */
#endif

static bool is_single_run(const struct oriel_access_extent *runs)
{
    return runs->count == 1;
}

static struct oriel_access_extent single_run(int64_t low, int64_t high)
{
    return (struct oriel_access_extent){
        .offset = low, .len_bytes = (uint64_t)(high - low), .count = 1};
}

bool oriel_byte_runs_tidy(const struct oriel_access_extent *extent, struct oriel_access_extent *out)
{
    if (extent->len_bytes == 0 || extent->count == 0)
        return false;
    *out = *extent;
    if (extent->stride_bytes < 0) {
        out->offset += (int64_t)(extent->count - 1) * extent->stride_bytes;
        out->stride_bytes = -extent->stride_bytes;
    }
    if (extent->count == 1 || (uint64_t)out->stride_bytes <= extent->len_bytes)
        *out = single_run(out->offset, extent->count == 1 ? out->offset + (int64_t)out->len_bytes
                                                          : oriel_byte_runs_end(out));
    return true;
}

/* Finds the smallest x with low <= factor * x mod modulus <= high, for 0 <= low <= high < modulus.
 * Returns false if there is none. Each step solves the same problem for the remainders, as in
 * Euclid's algorithm. */
static bool first_multiple_within(uint64_t factor, uint64_t modulus, uint64_t low, uint64_t high,
                                  uint64_t *out)
{
    *out = 0;
    if (low == 0)
        return true;
    if (factor == 0)
        return false;
    uint64_t x = (low - 1) / factor + 1;
    if ((wide_product)x * factor <= high) {
        *out = x;
        return true;
    }
    /* around the modulus: no multiple of the factor is between low and high, so both ends wrap
     * alike */
    uint64_t turns;
    if (!first_multiple_within(modulus % factor, factor, (factor - high % factor) % factor,
                               (factor - low % factor) % factor, &turns))
        return false;
    *out = (uint64_t)(((wide_product)modulus * turns + low - 1) / factor + 1);
    return true;
}

/* The offset of the first run of b that ends after low. The caller knows that one overlaps. */
static int64_t first_run_ending_after(const struct oriel_access_extent *b, int64_t low)
{
    /* a run that starts there, or later, ends after low */
    int64_t after = low - b->offset - (int64_t)b->len_bytes + 1;
    return after <= 0 ? b->offset
                      : b->offset + ((after - 1) / b->stride_bytes + 1) * b->stride_bytes;
}

/* Finds the first of the runs first .. last of a that overlaps b. Each of them has at least one
 * byte between b's first and last. It has the same bytes in common with b as with an endless b,
 * because a run that reached a run which b lacks would pass one that b has. */
static bool first_overlapping_run(const struct oriel_access_extent *a,
                                  const struct oriel_access_extent *b, uint64_t first,
                                  uint64_t last, uint64_t *which)
{
    uint64_t stride = (uint64_t)b->stride_bytes;
    /* starts of a run, relative to one of b's, where the two overlap */
    uint64_t span = a->len_bytes + b->len_bytes - 1;
    int64_t start =
        a->offset + (int64_t)first * a->stride_bytes - b->offset + (int64_t)a->len_bytes - 1;
    uint64_t inside =
        start >= 0 ? (uint64_t)start % stride : (stride - (uint64_t)-start % stride) % stride;
    *which = first;
    if (inside < span)
        return true;
    uint64_t low = stride - inside;
    uint64_t high = low + span - 1;
    uint64_t further = 0;
    if (is_single_run(a) || !first_multiple_within((uint64_t)a->stride_bytes % stride, stride, low,
                                                   high < stride ? high : stride - 1, &further))
        return false;
    *which = first + further;
    return further <= last - first;
}

bool oriel_byte_runs_meet(const struct oriel_access_extent *a, const struct oriel_access_extent *b,
                          int64_t *offset, uint64_t *len_bytes)
{
    int64_t end_a = oriel_byte_runs_end(a);
    int64_t end_b = oriel_byte_runs_end(b);
    if (a->offset >= end_b || b->offset >= end_a)
        return false;
    if (is_single_run(a) && !is_single_run(b)) {
        const struct oriel_access_extent *swap = a;
        a = b;
        b = swap;
        end_b = end_a;
    }
    uint64_t first = 0;
    uint64_t last = a->count - 1;
    if (!is_single_run(a)) {
        /* runs that end at or before b's first byte */
        int64_t before = b->offset - a->offset - (int64_t)a->len_bytes;
        if (before >= 0)
            first = (uint64_t)(before / a->stride_bytes) + 1;
        int64_t most = (end_b - 1 - a->offset) / a->stride_bytes;
        if ((uint64_t)most < last)
            last = (uint64_t)most;
        if (first > last)
            return false;
    }
    if (!is_single_run(b) && !first_overlapping_run(a, b, first, last, &first))
        return false;
    int64_t low = a->offset + (int64_t)first * (is_single_run(a) ? 0 : a->stride_bytes);
    int64_t high = low + (int64_t)a->len_bytes;
    int64_t low_b = is_single_run(b) ? b->offset : first_run_ending_after(b, low);
    int64_t high_b = low_b + (int64_t)b->len_bytes;
    *offset = low > low_b ? low : low_b;
    *len_bytes = (uint64_t)((high < high_b ? high : high_b) - *offset);
    return true;
}

bool oriel_byte_runs_contain(const struct oriel_access_extent *outer,
                             const struct oriel_access_extent *inner)
{
    int64_t into = inner->offset - outer->offset;
    if (into < 0 || oriel_byte_runs_end(inner) > oriel_byte_runs_end(outer))
        return false;
    if (is_single_run(outer))
        return true;
    if (!is_single_run(inner) && inner->stride_bytes % outer->stride_bytes != 0)
        return false;
    return (uint64_t)(into % outer->stride_bytes) + inner->len_bytes <= outer->len_bytes;
}

static bool same_shape(const struct oriel_access_extent *a, const struct oriel_access_extent *b)
{
    return a->count == b->count && a->stride_bytes == b->stride_bytes;
}

/* b starts where a ends, by bytes or by runs, or within it. */
static bool runs_continue(const struct oriel_access_extent *a, const struct oriel_access_extent *b,
                          struct oriel_access_extent *out)
{
    *out = *a;
    int64_t end = a->offset + (int64_t)a->len_bytes;
    if (is_single_run(a) && is_single_run(b)) {
        if (b->offset < a->offset || b->offset > end)
            return false;
        if (oriel_byte_runs_end(b) > end)
            out->len_bytes = (uint64_t)(oriel_byte_runs_end(b) - a->offset);
        return true;
    }
    if (same_shape(a, b) && b->offset == end) { /* columns next to each other */
        struct oriel_access_extent wider = *a;
        wider.len_bytes += b->len_bytes;
        return wider.len_bytes <= (uint64_t)a->stride_bytes && oriel_byte_runs_tidy(&wider, out);
    }
    int64_t stride_bytes = is_single_run(a) ? b->stride_bytes : a->stride_bytes;
    if (a->len_bytes != b->len_bytes || (!is_single_run(b) && b->stride_bytes != stride_bytes) ||
        b->offset != a->offset + (int64_t)a->count * stride_bytes)
        return false;
    out->count += b->count;
    out->stride_bytes = stride_bytes;
    return true;
}

bool oriel_byte_runs_join(const struct oriel_access_extent *a, const struct oriel_access_extent *b,
                          struct oriel_access_extent *out)
{
    if (oriel_byte_runs_contain(a, b)) {
        *out = *a;
        return true;
    }
    if (oriel_byte_runs_contain(b, a)) {
        *out = *b;
        return true;
    }
    return runs_continue(a, b, out) || runs_continue(b, a, out);
}

/* The runs from first to after - 1. */
static size_t piece_of_runs(const struct oriel_access_extent *from, uint64_t first, uint64_t after,
                            struct oriel_access_extent *piece)
{
    if (first >= after)
        return 0;
    struct oriel_access_extent runs = *from;
    runs.offset += (int64_t)first * from->stride_bytes;
    runs.count = after - first;
    oriel_byte_runs_tidy(&runs, piece);
    return 1;
}

static size_t piece_between(int64_t low, int64_t high, struct oriel_access_extent *piece)
{
    if (low >= high)
        return 0;
    *piece = single_run(low, high);
    return 1;
}

size_t oriel_byte_runs_subtract(const struct oriel_access_extent *from,
                                const struct oriel_access_extent *hole,
                                struct oriel_access_extent pieces[ORIEL_RUNS_PIECES])
{
    int64_t low = hole->offset;
    int64_t high = oriel_byte_runs_end(hole);
    int64_t end = oriel_byte_runs_end(from);
    if (high <= from->offset || low >= end) {
        pieces[0] = *from;
        return 1;
    }
    if (is_single_run(from)) {
        size_t count = piece_between(from->offset, low, pieces);
        return count + piece_between(high, end, pieces + count);
    }
    int64_t stride = from->stride_bytes;
    int64_t len = (int64_t)from->len_bytes;
    int64_t before = low - from->offset - len;
    int64_t within = high - from->offset;
    /* the first that ends after low */
    uint64_t first = before < 0 ? 0 : (uint64_t)(before / stride) + 1;
    /* the first that starts after the hole */
    uint64_t after = within <= 0 ? 0 : (uint64_t)((within - 1) / stride) + 1;
    if (after > from->count)
        after = from->count;
    size_t count = piece_of_runs(from, 0, first, pieces);
    if (first < after) {
        count += piece_between(from->offset + (int64_t)first * stride, low, pieces + count);
        count +=
            piece_between(high, from->offset + (int64_t)(after - 1) * stride + len, pieces + count);
    }
    return count + piece_of_runs(from, after > first ? after : first, from->count, pieces + count);
}
