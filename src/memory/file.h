/* The memory file of this process: a memfd that holds the memory and control words of every window.
 * Peers on this node map it whole. An offset in it never moves. Free memory in it is zero, except
 * for freed user pages that the allocator caches (allocator.c). peer.h maps the files of other
 * processes.
 *
 * The first three pages are:
 *
 * - page 0: the header, then the owner's life word (life.h), then the words of the processes that
 *   copy into the owner's memory (transport/remote_writers.h)
 * - page 1: one slot per thread of the owner that performs accumulates (sync/atomic_mode.h)
 * - page 2: what the owner waits for (observe/state/state.h)
 *
 * Only the owner writes the header. The identity is written before any peer learns of the file.
 * state is RUNNING until the owner finalises normally, then FINALISED; a later start sets it to
 * RUNNING again. agent_offset and net_offset are written before creation agrees on a window that
 * needs them, and read after that. polled_offset may be written at any time: an origin that reads 0
 * does without it. */
#ifndef ORIEL_MEMORY_FILE_H
#define ORIEL_MEMORY_FILE_H

#include "base/identity.h"
#include "base/status.h"
#include "memory/life.h"
#include "memory/pages.h"
#include "transport/remote_writers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ORIEL_FILE_VERSION = 9, ORIEL_FILE_RUNNING = 1, ORIEL_FILE_FINALISED = 2 };
#define ORIEL_FILE_MAGIC UINT64_C(0x314c4549524f0a1a)
#define ORIEL_PAGE_BYTES UINT64_C(4096)
/* alignment of offset 0 in every process, and the largest alignment of an allocation */
#define ORIEL_MAP_ALIGN (UINT64_C(1) << 21)
/* blocks from this size on are whole pages */
#define ORIEL_FILE_PAGES_BYTES (UINT64_C(32) << 10)
/* larger blocks are compared with the available memory instead of reserved */
#define ORIEL_RESERVED_BYTES (UINT64_C(1) << 30)

struct oriel_file_header {
    uint64_t magic;
    uint32_t version;
    _Atomic uint32_t state;
    struct oriel_identity identity;
    /* length that the owner maps and a peer must map: offsets stay below it */
    uint64_t reserve_bytes;
    uint64_t owner_address; /* the owner's address of offset 0 */
    /* of its struct oriel_agent; 0 before the first window that needs one, then constant */
    _Atomic uint64_t agent_offset;
    /* number of slots that threads have used, counted from slot 0; only grows */
    _Atomic uint32_t singles;
    uint32_t is_under_valgrind; /* the owner is, so the file has its full length */
    /* of its struct oriel_net_address_area; 0 before the first internode window, then constant */
    _Atomic uint64_t net_offset;
    /* of its struct oriel_polled; 0 before the first memory that is copied, then constant */
    _Atomic uint64_t polled_offset;
};
_Static_assert(sizeof(struct oriel_file_header) == 96, "peers of the same version read it");

/* In the first page, after the header. */
#define ORIEL_FILE_LIFE_OFFSET           UINT64_C(128)
#define ORIEL_FILE_REMOTE_WRITERS_OFFSET UINT64_C(192)
_Static_assert(ORIEL_FILE_REMOTE_WRITERS_OFFSET + sizeof(struct oriel_remote_writers) <=
                   ORIEL_PAGE_BYTES,
               "the first page holds all three");

/* base: this process's address of offset 0 of the owner's file. */
static inline struct oriel_life *oriel_file_life(char *base)
{
    return (struct oriel_life *)(base + ORIEL_FILE_LIFE_OFFSET);
}

/* The processes that write to the owner's memory with the kernel's copies. base: this process's
 * address of offset 0 of the owner's file. */
static inline struct oriel_remote_writers *oriel_file_remote_writers(char *base)
{
    return (struct oriel_remote_writers *)(base + ORIEL_FILE_REMOTE_WRITERS_OFFSET);
}

/* One word per thread: 1 while the thread may be updating a single element in the memory of any
 * process. */
struct oriel_atomic_mode {
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t inside;
};
enum { ORIEL_ATOMIC_MODE_SLOTS = 64 };

/* The third page is the owner's state; the first three pages together are the file's head. */
#define ORIEL_FILE_STATE_OFFSET (2 * ORIEL_PAGE_BYTES)
#define ORIEL_FILE_HEAD_BYTES   (3 * ORIEL_PAGE_BYTES)
_Static_assert(ORIEL_ATOMIC_MODE_SLOTS * sizeof(struct oriel_atomic_mode) == ORIEL_PAGE_BYTES,
               "the second page holds them");

