/* src/internode/target/target_sync.c: holders of a memory handle on other nodes. The owner's agent
 * takes their steps (src/sync/holder_epochs.c). So no epoch is open when the withdrawal returns, no
 * word of the window changes after the window's end, their locks exclude those of the window's
 * ranks, and no process waits for one that is lost. Rank 0 is the owner. The others are ranks of
 * its window, and open the handle if they are on another node. */
#include "simulated_nodes.h"
#include "exclusion_check.h"
#include "holder_calls.h"
#include "internode/origin/origin_peers.h"
#include "internode/target/am_dispatch.h"
#include "sync/accumulate_mutex.h"
#include "sync/holder_epochs.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { OWNER, VICTIM, OTHER, TEAM, ROUNDS = 300 };

enum { KEYS, WITHDRAWN, READY, WAITING, LEFT }; /* flags */

/* --- what create/ does --- */

static struct oriel_handle_area *area; /* the owner's */
static struct oriel_window *owned;     /* the owner's window */

static void area_make(struct oriel_window *window)
{
    uint64_t list, at;
    team_expect(oriel_file_alloc(sizeof(struct oriel_handle_list), 64, &list) == ORIEL_OK);
    team_expect(oriel_file_alloc(sizeof(struct oriel_handle_area), 64, &at) == ORIEL_OK);
    area = (struct oriel_handle_area *)(oriel_file_base() + at);
    owned = window;
    atomic_store(&((struct oriel_handle_list *)(oriel_file_base() + list))->first, at);
    area->target = window->targets[OWNER];
    area->control_offset = window->targets[OWNER].control_offset;
    atomic_store(&window->control->handles_offset, list);
}

static void handle_make(uint64_t key)
{
    atomic_store(&area->withdrawn, 0);
    atomic_store(&area->key, key);
    team_flag_set(KEYS, (uint32_t)key);
}

static struct oriel_window *window_alloc(int32_t n)
{
    struct oriel_window *window = calloc(1, sizeof *window);
    struct oriel_holding *holding = calloc(1, sizeof *holding);
    struct oriel_common *common = aligned_alloc(128, 1024);
    team_expect(window != NULL && holding != NULL && common != NULL);
    memset(common, 0, 1024);
    common->n = n;
    common->bulk_targets = 1;
    *holding = (struct oriel_holding){.access = {ORIEL_ACCESS_STATE_ABSENT}, .common = common};
    window->n = n;
    window->here = 1;
    window->common = common;
    window->targets = common->targets;
    window->holding = holding;
    atomic_init(&window->access, holding->access);
    return window;
}

static void window_free(struct oriel_window *window)
{
    oriel_internode_free(window->internode);
    oriel_group_release(window->group);
    free(window->common);
    free(window->holding);
    free(window);
}

static void group_open(struct oriel_window *window, const struct oriel_identity *owner,
                       const struct oriel_identity *holder, int32_t rank,
                       struct oriel_net_peer *peer)
{
    const struct oriel_member members[] = {{*owner, 1}, {*holder, 2}};
    team_expect(oriel_group_acquire(members, sizeof members[0], 2, rank, &window->group) ==
                ORIEL_OK);
    window->group->net_peers[1 - rank] = peer;
    window->control_bases = window->memory_bases = window->group->bases;
}

/* The agent updates memory for the holder with the accumulate lock. It names the entry, not a rank
 * of the owner's window: waiters ask whether that process lives. */
static void expect_name_in_updates(struct oriel_window *window)
{
    team_expect(oriel_accumulate_mutex_lock(window, 0) == ORIEL_OK);
    team_expect(atomic_load(&window->control->accumulate.word) == window->holding->name);
    oriel_accumulate_mutex_unlock(window, 0);
}

