/* The observing entries that create windows, change their description, and free them. */
#include "observe/stats/observed_window.h"

#include "base/wait.h"

#include <stdio.h>
#include <stdlib.h>

/* The start of a call. */
struct creation_start {
    uint64_t begin_ns;
    uint64_t waited_ns;
};

static struct creation_start creation_begin(void)
{
    oriel_current_call.observed = NULL;
    oriel_thread_waits.rank = -1;
    oriel_thread_waits.cause = ORIEL_CAUSE_late_fence;
    return (struct creation_start){oriel_now_ns(), oriel_thread_waits.total_ns};
}

static void trace_creation(const struct oriel_observed *observed,
                           const struct creation_start *making, enum oriel_counted_call kind,
                           uint64_t time_ns)
{
    oriel_traced_add(
        observed, &(struct oriel_traced){making->begin_ns, making->waited_ns},
        &(struct oriel_traced_event){(uint8_t)(ORIEL_TRACE_CALL + kind), 0, -1, 0, time_ns});
}

static int creation_end(const struct creation_start *making,
                        struct oriel_observed_creation *creation, int code, const MPI_Win *win)
{
    if (code != MPI_SUCCESS)
        return code;
    creation->time_ns = oriel_now_ns() - making->begin_ns;
    creation->waiting_ns = oriel_thread_waits.total_ns - making->waited_ns;
    struct oriel_observed *observed = oriel_observed_add(*win, creation);
    if (observed != NULL && oriel_tracing)
        trace_creation(observed, making, ORIEL_CALL_OF_create, creation->time_ns);
    return code;
}

/* All of these functions use these argument names. */
#define ENTRY(name, flavour, size, unit, parameters, arguments)                                    \
    static int observe_##name parameters                                                           \
    {                                                                                              \
        struct creation_start making = creation_begin();                                           \
        struct oriel_observed_creation creation = {flavour, size, unit, comm, 0, 0, 0};            \
        return creation_end(&making, &creation, oriel_observe_before.name arguments, win);         \
    }

#define CREATE(Unit)                                                                               \
    (void *base, MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win *win)
#define ALLOCATE(Unit)                                                                             \
    (MPI_Aint size, Unit disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr, MPI_Win *win)
#define GIVEN (base, size, disp_unit, info, comm, win)
#define TAKEN (size, disp_unit, info, comm, baseptr, win)

ENTRY(Win_create, ORIEL_FLAVOUR_CREATE, (uint64_t)size, disp_unit, CREATE(int), GIVEN)
ENTRY(Win_create_c, ORIEL_FLAVOUR_CREATE, (uint64_t)size, disp_unit, CREATE(MPI_Aint), GIVEN)
ENTRY(Win_allocate, ORIEL_FLAVOUR_ALLOCATE, (uint64_t)size, disp_unit, ALLOCATE(int), TAKEN)
ENTRY(Win_allocate_c, ORIEL_FLAVOUR_ALLOCATE, (uint64_t)size, disp_unit, ALLOCATE(MPI_Aint), TAKEN)
ENTRY(Win_allocate_shared, ORIEL_FLAVOUR_SHARED, (uint64_t)size, disp_unit, ALLOCATE(int), TAKEN)
ENTRY(Win_allocate_shared_c, ORIEL_FLAVOUR_SHARED, (uint64_t)size, disp_unit, ALLOCATE(MPI_Aint),
      TAKEN)
ENTRY(Win_create_dynamic, ORIEL_FLAVOUR_DYNAMIC, 0, 1, (MPI_Info info, MPI_Comm comm, MPI_Win *win),
      (info, comm, win))

/* The window's description has changed: its name, or for NULL the path to its memory. */
static void description_changed(struct oriel_observed *observed, const char *name)
{
    if (name != NULL)
        snprintf(observed->first->record->name, ORIEL_RECORD_NAME, "%s", name);
    else
        oriel_observed_set_path(observed->first);
    oriel_traced_describe(observed->first->record);
}

static int observe_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    int code = oriel_observe_before.Win_attach(win, base, size);
    struct oriel_observed *observed = oriel_observed_find(win);
    if (code == MPI_SUCCESS && observed != NULL && observed->record->shared_by == 0)
        description_changed(observed, NULL);
    return code;
}

static int observe_Win_set_name(MPI_Win win, const char *win_name)
{
    int code = oriel_observe_before.Win_set_name(win, win_name);
    struct oriel_observed *observed = oriel_observed_find(win);
    if (code == MPI_SUCCESS && observed != NULL && observed->record->shared_by == 0)
        description_changed(observed, win_name);
    return code;
}

/* The record outlives the window, and the call is counted there after its end; struct
 * oriel_observed does not. */
static int observe_Win_free(MPI_Win *win)
{
    struct oriel_observed *observed = win == NULL ? NULL : oriel_observed_find(*win);
    if (observed == NULL)
        return oriel_observe_before.Win_free(win);
    MPI_Win handle = *win;
    struct oriel_timed *timed = &observed->record->calls[ORIEL_CALL_OF_free];
    struct creation_start making = creation_begin();
    const struct oriel_window_record **others = oriel_waiting_find_others(observed);
    oriel_current_call = (struct oriel_current_call){
        .observed = observed, .target = -1, .call = ORIEL_CALL_OF_free, .others = others};
    oriel_waiting_arrive(observed, making.begin_ns);
    int code = oriel_observe_before.Win_free(win);
    oriel_current_call = (struct oriel_current_call){.observed = NULL};
    free(others);
    uint64_t time_ns = oriel_now_ns() - making.begin_ns;
    uint64_t waiting_ns = oriel_thread_waits.total_ns - making.waited_ns;
    oriel_count(observed, &timed->count, 1);
    oriel_count(observed, &timed->time_ns, time_ns);
    oriel_count(observed, &timed->waiting_ns, waiting_ns);
    oriel_count(observed, &timed->waited, waiting_ns != 0);
    oriel_count_most(&timed->longest_ns, waiting_ns);
    if (oriel_tracing)
        trace_creation(observed, &making, ORIEL_CALL_OF_free, time_ns);
    if (*win == MPI_WIN_NULL)
        oriel_observed_remove(handle, observed->first);
    return code;
}

void oriel_observe_creation(struct oriel_api *table)
{
    table->Win_create = observe_Win_create;
    table->Win_create_c = observe_Win_create_c;
    table->Win_allocate = observe_Win_allocate;
    table->Win_allocate_c = observe_Win_allocate_c;
    table->Win_allocate_shared = observe_Win_allocate_shared;
    table->Win_allocate_shared_c = observe_Win_allocate_shared_c;
    table->Win_create_dynamic = observe_Win_create_dynamic;
    table->Win_attach = observe_Win_attach;
    table->Win_set_name = observe_Win_set_name;
    table->Win_free = observe_Win_free;
}
