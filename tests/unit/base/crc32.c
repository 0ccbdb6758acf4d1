/* The checksum equals zlib's, so other programs can check files. */
#include "base/crc32.h"

#include <stdlib.h>

#include "cmocka_all.h"

static void known_values(void **state)
{
    (void)state;
    assert_int_equal(oriel_crc32(0, "", 0), 0);
    assert_int_equal(oriel_crc32(0, "123456789", 9), 0xcbf43926);
    assert_int_equal(oriel_crc32(0, "The quick brown fox jumps over the lazy dog", 43), 0x414fa339);
}

/* Bit by bit, as in the standard. */
static uint32_t slow(const unsigned char *bytes, size_t len_bytes)
{
    uint32_t crc = ~UINT32_C(0);
    for (size_t i = 0; i < len_bytes * 8; i++) {
        uint32_t bit = (crc ^ (uint32_t)(bytes[i / 8] >> (i % 8))) & 1;
        crc = crc >> 1 ^ (bit != 0 ? UINT32_C(0xedb88320) : 0);
    }
    return ~crc;
}

static void pieces_equal_the_whole(void **state)
{
    unsigned char bytes[200];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i * 37 + 11);
    for (size_t len = 0; len <= sizeof bytes; len++)
        for (size_t cut = 0; cut <= len; cut += 7)
            assert_int_equal(oriel_crc32(oriel_crc32(0, bytes, cut), bytes + cut, len - cut),
                             slow(bytes, len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(pieces_equal_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
