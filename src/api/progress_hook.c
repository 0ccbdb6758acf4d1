/* The host's functions that complete requests, in a form that also serves other nodes.
 *
 * A rank that waits in MPICH never yields its processor, and its agent's thread needs one for each
 * message from another node. So the rank itself serves messages while it waits. Debian's MPICH also
 * uses UCX, and calls ucp_worker_progress while it waits or tests. Oriel's definition precedes
 * UCX's. While the program is in one of the functions of progress_hook.def, it also progresses
 * Oriel's net. An MPICH without UCX never calls it; then the agent's thread serves.
 *
 * It serves only in calls of the program to the host, never in calls of Oriel, which might hold
 * locks that serving needs.
 *
 * Open MPI's ranks yield the processor, so the agent's thread serves. Through the standard ABI the
 * host may be either. */
#include "api/progress_hook.h"

#ifdef OPEN_MPI
const struct oriel_host_calls *oriel_host_waits(void)
{
    return oriel_host();
}
#else
#include "api/api.h"
#include "transport/polled/polled.h"
#include "transport/ucx/net.h"

#include <dlfcn.h>
#include <pthread.h>

typedef unsigned progress_fn(void *worker);

ORIEL_EXPORT unsigned ucp_worker_progress(void *worker);

/* UCX's own definition: after Oriel or, if the host was loaded separately, in the loaded
 * library. */
static progress_fn *find_progress(void)
{
    progress_fn *found = (progress_fn *)oriel_host_symbol("ucp_worker_progress");
    void *library = found == NULL ? dlopen("libucp.so.0", RTLD_NOW | RTLD_NOLOAD) : NULL;
    return library != NULL ? (progress_fn *)dlsym(library, "ucp_worker_progress") : found;
}

unsigned ucp_worker_progress(void *worker)
{
    static _Atomic(progress_fn *) known;
    progress_fn *next = atomic_load_explicit(&known, memory_order_relaxed);
    if (oriel_unlikely(next == NULL)) {
        next = find_progress();
        atomic_store_explicit(&known, next, memory_order_relaxed);
    }
    (void)oriel_polled_poll();
    unsigned events = next(worker);
    oriel_net_help();
    return events;
}

#define HELPED(helper, call)                                                                       \
    oriel_net_help_begin(helper);                                                                  \
    int code = call;                                                                               \
    oriel_net_help_end();                                                                          \
    return code;

/* Each caches the next definition at its first call. */
#define HELPING(helper, name, parameters, arguments)                                               \
    ORIEL_EXPORT int PMPI_##name parameters                                                        \
    {                                                                                              \
        static _Atomic(__typeof__(&PMPI_##name)) known;                                            \
        __typeof__(&PMPI_##name) next = atomic_load_explicit(&known, memory_order_relaxed);        \
        if (oriel_unlikely(next == NULL)) {                                                        \
            next = (__typeof__(&PMPI_##name))oriel_host_symbol("PMPI_" #name);                     \
            atomic_store_explicit(&known, next, memory_order_relaxed);                             \
        }                                                                                          \
        HELPED(helper, next arguments)                                                             \
    }                                                                                              \
    ORIEL_EXPORT int MPI_##name parameters __attribute__((weak, alias("PMPI_" #name)));
#define HELPING_OWN(helper, name, parameters, arguments)                                           \
    static int helped_##name parameters                                                            \
    {                                                                                              \
        HELPED(helper, oriel_host()->name arguments)                                               \
    }

#define WAITS_OWN(...) HELPING_OWN(ORIEL_NET_WAITS, __VA_ARGS__)
#define TESTS_OWN(...) HELPING_OWN(ORIEL_NET_ASKS, __VA_ARGS__)

#define Count                     int
#define Displ                     int
#define ORIEL_ROWS_WITHOUT_COUNTS 1
#define WAITS(...)                HELPING(ORIEL_NET_WAITS, __VA_ARGS__)
#define TESTS(...)                HELPING(ORIEL_NET_ASKS, __VA_ARGS__)
#include "api/progress_hook.def"
#undef Count
#undef Displ
#undef ORIEL_ROWS_WITHOUT_COUNTS
#undef WAITS
#undef TESTS
#undef WAITS_OWN
#undef TESTS_OWN

#define Count                              MPI_Count
#define Displ                              MPI_Aint
#define ORIEL_ROWS_WITHOUT_COUNTS          0
#define WAITS(name, parameters, arguments) HELPING(ORIEL_NET_WAITS, name##_c, parameters, arguments)
#include "api/progress_hook.def"
#undef ORIEL_ROWS_WITHOUT_COUNTS
#undef WAITS

static struct oriel_host_calls waits;

static void make_waits(void)
{
    waits = *oriel_host();
#define WAITS(name, parameters, arguments)
#define TESTS                                  WAITS
#define WAITS_OWN(name, parameters, arguments) waits.name = helped_##name;
#define TESTS_OWN                              WAITS_OWN
#define ORIEL_ROWS_WITHOUT_COUNTS              1
#include "api/progress_hook.def"
}

const struct oriel_host_calls *oriel_host_waits(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_waits);
    return &waits;
}
#endif
