/* Cases of dynamic.c: regions are attached and detached while other ranks work on the remaining
 * ones, and a linked list spans all regions. */
#include "dynamic_regions.h"

enum { PIECES = 500, PIECE_WORDS = 4 };

static void shuffle(struct random *random, int *order, int count)
{
    for (int i = 0; i < count; i++) {
        int j = (int)random_below(random, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
}

/* Attaches and detaches thousands of regions in any order; each attached one is reachable. */
void thousands_of_regions_are_attached_and_detached(enum window_kind kind)
{
    enum { REGIONS = 6000 };
    static int order[REGIONS];
    MPI_Aint there[MANY_RANKS];
    struct random random = random_start(5 + (uint64_t)world_rank);
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t *words =
        memory_make(kind, 2 * REGIONS * sizeof *words); /* every other word is attached */
    for (int round = 0; round < 2; round++) {
        shuffle(&random, order, REGIONS);
        for (int i = 0; i < REGIONS; i++)
            MPI_Win_attach(win, &words[2 * order[i]], sizeof words[0]);
        shuffle(&random, order, REGIONS);
        for (int i = 0; i < REGIONS; i++) /* detach the odd ones again */
            if (order[i] % 2 == 1)
                MPI_Win_detach(win, &words[2 * order[i]]);
        addresses_share(words, there);
        MPI_Win_lock_all(0, win);
        for (int i = 0; i < 2000; i++) {
            int target = (int)random_below(&random, (uint64_t)world_size);
            int64_t region = 2 * (int64_t)random_below(&random, REGIONS / 2);
            MPI_Aint address = there[target] + 16 * region;
            MPI_Accumulate(&region, 1, MPI_INT64_T, target, address, 1, MPI_INT64_T, MPI_REPLACE,
                           win);
        }
        MPI_Win_unlock_all(win);
        barrier(MPI_COMM_WORLD);
        int64_t reached = 0;
        for (int64_t i = 0; i < REGIONS; i++) {
            CHECK(words[2 * i] == 0 || (i % 2 == 0 && words[2 * i] == i), "region %ld holds %ld",
                  (long)i, (long)words[2 * i]);
            CHECK_EQUAL(words[2 * i + 1], 0);
            reached += words[2 * i] != 0;
            if (i % 2 == 0)
                MPI_Win_detach(win, &words[2 * i]);
        }
        CHECK(reached > REGIONS / 8, "%ld regions reached", (long)reached);
        memset(words, 0, 2 * REGIONS * sizeof *words);
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    memory_free(kind, words);
}

/* All ranks attach and detach while others work on the remaining regions. */
void table_changes_under_accesses(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    struct random random = random_start(99 + (uint64_t)world_rank);
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t one = 1, *counter = memory_make(kind, sizeof *counter);
    int64_t *pieces = memory_make(kind, PIECES * PIECE_WORDS * sizeof *pieces);
    bool attached[PIECES] = {false};
    int rounds = scaled_rounds(4000);
    MPI_Win_attach(win, counter, sizeof *counter);
    addresses_share(counter, there);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < rounds; i++) {
        int piece = (int)random_below(&random, PIECES);
        int target = (int)random_below(&random, (uint64_t)world_size);
        int64_t *base = &pieces[piece * PIECE_WORDS];
        CHECK_OK(attached[piece] ? MPI_Win_detach(win, base)
                                 : MPI_Win_attach(win, base, 8 * PIECE_WORDS));
        attached[piece] = !attached[piece];
        for (int t = 0; t < world_size; t++)
            CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, (target + t) % world_size,
                                    there[(target + t) % world_size], 1, MPI_INT64_T, MPI_SUM,
                                    win));
        random_pause(&random, 50);
    }
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    CHECK_EQUAL(*counter, (int64_t)rounds * world_size);
    MPI_Win_free(&win);
    memory_free(kind, counter);
    memory_free(kind, pieces);
}

/* MPI-4.1, 13.2.4: an address links to the next element; compare_and_swap claims the last element's
 * link. */
struct link {
    int64_t rank; /* -1: the end */
    MPI_Aint address;
};

struct element {
    struct link next;
    int64_t value;
};

static struct link append_after(MPI_Win win, struct link at, const struct element *mine)
{
    int64_t no_rank = -1, me = world_rank, found = -1;
    MPI_Aint my_address;
    MPI_Get_address(mine, &my_address);
    MPI_Compare_and_swap(&me, &no_rank, &found, MPI_INT64_T, (int)at.rank, at.address, win);
    MPI_Win_flush((int)at.rank, win);
    if (found == no_rank) { /* this rank owns the link; its address is written once */
        MPI_Accumulate(&my_address, 1, MPI_AINT, (int)at.rank, at.address + 8, 1, MPI_AINT,
                       MPI_REPLACE, win);
        MPI_Win_flush((int)at.rank, win);
        return (struct link){-1, 0};
    }
    struct link next = {found, 0};
    while (next.address == 0) { /* claimed, not yet written */
        MPI_Fetch_and_op(NULL, &next.address, MPI_AINT, (int)at.rank, at.address + 8, MPI_NO_OP,
                         win);
        MPI_Win_flush((int)at.rank, win);
        if (next.address == 0)
            sleep_us(10);
    }
    return next;
}

void list_over_all_ranks_is_built_without_locks(enum window_kind kind)
{
    enum { EACH = 20 };
    MPI_Aint heads[MANY_RANKS];
    struct element *elements[EACH];
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    struct link *head = memory_make(kind, sizeof *head);
    *head = (struct link){-1, 0};
    MPI_Win_attach(win, head, sizeof *head);
    addresses_share(head, heads);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < EACH; i++) {
        elements[i] = memory_make(kind, sizeof *elements[i]);
        *elements[i] = (struct element){{-1, 0}, world_rank * EACH + i};
        MPI_Win_attach(win, elements[i], sizeof *elements[i]);
        MPI_Win_sync(win);
        for (struct link at = {0, heads[0]}; at.rank >= 0;)
            at = append_after(win, at, elements[i]);
    }
    MPI_Win_flush_all(win);
    barrier(MPI_COMM_WORLD);
    int64_t count = 0, sum = 0;
    struct element element;
    struct link at;
    MPI_Get(&at, 2, MPI_INT64_T, 0, heads[0], 2, MPI_INT64_T, win);
    MPI_Win_flush(0, win);
    while (at.rank >= 0 && count <= (int64_t)EACH * world_size) {
        MPI_Get(&element, 3, MPI_INT64_T, (int)at.rank, at.address, 3, MPI_INT64_T, win);
        MPI_Win_flush((int)at.rank, win);
        at = element.next;
        sum += element.value;
        count++;
    }
    int64_t all = (int64_t)EACH * world_size;
    CHECK_EQUAL(count, all);
    CHECK_EQUAL(sum, all * (all - 1) / 2);
    barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    for (int i = 0; i < EACH; i++)
        memory_free(kind, elements[i]);
    memory_free(kind, head);
}
