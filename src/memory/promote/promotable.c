/* Checks a mapping's flags against an allow list: a state that promotion does not preserve is
 * refused by name. Stacks are recognised from the kernel's data about each thread. The check runs
 * before any thread is stopped and any page protected.
 *
 * The kernel reports flags only together with page counts, for which it walks the page tables of
 * all lower mappings. The result is therefore cached for a hundred times as long as the query took.
 * A cached result is valid while the mapping keeps its access and its bounds, apart from boundaries
 * that promotion has made.
 *
 * The program may have changed these properties of a whole mapping since the query:
 * - locked: parked_mapping.h checks it again
 * - watched by another userfaultfd: checked again
 * - advice on fork and core files: ignored while the pages are promoted, and in force again
 *   afterwards (parked_mapping.h) */
#include "memory/promote/promotable.h"

#include "base/wait.h"
#include "memory/file.h"
#include "memory/pages.h"
#include "memory/proc_maps.h"
#include "memory/promote/huge_pages.h"
#include "transport/remote_writers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* stack below the caller's frame that a promotion may use */
#define STACK_BELOW (UINT64_C(64) << 10)
/* stack above the frame, where the end of the stack is unknown */
#define STACK_ABOVE     (UINT64_C(16) << 10)
#define ARENA_ALIGN     (UINT64_C(64) << 20) /* glibc's thread arenas start at multiples of this */
#define ARENA_HEAD_MOST 128                  /* bytes before the arena itself */

enum { MAPPING_CACHE_ENTRIES = 64, CACHE_TIME_FACTOR = 100 };

static struct {
    struct oriel_mapping mapping; /* unused where its end is 0 */
    uint64_t until_ns;
} mapping_cache[MAPPING_CACHE_ENTRIES]; /* protected by the caller's mutex */
static size_t mapping_cache_next;

static enum oriel_status mapping_refuse(const struct oriel_mapping *mapping, const char *why)
{
    return oriel_fail(ORIEL_E_OTHER, "the memory at %#lx%s%s is %s", (unsigned long)mapping->start,
                      mapping->name[0] != '\0' ? " " : "", mapping->name, why);
}

