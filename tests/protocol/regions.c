/* src/create/regions.c: an origin sees a consistent table of regions, whatever the owner does to it
 * meanwhile. Addresses are plain numbers here; nothing is moved. */
#include "make_window.h"
#include "rma/region_lookup.h"
#include "create/regions.h"

enum {
    CHANGES = 4000,
    STEADY = 40,
    SPACING = 1000,
    LENGTH = 100,
    FIRST_REGION = 1000000,
    RANGES = 8192
};

static struct oriel_window *with_regions(struct oriel_window *window)
{
    window->serial = 1;
    return window;
}

/* The middle of a longer region has an offset in the file, from which its beginning follows. */
static void attach(struct oriel_window *window, uint64_t start, uint64_t len_bytes)
{
    static struct oriel_memory_range ranges[RANGES]
                                           [3]; /* more than there are regions at any time */
    static unsigned used;
    struct oriel_memory_range *parts = ranges[used++ % RANGES];
    uint64_t third = len_bytes / 3;
    uint64_t end = start + len_bytes;
    parts[0] = (struct oriel_memory_range){start, third > 0 ? start + third : end,
                                           ORIEL_SHARING_PRIVATE, 0};
    parts[1] = (struct oriel_memory_range){start + third, end - third, ORIEL_SHARING_PROMOTED,
                                           start + third};
    parts[2] = (struct oriel_memory_range){end - third, end, ORIEL_SHARING_PRIVATE, 0};
    team_expect(oriel_regions_insert(window, parts, third > 0 ? 3 : 1) == ORIEL_OK);
}

static void detach(struct oriel_window *window, uint64_t start)
{
    team_expect(oriel_regions_remove(window, start) == ORIEL_OK);
}

static bool holds(struct oriel_window *window, uint64_t start, uint64_t len_bytes)
{
    return oriel_region_lookup_hold(window, 0, start, len_bytes);
}

/* The region around an address is complete, with its own offset. */
static bool is_whole(struct oriel_window *window, uint64_t address)
{
    struct oriel_region_lookup found;
    return oriel_region_lookup_find(window, 0, address, &found) && address >= found.start &&
           address < found.end && (found.offset == 0 || found.offset == found.start);
}

static uint64_t steady(uint64_t i)
{
    return FIRST_REGION + i * SPACING;
}

/* Two regions that never exist together alternate on one range. Others move up and down in the
 * table before the steady ones, so all of those shift. */
static void change_table(struct oriel_window *window)
{
    bool first_shape = true;
    attach(window, steady(STEADY), LENGTH);
    for (int i = 0; i < CHANGES && !team_time_is_up(); i++) {
        uint64_t passing = 10 * (1 + team_random() % 1000);
        attach(window, passing, 5);
        detach(window, first_shape ? steady(STEADY) : steady(STEADY) + LENGTH / 2);
        first_shape = !first_shape;
        attach(window, first_shape ? steady(STEADY) : steady(STEADY) + LENGTH / 2, LENGTH);
        detach(window, passing);
    }
    team_flag_set(0, 1);
}

static void watch_table(struct oriel_window *window)
{
    while (atomic_load(&team->flags[0]) == 0) {
        uint64_t i = team_random() % STEADY;
        team_expect(holds(window, steady(i), LENGTH));
        team_expect(holds(window, steady(i) + LENGTH - 1, 1));
        team_expect(is_whole(window, steady(i) + LENGTH / 2) && is_whole(window, steady(i)));
        team_expect(!holds(window, steady(i) + LENGTH - 1, 2));
        team_expect(!holds(window, steady(i) - 1, 2));
        team_expect(!holds(window, steady(STEADY), LENGTH + LENGTH / 2)); /* parts of both shapes */
        team_expect(holds(window, 2 * FIRST_REGION, 4 * LENGTH));         /* four that touch */
        team_expect(!holds(window, 2 * FIRST_REGION, 4 * LENGTH + 1));
    }
}

static void one_table_at_a_time(struct oriel_window *window)
{
    with_regions(window);
    if (window->rank == 0) {
        for (uint64_t i = 0; i < STEADY; i++)
            attach(window, steady(i), LENGTH);
        for (uint64_t i = 0; i < 4; i++)
            attach(window, 2 * FIRST_REGION + i * LENGTH, LENGTH);
    }
    team_barrier();
    if (window->rank == 0)
        change_table(window);
    else
        watch_table(window);
    team_barrier();
    if (window->rank == 0)
        oriel_regions_close(window);
}

