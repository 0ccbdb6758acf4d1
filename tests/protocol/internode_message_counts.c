/* The number and length of messages to a target on another node and back, while its program is
 * outside MPI calls. Locks, flushes and requests for data need one round trip each; other messages
 * travel with them. */
#include "internode/origin/flush_several.h"
#include "simulated_nodes.h"
#include "transport/ucx/library.h"
#include "transport/ucx/wire.h"

static _Atomic uint64_t *sends; /* of UCX's by this process */
static _Atomic uint64_t *bytes; /* in those sends */
static __typeof__(oriel_ucp_calls.ucp_am_send_nbx) send_by_ucx;

static ucs_status_ptr_t count_send(ucp_ep_h ep, unsigned id, const void *header,
                                   size_t header_bytes, const void *data, size_t count,
                                   const ucp_request_param_t *how)
{
    atomic_fetch_add(sends, 1);
    atomic_fetch_add(bytes, header_bytes + count);
    return send_by_ucx(ep, id, header, header_bytes, data, count, how);
}

static void lock_put_unlock(struct oriel_window *window, uint64_t value, bool trusted)
{
    bool exclusive = value % 2 == 0;
    team_expect((trusted ? oriel_lock_trusted(window, 1) : oriel_lock(window, 1, exclusive)) ==
                ORIEL_OK);
    team_expect(nodes_put(window, 1, 0, value) == ORIEL_OK);
    team_expect(oriel_unlock(window, 1) == ORIEL_OK);
}

static void lock_lazy_put_unlock(struct oriel_window *window, uint64_t value, bool trusted)
{
    team_expect(!trusted && oriel_lock_lazy(window, 1, value % 2 == 0) == ORIEL_OK);
    team_expect(nodes_put(window, 1, 0, value) == ORIEL_OK);
    team_expect(oriel_unlock(window, 1) == ORIEL_OK);
}

static void lock_all_put_unlock(struct oriel_window *window, uint64_t value, bool trusted)
{
    team_expect((trusted ? oriel_lock_all_trusted : oriel_lock_all)(window) == ORIEL_OK);
    team_expect(nodes_put(window, 1, 0, value) == ORIEL_OK);
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
}

/* Without a lock, two round trips: one for the put and its flush, one for the get and its own. */
static void put_and_get_back(struct oriel_window *window, uint64_t value, bool trusted)
{
    team_expect((trusted ? oriel_lock_all_trusted : oriel_lock_all)(window) == ORIEL_OK);
    team_expect(nodes_put(window, 1, 0, value) == ORIEL_OK);
    team_expect(oriel_internode_flush(window, 1) == ORIEL_OK);
    team_expect(nodes_read(window, 1, 0) == value);
    team_expect(oriel_unlock_all(window) == ORIEL_OK);
}

/* Flushed together, they are one round trip; one by one they would be three. */
static struct oriel_window *others[2];

static void put_to_three_windows(struct oriel_window *window, uint64_t value, bool trusted)
{
    struct oriel_window *windows[] = {others[0], others[1], window};
    struct oriel_window *failed;
    (void)trusted;
    for (int i = 0; i < 3; i++)
        team_expect(nodes_put(windows[i], 1, 0, value) == ORIEL_OK);
    team_expect(oriel_internode_flush_windows(windows, 3, &failed) == ORIEL_OK);
}

/* Rank 0 repeats the step towards rank 1 until it sends no more than the expected messages and
 * bytes, and gets no more back. It takes several attempts, because a rank that waits long checks
 * whether others live. */
