/* Call sites. An address of this process becomes a code that means the same in all checked
 * processes of the job: the number of its module in the checker's shared memory, and the offset in
 * it. The helper finds file and line when a finding is reported. All functions are thread-safe. */
#ifndef ORIEL_CHECK_REPORT_CALL_SITES_H
#define ORIEL_CHECK_REPORT_CALL_SITES_H

#include "check/common/access_types.h"
#include "check/report/finding_record.h"

enum oriel_call {
    ORIEL_CALL_NONE,
#define CALL(name)        ORIEL_CALL_##name,
#define LOCAL(name, text) CALL(name)
#include "check/report/checked_calls.def"
#undef CALL
#undef LOCAL
    ORIEL_CALL_COUNT
};

/* Whether the call ends the life of memory. */
static inline bool oriel_call_ends_memory(uint16_t call)
{
    return call == ORIEL_CALL_free || call == ORIEL_CALL_realloc || call == ORIEL_CALL_munmap ||
           call == ORIEL_CALL_frame_end || call == ORIEL_CALL_Free_mem;
}

/* "MPI_Put"; "" for ORIEL_CALL_NONE. */
const char *oriel_call_name(uint16_t call);

/* Starts the tables once the shared memory is mapped. Before that, and without room, codes are bare
 * addresses. */
enum oriel_status oriel_call_sites_start(void);

/* Returns the code of a return address, or of the address of a load or store. Takes some ns if this
 * thread has asked for it before, some us the first time, and in Python. The caller holds no lock,
 * because the interpreter's may be acquired. */
uint64_t oriel_site_code(const void *address);

/* Returns the code of a return address alone, also if it is in a language binding. */
uint64_t oriel_site_frame_code(const void *address);

/* Whether the address is in a language binding, so that the call is further up the stack, or is
 * unknown. */
bool oriel_site_is_bound(const void *address);

/* Returns the site of a call by this process, for struct oriel_access and struct oriel_finding.
 * opening: oriel_site_number of the call that opened the epoch, or 0. */
struct oriel_site oriel_site_here(const void *address, uint16_t call, uint32_t world_rank,
                                  uint16_t opening);

/* Returns the site with its address as a code, if it is a bare one of this process. The caller may
 * hold locks. */
struct oriel_site oriel_site_coded(const struct oriel_site *site);

/* Returns a number for the site, valid in the whole job, to store in other sites; 0 when there are
 * too many. */
uint16_t oriel_site_number(const struct oriel_site *site);

/* The number of the same site for an operation that a persistent request starts. init: number of
 * the call that made the request. */
uint16_t oriel_site_number_started(uint16_t opening, uint16_t init);

/* Returns the site of that number for the given rank; call 0 for number 0. Its epoch is the number
 * of the call that made a persistent request, or 0. */
struct oriel_site oriel_site_numbered(uint16_t number, uint32_t world_rank);

/* Describes a site for a finding's record: its module and offset. The helper adds the line. */
void oriel_site_describe(const struct oriel_site *site, struct oriel_record_site *out);

/* --- several nodes --- */

enum { ORIEL_SITE_SLOT_BYTES = 1024 }; /* room for an entry of either table */

/* Asks the first node for the entry in a slot of one of its tables. claims: entry is stored there
 * if the slot is empty. Returns false if the slot is empty, or without an answer. */
typedef bool oriel_site_ask_fn(uint32_t table, uint32_t slot, void *entry, size_t entry_bytes,
                               bool claims);
void oriel_sites_remote_set(oriel_site_ask_fn *first_node);

/* Serves this request on the first node. entry holds the entry_bytes of the wanted entry, and has
 * room for the answer. Returns the size of the answer. */
size_t oriel_site_slot(uint32_t table, uint32_t slot, void *entry, size_t entry_bytes,
                       uint64_t *filled);

#endif
