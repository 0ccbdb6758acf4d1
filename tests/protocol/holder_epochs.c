/* src/sync/holder_epochs.c: no epoch on a memory handle is open when its withdrawal returns, and no
 * holder touches the window's words when the window ends. An area is not used again while a process
 * has an entry, and no process waits for the dead. Holders' accumulates lose none of other updates
 * (src/sync/atomic_mode.c). Rank 0 owns the memory. The others open its handle, and have the
 * owner's window besides. */
#include "holder_calls.h"
#include "make_window.h"
#include "sync/accumulate_mutex.h"
#include "sync/atomic_mode.h"
#include "sync/holder_epochs.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { OWNER, VICTIM, OTHER, TEAM, ROUNDS = 400 };

enum { AREA, WITHDRAWN, READY, SUM }; /* flags */

/* The owner makes the area once; its offset is in a flag. */
static struct oriel_handle_area *area_publish(struct oriel_window *window)
{
    uint64_t list, at;
    team_expect(oriel_file_alloc(sizeof(struct oriel_handle_list), 64, &list) == ORIEL_OK);
    team_expect(oriel_file_alloc(sizeof(struct oriel_handle_area), 64, &at) == ORIEL_OK);
    struct oriel_handle_area *area = (struct oriel_handle_area *)(oriel_file_base() + at);
    atomic_store(&((struct oriel_handle_list *)(oriel_file_base() + list))->first, at);
    area->target = window->targets[OWNER];
    area->control_offset = window->targets[OWNER].control_offset;
    atomic_store(&window->control->handles_offset, list);
    team_flag_set(AREA, (uint32_t)(at / 64));
    return area;
}

static struct oriel_handle_area *area_find(const struct oriel_window *window)
{
    while (atomic_load(&team->flags[AREA]) == 0)
        sched_yield();
    return (struct oriel_handle_area *)(window->control_bases[OWNER] +
                                        64 * (uint64_t)atomic_load(&team->flags[AREA]));
}

/* What create/memory_open.c makes of an entry. */
static struct oriel_window *holder_window(struct oriel_window *window,
                                          struct oriel_handle_area *area, uint64_t key)
{
    struct oriel_window *opened = calloc(1, sizeof *opened);
    struct oriel_holding *holding = calloc(1, sizeof *holding);
    struct oriel_common *common = calloc(1, oriel_common_bytes(1) + 64);
    team_expect(opened != NULL && holding != NULL && common != NULL);
    team_expect(oriel_group_acquire(team->members, sizeof team->members[0], 1, 0, &opened->group) ==
                ORIEL_OK);
    team_expect(oriel_holder_enter(area, &holding->entry) == ORIEL_OK);
    common->targets[0] = window->targets[OWNER];
    common->bulk_targets = 1;
    *holding = (struct oriel_holding){
        .area = area,
        .entry = holding->entry,
        .key = key,
        .owner_common = window->common,
        .members = window->group->peers,
        .member_count = window->n,
        .name = oriel_holder_name(area, holding->entry),
        .access = {ORIEL_ACCESS_STATE_ABSENT},
        .common = common,
    };
    opened->n = opened->here = 1;
    opened->rank = -1;
    opened->control_bases = opened->memory_bases = opened->group->bases;
    opened->common = common;
    opened->targets = common->targets;
    opened->holding = holding;
    atomic_init(&opened->access, holding->access);
    return opened;
}

static void holder_window_close(struct oriel_window *opened)
{
    oriel_holder_leave(opened->holding->entry);
    oriel_group_release(opened->group);
    free(opened->holding->common);
    free(opened->holding);
    free(opened);
}

static void handle_renew(struct oriel_handle_area *area, uint64_t key)
{
    atomic_store(&area->withdrawn, 0);
    atomic_store(&area->key, key);
}

/* All ranks: the owner makes the handle with key 1. */
static struct oriel_handle_area *area_with_handle(struct oriel_window *window)
{
    struct oriel_handle_area *area =
        window->rank == OWNER ? area_publish(window) : area_find(window);
    if (window->rank == OWNER)
        handle_renew(area, 1);
    team_barrier();
    return area;
}

/* --- withdrawal --- */

static void hold_until_refused(struct oriel_window *opened, uint32_t round)
{
    for (;;) {
        uint64_t kind = team_random() % HOLDER_KINDS;
        if (!begin_epoch(opened, kind))
            return;
        team_expect(atomic_load(&team->flags[WITHDRAWN]) < round); /* P1 */
        window_memory(opened, 0)[team_rank] = round;
        oriel_delay();
        team_expect(atomic_load(&team->flags[WITHDRAWN]) < round);
        window_memory(opened, 0)[TEAM_MOST + team_rank] = round;
        end_epoch(opened, kind);
    }
}

