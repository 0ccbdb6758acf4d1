/* Functions of MPI-4 that are not modelled, of hosts that have them: persistent collectives,
 * partitioned messages, communicators of sessions. Open MPI 5 has them without large counts. */
#include <mpi.h>

#ifdef MPI_SESSION_NULL
#include "check/intercept/messages_other.h"

#include "base/job.h"
#include "base/log.h"
#include "check/intercept/error_handlers.h"
#include "check/intercept/request_table.h"

#include <stdlib.h>

struct unknown {
    struct oriel_startable startable;
    const char *name;
};

static void persistent_begin(struct oriel_startable *startable, const void *address, uint16_t call)
{
    (void)address;
    (void)call;
    oriel_order_unknown_begin(((struct unknown *)startable)->name);
}

static int persistent_started(struct oriel_startable *startable, int code)
{
    (void)startable;
    if (code != MPI_SUCCESS)
        oriel_order_unknown_end();
    return code;
}

static void persistent_done(void *closure, const MPI_Status *status)
{
    (void)closure;
    (void)status;
    oriel_order_unknown_end();
}

static const struct oriel_request_kind kind = {.done = persistent_done};

static void persistent_drop(struct oriel_startable *startable)
{
    struct unknown *unknown = (struct unknown *)startable;
    free(unknown);
}

static void persistent_add(const char *name, MPI_Request request)
{
    struct unknown *unknown = malloc(sizeof *unknown);
    if (unknown == NULL) {
        oriel_order_set_doubtful();
        return;
    }
    *unknown = (struct unknown){.startable = {.begin = persistent_begin,
                                              .started = persistent_started,
                                              .kind = &kind,
                                              .drop = persistent_drop},
                                .name = name};
    oriel_checked_request_add_persistent(request, &unknown->startable);
}

#define PERSISTENT_CALL(name, parameters, arguments)                                               \
    ORIEL_CHECK_WRAP(name, parameters)                                                             \
    {                                                                                              \
        int code;                                                                                  \
        if (!oriel_check_looks())                                                                  \
            return NEXT(name) arguments;                                                           \
        oriel_order_unknown_begin(NULL);                                                           \
        ORIEL_CHECK_PASS(code, name, arguments);                                                   \
        oriel_order_unknown_end();                                                                 \
        if (code == MPI_SUCCESS)                                                                   \
            persistent_add("MPI_" #name, *request);                                                \
        return code;                                                                               \
    }
#define PERSISTENT                PERSISTENT_CALL
#define Count                     int
#define Displ                     int
#define ORIEL_ROWS_WITHOUT_COUNTS 1
#include "check/intercept/persistent.def"
#undef PERSISTENT
#undef Count
#undef Displ
#undef ORIEL_ROWS_WITHOUT_COUNTS
#if MPI_VERSION >= 4
#define PERSISTENT(name, parameters, arguments) PERSISTENT_CALL(name##_c, parameters, arguments)
#define Count                                   MPI_Count
#define Displ                                   MPI_Aint
#define ORIEL_ROWS_WITHOUT_COUNTS               0
#include "check/intercept/persistent.def"
#undef Count
#undef Displ
#undef ORIEL_ROWS_WITHOUT_COUNTS
#endif

/* A part has arrived: order, before the request is complete. */
ORIEL_CHECK_WRAP(Parrived, (MPI_Request request, int partition, int *flag))
{
    int code;
    if (!oriel_check_looks())
        return NEXT(Parrived)(request, partition, flag);
    ORIEL_CHECK_PASS(code, Parrived, (request, partition, flag));
    if (code == MPI_SUCCESS && *flag)
        oriel_order_unknown_end();
    return code;
}

ORIEL_UNKNOWN(Pready, (int partition, MPI_Request request), (partition, request))
ORIEL_UNKNOWN(Pready_range, (int partition_low, int partition_high, MPI_Request request),
              (partition_low, partition_high, request))
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
typedef const int partition_number;
#else
typedef int partition_number; /* const was missing in MPI 4.0 */
#endif
ORIEL_UNKNOWN(Pready_list,
              (int length, partition_number array_of_partitions[], MPI_Request request),
              (length, array_of_partitions, request))

ORIEL_UNKNOWN(Comm_create_from_group,
              (MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
               MPI_Comm *newcomm),
              (group, stringtag, info, errhandler, newcomm))
ORIEL_UNKNOWN(Intercomm_create_from_groups,
              (MPI_Group local_group, int local_leader, MPI_Group remote_group, int remote_leader,
               const char *stringtag, MPI_Info info, MPI_Errhandler errhandler,
               MPI_Comm *newintercomm),
              (local_group, local_leader, remote_group, remote_leader, stringtag, info, errhandler,
               newintercomm))

ORIEL_CHECK_WRAP(Comm_idup_with_info,
                 (MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request))
{
    int code;
    if (!oriel_check_looks())
        return NEXT(Comm_idup_with_info)(comm, info, newcomm, request);
    void *idup = oriel_idup_begin(comm, "MPI_Comm_idup_with_info", newcomm);
    ORIEL_CHECK_PASS(code, Comm_idup_with_info, (comm, info, newcomm, request));
    oriel_idup_started(idup, code != MPI_SUCCESS, *request);
    return code;
}

ORIEL_CHECK_WRAP(Session_create_errhandler,
                 (MPI_Session_errhandler_function * function, MPI_Errhandler *errhandler))
{
    oriel_handler_fn *own = oriel_handler_registered(
        (oriel_handler_fn *)function, ORIEL_HANDLER_SESSION, __builtin_return_address(0));
    return NEXT(Session_create_errhandler)((MPI_Session_errhandler_function *)own, errhandler);
}

/* The checker starts with MPI_Init. A program that never calls it gets one line, by the first
 * process. */
ORIEL_CHECK_WRAP(Session_finalize, (MPI_Session * session))
{
    static _Atomic(void *) initialized;
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    int is_initialized = 1;
    if (((__typeof__(&PMPI_Initialized))oriel_host_symbol_kept(&initialized, "PMPI_Initialized"))(
            &is_initialized) == MPI_SUCCESS &&
        !is_initialized && oriel_job_rank() <= 0 && !atomic_flag_test_and_set(&warned))
        oriel_warn_job("the program uses MPI by MPI_Session_init, without MPI_Init: nothing was "
                       "checked [O26]");
    return NEXT(Session_finalize)(session);
}
#endif
