/* Info hints: each key at creation and after MPI_Win_set_info, with valid and invalid values, and
 * the windows' behaviour under it. MPI_Win_get_info returns the values in use; a hint never changes
 * the results of operations. A plain MPI program, run by the test rows. */
#include "harness.h"

#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct hint {
    const char *key;
    const char *initial; /* "": no value */
    const char *other;   /* a good value that is not the default */
    const char *bad[4];
    bool creation_only;
};

static const struct hint hints[] = {
    {"no_locks", "false", "true", {"yes", "", "TRUE", "1"}, false},
    {"accumulate_ordering", "rar,raw,war,waw", "none", {"wxw", "rar,none", "rar;raw", "0"}, false},
    {"accumulate_ordering",
     "rar,raw,war,waw",
     "rar,waw",
     {"waw rar", "rarraw", "true", "rar,raw,war,waw,abc"},
     false},
    {"accumulate_ops",
     "same_op_no_op",
     "same_op",
     {"same", "any_op", "same_op,no_op", "true"},
     false},
    {"mpi_accumulate_granularity", "0", "8", {"eight", "-8", "8 bytes", "0x8"}, false},
    {"same_size", "false", "true", {"maybe", "0", "truetrue", "t"}, false},
    {"same_disp_unit", "false", "true", {"maybe", "0", "falsetrue", "f"}, false},
    {"alloc_shared_noncontig", "false", "true", {"2", "no", "on", "tru"}, true},
    {"mpi_minimum_memory_alignment", "64", "4096", {"-64", "64K", "page", "1e3"}, true},
    {"mpi_assert_memory_alloc_kinds",
     "",
     "mpi",
     {"unknown", "mpi:nothing", "12", "cuda:mpi"},
     true},
    {"mpi_memory_alloc_kinds", "", "system", {"gpu", "system:device", "cuda:disk", "0"}, true},
    {"oriel_cuda_stream", "", "0x7f10", {"stream", "-1", "0x", "12 3"}, false},
};

static MPI_Info info_of(const char *key, const char *value)
{
    MPI_Info info;
    MPI_Info_create(&info);
    if (value[0] != '\0')
        MPI_Info_set(info, key, value);
    return info;
}

/* A window of the kind over 64 bytes of each rank. */
static MPI_Win hinted_make(enum window_kind kind, MPI_Info info)
{
    static int64_t words[8];
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    if (kind == KIND_ALLOCATE)
        CHECK_OK(MPI_Win_allocate(sizeof words, 8, info, MPI_COMM_WORLD, &base, &win));
    else if (kind == KIND_SHARED)
        CHECK_OK(MPI_Win_allocate_shared(sizeof words, 8, info, MPI_COMM_WORLD, &base, &win));
    else
        CHECK_OK(MPI_Win_create(words, sizeof words, 8, info, MPI_COMM_WORLD, &win));
    window_watch(win);
    return win;
}

static void hint_expect(MPI_Win win, const char *key, const char *wanted, const char *when)
{
    MPI_Info used = MPI_INFO_NULL;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    CHECK_OK(MPI_Win_get_info(win, &used));
    MPI_Info_get(used, key, MPI_MAX_INFO_VAL, value, &found);
    if (!found)
        value[0] = '\0';
    CHECK(strcmp(value, wanted) == 0, "%s: %s is \"%.100s\", not \"%s\"", when, key, value, wanted);
    MPI_Info_free(&used);
}

static void every_key_has_its_default(enum window_kind kind)
{
    MPI_Win win = hinted_make(kind, MPI_INFO_NULL);
    for (size_t i = 0; i < COUNT_OF(hints); i++)
        hint_expect(win, hints[i].key, hints[i].initial, "without info");
    MPI_Win_free(&win);
}

