/* CRC-32, eight bytes per step. tables[k] holds the contribution of a byte k bytes before the end
 * of the step. The first call fills the tables. Thread-safe. */
#include "base/crc32.h"

#include <pthread.h>
#include <string.h>

enum { STEP_BYTES = 8 };

static uint32_t tables[STEP_BYTES][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void tables_fill(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = rest >> 1 ^ ((rest & 1) != 0 ? UINT32_C(0xedb88320) : 0);
        tables[0][byte] = rest;
    }
    for (int later = 1; later < STEP_BYTES; later++)
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t rest = tables[later - 1][byte];
            tables[later][byte] = rest >> 8 ^ tables[0][rest & 0xff];
        }
}

uint32_t oriel_crc32(uint32_t before, const void *bytes, size_t len_bytes)
{
    const unsigned char *next = bytes;
    uint32_t crc = ~before;
    pthread_once(&tables_once, tables_fill);
    for (; len_bytes >= STEP_BYTES; len_bytes -= STEP_BYTES, next += STEP_BYTES) {
        uint32_t low = crc ^ (next[0] | (uint32_t)next[1] << 8 | (uint32_t)next[2] << 16 |
                              (uint32_t)next[3] << 24);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
              tables[4][low >> 24] ^ tables[3][next[4]] ^ tables[2][next[5]] ^ tables[1][next[6]] ^
              tables[0][next[7]];
    }
    for (; len_bytes > 0; len_bytes--, next++)
        crc = crc >> 8 ^ tables[0][(crc ^ *next) & 0xff];
    return ~crc;
}
