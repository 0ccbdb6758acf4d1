/* Trace files: DIR/rank-<world rank>.oriel, one per process, little-endian. A file is a header and
 * blocks, each whole and with its own checksum. So after a kill the file is readable to the last
 * block. The library writes (trace_file.c), the command line reads (cli/report/trace_merge.h).
 *
 * A reader trusts nothing: it bounds sizes, checks indices, and stops at a block with a wrong
 * checksum. */
#ifndef ORIEL_OBSERVE_TRACE_TRACE_FORMAT_H
#define ORIEL_OBSERVE_TRACE_TRACE_FORMAT_H

#include "base/code_address.h"
#include "base/host_version.h"

#include <stddef.h>
#include <stdint.h>

#define ORIEL_TRACE_MAGIC UINT64_C(0x0a314352544c524f) /* "ORLTRC1\n" */
#define ORIEL_BLOCK_MAGIC UINT32_C(0x4b4c424f)         /* "OBLK" */
/* Version 2 has no marks. */
enum {
    ORIEL_TRACE_VERSION = 3,
    ORIEL_TRACE_VERSION_LEAST = 2, /* that readers know */
    ORIEL_BLOCK_BYTES_MOST = 1 << 20
};

struct oriel_trace_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes; /* blocks begin here */
    uint32_t event_bytes;  /* of struct oriel_trace_event */
    int32_t world_rank;
    int32_t world_size;
    int32_t pid;
    uint64_t job[2];        /* the same in all files of one run: drawn by rank 0 */
    uint64_t node[2];       /* the same for processes with a common monotonic clock */
    uint64_t begin_ns;      /* of the monotonic clock when tracing began */
    uint64_t begin_real_ns; /* of the real-time clock then */
    char machine_name[64];
    char host[16];  /* "mpich", "openmpi" */
    char oriel[16]; /* version */
    char program[256];
    uint32_t reserved;
    uint32_t checksum; /* CRC-32 of all before it */
};

enum oriel_block_type {
    ORIEL_BLOCK_EVENTS = 1, /* struct oriel_trace_event [] */
    /* struct oriel_trace_window and its ranks; repeated after a change, e.g. of the name */
    ORIEL_BLOCK_WINDOW = 2,
    ORIEL_BLOCK_CLOCK = 3,     /* struct oriel_trace_clock */
    ORIEL_BLOCK_END = 4,       /* struct oriel_trace_end: the program reached MPI_Finalize */
    ORIEL_BLOCK_SITE = 5,      /* struct oriel_trace_site; repeated at the end, with its line */
    ORIEL_BLOCK_REGION = 6,    /* struct oriel_trace_region */
    ORIEL_BLOCK_SELECTION = 7, /* struct oriel_trace_selection, if not all calls are traced */
    ORIEL_BLOCK_HOST = 8,      /* struct oriel_trace_host */
};

struct oriel_trace_block {
    uint32_t magic;
    uint32_t type;      /* readers skip unknown ones */
    uint32_t len_bytes; /* of the contents, at most ORIEL_BLOCK_BYTES_MOST */
    uint32_t checksum;  /* CRC-32 of the contents */
    /* events lost so far, for lack of room in the ring or on the disk */
    uint64_t dropped;
};

/* One call. Times are of the process's monotonic clock, without the time of reading it. */
struct oriel_trace_event {
    uint64_t begin_ns;
    uint64_t duration_ns;
    uint64_t waiting_ns; /* the part spent waiting for other ranks */
    uint64_t bytes;      /* of an operation; else 0 */
    int32_t target;      /* win_rank; -1: none, or all */
    int32_t cause_rank;  /* win_rank it waited for; -1: none, or several */
    uint16_t window;     /* number of an earlier ORIEL_BLOCK_WINDOW */
    uint16_t site;       /* number of an earlier ORIEL_BLOCK_SITE; 0: unknown */
    uint8_t kind;        /* enum oriel_trace_kind */
    uint8_t path;        /* of an operation: enum oriel_counted_path */
    uint8_t cause;       /* enum oriel_counted_cause, if waiting_ns is not 0 */
    uint8_t thread;      /* of the process, numbered from 0; 255: that or a later one */
};
_Static_assert(sizeof(struct oriel_trace_event) == 48, "files have it");

