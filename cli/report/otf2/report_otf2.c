/* Writes the events as an OTF2 archive: a location for each thread, a region for each call, a
 * nested region for its waiting, and the library's own records for windows, operations and
 * collective calls. The program's regions and pauses are regions, too (otf2_marks.h). Ranks are
 * written one after another, so that few files are open at a time. Built when the OTF2 library is
 * available. */
#include "cli/report/report.h"

#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/report/otf2/otf2_marks.h"

#include <errno.h>
#include <ftw.h>
#include <otf2/otf2.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BILLION UINT64_C(1000000000)

enum { LOCATIONS = ORIEL_OTF2_LOCATIONS, EVENTS_BYTES = 1 << 20, DEFINITIONS_BYTES = 4 << 20 };

/* Regions, in the order of their definitions: operations, calls, one for each cause of waiting, and
 * one for each name of the program's. */
enum {
    REGION_CALL = ORIEL_COUNTED_OPERATIONS,
    REGION_WAIT = REGION_CALL + ORIEL_COUNTED_CALLS,
    REGION_MARK = REGION_WAIT + ORIEL_COUNTED_CAUSES
};

/* One thread of a rank, or its pauses. */
struct location {
    OTF2_EvtWriter *writer; /* open while the rank's events are written */
    OTF2_TimeStamp last_ns; /* time stamps never decrease */
    uint64_t operations;
    uint64_t records;
    bool is_used;
};

struct archive {
    const struct oriel_traces *traces;
    OTF2_Archive *archive;
    struct oriel_otf2_marks *marks;
    struct location *locations; /* [ranks][LOCATIONS] */
    uint32_t rank;              /* whose events are being written */
    uint32_t strings;           /* number of strings so far */
    OTF2_GlobalDefWriter *definitions;
    char problem[200]; /* the library's first error message, or "" */
};

static OTF2_ErrorCode otf2_error_record(void *context, const char *file, uint64_t line,
                                        const char *function, OTF2_ErrorCode code,
                                        const char *format, va_list arguments)
{
    struct archive *archive = context;
    char detail[120] = "";
    (void)file, (void)line, (void)function;
    vsnprintf(detail, sizeof detail, format, arguments);
    if (archive->problem[0] == '\0')
        snprintf(archive->problem, sizeof archive->problem, "%s (%s)",
                 OTF2_Error_GetDescription(code), detail);
    return code;
}

static OTF2_FlushType flush_always(void *context, OTF2_FileType type, OTF2_LocationRef location,
                                   void *caller, bool is_final)
{
    (void)context, (void)type, (void)location, (void)caller, (void)is_final;
    return OTF2_FLUSH;
}

static OTF2_RegionRef region_of(uint8_t kind)
{
    return kind < ORIEL_TRACE_CALL ? kind : REGION_CALL + (OTF2_RegionRef)kind - ORIEL_TRACE_CALL;
}

/* --- events --- */

static OTF2_LocationRef location_of(uint32_t rank, uint32_t thread)
{
    return (OTF2_LocationRef)rank * LOCATIONS + thread;
}

static OTF2_TimeStamp time_at(struct location *location, int64_t ns)
{
    OTF2_TimeStamp wanted = ns > 0 ? (OTF2_TimeStamp)ns : 0;
    if (wanted > location->last_ns)
        location->last_ns = wanted;
    return location->last_ns;
}

/* Opens the location's file when there is something to write in it. */
static struct location *location_writer_open(struct archive *archive, OTF2_LocationRef number)
{
    struct location *location = &archive->locations[number];
    if (location->writer == NULL)
        location->writer = OTF2_Archive_GetEvtWriter(archive->archive, number);
    location->is_used = true;
    return location;
}

/* Regions and pauses that begin or end until then. */
static void write_marks(struct archive *archive, OTF2_LocationRef number, int64_t until_ns)
{
    struct oriel_otf2_step step;
    while (oriel_otf2_marks_step(archive->marks, number, until_ns, &step)) {
        struct location *location = location_writer_open(archive, number);
        if (location->writer != NULL)
            (step.is_enter ? OTF2_EvtWriter_Enter : OTF2_EvtWriter_Leave)(
                location->writer, NULL, time_at(location, step.at_ns), REGION_MARK + step.name);
    }
}