static void regions_p2_lookups_see_one_table(void **state)
{
    (void)state;
    team_run_sizes(one_table_at_a_time);
}

/* Cached lookups are invalid once the owner has changed the table and published that. */
static void attach_and_detach_in_turn(struct oriel_window *window)
{
    with_regions(window);
    for (uint32_t round = 0; team_continues(round) && round < 200; round++) {
        if (window->rank == 0)
            attach(window, steady(round % 3), LENGTH + round);
        team_barrier();
        team_expect(holds(window, steady(round % 3), LENGTH + round));
        team_expect(holds(window, steady(round % 3), LENGTH + round)); /* cached */
        team_expect(!holds(window, steady(round % 3), LENGTH + round + 1));
        team_barrier();
        if (window->rank == 0)
            detach(window, steady(round % 3));
        team_barrier();
        team_expect(!holds(window, steady(round % 3), 1));
        team_barrier();
    }
    team_barrier();
    if (window->rank == 0)
        oriel_regions_close(window);
}

static void regions_p1_changes_are_seen_by_origins_with_caches(void **state)
{
    (void)state;
    team_run_sizes(attach_and_detach_in_turn);
}

/* The table outgrows its space repeatedly. */
static void grow_table(struct oriel_window *window)
{
    with_regions(window);
    if (window->rank == 0)
        attach(window, steady(0), LENGTH);
    team_barrier();
    if (window->rank == 0) {
        for (uint64_t i = 1; i < 3000; i++)
            attach(window, steady(i), LENGTH);
        team_flag_set(0, 1);
    }
    for (bool last = false; !last;) {
        last = atomic_load(&team->flags[0]) != 0;
        team_expect(holds(window, steady(0), LENGTH));
        team_expect(!holds(window, steady(0), LENGTH + 1));
        oriel_delay();
    }
    team_expect(holds(window, steady(2999), LENGTH));
    team_barrier();
    if (window->rank == 0)
        oriel_regions_close(window);
}

static void regions_p3_growth_loses_nothing(void **state)
{
    (void)state;
    team_run_sizes(grow_table);
}

/* The owner dies while its next table is half built: the present one remains. */
static void die_in_a_change(struct oriel_window *window)
{
    with_regions(window);
    if (window->rank == 0) {
        attach(window, steady(0), LENGTH);
        atomic_fetch_add(&window->control->regions.version, 1);
    }
    team_barrier();
    if (window->rank == 0)
        team_die();
    for (int i = 0; i < 100; i++) {
        team_expect(holds(window, steady(0), LENGTH));
        team_expect(!holds(window, steady(0), LENGTH + 1));
    }
}

static void regions_of_a_killed_owner_stay(void **state)
{
    (void)state;
    if (team_has_threads())
        skip();
    team_run(3, die_in_a_change);
}

/* An owner that changes its table all the time does not delay a lookup forever. */
static void change_without_end(struct oriel_window *window)
{
    with_regions(window);
    if (window->rank == 0)
        for (uint64_t i = 0; i < 5000; i++)
            attach(window, steady(i), LENGTH);
    team_barrier();
    if (window->rank == 0) {
        while (atomic_load(&team->flags[0]) != (uint32_t)window->n - 1) {
            attach(window, 1, 1); /* all others move */
            detach(window, 1);
        }
        oriel_regions_close(window);
    } else {
        for (int i = 0; i < 200; i++) {
            uint64_t region = team_random() % 5000;
            team_expect(holds(window, steady(region), LENGTH) &&
                        !holds(window, steady(region) - 1, 2));
        }
        atomic_fetch_add(&team->flags[0], 1);
    }
}

static void regions_lookups_end_under_endless_changes(void **state)
{
    (void)state;
    team_run(3, change_without_end);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_p2_lookups_see_one_table),
        cmocka_unit_test(regions_p1_changes_are_seen_by_origins_with_caches),
        cmocka_unit_test(regions_p3_growth_loses_nothing),
        cmocka_unit_test(regions_of_a_killed_owner_stay),
        cmocka_unit_test(regions_lookups_end_under_endless_changes),
    };
    return team_main(tests, argc, argv);
}
