/* Replaces shm_heap.c: allocates from the bottom up, with a poisoned block after each
 * allocation. */
#include "checker_shm.h"

#include "check/shm/shm_internal.h"

#include <sanitizer/asan_interface.h>

enum { SHM_BYTES = 6 << 20, GRAIN = 16, GUARD_BYTES = 48 };

void checker_shm_open(int world_size)
{
    char path[64];
    REQUIRE(oriel_shm_make_sized(world_size, SHM_BYTES, path, sizeof path) == ORIEL_OK);
    ASAN_POISON_MEMORY_REGION(oriel_shm_base + oriel_shm_head->top,
                              oriel_shm_head->size_bytes - oriel_shm_head->top);
}

void checker_shm_close(void)
{
    ASAN_UNPOISON_MEMORY_REGION(oriel_shm_base, oriel_shm_head->size_bytes);
    oriel_shm_leave();
}

oriel_shm_offset oriel_shm_allocate(size_t len_bytes)
{
    const uint64_t offset = oriel_shm_head->top;
    const uint64_t left_bytes = oriel_shm_head->size_bytes - offset;
    if (len_bytes > left_bytes || left_bytes - len_bytes < GUARD_BYTES + GRAIN) {
        oriel_shm_head->refused++;
        return 0;
    }
    oriel_shm_head->top = (offset + len_bytes + GUARD_BYTES) / GRAIN * GRAIN;
    ASAN_UNPOISON_MEMORY_REGION(oriel_shm_base + offset, len_bytes);
    return offset;
}

void oriel_shm_free(oriel_shm_offset offset, size_t len_bytes)
{
    if (offset == 0)
        return;
    /* freed once only */
    REQUIRE(__asan_region_is_poisoned(oriel_shm_base + offset, len_bytes) == NULL);
    ASAN_POISON_MEMORY_REGION(oriel_shm_base + offset, len_bytes);
}

void oriel_shm_heap_leave(void)
{
}

void look_at(const void *bytes, size_t len_bytes)
{
    volatile char sum = 0;
    for (size_t i = 0; i < len_bytes; i++)
        sum = (char)(sum + ((const char *)bytes)[i]);
}

uint64_t draw_number(struct input *input, const uint64_t *list, uint32_t count)
{
    const uint8_t how = input_byte(input);
    if (how % 16 == 0)
        return input_word(input);
    if (how % 16 == 1)
        return ~(uint64_t)input_byte(input);
    if (how % 16 < 10 && count > 0)
        return list[how / 16 % count];
    return input_below(input, 6);
}
