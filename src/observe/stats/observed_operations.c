/* The observing entries of operations: each calls the previous entry, and counts the operation if
 * it succeeded. One without effect (MPI_PROC_NULL), or that fails, is not counted. */
#include "observe/stats/observed_call.h"

#include "datatype/datatype.h"
#include "host/persistent.h"
#include "internode/origin/origin_sync.h"
#include "rma/device_maps.h"
#include "rma/path_select.h"
#include "transport/polled/polled.h"

/* The size of the datatype that this thread used last. */
static _Thread_local struct {
    uint64_t generation;
    uint64_t key;
    uint64_t size_bytes;
} sized;

/* Oriel's own table of datatypes sees a datatype's end, and then advances the generation. Windows
 * of the host use datatypes that the table has never seen. */
static __attribute__((noinline)) uint64_t datatype_size(const struct oriel_observed *observed,
                                                        MPI_Datatype datatype)
{
    const struct oriel_type *type;
    int size_bytes = 0;
    if (observed->window == NULL) {
        oriel_host()->Type_size(datatype, &size_bytes);
        return size_bytes > 0 ? (uint64_t)size_bytes : 0;
    }
    uint64_t generation = oriel_tls_cache_begin();
    if (oriel_type_find(datatype, &type) != ORIEL_OK)
        return 0;
    sized.generation = generation;
    sized.key = oriel_type_key(datatype);
    sized.size_bytes = type->size_bytes;
    return type->size_bytes;
}

static inline uint64_t operation_bytes(const struct oriel_observed *observed, MPI_Count count,
                                       MPI_Datatype datatype)
{
    uint64_t generation = atomic_load_explicit(&oriel_tls_cache_generation, memory_order_relaxed);
    if (oriel_likely(sized.generation == generation) &&
        oriel_likely(sized.key == oriel_type_key(datatype)))
        return (uint64_t)count * sized.size_bytes;
    return (uint64_t)count * datatype_size(observed, datatype);
}

/* Memory with several paths: the path at the operation's first byte. An operation over several
 * paths counts as the slower one. */
static __attribute__((noinline)) uint8_t
path_by_place(const struct oriel_window *window, int32_t target, int64_t disp, uint64_t len_bytes)
{
    uint64_t offset_bytes = (uint64_t)(disp * window->targets[target].disp_unit);
    struct oriel_path_range alike = oriel_path_range_at(window, target, offset_bytes);
    if (alike.cpu_reaches && offset_bytes + len_bytes <= alike.end)
        return oriel_load_relaxed(&oriel_window_control(window, target)->promoted)
                   ? ORIEL_PATH_promoted
                   : ORIEL_PATH_direct;
    if (alike.device != NULL)
        return oriel_device_maps_find(window, target, alike.device, alike.device->start) != NULL
                   ? ORIEL_PATH_gpu
                   : ORIEL_PATH_agent;
    if (target == window->rank)
        return ORIEL_PATH_direct;
    return window->by_agent ? ORIEL_PATH_agent : ORIEL_PATH_cma;
}

/* Of a successful operation. */
static inline void operation_count(const struct oriel_observed_call *call, int target,
                                   MPI_Aint disp, uint64_t bytes)
{
    struct oriel_observed *observed = call->observed;
    uint8_t path = observed->paths[target];
    if (oriel_unlikely(path == ORIEL_PATH_BY_PLACE))
        path = path_by_place(observed->window, target, disp, bytes);
    if (oriel_polled_served)
        path = ORIEL_PATH_polled;
    struct oriel_window_record *record = observed->record;
    oriel_count(observed, &record->paths[path].count, 1);
    oriel_count(observed, &record->paths[path].bytes, bytes);
    oriel_count(observed, &observed->toward[target].operations, 1);
    oriel_count(observed, &observed->toward[target].bytes, bytes);
    oriel_count(observed, &call->site->bytes, bytes);
    oriel_program_region_count_operation(bytes);
    oriel_observed_call_end(call, true, target, path, bytes);
}

static inline void operation_end(const struct oriel_observed_call *call, int code, int target,
                                 MPI_Aint disp, MPI_Count count, MPI_Datatype datatype)
{
    oriel_current_call.observed = NULL;
    if (oriel_likely(code == MPI_SUCCESS) && oriel_likely((uint32_t)target < call->observed->n))
        operation_count(call, target, disp, operation_bytes(call->observed, count, datatype));
}

