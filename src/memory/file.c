/* The own memory file: two arenas over one memfd.  Large blocks are whole pages, reserved when they are made and punched
 * out when they are freed; small ones share slabs whose pages stay reserved and are cleared when freed.  Thread-safe by one
 * mutex; windows and MPI_Alloc_mem call. */
#include "memory/file.h"

#include "base/log.h"
#include "base/table.h"
#include "memory/arena.h"
#include "memory/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define SLAB_BYTES (UINT64_C(256) << 10)
#define SMALL_BYTES (UINT64_C(32) << 10) /* blocks below it come from slabs */
#define COMPARED_BYTES (UINT64_C(1) << 20) /* from here on the available memory is looked at first */
#define GROWTH_BYTES (UINT64_C(16) << 20)

static struct {
    pthread_mutex_t mutex;
    bool started;
    int fd;
    char *base;
    uint64_t reserve_bytes;
    uint64_t size_bytes; /* of the file; what lies behind it does not exist yet */
    struct oriel_arena large;
    struct oriel_arena small;
    struct oriel_table used; /* offset -> length, in the pointer's bits */
    struct oriel_identity identity;
} file = {.mutex = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .used = ORIEL_TABLE_INIT};

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) & ~(to - 1);
}

/* How large the file may become: a longer one would not fit the reserve, or end the process (RLIMIT_FSIZE). */
static uint64_t largest_file(void)
{
    struct rlimit limit;
    uint64_t most = file.reserve_bytes;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < most)
        most = limit.rlim_cur & ~(ORIEL_PAGE_BYTES - 1);
    return most;
}

