/* Opens the memory files of other processes through /proc/<pid>/fd/<n>, where the kernel checks the
 * user. A file is accepted as the peer's only if its header contains the peer's random id. A
 * process in another PID namespace, or with a reused PID, therefore counts as on another node.
 * Before opening, the path is checked: it must lead to an unnamed file of this user. The table of
 * peers only grows. */
#include "memory/peer.h"

#include "base/checked_open.h"
#include "base/hash_table.h"
#include "base/reserve_fd.h"
#include "base/valgrind.h"
#include "memory/memory_limits.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static struct oriel_hash_table peers = ORIEL_HASH_TABLE_INIT;

static bool is_own(const struct oriel_identity *identity)
{
    return oriel_identity_equal(identity, oriel_file_identity());
}

static enum oriel_status not_the_peer_error(const struct oriel_identity *identity)
{
    return oriel_fail(ORIEL_E_OTHER,
                      "process %d on this node is not the peer (another node or PID namespace)",
                      (int)identity->pid);
}

static enum oriel_status peer_file_map(int fd, struct oriel_peer *peer)
{
    struct oriel_file_header header;
    const struct oriel_identity *identity = &peer->identity;
    if (pread(fd, &header, sizeof header, 0) != (ssize_t)sizeof header ||
        header.magic != ORIEL_FILE_MAGIC || header.version != ORIEL_FILE_VERSION ||
        !oriel_identity_equal(&header.identity, identity) ||
        header.identity.start_time != identity->start_time)
        return not_the_peer_error(identity);
    if (header.reserve_bytes > ORIEL_VALGRIND_RESERVE && !header.is_under_valgrind &&
        oriel_is_under_valgrind())
        return oriel_fail(
            ORIEL_E_OTHER,
            "valgrind would take hours to search the memory file of process %d, which "
            "has %lu bytes",
            (int)identity->pid, (unsigned long)header.reserve_bytes);
    void *base = oriel_file_map(fd, header.reserve_bytes);
    if (base == MAP_FAILED)
        return oriel_fail(
            ORIEL_E_OTHER,
            "cannot map %lu bytes of process %d's memory file: %s (ORIEL_RESERVE, ulimit -v)",
            (unsigned long)header.reserve_bytes, (int)identity->pid, strerror(errno));
    oriel_core_dump_open(&peer->dumps, base, header.reserve_bytes);
    peer->base = base;
    peer->reserve_bytes = header.reserve_bytes;
    peer->owner_address = header.owner_address;
    return ORIEL_OK;
}

static enum oriel_status peer_file_open(struct oriel_peer *peer)
{
    char path[64];
    const struct oriel_identity *identity = &peer->identity;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)identity->pid, (int)identity->memory_fd);
    int fd = oriel_checked_memory_open(path, oriel_file_owner());
    if (fd < 0 && errno == 0)
        return not_the_peer_error(identity);
    if (fd < 0)
        return oriel_fail(ORIEL_E_OTHER, "cannot open the memory file of process %d: %s",
                          (int)identity->pid, strerror(errno));
    enum oriel_status status = peer_file_map(fd, peer);
    close(fd);
    oriel_reserve_fd_restore();
    return status;
}

static enum oriel_status peer_open_locked(const struct oriel_identity *identity,
                                          struct oriel_peer **out)
{
    *out = oriel_hash_table_find(&peers, identity->id[0]);
    if (*out != NULL)
        return ORIEL_OK;
    struct oriel_peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a peer");
    peer->identity = *identity;
    enum oriel_status status = ORIEL_OK;
    if (is_own(identity)) {
        peer->base = oriel_file_base();
        peer->reserve_bytes = oriel_file_reserve();
        peer->owner_address = (uint64_t)(uintptr_t)peer->base;
    } else {
        status = peer_file_open(peer);
    }
    if (status == ORIEL_OK && !oriel_hash_table_set(&peers, identity->id[0], peer))
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for the table of peers");
    if (status != ORIEL_OK) {
        if (peer->base != NULL && !is_own(identity)) {
            munmap(peer->base, peer->reserve_bytes);
            oriel_core_dump_close(&peer->dumps);
        }
        free(peer);
        return status;
    }
    *out = peer;
    return ORIEL_OK;
}

enum oriel_status oriel_peer_open(const struct oriel_identity *identity, struct oriel_peer **out)
{
    pthread_mutex_lock(&opening);
    enum oriel_status status = peer_open_locked(identity, out);
    pthread_mutex_unlock(&opening);
    return status;
}

struct search {
    uintptr_t address;
    uint64_t len_bytes;
    struct oriel_peer *found;
};

static void peer_match(void *value, void *context)
{
    struct oriel_peer *peer = value;
    struct search *search = context;
    uintptr_t base = (uintptr_t)peer->base;
    if (search->address >= base && search->address - base < peer->reserve_bytes &&
        search->len_bytes <= peer->reserve_bytes - (search->address - base))
        search->found = peer;
}

static struct oriel_peer *find_locked(const void *address, uint64_t len_bytes, uint64_t *offset)
{
    struct search search = {.address = (uintptr_t)address, .len_bytes = len_bytes};
    oriel_hash_table_visit(&peers, peer_match, &search);
    if (search.found != NULL)
        *offset = search.address - (uintptr_t)search.found->base;
    return search.found;
}

struct oriel_peer *oriel_peer_find(const void *address, uint64_t len_bytes, uint64_t *offset)
{
    pthread_mutex_lock(&opening);
    struct oriel_peer *found = find_locked(address, len_bytes, offset);
    pthread_mutex_unlock(&opening);
    return found;
}

void oriel_peer_set_core_dump(const void *address, uint64_t len_bytes, bool included)
{
    uint64_t offset;
    if (len_bytes == 0)
        return;
    pthread_mutex_lock(&opening);
    struct oriel_peer *peer = find_locked(address, len_bytes, &offset);
    if (peer != NULL && !is_own(&peer->identity) && included)
        oriel_core_dump_include(&peer->dumps, offset, len_bytes);
    else if (peer != NULL && !is_own(&peer->identity))
        oriel_core_dump_exclude(&peer->dumps, offset, len_bytes);
    pthread_mutex_unlock(&opening);
}

/* The state is read last. A process that was still running at the first check may since have
 * finalised and ended. */
bool oriel_peer_alive(const struct oriel_peer *peer)
{
    const struct oriel_file_header *header = (const struct oriel_file_header *)peer->base;
    return is_own(&peer->identity) || oriel_identity_alive(&peer->identity) ||
           atomic_load_explicit(&header->state, memory_order_acquire) == ORIEL_FILE_FINALISED;
}

void oriel_peer_visit(void (*visit)(void *peer, void *context), void *context)
{
    oriel_hash_table_visit(&peers, visit, context);
}