#define ENTRY_AT(name, kind, parameters, arguments, disp, count, datatype)                         \
    static int observe_##name parameters                                                           \
    {                                                                                              \
        struct oriel_observed *observed = oriel_observed_find(win);                                \
        if (oriel_unlikely(observed == NULL))                                                      \
            return oriel_observe_before.name arguments;                                            \
        oriel_polled_served = false;                                                               \
        struct oriel_observed_call call =                                                          \
            oriel_observed_call_begin(observed, ORIEL_TRACE_OPERATION + ORIEL_COUNTS_##kind,       \
                                      __builtin_return_address(0), target_rank, true);             \
        int code = oriel_observe_before.name arguments;                                            \
        operation_end(&call, code, target_rank, disp, count, datatype);                            \
        return code;                                                                               \
    }
#define ENTRY(name, kind, parameters, arguments, count, datatype)                                  \
    ENTRY_AT(name, kind, parameters, arguments, target_disp, count, datatype)

#define ORIGIN(qualifier, Count)                                                                   \
    qualifier void *origin_addr, Count origin_count, MPI_Datatype origin_datatype
#define RESULT(Count) void *result_addr, Count result_count, MPI_Datatype result_datatype
#define TARGET(Count)                                                                              \
    int target_rank, MPI_Aint target_disp, Count target_count, MPI_Datatype target_datatype
#define FROM origin_addr, origin_count, origin_datatype
#define INTO result_addr, result_count, result_datatype
#define AT   target_rank, target_disp, target_count, target_datatype

