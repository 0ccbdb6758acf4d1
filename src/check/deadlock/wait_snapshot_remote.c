/* A snapshot of the ranks of all nodes. The deadlock thread of each node marks the ranks that wait
 * steadily. Their records are copied as they were all that time, and progress records are merged
 * from the nodes of their members. Finally all nodes are asked again: a rank with the same serial
 * was in the same wait while everything else was read. */
#include "check/deadlock/wait_snapshot.h"

#include <stdlib.h>
#include <string.h>

struct oriel_wait_snapshot_progress_of {
    struct oriel_wait_snapshot_progress_of *next;
    uint64_t id;
    bool is_window;
    struct oriel_collective_progress *progress; /* NULL: some node has no such record */
};

static void reports_free(struct oriel_wait_snapshot *look)
{
    int nodes = look->remote == NULL ? 0 : look->remote->nodes();
    for (int i = 0; i < nodes && look->reports != NULL; i++) {
        free(look->reports[i]);
        look->reports[i] = NULL;
    }
    while (look->met != NULL) {
        struct oriel_wait_snapshot_progress_of *met = look->met;
        look->met = met->next;
        free(met->progress);
        free(met);
    }
}

void oriel_wait_snapshot_nodes_close(struct oriel_wait_snapshot *look)
{
    reports_free(look);
    free(look->reports);
    look->reports = NULL;
}

/* --- records --- */

bool oriel_wait_snapshot_nodes(struct oriel_wait_snapshot *look, bool *set)
{
    int nodes = look->remote->nodes();
    bool answered =
        look->reports != NULL ||
        (look->reports = calloc((size_t)(unsigned)nodes, sizeof *look->reports)) != NULL;
    reports_free(look);
    for (int rank = 0; rank < look->n; rank++) {
        look->ranks[rank] = (struct oriel_wait_snapshot_rank){.state = ORIEL_DEADLOCK_SET_COMPUTES};
        set[rank] = false;
    }
    for (int i = 0; i < nodes && answered; i++) {
        size_t count = 0;
        struct oriel_wait_report *reports = look->reports[i] = look->remote->reports(i, &count);
        answered = reports != NULL;
        for (size_t k = 0; answered && k < count; k++) {
            struct oriel_wait_report *report = &reports[k];
            if (report->rank < 0 || report->rank >= look->n ||
                look->remote->node_of(report->rank) != i)
                continue;
            struct oriel_wait_snapshot_rank *looked = &look->ranks[report->rank];
            looked->serial = report->serial;
            looked->state = (enum oriel_deadlock_set_state)report->state;
            looked->record = &report->record;
            looked->noted.site = report->record.noted.site;
            set[report->rank] = looked->state == ORIEL_DEADLOCK_SET_WAITS;
        }
    }
    return answered;
}

void oriel_wait_snapshot_nodes_recheck(const struct oriel_wait_snapshot *look, bool *set)
{
    bool *same = calloc((size_t)(unsigned)look->n, sizeof *same);
    for (int i = 0; i < look->remote->nodes() && same != NULL; i++) {
        size_t count = 0;
        struct oriel_wait_report *reports = look->remote->reports(i, &count);
        for (size_t k = 0; reports != NULL && k < count; k++) {
            int32_t rank = reports[k].rank;
            if (rank >= 0 && rank < look->n && reports[k].state == ORIEL_DEADLOCK_SET_WAITS)
                same[rank] = reports[k].serial == look->ranks[rank].serial;
        }
        free(reports);
    }
    for (int rank = 0; rank < look->n; rank++)
        set[rank] = set[rank] && same != NULL && same[rank];
    free(same);
}

/* --- progress records --- */

/* Copies what the members of that node have written into the merged record. */
static bool node_progress_merge(const struct oriel_wait_snapshot *look, int node,
                                struct oriel_collective_progress *into)
{
    bool any = false;
    for (int i = 0; i < into->n && !any; i++)
        any = look->remote->node_of(into->slots[i].world_rank - 1) == node;
    struct oriel_collective_progress *from =
        any ? look->remote->progress(node, into->id, into->is_window != 0) : NULL;
    if (from == NULL || from->n != into->n || from->has_locks != into->has_locks) {
        free(from);
        return !any;
    }
    for (int i = 0; i < into->n; i++) {
        if (look->remote->node_of(into->slots[i].world_rank - 1) != node)
            continue;
        memcpy((void *)&into->slots[i], (const void *)&from->slots[i], sizeof into->slots[i]);
        if (into->has_locks)
            memcpy((void *)oriel_collective_progress_holds(into, i, 0),
                   (const void *)oriel_collective_progress_holds(from, i, 0),
                   (size_t)(unsigned)into->n + 1);
    }
    free(from);
    return true;
}

static struct oriel_collective_progress *all_progress_merge(const struct oriel_wait_snapshot *look,
                                                            int waiter, uint64_t id, bool is_window)
{
    int own = look->remote->node_of(waiter);
    struct oriel_collective_progress *whole = look->remote->progress(own, id, is_window);
    for (int node = 0; node < look->remote->nodes() && whole != NULL; node++)
        if (node != own && !node_progress_merge(look, node, whole)) {
            free(whole);
            whole = NULL;
        }
    return whole;
}

const struct oriel_collective_progress *
oriel_wait_snapshot_progress_of(struct oriel_wait_snapshot *look, int waiter, uint64_t id,
                                bool is_window)
{
    struct oriel_wait_snapshot_progress_of *met = look->met;
    while (met != NULL && (met->id != id || met->is_window != is_window))
        met = met->next;
    if (met == NULL) {
        met = malloc(sizeof *met);
        if (met == NULL)
            return NULL;
        *met = (struct oriel_wait_snapshot_progress_of){
            .next = look->met, .id = id, .is_window = is_window};
        met->progress = all_progress_merge(look, waiter, id, is_window);
        look->met = met;
    }
    return met->progress;
}