static void values_given_at_creation_are_in_use(enum window_kind kind)
{
    for (size_t i = 0; i < COUNT_OF(hints); i++) {
        MPI_Info info = info_of(hints[i].key, hints[i].other);
        MPI_Win win = hinted_make(kind, info);
        MPI_Info_free(&info); /* the window does not reference it */
        /* in contiguous memory only the first part is aligned */
        if (kind != KIND_SHARED || world_rank == 0 ||
            strcmp(hints[i].key, "mpi_minimum_memory_alignment") != 0)
            hint_expect(win, hints[i].key, hints[i].other, "at creation");
        for (size_t j = 0; j < COUNT_OF(hints); j++)
            if (strcmp(hints[j].key, hints[i].key) != 0)
                hint_expect(win, hints[j].key, hints[j].initial, hints[i].key);
        MPI_Win_free(&win);
    }
}

static void values_set_later_are_in_use(enum window_kind kind)
{
    MPI_Win win = hinted_make(kind, MPI_INFO_NULL);
    for (size_t i = 0; i < COUNT_OF(hints); i++) {
        MPI_Info info = info_of(hints[i].key, hints[i].other);
        CHECK_OK(MPI_Win_set_info(win, info));
        MPI_Info_free(&info);
        hint_expect(win, hints[i].key, hints[i].creation_only ? hints[i].initial : hints[i].other,
                    "after set_info");
        info = info_of(hints[i].key, hints[i].initial);
        CHECK_OK(MPI_Win_set_info(win, info));
        MPI_Info_free(&info);
        const char *last = hints[i].initial[0] != '\0' || hints[i].creation_only
                               ? hints[i].initial
                               : hints[i].other; /* an empty value resets nothing */
        hint_expect(win, hints[i].key, last, "after set_info back");
    }
    MPI_Win_free(&win);
}

/* The memory does not move: values that only creation reads stay in use. */
static void values_that_creation_read_stay_in_use(enum window_kind kind)
{
    MPI_Info apart = info_of("alloc_shared_noncontig", "true"),
             together = info_of("alloc_shared_noncontig", "false");
    MPI_Win win = hinted_make(kind, apart);
    CHECK_OK(MPI_Win_set_info(win, together));
    hint_expect(win, "alloc_shared_noncontig", "true", "after set_info");
    MPI_Info_free(&apart);
    MPI_Info_free(&together);
    MPI_Win_free(&win);
}

static void values_that_mean_nothing_leave_the_one_in_use(enum window_kind kind)
{
    for (size_t i = 0; i < COUNT_OF(hints); i++)
        for (size_t j = 0; j < COUNT_OF(hints[i].bad); j++) {
            MPI_Info bad = info_of(hints[i].key, hints[i].bad[j]);
            MPI_Info good = info_of(hints[i].key, hints[i].other);
            MPI_Win win = hinted_make(kind, bad);
            hint_expect(win, hints[i].key, hints[i].initial, hints[i].bad[j]);
            if (!hints[i].creation_only)
                CHECK_OK(MPI_Win_set_info(win, good));
            CHECK_OK(MPI_Win_set_info(win, bad));
            hint_expect(win, hints[i].key,
                        hints[i].creation_only ? hints[i].initial : hints[i].other,
                        hints[i].bad[j]);
            MPI_Win_free(&win);
            MPI_Info_free(&bad);
            MPI_Info_free(&good);
        }
}

/* A value of the host's maximum length that begins with a good value. */
static void overlong_values_leave_the_one_in_use(enum window_kind kind)
{
    static char value[MPI_MAX_INFO_VAL];
    for (size_t i = 0; i < COUNT_OF(hints); i++) {
        const char *start = hints[i].other;
        size_t len_bytes = 0;
        while (len_bytes + strlen(start) + 3 < sizeof value && len_bytes + strlen(start) < 220) {
            strcpy(value + len_bytes, start);
            len_bytes += strlen(start);
            if (strchr(start, ','))
                value[len_bytes++] = ',';
        }
        strcpy(value + len_bytes, "?");
        MPI_Info info = info_of(hints[i].key, value);
        MPI_Win win = hinted_make(kind, info);
        hint_expect(win, hints[i].key, hints[i].initial, "a value of 220 bytes");
        MPI_Win_free(&win);
        MPI_Info_free(&info);
    }
}

