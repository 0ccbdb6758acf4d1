/* CRC-32 as in ISO 3309 (used by zlib and PNG), to verify data written to files. */
#ifndef ORIEL_BASE_CRC32_H
#define ORIEL_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of len_bytes bytes. before is the checksum of the bytes that precede them, or 0. */
uint32_t oriel_crc32(uint32_t before, const void *bytes, size_t len_bytes);

#endif