static void rank_finish(struct archive *archive)
{
    for (uint32_t thread = 0; thread < LOCATIONS && archive->rank != UINT32_MAX; thread++) {
        OTF2_LocationRef number = location_of(archive->rank, thread);
        struct location *location = &archive->locations[number];
        write_marks(archive, number, INT64_MAX);
        if (location->writer == NULL)
            continue;
        OTF2_EvtWriter_GetNumberOfEvents(location->writer, &location->records);
        OTF2_Archive_CloseEvtWriter(archive->archive, location->writer);
        location->writer = NULL;
    }
}

static struct location *location_open(struct archive *archive, uint32_t rank, uint32_t thread)
{
    if (rank != archive->rank)
        rank_finish(archive);
    archive->rank = rank;
    return location_writer_open(archive, location_of(rank, thread));
}

static void write_operation(struct location *location, const struct oriel_trace_record *traced)
{
    const struct oriel_trace_event *event = traced->event;
    uint32_t target = event->target >= 0 ? (uint32_t)event->target : OTF2_UNDEFINED_UINT32;
    uint64_t number = location->operations++;
    OTF2_TimeStamp now = time_at(location, traced->begin_ns);
    OTF2_RmaAtomicType atomic = OTF2_RMA_ATOMIC_TYPE_ACCUMULATE;
    uint64_t back = event->bytes;
    switch ((enum oriel_counted_operation)event->kind) {
    case ORIEL_COUNTS_put:
        OTF2_EvtWriter_RmaPut(location->writer, NULL, now, traced->window, target, event->bytes,
                              number);
        return;
    case ORIEL_COUNTS_get:
        OTF2_EvtWriter_RmaGet(location->writer, NULL, now, traced->window, target, event->bytes,
                              number);
        return;
    case ORIEL_COUNTS_compare_and_swap: atomic = OTF2_RMA_ATOMIC_TYPE_COMPARE_AND_SWAP; break;
    case ORIEL_COUNTS_accumulate: back = 0; break;
    default: atomic = OTF2_RMA_ATOMIC_TYPE_FETCH_AND_ACCUMULATE; break;
    }
    OTF2_EvtWriter_RmaAtomic(location->writer, NULL, now, traced->window, target, atomic,
                             event->bytes, back, number);
}

static bool is_collective(uint8_t kind)
{
    return kind == ORIEL_TRACE_CALL + ORIEL_CALL_OF_create ||
           kind == ORIEL_TRACE_CALL + ORIEL_CALL_OF_free ||
           kind == ORIEL_TRACE_CALL + ORIEL_CALL_OF_fence;
}

static void write_collective_end(struct location *location, const struct oriel_trace_record *traced,
                                 OTF2_TimeStamp now)
{
    OTF2_CollectiveOp operation = OTF2_COLLECTIVE_OP_BARRIER;
    if (traced->event->kind == ORIEL_TRACE_CALL + ORIEL_CALL_OF_create) {
        operation = OTF2_COLLECTIVE_OP_CREATE_HANDLE;
        OTF2_EvtWriter_RmaWinCreate(location->writer, NULL, now, traced->window);
    } else if (traced->event->kind == ORIEL_TRACE_CALL + ORIEL_CALL_OF_free) {
        operation = OTF2_COLLECTIVE_OP_DESTROY_HANDLE;
        OTF2_EvtWriter_RmaWinDestroy(location->writer, NULL, now, traced->window);
    }
    OTF2_EvtWriter_RmaCollectiveEnd(location->writer, NULL, now, operation,
                                    OTF2_RMA_SYNC_LEVEL_PROCESS | OTF2_RMA_SYNC_LEVEL_MEMORY,
                                    traced->window, OTF2_UNDEFINED_UINT32, 0, 0);
}

