/* Executes one request at the target. preadv and pwritev copy between user memory and the memory
 * file, so unmapped memory causes an error (EFAULT) and does not end the process. The GPU's driver
 * copies memory that it knows, which origins may be unable to map. Elements are
 * computed in the area's stage. Other processes write the slot: every field that determines which
 * memory is accessed is copied once and then checked. Runs in one thread. */
#include "gpu/gpu.h"
#include "transport/agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

/* The current request. */
static struct {
    struct oriel_agent *agent;
    struct oriel_agent_slot *slot;
    int fd;
    uint64_t offset; /* of the area in the file */
    struct oriel_agent_run runs[ORIEL_AGENT_RUNS];
    unsigned run_count;
    uint64_t data_bytes; /* of all runs */
    struct iovec places[ORIEL_AGENT_RUNS];
} current;

enum direction { TO_USER, FROM_USER };

bool oriel_agent_has_descriptors = true;

/* Reads a field once, so the checked value is the used value. */
static uint32_t read_once(const uint32_t *word)
{
    return *(const volatile uint32_t *)word;
}

static int runs_copy_checked(void)
{
    current.run_count = read_once(&current.slot->run_count);
    current.data_bytes = 0;
    if (current.run_count > ORIEL_AGENT_RUNS)
        return EINVAL;
    for (unsigned i = 0; i < current.run_count; i++) {
        current.runs[i] = current.slot->runs[i];
        if (current.runs[i].len_bytes > ORIEL_AGENT_DATA_BYTES - current.data_bytes)
            return EINVAL;
        current.data_bytes += current.runs[i].len_bytes;
    }
    return current.data_bytes == current.slot->data_bytes ? 0 : EINVAL;
}

static struct iovec iovec_at(uint64_t address, uint64_t len_bytes)
{
    return (struct iovec){(void *)(uintptr_t)address, len_bytes};
}

/* Copies between count entries of places and contiguous bytes of the area. If the kernel stops
 * early, the rest is requested again, which returns the reason. */
static int kernel_transfer(struct iovec *places, unsigned count, enum direction direction,
                           const char *bytes)
{
    uint64_t at = current.offset + (uint64_t)(bytes - (const char *)current.agent);
    for (;;) {
        while (count > 0 && places->iov_len == 0)
            places++, count--;
        if (count == 0)
            return 0;
        ssize_t moved = direction == TO_USER ? preadv(current.fd, places, (int)count, (off_t)at)
                                             : pwritev(current.fd, places, (int)count, (off_t)at);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return moved < 0 ? errno : EIO;
        at += (uint64_t)moved;
        for (uint64_t rest = (uint64_t)moved; rest > 0;) {
            uint64_t part = rest < places->iov_len ? rest : places->iov_len;
            *places =
                iovec_at((uint64_t)(uintptr_t)places->iov_base + part, places->iov_len - part);
            rest -= part;
            if (places->iov_len == 0 && count > 1)
                places++, count--;
        }
    }
}

/* The same in device memory of one allocation. */
static int device_transfer(const struct iovec *places, unsigned count, enum direction direction,
                           char *bytes)
{
    static struct oriel_gpu_piece pieces[ORIEL_AGENT_RUNS];
    for (unsigned i = 0; i < count; i++) {
        void *place = places[i].iov_base;
        pieces[i] =
            (struct oriel_gpu_piece){direction == TO_USER ? place : bytes,
                                     direction == TO_USER ? bytes : place, places[i].iov_len};
        bytes += places[i].iov_len;
    }
    if (oriel_gpu_copy(pieces, count, NULL) == ORIEL_OK)
        return 0;
    snprintf(current.slot->data, sizeof current.slot->data, "%s", oriel_fail_message());
    return ORIEL_AGENT_HAS_REASON;
}

/* How many of the places from the first on are in its allocation of device memory; if it is in
 * none, how many are in none. */
static unsigned places_alike(const struct iovec *places, unsigned count,
                             const struct oriel_gpu_memory *memory)
{
    unsigned alike = 1;
    const bool is_device = memory->kind == ORIEL_GPU_DEVICE;
    while (alike < count &&
           (is_device ? (uint64_t)(uintptr_t)places[alike].iov_base - memory->start <
                            memory->end - memory->start
                      : !oriel_gpu_is_device(places[alike].iov_base)))
        alike++;
    return alike;
}

/* Copies between the first count entries of places and contiguous bytes of the area. */
static int area_transfer(unsigned count, enum direction direction, const char *bytes)
{
    struct iovec *places = current.places;
    char *at = (char *)(uintptr_t)bytes;
    int error = 0;
    if (!oriel_gpu_is_loaded() || !oriel_agent_has_descriptors)
        return kernel_transfer(places, count, direction, bytes);
    while (count > 0 && error == 0) {
        const struct oriel_gpu_memory memory = oriel_gpu_find(places->iov_base);
        const unsigned now = places_alike(places, count, &memory);
        uint64_t len_bytes = 0;
        for (unsigned i = 0; i < now; i++)
            len_bytes += places[i].iov_len;
        if (len_bytes > 0)
            error = memory.kind == ORIEL_GPU_DEVICE ? device_transfer(places, now, direction, at)
                                                    : kernel_transfer(places, now, direction, at);
        at += len_bytes;
        places += now;
        count -= now;
    }
    return error;
}

