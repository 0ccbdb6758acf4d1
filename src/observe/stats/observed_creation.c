/* The observing entries that create windows, change their description, and free them. */
#include "observe/stats/observed_call.h"
#include "observe/stats/pause.h"
#include "observe/stats/site_places.h"

#include "host/host.h"
#include "window/handle.h"

#include <stdio.h>
#include <stdlib.h>

/* The start of a call. Its site is found when the window is known. */
static struct oriel_observed_call creation_begin(void)
{
    oriel_current_call.observed = NULL;
    oriel_thread_waits.rank = -1;
    oriel_thread_waits.cause = ORIEL_CAUSE_late_fence;
    return (struct oriel_observed_call){.begin_ns = oriel_now_ns(),
                                        .waited_ns = oriel_thread_waits.total_ns};
}

static int creation_end(struct oriel_observed_call *making,
                        struct oriel_observed_creation *creation, int code, const MPI_Win *win)
{
    if (code != MPI_SUCCESS)
        return code;
    uint64_t time_ns = oriel_now_ns() - making->begin_ns;
    creation->place = oriel_site_place_find(creation->address).number;
    making->observed = oriel_observed_add(*win, creation);
    if (making->observed != NULL && !oriel_observation_is_paused()) {
        making->site = oriel_observed_site(
            making->observed, ORIEL_TRACE_CALL + ORIEL_CALL_OF_create, creation->address);
        oriel_observed_call_whole(making, time_ns);
    }
    return code;
}

/* All of these functions use these argument names. */
#define ENTRY(name, flavour, size, unit, parameters, arguments)                                    \
    static int observe_##name parameters                                                           \
    {                                                                                              \
        struct oriel_observed_call making = creation_begin();                                      \
        struct oriel_observed_creation creation = {                                                \
            flavour, size, unit, comm, __builtin_return_address(0), 0};                            \
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

static int observe_Win_memory_open(const MPIX_Memory_handle *handle, MPI_Info info, MPI_Win *win)
{
    struct oriel_observed_call making = creation_begin();
    int code = oriel_observe_before.Win_memory_open(handle, info, win);
    if (code != MPI_SUCCESS)
        return code;
    const struct oriel_window *window = oriel_handle_find(*win);
    struct oriel_observed_creation creation = {
        ORIEL_FLAVOUR_CREATE,   window->targets[0].size_bytes, window->targets[0].disp_unit,
        oriel_host_singleton(), __builtin_return_address(0),   0};
    return creation_end(&making, &creation, code, win);
}

/* The window's description has changed: its name, or for NULL the path to its memory. */
static void description_changed(struct oriel_observed *observed, const char *name)
{
    if (name != NULL)
        snprintf(observed->first->record->name, ORIEL_RECORD_NAME, "%s", name);
    else
        oriel_observed_set_path(observed->first);
    oriel_traced_describe(observed->first->record);
    oriel_traced_select(observed->first);
}

static int observe_Win_attach(MPI_Win win, void *base, MPI_Aint size)
{
    int code = oriel_observe_before.Win_attach(win, base, size);
    struct oriel_observed *observed = oriel_observed_find_paused(win);
    if (code == MPI_SUCCESS && observed != NULL && observed->record->shared_by == 0)
        description_changed(observed, NULL);
    return code;
}

static int observe_Win_set_name(MPI_Win win, const char *win_name)
{
    int code = oriel_observe_before.Win_set_name(win, win_name);
    struct oriel_observed *observed = oriel_observed_find_paused(win);
    if (code == MPI_SUCCESS && observed != NULL && observed->record->shared_by == 0)
        description_changed(observed, win_name);
    return code;
}

/* Ends the observation of a window. Without a traced call, its description shows its end. */
static void window_remove(MPI_Win handle, struct oriel_observed *first, bool is_traced)
{
    struct oriel_window_record *record = first->record;
    oriel_observed_remove(handle, first);
    if (!is_traced)
        oriel_traced_describe(record);
}

/* In a pause: other ranks may wait for this one. */
static int free_uncounted(MPI_Win *win)
{
    MPI_Win handle = *win;
    struct oriel_observed *observed = oriel_observed_find_paused(handle);
    if (observed != NULL)
        oriel_waiting_arrive(observed, oriel_now_ns());
    int code = oriel_observe_before.Win_free(win);
    if (observed != NULL && *win == MPI_WIN_NULL)
        window_remove(handle, observed->first, false);
    return code;
}

/* The record outlives the window, and the call is counted there after its end; struct
 * oriel_observed does not. */
static int observe_Win_free(MPI_Win *win)
{
    if (win == NULL)
        return oriel_observe_before.Win_free(win);
    struct oriel_observed *observed = oriel_observed_find(*win);
    if (observed == NULL)
        return free_uncounted(win);
    MPI_Win handle = *win;
    struct oriel_observed_call freeing = creation_begin();
    freeing.observed = observed;
    freeing.site = oriel_observed_site(observed, ORIEL_TRACE_CALL + ORIEL_CALL_OF_free,
                                       __builtin_return_address(0));
    const struct oriel_window_record **others = oriel_waiting_find_others(observed);
    oriel_current_call = (struct oriel_current_call){
        .observed = observed, .site = freeing.site, .target = -1, .others = others};
    oriel_waiting_arrive(observed, freeing.begin_ns);
    int code = oriel_observe_before.Win_free(win);
    oriel_current_call = (struct oriel_current_call){.observed = NULL};
    free(others);
    bool is_traced = oriel_observed_call_whole(&freeing, oriel_now_ns() - freeing.begin_ns);
    if (*win == MPI_WIN_NULL)
        window_remove(handle, observed->first, is_traced);
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
    table->Win_memory_open = observe_Win_memory_open;
    table->Win_attach = observe_Win_attach;
    table->Win_set_name = observe_Win_set_name;
    table->Win_free = observe_Win_free;
}