static void write_wait(struct location *location, const struct oriel_trace_record *traced)
{
    OTF2_RegionRef region = (OTF2_RegionRef)(REGION_WAIT + traced->event->cause);
    int64_t begin_ns = traced->end_ns - (int64_t)traced->event->waiting_ns;
    OTF2_EvtWriter_Enter(location->writer, NULL, time_at(location, begin_ns), region);
    OTF2_EvtWriter_Leave(location->writer, NULL, time_at(location, traced->end_ns), region);
}

static bool write_event(const struct oriel_trace_record *traced, void *context)
{
    struct archive *archive = context;
    const struct oriel_trace_event *event = traced->event;
    struct location *location = location_open(archive, traced->rank, event->thread);
    if (location->writer == NULL)
        return false;
    uint64_t number = location->operations;
    write_marks(archive, location_of(traced->rank, event->thread), traced->begin_ns);
    OTF2_EvtWriter_Enter(location->writer, NULL, time_at(location, traced->begin_ns),
                         region_of(event->kind));
    if (event->kind < ORIEL_TRACE_CALL)
        write_operation(location, traced);
    if (is_collective(event->kind))
        OTF2_EvtWriter_RmaCollectiveBegin(location->writer, NULL, location->last_ns);
    if (event->waiting_ns != 0)
        write_wait(location, traced);
    OTF2_TimeStamp end = time_at(location, traced->end_ns);
    if (event->kind < ORIEL_TRACE_CALL)
        OTF2_EvtWriter_RmaOpCompleteBlocking(location->writer, NULL, end, traced->window, number);
    if (is_collective(event->kind))
        write_collective_end(location, traced, end);
    OTF2_EvtWriter_Leave(location->writer, NULL, end, region_of(event->kind));
    return archive->problem[0] == '\0';
}

/* --- definitions --- */

static OTF2_StringRef define_text(struct archive *archive, const char *text)
{
    OTF2_GlobalDefWriter_WriteString(archive->definitions, archive->strings, text);
    return archive->strings++;
}

static OTF2_StringRef define_format(struct archive *archive, char *text)
{
    OTF2_StringRef string = define_text(archive, text);
    free(text);
    return string;
}

static void define_region(struct archive *archive, uint32_t region, const char *name,
                          OTF2_RegionRole role)
{
    OTF2_StringRef text = define_text(archive, name);
    OTF2_Paradigm paradigm = region < REGION_MARK ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_USER;
    OTF2_GlobalDefWriter_WriteRegion(archive->definitions, region, text, text, 0, role, paradigm,
                                     OTF2_REGION_FLAG_NONE, 0, 0, 0);
}

static void define_regions(struct archive *archive)
{
    for (uint32_t i = 0; i < ORIEL_COUNTED_OPERATIONS; i++)
        define_region(archive, i, oriel_counted_operations[i].name, OTF2_REGION_ROLE_RMA);
    for (uint32_t i = 0; i < ORIEL_COUNTED_CALLS; i++)
        define_region(archive, REGION_CALL + i, oriel_counted_calls[i].name,
                      is_collective((uint8_t)(ORIEL_TRACE_CALL + i)) ? OTF2_REGION_ROLE_BARRIER
                                                                     : OTF2_REGION_ROLE_RMA);
    for (uint32_t i = 0; i < ORIEL_COUNTED_CAUSES; i++)
        define_region(archive, REGION_WAIT + i, oriel_counted_causes[i].name,
                      OTF2_REGION_ROLE_TASK_WAIT);
    uint32_t names_count;
    const char *const *names = oriel_otf2_marks_names(archive->marks, &names_count);
    for (uint32_t i = 0; i < names_count; i++)
        define_region(archive, REGION_MARK + i, names[i],
                      i == ORIEL_OTF2_PAUSED ? OTF2_REGION_ROLE_ARTIFICIAL : OTF2_REGION_ROLE_CODE);
}

/* The lowest rank on the same node. */
static uint32_t first_rank_of_node(const struct archive *archive, uint32_t rank)
{
    const struct oriel_traced_rank *ranks = archive->traces->ranks;
    uint32_t first = 0;
    while (memcmp(ranks[first].header.node, ranks[rank].header.node,
                  sizeof ranks[rank].header.node) != 0)
        first++;
    return first;
}

