/* The memory file of this process: a memfd that is mapped whole, its blocks (allocator.h), and its
 * handling of fork. Thread-safe: one mutex.
 *
 * A forked child gets the file as private pages: its writes stay its own, and fork copies nothing.
 * Only blocks that were allocated as shared stay shared. The child neither allocates nor frees: a
 * hole punched by the child would be in the parent's file too.
 *
 * Of all mutexes that are locked across an allocation, fork acquires this one last. Its handler is
 * registered first, and prepare handlers of fork run in reverse order. */
#include "memory/file.h"

#include "base/fork.h"
#include "base/log.h"
#include "base/reserve_fd.h"
#include "base/valgrind.h"
#include "memory/allocator.h"
#include "memory/memory_limits.h"
#include "memory/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    bool started;
    bool is_child; /* this process is a fork of the file's owner */
    struct oriel_identity identity;
} file = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static struct oriel_allocator allocator = {.fd = -1, .used = ORIEL_HASH_TABLE_INIT};

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) & ~(to - 1);
}

void *oriel_file_map(int fd, uint64_t len_bytes)
{
    int access = PROT_READ | PROT_WRITE;
    int how = MAP_SHARED | MAP_NORESERVE;
    void *base = mmap(NULL, len_bytes, access, how, fd, 0);
    if (base == MAP_FAILED || (uintptr_t)base % ORIEL_MAP_ALIGN == 0)
        return base;
    munmap(base, len_bytes);
    char *room = mmap(NULL, len_bytes + ORIEL_MAP_ALIGN, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    char *aligned = (char *)round_up((uintptr_t)room, ORIEL_MAP_ALIGN);
    base = mmap(aligned, len_bytes, access, how | MAP_FIXED, fd, 0);
    if (base == MAP_FAILED) {
        munmap(room, len_bytes + ORIEL_MAP_ALIGN);
        return MAP_FAILED;
    }
    if (aligned > room)
        munmap(room, (size_t)(aligned - room));
    if (aligned < room + ORIEL_MAP_ALIGN)
        munmap(aligned + len_bytes, (size_t)(room + ORIEL_MAP_ALIGN - aligned));
    return base;
}

/* The kernel may refuse the automatic reserve (limited address space): halve it until it fits. */
static enum oriel_status memory_file_map(void)
{
    uint64_t least = ORIEL_PAGE_BYTES * 1024;
    uint64_t wanted = oriel_memory_limits_reserve();
    if (wanted == 0)
        return oriel_fail(ORIEL_E_NO_MEM,
                          "too little address space is left for a memory file (ulimit -v)");
    for (allocator.reserve_bytes = wanted; allocator.reserve_bytes >= least;
         allocator.reserve_bytes /= 2) {
        allocator.reserve_bytes = round_up(allocator.reserve_bytes, oriel_pages_bytes());
        void *base = oriel_file_map(allocator.fd, allocator.reserve_bytes);
        if (base != MAP_FAILED) {
            allocator.base = base;
            return ORIEL_OK;
        }
    }
    return oriel_fail(ORIEL_E_NO_MEM, "cannot map the memory file: %s", strerror(errno));
}

bool oriel_file_is_open(void)
{
    return file.started && oriel_allocator_file_is_open(&allocator);
}

/* --- fork --- */

static void before_fork(void)
{
    pthread_mutex_lock(&file.mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&file.mutex);
}

/* Replaces the parent's pages from start to end of the file by private ones. */
static void range_isolate(uint64_t start, uint64_t end)
{
    if (start < end &&
        mmap(allocator.base + start, end - start, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, allocator.fd, (off_t)start) == MAP_FAILED)
        oriel_note("fork: %lu bytes of window memory stay shared with the parent: %s",
                   (unsigned long)(end - start), strerror(errno));
}

/* Isolates everything except the shared blocks: one mapping per range between them. */
static void isolate_all(void)
{
    uint64_t done = 0;
    for (size_t i = 0; i < allocator.shared.count; i++) {
        const struct oriel_free_extent *shared = &allocator.shared.extents[i];
        range_isolate(done, shared->offset);
        done = shared->offset + shared->len_bytes;
    }
    range_isolate(done, allocator.size_bytes);
    oriel_core_dump_reapply(&allocator.dumps, allocator.size_bytes);
}

static void in_child(void)
{
    if (file.started && !file.is_child) {
        if (oriel_file_is_open())
            isolate_all();
        else
            oriel_note(
                "fork: window memory stays shared with the parent: the program has closed the "
                "memory file's descriptor");
        file.is_child = true;
    }
    pthread_mutex_unlock(&file.mutex);
}

/* --- the file --- */

static enum oriel_status memory_file_create(void)
{
    if (!oriel_identity_make(&file.identity))
        return oriel_fail(ORIEL_E_OTHER, "cannot make a process identity: %s", strerror(errno));
    int fd = memfd_create("oriel", MFD_CLOEXEC);
    if (fd < 0 || !oriel_allocator_set_file(&allocator, fd))
        return oriel_fail(ORIEL_E_NO_MEM, "memfd_create: %s", strerror(errno));
    file.identity.memory_fd = fd;
    allocator.reserve_bytes = ORIEL_FILE_HEAD_BYTES;
    int refused = oriel_allocator_max_file_bytes(&allocator) < ORIEL_FILE_HEAD_BYTES
                      ? EFBIG
                      : oriel_pages_reserve(fd, NULL, 0, ORIEL_FILE_HEAD_BYTES, false);
    if (refused != 0)
        return oriel_fail(ORIEL_E_NO_MEM, "cannot reserve the memory file's first pages: %s",
                          strerror(refused));
    return memory_file_map();
}

static enum oriel_status start_locked(void)
{
    static _Atomic bool watching;
    enum oriel_status status = oriel_fork_register(&watching, before_fork, after_fork, in_child);
    if (status != ORIEL_OK)
        return status;
    status = memory_file_create();
    if (status != ORIEL_OK) {
        if (allocator.fd >= 0)
            close(allocator.fd);
        allocator.fd = -1;
        return status;
    }
    allocator.size_bytes = ORIEL_FILE_HEAD_BYTES;
    oriel_core_dump_open(&allocator.dumps, allocator.base, allocator.reserve_bytes);
    oriel_core_dump_include(&allocator.dumps, 0, ORIEL_FILE_HEAD_BYTES);
    struct oriel_file_header *header = (struct oriel_file_header *)allocator.base;
    header->magic = ORIEL_FILE_MAGIC;
    header->version = ORIEL_FILE_VERSION;
    header->identity = file.identity;
    header->reserve_bytes = allocator.reserve_bytes;
    header->is_under_valgrind = oriel_is_under_valgrind();
    header->owner_address = (uint64_t)(uintptr_t)allocator.base;
    oriel_life_start(oriel_file_life(allocator.base));
    file.started = true;
    oriel_reserve_fd_reserve();
    return ORIEL_OK;
}

static enum oriel_status child_error(void)
{
    return oriel_fail(ORIEL_E_OTHER, "the memory file belongs to the process that forked this one");
}

static void set_state(uint32_t state)
{
    struct oriel_file_header *header = (struct oriel_file_header *)allocator.base;
    atomic_store_explicit(&header->state, state, memory_order_release);
}

enum oriel_status oriel_file_start(void)
{
    pthread_mutex_lock(&file.mutex);
    enum oriel_status status = file.started ? ORIEL_OK : start_locked();
    if (status == ORIEL_OK && file.is_child)
        status = child_error();
    if (status == ORIEL_OK)
        set_state(ORIEL_FILE_RUNNING);
    pthread_mutex_unlock(&file.mutex);
    return status;
}

void oriel_file_finalise(void)
{
    pthread_mutex_lock(&file.mutex);
    if (file.started && !file.is_child) {
        oriel_allocator_drop_cache(&allocator);
        set_state(ORIEL_FILE_FINALISED);
    }
    pthread_mutex_unlock(&file.mutex);
}

const struct oriel_identity *oriel_file_identity(void)
{
    return &file.identity;
}

uid_t oriel_file_owner(void)
{
    return allocator.owner;
}

char *oriel_file_base(void)
{
    return allocator.base;
}

uint64_t oriel_file_reserve(void)
{
    return allocator.reserve_bytes;
}

static enum oriel_status alloc(struct oriel_alloc_request *request, uint64_t *offset)
{
    pthread_mutex_lock(&file.mutex);
    enum oriel_status status =
        file.is_child ? child_error() : oriel_allocator_alloc(&allocator, request, offset);
    pthread_mutex_unlock(&file.mutex);
    return status;
}

enum oriel_status oriel_file_alloc(uint64_t len_bytes, uint64_t align_bytes, uint64_t *offset)
{
    struct oriel_alloc_request request = {
        .len_bytes = len_bytes, .align_bytes = align_bytes, .reserved_bytes = ORIEL_RESERVED_BYTES};
    return alloc(&request, offset);
}

enum oriel_status oriel_file_alloc_mem(uint64_t len_bytes, uint64_t align_bytes, uint64_t *offset)
{
    struct oriel_alloc_request request = {.len_bytes = len_bytes,
                                          .align_bytes = align_bytes,
                                          .reserved_bytes = ORIEL_RESERVED_BYTES,
                                          .flags = ORIEL_BLOCK_USER | ORIEL_BLOCK_ALLOC_MEM};
    return alloc(&request, offset);
}

enum oriel_status oriel_file_alloc_window(uint64_t len_bytes, uint64_t align_bytes,
                                          uint64_t *offset)
{
    struct oriel_alloc_request request = {.len_bytes = len_bytes,
                                          .align_bytes = align_bytes,
                                          .reserved_bytes = ORIEL_RESERVED_BYTES,
                                          .flags = ORIEL_BLOCK_USER};
    enum oriel_status status = alloc(&request, offset);
    if (status == ORIEL_OK && request.is_dirty)
        memset(allocator.base + *offset, 0, request.len_bytes);
    return status;
}

enum oriel_status oriel_file_alloc_shared(uint64_t len_bytes, uint64_t align_bytes,
                                          uint64_t *offset)
{
    struct oriel_alloc_request request = {.len_bytes = len_bytes,
                                          .align_bytes = align_bytes,
                                          .reserved_bytes = ORIEL_RESERVED_BYTES,
                                          .flags = ORIEL_BLOCK_SHARED};
    return alloc(&request, offset);
}

enum oriel_status oriel_file_alloc_parts(const struct oriel_file_part *parts, size_t count,
                                         uint64_t align_bytes, uint64_t *offset)
{
    struct oriel_alloc_request request = {.align_bytes = align_bytes,
                                          .reserved_bytes = ORIEL_RESERVED_BYTES,
                                          .flags = ORIEL_BLOCK_SHARED,
                                          .parts = parts,
                                          .part_count = count};
    for (size_t i = 0; i < count; i++)
        if (__builtin_add_overflow(request.len_bytes, parts[i].len_bytes, &request.len_bytes))
            return oriel_fail(ORIEL_E_NO_MEM, "the sizes of all parts overflow");
    return alloc(&request, offset);
}

enum oriel_status oriel_file_alloc_sparse(uint64_t len_bytes, uint64_t *offset)
{
    struct oriel_alloc_request request = {.len_bytes = len_bytes};
    return alloc(&request, offset);
}

bool oriel_file_has_page(const void *start, uint64_t len_bytes)
{
    const uint64_t in_page = -(uintptr_t)start & (oriel_pages_bytes() - 1);
    return in_page < len_bytes;
}

bool oriel_file_place(uint64_t offset, uint64_t at, uint64_t len_bytes,
                      struct oriel_pages_placement placement)
{
    pthread_mutex_lock(&file.mutex);
    bool placed =
        !file.is_child && oriel_allocator_place(&allocator, offset, at, len_bytes, placement);
    pthread_mutex_unlock(&file.mutex);
    return placed;
}

static bool free_block(uint64_t offset, uint64_t flags)
{
    pthread_mutex_lock(&file.mutex);
    bool is_block = file.is_child || oriel_allocator_free(&allocator, offset, flags);
    pthread_mutex_unlock(&file.mutex);
    return is_block;
}

bool oriel_file_free(uint64_t offset)
{
    return free_block(offset, 0);
}

bool oriel_file_free_mem(uint64_t offset)
{
    return free_block(offset, ORIEL_BLOCK_ALLOC_MEM);
}

struct oriel_file_usage oriel_file_usage(void)
{
    pthread_mutex_lock(&file.mutex);
    const struct oriel_file_usage usage = {.file_bytes = allocator.size_bytes,
                                           .block_bytes = allocator.used_bytes};
    pthread_mutex_unlock(&file.mutex);
    return usage;
}

bool oriel_file_find(const void *address, uint64_t len_bytes, uint64_t *offset)
{
    uintptr_t start = (uintptr_t)address;
    uintptr_t base = (uintptr_t)allocator.base;
    uint64_t size_bytes = allocator.size_bytes;
    if (!file.started || start < base || start - base >= size_bytes ||
        len_bytes > size_bytes - (start - base))
        return false;
    *offset = start - base;
    return true;
}
