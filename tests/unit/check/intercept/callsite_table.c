/* Positions of call sites in their thread's table. Sites with the same first slot do not evict each
 * other, whatever their addresses are; one site too many evicts a single one. */
#include "check/intercept/callsite_cache.h"

#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"

_Atomic uint64_t oriel_checked_version = 1;

#define NO_WINDOW ((MPI_Win)0)

enum { ROUNDS = 20000, CROWD = ORIEL_CALLSITE_LOOKS };

static const void *address_at(uint64_t at)
{
    return (const void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr): never dereferenced */
}

/* Caches a site as callsite_cache.c does. */
static struct oriel_callsite *keep(const void *address, MPI_Win win)
{
    struct oriel_callsite *again = oriel_callsite_place(address, win);
    *again = (struct oriel_callsite){
        .address = address, .win = win, .version = oriel_callsite_version()};
    return again;
}

static bool is_cached(const void *address, MPI_Win win)
{
    const struct oriel_callsite *again = oriel_callsite_place(address, win);
    return again->address == address && again->win == win &&
           again->version == oriel_callsite_version();
}

static void forget_all(void)
{
    memset(oriel_agains, 0, sizeof oriel_agains);
}

/* Addresses with the same first slot, in ascending order. */
static const void *another(uint64_t *at)
{
    const struct oriel_callsite *before = oriel_callsite_place(address_at(*at), NO_WINDOW);
    do
        *at += 1 + below(64);
    while (oriel_callsite_place(address_at(*at), NO_WINDOW) != before);
    return address_at(*at);
}

static void sites_of_one_slot_are_all_cached(void **state)
{
    const void *sites[CROWD];

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t at = 0x400000 + below(1U << 30);
        forget_all();
        for (int i = 0; i < CROWD; i++)
            sites[i] = another(&at);
        for (int i = 0; i < CROWD; i++)
            keep(sites[i], NO_WINDOW);
        for (int i = 0; i < CROWD; i++)
            assert_true(is_cached(sites[i], NO_WINDOW));
    }
}

static void one_too_many_drives_out_one(void **state)
{
    const void *sites[CROWD + 1];
    uint64_t at = 0x400000;
    int cached = 0;

    (void)state;
    forget_all();
    for (int i = 0; i <= CROWD; i++)
        sites[i] = another(&at);
    for (int i = 0; i <= CROWD; i++)
        keep(sites[i], NO_WINDOW);
    for (int i = 0; i <= CROWD; i++)
        cached += is_cached(sites[i], NO_WINDOW);
    assert_int_equal(cached, CROWD);
    assert_true(is_cached(sites[CROWD], NO_WINDOW));
}

/* Entries of windows that may have been replaced are stale: they are evicted before valid ones. */
static void outdated_sites_are_evicted_first(void **state)
{
    const void *sites[2 * CROWD];
    uint64_t at = 0x400000;

    (void)state;
    forget_all();
    for (int i = 0; i < 2 * CROWD; i++)
        sites[i] = another(&at);
    for (int i = 0; i < CROWD; i++)
        keep(sites[i], NO_WINDOW);
    atomic_fetch_add(&oriel_checked_version, 1);
    for (int i = CROWD; i < 2 * CROWD; i++)
        keep(sites[i], NO_WINDOW);
    for (int i = CROWD; i < 2 * CROWD; i++)
        assert_true(is_cached(sites[i], NO_WINDOW));
}

/* The same call on two windows is two sites; both are cached and distinguished. */
static void windows_are_distinguished(void **state)
{
    MPI_Win first = (MPI_Win)(uintptr_t)0x10000, second = (MPI_Win)(uintptr_t)0x20000;
    const void *site = address_at(0x400123);

    (void)state;
    forget_all();
    assert_ptr_not_equal(keep(site, first), keep(site, second));
    assert_true(is_cached(site, first));
    assert_true(is_cached(site, second));
    assert_false(is_cached(address_at(0x400124), first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_of_one_slot_are_all_cached),
        cmocka_unit_test(one_too_many_drives_out_one),
        cmocka_unit_test(outdated_sites_are_evicted_first),
        cmocka_unit_test(windows_are_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
