/* The steps of src/create/create.c with the team's words instead of the host's collectives. Ranks
 * that are threads have blocks of one memory file, and one identity. No test is about failures
 * here: every failure ends the process. */
#include "make_window.h"

#include "window/group.h"

#include <stdlib.h>
#include <string.h>

static uint64_t alloc_block(uint64_t len_bytes)
{
    uint64_t offset = 0;
    team_expect(oriel_file_alloc(len_bytes, ORIEL_CACHE_LINE, &offset) == ORIEL_OK);
    return offset;
}

/* Publishes each rank's part to all. */
static void parts_publish(int32_t n)
{
    struct oriel_target *target = &team->targets[team_rank];
    team_expect(oriel_file_start() == ORIEL_OK);
    target->control_offset = alloc_block(sizeof(struct oriel_control));
    target->offset = alloc_block(TEAM_MEMORY_BYTES);
    target->address = (uint64_t)(uintptr_t)(oriel_file_base() + target->offset);
    target->size_bytes = TEAM_MEMORY_BYTES;
    target->direct_bytes = TEAM_MEMORY_BYTES;
    target->disp_unit = 1;
    target->placement = ORIEL_PLACEMENT_DIRECT;
    if (team_rank == 0)
        team->common_offset = alloc_block(oriel_common_bytes(n));
    team->members[team_rank].process = *oriel_file_identity();
}

struct oriel_window *window_open(void)
{
    int32_t n = team->n;
    struct oriel_window *window = calloc(1, sizeof *window);
    team_expect(window != NULL);
    parts_publish(n);
    team_barrier();
    window->n = n;
    window->here = n;
    window->rank = team_rank;
    team_expect(oriel_group_acquire(team->members, sizeof team->members[0], n, team_rank,
                                    &window->group) == ORIEL_OK);
    window->control_bases = window->group->bases;
    window->memory_bases = window->group->bases;
    window->common = (struct oriel_common *)(window->control_bases[0] + team->common_offset);
    if (team_rank == 0) {
        window->common->n = n;
        memcpy(window->common->targets, team->targets, (size_t)n * sizeof team->targets[0]);
    }
    team_barrier();
    window->targets = window->common->targets;
    window->control = oriel_window_control(window, team_rank);
    atomic_init(&window->access, window->group->absent);
    window->base = window_memory(window, team_rank);
    window->control_offset = (int64_t)team->targets[team_rank].control_offset;
    window->memory_offset = (int64_t)team->targets[team_rank].offset;
    window->common_offset = team_rank == 0 ? (int64_t)team->common_offset : -1;
    return window;
}

void window_close(struct oriel_window *window)
{
    oriel_group_release(window->group);
    free(window->started.partners);
    free(window->posted.partners);
    free(window);
    oriel_file_finalise();
}

int32_t *window_ranks(const int32_t *ranks, int32_t count)
{
    int32_t *copy = malloc(((size_t)count + 1) * sizeof(void *));
    team_expect(copy != NULL);
    for (int32_t i = 0; i < count; i++)
        copy[i] = ranks[i];
    return copy;
}
