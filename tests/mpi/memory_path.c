/* Expectations follow from three facts that the test determines itself: whether the job runs
 * through Oriel, whether the kernel grants this process userfaultfd in full, and the boundaries of
 * the memory's pages. */
#define _GNU_SOURCE
#include "memory_path.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum promotion promotion_here(void)
{
    static int known = -1;
    const char *option = getenv("ORIEL_PROMOTE");
    if (known >= 0)
        return (enum promotion)known;
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        fd = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
    known = fd >= 0 ? PROMOTION_OUTWARD : PROMOTION_INWARD;
    if (!through_oriel() || (option && strcmp(option, "never") == 0))
        known = PROMOTION_NONE;
    if (fd >= 0)
        close(fd);
    return (enum promotion)known;
}

/* The copier: the kernel, unless it refuses or is disabled; then threads of the targets. */
static const char *copying(void)
{
    const char *option = getenv("ORIEL_CMA");
    char from = 0, to = 0;
    struct iovec here = {&to, 1}, there = {&from, 1};
    bool refused = process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1;
    return refused || (option && strcmp(option, "never") == 0) ? "agent" : "cma";
}

/* Over several nodes "ucx" ends the list; nothing remains for a rank that is alone on its node. */
static void remove_network_path(struct memory_path *path)
{
    size_t len = strlen(path->list);
    bool is_last = len >= 3 && strcmp(path->list + len - 3, "ucx") == 0;
    if (ranks_share_memory() || !CHECK(is_last, "reached by %s over several nodes", path->list))
        return;
    path->list[len > 3 ? len - 4 : 0] = '\0';
    path->is_known = len > 3;
}

static bool has_all_ranks(MPI_Win win)
{
    MPI_Group group;
    int ranks = 0;
    MPI_Win_get_group(win, &group);
    MPI_Group_size(group, &ranks);
    MPI_Group_free(&group);
    return ranks == world_size;
}

/* A window over MPI_COMM_WORLD, or over ranks of one node. */
struct memory_path memory_path_read(MPI_Win win)
{
    struct memory_path path = {.is_known = false};
    MPI_Info info = MPI_INFO_NULL;
    int found = 0;
    if (!through_oriel())
        return path;
    MPI_Win_get_info(win, &info);
    MPI_Info_get(info, "oriel_memory", (int)sizeof path.list - 1, path.list, &found);
    path.is_known = found != 0;
    MPI_Info_get(info, "oriel_memory_reason", MPI_MAX_INFO_VAL < 999 ? MPI_MAX_INFO_VAL : 999,
                 path.reason, &found);
    if (!found)
        path.reason[0] = '\0';
    MPI_Info_free(&info);
    if (CHECK(path.is_known, "MPI_Win_get_info has no key oriel_memory") && has_all_ranks(win))
        remove_network_path(&path);
    return path;
}

bool check_path(MPI_Win win, const char *list)
{
    struct memory_path path = memory_path_read(win);
    return !path.is_known || CHECK(strcmp(path.list, list) == 0, "reached by %s (%s), wanted %s",
                                   path.list, path.reason, list);
}

bool is_promoted(MPI_Win win)
{
    return strstr(memory_path_read(win).list, "promoted") != NULL;
}

