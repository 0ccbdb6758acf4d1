/* Sides, slots and comparisons of the derived datatype tests. If the host's pack differs from the
 * constructors' definitions, the case fails: the model would be wrong. */
#include "derived.h"

#include <stdio.h>
#include <string.h>

void bytes_fill(unsigned char *bytes, int len_bytes, struct random *random)
{
    for (int i = 0; i < len_bytes; i++)
        bytes[i] = (unsigned char)(random_next(random) >> 13);
}

static int greatest_divisor(int a, int b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* Places the side at a random offset of the field, if it fits. */
static bool side_place(struct side *side, bool disjoint, MPI_Aint step, struct random *random)
{
    MPI_Aint low, high;
    random_type_bounds(&side->type, side->count, &low, &high);
    MPI_Aint first = low < 0 ? (-low + step - 1) / step * step : 0;
    MPI_Aint room = FIELD_BYTES - high - first;
    if (room < 0 || high - low > FIELD_BYTES ||
        (disjoint && !random_type_is_disjoint(&side->type, side->count)))
        return false;
    side->offset = first + (MPI_Aint)random_below(random, (uint64_t)(room / step) + 1) * step;
    return true;
}

bool side_make(struct side *side, const struct random_signature *signature, int len_bytes,
               bool disjoint, struct random *random)
{
    random_type_make(&side->type, signature, random, DEPTH);
    int size_bytes = side->type.size_bytes;
    if (size_bytes > 0 && len_bytes % size_bytes == 0 && len_bytes / size_bytes < 64) {
        side->count = len_bytes / size_bytes;
        if (side_place(side, disjoint, 1, random))
            return true;
    }
    random_type_free(&side->type);
    return false;
}

static bool sides_try(struct sides *sides, bool origin_disjoint, struct random *random)
{
    random_type_make(&sides->origin.type, &sides->signature, random, DEPTH);
    random_type_make(&sides->target.type, &sides->signature, random, DEPTH);
    int at_origin = sides->origin.type.size_bytes, at_target = sides->target.type.size_bytes;
    int times = 1 + (int)random_below(random, 3);
    if (at_origin == 0 && at_target == 0) {
        sides->origin.count = times;
        sides->target.count = 1 + (int)random_below(random, 3);
        sides->len_bytes = 0;
    } else if (at_origin == 0 || at_target == 0) {
        return false;
    } else {
        int divisor = greatest_divisor(at_origin, at_target);
        sides->origin.count = at_target / divisor * times;
        sides->target.count = at_origin / divisor * times;
        sides->len_bytes = sides->origin.count * at_origin;
    }
    return sides->len_bytes <= PACKED_MOST_BYTES && sides->origin.count < 64 &&
           sides->target.count < 64 && side_place(&sides->origin, origin_disjoint, 1, random) &&
           side_place(&sides->target, true, 8, random);
}

void sides_make(struct sides *sides, const struct random_signature *signature, bool origin_disjoint,
                uint64_t seed)
{
    struct random random = {seed};
    sides->signature = *signature;
    sides->seed = seed;
    while (!sides_try(sides, origin_disjoint, &random))
        sides_free(sides);
}

void sides_free(struct sides *sides)
{
    random_type_free(&sides->origin.type);
    random_type_free(&sides->target.type);
}

/* The host's packing checks the map that the tests compute. From Open MPI 5 on it is wrong for some
 * types (complex numbers of 16 bytes, the standard ABI); there the map decides. */
static void host_compare(const char *what, const unsigned char *host, const unsigned char *wanted,
                         size_t len_bytes, const struct side *side)
{
    const bool is_same = memcmp(host, wanted, len_bytes) == 0;
#if defined(MPICH_VERSION) || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 5)
    CHECK(is_same, "the host %s otherwise: %d %s", what, side->count, side->type.text);
#else
    if (!is_same)
        printf("# the host %s otherwise: %d %s\n", what, side->count, side->type.text);
#endif
}

void side_pack(const struct side *side, int len_bytes, const unsigned char *field,
               unsigned char *packed)
{
    unsigned char wanted[PACKED_MOST_BYTES];
    int position = 0;
    MPI_Pack(field + side->offset, side->count, side->type.type, packed, PACKED_MOST_BYTES,
             &position, MPI_COMM_SELF);
    random_type_gather(&side->type, len_bytes, field + side->offset, wanted);
    CHECK(position == len_bytes, "the host packs %d of %d bytes: %s", position, len_bytes,
          side->type.text);
    host_compare("packs", packed, wanted, (size_t)len_bytes, side);
    memcpy(packed, wanted, (size_t)len_bytes);
}

void side_unpack(const struct side *side, int len_bytes, unsigned char *field,
                 const unsigned char *packed)
{
    unsigned char wanted[FIELD_BYTES];
    int position = 0;
    memcpy(wanted, field, sizeof wanted);
    random_type_scatter(&side->type, len_bytes, wanted + side->offset, packed);
    MPI_Unpack(packed, len_bytes, &position, field + side->offset, side->count, side->type.type,
               MPI_COMM_SELF);
    host_compare("unpacks", field, wanted, sizeof wanted, side);
    memcpy(field, wanted, sizeof wanted);
}

struct window slots_make(enum window_kind kind, int slots_each)
{
    random_leaves_start();
    MPI_Aint size_bytes = (MPI_Aint)FIELD_BYTES * slots_each * world_size;
    struct window window = window_make(kind, size_bytes, 1 << (world_rank % 4), MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window.win);
    return window;
}

void slots_free(struct window *window)
{
    MPI_Win_unlock_all(window->win);
    window_free(window);
}

void slot_open(struct slot *slot, MPI_Win win, int target, int slots_each, int number)
{
    slot->win = win;
    slot->target = target;
    slot->unit = 1 << (target % 4);
    slot->start = ((MPI_Aint)world_rank * slots_each + number) * FIELD_BYTES;
    memset(slot->model, 0, sizeof slot->model);
}

MPI_Aint slot_disp(const struct slot *slot, const struct side *side)
{
    return (slot->start + side->offset) / slot->unit;
}

void slot_write(struct slot *slot, const unsigned char *bytes)
{
    memcpy(slot->model, bytes, sizeof slot->model);
    MPI_Put(bytes, FIELD_BYTES, MPI_BYTE, slot->target, slot->start / slot->unit, FIELD_BYTES,
            MPI_BYTE, slot->win);
    MPI_Win_flush(slot->target, slot->win);
}

void slot_fill(struct slot *slot, struct random *random)
{
    unsigned char bytes[FIELD_BYTES];
    bytes_fill(bytes, sizeof bytes, random);
    slot_write(slot, bytes);
}

bool fields_check(const unsigned char *got, const unsigned char *wanted, const struct sides *sides,
                  const char *what)
{
    if (memcmp(got, wanted, FIELD_BYTES) == 0)
        return true;
    int at = 0;
    while (got[at] == wanted[at])
        at++;
    return CHECK(
        false,
        "%s, seed %#llx: byte %d is %d, not %d; origin at %ld %d %.100s; target at %ld %d %.100s",
        what, (unsigned long long)sides->seed, at, got[at], wanted[at], (long)sides->origin.offset,
        sides->origin.count, sides->origin.type.text, (long)sides->target.offset,
        sides->target.count, sides->target.type.text);
}

bool slot_check(const struct slot *slot, const struct sides *sides, const char *what)
{
    unsigned char found[FIELD_BYTES];
    MPI_Get(found, FIELD_BYTES, MPI_BYTE, slot->target, slot->start / slot->unit, FIELD_BYTES,
            MPI_BYTE, slot->win);
    MPI_Win_flush(slot->target, slot->win);
    return fields_check(found, slot->model, sides, what);
}