/* What Oriel does in every window, and who performs operations of other ranks. */
static void windows_tell_what_they_guarantee(enum window_kind kind)
{
    static const char *const guarantees[][2] = {{"oriel_accumulate_mixed", "true"},
                                                {"oriel_accumulate_granularity", "element"},
                                                {"oriel_accumulate_ordering", "rar,raw,war,waw"}};
    MPI_Info info = info_of("accumulate_ordering", "none"), used;
    char memory[MPI_MAX_INFO_VAL + 1] = "", progress[MPI_MAX_INFO_VAL + 1] = "", wanted[16] = "";
    int found = 0, progresses = 0;
    MPI_Info_set(info, "oriel_accumulate_mixed", "false");
    if (!through_oriel())
        harness_skip("the program runs without Oriel");
    MPI_Win win = hinted_make(kind, info);
    for (size_t i = 0; i < COUNT_OF(guarantees) && through_oriel(); i++)
        hint_expect(win, guarantees[i][0], guarantees[i][1], "whatever the hints");
    MPI_Win_get_info(win, &used);
    MPI_Info_get(used, "oriel_memory", MPI_MAX_INFO_VAL, memory, &found);
    MPI_Info_get(used, "oriel_progress", MPI_MAX_INFO_VAL, progress, &progresses);
    if (found && (strstr(memory, "direct") || strstr(memory, "promoted") || strstr(memory, "cma")))
        strcat(wanted, "origin");
    if (found && (strstr(memory, "agent") || strstr(memory, "ucx")))
        strcat(wanted, wanted[0] ? "+thread" : "thread");
    CHECK(!progresses == !found && strcmp(progress, wanted) == 0,
          "oriel_progress is \"%s\", not \"%s\"", progress, wanted);
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

/* The memory policy of the page, or -1. */
static int policy_at(const void *address)
{
    int mode = -1;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0, address, MPOL_F_ADDR) == 0 ? mode : -1;
}

/* Whether the kernel lets a process place memory. */
static bool can_place(void)
{
    unsigned long node = 1;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool can = syscall(SYS_mbind, page, 4096, MPOL_PREFERRED, &node, 64, 0) == 0;
    munmap(page, 4096);
    return can;
}

static MPI_Win placed_make(enum window_kind kind, const char *value, MPI_Aint size_bytes,
                           char **base)
{
    static char bytes[1 << 16];
    MPI_Info info = info_of("oriel_numa_node", value);
    MPI_Win win = MPI_WIN_NULL;
    if (kind == KIND_ALLOCATE)
        CHECK_OK(MPI_Win_allocate(size_bytes, 1, info, MPI_COMM_WORLD, base, &win));
    else if (kind == KIND_SHARED)
        CHECK_OK(MPI_Win_allocate_shared(size_bytes, 1, info, MPI_COMM_WORLD, base, &win));
    else
        CHECK_OK(MPI_Win_create(*base = bytes, size_bytes, 1, info, MPI_COMM_WORLD, &win));
    MPI_Info_free(&info);
    return win;
}

/* Memory is on the NUMA node that the key names, zero, and the policy ends with the window: the
 * next one may get the same memory. */
