/* Call sites.  An address of this process becomes a code that means the same in all checked processes of the job: the number of
 * its module in the board, and the offset there.  Which file and line that is the helper finds out, when a finding
 * is told. Every file of check/ that makes sites calls; any thread. */
#ifndef ORIEL_CHECK_REPORT_CALL_SITES_H
#define ORIEL_CHECK_REPORT_CALL_SITES_H

#include "check/access/history.h"
#include "check/report/finding_record.h"

enum oriel_call {
    ORIEL_CALL_NONE,
#define CALL(name)        ORIEL_CALL_##name,
#define LOCAL(name, text) CALL(name)
#include "check/intercept/checked_calls.def"
#undef CALL
#undef LOCAL
    ORIEL_CALL_COUNT
};

/* "MPI_Put"; "" of ORIEL_CALL_NONE. */
const char *oriel_call_name(uint16_t call);

/* Once the board is mapped; before that, and without room in the board, codes are bare addresses. */
enum oriel_status oriel_sites_start(void);

/* The code of a return address (or of a load's or store's).  Some ns when this thread has asked before, some us the first
 * time. */
uint64_t oriel_site_code(const void *address);

/* Whether the address is a binding's, behind which the call has to be looked for; or it is not known. */
bool oriel_site_is_bound(const void *address);

/* The site of a call by this process: for struct oriel_access and struct oriel_finding.  opening: oriel_site_number of the
 * call that opened the epoch, or 0. */
struct oriel_site oriel_site_here(const void *address, uint16_t call, uint32_t world_rank,
                                  uint16_t opening);

/* A number of this job for a site, to stand in the sites of others; 0 when there are too many. */
uint16_t oriel_site_number(const struct oriel_site *site);

/* The site of that number, of the rank that is given; call 0 of number 0. */
struct oriel_site oriel_site_numbered(uint16_t number, uint32_t world_rank);

/* What a finding's record says of a site: its module and offset; the line is left to the helper. */
void oriel_site_describe(const struct oriel_site *site, struct oriel_record_site *out);

/* --- over several machines --- */

enum { ORIEL_SITE_SLOT_BYTES = 1024 }; /* room for an entry of either table */

/* Asks the first machine what a slot of one of its tables holds; claims: entry is what it shall hold if it is empty.  False: it
 * is empty, or there is no answer. */
typedef bool oriel_site_ask_fn(uint32_t table, uint32_t slot, void *entry, size_t entry_bytes,
                               bool claims);
void oriel_sites_span(oriel_site_ask_fn *first_machine);

/* There: entry holds entry_bytes of what is wanted, and has room for what comes.  How much that is. */
size_t oriel_site_slot(uint32_t table, uint32_t slot, void *entry, size_t entry_bytes,
                       uint64_t *filled);

#endif
