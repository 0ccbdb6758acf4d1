/* CRC-32 as of ISO 3309 (the one of zlib and PNG): checks what has been written to a file.  Any layer may use it. */
#ifndef ORIEL_BASE_CRC32_H
#define ORIEL_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of len_bytes bytes; before is that of what stands in front of them, 0 where nothing does. */
uint32_t oriel_crc32(uint32_t before, const void *bytes, size_t len_bytes);

#endif
