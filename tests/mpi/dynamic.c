/* Dynamic windows: memory attached at any time is reachable by its address from every rank, by
 * every operation, in every kind of epoch; no other memory is. A plain MPI program, run by the test
 * rows. */
#include "dynamic_regions.h"

#include <sys/mman.h>

enum { WORDS = 64 };

static int64_t static_words[WORDS];

static void put_word(MPI_Win win, int target, MPI_Aint address, int64_t value)
{
    MPI_Put(&value, 1, MPI_INT64_T, target, address, 1, MPI_INT64_T, win);
}

static int64_t get_word(MPI_Win win, int target, MPI_Aint address)
{
    int64_t value = -1;
    MPI_Get(&value, 1, MPI_INT64_T, target, address, 1, MPI_INT64_T, win);
    MPI_Win_flush(target, win);
    return value;
}

static void attached_memory_is_reached_by_address(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t *words = memory_make(kind, WORDS * sizeof *words);
    CHECK_OK(MPI_Win_attach(win, words, WORDS * sizeof *words));
    addresses_share(words, there);
    MPI_Win_lock_all(0, win);
    for (int target = 0; target < world_size; target++)
        put_word(win, target, MPI_Aint_add(there[target], 8 * world_rank),
                 100 * world_rank + target);
    MPI_Win_flush_all(win);
    for (int target = 0; target < world_size; target++)
        CHECK_EQUAL(get_word(win, target, there[target] + 8 * world_rank),
                    100 * world_rank + target);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    for (int origin = 0; origin < world_size; origin++)
        CHECK_EQUAL(words[origin], 100 * origin + world_rank);
    CHECK_OK(MPI_Win_detach(win, words));
    MPI_Win_free(&win);
    CHECK(win == MPI_WIN_NULL, "the freed handle is not MPI_WIN_NULL");
    memory_free(kind, words);
}

static void static_and_stack_memory_can_be_attached(enum window_kind kind)
{
    MPI_Aint in_static[MANY_RANKS], on_stack[MANY_RANKS];
    int64_t local[4] = {0};
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    (void)kind;
    memset(static_words, 0, sizeof static_words);
    MPI_Win_attach(win, static_words, sizeof static_words);
    MPI_Win_attach(win, local, sizeof local);
    addresses_share(static_words, in_static);
    addresses_share(local, on_stack);
    MPI_Win_fence(0, win);
    put_word(win, next_rank(), in_static[next_rank()] + 16, 11 + world_rank);
    put_word(win, next_rank(), on_stack[next_rank()] + 24, 22 + world_rank);
    MPI_Win_fence(0, win);
    CHECK_EQUAL(load_word(&static_words[2]), 11 + previous_rank());
    CHECK_EQUAL(load_word(&local[3]), 22 + previous_rank());
    MPI_Win_detach(win, local);
    MPI_Win_free(&win); /* detaches the rest */
}

static void window_has_the_attributes_of_its_flavour(enum window_kind kind)
{
    void *base = &base;
    MPI_Aint *size, shared_size = 7;
    int *unit, *flavour, *model, found[5], shared_unit = 7;
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    (void)kind;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &found[0]);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &size, &found[1]);
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &found[2]);
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &flavour, &found[3]);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &found[4]);
    for (int i = 0; i < 5; i++)
        CHECK(found[i], "attribute %d is missing", i);
    CHECK(base == MPI_BOTTOM, "the base is %p", base);
    CHECK_EQUAL(*size, 0);
    CHECK_EQUAL(*unit, 1);
    CHECK_EQUAL(*flavour, MPI_WIN_FLAVOR_DYNAMIC);
    CHECK_EQUAL(*model, MPI_WIN_UNIFIED);
    CHECK_OK(MPI_Win_shared_query(win, next_rank(), &shared_size, &shared_unit, &base));
    CHECK(shared_size == 0 && base == NULL, "shared_query returns %ld bytes at %p",
          (long)shared_size, base);
    MPI_Win_free(&win);
}

