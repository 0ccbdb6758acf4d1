/* Requests to the agent: arbitrary slots, as a faulty process may write them.  An accepted request
 * reads and writes only the bytes in its runs and, in the shared area, the slot's data and the
 * stage. A refused request changes nothing.  Unmapped memory is an error. */
#include "fuzzer.h"

#include "transport/agent/agent.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { USER_BYTES = 4096, AREA_OFFSET = 4096, REQUESTS = 4, SLOT = 3 };

static struct oriel_agent *area;
static int fd = -1;
static unsigned char *user; /* one page, with nothing mapped after it */
static char before_slots[sizeof area->slots];
static unsigned char before_user[USER_BYTES];
static bool may_change[USER_BYTES];

static void start(void)
{
    const size_t len_bytes = AREA_OFFSET + ((sizeof *area + 4095) & ~(size_t)4095);
    fd = memfd_create("area", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && ftruncate(fd, (off_t)len_bytes) == 0);
    char *base = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    user = mmap(NULL, 3 * USER_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(base != MAP_FAILED && user != MAP_FAILED);
    user += USER_BYTES;
    REQUIRE(mprotect(user, USER_BYTES, PROT_READ | PROT_WRITE) == 0);
    area = (struct oriel_agent *)(base + AREA_OFFSET);
}

/* In the page, across its end, or nowhere. */
static struct oriel_agent_run draw_run(struct input *input)
{
    const uint8_t how = input_byte(input);
    struct oriel_agent_run run = {(uint64_t)(uintptr_t)user + input_below(input, USER_BYTES),
                                  input_byte(input)};
    if (how % 32 == 0)
        run.address += USER_BYTES - run.len_bytes;
    if (how % 32 == 1)
        run.address = input_word(input) & 4095; /* the first page is unmapped */
    if (how % 16 == 2)
        run.len_bytes = input_word(input);
    if (how % 4 == 3)
        run.len_bytes = run.len_bytes / 8 * 8;
    return run;
}

static void draw_slot(struct input *input, struct oriel_agent_slot *slot)
{
    const uint8_t how = input_byte(input);
    slot->operation = input_below(input, how % 16 == 0 ? UINT32_MAX : ORIEL_AGENT_SWAP + 1);
    slot->run_count = how % 16 == 1 ? (uint32_t)input_word(input) : input_below(input, 4);
    slot->kind = how % 16 == 2 ? (uint32_t)input_word(input) : input_below(input, ORIEL_KIND_COUNT);
    slot->operator= how % 16 == 3 ? (uint32_t)input_word(input)
                                  : input_below(input, ORIEL_OPERATOR_COUNT);
    slot->returns = input_byte(input) % 2;
    slot->data_bytes = 0;
    for (uint32_t i = 0; i < slot->run_count && i < ORIEL_AGENT_RUNS; i++) {
        slot->runs[i] = draw_run(input);
        slot->data_bytes += slot->runs[i].len_bytes;
        for (uint64_t at = 0; at < slot->runs[i].len_bytes && at < USER_BYTES; at++) {
            const uint64_t offset = slot->runs[i].address + at - (uint64_t)(uintptr_t)user;
            if (offset < USER_BYTES)
                may_change[offset] = true;
        }
    }
    if (how % 16 == 4)
        slot->data_bytes = input_word(input);
    input_take(input, slot->data, 64);
}

/* Whether its runs have the stated number and lengths. */
static bool is_request(const struct oriel_agent_slot *slot)
{
    uint64_t sum = 0;
    if (slot->run_count > ORIEL_AGENT_RUNS || slot->operation > ORIEL_AGENT_SWAP)
        return false;
    for (uint32_t i = 0; i < slot->run_count; i++) {
        if (slot->runs[i].len_bytes > ORIEL_AGENT_DATA_BYTES - sum)
            return false;
        sum += slot->runs[i].len_bytes;
    }
    return sum == slot->data_bytes;
}

static void check_untouched(const struct oriel_agent_slot *slot, int error)
{
    const bool writes = error == 0 && slot->operation != ORIEL_AGENT_READ;
    const bool tried = error != 0 && error != EINVAL; /* part of it may be done */
    for (int i = 0; i < USER_BYTES; i++)
        REQUIRE(user[i] == before_user[i] || (may_change[i] && (writes || tried)));
    const size_t data_at = (size_t)(slot->data - (const char *)area->slots);
    const size_t data_end = data_at + ORIEL_AGENT_DATA_BYTES;
    REQUIRE(memcmp(area->slots, before_slots, data_at) == 0);
    REQUIRE(memcmp((const char *)area->slots + data_end, before_slots + data_end,
                   sizeof before_slots - data_end) == 0);
    REQUIRE(error != EINVAL ||
            memcmp(slot->data, before_slots + data_at, ORIEL_AGENT_DATA_BYTES) == 0);
}

/* Clears all traces of earlier inputs, to make each failure reproducible alone; the other slots are
 * unchanged. */
static void forget(struct oriel_agent_slot *slot)
{
    memset(slot, 0, sizeof *slot);
    memset(area->stage, 0, sizeof area->stage);
    memset(user, 0, USER_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    struct input input = {data, len_bytes};
    if (fd < 0)
        start();
    struct oriel_agent_slot *slot = &area->slots[SLOT];
    forget(slot);
    for (int i = 0; i < REQUESTS && input.left_bytes > 0; i++) {
        memset(may_change, 0, sizeof may_change);
        draw_slot(&input, slot);
        memcpy(before_slots, area->slots, sizeof area->slots);
        memcpy(before_user, user, USER_BYTES);
        const int error = oriel_agent_execute(area, slot, fd, AREA_OFFSET);
        REQUIRE(is_request(slot) || error == EINVAL);
        check_untouched(slot, error);
    }
    return 0;
}
