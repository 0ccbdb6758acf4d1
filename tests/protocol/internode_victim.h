/* Shared by tests of killed ranks on other nodes: which rank dies, when, and which error the others
 * must get. Each program includes it once and has its own victim. */
#ifndef ORIEL_TESTS_PROTOCOL_INTERNODE_VICTIM_H
#define ORIEL_TESTS_PROTOCOL_INTERNODE_VICTIM_H

#include "simulated_nodes.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* On three nodes unless a test says otherwise; the last ones are flags. */
enum { SURVIVOR = 0, VICTIM = 1, OTHER = 2, TEAM = 3, READY = 0, WAITING = 1, LEFT = 7 };

static int32_t victim = VICTIM; /* of this team */

static inline void expect_named(enum oriel_status status)
{
    char name[32];
    snprintf(name, sizeof name, "rank %d ", (int)victim);
    if (status != ORIEL_E_PEER || strstr(oriel_fail_message(), name) == NULL)
        fprintf(stderr, "rank %d: status %d: %s\n", (int)team_rank, (int)status,
                oriel_fail_message());
    team_expect(status == ORIEL_E_PEER);
    team_expect(strstr(oriel_fail_message(), name) != NULL);
}

/* A rank that ends early counts as lost to the others, too: all survivors have arrived here. */
static inline void end(const struct oriel_window *window)
{
    atomic_fetch_add(&team->flags[LEFT], 1);
    team_flag_await(LEFT, (uint32_t)window->n - 1);
    nodes_stop();
}

static inline void announce_wait(void)
{
    atomic_fetch_add(&team->flags[WAITING], 1);
}

/* After `count` ranks wait, or are about to. */
static inline void die_waited_for(uint32_t count)
{
    team_flag_await(WAITING, count);
    usleep(20000);
    team_die();
}

#endif