static void withdraw_and_check(struct oriel_window *window, struct oriel_handle_area *area,
                               uint32_t round)
{
    const uint64_t *words = window_memory(window, OWNER);
    if (team_random() % 2 == 0)
        usleep((unsigned)team_random() % 100);
    oriel_handle_withdraw(area, false);
    team_flag_set(WITHDRAWN, round);
    for (int32_t i = 1; i < window->n; i++)
        team_expect(words[i] == words[TEAM_MOST + i]); /* P4 */
}

static void withdraw(struct oriel_window *window)
{
    struct oriel_handle_area *area =
        window->rank == OWNER ? area_publish(window) : area_find(window);
    for (uint32_t round = 1; team_continues(round - 1) && round < (uint32_t)team_rounds(ROUNDS);
         round++) {
        if (window->rank == OWNER)
            handle_renew(area, round);
        team_barrier();
        struct oriel_window *opened =
            window->rank == OWNER ? NULL : holder_window(window, area, round);
        if (opened != NULL)
            hold_until_refused(opened, round);
        else
            withdraw_and_check(window, area, round);
        if (opened != NULL)
            holder_window_close(opened);
        team_barrier();
    }
}

static void withdrawal_p1_waits_for_epochs(void **state)
{
    (void)state;
    team_run_sizes(withdraw);
}

/* --- the end of the window --- */

static void end_window(struct oriel_window *window)
{
    struct oriel_handle_area *area =
        window->rank == OWNER ? area_publish(window) : area_find(window);
    for (uint32_t round = 1; team_continues(round - 1) && round < (uint32_t)team_rounds(ROUNDS);
         round++) {
        struct oriel_ticket before;
        if (window->rank == OWNER)
            handle_renew(area, round);
        team_barrier();
        if (window->rank == OWNER) {
            usleep((unsigned)team_random() % 50);
            oriel_handle_withdraw(area, true);
            memcpy(&before, &window->control->lock, sizeof before);
        } else {
            struct oriel_window *opened = holder_window(window, area, round);
            for (uint64_t kind = 0; begin_epoch(opened, kind % 2); kind++)
                end_epoch(opened, kind % 2);
            holder_window_close(opened);
        }
        team_barrier();
        if (window->rank == OWNER)
            team_expect(memcmp(&before, &window->control->lock, sizeof before) == 0); /* P2 */
        team_barrier();
    }
}

static void the_end_p2_waits_for_lock_calls(void **state)
{
    (void)state;
    team_run_sizes(end_window);
}

/* The owner sleeps in W2; the end of the epoch wakes it. */
static void wake_owner(struct oriel_window *window)
{
    struct oriel_handle_area *area =
        window->rank == OWNER ? area_publish(window) : area_find(window);
    for (uint32_t round = 1; round <= 8; round++) {
        if (window->rank == OWNER)
            handle_renew(area, round);
        team_barrier();
        if (window->rank == OWNER) {
            team_flag_await(READY, round);
            team_timeouts = 0;
            oriel_handle_withdraw(area, false);
            team_expect(team_timeouts == 0);
        } else {
            struct oriel_window *opened = holder_window(window, area, round);
            team_expect(begin_epoch(opened, round % 4));
            team_flag_set(READY, round);
            while (atomic_load(&area->left.sleepers) == 0)
                sched_yield();
            usleep(1000);
            end_epoch(opened, round % 4);
            holder_window_close(opened);
        }
        team_barrier();
    }
}

static void withdrawal_p3_is_woken(void **state)
{
    (void)state;
    team_run(2, wake_owner);
}

/* --- accumulates --- */

enum { WORDS = 5 };

static void update_single(struct oriel_window *window, int32_t target)
{
    _Atomic uint64_t *word =
        (_Atomic uint64_t *)(void *)&window_memory(window, target)[team_random() % WORDS];
    _Atomic uint32_t *inside = oriel_atomic_mode_enter(window, target);
    if (inside == NULL)
        team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
    oriel_delay();
    atomic_fetch_add_explicit(word, 1, memory_order_acq_rel);
    oriel_delay();
    if (inside != NULL) {
        oriel_store_release(inside, 0);
        return;
    }
    oriel_atomic_mode_count(window, target);
    oriel_accumulate_mutex_unlock(window, target);
}

/* The target's state is reset, so singles are soon free of the lock again. */
static void update_bulk(struct oriel_window *window, int32_t target)
{
    uint64_t *words = window_memory(window, target);
    team_expect(oriel_accumulate_mutex_lock(window, target) == ORIEL_OK);
    oriel_window_control(window, target)->single_updates_to_leave_bulk = 0;
    oriel_bulk_begin(window, target);
    for (unsigned i = 0; i < WORDS; i++) {
        uint64_t value = words[i];
        oriel_delay();
        words[i] = value + 1;
    }
    oriel_accumulate_mutex_unlock(window, target);
}

