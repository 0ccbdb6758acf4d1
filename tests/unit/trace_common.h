/* Shared by the unit tests of traces: a process for each test, because a process has one trace; a
 * folder for it; a run of one rank. */
#ifndef ORIEL_TESTS_UNIT_TRACE_COMMON_H
#define ORIEL_TESTS_UNIT_TRACE_COMMON_H

#include "cli/report/trace_merge.h"
#include "observe/trace/trace.h"
#include "observe/trace/trace_regions.h"
#include "observe/trace/trace_sites.h"
#include "observe/trace/trace_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../busy.h"
#include "cmocka_all.h"
#include "expect.h"

static char folder[64];
static char path[96]; /* of rank 0's trace */

static inline int folder_make(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/oriel-trace.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/rank-0.oriel", folder);
    return 0;
}

static inline int folder_remove(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* Returns the status of the process as wait does. */
static inline int in_process(void (*body)(void))
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(busy_limit_s(60));
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static struct oriel_window_record record = {
    .window_id = 77, .n = 4, .rank = 0, .size_bytes = 4096, .place = 1, .name = "halo"};
static const struct oriel_code_address call_sites[] = {{.module = "/bin/halo", .offset = 0x1234}};
static const int32_t world_ranks[] = {0, 1, 2, 3};

enum { BEGIN_NS = 500, END_NS = 5000 }; /* of the trace, on its clock */

static const struct oriel_trace_selection *selection; /* of the trace that begins; NULL: all */

/* Begins the trace of rank 0 of 4, with a window that has number 0. */
static inline void trace_begin(uint64_t limit_bytes)
{
    static struct oriel_trace_header header = {.magic = ORIEL_TRACE_MAGIC,
                                               .version = ORIEL_TRACE_VERSION,
                                               .header_bytes = sizeof header,
                                               .event_bytes = sizeof(struct oriel_trace_event),
                                               .world_size = 4,
                                               .begin_ns = BEGIN_NS,
                                               .job = {1, 2},
                                               .node = {3, 4},
                                               .program = "halo",
                                               .host = "mpich"};
    static const struct oriel_trace_host host = {.version = "MPICH 5.0.2"};
    static const struct oriel_trace_clock clock = {.own_ns = 1000, .zero_ns = 1000};
    EXPECT(oriel_trace_writer_open(path, limit_bytes) == NULL);
    EXPECT(oriel_trace_writer_begin(&header, &host, selection, &clock));
    oriel_trace_sites_set(call_sites, 1);
    EXPECT(oriel_trace_window(&record, 8, world_ranks) == 0);
}

/* The i-th put: its number is its size. */
static inline void add_put(uint64_t i)
{
    struct oriel_trace_event event = {.begin_ns = 1000 + i * 100,
                                      .duration_ns = 50,
                                      .bytes = i,
                                      .target = (int32_t)(i % 4),
                                      .cause_rank = -1,
                                      .site = 1,
                                      .kind = ORIEL_TRACE_OPERATION + ORIEL_COUNTS_put};
    oriel_trace_add(&event);
}

#endif