/* One array attached piece by piece in a random order: an access may cross all the seams. */
static void access_spans_regions_that_touch(enum window_kind kind)
{
    enum { SEAMS = 16, BYTES = 1000 };
    MPI_Aint there[MANY_RANKS];
    struct random random = random_start(17 + (uint64_t)world_rank);
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    char *memory = memory_make(kind, SEAMS * BYTES), sent[SEAMS * BYTES], got[SEAMS * BYTES];
    int order[SEAMS];
    for (int i = 0; i < SEAMS; i++) {
        int j = (int)random_below(&random, (uint64_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < SEAMS; i++)
        CHECK_OK(MPI_Win_attach(win, memory + order[i] * BYTES, BYTES));
    addresses_share(memory, there);
    memset(got, 0, sizeof got);
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (char)(i * 7 + (size_t)world_rank);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank(), 0, win);
    CHECK_OK(MPI_Put(sent, sizeof sent, MPI_BYTE, next_rank(), there[next_rank()], sizeof sent,
                     MPI_BYTE, win));
    MPI_Win_flush(next_rank(), win);
    CHECK_OK(MPI_Get(got, BYTES + 2, MPI_BYTE, next_rank(), there[next_rank()] + BYTES - 1,
                     BYTES + 2, MPI_BYTE, win));
    MPI_Win_unlock(next_rank(), win);
    CHECK(memcmp(got, sent + BYTES - 1, BYTES + 2) == 0,
          "data across three regions was returned changed");
    barrier(MPI_COMM_WORLD);
    for (size_t i = 0; i < sizeof sent; i++)
        if (!CHECK(memory[i] == (char)(i * 7 + (size_t)previous_rank()), "byte %zu is wrong", i))
            break;
    MPI_Win_free(&win);
    memory_free(kind, memory);
}

/* The holes of a target datatype are not checked. */
static void holes_of_a_datatype_need_not_be_attached(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    MPI_Datatype strided;
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t *words = memory_make(kind, 32 * sizeof *words), sent[8];
    MPI_Type_vector(8, 1, 4, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    for (int i = 0; i < 8; i++) {
        sent[i] = 1000 * world_rank + i;
        MPI_Win_attach(win, &words[4 * i], sizeof words[0]);
    }
    addresses_share(words, there);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(sent, 8, MPI_INT64_T, next_rank(), there[next_rank()], 1, strided, win));
    MPI_Win_fence(0, win);
    for (int i = 0; i < 32; i++)
        CHECK_EQUAL(words[i], i % 4 == 0 ? 1000 * previous_rank() + i / 4 : 0);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Accumulate(sent, 8, MPI_INT64_T, next_rank(), there[next_rank()], 1, strided,
                            MPI_SUM, win));
    MPI_Win_fence(0, win);
    CHECK_EQUAL(words[28], 2 * (1000 * previous_rank() + 7));
    MPI_Type_free(&strided);
    MPI_Win_free(&win);
    memory_free(kind, words);
}

/* Holes need not be mapped either: a get that read the memory between the blocks would fault. */
static void holes_of_a_datatype_need_not_be_mapped(enum window_kind kind)
{
    enum { EACH = 8, PAGE = 4096, PAGE_WORDS = PAGE / sizeof(int64_t) };
    MPI_Aint there[MANY_RANKS];
    MPI_Datatype scattered;
    int displs[2 * EACH];
    int64_t seen[2 * EACH] = {0};
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t *words =
        mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)kind;
    CHECK(words != MAP_FAILED, "no memory");
    CHECK_EQUAL(mprotect(&words[PAGE_WORDS], PAGE, PROT_NONE), 0);
    for (int i = 0; i < 2 * EACH; i++) {
        displs[i] = (i < EACH ? 0 : 2 * (int)PAGE_WORDS) + 3 * i;
        words[displs[i]] = 100 * world_rank + i;
    }
    MPI_Win_attach(win, words, PAGE);
    MPI_Win_attach(win, &words[2 * PAGE_WORDS], PAGE);
    MPI_Type_create_indexed_block(2 * EACH, 1, displs, MPI_INT64_T, &scattered);
    MPI_Type_commit(&scattered);
    addresses_share(words, there);
    MPI_Win_fence(0, win);
    CHECK_OK(
        MPI_Get(seen, 2 * EACH, MPI_INT64_T, next_rank(), there[next_rank()], 1, scattered, win));
    MPI_Win_fence(0, win);
    for (int i = 0; i < 2 * EACH; i++)
        CHECK_EQUAL(seen[i], 100 * next_rank() + i);
    MPI_Type_free(&scattered);
    MPI_Win_free(&win);
    munmap(words, 3 * PAGE);
}

/* Absolute addresses in the datatype, displacement MPI_BOTTOM: both kinds of memory in one
 * operation. */
