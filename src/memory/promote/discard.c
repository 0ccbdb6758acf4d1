/* Owns the list of promoted ranges that the madvise wrapper reads. Its invariant: between two calls
 * of oriel_discard_publish, each promoted page is in a range of the list. In a forked child these
 * are the pages that were promoted at the fork.
 *
 * The list exists twice, and neither readers nor the writer wait for a lock. A reader may be inside
 * an allocator, in a signal handler, or in a thread that a write barrier has stopped. The writer
 * may be inside the same allocator.
 *   W1 the writer makes the change count of the other copy odd
 *   W2 writes its ranges
 *   W3 makes the count even
 *   W4 makes it the current copy
 *   R1 the reader loads which copy is current
 *   R2 loads its count; if it is odd, starts again
 *   R3 reads the ranges
 *   R4 loads the count again; if it has changed, starts again
 *
 * W3 release -> R2 acquire and W4 release -> R1 acquire: the ranges that R3 reads were written
 * before. W1 -> W2 (release stores) and R3 (acquire loads) -> R4: a reader that sees a range of the
 * next list also sees its odd count. A reader starts again only when two lists were published
 * meanwhile. A reader that interrupts the writer finds the current copy untouched.
 *
 * The list is only a hint: a program may have mapped other memory there since. The kernel reports
 * the actual mappings (proc_maps.h), and only mappings of the memory file are handled specially:
 *   - The owner punches the pages out of the file: they read as zeroes, for peers too.
 *   - A forked child gets anonymous memory in their place, because the file is the parent's. The
 *     same holds for children that run no fork handlers, whose promoted pages are still shared.
 *
 * The program discards the pages: it neither remaps them meanwhile nor creates or frees a window
 * there. */
#include "memory/promote/discard.h"

#include "base/atomic.h"
#include "base/delay.h"
#include "memory/file.h"
#include "memory/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

enum { RANGES = 4096 }; /* further ranges are joined with the last one */

struct range {
    _Atomic uintptr_t start;
    _Atomic uintptr_t end;
};

struct list {
    _Atomic uint32_t changes; /* odd while the writer updates the list */
    _Atomic uint32_t count;
    struct range ranges[RANGES]; /* ascending, with gaps between them */
};

static struct list lists[2];
static _Atomic uint32_t current;
static _Atomic bool has_any;
static dev_t device; /* of the memory file; written before has_any */
static ino_t inode;
static pid_t owner;

/* --- the list --- */

