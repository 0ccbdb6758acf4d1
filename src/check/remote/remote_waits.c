/* Requests for reports, progress records and keys to any node, this one included. */
#include "check/remote/remote_waits.h"

#include "check/remote/remote_validate.h"

#include <stdlib.h>

static size_t reports_count_most(void)
{
    return (size_t)(unsigned)oriel_shm_world_size();
}

static size_t progress_room_bytes(void)
{
    int n = oriel_shm_world_size();
    size_t with_locks = oriel_collective_progress_bytes(
        n < ORIEL_COLLECTIVE_PROGRESS_LOCKS ? n : ORIEL_COLLECTIVE_PROGRESS_LOCKS, true);
    size_t without = oriel_collective_progress_bytes(n, false);
    return with_locks > without ? with_locks : without;
}

size_t oriel_check_remote_waits_bytes(void)
{
    size_t reports_bytes = reports_count_most() * sizeof(struct oriel_wait_report);
    size_t progress_bytes = progress_room_bytes();
    return reports_bytes > progress_bytes ? reports_bytes : progress_bytes;
}

size_t oriel_check_remote_waits_answer(const struct oriel_check_remote_request *request, void *data,
                                       uint64_t *word)
{
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_WAITS:
        return oriel_wait_reports(data, reports_count_most()) * sizeof(struct oriel_wait_report);
    case ORIEL_CHECK_REMOTE_PROGRESS:
        return oriel_collective_progress_copy(request->words[0], request->words[1] != 0, data,
                                              progress_room_bytes());
    default: *word = oriel_wait_is_given(&request->key); return 0;
    }
}

/* Returns memory from malloc; NULL: no answer. */
static void *node_ask(int node, struct oriel_check_remote_request *request, size_t room_bytes,
                      size_t *len_bytes)
{
    struct oriel_check_remote_answer answer = {.word = 0};
    void *data = calloc(1, room_bytes);
    bool answered = data != NULL;
    if (answered && node == oriel_check_remote_own_node())
        answer.len_bytes = oriel_check_remote_waits_answer(request, data, &answer.word);
    else
        answered =
            answered && oriel_check_remote_ask(node, request, NULL, 0, &answer, data, room_bytes);
    if (!answered) {
        free(data);
        return NULL;
    }
    *len_bytes = (size_t)answer.len_bytes;
    return data;
}

static struct oriel_wait_report *node_reports(int node, size_t *count)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_WAITS};
    size_t len_bytes = 0;
    struct oriel_wait_report *found =
        node_ask(node, &request, reports_count_most() * sizeof *found, &len_bytes);
    if (found != NULL && !oriel_check_remote_reports_are_valid(found, len_bytes)) {
        free(found);
        return NULL;
    }
    *count = len_bytes / sizeof *found;
    return found;
}

static struct oriel_collective_progress *node_progress(int node, uint64_t id, bool is_window)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_PROGRESS,
                                                 .words = {id, is_window}};
    size_t len_bytes = 0;
    struct oriel_collective_progress *found =
        node_ask(node, &request, progress_room_bytes(), &len_bytes);
    if (found != NULL && !oriel_check_remote_progress_is_valid(found, len_bytes)) {
        free(found);
        return NULL;
    }
    return found;
}

/* A node that does not answer counts as having given the key. */
static bool node_key_is_given(int node, const struct oriel_key *key)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_GIVEN, .key = *key};
    struct oriel_check_remote_answer answer = {.word = 0};
    if (node == oriel_check_remote_own_node())
        return oriel_wait_is_given(key);
    return !oriel_check_remote_ask(node, &request, NULL, 0, &answer, NULL, 0) || answer.word != 0;
}

const struct oriel_wait_snapshot_remote *oriel_check_remote_waits(void)
{
    static const struct oriel_wait_snapshot_remote remote = {.nodes = oriel_check_remote_node_count,
                                                             .machine_of =
                                                                 oriel_check_remote_node_of,
                                                             .reports = node_reports,
                                                             .progress = node_progress,
                                                             .is_given = node_key_is_given};
    return &remote;
}