static inline struct oriel_atomic_mode *oriel_file_atomic_modes(char *base)
{
    return (struct oriel_atomic_mode *)(base + ORIEL_PAGE_BYTES);
}

/* Creates the file once; thread-safe. Returns ORIEL_E_NO_MEM or ORIEL_E_OTHER with the reason when
 * the kernel refuses. */
enum oriel_status oriel_file_start(void);

/* Marks the file as finalised normally. It stays mapped until the process ends, because programs
 * read memory of MPI_Alloc_mem after MPI_Finalize. oriel_file_start resumes it. */
void oriel_file_finalise(void);

/* Maps the first len_bytes (whole pages) of a memory file at a multiple of ORIEL_MAP_ALIGN. Returns
 * MAP_FAILED with errno. */
void *oriel_file_map(int fd, uint64_t len_bytes);

/* Whether the descriptor (memory_fd of the identity) still refers to the memory file. A program may
 * close descriptors in bulk, and then open other files with the same number. Check this before each
 * use of the descriptor. */
bool oriel_file_is_open(void);

const struct oriel_identity *oriel_file_identity(void);
uid_t oriel_file_owner(void); /* a program may change its user after its file is created */
char *oriel_file_base(void);
uint64_t oriel_file_reserve(void);

/* Allocates len_bytes of zeroes at a multiple of align_bytes (a power of two up to ORIEL_MAP_ALIGN;
 * at least 64 is used). Returns ORIEL_E_NO_MEM when the node lacks the memory, ORIEL_E_OTHER when
 * only this file lacks the room (reserve, RLIMIT_FSIZE). Reserves physical memory for blocks of up
 * to ORIEL_RESERVED_BYTES, where memory_limits.h allows. */
enum oriel_status oriel_file_alloc(uint64_t len_bytes, uint64_t align_bytes, uint64_t *offset);

/* The same for MPI_Alloc_mem, with arbitrary contents, and for MPI_Win_allocate, with zeroes. Both
 * may reuse pages of earlier such blocks, which is faster. */
enum oriel_status oriel_file_alloc_mem(uint64_t len_bytes, uint64_t align_bytes, uint64_t *offset);
enum oriel_status oriel_file_alloc_window(uint64_t len_bytes, uint64_t align_bytes,
                                          uint64_t *offset);

/* The same for control words of which few pages may ever be touched. Blocks of whole pages are not
 * reserved. */
enum oriel_status oriel_file_alloc_sparse(uint64_t len_bytes, uint64_t *offset);

/* The same for memory that a forked child continues to share with its parent
 * (MPI_Win_allocate_shared). In all other blocks, the child's writes are private. */
enum oriel_status oriel_file_alloc_shared(uint64_t len_bytes, uint64_t align_bytes,
                                          uint64_t *offset);

struct oriel_file_part {
    uint64_t len_bytes;
    int32_t node; /* of oriel_pages_node; -1: any */
};

/* The same for consecutive parts without padding. If the hardware has several NUMA nodes, each
 * part is reserved near its node. All parts form one block. */
enum oriel_status oriel_file_alloc_parts(const struct oriel_file_part *parts, size_t count,
                                         uint64_t align_bytes, uint64_t *offset);

/* Whether a page starts in the part of a block, so that the page belongs to it. */
bool oriel_file_has_page(const void *start, uint64_t len_bytes);

/* Sets the NUMA placement of len_bytes from at on in the block at offset, which then are zeroes: of
 * the pages that start there. Returns false without side effects if there is none or the kernel
 * refuses. */
bool oriel_file_place(uint64_t offset, uint64_t at, uint64_t len_bytes,
                      struct oriel_pages_placement placement);

/* Frees the result of an allocation. Returns false when offset is not the start of an
 * allocation. */
bool oriel_file_free(uint64_t offset);

/* The same, but only for blocks of oriel_file_alloc_mem. */
bool oriel_file_free_mem(uint64_t offset);

struct oriel_file_usage {
    uint64_t file_bytes;  /* length of the file, which only grows */
    uint64_t block_bytes; /* of the allocations that are not freed */
};

/* All 0 before the file is created. */
struct oriel_file_usage oriel_file_usage(void);

/* Whether [address, address + len_bytes) is inside the mapped file. If so, stores its offset. */
bool oriel_file_find(const void *address, uint64_t len_bytes, uint64_t *offset);

#endif
