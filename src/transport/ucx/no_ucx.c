/* Replaces all of transport/ucx/ if UCX's headers were missing when Oriel was built.
 * oriel_net_start fails with that reason, so no other function has an effect. */
#include "transport/ucx/devices.h"
#include "transport/ucx/net.h"

static enum oriel_status no_ucx_error(void)
{
    return oriel_fail(ORIEL_E_OTHER, "built without UCX");
}

enum oriel_status oriel_net_start(const struct oriel_identity *self,
                                  struct oriel_remote_writers *writers,
                                  const struct oriel_net_service *service)
{
    (void)self, (void)writers, (void)service;
    return no_ucx_error();
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

void oriel_net_serve_until(bool (*holds)(const void *context), const void *context)
{
    (void)holds, (void)context;
}

enum oriel_status oriel_net_await_word(_Atomic uint32_t *word, _Atomic uint32_t *sleepers,
                                       uint32_t at_least, const struct oriel_watch *watch)
{
    return oriel_wait(word, sleepers, ORIEL_WAIT_SIGNALLED, at_least, watch);
}

void oriel_net_answer(const struct oriel_net_requester *asker, const struct oriel_net_bytes *answer)
{
    (void)asker, (void)answer;
}

const void *oriel_net_address(size_t *len_bytes)
{
    *len_bytes = 0;
    return "";
}

enum oriel_status oriel_net_open(const struct oriel_identity *identity, const void *address,
                                 size_t len_bytes, struct oriel_net_peer **out)
{
    (void)identity, (void)address, (void)len_bytes, (void)out;
    return no_ucx_error();
}

struct oriel_net_peer *oriel_net_find(const struct oriel_identity *identity)
{
    (void)identity;
    return NULL;
}

enum oriel_status oriel_net_tell(struct oriel_net_peer *peer, const struct oriel_net_bytes *message)
{
    (void)peer, (void)message;
    return no_ucx_error();
}

enum oriel_status oriel_net_tell_later(struct oriel_net_peer *peer,
                                       const struct oriel_net_bytes *message)
{
    (void)peer, (void)message;
    return no_ucx_error();
}

enum oriel_status oriel_net_ask(struct oriel_net_peer *peer, const struct oriel_net_bytes *message,
                                struct oriel_net_request *request)
{
    (void)peer, (void)message, (void)request;
    return no_ucx_error();
}

enum oriel_status oriel_net_ask_later(struct oriel_net_peer *peer,
                                      const struct oriel_net_bytes *message,
                                      struct oriel_net_request *request)
{
    (void)peer, (void)message, (void)request;
    return no_ucx_error();
}

enum oriel_status oriel_net_await(struct oriel_net_request *request,
                                  const struct oriel_watch *watch)
{
    (void)request, (void)watch;
    return no_ucx_error();
}

enum oriel_status oriel_net_check(struct oriel_net_peer *peer)
{
    (void)peer;
    return no_ucx_error();
}

void oriel_net_progress(void)
{
}

bool oriel_net_has_devices(void)
{
    return false;
}

struct oriel_net_exposed *oriel_net_expose(void *base, size_t len_bytes)
{
    (void)base, (void)len_bytes;
    return NULL;
}

const void *oriel_net_exposed_key(const struct oriel_net_exposed *exposed, size_t *len_bytes)
{
    (void)exposed;
    *len_bytes = 0;
    return "";
}

void oriel_net_unexpose(struct oriel_net_exposed *exposed)
{
    (void)exposed;
}

struct oriel_net_key *oriel_net_key_open(struct oriel_net_peer *peer, const void *text,
                                         size_t len_bytes)
{
    (void)peer, (void)text, (void)len_bytes;
    return NULL;
}

void oriel_net_key_close(struct oriel_net_key *key)
{
    (void)key;
}

enum oriel_status oriel_net_put(struct oriel_net_key *key, uint64_t offset_bytes, const void *from,
                                size_t len_bytes)
{
    (void)key, (void)offset_bytes, (void)from, (void)len_bytes;
    return no_ucx_error();
}

enum oriel_status oriel_net_get(struct oriel_net_key *key, uint64_t offset_bytes, size_t len_bytes,
                                struct oriel_net_request *request)
{
    (void)key, (void)offset_bytes, (void)len_bytes, (void)request;
    return no_ucx_error();
}

enum oriel_status oriel_net_request_arrival(struct oriel_net_peer *peer,
                                            struct oriel_net_request *request)
{
    (void)peer, (void)request;
    return no_ucx_error();
}

enum oriel_status oriel_net_describe(char *text, size_t text_bytes)
{
    (void)text, (void)text_bytes;
    return no_ucx_error();
}
