/* Changes to existing windows: attaching and detaching memory of dynamic windows, and changes of
 * names and hints. */
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void segment_change(struct soak_window *window, int rank, int segment, struct random *random)
{
    struct region *region = &window->regions[rank][segment];
    bool own = rank == window->group->me;
    if (region->model != NULL) {
        if (own) {
            MPI_Win_detach(window->win, region->at);
            count_one(COUNT_DETACH);
        }
        free(region->model);
        region_stop(region);
        *region = (struct region){0};
        if (one_in(random, 2))
            return;
    }
    region->size = size_draw(random, window->group->n) + 1;
    region->unit = 1;
    region_fill(region, random);
    if (!own)
        return;
    struct random mine = stream(6, random_next(&(struct random){random->state}));
    memory_allocate(&region->memory, region->size, &mine);
    region->at = region->memory.at;
    memcpy(region->at, region->model, region->size);
    MPI_Win_attach(window->win, region->at, (MPI_Aint)region->size);
    count_one(COUNT_ATTACH);
}

void window_attach_random(struct soak_window *window)
{
    struct random random = stream(7, (uint64_t)window->number << 32 | (uint64_t)soak.step);
    MPI_Aint first[RANKS_MOST][SEGMENTS_MOST] = {0};
    MPI_Request request;
    int me = window->group->me;
    doing("attaches to window %d", window->number);
    for (int i = 0; i < window->group->n; i++)
        for (int k = 0; k < window->segments; k++)
            if (one_in(&random, 2))
                segment_change(window, i, k, &random);
    for (int k = 0; k < window->segments; k++)
        if (window->regions[me][k].model != NULL)
            MPI_Get_address(window->regions[me][k].at, &first[me][k]);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, first, SEGMENTS_MOST, MPI_AINT,
                   window->group->comm, &request);
    request_await(&request);
    for (int i = 0; i < window->group->n; i++)
        for (int k = 0; k < window->segments; k++)
            window->regions[i][k].first = first[i][k];
}

/* Hints without a promise, and values that are no hints. */
static void info_change(struct soak_window *window)
{
    static const char *const granularities[] = {"0", "1", "8", "64", "4096"};
    struct random random = stream(9, (uint64_t)window->number << 32 | (uint64_t)soak.step);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_accumulate_granularity",
                 granularities[below(&random, COUNT_OF(granularities))]);
    MPI_Info_set(info, "no_locks", "perhaps");
    MPI_Info_set(info, "no_hint", "true");
    MPI_Win_set_info(window->win, info);
    MPI_Info_free(&info);
    MPI_Win_get_info(window->win, &info);
    MPI_Info_free(&info);
    count_one(COUNT_INFO_SET);
}

/* Changes to a window that must have no effect. */
void window_change_random(struct soak_window *window)
{
    char name[MPI_MAX_OBJECT_NAME], got[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    MPI_Group group;
    snprintf(name, sizeof name, "window %d in step %d", window->number, soak.step);
    MPI_Win_set_name(window->win, name);
    MPI_Win_get_name(window->win, got, &length);
    if (strcmp(name, got) != 0)
        fail("the window's name is '%s', not '%s'", got, name);
    MPI_Win_get_group(window->win, &group);
    MPI_Group_rank(group, &length);
    MPI_Group_free(&group);
    if (length != window->group->me)
        fail("the window's group has this process as rank %d, not %d", length, window->group->me);
    count_one(COUNT_NAME);
    info_change(window);
}