/* create/memory_serve.c */
static enum oriel_status serve_open(const struct oriel_identity *from,
                                    const struct oriel_internode_head *head,
                                    const struct oriel_net_received *message,
                                    struct oriel_window **out)
{
    static uint64_t ids = 1000000;
    struct oriel_net_peer *peer;
    struct oriel_window *window = window_alloc(2);
    struct oriel_holding *holding = window->holding;
    team_expect(oriel_net_open(from, message->data, message->len_bytes, &peer) == ORIEL_OK);
    group_open(window, oriel_file_identity(), from, 0, peer);
    team_expect(oriel_holder_enter(area, &holding->entry) == ORIEL_OK);
    atomic_store(&holding->entry->is_far, 1);
    holding->area = area;
    holding->key = head->b;
    holding->owner_common = owned->common;
    holding->members = owned->group->peers;
    holding->member_count = owned->n;
    holding->name = oriel_holder_name(area, holding->entry);
    window->common->targets[0] = area->target;
    window->control = oriel_window_control(window, 0);
    window->base = owned->base;
    window->internode = oriel_internode_make(++ids, 2);
    team_expect(window->internode != NULL);
    atomic_store(&window->internode->is_finished, true);
    expect_name_in_updates(window);
    *out = window;
    return ORIEL_OK;
}

static void serve_close(struct oriel_window *window)
{
    oriel_internode_rank_lost(window, 1);
    oriel_internode_close(window);
    if (atomic_load(&window->holding->entry->state) != ORIEL_ACCESS_STATE_LOST)
        oriel_holder_leave(window->holding->entry);
    window_free(window);
}

static const struct oriel_am_holders serve = {serve_open, serve_close};

/* create/memory_open.c */
static struct oriel_window *holder_open(struct oriel_window *window, uint64_t key)
{
    struct oriel_window *opened = window_alloc(1);
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_OPEN, .b = key};
    struct oriel_internode_question *question;
    struct oriel_internode_opened answer;
    struct oriel_net_peer *peer;
    struct iovec address;
    size_t len_bytes;
    opened->rank = -1;
    team_expect(oriel_internode_peer(window, OWNER, &peer) == ORIEL_OK);
    group_open(opened, &team->members[OWNER].process, oriel_file_identity(), 1, peer);
    opened->internode = oriel_internode_make(0, 2);
    address.iov_base = (void *)(uintptr_t)oriel_net_address(&address.iov_len);
    team_expect(oriel_internode_question_with(opened, 0, peer, &head, &address, &question) ==
                ORIEL_OK);
    memcpy(&answer, oriel_internode_question_data(question, &len_bytes), sizeof answer);
    team_expect(len_bytes == sizeof answer);
    free(question);
    opened->common->targets[0] = (struct oriel_target){.offset = answer.id,
                                                       .size_bytes = answer.size_bytes,
                                                       .disp_unit = 1,
                                                       .placement = ORIEL_PLACEMENT_NETWORK};
    return opened;
}

static void holder_close(struct oriel_window *opened)
{
    struct oriel_internode_head head = {.kind = ORIEL_INTERNODE_CLOSE};
    struct oriel_internode_question *question;
    if (oriel_internode_question(opened, 0, opened->group->net_peers[0], &head, &question) ==
        ORIEL_OK)
        free(question);
    window_free(opened);
}

/* --- epochs --- */

static bool is_far(void)
{
    return nodes_node_of(team_rank) != nodes_node_of(OWNER);
}

/* Collective: the owner makes a handle, which the ranks on other nodes open. Returns NULL for the
 * others. */
static struct oriel_window *handle_lend(struct oriel_window *window, uint64_t key)
{
    if (window->rank == OWNER)
        handle_make(key);
    team_barrier();
    return is_far() ? holder_open(window, key) : NULL;
}

static struct oriel_window *open_all(void)
{
    struct oriel_window *window = nodes_open();
    oriel_am_dispatch_serve_holders(&serve);
    if (window->rank == OWNER)
        area_make(window);
    team_barrier();
    return window;
}

static void hold_until_refused(struct oriel_window *opened, uint32_t round)
{
    const uint64_t word = 2 * (uint64_t)team_rank;
    for (;;) {
        uint64_t kind = team_random() % HOLDER_KINDS;
        if (!begin_epoch(opened, kind))
            return;
        team_expect(atomic_load(&team->flags[WITHDRAWN]) < round); /* P1 */
        team_expect(nodes_put(opened, 0, word, round) == ORIEL_OK);
        oriel_delay();
        team_expect(oriel_internode_flush(opened, 0) == ORIEL_OK);
        team_expect(atomic_load(&team->flags[WITHDRAWN]) < round);
        team_expect(nodes_put(opened, 0, word + 1, round) == ORIEL_OK);
        end_epoch(opened, kind);
    }
}