static bool has_words(const char *text, const char *words)
{
    char copy[256];
    char *rest = NULL;
    snprintf(copy, sizeof copy, "%s", words);
    if (words[0] == '\0')
        return text[0] != '\0';
    for (char *word = strtok_r(copy, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        if (strstr(text, word))
            return true;
    return false;
}

bool promotes_always(void)
{
    const char *option = getenv("ORIEL_PROMOTE");
    return promotion_here() != PROMOTION_NONE && option && strcmp(option, "always") == 0;
}

/* By default Oriel does not promote for windows that are made and freed all the time. */
static bool is_too_expensive(const struct memory_path *path)
{
    return !promotes_always() && strcmp(path->list, copying()) == 0 &&
           strstr(path->reason, "too much of the run time");
}

bool check_copied(MPI_Win win, const char *why)
{
    struct memory_path path = memory_path_read(win);
    if (!path.is_known || is_too_expensive(&path))
        return true;
    if (promotion_here() == PROMOTION_NONE)
        why = "";
    return CHECK(strcmp(path.list, copying()) == 0, "reached by %s, wanted %s because of: %s",
                 path.list, copying(), why) &&
           CHECK(has_words(path.reason, why), "the reason for copying is \"%s\", wanted: %s",
                 path.reason, why);
}

/* Nodes that put all large memory into huge pages may refuse it. */
static bool is_refused_as_huge(const struct memory_path *path)
{
    char line[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    if (file && !fgets(line, sizeof line, file))
        line[0] = '\0';
    if (file)
        fclose(file);
    return strstr(line, "[always]") && strstr(path->reason, "huge pages");
}

/* ThreadSanitizer has a thread of its own, which no signal stops. */
static bool is_refused_for_a_sanitiser(const struct memory_path *path)
{
#if defined __SANITIZE_THREAD__
    return strstr(path->reason, "blocks the signals");
#else
    (void)path;
    return false;
#endif
}

static bool check_pages(MPI_Win win, const void *base, size_t len_bytes, bool inward)
{
    struct memory_path path = memory_path_read(win);
    uintptr_t start = (uintptr_t)base, end = start + len_bytes;
    bool has_pages = ((start + PAGE - 1) & ~(uintptr_t)(PAGE - 1)) < (end & ~(uintptr_t)(PAGE - 1));
    char wanted[64];
    if (promotion_here() == PROMOTION_NONE || (inward && !has_pages))
        return check_copied(win, "no whole page");
    if (!path.is_known || is_too_expensive(&path) || is_refused_as_huge(&path) ||
        is_refused_for_a_sanitiser(&path))
        return true;
    snprintf(wanted, sizeof wanted, "%s%s%s", "promoted", inward && (start | end) % PAGE ? "+" : "",
             inward && (start | end) % PAGE ? copying() : "");
    return CHECK(strcmp(path.list, wanted) == 0, "%zu bytes at %p: reached by %s (%s), wanted %s",
                 len_bytes, base, path.list, path.reason, wanted);
}

bool check_promoted(MPI_Win win, const void *base, size_t len_bytes)
{
    return check_pages(win, base, len_bytes, promotion_here() == PROMOTION_INWARD);
}

bool check_promoted_inward(MPI_Win win, const void *base, size_t len_bytes)
{
    return check_pages(win, base, len_bytes, true);
}

MPI_Win window_over(void *base, size_t len_bytes)
{
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_create(base, (MPI_Aint)len_bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window_watch(win);
    return win;
}

char *pages_map(size_t len_bytes)
{
    void *memory =
        mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return CHECK(memory != MAP_FAILED, "mmap of %zu bytes failed", len_bytes) ? memory : NULL;
}

/* --- operations at boundary offsets --- */

enum { OFFSETS = 7, RANKS_MOST = 64, ROUNDS = 4, BLOCK_BYTES = 1 << 17 };

struct part {
    MPI_Aint base;
    MPI_Aint len_bytes;
};

/* Offsets of words that do not overlap. */
static int offsets_find(const struct part *part, MPI_Aint offsets[OFFSETS])
{
    MPI_Aint in_page = part->base & (PAGE - 1);
    MPI_Aint page = (PAGE - in_page) & (PAGE - 1);
    MPI_Aint last_page = ((part->base + part->len_bytes) & ~(MPI_Aint)(PAGE - 1)) - part->base;
    const MPI_Aint wanted[OFFSETS] = {0,
                                      part->len_bytes - 8,
                                      part->len_bytes / 2,
                                      page - 4,
                                      last_page - 3,
                                      page + PAGE,
                                      part->len_bytes / 3 & ~(MPI_Aint)7};
    int count = 0;
    for (int i = 0; i < OFFSETS; i++) {
        bool fits = wanted[i] >= 0 && wanted[i] + 8 <= part->len_bytes;
        for (int k = 0; k < count; k++)
            fits = fits && (wanted[i] >= offsets[k] + 8 || wanted[i] + 8 <= offsets[k]);
        if (fits)
            offsets[count++] = wanted[i];
    }
    return count;
}

static void swap_until_added(MPI_Win win, int target, MPI_Aint offset, int64_t addend)
{
    int64_t seen = 0, wanted, next;
    do {
        wanted = seen;
        next = wanted + addend;
        MPI_Compare_and_swap(&next, &wanted, &seen, MPI_INT64_T, target, offset, win);
        MPI_Win_flush(target, win);
    } while (seen != wanted); /* a failed call leaves seen unchanged */
}

static void add_to_words(MPI_Win win, int target, const MPI_Aint *offsets, int count)
{
    const int64_t one = 1, share = world_rank + 1;
    int64_t before;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < count; i++) {
            MPI_Accumulate(&share, 1, MPI_INT64_T, target, offsets[i], 1, MPI_INT64_T, MPI_SUM,
                           win);
            MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, offsets[i], MPI_SUM, win);
            MPI_Win_flush(target, win);
            if (through_oriel()) /* one host crashes here */
                swap_until_added(win, target, offsets[i], 1);
        }
    }
}

static void sums_check(MPI_Win win, char *base, const struct part *parts)
{
    MPI_Aint offsets[RANKS_MOST][OFFSETS];
    int counts[RANKS_MOST];
    int64_t first[OFFSETS], now;
    for (int rank = 0; rank < world_size; rank++)
        counts[rank] = offsets_find(&parts[rank], offsets[rank]);
    for (int i = 0; i < counts[world_rank]; i++)
        memcpy(&first[i], base + offsets[world_rank][i], sizeof now);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < world_size; i++)
        add_to_words(win, (world_rank + i) % world_size, offsets[(world_rank + i) % world_size],
                     counts[(world_rank + i) % world_size]);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    int64_t added = (through_oriel() ? 2 : 1) * world_size + world_size * (world_size + 1) / 2;
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
    for (int i = 0; i < counts[world_rank]; i++) {
        memcpy(&now, base + offsets[world_rank][i], sizeof now);
        CHECK(now == first[i] + ROUNDS * added,
              "the word at %ld of %ld bytes at %#lx counted %ld, not %ld",
              (long)offsets[world_rank][i], (long)parts[world_rank].len_bytes,
              (long)parts[world_rank].base, (long)(now - first[i]), (long)(ROUNDS * added));
    }
    MPI_Win_unlock(world_rank, win);
    barrier(MPI_COMM_WORLD);
}

