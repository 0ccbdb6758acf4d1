/* Requests for reports, progress records and keys to any node, this one included. */
#include "check/remote/remote_waits.h"

#include "check/remote/remote_validate.h"

#include <stdlib.h>

static size_t reports_room(void)
{
    return (size_t)(unsigned)oriel_shm_world_size();
}

static size_t gathering_room_bytes(void)
{
    int n = oriel_shm_world_size();
    size_t with_locks = oriel_collective_progress_bytes(
        n < ORIEL_COLLECTIVE_PROGRESS_LOCKS ? n : ORIEL_COLLECTIVE_PROGRESS_LOCKS, true);
    size_t without = oriel_collective_progress_bytes(n, false);
    return with_locks > without ? with_locks : without;
}

size_t oriel_check_remote_waits_bytes(void)
{
    size_t reports_bytes = reports_room() * sizeof(struct oriel_wait_report);
    size_t gathering_bytes = gathering_room_bytes();
    return reports_bytes > gathering_bytes ? reports_bytes : gathering_bytes;
}

size_t oriel_check_remote_waits_answer(const struct oriel_check_remote_request *request, void *data,
                                       uint64_t *word)
{
    switch (request->kind) {
    case ORIEL_CHECK_REMOTE_WAITS:
        return oriel_wait_reports(data, reports_room()) * sizeof(struct oriel_wait_report);
    case ORIEL_CHECK_REMOTE_GATHERING:
        return oriel_collective_progress_copy(request->words[0], request->words[1] != 0, data,
                                              gathering_room_bytes());
    default: *word = oriel_wait_is_given(&request->key); return 0;
    }
}

/* Returns memory from malloc; NULL: no answer. */
static void *ask(int machine, struct oriel_check_remote_request *request, size_t room_bytes,
                 size_t *len_bytes)
{
    struct oriel_check_remote_answer answer = {.word = 0};
    void *data = calloc(1, room_bytes);
    bool answered = data != NULL;
    if (answered && machine == oriel_check_remote_own_machine())
        answer.len_bytes = oriel_check_remote_waits_answer(request, data, &answer.word);
    else
        answered = answered &&
                   oriel_check_remote_ask(machine, request, NULL, 0, &answer, data, room_bytes);
    if (!answered) {
        free(data);
        return NULL;
    }
    *len_bytes = (size_t)answer.len_bytes;
    return data;
}

static struct oriel_wait_report *reports(int machine, size_t *count)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_WAITS};
    size_t len_bytes = 0;
    struct oriel_wait_report *found =
        ask(machine, &request, reports_room() * sizeof *found, &len_bytes);
    if (found != NULL && !oriel_check_remote_reports_hold(found, len_bytes)) {
        free(found);
        return NULL;
    }
    *count = len_bytes / sizeof *found;
    return found;
}

static struct oriel_collective_progress *gathering(int machine, uint64_t id, bool is_window)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_GATHERING,
                                                 .words = {id, is_window}};
    size_t len_bytes = 0;
    struct oriel_collective_progress *found =
        ask(machine, &request, gathering_room_bytes(), &len_bytes);
    if (found != NULL && !oriel_check_remote_gathering_holds(found, len_bytes)) {
        free(found);
        return NULL;
    }
    return found;
}

/* A node that does not answer counts as having given the key. */
static bool is_given(int machine, const struct oriel_key *key)
{
    struct oriel_check_remote_request request = {.kind = ORIEL_CHECK_REMOTE_GIVEN, .key = *key};
    struct oriel_check_remote_answer answer = {.word = 0};
    if (machine == oriel_check_remote_own_machine())
        return oriel_wait_is_given(key);
    return !oriel_check_remote_ask(machine, &request, NULL, 0, &answer, NULL, 0) ||
           answer.word != 0;
}

const struct oriel_wait_snapshot_remote *oriel_check_remote_look(void)
{
    static const struct oriel_wait_snapshot_remote far = {.machines = oriel_check_remote_machines,
                                                          .machine_of = oriel_check_remote_machine,
                                                          .reports = reports,
                                                          .gathering = gathering,
                                                          .is_given = is_given};
    return &far;
}
