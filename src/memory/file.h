/* The one memory file of this process: a memfd that holds every window's memory and control words, and that peers on this
 * machine map whole.  Free memory in it is zero, but for pages of freed program memory that are kept for the next of that kind
 * (allocator.c), and an offset in it never moves.  Windows allocate here; peer.h
 * opens the files of others.
 *
 * The first page is the header, and behind it the words of those who copy into the owner's memory (transport/remote_writers.h); the
 * second has a slot for each thread of the owner that accumulates (sync/atomic_mode.h); the third tells others what the owner waits
 * for (observe/state/state.h). Who writes the header: the owner only. The
 * identity is written before anybody is told of the file, state goes RUNNING -> LEFT once, when the owner finalises in good
 * order. agent_offset and net_offset are written before creation agrees on a window that needs them, and read after;
 * polled_offset at any time: an origin that finds it 0 does without. */
#ifndef ORIEL_MEMORY_FILE_H
#define ORIEL_MEMORY_FILE_H

#include "base/identity.h"
#include "base/status.h"
#include "transport/remote_writers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ORIEL_FILE_VERSION = 7, ORIEL_FILE_RUNNING = 1, ORIEL_FILE_LEFT = 2 };
#define ORIEL_FILE_MAGIC UINT64_C(0x314c4549524f0a1a)
#define ORIEL_PAGE_BYTES UINT64_C(4096)
#define ORIEL_MAP_ALIGN                                                                            \
    (UINT64_C(1)                                                                                   \
     << 21) /* of offset 0 in every process: the largest alignment that allocations can have */
#define ORIEL_RESERVED_BYTES                                                                       \
    (UINT64_C(1) << 30) /* larger blocks are compared with the available memory, not reserved */

struct oriel_file_header {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t state;
    struct oriel_identity identity;
    uint64_t reserve_bytes; /* what the owner maps and a peer must map: offsets stay below it */
    uint64_t owner_address; /* where the owner has mapped offset 0 */
    _Atomic uint64_t
        agent_offset; /* of its struct oriel_agent; 0 before the first window that needs one, then for good */
    _Atomic uint32_t singles; /* slots from the first on that threads have had; only grows */
    uint32_t reserved;
    _Atomic uint64_t
        net_offset; /* of its struct oriel_reached; 0 before the first window over several machines, then for good */
    _Atomic uint64_t
        polled_offset; /* of its struct oriel_polled; 0 before the first memory that is copied, then for good */
};
_Static_assert(sizeof(struct oriel_file_header) == 96, "peers of the same version read it");

/* Behind the header, in the same page. */
#define ORIEL_FILE_WRITERS_OFFSET UINT64_C(128)
_Static_assert(ORIEL_FILE_WRITERS_OFFSET + sizeof(struct oriel_remote_writers) <= ORIEL_PAGE_BYTES,
               "the first page holds both");

/* Who writes into the owner's memory by the kernel's copies; base: where this process has offset 0 of the owner's file. */
static inline struct oriel_remote_writers *oriel_file_writers(char *base)
{
    return (struct oriel_remote_writers *)(base + ORIEL_FILE_WRITERS_OFFSET);
}

/* A thread's own word: 1 while it may be updating a single element of anybody's memory. */
struct oriel_atomic_mode {
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t inside;
};
enum { ORIEL_SINGLES = 64 };

/* Behind the first page; and then the owner's state. */
#define ORIEL_FILE_STATE_OFFSET (2 * ORIEL_PAGE_BYTES)
#define ORIEL_FILE_HEAD_BYTES   (3 * ORIEL_PAGE_BYTES)
_Static_assert(ORIEL_SINGLES * sizeof(struct oriel_atomic_mode) == ORIEL_PAGE_BYTES,
               "the second page holds them");

static inline struct oriel_atomic_mode *oriel_file_singles(char *base)
{
    return (struct oriel_atomic_mode *)(base + ORIEL_PAGE_BYTES);
}

/* Makes the file; once, thread-safe.  ORIEL_E_NO_MEM or ORIEL_E_OTHER with the reason when the machine refuses. */
enum oriel_status oriel_file_start(void);

/* Marks the file as left in good order.  It stays mapped until the process ends: programs read MPI_Alloc_mem's memory after
 * MPI_Finalize.  oriel_file_start takes it up again. */
void oriel_file_leave(void);

/* Maps the first len_bytes (whole pages) of a memory file at a multiple of ORIEL_MAP_ALIGN; MAP_FAILED with errno. */
void *oriel_file_map(int fd, uint64_t len_bytes);

/* Whether the descriptor (memory_fd of the identity) still is the memory file's: a program may close descriptors in bulk and
 * open others of the same number.  To be asked before each use of it. */
bool oriel_file_is_open(void);

const struct oriel_identity *oriel_file_identity(void);
uid_t oriel_file_owner(void); /* a program may have changed its user since its file was made */
char *oriel_file_base(void);
uint64_t oriel_file_reserve(void);

/* Allocates len_bytes of zeroes at a multiple of align_bytes (a power of two up to ORIEL_MAP_ALIGN; at least 64 is used).
 * ORIEL_E_NO_MEM when the machine cannot give them, ORIEL_E_OTHER when only this file cannot (reserve, RLIMIT_FSIZE).  Physical
 * memory is reserved up to ORIEL_RESERVED_BYTES, where memory_limits.h allows. */
enum oriel_status oriel_file_alloc(uint64_t len_bytes, uint64_t align_bytes, uint64_t *offset);

/* The same for MPI_Alloc_mem, with any contents, and for MPI_Win_allocate: both may be made of pages that such memory had before,
 * which is quicker. */
enum oriel_status oriel_file_alloc_given(uint64_t len_bytes, uint64_t align_bytes,
                                         uint64_t *offset);
enum oriel_status oriel_file_alloc_window(uint64_t len_bytes, uint64_t align_bytes,
                                          uint64_t *offset);

/* The same for control words of which few pages may ever be touched: blocks of pages are not reserved. */
enum oriel_status oriel_file_alloc_sparse(uint64_t len_bytes, uint64_t *offset);

/* The same for memory that a forked child goes on sharing with its parent (MPI_Win_allocate_shared): all other blocks become
 * private to the child in what it writes. */
enum oriel_status oriel_file_alloc_shared(uint64_t len_bytes, uint64_t align_bytes,
                                          uint64_t *offset);

struct oriel_file_part {
    uint64_t len_bytes;
    int32_t node; /* of oriel_pages_node; -1: any */
};

/* The same for parts that follow each other byte by byte, where each is reserved near a memory node if the machine has several.
 * They are one block. */
enum oriel_status oriel_file_alloc_parts(const struct oriel_file_part *parts, size_t count,
                                         uint64_t align_bytes, uint64_t *offset);

/* Gives back what oriel_file_alloc returned; false when offset is not the start of an allocation. */
bool oriel_file_free(uint64_t offset);

/* The same of oriel_file_alloc_given alone. */
bool oriel_file_free_given(uint64_t offset);

/* Whether [address, address + len_bytes) lies in the mapped file; its offset then. */
bool oriel_file_find(const void *address, uint64_t len_bytes, uint64_t *offset);

#endif