/* Operations first: ORIEL_TRACE_OPERATION + enum oriel_counted_operation; ORIEL_TRACE_CALL + enum
 * oriel_counted_call. From ORIEL_TRACE_KINDS on, kinds are of marks. */
enum oriel_trace_kind { ORIEL_TRACE_OPERATION = 0, ORIEL_TRACE_CALL = 64, ORIEL_TRACE_KINDS = 128 };

/* A mark is no call, and has the place of an event in its block. It is written when it ends. */
enum oriel_trace_mark_kind {
    ORIEL_MARK_REGION = ORIEL_TRACE_KINDS, /* from oriel_region_begin to oriel_region_end */
    ORIEL_MARK_PAUSE,                      /* of all threads, by MPI_Pcontrol; its sums are 0 */
    ORIEL_MARK_KINDS_END
};
struct oriel_trace_mark {
    uint64_t begin_ns;
    uint64_t duration_ns;
    /* of this thread's calls in the region, inner regions included: */
    uint64_t waiting_ns;
    uint64_t bytes;
    uint32_t operations;   /* UINT32_MAX: that or more */
    uint32_t calls_ns_low; /* their time, 48 bits */
    uint16_t region;       /* number of an earlier ORIEL_BLOCK_REGION */
    uint16_t calls_ns_high;
    uint8_t kind; /* enum oriel_trace_mark_kind */
    uint8_t reserved[2];
    uint8_t thread;
};
_Static_assert(sizeof(struct oriel_trace_mark) == sizeof(struct oriel_trace_event) &&
                   offsetof(struct oriel_trace_mark, kind) ==
                       offsetof(struct oriel_trace_event, kind) &&
                   offsetof(struct oriel_trace_mark, thread) ==
                       offsetof(struct oriel_trace_event, thread),
               "blocks of events have both");

struct oriel_trace_window {
    uint32_t number; /* of this file, from 0 */
    int32_t n;       /* ranks; 0: too many windows, all later ones share this one */
    int32_t rank;    /* of this process */
    uint32_t flavour;
    uint64_t window_id; /* the same on all ranks */
    uint64_t size_bytes;
    int64_t disp_unit;
    uint8_t own_path;
    uint8_t is_freed; /* 1: it was freed by a call that is not traced */
    uint8_t reserved[4];
    uint16_t site; /* of its creating call, as in events */
    char name[64];
    char reason[160];
    int32_t world_ranks[]; /* n, truncated to fit the block */
};

/* A call site. Its place has a line only in the description at the end. */
struct oriel_trace_site {
    uint32_t number; /* of this file, from 1 */
    uint32_t reserved;
    struct oriel_code_address place;
};

struct oriel_trace_region {
    uint32_t number; /* of this file; 0: all those that have none of their own */
    uint32_t reserved;
    char name[64];
};

/* The MPI: of the standard ABI, the one that implements it. */
struct oriel_trace_host {
    char version[ORIEL_HOST_VERSION]; /* "MPICH 5.0.2" */
};

/* What is traced: every sample-th operation on average, and the calls that ORIEL_TRACE_FILTER
 * selects. */
enum { ORIEL_TRACE_SAMPLE_MOST = 1000000000 };
struct oriel_trace_selection {
    uint32_t sample; /* 1 to ORIEL_TRACE_SAMPLE_MOST */
    uint32_t reserved;
    char filter[504]; /* ""; a longer one is cut off */
};

/* This node's monotonic clock reads own_ns when rank 0's reads zero_ns, within error_ns. The first
 * is measured in MPI_Init, and is in the files of all its ranks. The last is measured in
 * MPI_Finalize, and is in one of them. Between them the clocks are assumed to run evenly. */
struct oriel_trace_clock {
    uint64_t own_ns;
    uint64_t zero_ns;
    uint64_t error_ns;
};

struct oriel_trace_end {
    uint64_t end_ns; /* of the monotonic clock, at MPI_Finalize */
    uint64_t events; /* written events */
    uint64_t dropped;
};

#endif