/* All ranks update the owner's words, through the window and through the handle. are_outside: only
 * the owner is in the window. */
static void update_all(struct oriel_window *window, bool are_outside)
{
    struct oriel_handle_area *area = area_with_handle(window);
    struct oriel_window *opened = holder_window(window, area, 1);
    if (are_outside)
        window->n = opened->holding->member_count = 1;
    uint32_t mine = 0;
    for (int i = team_rounds(4 * ROUNDS); i > 0 && !team_time_is_up(); i--) {
        bool by_handle = are_outside ? window->rank != OWNER : team_random() % 2;
        struct oriel_window *on = by_handle ? opened : window;
        if (team_random() % 8 == 0) {
            update_bulk(on, 0);
            mine += WORDS;
        }
        unsigned singles = team_random() % 16 == 0 ? ORIEL_SINGLES_IN_A_ROW : 3;
        for (unsigned k = 0; k < singles; k++)
            update_single(on, 0);
        mine += singles;
    }
    atomic_fetch_add(&team->flags[SUM], mine);
    holder_window_close(opened);
    team_barrier();
    uint64_t sum = 0;
    for (unsigned i = 0; i < WORDS; i++)
        sum += window_memory(window, OWNER)[i];
    team_expect(sum == atomic_load(&team->flags[SUM]));
    team_expect(window->common->bulk_targets == window->control->bulk || window->rank != OWNER);
    team_barrier();
}

static void update_inside(struct oriel_window *window)
{
    update_all(window, false);
}

static void update_outside(struct oriel_window *window)
{
    update_all(window, true);
}

static void accumulates_of_holders_are_not_lost(void **state)
{
    (void)state;
    team_run_sizes(update_inside);
    team_run_sizes(update_outside);
}

/* --- entries --- */

static void reuse(struct oriel_window *window)
{
    struct oriel_handle_area *area = area_with_handle(window);
    uint64_t key = 1;
    for (int i = 0; i < team_rounds(20 * ROUNDS) && !team_time_is_up(); i++) {
        struct oriel_holder *entry;
        if (window->rank == OWNER) {
            atomic_store(&area->withdrawn, 1);
            atomic_store(&area->key, 0);
            oriel_delay();
            key += oriel_handle_is_unused(area); /* else the same handle again */
            handle_renew(area, key);
            continue;
        }
        team_expect(oriel_holder_enter(area, &entry) == ORIEL_OK);
        key = atomic_load(&area->key);
        if (key != 0 && oriel_handle_is_valid(area, key)) {
            oriel_delay();
            uint64_t now = atomic_load(&area->key);
            team_expect(now == key || now == 0);
        }
        oriel_holder_leave(entry);
    }
}

static void enter_and_leave(struct oriel_window *window)
{
    struct oriel_handle_area *area = area_with_handle(window);
    struct oriel_holder *entry;
    if (window->rank == OWNER) {
        atomic_store(&area->withdrawn, 1);
        atomic_store(&area->key, 0);
    } else {
        team_expect(oriel_holder_enter(area, &entry) == ORIEL_OK);
    }
    team_barrier();
    team_expect(window->rank != OWNER || !oriel_handle_is_unused(area));
    team_barrier();
    if (window->rank != OWNER)
        oriel_holder_leave(entry);
    team_barrier();
    team_expect(window->rank != OWNER || oriel_handle_is_unused(area));
}

static void areas_are_reused_without_entries(void **state)
{
    (void)state;
    team_run(2, enter_and_leave);
    team_run_sizes(reuse);
}

/* --- deaths --- */

static void expect_dead(enum oriel_status status, const char *who)
{
    team_expect(status == ORIEL_E_PEER);
    team_expect(strstr(oriel_fail_message(), who) != NULL);
    team_expect(strstr(oriel_fail_message(), "has died") != NULL);
}

static void die_waited_for(void)
{
    team_flag_set(READY, 1);
    usleep(120000);
    team_die();
}

/* All of them: the owner withdraws, and the others want what the dead holder has. It counts as no
 * rank of the owner's window for other holders. */