/* One row for both widths of counts. */
#define BOTH(name, kind, parameters, arguments)                                                    \
    ENTRY(name, kind, parameters(int), arguments, target_count, target_datatype)                   \
    ENTRY(name##_c, kind, parameters(MPI_Count), arguments, target_count, target_datatype)

#define PUT(Count)        (ORIGIN(const, Count), TARGET(Count), MPI_Win win)
#define GET(Count)        (ORIGIN(, Count), TARGET(Count), MPI_Win win)
#define ACCUMULATE(Count) (ORIGIN(const, Count), TARGET(Count), MPI_Op op, MPI_Win win)
#define GET_ACCUMULATE(Count)                                                                      \
    (ORIGIN(const, Count), RESULT(Count), TARGET(Count), MPI_Op op, MPI_Win win)
#define RPUT(Count) (ORIGIN(const, Count), TARGET(Count), MPI_Win win, MPI_Request * request)
#define RGET(Count) (ORIGIN(, Count), TARGET(Count), MPI_Win win, MPI_Request * request)
#define RACCUMULATE(Count)                                                                         \
    (ORIGIN(const, Count), TARGET(Count), MPI_Op op, MPI_Win win, MPI_Request * request)
#define RGET_ACCUMULATE(Count)                                                                     \
    (ORIGIN(const, Count), RESULT(Count), TARGET(Count), MPI_Op op, MPI_Win win,                   \
     MPI_Request * request)

#define NOTIFY(qualifier) (ORIGIN(qualifier, MPI_Count), TARGET(MPI_Count), int number, MPI_Win win)
#define ACCUMULATE_NOTIFY                                                                          \
    (ORIGIN(const, MPI_Count), TARGET(MPI_Count), MPI_Op op, int number, MPI_Win win)

BOTH(Put, put, PUT, (FROM, AT, win))
BOTH(Get, get, GET, (FROM, AT, win))
BOTH(Accumulate, accumulate, ACCUMULATE, (FROM, AT, op, win))
BOTH(Get_accumulate, get_accumulate, GET_ACCUMULATE, (FROM, INTO, AT, op, win))
BOTH(Rput, put, RPUT, (FROM, AT, win, request))
BOTH(Rget, get, RGET, (FROM, AT, win, request))
BOTH(Raccumulate, accumulate, RACCUMULATE, (FROM, AT, op, win, request))
BOTH(Rget_accumulate, get_accumulate, RGET_ACCUMULATE, (FROM, INTO, AT, op, win, request))
ENTRY(Fetch_and_op, fetch_and_op,
      (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
       MPI_Aint target_disp, MPI_Op op, MPI_Win win),
      (origin_addr, result_addr, datatype, target_rank, target_disp, op, win), 1, datatype)
ENTRY(Compare_and_swap, compare_and_swap,
      (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
       int target_rank, MPI_Aint target_disp, MPI_Win win),
      (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win), 1,
      datatype)
ENTRY(Rfetch_and_op, fetch_and_op,
      (const void *origin_addr, void *result_addr, MPI_Datatype datatype, int target_rank,
       MPI_Aint target_disp, MPI_Op op, MPI_Win win, MPI_Request *request),
      (origin_addr, result_addr, datatype, target_rank, target_disp, op, win, request), 1, datatype)
ENTRY(Rcompare_and_swap, compare_and_swap,
      (const void *origin_addr, const void *compare_addr, void *result_addr, MPI_Datatype datatype,
       int target_rank, MPI_Aint target_disp, MPI_Win win, MPI_Request *request),
      (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win, request), 1,
      datatype)
/* One operation, on the path of its first element. */
ENTRY_AT(Fetch_and_op_list, fetch_and_op,
         (const void *origin_addr, void *result_addr, MPI_Count count, MPI_Datatype datatype,
          int target_rank, const MPI_Aint target_disps[], MPI_Op op, MPI_Win win),
         (origin_addr, result_addr, count, datatype, target_rank, target_disps, op, win),
         count > 0 && target_disps != NULL ? target_disps[0] : 0, count, datatype)
ENTRY(Compare_and_swap_128, compare_and_swap,
      (const void *origin_addr, const void *compare_addr, void *result_addr, int target_rank,
       MPI_Aint target_disp, MPI_Win win),
      (origin_addr, compare_addr, result_addr, target_rank, target_disp, win), 16, MPI_BYTE)
ENTRY(Put_notify, put, NOTIFY(const), (FROM, AT, number, win), target_count, target_datatype)
ENTRY(Get_notify, get, NOTIFY(), (FROM, AT, number, win), target_count, target_datatype)
ENTRY(Accumulate_notify, accumulate, ACCUMULATE_NOTIFY, (FROM, AT, op, number, win), target_count,
      target_datatype)

/* --- persistent requests --- */

/* Each start is an operation, at the line of the start. address: to which that returns. */
static int observe_started(const struct oriel_persistent *persistent, MPI_Request *request,
                           const void *address)
{
    static const uint8_t kinds[] = {
        [ORIEL_PERSISTENT_PUT] = ORIEL_COUNTS_put,
        [ORIEL_PERSISTENT_GET] = ORIEL_COUNTS_get,
        [ORIEL_PERSISTENT_ACCUMULATE] = ORIEL_COUNTS_accumulate,
        [ORIEL_PERSISTENT_GET_ACCUMULATE] = ORIEL_COUNTS_get_accumulate,
        [ORIEL_PERSISTENT_FETCH_AND_OP] = ORIEL_COUNTS_fetch_and_op,
        [ORIEL_PERSISTENT_COMPARE_AND_SWAP] = ORIEL_COUNTS_compare_and_swap,
    };
    struct oriel_observed *observed =
        persistent == NULL || persistent->counted < ORIEL_PERSISTENT_PUT
            ? NULL
            : oriel_observed_find(persistent->win);
    if (observed == NULL)
        return oriel_observe_before.Start(request);
    const int target = persistent->target_rank;
    oriel_polled_served = false;
    struct oriel_observed_call call = oriel_observed_call_begin(
        observed, ORIEL_TRACE_OPERATION + kinds[persistent->counted], address, target, true);
    const int code = oriel_observe_before.Start(request);
    oriel_current_call.observed = NULL;
    if (code == MPI_SUCCESS)
        operation_count(&call, target, persistent->target_disp, persistent->len_bytes);
    return code;
}

static int observe_Start(MPI_Request *request)
{
    return observe_started(request == NULL ? NULL : oriel_persistent_find(*request), request,
                           __builtin_return_address(0));
}

/* As api/start.c. */
static int observe_Startall(int count, MPI_Request array_of_requests[])
{
    int first = MPI_SUCCESS;
    if (!oriel_persistent_exist() || count < 1 || array_of_requests == NULL)
        return oriel_observe_before.Startall(count, array_of_requests);
    for (int i = 0; i < count; i++) {
        const int code = observe_started(oriel_persistent_find(array_of_requests[i]),
                                         &array_of_requests[i], __builtin_return_address(0));
        if (first == MPI_SUCCESS)
            first = code;
    }
    return first;
}

void oriel_observe_operations(struct oriel_api *table)
{
#define BOTH_SLOTS(name) table->name = observe_##name, table->name##_c = observe_##name##_c
    BOTH_SLOTS(Put);
    BOTH_SLOTS(Get);
    BOTH_SLOTS(Accumulate);
    BOTH_SLOTS(Get_accumulate);
    BOTH_SLOTS(Rput);
    BOTH_SLOTS(Rget);
    BOTH_SLOTS(Raccumulate);
    BOTH_SLOTS(Rget_accumulate);
    table->Fetch_and_op = observe_Fetch_and_op;
    table->Compare_and_swap = observe_Compare_and_swap;
    table->Rfetch_and_op = observe_Rfetch_and_op;
    table->Rcompare_and_swap = observe_Rcompare_and_swap;
    table->Fetch_and_op_list = observe_Fetch_and_op_list;
    table->Compare_and_swap_128 = observe_Compare_and_swap_128;
    table->Put_notify = observe_Put_notify;
    table->Get_notify = observe_Get_notify;
    table->Accumulate_notify = observe_Accumulate_notify;
    table->Start = observe_Start;
    table->Startall = observe_Startall;
}