static void datatype_of_addresses_reaches_all_kinds_of_memory(enum window_kind kind)
{
    enum { BLOCKS = 3 };
    MPI_Aint there[BLOCKS][MANY_RANKS], blocks[BLOCKS];
    MPI_Datatype scattered;
    int lengths[BLOCKS] = {2, 1, 3};
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int32_t *memories[BLOCKS] = {memory_make(KIND_ARENA, 64), memory_make(KIND_HEAP, 64),
                                 (int32_t *)static_words};
    int32_t sent[6], seen[6] = {0};
    (void)kind;
    memset(static_words, 0, sizeof static_words);
    for (int i = 0; i < BLOCKS; i++) {
        MPI_Win_attach(win, memories[i], 64);
        addresses_share(memories[i], there[i]);
        blocks[i] = there[i][next_rank()];
    }
    for (int i = 0; i < 6; i++)
        sent[i] = 10 * world_rank + i + 1;
    MPI_Type_create_hindexed(BLOCKS, lengths, blocks, MPI_INT32_T, &scattered);
    MPI_Type_commit(&scattered);
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(sent, 6, MPI_INT32_T, next_rank(), 0, 1, scattered, win));
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Accumulate(sent, 6, MPI_INT32_T, next_rank(), 0, 1, scattered, MPI_SUM, win));
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Get(seen, 6, MPI_INT32_T, next_rank(), 0, 1, scattered, win));
    MPI_Win_fence(0, win);
    for (int i = 0, n = 0; i < BLOCKS; i++)
        for (int k = 0; k < lengths[i]; k++, n++) {
            CHECK_EQUAL(memories[i][k], 2 * (10 * previous_rank() + n + 1));
            CHECK_EQUAL(seen[n], 2 * sent[n]);
        }
    MPI_Type_free(&scattered);
    MPI_Win_free(&win);
    memory_free(KIND_ARENA, memories[0]);
    memory_free(KIND_HEAP, memories[1]);
}

static void atomics_of_all_ranks_add_up(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    int rounds = scaled_rounds(2000);
    int64_t one = 1, old, *words = memory_make(kind, WORDS * sizeof *words);
    double half = 0.5;
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    MPI_Win_attach(win, words, WORDS * sizeof *words);
    addresses_share(words, there);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < rounds; i++) {
        int target = i % world_size;
        MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, there[target], MPI_SUM, win);
        MPI_Accumulate(&half, 1, MPI_DOUBLE, target, there[target] + 8, 1, MPI_DOUBLE, MPI_SUM,
                       win);
        int64_t seen = -1, wanted;
        do { /* an addition by get and put */
            wanted = seen < 0 ? 0 : seen;
            int64_t next = wanted + 1;
            MPI_Compare_and_swap(&next, &wanted, &seen, MPI_INT64_T, target, there[target] + 16,
                                 win);
            MPI_Win_flush(target, win);
        } while (seen != wanted);
    }
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    int64_t wanted = 0;
    for (int i = 0; i < rounds; i++)
        wanted += i % world_size == world_rank ? world_size : 0;
    CHECK_EQUAL(words[0], wanted);
    CHECK_EQUAL((int64_t)(2 * ((double *)words)[1]), wanted);
    CHECK_EQUAL(words[2], wanted);
    MPI_Win_free(&win);
    memory_free(kind, words);
}

static void post_and_start_serve_dynamic_windows(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    MPI_Group all, to, from;
    int next = next_rank(), previous = previous_rank();
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t *words = memory_make(kind, WORDS * sizeof *words);
    MPI_Win_attach(win, words, WORDS * sizeof *words);
    addresses_share(words, there);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &next, &to);
    MPI_Group_incl(all, 1, &previous, &from);
    for (int64_t round = 1; round <= 20; round++) {
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        put_word(win, next, there[next] + 8 * (round % WORDS), round + world_rank);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        CHECK_EQUAL(load_word(&words[round % WORDS]), round + previous);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Win_free(&win);
    memory_free(kind, words);
}