/* Whether new pages of a memory file may be huge without a request for each. */
static bool shared_memory_is_huge(void)
{
    char line[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
    if (file == NULL)
        return false;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    return strstr(line, "[always]") != NULL || strstr(line, "[within_size]") != NULL ||
           strstr(line, "[force]") != NULL;
}

static bool has_flag(const struct oriel_mapping *mapping, const char *flag)
{
    return strstr(mapping->flags, flag) != NULL;
}

/* Flags that promotion preserves, or that do not matter: access, accounting, advice on reading and
 * on huge pages. */
static bool is_ordinary_flag(const char *flag)
{
    static const char ordinary[] = "rd wr mr mw me ac nr sr rr hg nh sd mg";
    for (const char *known = ordinary; known < ordinary + sizeof ordinary - 1; known += 3)
        if (memcmp(known, flag, 2) == 0)
            return true;
    return false;
}

static enum oriel_status check_flags(const struct oriel_mapping *mapping)
{
    static const struct {
        const char flag[3];
        const char *why;
    } reasons[] = {
        {"lo", "locked by mlock"},
        {"gd", "a stack that grows"},
        {"ht", "in huge pages of hugetlbfs"},
        {"dc", "not inherited by children (MADV_DONTFORK)"},
        {"wf", "wiped in children (MADV_WIPEONFORK)"},
        {"dd", "left out of core files (MADV_DONTDUMP)"},
        {"um", "watched by another userfaultfd"},
        {"uw", "watched by another userfaultfd"},
        {"ex", "executable"},
        {"gu", "with guard pages (MADV_GUARD_INSTALL), as stacks of threads have"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (has_flag(mapping, reasons[i].flag))
            return mapping_refuse(mapping, reasons[i].why);
    for (const char *flag = mapping->flags; *flag != '\0';) {
        flag += strspn(flag, " ");
        if (strlen(flag) >= 2 && !is_ordinary_flag(flag))
            return mapping_refuse(mapping, "of a kind that promotion does not support");
        flag += strcspn(flag, " ");
    }
    return ORIEL_OK;
}

static enum oriel_status check_mapping(const struct oriel_mapping *mapping, bool huge_allowed)
{
    if (mapping->access[3] != 'p')
        return mapping_refuse(mapping, "already shared");
    if (mapping->access[0] != 'r' || mapping->access[1] != 'w')
        return mapping_refuse(mapping, "not writable");
    if (strncmp(mapping->name, "[stack", 6) == 0)
        return mapping_refuse(mapping, "a stack");
    if (mapping->name[0] == '[' && strcmp(mapping->name, "[heap]") != 0 &&
        strncmp(mapping->name, "[anon:", 6) != 0)
        return mapping_refuse(mapping, "owned by the kernel");
    enum oriel_status status = check_flags(mapping);
    if (status == ORIEL_OK && mapping->huge_bytes > 0 && !huge_allowed &&
        !shared_memory_is_huge() && !oriel_huge_pages_can_collapse())
        return mapping_refuse(
            mapping,
            "in transparent huge pages, which this system does not provide for shared memory");
    return status;
}

/* The memory policy at address: its mode and the first nodes. Without a policy of its own, the
 * mapping has the process's. */
static bool memory_policy_read(uintptr_t address, unsigned flags, int *mode,
                               unsigned long nodes[16])
{
    memset(nodes, 0, 16 * sizeof *nodes);
    return syscall(SYS_get_mempolicy, mode, nodes, 16 * 8 * sizeof *nodes, address, flags) == 0;
}

static bool has_own_policy(uintptr_t address)
{
    enum { AT_ADDRESS = 2 }; /* MPOL_F_ADDR */
    int mode, usual_mode;
    unsigned long nodes[16], usual_nodes[16];
    return memory_policy_read(address, AT_ADDRESS, &mode, nodes) &&
           memory_policy_read(0, 0, &usual_mode, usual_nodes) &&
           (mode != usual_mode || memcmp(nodes, usual_nodes, sizeof nodes) != 0);
}

/* A thread's control block is at the top of its stack, above its thread-local variables. The kernel
 * stores an address inside it, the list of robust mutexes. Below it in the same mapping is the
 * stack; above it is other memory. The initial thread's block is elsewhere, and its stack is named.
 * The kernel writes to that block in a child, as fork does to an arena. */
static enum oriel_status check_stacks(const struct oriel_mapping *mapping, uintptr_t start,
                                      uintptr_t end)
{
    enum oriel_status status = ORIEL_OK;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return oriel_fail(ORIEL_E_OTHER, "cannot list the threads: %s", strerror(errno));
    for (struct dirent *entry = readdir(tasks); entry != NULL && status == ORIEL_OK;
         entry = readdir(tasks)) {
        long tid = strtol(entry->d_name, NULL, 10);
        void *block = NULL;
        size_t len_bytes = 0;
        if (tid <= 0 || syscall(SYS_get_robust_list, tid, &block, &len_bytes) != 0)
            continue;
        uintptr_t at = (uintptr_t)block;
        if (tid == getpid())
            status = at >= start && at < end ? mapping_refuse(mapping, "used by the initial thread")
                                             : ORIEL_OK;
        else if (at >= mapping->start && at < mapping->end && start <= at)
            status = oriel_fail(ORIEL_E_OTHER, "the memory at %#lx may be the stack of thread %ld",
                                (unsigned long)start, tid);
    }
    closedir(tasks);
    return status;
}

/* Whether the page has been touched; true if unknown. */
static bool is_touched(int pagemap_fd, uintptr_t address)
{
    uint64_t entry;
    return pread(pagemap_fd, &entry, sizeof entry,
                 (off_t)(address / ORIEL_PAGE_BYTES * sizeof entry)) != (ssize_t)sizeof entry ||
           (entry & (ORIEL_PAGE_PRESENT | ORIEL_PAGE_SWAPPED)) != 0;
}

/* An arena of glibc's malloc, except the first, starts with the address of its own state, which
 * follows immediately, and with no previous heap. fork writes to that state in the child before any
 * handler runs, while the page is still the parent's. It would count threads that use the arena as
 * gone, and reset its lock.
 *
 * This reads the program's memory, parts of which a sanitiser may have poisoned. An untouched page
 * belongs to no arena and stays untouched: a sparse range has very many. */
__attribute__((no_sanitize("address", "thread"))) static enum oriel_status
check_arenas(const struct oriel_mapping *mapping, uintptr_t start, uintptr_t end)
{
    enum oriel_status status = ORIEL_OK;
    uintptr_t first = (start + ARENA_ALIGN - 1) & ~(uintptr_t)(ARENA_ALIGN - 1);
    if (first < start || first >= end)
        return ORIEL_OK;
    int pagemap_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    for (uintptr_t at = first; at >= start && at < end && status == ORIEL_OK; at += ARENA_ALIGN) {
        const uintptr_t *head = (const uintptr_t *)at;
        if (is_touched(pagemap_fd, at) && head[0] > at && head[0] - at <= ARENA_HEAD_MOST &&
            head[1] == 0)
            status = mapping_refuse(mapping,
                                    "the start of a malloc arena, which fork writes in the child");
    }
    if (pagemap_fd >= 0)
        close(pagemap_fd);
    return status;
}

/* glibc functions without a header: the list of all open streams. */
void _IO_list_lock(void);   /* NOLINT(bugprone-reserved-identifier) */
void _IO_list_unlock(void); /* NOLINT(bugprone-reserved-identifier) */
FILE *_IO_iter_begin(void); /* NOLINT(bugprone-reserved-identifier) */
enum { STREAM_LOCK_BYTES = 16 };

/* Stream locks are in malloc's memory next to the streams. fork resets them in the child, as it
 * does arenas. In a shared page that would also release the lock of the parent's thread, and two
 * threads of the parent could own one stream. A stream that is opened later may still be placed in
 * a promoted page. */
static enum oriel_status check_streams(const struct oriel_mapping *mapping, uintptr_t start,
                                       uintptr_t end)
{
    bool is_there = false;
    _IO_list_lock();
    for (const FILE *stream = _IO_iter_begin(); stream != NULL && !is_there;
         stream = stream->_chain) {
        uintptr_t lock = (uintptr_t)stream->_lock;
        is_there = lock < end && lock + STREAM_LOCK_BYTES > start;
    }
    _IO_list_unlock();
    return is_there ? mapping_refuse(mapping,
                                     "the lock of an open stream, which fork writes in the child")
                    : ORIEL_OK;
}

/* The upper end of the stack above an address on the caller's stack. For a thread other than the
 * initial one, everything up to the stack's end counts, including the control block. Not a byte
 * more counts, because the heap may continue there. */
static uintptr_t stack_top(uintptr_t frame)
{
    uintptr_t top = frame + STACK_ABOVE;
    pthread_attr_t attributes;
    if (gettid() == getpid() || pthread_getattr_np(pthread_self(), &attributes) != 0)
        return top;
    void *start = NULL;
    size_t len_bytes = 0;
    (void)pthread_attr_getstack(&attributes, &start, &len_bytes);
    pthread_attr_destroy(&attributes);
    uintptr_t end = (uintptr_t)start + len_bytes;
    return frame >= (uintptr_t)start && frame < end && end < top ? end : top;
}

/* Refuses memory that promotion itself reads or writes, through this thread, while the barrier is
 * active. */
static enum oriel_status check_own_memory(uintptr_t start, uintptr_t end)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    uintptr_t error = (uintptr_t)&errno;
    uintptr_t block = (uintptr_t)pthread_self(); /* glibc's control block */
    if (start < stack_top(frame) && end > frame - STACK_BELOW)
        return oriel_fail(ORIEL_E_OTHER, "the calling thread's stack is in the range");
    if ((start <= error && end > error) || (start <= block && end > block))
        return oriel_fail(ORIEL_E_OTHER, "the calling thread's own variables are in the range");
    if (oriel_write_barrier_owns(start, end))
        return oriel_fail(ORIEL_E_OTHER, "Oriel's own variables are in the range");
    if (oriel_remote_writers_has_address(start, end))
        return oriel_fail(ORIEL_E_OTHER,
                          "memory of UCX, whose threads are not stopped, is in the range");
    return ORIEL_OK;
}

/* --- kernel data about a mapping, and its cache --- */

struct look {
    struct oriel_mapping first; /* first mapping that overlaps the range; none if its end is 0 */
    bool details;
};

static void mapping_cache_store(const struct oriel_mapping *mapping)
{
    size_t at = 0;
    while (at < MAPPING_CACHE_ENTRIES && mapping_cache[at].mapping.start != mapping->start)
        at++;
    if (at == MAPPING_CACHE_ENTRIES)
        at = mapping_cache_next++ % MAPPING_CACHE_ENTRIES;
    mapping_cache[at].mapping = *mapping;
    mapping_cache[at].until_ns = UINT64_MAX; /* until the query has finished */
}

static bool mapping_collect(const struct oriel_mapping *mapping, void *context)
{
    struct look *look = context;
    if (look->first.end == 0)
        look->first = *mapping;
    if (look->details)
        mapping_cache_store(mapping);
    return look->details;
}

static void mapping_cache_set_expiry(uint64_t from_ns)
{
    uint64_t now_ns = oriel_now_ns();
    for (size_t i = 0; i < MAPPING_CACHE_ENTRIES; i++)
        if (mapping_cache[i].until_ns == UINT64_MAX)
            mapping_cache[i].until_ns = now_ns + CACHE_TIME_FACTOR * (now_ns - from_ns);
}

static void mapping_cache_drop(const struct oriel_mapping *mapping)
{
    for (size_t i = 0; i < MAPPING_CACHE_ENTRIES; i++)
        if (mapping_cache[i].mapping.start <= mapping->start &&
            mapping_cache[i].mapping.end >= mapping->end)
            mapping_cache[i].mapping.end = 0;
}

void oriel_promotable_expire_cache(void)
{
    memset(mapping_cache, 0, sizeof mapping_cache);
}

static bool is_range_start(const struct oriel_promoted_ranges *ranges, uintptr_t address)
{
    size_t at = oriel_promoted_ranges_after(ranges, address);
    return at < ranges->count && ranges->list[at].start == address;
}

static bool is_range_end(const struct oriel_promoted_ranges *ranges, uintptr_t address)
{
    size_t at = oriel_promoted_ranges_after(ranges, address - 1);
    return at < ranges->count && ranges->list[at].end == address;
}

/* Looks up the cached details of a mapping, given its current bounds and access. */
static bool mapping_cache_find(const struct oriel_mapping *now,
                               const struct oriel_promoted_ranges *ranges,
                               struct oriel_mapping *out)
{
    for (size_t i = 0; i < MAPPING_CACHE_ENTRIES; i++) {
        const struct oriel_mapping *then = &mapping_cache[i].mapping;
        if (then->start > now->start || then->end < now->end || then->inode != now->inode)
            continue;
        if (mapping_cache[i].until_ns > oriel_now_ns() &&
            memcmp(then->access, now->access, sizeof now->access) == 0 &&
            (then->start == now->start || is_range_end(ranges, now->start)) &&
            (then->end == now->end || is_range_start(ranges, now->end))) {
            *out = *then;
            out->start = now->start;
            out->end = now->end;
            return true;
        }
    }
    return false;
}

/* Finds the first mapping that overlaps the range, with details. */
static enum oriel_status first_mapping_read(uintptr_t start, uintptr_t end,
                                            const struct oriel_promoted_ranges *ranges,
                                            struct oriel_mapping *out, bool *is_recalled)
{
    struct look look = {.details = false};
    if (!oriel_proc_maps_visit(start, end, false, mapping_collect, &look))
        return oriel_fail(ORIEL_E_OTHER, "cannot read /proc/self/maps: %s", strerror(errno));
    *is_recalled = look.first.end != 0 && mapping_cache_find(&look.first, ranges, out);
    if (*is_recalled)
        return ORIEL_OK;
    uint64_t from_ns = oriel_now_ns();
    look = (struct look){.details = true};
    if (!oriel_proc_maps_visit(start, end, true, mapping_collect, &look))
        return oriel_fail(ORIEL_E_OTHER, "cannot read /proc/self/smaps: %s", strerror(errno));
    mapping_cache_set_expiry(from_ns);
    *out = look.first;
    return ORIEL_OK;
}

enum oriel_status oriel_promotable_check(uintptr_t start, uintptr_t end, bool huge_allowed,
                                         enum oriel_barrier_method method,
                                         const struct oriel_promoted_ranges *ranges,
                                         struct oriel_promotable *out)
{
    struct oriel_mapping mapping;
    bool is_recalled = false;
    *out = (struct oriel_promotable){.end = start};
    enum oriel_status status = check_own_memory(start, end);
    if (status == ORIEL_OK)
        status = first_mapping_read(start, end, ranges, &mapping, &is_recalled);
    if (status != ORIEL_OK)
        return status;
    if (mapping.end <= start || mapping.start > start)
        return oriel_fail(ORIEL_E_OTHER, "nothing is mapped at %#lx", (unsigned long)start);
    out->end = mapping.end < end ? mapping.end : end;
    out->file_backed = mapping.inode != 0;
    out->huge = mapping.huge_bytes > 0;
    status = check_mapping(&mapping, huge_allowed);
    if (status != ORIEL_OK && mapping.huge_bytes == 0)
        mapping_cache_drop(&mapping); /* the program may be about to remove the obstacle */
    if (status == ORIEL_OK && has_own_policy(start))
        status = mapping_refuse(&mapping, "bound to NUMA nodes (mbind)");
    if (status == ORIEL_OK && is_recalled && method == ORIEL_BARRIER_STOP_THREADS &&
        oriel_write_barrier_is_watched(start, out->end - start))
        status = mapping_refuse(&mapping, "watched by another userfaultfd");
    if (status == ORIEL_OK)
        status = check_arenas(&mapping, start, out->end);
    if (status == ORIEL_OK)
        status = check_streams(&mapping, start, out->end);
    return status == ORIEL_OK ? check_stacks(&mapping, start, out->end) : status;
}