static void withdraw_and_check(const struct oriel_window *window, uint32_t round)
{
    if (team_random() % 2 == 0)
        usleep((unsigned)team_random() % 1000);
    oriel_handle_withdraw(area, false);
    team_flag_set(WITHDRAWN, round);
    for (int32_t i = 1; i < window->n; i++)
        team_expect(nodes_load(window, 2 * (uint64_t)i) ==
                    nodes_load(window, 2 * (uint64_t)i + 1)); /* P4 */
}

static void withdraw(struct oriel_window *whole)
{
    struct oriel_window *window = open_all();
    (void)whole;
    for (uint32_t round = 1; team_continues(round - 1) && round < (uint32_t)team_rounds(ROUNDS);
         round++) {
        struct oriel_window *opened = handle_lend(window, round);
        if (opened != NULL)
            hold_until_refused(opened, round);
        else if (window->rank == OWNER)
            withdraw_and_check(window, round);
        if (opened != NULL)
            holder_close(opened);
        team_barrier();
    }
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_withdrawal_waits_for_epochs(void **state)
{
    (void)state;
    nodes_run_sizes(withdraw);
}

/* The queue of the lock stays as it is after the withdrawal at the window's end. */
static void end_window(struct oriel_window *whole)
{
    struct oriel_window *window = open_all();
    (void)whole;
    for (uint32_t round = 1; team_continues(round - 1) && round < (uint32_t)team_rounds(ROUNDS);
         round++) {
        struct oriel_ticket before;
        struct oriel_window *opened = handle_lend(window, round);
        if (window->rank == OWNER) {
            usleep((unsigned)team_random() % 500);
            oriel_handle_withdraw(area, true);
            memcpy(&before, &window->control->lock, sizeof before);
        } else if (opened != NULL) {
            for (uint64_t kind = 0; begin_epoch(opened, kind % 2); kind++)
                end_epoch(opened, kind % 2);
            team_expect(!begin_epoch(opened, 0) && !begin_epoch(opened, 1));
            holder_close(opened);
        }
        team_barrier();
        if (window->rank == OWNER)
            team_expect(memcmp(&before, &window->control->lock, sizeof before) == 0); /* P2 */
        team_barrier();
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_end_waits_for_lock_calls(void **state)
{
    (void)state;
    nodes_run_sizes(end_window);
}

/* The owner sleeps in its withdrawal; the holder makes no call after the end of its epoch. */
static void wake_owner(struct oriel_window *whole)
{
    struct oriel_window *window = open_all();
    (void)whole;
    for (uint32_t round = 1; round <= 8; round++) {
        struct oriel_window *opened = handle_lend(window, round);
        if (window->rank == OWNER) {
            team_flag_await(READY, round);
            oriel_handle_withdraw(area, false);
            team_flag_set(WITHDRAWN, round);
        } else {
            team_expect(begin_epoch(opened, round % 4));
            team_flag_set(READY, round);
            usleep(2000);
            end_epoch(opened, round % 4);
            team_flag_await(WITHDRAWN, round);
            holder_close(opened);
        }
        team_barrier();
    }
    nodes_close(window);
    nodes_stop();
}

static void internode_end_of_an_epoch_wakes_the_owner(void **state)
{
    (void)state;
    nodes_run(2, 2, wake_owner);
}

/* --- exclusion --- */

static void exclude(struct oriel_window *whole)
{
    struct oriel_window *window = open_all();
    struct exclusion *exclusion = exclusion_at(whole, OWNER, 0);
    struct oriel_window *opened = handle_lend(window, 1);
    for (int i = team_rounds(3 * ROUNDS); i > 0 && !team_time_is_up(); i--) {
        const uint64_t kind = team_random() % 4;
        struct oriel_window *on = opened != NULL && team_random() % 2 ? opened : window;
        const bool all = kind == 0 && on == window && !is_far();
        const bool exclusive = kind < 3 && !all;
        if (all)
            team_expect(oriel_lock_all(on) == ORIEL_OK);
        else
            team_expect(oriel_lock(on, 0, exclusive) == ORIEL_OK);
        if (exclusive)
            exclusion_check_writer(exclusion);
        else
            exclusion_check_reader(exclusion);
        team_expect((all ? oriel_unlock_all(on) : oriel_unlock(on, 0)) == ORIEL_OK);
        oriel_delay();
    }
    if (opened != NULL)
        holder_close(opened);
    team_barrier();
    nodes_expect_free(window);
    nodes_close(window);
    nodes_stop();
}

static void internode_locks_of_holders_exclude_the_windows(void **state)
{
    (void)state;
    nodes_run_sizes(exclude);
}

/* --- lost holders --- */

static void expect_lost_holder(enum oriel_status status)
{
    if (status != ORIEL_E_PEER || strstr(oriel_fail_message(), "opened a memory handle") == NULL)
        fprintf(stderr, "rank %d: status %d: %s\n", (int)team_rank, (int)status,
                oriel_fail_message());
    team_expect(status == ORIEL_E_PEER);
}

static void end_without(const struct oriel_window *window)
{
    atomic_fetch_add(&team->flags[LEFT], 1);
    team_flag_await(LEFT, (uint32_t)window->n - 1);
    nodes_stop();
}

/* The victim has the lock; the owner wants it as a rank, the other as a holder. */
static void holder_dies(struct oriel_window *whole)
{
    struct oriel_window *window = open_all();
    (void)whole;
    struct oriel_window *opened = handle_lend(window, 1);
    if (window->rank == VICTIM) {
        team_expect(begin_epoch(opened, 0));
        team_flag_set(READY, 1);
        team_flag_await(WAITING, 2);
        usleep(20000);
        team_die();
    }
    team_flag_await(READY, 1);
    atomic_fetch_add(&team->flags[WAITING], 1);
    if (opened != NULL) {
        expect_lost_holder(oriel_lock(opened, 0, false));
        expect_lost_holder(oriel_lock(opened, 0, true));
        team_flag_set(READY, 2);
    } else {
        expect_lost_holder(oriel_lock(window, OWNER, true));
        team_flag_await(READY, 2);
        oriel_handle_withdraw(area, true);
        team_expect(!oriel_handle_is_unused(area));
        team_expect(atomic_load(&area->holders[0].state) == ORIEL_ACCESS_STATE_LOST ||
                    atomic_load(&area->holders[1].state) == ORIEL_ACCESS_STATE_LOST);
    }
    end_without(window);
}

/* The victim stops responding inside an epoch. No process asks whether it lives, except the owner's
 * agent. */
static void holder_stops(struct oriel_window *whole)
{
    struct oriel_window *window = open_all();
    (void)whole;
    struct oriel_window *opened = handle_lend(window, 1);
    if (window->rank == VICTIM) {
        team_expect(begin_epoch(opened, 2));
        team_flag_set(READY, 1);
        for (;;)
            pause();
    }
    team_flag_await(READY, 1);
    if (window->rank == OWNER) {
        team_stop(VICTIM);
        oriel_handle_withdraw(area, false);
        team_kill(VICTIM);
    }
    end_without(window);
}

static uint32_t gate_writers(const struct oriel_window *window)
{
    return (uint32_t)atomic_load(&window->common->gate.word);
}

/* The victim waits for an exclusive lock at the gate, where the owner's lock_all epoch is. */
static void holder_dies_at_the_gate(struct oriel_window *whole)
{
    struct oriel_window *window = open_all();
    (void)whole;
    struct oriel_window *opened = handle_lend(window, 1);
    if (window->rank == VICTIM) {
        team_flag_await(READY, 1);
        (void)oriel_lock(opened, 0, true);
        team_expect(false);
    }
    team_expect(oriel_lock_all(window) == ORIEL_OK);
    team_flag_set(READY, 1);
    while (gate_writers(window) == 0)
        sched_yield();
    team_kill(VICTIM);
    oriel_handle_withdraw(area, true);
    team_expect(gate_writers(window) == 0); /* P2 */
    end_without(window);
}

static void internode_end_is_after_the_last_step_of_lost_holders(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++)
        nodes_run(2, 2, holder_dies_at_the_gate);
}

static void internode_holders_that_are_lost_are_reported(void **state)
{
    (void)state;
    nodes_run(TEAM, 3, holder_dies);
    setenv("ORIEL_TIMEOUT", "1", 1);
    nodes_run(2, 2, holder_stops);
    unsetenv("ORIEL_TIMEOUT");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_withdrawal_waits_for_epochs),
        cmocka_unit_test(internode_end_waits_for_lock_calls),
        cmocka_unit_test(internode_end_of_an_epoch_wakes_the_owner),
        cmocka_unit_test(internode_locks_of_holders_exclude_the_windows),
        cmocka_unit_test(internode_holders_that_are_lost_are_reported),
        cmocka_unit_test(internode_end_is_after_the_last_step_of_lost_holders),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
