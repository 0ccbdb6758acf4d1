/* Unanswered requests, by number: a growing table, indexed by the lower bits of the number. Used
 * with the origin's mutex held. */
#include "transport/ucx/internal.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64 };

bool oriel_net_has_request_room(void)
{
    if (2 * oriel_net.request_count < oriel_net.request_room)
        return true;
    uint32_t room = oriel_net.request_room == 0 ? FIRST_ROOM : 2 * oriel_net.request_room;
    struct oriel_net_request **requests = calloc(room, sizeof(struct oriel_net_request *));
    if (requests == NULL)
        /* slower, but works while there is any room */
        return oriel_net.request_count < oriel_net.request_room;
    for (uint32_t i = 0; i < oriel_net.request_room; i++)
        if (oriel_net.requests[i] != NULL)
            requests[oriel_net.requests[i]->number & (room - 1)] = oriel_net.requests[i];
    free(oriel_net.requests);
    oriel_net.requests = requests;
    oriel_net.request_room = room;
    return true;
}

bool oriel_net_add_request(struct oriel_net_peer *peer, struct oriel_net_request *request)
{
    if (!oriel_net_has_request_room())
        return false;
    uint64_t number = oriel_net.request_turn;
    while (oriel_net.requests[number & (oriel_net.request_room - 1)] != NULL)
        number++;
    oriel_net.request_turn = number + 1;
    oriel_net.requests[number & (oriel_net.request_room - 1)] = request;
    oriel_net.request_count++;
    peer->open++;
    request->number = number;
    request->peer = peer;
    request->status = ORIEL_OK;
    atomic_store_explicit(&request->done, false, memory_order_relaxed);
    return true;
}

void oriel_net_remove_request(struct oriel_net_request *request)
{
    oriel_net.requests[request->number & (oriel_net.request_room - 1)] = NULL;
    oriel_net.request_count--;
    request->peer->open--;
}

void oriel_net_end_request(struct oriel_net_request *request, enum oriel_status status)
{
    void (*end)(struct oriel_net_request *) = request->end;
    request->status = status;
    atomic_store_explicit(&request->done, true, memory_order_release);
    if (end != NULL)
        end(request);
}
