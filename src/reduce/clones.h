/* Clones of the same loop for wider registers, selected when the library is loaded. Programs with
 * sanitisers are not initialised that early. */
#ifndef ORIEL_REDUCE_CLONES_H
#define ORIEL_REDUCE_CLONES_H

#if defined(__x86_64__) && defined(__has_attribute) && !defined(__SANITIZE_ADDRESS__) &&           \
    !defined(__SANITIZE_THREAD__)
#if __has_attribute(target_clones)
#define ORIEL_CLONES         __attribute__((target_clones("avx512f", "avx2", "default")))
#define ORIEL_CLONES_UNFUSED __attribute__((target_clones("avx2", "default")))
#endif
#endif
#ifndef ORIEL_CLONES
#define ORIEL_CLONES
#define ORIEL_CLONES_UNFUSED
#endif

#endif