/* Tree node 0 is the run; its children are the nodes of the run. */
static void define_ranks(struct archive *archive)
{
    OTF2_GlobalDefWriter *definitions = archive->definitions;
    OTF2_StringRef node_class = define_text(archive, "node");
    uint32_t *nodes = oriel_alloc((archive->traces->ranks_count + 1) * sizeof *nodes);
    uint32_t nodes_count = 0;
    OTF2_GlobalDefWriter_WriteSystemTreeNode(
        definitions, 0, define_text(archive, archive->traces->ranks[0].header.program),
        define_text(archive, "run"), OTF2_UNDEFINED_SYSTEM_TREE_NODE);
    for (uint32_t i = 0; i < archive->traces->ranks_count; i++) {
        const struct oriel_traced_rank *rank = &archive->traces->ranks[i];
        uint32_t first = first_rank_of_node(archive, i);
        nodes[i] = first < i ? nodes[first] : ++nodes_count;
        if (first == i)
            OTF2_GlobalDefWriter_WriteSystemTreeNode(
                definitions, nodes[i], define_text(archive, rank->header.machine_name), node_class,
                0);
        OTF2_GlobalDefWriter_WriteLocationGroup(
            definitions, i, define_format(archive, oriel_format("rank %d", (int)rank->world_rank)),
            OTF2_LOCATION_GROUP_TYPE_PROCESS, nodes[i], OTF2_UNDEFINED_LOCATION_GROUP);
        for (uint32_t thread = 0; thread < LOCATIONS; thread++) {
            const struct location *location = &archive->locations[location_of(i, thread)];
            if (location->is_used)
                OTF2_GlobalDefWriter_WriteLocation(
                    definitions, location_of(i, thread),
                    thread == ORIEL_OTF2_PAUSES
                        ? define_text(archive, "pauses")
                        : define_format(archive, oriel_format("thread %u", thread)),
                    OTF2_LOCATION_TYPE_CPU_THREAD, location->records, i);
        }
    }
    free(nodes);
}

