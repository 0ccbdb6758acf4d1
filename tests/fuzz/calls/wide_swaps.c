/* Swaps of 16 bytes: the place in the target's memory is aligned, the buffers are anywhere. */
#include "operate.h"

#include <string.h>

enum { WIDE_BYTES = 16, ROOM_BYTES = 3 * WIDE_BYTES };

struct swap {
    int rank;
    MPI_Aint disp;
    unsigned char rooms[3][ROOM_BYTES];
    unsigned char *origin, *compare, *result;
};

/* Sets *expected to the expected bytes of the place if there is one. */
static struct verdict place_verdict(const struct observed_window *observed, const struct swap *swap,
                                    unsigned char **expected)
{
    struct verdict verdict = epochs_allow(&observed->epochs, swap->rank);
    const __int128 offset = observed_offset(observed, swap->rank, swap->disp);
    if (observed->attached == NULL && swap->disp < 0)
        verdict.must |= FAULT_DISP;
    else if (observed->attached != NULL
                 ? !observed_is_attached(observed, swap->rank, offset, WIDE_BYTES)
                 : offset + WIDE_BYTES > observed->size[swap->rank])
        verdict.must |= FAULT_RANGE;
    else if ((uintptr_t)(observed_memory(observed, swap->rank) + (ptrdiff_t)offset) % WIDE_BYTES)
        verdict.must |= FAULT_ARG;
    else
        *expected = observed_expected(observed, swap->rank) + (ptrdiff_t)offset;
    return verdict;
}

static void draw(struct swap *swap, const struct observed_window *observed, struct random *random)
{
    unsigned char **buffers[] = {&swap->origin, &swap->compare, &swap->result};
    swap->rank = one_in(random, 16)
                     ? (one_in(random, 2) ? MPI_PROC_NULL : fuzz_bad_rank(random, observed->n))
                     : below(random, observed->n);
    swap->disp = operation_disp_draw(observed, swap->rank, random);
    if (!one_in(random, 8))
        swap->disp -= swap->disp % WIDE_BYTES;
    for (int i = 0; i < 3; i++) {
        for (int byte = 0; byte < ROOM_BYTES; byte++)
            swap->rooms[i][byte] = (unsigned char)random_next(random);
        *buffers[i] = one_in(random, 30) ? NULL : swap->rooms[i] + below(random, 2 * WIDE_BYTES);
    }
}

void swap_call(struct observed_window *observed, struct random *random)
{
    struct swap swap;
    unsigned char byte, *expected = NULL, before[ROOM_BYTES];
    struct verdict verdict = {FAULT_RANK, 0};
    draw(&swap, observed, random);
    if (swap.rank == MPI_PROC_NULL)
        verdict.must = 0;
    else if (swap.rank >= 0 && swap.rank < observed->n)
        verdict = place_verdict(observed, &swap, &expected);
    const bool no_buffer = swap.origin == NULL || swap.compare == NULL || swap.result == NULL;
    if (no_buffer && swap.rank != MPI_PROC_NULL)
        verdict.must |= FAULT_BUFFER;
    if (expected != NULL && swap.compare != NULL && one_in(random, 2))
        memcpy(swap.compare, expected, WIDE_BYTES);
    memcpy(before, swap.rooms[2], sizeof before);
    fuzz_describe("Compare_and_swap_128(rank %d, disp %ld%s)", swap.rank, (long)swap.disp,
                  no_buffer ? ", no buffer" : "");
    if (fuzz_judge(verdict, FUZZX(Compare_and_swap_128, swap.origin, swap.compare, swap.result,
                                  swap.rank, swap.disp, observed->win)) &&
        expected != NULL) {
        epochs_note_operation(&observed->epochs, swap.rank);
        CHECK_OK(MPI_Get(&byte, 1, MPI_BYTE, swap.rank, swap.disp, 1, MPI_BYTE, observed->win));
        memcpy(before + (swap.result - swap.rooms[2]), expected, WIDE_BYTES);
        if (memcmp(swap.compare, expected, WIDE_BYTES) == 0)
            memcpy(expected, swap.origin, WIDE_BYTES);
    }
    CHECK(memcmp(before, swap.rooms[2], sizeof before) == 0,
          "%.250s: the result is not the former value", fuzz_description());
}
