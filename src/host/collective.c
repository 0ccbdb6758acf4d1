/* Collectives on the user's communicator while a window is made: creation is collective over it, so they cannot meet
 * others.  They are started without blocking and tested, because hosts spin where Oriel yields, and because a rank without
 * Oriel would never answer: then the user is told after 10 s.  window/ calls. */
#include "base/log.h"
#include "base/wait.h"
#include "host/host.h"

#include <sched.h>

enum { PATIENCE_S = 10, SPINS = 8, WATCH_NS = 100000000 };

static enum oriel_status finish(MPI_Request *request, const char *what, const struct oriel_watch *watch)
{
    uint64_t begin_ns = oriel_now_ns();
    uint64_t watched_ns = begin_ns;
    bool told = false;
    int done = 0;
    for (unsigned tests = 0;; tests++) {
        if (oriel_host()->Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return oriel_fail(ORIEL_E_OTHER, "the host failed while the ranks agreed");
        if (done)
            return ORIEL_OK;
        if (tests < SPINS)
            continue;
        sched_yield();
        if (tests % 64 != 0)
            continue;
        uint64_t now_ns = oriel_now_ns();
        if (watch != NULL && now_ns - watched_ns > WATCH_NS) {
            enum oriel_status status = watch->check(watch->context);
            if (status != ORIEL_OK)
                return status;
            watched_ns = now_ns;
        }
        if (!told && now_ns - begin_ns > PATIENCE_S * UINT64_C(1000000000)) {
            oriel_warn("%s has waited %d s for the other ranks: is one of them late, or running without Oriel?", what,
                       PATIENCE_S);
            told = true;
        }
    }
}

enum oriel_status oriel_host_gather(MPI_Comm comm, const char *what, const void *in, size_t len_bytes, void *out,
                                    const struct oriel_watch *watch)
{
    MPI_Request request;
    if (oriel_host()->Iallgather(in, (int)len_bytes, MPI_BYTE, out, (int)len_bytes, MPI_BYTE, comm, &request) !=
        MPI_SUCCESS)
        return oriel_fail(ORIEL_E_COMM, "the host refuses a collective on the communicator");
    return finish(&request, what, watch);
}

enum oriel_status oriel_host_agree(MPI_Comm comm, const char *what, uint32_t bits, uint32_t *agreed,
                                   const struct oriel_watch *watch)
{
    MPI_Request request;
    if (oriel_host()->Iallreduce(&bits, agreed, 1, MPI_UINT32_T, MPI_BAND, comm, &request) != MPI_SUCCESS)
        return oriel_fail(ORIEL_E_COMM, "the host refuses a collective on the communicator");
    return finish(&request, what, watch);
}
