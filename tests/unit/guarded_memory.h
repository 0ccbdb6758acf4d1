/* Memory between inaccessible pages: an access one byte before or after it is fatal, in every
 * build. */
#ifndef ORIEL_TESTS_UNIT_GUARDED_MEMORY_H
#define ORIEL_TESTS_UNIT_GUARDED_MEMORY_H

#include <stddef.h>
#include <sys/mman.h>

#include "cmocka_all.h"

struct guarded {
    char *begin;
    size_t len_bytes;
};

/* len_bytes: whole pages. It lasts until the test ends. */
static inline struct guarded guarded_map(size_t len_bytes)
{
    const size_t page_bytes = 4096;
    char *all =
        mmap(NULL, len_bytes + 2 * page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    assert_int_equal(mprotect(all + page_bytes, len_bytes, PROT_READ | PROT_WRITE), 0);
    return (struct guarded){all + page_bytes, len_bytes};
}

/* len_bytes of it, directly before the page after it or directly after the page before it. */
static inline char *guarded_part(const struct guarded *guarded, size_t len_bytes, int at_end)
{
    assert_true(len_bytes <= guarded->len_bytes);
    return guarded->begin + (at_end ? guarded->len_bytes - len_bytes : 0);
}

#endif
