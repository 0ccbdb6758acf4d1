/* SipHash-2-4: two rounds mix four words for each eight bytes, and four rounds finish. The last
 * eight bytes end with the length. No branch and no address depends on key or bytes, so timing
 * reveals nothing about them. */
#include "base/siphash.h"

enum { STEP_BYTES = 8, STEP_ROUNDS = 2, LAST_ROUNDS = 4 };

static uint64_t rotate_left(uint64_t word, int bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int rounds)
{
    while (rounds-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] = rotate_left(v[2], 32);
    }
}

static void sip_absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_rounds(v, STEP_ROUNDS);
    v[0] ^= word;
}

/* The lowest byte first, regardless of the processor's byte order. */
static uint64_t word_load(const unsigned char *bytes, size_t len_bytes)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len_bytes; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

uint64_t oriel_siphash(const uint64_t key[2], const void *bytes, size_t len_bytes)
{
    const unsigned char *next = bytes;
    size_t left_bytes = len_bytes;
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575),
                     key[1] ^ UINT64_C(0x646f72616e646f6d), /* "somepseudorandom" */
                     key[0] ^ UINT64_C(0x6c7967656e657261),
                     key[1] ^ UINT64_C(0x7465646279746573)}; /* "lygeneratedbytes" */
    for (; left_bytes >= STEP_BYTES; left_bytes -= STEP_BYTES, next += STEP_BYTES)
        sip_absorb(v, word_load(next, STEP_BYTES));
    sip_absorb(v, word_load(next, left_bytes) | (uint64_t)len_bytes << 56);
    v[2] ^= 0xff;
    sip_rounds(v, LAST_ROUNDS);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
