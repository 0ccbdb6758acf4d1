/* Interns groups of peers by the hash of their ids. A group exists while a window refers to it.
 * Thread-safe. */
#include "window/group.h"

#include "window/shared.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct oriel_group *groups;

static const struct oriel_member *member_at(const struct oriel_member *first, size_t stride_bytes,
                                            int32_t i)
{
    return (const struct oriel_member *)((const char *)first + (size_t)i * stride_bytes);
}

/* Whether the group has the same processes with the same nodes. With ORIEL_NODE_SIZE, the same
 * processes may be on one node in one window and on several in another. */
static bool group_matches(const struct oriel_group *group, const struct oriel_member *first,
                          size_t stride_bytes, int32_t n, int32_t rank)
{
    for (int32_t i = 0; i < n; i++) {
        const struct oriel_member *member = member_at(first, stride_bytes, i);
        const uint64_t *id = member->process.id;
        bool is_on_node = member->node == member_at(first, stride_bytes, rank)->node;
        if (is_on_node != (group->peers[i] != NULL))
            return false;
        const uint64_t *own =
            group->peers[i] != NULL ? group->peers[i]->identity.id : group->ids[i].id;
        if (id[0] != own[0] || id[1] != own[1])
            return false;
    }
    return true;
}

static void group_destroy(struct oriel_group *group)
{
    free(group->peers);
    free(group->bases);
    free(group->absent);
    free(group->ids);
    free(group->net_peers);
    free(group);
}

/* Stores the ids of all processes, for groups that span nodes. */
static bool group_store_ids(struct oriel_group *group, const struct oriel_member *first,
                            size_t stride_bytes)
{
    uint32_t n = (uint32_t)group->n;
    group->ids = calloc(n, sizeof *group->ids);
    group->net_peers = calloc(n, sizeof *group->net_peers);
    if (group->ids == NULL || group->net_peers == NULL)
        return false;
    for (uint32_t i = 0; i < n; i++)
        memcpy(group->ids[i].id, member_at(first, stride_bytes, (int32_t)i)->process.id,
               sizeof group->ids[i].id);
    return true;
}

static bool members_on_one_node(const struct oriel_member *first, size_t stride_bytes, int32_t n)
{
    for (int32_t i = 1; i < n; i++)
        if (member_at(first, stride_bytes, i)->node != first->node)
            return false;
    return true;
}

static enum oriel_status group_create(const struct oriel_member *first, size_t stride_bytes,
                                      int32_t n, int32_t rank, struct oriel_group **out)
{
    struct oriel_group *group = calloc(1, sizeof *group);
    if (group == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "no memory for a group of %d processes", (int)n);
    group->n = n;
    group->peers = calloc((uint32_t)n, sizeof *group->peers);
    group->bases = calloc((uint32_t)n, sizeof *group->bases);
    enum oriel_status status = ORIEL_OK;
    group->absent = malloc((uint32_t)n);
    if (group->absent != NULL)
        memset(group->absent, ORIEL_ACCESS_STATE_ABSENT, (uint32_t)n);
    if (group->peers == NULL || group->bases == NULL || group->absent == NULL ||
        (!members_on_one_node(first, stride_bytes, n) &&
         !group_store_ids(group, first, stride_bytes)))
        status = oriel_fail(ORIEL_E_NO_MEM, "no memory for a group of %d processes", (int)n);
    uint64_t own_node = member_at(first, stride_bytes, rank)->node;
    for (int32_t i = 0; i < n && status == ORIEL_OK; i++) {
        const struct oriel_member *member = member_at(first, stride_bytes, i);
        if (member->node != own_node)
            continue;
        status = oriel_peer_open(&member->process, &group->peers[i]);
        if (status == ORIEL_OK)
            group->bases[i] = group->peers[i]->base;
    }
    if (status != ORIEL_OK) {
        group_destroy(group);
        return status;
    }
    *out = group;
    return ORIEL_OK;
}

enum oriel_status oriel_group_acquire(const struct oriel_member *first, size_t stride_bytes,
                                      int32_t n, int32_t rank, struct oriel_group **out)
{
    uint64_t hash = (uint64_t)n;
    for (int32_t i = 0; i < n; i++)
        hash = (hash ^ member_at(first, stride_bytes, i)->process.id[0]) * 0x9e3779b97f4a7c15u;
    enum oriel_status status = ORIEL_OK;
    pthread_mutex_lock(&mutex);
    struct oriel_group *group = groups;
    while (group != NULL && !(group->hash == hash && group->n == n &&
                              group_matches(group, first, stride_bytes, n, rank)))
        group = group->next;
    if (group == NULL) {
        status = group_create(first, stride_bytes, n, rank, &group);
        if (status == ORIEL_OK) {
            group->hash = hash;
            group->next = groups;
            groups = group;
        }
    }
    if (status == ORIEL_OK) {
        group->references++;
        *out = group;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

void oriel_group_add_reference(struct oriel_group *group)
{
    pthread_mutex_lock(&mutex);
    group->references++;
    pthread_mutex_unlock(&mutex);
}

void oriel_group_release(struct oriel_group *group)
{
    pthread_mutex_lock(&mutex);
    if (--group->references == 0) {
        struct oriel_group **link = &groups;
        while (*link != group)
            link = &(*link)->next;
        *link = group->next;
        group_destroy(group);
    }
    pthread_mutex_unlock(&mutex);
}
