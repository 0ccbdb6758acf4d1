/* The third step of creation: opens what the records tell of, and rank 0 makes what all share.  create.c calls. */
#include "window/attempt.h"

#include "base/log.h"
#include "host/host.h"
#include "memory/limit.h"
#include "memory/reach.h"
#include "window/handle.h"

#include <stdio.h>
#include <stdlib.h>

/* Pages above ORIEL_RESERVED_BYTES come at first touch: all ranks' together must be there to come. */
static enum oriel_status check_total(const struct attempt *attempt)
{
    uint64_t total_bytes = 0;
    for (int32_t i = 0; i < attempt->window->n; i++)
        if (attempt->records[i].target.size_bytes > ORIEL_RESERVED_BYTES)
            total_bytes += attempt->records[i].target.size_bytes;
    if (attempt->creation->flavour == ORIEL_FLAVOUR_CREATE || total_bytes == 0 || total_bytes <= oriel_limit_available())
        return ORIEL_OK;
    return oriel_fail(ORIEL_E_NO_MEM, "the ranks ask for %lu bytes, %lu are available", (unsigned long)total_bytes,
                      (unsigned long)oriel_limit_available());
}

/* Each rank's part near that rank. */
static enum oriel_status alloc_parts(struct attempt *attempt, uint64_t align_bytes, uint64_t *offset)
{
    size_t n = (size_t)attempt->window->n;
    struct oriel_file_part *parts = calloc(n, sizeof *parts);
    if (parts == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the parts of %zu ranks", n);
    for (size_t i = 0; i < n; i++)
        parts[i] = (struct oriel_file_part){attempt->records[i].target.size_bytes, attempt->records[i].node};
    enum oriel_status status = oriel_file_alloc_parts(parts, n, align_bytes, offset);
    free(parts);
    if (status == ORIEL_OK)
        attempt->window->memory_offset = (int64_t)*offset;
    return status;
}

/* One block in rank 0's file, the segments one after the other in rank order (MPI-4.1, 13.2.3). */
static enum oriel_status allocate_contiguous(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    struct record *records = attempt->records;
    uint64_t total_bytes = 0;
    uint64_t align_bytes = 0;
    for (int32_t i = 0; i < window->n; i++) {
        if (__builtin_add_overflow(total_bytes, records[i].target.size_bytes, &total_bytes))
            return oriel_fail(ORIEL_E_NO_MEM, "the sizes of all ranks overflow");
        align_bytes = records[i].alignment > align_bytes ? records[i].alignment : align_bytes;
    }
    uint64_t offset;
    enum oriel_status status = alloc_parts(attempt, align_bytes, &offset);
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++) {
        records[i].target.offset = offset;
        records[i].target.address = (uint64_t)(uintptr_t)(oriel_file_base() + offset);
        offset += records[i].target.size_bytes;
    }
    return status;
}

/* Every rank must have asked for memory of its own; a hint that only some gave is none. */
bool oriel_attempt_is_contiguous(const struct attempt *attempt)
{
    bool contiguous = false;
    for (int32_t i = 0; i < attempt->window->n; i++)
        contiguous = contiguous || !attempt->records[i].noncontig;
    return contiguous && attempt->creation->flavour == ORIEL_FLAVOUR_SHARED;
}

/* Rank 0 alone: the common words, as read by all after the agreement. */
static enum oriel_status fill_common(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status = check_total(attempt);
    if (status == ORIEL_OK && oriel_attempt_is_contiguous(attempt))
        status = allocate_contiguous(attempt);
    if (status != ORIEL_OK)
        return status;
    struct oriel_common *common = (struct oriel_common *)(oriel_file_base() + window->common_offset);
    common->version = RECORD_VERSION;
    common->n = window->n;
    for (int32_t i = 0; i < window->n; i++) {
        struct oriel_target *target = &common->targets[i];
        *target = attempt->records[i].target;
        if (target->mechanism == ORIEL_BY_ARENA)
            target->direct_bytes = target->size_bytes;
    }
    return ORIEL_OK;
}

/* Where each target's memory lies, when not all lie in their owners' own files. */
static enum oriel_status open_memory(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    bool contiguous = oriel_attempt_is_contiguous(attempt);
    bool own_files = !contiguous;
    if (contiguous && attempt->own.noncontig) { /* others did not ask for it */
        oriel_attempt_give_back(window->memory_offset);
        window->memory_offset = -1;
    }
    for (int32_t i = 0; i < window->n; i++)
        own_files = own_files && oriel_identity_equal(&attempt->records[i].memory, &attempt->records[i].process);
    window->memory_bases = window->group->bases;
    if (own_files)
        return ORIEL_OK;
    window->own_memory_bases = calloc((uint32_t)window->n, sizeof *window->own_memory_bases);
    if (window->own_memory_bases == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for the window's addresses");
    window->memory_bases = window->own_memory_bases;
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++) {
        struct oriel_peer *peer = NULL;
        status = oriel_peer_open(contiguous ? &attempt->records[0].process : &attempt->records[i].memory, &peer);
        if (status == ORIEL_OK)
            window->own_memory_bases[i] = peer->base;
    }
    return status;
}

static enum oriel_status reach(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status =
        oriel_group_acquire(&attempt->records[0].process, sizeof attempt->records[0], window->n, &window->group);
    if (status != ORIEL_OK)
        return status;
    window->control_bases = window->group->bases;
    return open_memory(attempt);
}

static enum oriel_status probe_cma(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status = ORIEL_OK;
    for (int32_t i = 0; i < window->n && status == ORIEL_OK; i++)
        if (i != window->rank && attempt->records[i].target.mechanism != ORIEL_BY_ARENA)
            status = oriel_reach_cma(window->group->peers[i]);
    return status;
}

static enum oriel_status take_handles(struct attempt *attempt)
{
    struct oriel_window *window = attempt->window;
    enum oriel_status status = ORIEL_OK;
    if (window->rank == 0)
        status = fill_common(attempt);
    if (status == ORIEL_OK && oriel_host()->Comm_group(attempt->creation->comm, &window->host->group) != MPI_SUCCESS)
        status = oriel_fail(ORIEL_E_NO_MEM, "the host cannot make a group");
    if (status == ORIEL_OK)
        status = oriel_host_carrier(attempt->creation->comm, oriel_handle_live(), &window->host->handle);
    if (status != ORIEL_OK)
        return status;
    attempt->has_carrier = true;
    return oriel_handle_add(window->host->handle, window);
}

/* Step 3: the bits that this rank can give. */
uint32_t oriel_attempt_contribute(struct attempt *attempt)
{
    const char *call = attempt->creation->call;
    uint32_t bits = AGREE_MEMORY;
    if (reach(attempt) != ORIEL_OK)
        oriel_note("%s: the window goes to the host: %s", call, oriel_fail_message());
    else
        bits |= AGREE_REACHED;
    if ((bits & AGREE_REACHED) && probe_cma(attempt) == ORIEL_OK)
        bits |= AGREE_CMA;
    else if (bits & AGREE_REACHED)
        snprintf(attempt->window->host->no_cma, sizeof attempt->window->host->no_cma, "%s", oriel_fail_message());
    enum oriel_status status = (bits & AGREE_REACHED) ? take_handles(attempt) : ORIEL_OK;
    if (status == ORIEL_E_OTHER)
        oriel_note("%s: the window goes to the host: %s", call, oriel_fail_message());
    if (status != ORIEL_OK)
        bits &= status == ORIEL_E_OTHER ? ~(uint32_t)AGREE_REACHED : ~(uint32_t)AGREE_MEMORY;
    return bits;
}