static void exclusive_holder(struct oriel_window *window)
{
    struct oriel_handle_area *area = area_with_handle(window);
    struct oriel_window *opened = window->rank == OWNER ? NULL : holder_window(window, area, 1);
    if (opened != NULL)
        opened->holding->member_count = VICTIM;
    if (window->rank == VICTIM) {
        team_expect(oriel_accumulate_mutex_lock(opened, 0) == ORIEL_OK);
        team_expect(begin_epoch(opened, 0));
        die_waited_for();
    }
    team_flag_await(READY, 1);
    if (window->rank == OWNER) {
        expect_dead(oriel_lock(window, OWNER, false), "memory handle");
        expect_dead(oriel_lock_all(window), "memory handle");
        expect_dead(oriel_accumulate_mutex_lock(window, OWNER), "memory handle");
        team_flag_await(READY, 2);
        oriel_handle_withdraw(area, true);
        /* the dead one has the lock as long as there is a window */
        team_expect(!oriel_handle_is_unused(area));
        atomic_store(&area->control_offset, 0);
        team_expect(oriel_handle_is_unused(area));
    } else {
        expect_dead(oriel_accumulate_mutex_lock(opened, 0), "memory handle");
        expect_dead(oriel_lock(opened, 0, true), "memory handle");
        holder_window_close(opened);
        team_flag_set(READY, 2);
    }
}

static void a_holder_that_dies_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, exclusive_holder);
}

/* A rank of the owner's window dies with the lock and the mutex. */
static void rank_dies(struct oriel_window *window)
{
    struct oriel_handle_area *area = area_with_handle(window);
    if (window->rank == VICTIM) {
        team_expect(oriel_lock(window, OWNER, true) == ORIEL_OK);
        team_expect(oriel_accumulate_mutex_lock(window, OWNER) == ORIEL_OK);
        die_waited_for();
    }
    team_flag_await(READY, 1);
    if (window->rank == OTHER) {
        struct oriel_window *opened = holder_window(window, area, 1);
        expect_dead(oriel_accumulate_mutex_lock(opened, 0), "rank 1");
        expect_dead(oriel_lock(opened, 0, false), "rank 1");
        team_flag_set(READY, 2);
    }
    team_flag_await(READY, 2);
}

static void a_rank_that_dies_is_reported_to_holders(void **state)
{
    (void)state;
    team_run(TEAM, rank_dies);
}

static bool life_shows_death(struct oriel_window *opened)
{
    return oriel_load_has(&oriel_file_life(opened->control_bases[0])->word, ORIEL_LIFE_DIED);
}

/* The owner dies, and no process waits for it. The epochs end, and new ones are refused. */
static void idle_owner_dies(struct oriel_window *window)
{
    struct oriel_handle_area *area = area_with_handle(window);
    struct oriel_window *opened = window->rank == OWNER ? NULL : holder_window(window, area, 1);
    const uint64_t kind = window->rank == OTHER ? 3 : 1;
    if (window->rank != OWNER)
        team_expect(begin_epoch(opened, kind));
    team_barrier();
    if (window->rank == OWNER)
        team_die();
    while (oriel_peer_alive(opened->group->peers[0]))
        usleep(1000);
    team_expect(life_shows_death(opened));
    expect_dead(kind == 3 ? oriel_unlock_all(opened) : oriel_unlock(opened, 0), "owner");
    team_expect(opened->holding->entry->state == ORIEL_ACCESS_STATE_NONE);
    expect_dead(oriel_lock(opened, 0, true), "owner");
    expect_dead(oriel_lock_trusted(opened, 0), "owner");
    expect_dead(oriel_lock_all(opened), "owner");
    team_expect(opened->holding->entry->state == ORIEL_ACCESS_STATE_NONE);
    holder_window_close(opened);
}

/* The owner dies with its own lock. */
static void owner_dies(struct oriel_window *window)
{
    struct oriel_handle_area *area = area_with_handle(window);
    struct oriel_window *opened = window->rank == OWNER ? NULL : holder_window(window, area, 1);
    if (window->rank == OWNER) {
        team_expect(oriel_lock(window, OWNER, true) == ORIEL_OK);
        die_waited_for();
    }
    team_flag_await(READY, 1);
    expect_dead(oriel_lock(opened, 0, window->rank == OTHER), "owner");
}

static void an_owner_that_dies_is_reported(void **state)
{
    (void)state;
    team_run(TEAM, owner_dies);
    team_run(TEAM, idle_owner_dies);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(withdrawal_p1_waits_for_epochs),
        cmocka_unit_test(the_end_p2_waits_for_lock_calls),
        cmocka_unit_test(withdrawal_p3_is_woken),
        cmocka_unit_test(accumulates_of_holders_are_not_lost),
        cmocka_unit_test(areas_are_reused_without_entries),
        cmocka_unit_test(a_holder_that_dies_is_reported),
        cmocka_unit_test(a_rank_that_dies_is_reported_to_holders),
        cmocka_unit_test(an_owner_that_dies_is_reported),
    };
    team_prepare(argc, argv);
    if (team_has_threads()) {
        puts("skipped: a holder is a process");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