/* Copies between all runs and the bytes of the area. */
static int transfer_runs(enum direction direction, const char *bytes)
{
    for (unsigned i = 0; i < current.run_count; i++)
        current.places[i] = iovec_at(current.runs[i].address, current.runs[i].len_bytes);
    return area_transfer(current.run_count, direction, bytes);
}

/* Reads the run's pairs into the stage. The bytes after the last field may be unmapped. */
static int pairs_read(const struct oriel_kind_properties *kind, const struct oriel_agent_run *run,
                      const char *stage)
{
    current.places[0] = iovec_at(run->address, run->len_bytes - oriel_kind_tail_bytes(kind));
    return area_transfer(1, FROM_USER, stage);
}

/* Writes the fields of the run's pairs, packed in the stage first. */
static int pairs_write(const struct oriel_kind_properties *kind, const struct oriel_agent_run *run,
                       char *stage)
{
    int error = 0;
    for (uint64_t done = 0; done < run->len_bytes && error == 0;) {
        char *fields = stage + done;
        char *end = fields;
        unsigned count = 0;
        for (; done < run->len_bytes && count + 2 <= ORIEL_AGENT_RUNS; done += kind->extent_bytes) {
            current.places[count++] = iovec_at(run->address + done, kind->value_bytes);
            memmove(end, stage + done, kind->value_bytes);
            end += kind->value_bytes;
            current.places[count++] =
                iovec_at(run->address + done + kind->index_offset, kind->index_bytes);
            memmove(end, stage + done + kind->index_offset, kind->index_bytes);
            end += kind->index_bytes;
        }
        error = area_transfer(count, TO_USER, fields);
    }
    return error;
}

static int transfer_pairs(const struct oriel_kind_properties *kind, enum direction direction)
{
    char *stage = current.agent->stage;
    int error = 0;
    for (unsigned i = 0; i < current.run_count && error == 0; i++) {
        const struct oriel_agent_run *run = &current.runs[i];
        if (run->len_bytes > 0)
            error =
                direction == TO_USER ? pairs_write(kind, run, stage) : pairs_read(kind, run, stage);
        stage += run->len_bytes;
    }
    return error;
}

static int transfer_elements(const struct oriel_kind_properties *kind, enum direction direction)
{
    return kind->padded ? transfer_pairs(kind, direction)
                        : transfer_runs(direction, current.agent->stage);
}

/* U */
static int execute_update(void)
{
    uint32_t number = read_once(&current.slot->kind);
    uint32_t op = read_once(&current.slot->operator);
    if (number >= ORIEL_KIND_COUNT || op >= ORIEL_OPERATOR_COUNT ||
        oriel_kinds[number].plain[op] == NULL)
        return EINVAL;
    const struct oriel_kind_properties *kind = &oriel_kinds[number];
    for (unsigned i = 0; i < current.run_count; i++)
        if (current.runs[i].len_bytes % kind->extent_bytes != 0)
            return EINVAL;
    int error = transfer_elements(kind, FROM_USER);
    if (error != 0)
        return error;
    char *data = current.slot->data;
    kind->plain[op](current.agent->stage, data, current.slot->returns != 0 ? data : NULL,
                    current.data_bytes / kind->extent_bytes);
    return op == ORIEL_OPERATOR_NO_OP ? 0 : transfer_elements(kind, TO_USER);
}

/* U */
static int execute_swap(void)
{
    char *wanted = current.slot->data;
    char *found = current.agent->stage;
    uint64_t len_bytes = current.data_bytes;
    if (current.run_count != 1 || len_bytes > ORIEL_AGENT_DATA_BYTES / 2)
        return EINVAL;
    int error = transfer_runs(FROM_USER, found);
    if (error == 0 && memcmp(found, wanted, len_bytes) == 0)
        error = transfer_runs(TO_USER, wanted + len_bytes);
    if (error == 0)
        memcpy(wanted, found, len_bytes);
    return error;
}

int oriel_agent_execute(struct oriel_agent *agent, struct oriel_agent_slot *slot, int fd,
                        uint64_t offset)
{
    current.agent = agent;
    current.slot = slot;
    current.fd = fd;
    current.offset = offset;
    int error = runs_copy_checked();
    if (error != 0)
        return error;
    switch (read_once(&slot->operation)) {
    case ORIEL_AGENT_WRITE: return transfer_runs(TO_USER, slot->data);
    case ORIEL_AGENT_READ: return transfer_runs(FROM_USER, slot->data);
    case ORIEL_AGENT_UPDATE: return execute_update();
    case ORIEL_AGENT_SWAP: return execute_swap();
    default: return EINVAL;
    }
}
