/* A target's replies to internode ranks. The failure of a message without a reply is recorded, the
 * first of each rank, and the next reply to that rank reports it. Agent's thread only. */
#include "internode/origin/origin_sync.h"

#include <stdio.h>
#include <stdlib.h>

/* Why a message without a reply failed. */
struct oriel_internode_refusal {
    struct oriel_internode_refusal *next;
    int32_t from;
    struct oriel_internode_reply answer;
};

static void send_answer(const struct oriel_net_requester *asker,
                        const struct oriel_internode_reply *head, const struct iovec *data,
                        unsigned pieces)
{
    struct oriel_net_bytes bytes = {
        head, head->status == ORIEL_OK ? ORIEL_INTERNODE_REPLY_OK_BYTES : sizeof *head, data,
        pieces};
    oriel_net_answer(asker, &bytes);
}

static struct oriel_internode_refusal **find_refusal(struct oriel_window *window, int32_t from)
{
    struct oriel_internode_refusal **link = &window->internode->refusals;
    while (*link != NULL && (*link)->from != from)
        link = &(*link)->next;
    return link;
}

/* The failure that the next reply to this origin reports. */
static enum oriel_status recorded_failure(const struct oriel_window *window, int32_t from)
{
    return (enum oriel_status)(window->internode->refused[from] & ~ORIEL_INTERNODE_EPOCH_REFUSED);
}

bool oriel_internode_has_failed(const struct oriel_window *window, int32_t from)
{
    return recorded_failure(window, from) != ORIEL_OK;
}

void oriel_internode_record_failure(struct oriel_window *window, int32_t from,
                                    enum oriel_status status)
{
    if (recorded_failure(window, from) != ORIEL_OK)
        return; /* the first failure counts */
    window->internode->refused[from] |= (uint8_t)status;
    struct oriel_internode_refusal *refusal = calloc(1, sizeof *refusal);
    if (refusal == NULL)
        return; /* the next reply still reports the status */
    refusal->from = from;
    refusal->answer.status = status;
    snprintf(refusal->answer.text, sizeof refusal->answer.text, "%s", oriel_fail_message());
    refusal->next = window->internode->refusals;
    window->internode->refusals = refusal;
}

void oriel_internode_reply_ok(const struct oriel_net_requester *asker, const struct iovec *data,
                              unsigned pieces)
{
    static const struct oriel_internode_reply well = {.status = ORIEL_OK};
    send_answer(asker, &well, data, pieces);
}

void oriel_internode_reply_refusal(const struct oriel_net_requester *asker,
                                   enum oriel_status status)
{
    struct oriel_internode_reply answer = {.status = status};
    snprintf(answer.text, sizeof answer.text, "%s", oriel_fail_message());
    send_answer(asker, &answer, NULL, 0);
}

void oriel_internode_reply(struct oriel_window *window, const struct oriel_net_requester *asker,
                           int32_t from, const struct iovec *data, unsigned pieces)
{
    enum oriel_status status = recorded_failure(window, from);
    if (status == ORIEL_OK) {
        oriel_internode_reply_ok(asker, data, pieces);
        return;
    }
    window->internode->refused[from] &= ORIEL_INTERNODE_EPOCH_REFUSED;
    struct oriel_internode_refusal **link = find_refusal(window, from);
    struct oriel_internode_refusal *refusal = *link;
    if (refusal == NULL) {
        oriel_internode_reply_refusal(
            asker,
            oriel_fail(status, "an operation failed, and there was no memory for its message"));
        return;
    }
    *link = refusal->next;
    send_answer(asker, &refusal->answer, NULL, 0);
    free(refusal);
}

void oriel_internode_replies_close(struct oriel_internode *internode)
{
    while (internode->refusals != NULL) {
        struct oriel_internode_refusal *refusal = internode->refusals;
        internode->refusals = refusal->next;
        free(refusal);
    }
}
