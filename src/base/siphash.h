/* SipHash-2-4 (Aumasson and Bernstein, 2012): a digest under a key, which only who has the key can make, and which tells nothing
 * of the key.  Any layer may use it. */
#ifndef ORIEL_BASE_SIPHASH_H
#define ORIEL_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Of len_bytes bytes; the key's 16 bytes as two words, each read with its lowest byte first. */
uint64_t oriel_siphash(const uint64_t key[2], const void *bytes, size_t len_bytes);

#endif
