/* Shared by the fuzzers of traces: random files whose magic numbers, lengths and checksums are
 * corrected, to reach the code past them. */
#ifndef ORIEL_TESTS_FUZZERS_TRACES_H
#define ORIEL_TESTS_FUZZERS_TRACES_H

#include "fuzzer.h"

#include "base/crc32.h"
#include "observe/trace/trace_format.h"

/* Calls mend_window, unless NULL, with the contents of each window block before it computes the
 * block's checksum. */
static inline void mend_trace(uint8_t *bytes, size_t len_bytes,
                              void (*mend_window)(uint8_t *payload, size_t len_bytes))
{
    struct oriel_trace_header header;
    struct oriel_trace_block block;
    if (len_bytes < sizeof header)
        return;
    memcpy(&header, bytes, sizeof header);
    header.magic = ORIEL_TRACE_MAGIC;
    header.version = ORIEL_TRACE_VERSION;
    header.header_bytes = sizeof header;
    header.event_bytes = sizeof(struct oriel_trace_event);
    header.checksum = oriel_crc32(0, &header, offsetof(struct oriel_trace_header, checksum));
    memcpy(bytes, &header, sizeof header);
    for (size_t at = sizeof header; at + sizeof block <= len_bytes;
         at += sizeof block + block.len_bytes) {
        uint8_t *payload = bytes + at + sizeof block;
        memcpy(&block, bytes + at, sizeof block);
        if (block.len_bytes > len_bytes - at - sizeof block)
            block.len_bytes = (uint32_t)(len_bytes - at - sizeof block);
        if (mend_window != NULL && block.type == ORIEL_BLOCK_WINDOW)
            mend_window(payload, block.len_bytes);
        block.magic = ORIEL_BLOCK_MAGIC;
        block.checksum = oriel_crc32(0, payload, block.len_bytes);
        memcpy(bytes + at, &block, sizeof block);
    }
}

#endif
