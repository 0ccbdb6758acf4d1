/* The groups of ranks for windows, and the test's own messages: sums, counts. All ranks create the
 * groups once; no window uses their communicators directly. */
#include "soak.h"

#include <stdio.h>

struct group groups[GROUPS_MOST];
int group_count;

static const char *const count_texts[] = {
#define COUNT(name, text) text,
#include "counts.def"
#undef COUNT
};

void count_one(enum count count)
{
    __atomic_fetch_add(&soak.counts[count], 1, __ATOMIC_RELAXED);
}

static struct group *group_add(enum count count)
{
    struct group *group = &groups[group_count++];
    *group = (struct group){.me = -1, .comm = MPI_COMM_NULL, .count = count};
    return group;
}

static void member_add(struct group *group, int rank)
{
    if (rank == world_rank)
        group->me = group->n;
    group->world[group->n++] = rank;
}

static void nodes_add(const int *node_of)
{
    for (int first = 0, made = 0; first < world_size && made < 4; first++) {
        if (node_of[first] != first)
            continue;
        struct group *group = group_add(COUNT_GROUP_NODE);
        for (int i = first; i < world_size; i++)
            if (node_of[i] == first)
                member_add(group, i);
        made++;
    }
}

/* The ranks that share a node: each rank learns the lowest rank of its node. */
static void nodes_find(int *node_of)
{
    MPI_Comm node = node_comm();
    int lowest = world_rank;
    MPI_Bcast(&lowest, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    MPI_Allgather(&lowest, 1, MPI_INT, node_of, 1, MPI_INT, MPI_COMM_WORLD);
}

static void groups_draw(const int *node_of)
{
    struct random random = stream(2, 0);
    struct group *group = group_add(COUNT_GROUP_WORLD);
    for (int i = 0; i < world_size; i++)
        member_add(group, i);
    group = group_add(COUNT_GROUP_REVERSED);
    for (int i = world_size - 1; i >= 0; i--)
        member_add(group, i);
    for (int half = 0, left = between(&random, 1, world_size); half < 2 && world_size > 1; half++) {
        group = group_add(COUNT_GROUP_HALF);
        for (int i = 0; i < world_size; i++)
            if ((i < left) == (half == 0))
                member_add(group, i);
    }
    group = group_add(COUNT_GROUP_SOME);
    for (int i = 0; i < world_size; i++)
        if (!one_in(&random, 3))
            member_add(group, i);
    group = group_add(COUNT_GROUP_SELF);
    member_add(group, below(&random, world_size));
    nodes_add(node_of);
}

void groups_start(void)
{
    int node_of[RANKS_MOST] = {0};
    if (world_size <= RANKS_MOST)
        nodes_find(node_of);
    groups_draw(node_of);
    for (int i = 0; i < group_count; i++) {
        struct group *group = &groups[i];
        group->on_one_node = group->n > 0;
        for (int k = 1; k < group->n; k++)
            group->on_one_node =
                group->on_one_node && node_of[group->world[k]] == node_of[group->world[0]];
        MPI_Comm_split(MPI_COMM_WORLD, group->me >= 0 ? 0 : MPI_UNDEFINED, group->me, &group->comm);
    }
}

void groups_stop(void)
{
    for (int i = 0; i < group_count; i++)
        if (groups[i].comm != MPI_COMM_NULL)
            MPI_Comm_free(&groups[i].comm);
}

void sum_all(uint64_t *values, int count, MPI_Comm comm)
{
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, values, count, MPI_UINT64_T, MPI_SUM, comm, &request);
    request_await(&request);
}

void counts_print(void)
{
    uint64_t sums[COUNTS];
    for (int i = 0; i < COUNTS; i++)
        sums[i] = (uint64_t)soak.counts[i];
    sum_all(sums, COUNTS, groups[0].comm);
    for (int i = 0; i < COUNTS && world_rank == 0; i++)
        printf("count %llu %s\n", (unsigned long long)sums[i], count_texts[i]);
    fflush(stdout);
}