static void memory_is_where_the_key_says(enum window_kind kind)
{
    static const struct {
        const char *value;
        int mode;
    } cases[] = {{"0", MPOL_PREFERRED}, {"local", MPOL_PREFERRED}, {"interleave", MPOL_INTERLEAVE},
                 {"", MPOL_DEFAULT},    {"999", MPOL_DEFAULT},     {"near", MPOL_DEFAULT},
                 {"-1", MPOL_DEFAULT}};
    static const MPI_Aint sizes[] = {1 << 16, 20000, 64};
    if (!through_oriel() || !can_place())
        harness_skip("no memory can be placed");
    for (size_t i = 0; i < 2 * COUNT_OF(cases) && through_oriel() && can_place(); i++) {
        const char *value = cases[i % COUNT_OF(cases)].value;
        const MPI_Aint size_bytes = sizes[i % COUNT_OF(sizes)];
        char *base;
        MPI_Win win = placed_make(kind, value, size_bytes, &base);
        const bool allocates = kind == KIND_ALLOCATE || kind == KIND_SHARED;
        /* parts of one block that share a page are placed with its first bytes */
        const bool has_page = kind != KIND_SHARED || (-(uintptr_t)base & 4095) < (size_t)size_bytes;
        const int mode = allocates && has_page ? cases[i % COUNT_OF(cases)].mode : MPOL_DEFAULT;
        const char *page = base + (-(uintptr_t)base & 4095);
        if (mode != MPOL_DEFAULT || page < base + size_bytes)
            CHECK(policy_at(page) == mode, "\"%s\": the policy is %d, not %d", value,
                  policy_at(page), mode);
        hint_expect(win, "oriel_numa_node", mode != MPOL_DEFAULT ? value : "", "in effect");
        for (MPI_Aint k = 0; k < size_bytes && allocates; k++)
            if (!CHECK(base[k] == 0, "byte %ld is not zero", (long)k))
                break;
        barrier(MPI_COMM_WORLD);
        memset(base, 0x77, (size_t)size_bytes);
        MPI_Win_free(&win);
    }
}

static void allocated_memory_is_where_the_key_says(enum window_kind kind)
{
    MPI_Info info = info_of("oriel_numa_node", "0");
    char *memory, *again;
    (void)kind;
    if (!through_oriel() || !can_place())
        harness_skip("no memory can be placed");
    for (int i = 0; i < 4 && through_oriel() && can_place(); i++) {
        CHECK_OK(MPI_Alloc_mem(100000, info, &memory));
        CHECK_OK(MPI_Alloc_mem(100000, MPI_INFO_NULL, &again));
        CHECK_EQUAL(policy_at(memory), MPOL_PREFERRED);
        CHECK_EQUAL(policy_at(again), MPOL_DEFAULT);
        memset(memory, 1, 100000);
        MPI_Free_mem(memory);
        MPI_Free_mem(again);
    }
    MPI_Info_free(&info);
}

