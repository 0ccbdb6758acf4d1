/* Stands for all of transport/ucx/ where UCX's headers were missing when Oriel was built: starting fails and says so, so that
 * nothing else is ever called.  Called through net.h. */
#include "transport/ucx/devices.h"
#include "transport/ucx/net.h"

static enum oriel_status refuse(void)
{
    return oriel_fail(ORIEL_E_OTHER, "built without UCX");
}

enum oriel_status oriel_net_start(const struct oriel_identity *self, struct oriel_writers *writers,
                                  const struct oriel_net_service *service)
{
    (void)self, (void)writers, (void)service;
    return refuse();
}

bool oriel_net_is_started(void)
{
    return false;
}

void oriel_net_stop(void)
{
}

void oriel_net_help_begin(enum oriel_net_helper helper)
{
    (void)helper;
}

void oriel_net_help(void)
{
}

void oriel_net_help_end(void)
{
}

enum oriel_status oriel_net_await_event(struct oriel_event *event, uint32_t at_least, const struct oriel_watch *watch)
{
    return oriel_event_wait(event, at_least, watch);
}

void oriel_net_answer(const struct oriel_net_asker *asker, const struct oriel_net_bytes *answer)
{
    (void)asker, (void)answer;
}

const void *oriel_net_address(size_t *len_bytes)
{
    *len_bytes = 0;
    return "";
}

enum oriel_status oriel_net_open(const struct oriel_identity *who, const void *address, size_t len_bytes,
                                 struct oriel_net_peer **out)
{
    (void)who, (void)address, (void)len_bytes, (void)out;
    return refuse();
}

struct oriel_net_peer *oriel_net_find(const struct oriel_identity *who)
{
    (void)who;
    return NULL;
}

enum oriel_status oriel_net_tell(struct oriel_net_peer *peer, const struct oriel_net_bytes *message)
{
    (void)peer, (void)message;
    return refuse();
}

enum oriel_status oriel_net_tell_later(struct oriel_net_peer *peer, const struct oriel_net_bytes *message)
{
    (void)peer, (void)message;
    return refuse();
}

enum oriel_status oriel_net_ask(struct oriel_net_peer *peer, const struct oriel_net_bytes *message,
                                struct oriel_net_request *request)
{
    (void)peer, (void)message, (void)request;
    return refuse();
}

enum oriel_status oriel_net_ask_later(struct oriel_net_peer *peer, const struct oriel_net_bytes *message,
                                      struct oriel_net_request *request)
{
    (void)peer, (void)message, (void)request;
    return refuse();
}

enum oriel_status oriel_net_await(struct oriel_net_request *request, const struct oriel_watch *watch)
{
    (void)request, (void)watch;
    return refuse();
}

enum oriel_status oriel_net_check(struct oriel_net_peer *peer)
{
    (void)peer;
    return refuse();
}

void oriel_net_progress(void)
{
}

enum oriel_status oriel_net_describe(char *text, size_t text_bytes)
{
    (void)text, (void)text_bytes;
    return refuse();
}