static void one_memory_may_be_attached_to_several_windows(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    MPI_Win first = dynamic_make(MPI_COMM_WORLD), second = dynamic_make(MPI_COMM_WORLD);
    int64_t *words = memory_make(kind, WORDS * sizeof *words);
    MPI_Win_attach(first, words, WORDS * sizeof *words);
    MPI_Win_attach(second, words + 1, 8);
    addresses_share(words, there);
    MPI_Win_fence(0, first);
    put_word(first, next_rank(), there[next_rank()], 5);
    MPI_Win_fence(0, first);
    MPI_Win_detach(first, words);
    MPI_Win_free(&first);
    MPI_Win_fence(0, second);
    put_word(second, next_rank(), there[next_rank()] + 8, 6);
    MPI_Win_fence(0, second);
    CHECK_EQUAL(words[0], 5);
    CHECK_EQUAL(words[1], 6);
    MPI_Win_free(&second);
    memory_free(kind, words);
}

/* The origin looks up new memory at a reused address again, whatever it has cached. */
static void detached_memory_can_be_attached_again_in_other_sizes(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t *words = memory_make(kind, WORDS * sizeof *words);
    addresses_share(words, there);
    for (int64_t size = 1; size <= WORDS; size *= 2) {
        CHECK_OK(MPI_Win_attach(win, words, 8 * size));
        MPI_Win_fence(0, win);
        for (int64_t i = 0; i < size; i++)
            put_word(win, next_rank(), there[next_rank()] + 8 * i, 100 * size + i);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        for (int64_t i = 0; i < size; i++)
            CHECK_EQUAL(load_word(&words[i]), 100 * size + i);
        CHECK_OK(MPI_Win_detach(win, words));
        barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
    memory_free(kind, words);
}

static void requests_and_large_counts_reach_attached_memory(enum window_kind kind)
{
    MPI_Aint there[MANY_RANKS];
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int target = next_rank();
    MPI_Win win = dynamic_make(MPI_COMM_WORLD);
    int64_t *words = memory_make(kind, WORDS * sizeof *words), sent[2] = {3, 4}, got[2] = {0},
            old = 0;
    MPI_Win_attach(win, words, WORDS * sizeof *words);
    addresses_share(words, there);
    MPI_Win_lock_all(0, win);
    MPI_Rput(sent, 2, MPI_INT64_T, target, there[target], 2, MPI_INT64_T, win, &requests[0]);
    MPI_Win_flush(target, win); /* without it the put and the addition have no order */
    MPI_Raccumulate(&sent[0], 1, MPI_INT64_T, target, there[target], 1, MPI_INT64_T, MPI_PROD, win,
                    &requests[1]);
    MPI_Rget_accumulate(&sent[1], 1, MPI_INT64_T, &old, 1, MPI_INT64_T, target, there[target] + 8,
                        1, MPI_INT64_T, MPI_SUM, win, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    MPI_Win_flush(target, win);
    MPI_Rget(got, 2, MPI_INT64_T, target, there[target], 2, MPI_INT64_T, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    CHECK_EQUAL(old, 4);
    CHECK_EQUAL(got[0], 9);
    CHECK_EQUAL(got[1], 8);
    MPI_Win_free(&win);
    memory_free(kind, words);
}

static const struct test_case cases[] = {
    CASE(attached_memory_is_reached_by_address, KINDS_MEMORY, 1),
    CASE(static_and_stack_memory_can_be_attached, KIND_ANY, 1),
    CASE(window_has_the_attributes_of_its_flavour, KIND_ANY, 1),
    CASE(access_spans_regions_that_touch, KINDS_MEMORY, 1),
    CASE(holes_of_a_datatype_need_not_be_attached, KINDS_MEMORY, 1),
    CASE(holes_of_a_datatype_need_not_be_mapped, KIND_ANY, 1),
    CASE(datatype_of_addresses_reaches_all_kinds_of_memory, KIND_ANY, 1),
    CASE(atomics_of_all_ranks_add_up, KINDS_MEMORY, 1),
    CASE(thousands_of_regions_are_attached_and_detached, KINDS_MEMORY, 1),
    CASE(table_changes_under_accesses, KINDS_MEMORY, 1),
    CASE(list_over_all_ranks_is_built_without_locks, KINDS_MEMORY, 1),
    CASE(post_and_start_serve_dynamic_windows, KINDS_MEMORY, 1),
    CASE(one_memory_may_be_attached_to_several_windows, KINDS_MEMORY, 1),
    CASE(detached_memory_can_be_attached_again_in_other_sizes, KINDS_MEMORY, 1),
    CASE(requests_and_large_counts_reach_attached_memory, KINDS_MEMORY, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