void *oriel_file_map(int fd, uint64_t len_bytes)
{
    int access = PROT_READ | PROT_WRITE;
    int how = MAP_SHARED | MAP_NORESERVE;
    void *base = mmap(NULL, len_bytes, access, how, fd, 0);
    if (base == MAP_FAILED || (uintptr_t)base % ORIEL_MAP_ALIGN == 0)
        return base;
    munmap(base, len_bytes);
    char *room = mmap(NULL, len_bytes + ORIEL_MAP_ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
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

/* A machine may refuse the automatic reserve (limited address space): halve it until it fits. */
static enum oriel_status map_file(void)
{
    uint64_t least = ORIEL_PAGE_BYTES * 1024;
    for (file.reserve_bytes = oriel_limit_reserve(); file.reserve_bytes >= least; file.reserve_bytes /= 2) {
        file.reserve_bytes = round_up(file.reserve_bytes, ORIEL_PAGE_BYTES);
        void *base = oriel_file_map(file.fd, file.reserve_bytes);
        if (base != MAP_FAILED) {
            file.base = base;
            return ORIEL_OK;
        }
    }
    return oriel_fail(ORIEL_E_NO_MEM, "cannot map the memory file: %s", strerror(errno));
}

static enum oriel_status start_locked(void)
{
    if (!oriel_identity_make(&file.identity))
        return oriel_fail(ORIEL_E_OTHER, "cannot make a process identity: %s", strerror(errno));
    file.fd = memfd_create("oriel", MFD_CLOEXEC);
    if (file.fd < 0)
        return oriel_fail(ORIEL_E_NO_MEM, "memfd_create: %s", strerror(errno));
    file.identity.memory_fd = file.fd;
    enum oriel_status status = ORIEL_OK;
    file.reserve_bytes = ORIEL_PAGE_BYTES;
    int refused = largest_file() < ORIEL_PAGE_BYTES ? EFBIG : posix_fallocate(file.fd, 0, (off_t)ORIEL_PAGE_BYTES);
    if (refused != 0)
        status = oriel_fail(ORIEL_E_NO_MEM, "cannot reserve the memory file's first page: %s", strerror(refused));
    if (status == ORIEL_OK)
        status = map_file();
    if (status != ORIEL_OK) {
        close(file.fd);
        return status;
    }
    file.size_bytes = ORIEL_PAGE_BYTES;
    struct oriel_file_header *header = (struct oriel_file_header *)file.base;
    header->magic = ORIEL_FILE_MAGIC;
    header->version = ORIEL_FILE_VERSION;
    header->identity = file.identity;
    header->reserve_bytes = file.reserve_bytes;
    header->owner_address = (uint64_t)(uintptr_t)file.base;
    file.started = true;
    return ORIEL_OK;
}

static void set_state(uint32_t state)
{
    struct oriel_file_header *header = (struct oriel_file_header *)file.base;
    atomic_store_explicit(&header->state, state, memory_order_release);
}

enum oriel_status oriel_file_start(void)
{
    pthread_mutex_lock(&file.mutex);
    enum oriel_status status = file.started ? ORIEL_OK : start_locked();
    if (status == ORIEL_OK)
        set_state(ORIEL_FILE_RUNNING);
    pthread_mutex_unlock(&file.mutex);
    return status;
}

void oriel_file_leave(void)
{
    pthread_mutex_lock(&file.mutex);
    if (file.started)
        set_state(ORIEL_FILE_LEFT);
    pthread_mutex_unlock(&file.mutex);
}

const struct oriel_identity *oriel_file_identity(void)
{
    return &file.identity;
}

char *oriel_file_base(void)
{
    return file.base;
}

uint64_t oriel_file_reserve(void)
{
    return file.reserve_bytes;
}

static bool grow_file(uint64_t least_bytes)
{
    uint64_t growth = least_bytes > GROWTH_BYTES ? round_up(least_bytes, ORIEL_PAGE_BYTES) : GROWTH_BYTES;
    uint64_t most = largest_file();
    uint64_t room = most > file.size_bytes ? most - file.size_bytes : 0;
    if (least_bytes > room)
        return false;
    if (growth > room)
        growth = room;
    if (!oriel_arena_prepare(&file.large) || ftruncate(file.fd, (off_t)(file.size_bytes + growth)) != 0)
        return false;
    file.size_bytes += growth;
    return oriel_arena_give(&file.large, file.size_bytes - growth, growth);
}

static void punch(uint64_t offset, uint64_t len_bytes)
{
    if (fallocate(file.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len_bytes) != 0)
        memset(file.base + offset, 0, len_bytes); /* free memory is zero all the same */
}

/* Step by step: older kernels give up a reservation at every signal, and a long one might never come to its end. */
static int reserve_pages(uint64_t offset, uint64_t len_bytes)
{
    for (uint64_t done = 0; done < len_bytes;) {
        uint64_t now = len_bytes - done < GROWTH_BYTES ? len_bytes - done : GROWTH_BYTES;
        if (fallocate(file.fd, 0, (off_t)(offset + done), (off_t)now) == 0)
            done += now;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* Either nobody could give that much, or only this file cannot: the host then may. */
static enum oriel_status no_room(uint64_t len_bytes)
{
    uint64_t available_bytes = oriel_limit_available();
    if (len_bytes > available_bytes)
        return oriel_fail(ORIEL_E_NO_MEM, "%lu bytes asked for, %lu available", (unsigned long)len_bytes,
                          (unsigned long)available_bytes);
    return oriel_fail(ORIEL_E_OTHER, "%lu bytes do not fit into the memory file of at most %lu (ORIEL_RESERVE, ulimit -f)",
                      (unsigned long)len_bytes, (unsigned long)largest_file());
}

/* Whole pages, physically reserved when they are at most reserved_bytes. */
static enum oriel_status take_pages(uint64_t len_bytes, uint64_t align_bytes, uint64_t reserved_bytes, uint64_t *offset)
{
    if (align_bytes < ORIEL_PAGE_BYTES)
        align_bytes = ORIEL_PAGE_BYTES;
    if (reserved_bytes > 0 && len_bytes >= COMPARED_BYTES && len_bytes > oriel_limit_available())
        return no_room(len_bytes);
    if (!oriel_arena_take(&file.large, len_bytes, align_bytes, offset)) {
        if (!grow_file(len_bytes + align_bytes) || !oriel_arena_take(&file.large, len_bytes, align_bytes, offset))
            return no_room(len_bytes);
    }
    int error = len_bytes <= reserved_bytes ? reserve_pages(*offset, len_bytes) : 0;
    if (error != 0) {
        punch(*offset, len_bytes);
        oriel_arena_give(&file.large, *offset, len_bytes);
        return oriel_fail(ORIEL_E_NO_MEM, "cannot reserve %lu bytes: %s", (unsigned long)len_bytes, strerror(error));
    }
    return ORIEL_OK;
}

static enum oriel_status take_small(uint64_t len_bytes, uint64_t align_bytes, uint64_t *offset)
{
    if (oriel_arena_take(&file.small, len_bytes, align_bytes, offset))
        return ORIEL_OK;
    uint64_t slab;
    enum oriel_status status = take_pages(SLAB_BYTES, ORIEL_PAGE_BYTES, SLAB_BYTES, &slab);
    if (status != ORIEL_OK)
        return status;
    if (!oriel_arena_give(&file.small, slab, SLAB_BYTES) || !oriel_arena_take(&file.small, len_bytes, align_bytes, offset))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the list of free blocks");
    return ORIEL_OK;
}

static bool is_small(uint64_t len_bytes)
{
    return len_bytes < SMALL_BYTES;
}

static void give_back(uint64_t offset, uint64_t len_bytes)
{
    if (is_small(len_bytes)) {
        memset(file.base + offset, 0, len_bytes);
        oriel_arena_give(&file.small, offset, len_bytes);
    } else {
        punch(offset, len_bytes);
        oriel_arena_give(&file.large, offset, len_bytes);
    }
}

static enum oriel_status alloc_locked(uint64_t len_bytes, uint64_t align_bytes, uint64_t reserved_bytes, uint64_t *offset)
{
    if (len_bytes > file.reserve_bytes || align_bytes > file.reserve_bytes)
        return no_room(len_bytes);
    if (align_bytes < 64)
        align_bytes = 64;
    len_bytes = round_up(len_bytes > 0 ? len_bytes : 1, 64);
    if (!is_small(len_bytes) || align_bytes > SMALL_BYTES)
        len_bytes = round_up(len_bytes < SMALL_BYTES ? SMALL_BYTES : len_bytes, ORIEL_PAGE_BYTES);
    enum oriel_status status = is_small(len_bytes) ? take_small(len_bytes, align_bytes, offset)
                                                   : take_pages(len_bytes, align_bytes, reserved_bytes, offset);
    if (status == ORIEL_OK && !oriel_table_set(&file.used, *offset, (void *)(uintptr_t)len_bytes)) {
        give_back(*offset, len_bytes);
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of allocations");
    }
    return status;
}

static enum oriel_status alloc(uint64_t len_bytes, uint64_t align_bytes, uint64_t reserved_bytes, uint64_t *offset)
{
    pthread_mutex_lock(&file.mutex);
    enum oriel_status status = alloc_locked(len_bytes, align_bytes, reserved_bytes, offset);
    pthread_mutex_unlock(&file.mutex);
    return status;
}

enum oriel_status oriel_file_alloc(uint64_t len_bytes, uint64_t align_bytes, uint64_t *offset)
{
    return alloc(len_bytes, align_bytes, ORIEL_RESERVED_BYTES, offset);
}

enum oriel_status oriel_file_alloc_sparse(uint64_t len_bytes, uint64_t *offset)
{
    return alloc(len_bytes, 64, 0, offset);
}

bool oriel_file_free(uint64_t offset)
{
    pthread_mutex_lock(&file.mutex);
    void *value = oriel_table_find(&file.used, offset);
    if (value != NULL) {
        oriel_table_remove(&file.used, offset, value);
        give_back(offset, (uint64_t)(uintptr_t)value);
    }
    pthread_mutex_unlock(&file.mutex);
    return value != NULL;
}

bool oriel_file_find(const void *address, uint64_t len_bytes, uint64_t *offset)
{
    uintptr_t start = (uintptr_t)address;
    uintptr_t base = (uintptr_t)file.base;
    if (!file.started || start < base || start - base >= file.size_bytes || len_bytes > file.size_bytes - (start - base))
        return false;
    *offset = start - base;
    return true;
}