static unsigned char byte_at(int round, int writer, MPI_Aint i)
{
    return (unsigned char)(31 * round + 7 * writer + i + i / 251);
}

/* Puts and reads back the first and the last bytes of a target's memory, or all. */
static void put_and_get_ends(MPI_Win win, int target, const struct part *part, int round,
                             unsigned char *block)
{
    MPI_Aint len_bytes = part->len_bytes < BLOCK_BYTES ? part->len_bytes : BLOCK_BYTES;
    for (int end = 0; end < (part->len_bytes > len_bytes ? 2 : 1); end++) {
        MPI_Aint disp = end ? part->len_bytes - len_bytes : 0;
        for (MPI_Aint i = 0; i < len_bytes; i++)
            block[i] = byte_at(round, world_rank, disp + i);
        MPI_Put(block, (int)len_bytes, MPI_BYTE, target, disp, (int)len_bytes, MPI_BYTE, win);
        MPI_Win_flush(target, win);
        memset(block, 0, BLOCK_BYTES);
        MPI_Get(block, (int)len_bytes, MPI_BYTE, target, disp, (int)len_bytes, MPI_BYTE, win);
        MPI_Win_flush(target, win);
        for (MPI_Aint i = 0; i < len_bytes; i++)
            if (!CHECK(block[i] == byte_at(round, world_rank, disp + i),
                       "byte %ld of rank %d is not returned", (long)(disp + i), target))
                return;
    }
}

static void ends_check(MPI_Win win, const char *base, const struct part *parts)
{
    const struct part *mine = &parts[world_rank];
    unsigned char *block = malloc(BLOCK_BYTES);
    const int distances[] = {1, 0, world_size - 1};
    for (int round = 0; round < 3; round++) {
        int target = (world_rank + distances[round]) % world_size;
        int writer = (world_rank - distances[round] + world_size) % world_size;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        put_and_get_ends(win, target, &parts[target], round, block);
        MPI_Win_unlock(target, win);
        barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
        for (MPI_Aint i = 0; i < mine->len_bytes; i++) {
            if (i == BLOCK_BYTES && mine->len_bytes > 2 * BLOCK_BYTES)
                i = mine->len_bytes - BLOCK_BYTES;
            if (!CHECK((unsigned char)base[i] == byte_at(round, writer, i),
                       "byte %ld of %ld at %#lx is %d", (long)i, (long)mine->len_bytes,
                       (long)mine->base, (unsigned char)base[i]))
                break;
        }
        MPI_Win_unlock(world_rank, win);
        barrier(MPI_COMM_WORLD);
    }
    free(block);
}

/* Less than a word: the first byte. */
static void byte_check(MPI_Win win, const char *base, const struct part *parts)
{
    const signed char one = 1;
    char first = parts[world_rank].len_bytes > 0 ? base[0] : 0;
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int target = 0; target < world_size; target++)
        if (parts[target].len_bytes > 0)
            MPI_Accumulate(&one, 1, MPI_INT8_T, target, 0, 1, MPI_INT8_T, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, world_rank, 0, win);
    if (parts[world_rank].len_bytes > 0)
        CHECK_EQUAL((unsigned char)(base[0] - first), world_size);
    MPI_Win_unlock(world_rank, win);
    barrier(MPI_COMM_WORLD);
}

void window_exercise(MPI_Win win, void *base, size_t len_bytes)
{
    struct part mine = {(MPI_Aint)(uintptr_t)base, (MPI_Aint)len_bytes}, parts[RANKS_MOST];
    if (!CHECK(world_size <= RANKS_MOST, "%d ranks are too many", world_size))
        return;
    MPI_Allgather(&mine, 2, MPI_AINT, parts, 2, MPI_AINT, MPI_COMM_WORLD);
    byte_check(win, base, parts);
    sums_check(win, base, parts);
    ends_check(win, base, parts);
}
