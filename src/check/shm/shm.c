/* The file and mapping of the checker's shared memory, and its locks. The creator's descriptor
 * stays open until it leaves, because the other processes open the file through it. The size is
 * fixed. Pages use memory only once they are touched.
 *
 * A lock is a robust mutex of the C library: the kernel passes it on when its holder dies at any
 * point. A word lock contains its holder's identity. A thread that has waited long checks whether
 * that process is alive, and stores its own identity if not. */
#include "check/shm/shm_internal.h"

#include "base/atomic.h"
#include "base/checked_open.h"
#include "base/file_limit.h"
#include "base/fork.h"
#include "base/identity.h"
#include "base/reserve_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MIB         (UINT64_C(1) << 20)
#define BYTES_LEAST (64 * MIB)

enum { SPINS = 40, WORD_SPINS = 200, WORD_YIELDS = 20, WORD_SLEEP_NS = 20000, WORD_DEATH = 64 };
enum { BUCKETS_MOST = 1 << 18, BUCKETS_LEAST = 1 << 12, BYTES_PER_BUCKET = 1 << 12 };

struct oriel_shm_head *oriel_shm_head;

static int memory_fd = -1; /* of the creator; -1 in other processes */
static bool is_child;
static uint64_t map_count;
uint64_t oriel_shm_own_word;
char *oriel_shm_base;
_Thread_local unsigned oriel_shm_locks;

/* --- size --- */

/* Reads a number from a file of the kernel. UINT64_MAX: there is none ("max"). */
static uint64_t file_number_read(const char *path)
{
    unsigned long long number;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    int found = fscanf(file, "%llu", &number);
    fclose(file);
    return found == 1 ? number : UINT64_MAX;
}

static uint64_t lesser_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A quarter of the memory of the hardware or the container, and at most an eighth of the address
 * space that the process may use. */