static void count_messages(struct oriel_window *whole,
                           void (*act)(struct oriel_window *, uint64_t, bool), bool trusted,
                           uint64_t most, const uint64_t most_bytes[2])
{
    enum { TIMES = 20, COUNTED = 4 }; /* messages of each side, bytes of each side */
    struct oriel_window *window = nodes_open();
    _Atomic uint64_t *all = (_Atomic uint64_t *)window_memory(whole, 0);
    uint64_t least[COUNTED] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    sends = &all[window->rank];
    bytes = &all[2 + window->rank];
    send_by_ucx = oriel_ucp_calls.ucp_am_send_nbx;
    team_barrier();
    if (window->rank == 0) {
        lock_put_unlock(window, 1, false); /* both sides know each other */
        team_flag_set(0, 1);
    }
    team_flag_await(0, 1);
    oriel_ucp_calls.ucp_am_send_nbx = count_send;
    team_barrier();
    for (uint64_t i = 1; window->rank == 0 && i <= TIMES; i++) {
        uint64_t before[COUNTED];
        for (int what = 0; what < COUNTED; what++)
            before[what] = atomic_load(&all[what]);
        act(window, i, trusted);
        team_expect(nodes_peek(whole, 1, 0) == i);
        for (int what = 0; what < COUNTED; what++) {
            uint64_t sent = atomic_load(&all[what]) - before[what];
            least[what] = sent < least[what] ? sent : least[what];
        }
    }
    team_barrier();
    oriel_ucp_calls.ucp_am_send_nbx = send_by_ucx;
    team_expect(window->rank != 0 || (least[0] == most && least[1] == most));
    team_expect(window->rank != 0 || (least[2] <= most_bytes[0] && least[3] <= most_bytes[1]));
    nodes_expect_free(window);
    nodes_close(window);
    for (int i = 2; i-- > 0;)
        if (others[i] != NULL)
            nodes_close(others[i]);
    nodes_stop();
}

static const uint64_t any_bytes[] = {UINT64_MAX, UINT64_MAX};

static void count_checked(struct oriel_window *whole)
{
    count_messages(whole, lock_put_unlock, false, 2, any_bytes);
}

static void count_later(struct oriel_window *whole)
{
    count_messages(whole, lock_lazy_put_unlock, false, 1, any_bytes);
}

static void count_all_checked(struct oriel_window *whole)
{
    count_messages(whole, lock_all_put_unlock, false, 2, any_bytes);
}

static void count_trusted(struct oriel_window *whole)
{
    count_messages(whole, lock_put_unlock, true, 1, any_bytes);
}

static void count_all_trusted(struct oriel_window *whole)
{
    count_messages(whole, lock_all_put_unlock, true, 1, any_bytes);
}

static void count_windows(struct oriel_window *whole)
{
    for (int i = 0; i < 2; i++)
        others[i] = nodes_open();
    count_messages(whole, put_to_three_windows, true, 1, any_bytes);
}

static void count_round_trip(struct oriel_window *whole)
{
    enum {
        WIRE = sizeof(struct oriel_wire),
        ASKED = WIRE + sizeof(struct oriel_internode_head),
        WORD = sizeof(uint64_t)
    };
    const uint64_t most_bytes[] = {
        3 * ASKED + WORD, 2 * (WIRE + WORD) + WORD}; /* an answer's head has a word: no failure */
    count_messages(whole, put_and_get_back, true, 2, most_bytes);
}

static void internode_lock_put_unlock_is_two_round_trips(void **state)
{
    (void)state;
    nodes_run(2, 2, count_checked);
    nodes_run(2, 2, count_all_checked);
}

static void internode_lazy_lock_is_no_round_trip(void **state)
{
    (void)state;
    nodes_run(2, 2, count_later);
}

static void internode_lock_with_nocheck_is_no_round_trip(void **state)
{
    (void)state;
    nodes_run(2, 2, count_trusted);
    nodes_run(2, 2, count_all_trusted);
}

static void internode_put_and_get_are_a_round_trip_each(void **state)
{
    (void)state;
    nodes_run(2, 2, count_round_trip);
}

static void internode_several_windows_are_one_round_trip(void **state)
{
    (void)state;
    nodes_run(2, 2, count_windows);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(internode_lock_put_unlock_is_two_round_trips),
        cmocka_unit_test(internode_lazy_lock_is_no_round_trip),
        cmocka_unit_test(internode_lock_with_nocheck_is_no_round_trip),
        cmocka_unit_test(internode_put_and_get_are_a_round_trip_each),
        cmocka_unit_test(internode_several_windows_are_one_round_trip),
    };
    nodes_prepare(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
