/* SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed digest. Only a process with the key can
 * compute it, and it reveals nothing about the key. */
#ifndef ORIEL_BASE_SIPHASH_H
#define ORIEL_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* The digest of len_bytes bytes. The key's 16 bytes are two words, each read with its lowest byte
 * first. */
uint64_t oriel_siphash(const uint64_t key[2], const void *bytes, size_t len_bytes);

#endif