static uintptr_t word_load(const _Atomic uintptr_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

static void word_store(_Atomic uintptr_t *word, uintptr_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

/* Joins neighbours, whichever windows reference them. */
static uint32_t write_ranges(struct list *list, const struct oriel_promoted_ranges *promoted)
{
    uint32_t count = 0;
    for (size_t at = 0; at < promoted->count; at++) {
        const struct oriel_promoted_range *range = &promoted->list[at];
        if (count == RANGES ||
            (count > 0 && word_load(&list->ranges[count - 1].end) == range->start)) {
            word_store(&list->ranges[count - 1].end, range->end);
        } else {
            word_store(&list->ranges[count].start, range->start);
            oriel_delay();
            word_store(&list->ranges[count++].end, range->end);
        }
    }
    return count;
}

/* If the program has closed the file's descriptor, nothing is promoted: the inode stays unknown,
 * and matches nothing. */
static void memory_file_learn(void)
{
    struct stat info;
    if (inode != 0 || !oriel_file_is_open() || fstat(oriel_file_identity()->memory_fd, &info) != 0)
        return;
    device = info.st_dev;
    inode = info.st_ino;
    owner = getpid();
}

void oriel_discard_publish(const struct oriel_promoted_ranges *promoted)
{
    uint32_t other = 1 - oriel_load_relaxed(&current);
    struct list *list = &lists[other];
    uint32_t changes = oriel_load_relaxed(&list->changes);
    memory_file_learn();
    oriel_store_relaxed(&list->changes, changes + 1);                /* W1 */
    oriel_store_release(&list->count, write_ranges(list, promoted)); /* W2 */
    oriel_delay();
    oriel_store_release(&list->changes, changes + 2); /* W3 */
    oriel_delay();
    oriel_store_release(&current, other); /* W4 */
    atomic_store_explicit(&has_any, promoted->count > 0, memory_order_release);
}

/* Whether a listed range overlaps [start, end): the first range that ends after start must start
 * before end. */
static bool list_overlaps(const struct list *list, uintptr_t start, uintptr_t end)
{
    uint32_t low = 0;
    uint32_t count = oriel_load_acquire(&list->count);
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        oriel_delay();
        if (word_load(&list->ranges[middle].end) <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && word_load(&list->ranges[low].start) < end;
}

static bool is_listed(uintptr_t start, uintptr_t end)
{
    for (;;) {
        const struct list *list = &lists[oriel_load_acquire(&current)]; /* R1 */
        oriel_delay();
        uint32_t changes = oriel_load_acquire(&list->changes);                 /* R2 */
        bool found = list_overlaps(list, start, end);                          /* R3 */
        if (changes % 2 == 0 && oriel_load_relaxed(&list->changes) == changes) /* R4 */
            return found;
    }
}

/* --- the advice --- */

struct walk {
    uintptr_t done; /* the advice has been applied up to here */
    uintptr_t end;
    int advice;
    oriel_discard_advise *next;
    bool is_owner;
    bool has_gap; /* a part is unmapped: the rest is advised anyway, as the kernel does */
    bool failed;  /* with errno */
};

static bool discards_contents(int advice)
{
    return advice == MADV_DONTNEED || advice == MADV_DONTNEED_LOCKED || advice == MADV_FREE ||
           advice == MADV_REMOVE;
}

static int protection_of(const struct oriel_mapping *mapping)
{
    return (mapping->access[0] == 'r' ? PROT_READ : 0) |
           (mapping->access[1] == 'w' ? PROT_WRITE : 0) |
           (mapping->access[2] == 'x' ? PROT_EXEC : 0);
}

/* Forwards the advice for memory up to end that is not the memory file's. */
static bool advise_up_to(struct walk *walk, uintptr_t end)
{
    if (walk->done < end && walk->next((void *)walk->done, end - walk->done, walk->advice) != 0) {
        walk->has_gap |= errno == ENOMEM;
        walk->failed = errno != ENOMEM;
    }
    walk->done = end;
    return !walk->failed;
}

/* The kernel does not remove locked pages by address. It does so through the file, as long as the
 * descriptor still refers to it. */
static bool punch_locked(uint64_t file_offset, uint64_t len_bytes)
{
    return oriel_file_is_open() &&
           fallocate(oriel_file_identity()->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                     (off_t)file_offset, (off_t)len_bytes) == 0;
}

/* Private memory cannot be removed from a file. Holes are punched with libc's madvise, because
 * libraries that register memory with a device intercept it. */
static bool pages_zero(const struct walk *walk, uintptr_t start, uint64_t len_bytes,
                       const struct oriel_mapping *mapping)
{
    if (walk->advice == MADV_REMOVE) {
        errno = EINVAL;
        return false;
    }
    if (walk->is_owner)
        return walk->next((void *)start, len_bytes, MADV_REMOVE) == 0 ||
               (walk->advice == MADV_DONTNEED_LOCKED &&
                punch_locked(mapping->file_offset + (start - mapping->start), len_bytes));
    const int protection = protection_of(mapping);
    return mmap((void *)start, len_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

static bool is_memory_file(const struct oriel_mapping *mapping)
{
    return mapping->inode == inode &&
           makedev(mapping->device_major, mapping->device_minor) == device;
}

static bool mapping_discard(const struct oriel_mapping *mapping, void *context)
{
    struct walk *walk = context;
    uintptr_t start = mapping->start > walk->done ? mapping->start : walk->done;
    uintptr_t end = mapping->end < walk->end ? mapping->end : walk->end;
    if (!is_memory_file(mapping))
        return true;
    if (!advise_up_to(walk, start))
        return false;
    walk->failed = !pages_zero(walk, start, end - start, mapping);
    walk->done = end;
    return !walk->failed;
}

/* Where the kernel's list cannot be read (no free descriptor), nothing is discarded. */
static int range_discard(uintptr_t start, uintptr_t end, int advice, oriel_discard_advise *next)
{
    struct walk walk = {
        .done = start, .end = end, .advice = advice, .next = next, .is_owner = getpid() == owner};
    if (!oriel_proc_maps_visit(start, end, false, mapping_discard, &walk)) {
        errno = ENOMEM;
        return -1;
    }
    if (walk.failed || !advise_up_to(&walk, end))
        return -1;
    if (walk.has_gap)
        errno = ENOMEM;
    return walk.has_gap ? -1 : 0;
}

ORIEL_EARLY int oriel_discard(void *start, size_t len_bytes, int advice, oriel_discard_advise *next)
{
    const uintptr_t in_page = ORIEL_PAGE_BYTES - 1;
    uintptr_t from = (uintptr_t)start;
    uintptr_t end = (from + len_bytes + in_page) & ~in_page;
    if (!atomic_load_explicit(&has_any, memory_order_acquire) || !discards_contents(advice) ||
        (from & in_page) != 0 || end <= from || !is_listed(from, end))
        return next(start, len_bytes, advice);
    return range_discard(from, end, advice, next);
}

/* --- mremap --- */

static bool memory_file_find(const struct oriel_mapping *mapping, void *context)
{
    *(bool *)context = is_memory_file(mapping);
    return !*(bool *)context;
}

/* Where the kernel's list cannot be read, memory is not extended. */
ORIEL_EARLY bool oriel_discard_may_remap(const void *start, size_t old_bytes, size_t new_bytes)
{
    const uintptr_t from = (uintptr_t)start;
    const uintptr_t end = from + (old_bytes > 0 ? old_bytes : 1);
    bool has_file = false;
    if (!atomic_load_explicit(&has_any, memory_order_acquire) || new_bytes <= old_bytes ||
        end <= from || !is_listed(from, end) ||
        (oriel_proc_maps_visit(from, end, false, memory_file_find, &has_file) && !has_file))
        return true;
    errno = EFAULT;
    return false;
}