static void unknown_keys_are_ignored(enum window_kind kind)
{
    MPI_Info info = info_of("nobody_knows_this_key", "true"), used = MPI_INFO_NULL;
    char value[8];
    int found = 1;
    MPI_Info_set(info, "no_lock", "true");
    MPI_Info_set(info, "SAME_SIZE", "true");
    MPI_Win win = hinted_make(kind, info);
    CHECK_OK(MPI_Win_set_info(win, info));
    CHECK_OK(MPI_Win_get_info(win, &used));
    MPI_Info_get(used, "nobody_knows_this_key", 7, value, &found);
    CHECK(!found, "an unknown key is returned as in use");
    hint_expect(win, "no_locks", "false", "with a similar key");
    hint_expect(win, "same_size", "false", "with a key in capitals");
    MPI_Info_free(&used);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

/* The program owns the info that get_info returns: changing or keeping it does not affect the
 * window. */
static void the_info_returned_is_the_programs_own(enum window_kind kind)
{
    MPI_Win win = hinted_make(kind, MPI_INFO_NULL);
    MPI_Info used, keep;
    char value[8] = "";
    int found = 0;
    CHECK_OK(MPI_Win_get_info(win, &used));
    MPI_Info_set(used, "same_size", "true");
    hint_expect(win, "same_size", "false", "after a change of the info returned");
    CHECK_OK(MPI_Win_set_info(win, used));
    hint_expect(win, "same_size", "true", "after setting the info returned");
    MPI_Info_free(&used);
    CHECK_OK(MPI_Win_get_info(win, &keep));
    MPI_Win_free(&win);
    MPI_Info_get(keep, "same_size", 7, value, &found);
    CHECK(found && strcmp(value, "true") == 0, "the info changed when the window was freed");
    MPI_Info_free(&keep);
}

/* One window with the given hints on all ranks; size and unit differ by rank, whatever the hints
 * claim. */
static void unlike_parts_check(const char *key)
{
    MPI_Info info = info_of(key, "true");
    MPI_Aint size_bytes = 64 * (world_rank + 1);
    int unit = 1 << world_rank % 4;
    unsigned char *memory = malloc((size_t)size_bytes + 64);
    MPI_Win win;
    memset(memory, 0, (size_t)size_bytes + 64);
    MPI_Win_create(memory, size_bytes, unit, info, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int target = 0; target < world_size; target++) {
        unsigned char mark = (unsigned char)(world_rank + 1);
        int target_unit = 1 << target % 4;
        MPI_Aint end = 64 * (target + 1) / target_unit;
        CHECK_OK(
            MPI_Put(&mark, 1, MPI_BYTE, target, world_rank % (64 / target_unit), 1, MPI_BYTE, win));
        CHECK_CLASS(MPI_ERR_RMA_RANGE, MPI_Put(&mark, 1, MPI_BYTE, target, end, 1, MPI_BYTE, win));
        CHECK_OK(MPI_Put(&mark, 0, MPI_BYTE, target, end, 0, MPI_BYTE, win));
    }
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    for (int origin = 0; origin < world_size && world_size <= 64 / unit; origin++)
        CHECK_EQUAL(memory[origin * unit], origin + 1);
    for (int i = 0; i < 64; i++)
        if (!CHECK(memory[size_bytes + i] == 0, "%s: byte %d after the window changed", key, i))
            break;
    MPI_Win_free(&win);
    MPI_Info_free(&info);
    free(memory);
}

static void wrong_promises_corrupt_nothing(enum window_kind kind)
{
    (void)kind;
    unlike_parts_check("same_size");
    unlike_parts_check("same_disp_unit");
}

/* A window without locks still has its fences, its groups and a free that needs no epochs. */
static void windows_without_locks_have_fences_and_groups(enum window_kind kind)
{
    MPI_Info info = info_of("no_locks", "true");
    MPI_Win win = hinted_make(kind, info);
    int right = (world_rank + 1) % world_size, left = (world_rank + world_size - 1) % world_size,
        found = 0;
    int64_t value = 30 + world_rank, *words = NULL;
    MPI_Group group;
    MPI_Win_get_attr(win, MPI_WIN_BASE, &words, &found);
    MPI_Win_get_group(win, &group);
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, right, 1, 1, MPI_INT64_T, win));
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    CHECK_EQUAL(words[1], 30 + left);
    CHECK_OK(MPI_Win_post(group, 0, win));
    CHECK_OK(MPI_Win_start(group, 0, win));
    CHECK_OK(MPI_Accumulate(&value, 1, MPI_INT64_T, right, 1, 1, MPI_INT64_T, MPI_SUM, win));
    CHECK_OK(MPI_Win_complete(win));
    CHECK_OK(MPI_Win_wait(win));
    CHECK_EQUAL(words[1], 2 * (30 + left));
    MPI_Group_free(&group);
    CHECK_OK(MPI_Win_free(&win));
    MPI_Info_free(&info);
}

