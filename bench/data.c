/* Predictable data for the benchmark's checks. A word mixes its seed and its index, so a shifted
 * word or a word of an earlier batch is detected. */
#include "data.h"

#include <string.h>

uint64_t data_word(uint64_t seed, size_t index)
{
    uint64_t word =
        (seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (index + 1) * UINT64_C(0xbf58476d1ce4e5b9);
    word = (word ^ (word >> 29)) * UINT64_C(0x94d049bb133111eb);
    return word ^ (word >> 32);
}

void data_fill(char *memory, size_t len_bytes, uint64_t seed)
{
    for (size_t at = 0; at < len_bytes; at += sizeof(uint64_t)) {
        uint64_t word = data_word(seed, at / sizeof word);
        memcpy(memory + at, &word, len_bytes - at < sizeof word ? len_bytes - at : sizeof word);
    }
}

bool data_holds(const char *memory, size_t len_bytes, uint64_t seed)
{
    return data_holds_from(memory, 0, len_bytes, seed);
}

bool data_holds_from(const char *memory, size_t skip_bytes, size_t len_bytes, uint64_t seed)
{
    for (size_t at = 0; at < len_bytes;) {
        size_t place = skip_bytes + at, inside = place % sizeof(uint64_t),
               len = sizeof(uint64_t) - inside;
        uint64_t word = data_word(seed, place / sizeof word);
        if (len > len_bytes - at)
            len = len_bytes - at;
        if (memcmp(memory + at, (const char *)&word + inside, len) != 0)
            return false;
        at += len;
    }
    return true;
}

double data_double(uint64_t seed, size_t index)
{
    return (double)(1 + ((seed * UINT64_C(0x9e3779b97f4a7c15) >> 40) + index) % 16);
}

void data_fill_doubles(char *memory, size_t len_bytes, uint64_t seed)
{
    for (size_t i = 0; i < len_bytes / sizeof(double); i++) {
        double value = data_double(seed, i);
        memcpy(memory + i * sizeof value, &value, sizeof value);
    }
}

bool data_holds_sums(const char *memory, size_t first, size_t count, uint64_t seed,
                     uint64_t added_seed, uint64_t times)
{
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, memory + i * sizeof value, sizeof value);
        if (value !=
            data_double(seed, first + i) + (double)times * data_double(added_seed, first + i))
            return false;
    }
    return true;
}
