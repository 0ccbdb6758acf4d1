/* Shared by the tests of promotion: each case runs once with each method, as its state selects,
 * and skips an unavailable one. A peer is the same file mapped a second time. */
#ifndef ORIEL_TESTS_UNIT_PROMOTE_COMMON_H
#define ORIEL_TESTS_UNIT_PROMOTE_COMMON_H

#include "memory/promote/promotable.h"
#include "memory/file.h"
#include "memory/proc_maps.h"
#include "memory/promote/promote.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmocka_all.h"

#define PAGE ORIEL_PAGE_BYTES
#define MIB  (UINT64_C(1) << 20)

__attribute__((unused)) static struct oriel_promote_options protect = {.method =
                                                                           ORIEL_BARRIER_UFFD};
static struct oriel_promote_options quiesce = {.method = ORIEL_BARRIER_STOP_THREADS};

#define BY_BOTH(test)                                                                              \
    {#test " (protect)", test, NULL, NULL, &protect},                                              \
    {                                                                                              \
#test " (quiesce)", test, NULL, NULL, &quiesce                                             \
    }

static inline char *map_private(uint64_t len_bytes)
{
    char *memory =
        mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

/* ThreadSanitizer's own thread, which starts with the first other one, blocks all signals: nothing
 * moves from then on. */
static inline void skip_where_nothing_moves(void)
{
    if (THREAD_SANITIZER) {
        print_message("skipped: the thread of ThreadSanitizer cannot be stopped\n");
        skip();
    }
}

/* The method of a case, after it has promoted one page. */
static inline const struct oriel_promote_options *means_of(void **state)
{
    const struct oriel_promote_options *how = *state;
    struct oriel_promoted promoted;
    char *page = map_private(PAGE);
    enum oriel_status status = oriel_promote((uintptr_t)page, PAGE, how, &promoted);
    if (status != ORIEL_OK) {
        print_message("refused here: %s\n", oriel_fail_message());
        /* Only ThreadSanitizer's thread, which blocks all signals, can prevent this program's
         * threads from being stopped. */
        assert_true(how->method == ORIEL_BARRIER_UFFD || THREAD_SANITIZER);
        skip();
    }
    oriel_promote_release(&promoted);
    munmap(page, PAGE);
    return how;
}

static inline void promote(const void *base, uint64_t len_bytes,
                           const struct oriel_promote_options *how, struct oriel_promoted *out)
{
    if (oriel_promote((uintptr_t)base, len_bytes, how, out) != ORIEL_OK)
        fail_msg("%s", oriel_fail_message());
}

/* The promoted memory as peers see it. */
static inline char *peer_view(const void *base, uint64_t len_bytes)
{
    uint64_t offset;
    uint64_t held_bytes;
    assert_true(oriel_promote_find((uintptr_t)base, len_bytes, &offset, &held_bytes));
    assert_int_equal(held_bytes, len_bytes);
    uint64_t in_page = offset % PAGE;
    char *view = mmap(NULL, in_page + len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                      oriel_file_identity()->memory_fd, (off_t)(offset - in_page));
    assert_true(view != MAP_FAILED);
    return view + in_page;
}

static inline bool is_promoted(const void *base)
{
    uint64_t offset;
    uint64_t held_bytes;
    return oriel_promote_find((uintptr_t)base, 1, &offset, &held_bytes);
}

/* why: what the message says, or one of two, separated by '|'. */
static inline void assert_refused(const void *base, uint64_t len_bytes,
                                  const struct oriel_promote_options *how, const char *why)
{
    struct oriel_promoted promoted;
    oriel_promotable_expire_cache();
    assert_int_equal(oriel_promote((uintptr_t)base, len_bytes, how, &promoted), ORIEL_E_OTHER);
    const char *other = strchr(why, '|');
    char *first = strndup(why, other != NULL ? (size_t)(other - why) : strlen(why));
    if (strstr(oriel_fail_message(), first) == NULL &&
        (other == NULL || strstr(oriel_fail_message(), other + 1) == NULL))
        fail_msg("\"%s\" does not say \"%s\"", oriel_fail_message(), why);
    free(first);
    assert_true(promoted.start == promoted.end);
    oriel_promote_release(&promoted); /* nothing is promoted, nothing to release */
}

/* Physical memory of the file. */
static inline uint64_t file_bytes(void)
{
    struct stat info;
    assert_int_equal(fstat(oriel_file_identity()->memory_fd, &info), 0);
    return (uint64_t)info.st_blocks * 512;
}

/* Bytes that differ from offset to offset. */
static inline void expect_data(const char *memory, uint64_t len_bytes, int salt)
{
    for (uint64_t i = 0; i < len_bytes; i += 512)
        assert_int_equal((unsigned char)memory[i], (unsigned char)(i / 512 + (uint64_t)salt));
}

static inline void fill(char *memory, uint64_t len_bytes, int salt)
{
    for (uint64_t i = 0; i < len_bytes; i += 512)
        memory[i] = (char)(i / 512 + (uint64_t)salt);
}

static inline bool count_mapping(const struct oriel_mapping *mapping, void *context)
{
    (void)mapping;
    ++*(int *)context;
    return true;
}

/* The number of mappings in a piece of memory. */
static inline int mappings_in(const void *base, uint64_t len_bytes)
{
    int count = 0;
    assert_true(oriel_proc_maps_visit((uintptr_t)base, (uintptr_t)base + len_bytes, false,
                                      count_mapping, &count));
    return count;
}

static inline int promote_setup(void **state)
{
    (void)state;
    return oriel_file_start() == ORIEL_OK ? 0 : -1;
}

#endif