/* Under every hint about accumulates, sums and swaps of all ranks on one word add up. */
static void accumulates_stay_atomic_under_every_hint(enum window_kind kind)
{
    const int rounds = 200;
    static const char *const pairs[][2] = {{"accumulate_ordering", "none"},
                                           {"accumulate_ordering", "rar"},
                                           {"accumulate_ops", "same_op"},
                                           {"mpi_accumulate_granularity", "8"},
                                           {"mpi_accumulate_granularity", "1"}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        MPI_Info info = info_of(pairs[i][0], pairs[i][1]);
        MPI_Win win = hinted_make(kind, info);
        int64_t zero = 0, one = 1, old = 0, total = -1;
        MPI_Win_lock_all(0, win);
        if (world_rank == 0)
            MPI_Accumulate(&zero, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_REPLACE, win);
        MPI_Win_flush_all(win);
        barrier(MPI_COMM_WORLD);
        for (int round = 0; round < rounds; round++) {
            MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, win);
            MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, 0, MPI_SUM, win);
        }
        MPI_Win_flush_all(win);
        barrier(MPI_COMM_WORLD);
        MPI_Fetch_and_op(NULL, &total, MPI_INT64_T, 0, 0, MPI_NO_OP, win);
        MPI_Win_flush(0, win);
        CHECK(total == (int64_t)2 * rounds * world_size, "%s=%s: %lld", pairs[i][0], pairs[i][1],
              (long long)total);
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
        MPI_Info_free(&info);
    }
}

static void alignment_check(const void *base, const char *value, const char *where)
{
    uintptr_t align_bytes = strtoul(value, NULL, 10);
    CHECK((uintptr_t)base % align_bytes == 0, "%s: %p is not aligned to %s", where, base, value);
}

/* Every rank's part, also after odd sizes of earlier parts; a rank without memory has nothing to
 * align. */
static void shared_parts_check(MPI_Info info, const char *value)
{
    MPI_Aint size_bytes = world_rank % 3 == 2 ? 0 : 5 + 100 * world_rank;
    char *base = NULL;
    MPI_Win win;
    if (!ranks_share_memory())
        return;
    MPI_Info_set(info, "alloc_shared_noncontig", "true");
    CHECK_OK(MPI_Win_allocate_shared(size_bytes, 1, info, MPI_COMM_WORLD, &base, &win));
    if (size_bytes > 0) {
        alignment_check(base, value, "MPI_Win_allocate_shared");
        memset(base, world_rank + 1, (size_t)size_bytes);
    }
    barrier(MPI_COMM_WORLD);
    for (MPI_Aint i = 0; i < size_bytes; i++)
        if (!CHECK(base[i] == world_rank + 1, "byte %ld of the part belongs to another rank too",
                   (long)i))
            break;
    barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
}

static void memory_aligned_check(const char *value)
{
    MPI_Info info = info_of("mpi_minimum_memory_alignment", value);
    char *memory[3], *base;
    MPI_Win win;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(MPI_Alloc_mem(77 << 8 * i, info, &memory[i]));
        alignment_check(memory[i], value, "MPI_Alloc_mem");
    }
    for (int i = 0; i < 3; i++)
        MPI_Free_mem(memory[i]);
    CHECK_OK(MPI_Win_allocate(5 + 100 * world_rank, 1, info, MPI_COMM_WORLD, &base, &win));
    alignment_check(base, value, "MPI_Win_allocate");
    MPI_Win_free(&win);
    shared_parts_check(info, value);
    MPI_Info_free(&info);
}

static void memory_has_the_alignment_asked_for(enum window_kind kind)
{
    (void)kind;
    memory_aligned_check("8");
    memory_aligned_check("64");
    memory_aligned_check("512");
    memory_aligned_check("4096");
}

static void alignments_beyond_a_page_are_given(enum window_kind kind)
{
    (void)kind;
    memory_aligned_check("65536");
    memory_aligned_check("2097152");
}

/* MPI-4.1, 13.2.3: of contiguous parts, the first with a size above 0. */
static void the_first_contiguous_part_has_the_alignment_asked_for(enum window_kind kind)
{
    static const char *const values[] = {"64", "256", "4096", "65536"};
    (void)kind;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        MPI_Info info = info_of("mpi_minimum_memory_alignment", values[i]);
        int first = world_size > 1;
        char *base = NULL;
        MPI_Win win;
        CHECK_OK(MPI_Win_allocate_shared(world_rank < first ? 0 : 5, 1, info, MPI_COMM_WORLD, &base,
                                         &win));
        if (world_rank == first)
            alignment_check(base, values[i], "the first part");
        MPI_Win_free(&win);
        MPI_Info_free(&info);
    }
}