static uint64_t default_size_bytes(void)
{
    uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    memory = lesser_of(memory, file_number_read("/sys/fs/cgroup/memory.max"));
    memory = lesser_of(memory, file_number_read("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        memory = lesser_of(memory, space.rlim_cur / 2);
    uint64_t size = lesser_of(memory / 4, lesser_of(oriel_file_limit(), ORIEL_SHM_MOST_BYTES));
    return size < BYTES_LEAST ? BYTES_LEAST : size;
}

/* --- file and mapping --- */

static void child_mark(void)
{
    is_child = true;
}

static enum oriel_status memory_map(int fd, uint64_t size_bytes)
{
    static _Atomic bool watching;
    struct oriel_identity self;
    void *base = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED)
        return oriel_fail(ORIEL_E_NO_MEM, "cannot map the checker's memory: %s", strerror(errno));
    madvise(base, size_bytes, MADV_DONTDUMP);
    enum oriel_status status = oriel_fork_register(&watching, NULL, NULL, child_mark);
    if (status != ORIEL_OK) {
        munmap(base, size_bytes);
        return status;
    }
    is_child = false;
    map_count++;
    oriel_shm_own_word =
        oriel_identity_make(&self) ? oriel_identity_own_word() : (uint64_t)getpid();
    oriel_shm_head = base;
    oriel_shm_base = base;
    return ORIEL_OK;
}

static int memory_file_make(uint64_t size_bytes)
{
    int fd = oriel_reserve_fd_move_high(memfd_create("oriel-check", MFD_CLOEXEC));
    if (fd < 0)
        return -1;
    if (!oriel_file_resize(fd, size_bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

static uint64_t page_round_down(uint64_t size_bytes)
{
    return size_bytes / ORIEL_SHM_PAGE * ORIEL_SHM_PAGE;
}

static void head_init(int world_size, uint64_t size_bytes)
{
    struct oriel_shm_head *head = oriel_shm_head;
    uint64_t buckets = BUCKETS_LEAST;
    while (buckets < BUCKETS_MOST && buckets * BYTES_PER_BUCKET < size_bytes)
        buckets *= 2;
    head->version = ORIEL_SHM_VERSION;
    head->world_size = world_size;
    head->size_bytes = size_bytes;
    head->buckets = buckets;
    for (int i = 0; i < ORIEL_SHM_CLASSES; i++)
        oriel_shm_lock_init(&head->classes[i].lock);
    for (int i = 0; i < ORIEL_SHM_STRIPES; i++)
        oriel_shm_lock_init(&head->stripes[i]);
    uint64_t used = sizeof *head + buckets * sizeof head->bucket[0];
    atomic_store(&head->top, page_round_down(used + ORIEL_SHM_PAGE - 1));
    head->magic = ORIEL_SHM_MAGIC;
}

enum oriel_status oriel_shm_make_sized(int world_size, uint64_t size_bytes, char *path,
                                       size_t path_bytes)
{
    enum oriel_status status = ORIEL_OK;
    size_bytes = page_round_down(size_bytes);
    for (uint64_t size = size_bytes; size >= lesser_of(size_bytes, BYTES_LEAST);
         size = page_round_down(size / 2)) {
        int fd = memory_file_make(size);
        if (fd < 0) {
            status = oriel_fail(ORIEL_E_NO_MEM, "cannot create the checker's memory: %s",
                                strerror(errno));
            continue;
        }
        status = memory_map(fd, size);
        if (status == ORIEL_OK) {
            memory_fd = fd;
            head_init(world_size, size);
            snprintf(path, path_bytes, "/proc/%ld/fd/%d", (long)getpid(), fd);
            return ORIEL_OK;
        }
        close(fd);
    }
    return status;
}

enum oriel_status oriel_shm_make(int world_size, char *path, size_t path_bytes)
{
    return oriel_shm_make_sized(world_size, default_size_bytes(), path, path_bytes);
}

enum oriel_status oriel_shm_join(const char *path)
{
    struct stat file_stat;
    int fd = oriel_checked_memory_open(path, geteuid());
    if (fd < 0 && errno == 0)
        return oriel_fail(ORIEL_E_OTHER, "%s is not the checker's memory", path);
    if (fd < 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot open the checker's memory %s: %s", path,
                          strerror(errno));
    enum oriel_status status = ORIEL_OK;
    if (fstat(fd, &file_stat) != 0 || file_stat.st_size < (off_t)sizeof(struct oriel_shm_head))
        status = oriel_fail(ORIEL_E_OTHER, "%s is not the checker's memory", path);
    if (status == ORIEL_OK)
        status = memory_map(fd, (uint64_t)file_stat.st_size);
    close(fd);
    if (status == ORIEL_OK &&
        (oriel_shm_head->magic != ORIEL_SHM_MAGIC || oriel_shm_head->version != ORIEL_SHM_VERSION ||
         oriel_shm_head->size_bytes != (uint64_t)file_stat.st_size)) {
        munmap(oriel_shm_head, (size_t)file_stat.st_size);
        oriel_shm_head = NULL;
        status = oriel_fail(ORIEL_E_OTHER, "%s is not this checker's memory", path);
    }
    return status;
}

void oriel_shm_leave(void)
{
    if (oriel_shm_head == NULL)
        return;
    oriel_shm_heap_leave();
    munmap(oriel_shm_head, oriel_shm_head->size_bytes);
    oriel_shm_head = NULL;
    if (memory_fd >= 0)
        close(memory_fd);
    memory_fd = -1;
}

int oriel_shm_world_size(void)
{
    return oriel_shm_head->world_size;
}

bool oriel_shm_is_open(void)
{
    return oriel_shm_head != NULL && !is_child;
}

uint64_t oriel_shm_turn(void)
{
    return map_count;
}

uint64_t oriel_shm_refused(void)
{
    return oriel_shm_head == NULL ? 0 : atomic_load(&oriel_shm_head->refused);
}

oriel_shm_offset oriel_shm_place(const void *at)
{
    return at == NULL ? 0 : (oriel_shm_offset)((const char *)at - (const char *)oriel_shm_head);
}

/* --- locks --- */

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(struct oriel_shm_lock), "a lock holds a mutex");

static pthread_mutex_t *lock_mutex(struct oriel_shm_lock *lock)
{
    return (pthread_mutex_t *)(void *)lock;
}

void oriel_shm_lock_init(struct oriel_shm_lock *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(lock_mutex(lock), &attributes);
    pthread_mutexattr_destroy(&attributes);
}

/* Critical sections are short: a few attempts cost less than a sleep. */
void oriel_shm_lock(struct oriel_shm_lock *lock)
{
    int answer = EBUSY;
    oriel_shm_lock_begin();
    for (int i = 0; i < SPINS && answer == EBUSY; i++) {
        answer = pthread_mutex_trylock(lock_mutex(lock));
        if (answer == EBUSY)
            oriel_cpu_relax();
    }
    if (answer == EBUSY)
        answer = pthread_mutex_lock(lock_mutex(lock));
    if (answer == EOWNERDEAD)
        pthread_mutex_consistent(lock_mutex(lock));
}

void oriel_shm_unlock(struct oriel_shm_lock *lock)
{
    pthread_mutex_unlock(lock_mutex(lock));
    oriel_shm_lock_end();
}

/* Where ranks share a processor, the holder may not be running. Yields let it run; a sleep does so
 * where the scheduler ignores yields. */
void oriel_shm_word_wait(_Atomic uint64_t *word, uint64_t own)
{
    struct timespec nap = {.tv_nsec = WORD_SLEEP_NS};
    for (unsigned turns = 0;; turns++) {
        uint64_t found = atomic_load_explicit(word, memory_order_relaxed);
        bool dead = found != 0 && turns > WORD_SPINS && turns % WORD_DEATH == 0 &&
                    !oriel_identity_word_alive(found);
        if ((found == 0 || dead) &&
            atomic_compare_exchange_strong_explicit(word, &found, own, memory_order_acquire,
                                                    memory_order_relaxed))
            return;
        if (turns < WORD_SPINS)
            oriel_cpu_relax();
        else if (turns < WORD_SPINS + WORD_YIELDS)
            sched_yield();
        else
            nanosleep(&nap, NULL);
    }
}