/* The index of a rank of MPI_COMM_WORLD among the traced ones; 0 when it has no trace. */
static uint64_t rank_index(const struct archive *archive, int32_t world_rank)
{
    size_t low = 0;
    size_t high = archive->traces->ranks_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (archive->traces->ranks[middle].world_rank < world_rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < archive->traces->ranks_count &&
                   archive->traces->ranks[low].world_rank == world_rank
               ? low
               : 0;
}

/* Group 0 has all MPI locations, the first thread of each rank; group 1 + i and communicator i
 * belong to window i. */
static void define_windows(struct archive *archive)
{
    const struct oriel_traces *traces = archive->traces;
    uint64_t *members = oriel_alloc((traces->ranks_count + 1) * sizeof *members);
    for (uint32_t i = 0; i < traces->ranks_count; i++)
        members[i] = location_of(i, 0);
    OTF2_GlobalDefWriter_WriteGroup(archive->definitions, 0, 0, OTF2_GROUP_TYPE_COMM_LOCATIONS,
                                    OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE,
                                    (uint32_t)traces->ranks_count, members);
    free(members);
    for (uint32_t i = 0; i < traces->windows_count; i++) {
        const struct oriel_traced_window *window = &traces->windows[i];
        const char *flavour = oriel_flavour_name(window->flavour, "window");
        OTF2_StringRef name = window->name[0] != '\0'
                                  ? define_text(archive, window->name)
                                  : define_format(archive, oriel_format("%s %u", flavour, i + 1));
        members = oriel_alloc((uint32_t)window->n * sizeof *members);
        for (int32_t j = 0; j < window->n; j++)
            members[j] = rank_index(archive, window->world_ranks[j]);
        OTF2_GlobalDefWriter_WriteGroup(archive->definitions, i + 1, name,
                                        OTF2_GROUP_TYPE_COMM_GROUP, OTF2_PARADIGM_MPI,
                                        OTF2_GROUP_FLAG_NONE, (uint32_t)window->n, members);
        OTF2_GlobalDefWriter_WriteComm(archive->definitions, i, name, i + 1, OTF2_UNDEFINED_COMM,
                                       OTF2_COMM_FLAG_NONE);
        OTF2_GlobalDefWriter_WriteRmaWin(archive->definitions, i, name, i,
                                         OTF2_RMA_WIN_FLAG_CREATE_DESTROY_EVENTS);
        free(members);
    }
}

static void define_all(struct archive *archive)
{
    const struct oriel_traces *traces = archive->traces;
    archive->definitions = OTF2_Archive_GetGlobalDefWriter(archive->archive);
    if (archive->definitions == NULL)
        return;
    OTF2_GlobalDefWriter_WriteClockProperties(archive->definitions, BILLION, 0,
                                              (uint64_t)traces->last_ns + 1,
                                              traces->ranks[0].header.begin_real_ns);
    define_text(archive, ""); /* string 0 */
    define_regions(archive);
    define_ranks(archive);
    define_windows(archive);
    OTF2_Archive_CloseGlobalDefWriter(archive->archive, archive->definitions);
}

/* Each location must have a definition file of its own, even an empty one. */
static void write_local_definitions(struct archive *archive)
{
    OTF2_Archive_OpenDefFiles(archive->archive);
    for (uint32_t i = 0; i < archive->traces->ranks_count * LOCATIONS; i++) {
        if (!archive->locations[i].is_used)
            continue;
        OTF2_DefWriter *writer = OTF2_Archive_GetDefWriter(archive->archive, i);
        if (writer != NULL)
            OTF2_Archive_CloseDefWriter(archive->archive, writer);
    }
    OTF2_Archive_CloseDefFiles(archive->archive);
}

static void write_archive(struct archive *archive)
{
    static const OTF2_FlushCallbacks callbacks = {.otf2_pre_flush = flush_always};
    OTF2_Archive_SetFlushCallbacks(archive->archive, &callbacks, NULL);
    OTF2_Archive_SetSerialCollectiveCallbacks(archive->archive);
    OTF2_Archive_SetCreator(archive->archive, "oriel report");
    OTF2_Archive_OpenEvtFiles(archive->archive);
    for (uint32_t i = 0; i < archive->traces->ranks_count; i++)
        archive->locations[location_of(i, 0)].is_used = true;
    oriel_traces_each(archive->traces, write_event, archive);
    rank_finish(archive);
    for (uint32_t i = 0; i < archive->traces->ranks_count; i++)
        if (archive->locations[location_of(i, 0)].records == 0)
            (void)location_open(archive, i, 0); /* a file without calls */
    rank_finish(archive);
    OTF2_Archive_CloseEvtFiles(archive->archive);
    write_local_definitions(archive);
    define_all(archive);
}

static int file_remove(const char *path, const struct stat *status, int type, struct FTW *place)
{
    (void)status, (void)type, (void)place;
    return remove(path);
}

bool oriel_report_otf2(const struct oriel_traces *traces, const char *folder)
{
    struct archive archive = {.traces = traces, .rank = UINT32_MAX};
    if (mkdir(folder, 0777) != 0) {
        fprintf(stderr, "oriel: --otf2 %s: %s\n", folder,
                errno == EEXIST ? "it already exists and is not changed" : strerror(errno));
        return false;
    }
    OTF2_ErrorCallback before = OTF2_Error_RegisterCallback(otf2_error_record, &archive);
    archive.locations = oriel_alloc(traces->ranks_count * LOCATIONS * sizeof *archive.locations);
    archive.archive =
        OTF2_Archive_Open(folder, "traces", OTF2_FILEMODE_WRITE, EVENTS_BYTES, DEFINITIONS_BYTES,
                          OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
    if (archive.archive != NULL) {
        archive.marks = oriel_otf2_marks_new(traces);
        write_archive(&archive);
        oriel_otf2_marks_free(archive.marks);
        OTF2_Archive_Close(archive.archive);
    }
    OTF2_Error_RegisterCallback(before, NULL);
    free(archive.locations);
    if (archive.archive != NULL && archive.problem[0] == '\0')
        return true;
    fprintf(stderr, "oriel: --otf2 %s: %s\n", folder, archive.problem);
    (void)nftw(folder, file_remove, 4, FTW_DEPTH | FTW_PHYS); /* removes an incomplete archive */
    return false;
}