/* The memory is contiguous unless all ranks ask otherwise, and each rank's info shows that. */
static void parts_are_contiguous_when_one_rank_has_not_asked(enum window_kind kind)
{
    MPI_Info asked = info_of("alloc_shared_noncontig", "true"), used;
    char *base, value[64] = "";
    int found = 0;
    MPI_Win win;
    (void)kind;
    CHECK_OK(MPI_Win_allocate_shared(100, 1, world_rank == 0 ? asked : MPI_INFO_NULL,
                                     MPI_COMM_WORLD, &base, &win));
    MPI_Win_get_info(win, &used);
    MPI_Info_get(used, "alloc_shared_noncontig", 60, value, &found);
    CHECK(found && strcmp(value, world_size == 1 ? "true" : "false") == 0, "the value in use is %s",
          value);
    MPI_Info_get(used, "mpi_minimum_memory_alignment", 60, value, &found);
    CHECK(found && (uintptr_t)base % strtoul(value, NULL, 10) == 0, "%p is not aligned to %s",
          (void *)base, value);
    MPI_Info_free(&used);
    MPI_Info_free(&asked);
    MPI_Win_free(&win);
}

/* Without the key, each part begins at the end of the one before it, in every rank's address
 * space. */
static void contiguous_parts_follow_byte_by_byte(enum window_kind kind)
{
    char *base, *part, *end = NULL;
    MPI_Aint size_bytes;
    int unit;
    MPI_Win win;
    (void)kind;
    MPI_Win_allocate_shared(world_rank % 3 == 1 ? 0 : 3 + 7 * world_rank, 1, MPI_INFO_NULL,
                            MPI_COMM_WORLD, &base, &win);
    for (int rank = 0; rank < world_size; rank++) {
        CHECK_OK(MPI_Win_shared_query(win, rank, &size_bytes, &unit, &part));
        CHECK_EQUAL(size_bytes, rank % 3 == 1 ? 0 : 3 + 7 * rank);
        if (size_bytes == 0)
            continue;
        CHECK(!end || part == end,
              "rank %d's part begins %ld bytes after the end of the one before", rank,
              (long)(part - end));
        end = part + size_bytes;
    }
    MPI_Win_free(&win);
}

static const struct test_case cases[] = {
    CASE(every_key_has_its_default, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(values_given_at_creation_are_in_use, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(values_set_later_are_in_use, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(values_that_creation_read_stay_in_use, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(values_that_mean_nothing_leave_the_one_in_use, KIND_ALLOCATE | KIND_HEAP, 1),
    CASE(overlong_values_leave_the_one_in_use, KIND_ALLOCATE | KIND_HEAP, 1),
    CASE(windows_tell_what_they_guarantee, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(memory_is_where_the_key_says, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(allocated_memory_is_where_the_key_says, KIND_ANY, 1),
    CASE(unknown_keys_are_ignored, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(the_info_returned_is_the_programs_own, KINDS_BOTH, 1),
    CASE(wrong_promises_corrupt_nothing, KIND_ANY, 1),
    CASE(windows_without_locks_have_fences_and_groups, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(accumulates_stay_atomic_under_every_hint, KIND_ALLOCATE | KIND_SHARED | KIND_HEAP, 1),
    CASE(memory_has_the_alignment_asked_for, KIND_ANY, 1),
    CASE(alignments_beyond_a_page_are_given, KIND_ANY, 1),
    CASE(the_first_contiguous_part_has_the_alignment_asked_for, KIND_ONE_NODE, 1),
    CASE(parts_are_contiguous_when_one_rank_has_not_asked, KIND_ONE_NODE, 1),
    CASE(contiguous_parts_follow_byte_by_byte, KIND_ONE_NODE, 1),
};

int main(int argc, char **argv)
{
    return harness_main(argc, argv, MPI_THREAD_SINGLE, cases, COUNT_OF(cases));
}
