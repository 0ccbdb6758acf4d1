/* Runs work that needs large libraries (debug information, JSON, tables) in the `oriel` command as
 * a separate process, so the user's process does not load them. One request gets one answer, and
 * then the process exits unless it is persistent. Requests and answers carry their size, so neither
 * side waits for the other to close. helper_process.c and cli/helper.c implement the protocol. */
#ifndef ORIEL_BASE_HELPER_PROCESS_H
#define ORIEL_BASE_HELPER_PROCESS_H

#include "base/host_version.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The command line is `oriel check --helper places` and so on, with a socket as standard input and
 * output. A persistent helper also inherits a listening socket. */
#define ORIEL_HELPER_OPTION "--helper"
/* request and answer: struct oriel_code_address */
#define ORIEL_HELPER_PLACES "places"
/* request: struct oriel_statistics_head and the records after it (observe/stats/merged_records.h);
 * answer: a text */
#define ORIEL_HELPER_STATISTICS "statistics"
/* request: struct oriel_helper_check, one struct oriel_record_finding, the struct
 * oriel_code_address of its stack; answer: the finding with lines and standing, then its text,
 * which is empty if it does not count */
#define ORIEL_HELPER_FINDING "finding"
/* request: struct oriel_helper_check, findings, counts; answer: struct oriel_helper_summary, and
 * the text of the summary. Writes the files. */
#define ORIEL_HELPER_FINDINGS "findings"

enum {
    ORIEL_HELPER_MAGIC = 0x4f724832,
    ORIEL_HELPER_LEN_MAX = 1 << 28,
    ORIEL_HELPER_LISTENS = 3 /* descriptor of the listening socket in the helper */
};

/* Precedes each request and each answer. */
struct oriel_helper_head {
    uint32_t magic; /* changes when the format changes */
    uint32_t len_bytes;
};

/* A checked job, for the forms of its findings. Files: their paths; "" for none. */
struct oriel_helper_check {
    char json[4096], sarif[4096], junit[4096]; /* written */
    char suppress[4096], baseline[4096];       /* read */
    char program[4096];
    char version[32];
    char host[16];
    char host_version[ORIEL_HOST_VERSION]; /* "MPICH 5.0.2" */
    uint32_t ranks;
    uint32_t findings; /* number of struct oriel_record_finding that follow */
    uint32_t counts;   /* number of struct oriel_record_count after those */
    uint32_t local_watched;
    uint64_t lost;     /* findings that were dropped because the table was full */
    uint32_t complete; /* written in MPI_Finalize, by all ranks */
    uint32_t color;    /* 1: texts have colours */
    uint32_t width;    /* columns of texts */
    uint32_t only;     /* 1: --only or --ignore leave out rules */
    uint32_t fails;    /* 1: findings that count change the job's status */
    uint32_t reserved;
};

struct oriel_helper_summary {
    uint32_t counting; /* findings that count */
    uint32_t reserved;
};

/* Sends a request; *answer is from malloc. Returns false if there is no command, no process, or no
 * answer in time. The caller then continues without an answer. */
bool oriel_helper_request(const char *service, const void *request, size_t len_bytes, void **answer,
                          size_t *answer_bytes);

/* The same with a persistent helper for all processes of the node that share the word. The word is
 * the helper's name, initially 0. If the helper has exited, the next request starts another. */
bool oriel_helper_request_persistent(_Atomic uint64_t *shared_name, const char *service,
                                     const void *request, size_t len_bytes, void **answer,
                                     size_t *answer_bytes);

#endif
