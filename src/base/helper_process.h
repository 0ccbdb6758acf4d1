/* What the library and the checker leave to the `oriel` command in a process of its own, so that no library for it comes into the
 * user's process: debug information, JSON, tables.  One request, one answer, and the process ends, unless its asker keeps it for
 * others; requests and answers have a size, so that neither side waits for the other's end.  helper_process.c and cli/helper.c speak it;
 * findings and statistics ask. */
#ifndef ORIEL_BASE_HELPER_PROCESS_H
#define ORIEL_BASE_HELPER_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `oriel check --helper places` and so on, a socket at standard input and output; of a kept one a socket that listens, too. */
#define ORIEL_HELPER_OPTION "--helper"
#define ORIEL_HELPER_PLACES "places" /* struct oriel_code_address each way */
#define ORIEL_HELPER_STATISTICS                                                                    \
    "statistics" /* struct oriel_statistics_head and what follows (observe/stats/merged_records.h); a text */
#define ORIEL_HELPER_JSON                                                                          \
    "json" /* struct oriel_helper_json, findings, counts; a text: "" or why it could not be written */

enum {
    ORIEL_HELPER_MAGIC = 0x4f724831,
    ORIEL_HELPER_LEN_MAX = 1 << 28,
    ORIEL_HELPER_LISTENS = 3 /* its descriptor there */
};

/* Comes before each request and each answer. */
struct oriel_helper_head {
    uint32_t magic; /* also changes when the format does */
    uint32_t len_bytes;
};

struct oriel_helper_json {
    char file[4096];
    char program[4096];
    char version[32];
    char host[16];
    uint32_t ranks;
    uint32_t findings; /* struct oriel_record_finding that follow */
    uint32_t counts;   /* struct oriel_record_count that follow those */
    uint32_t local_watched;
    uint64_t lost;     /* findings that there was no room for */
    uint32_t complete; /* written in MPI_Finalize, by all ranks */
    uint32_t reserved;
};

/* Asks; *answer is from malloc.  False when there is no command, no process, or no answer in time: the caller does without. */
bool oriel_helper_ask(const char *what, const void *request, size_t len_bytes, void **answer,
                      size_t *answer_bytes);

/* The same of one that goes on for all who share the word, this process or others of the machine: it starts as 0, and is the name
 * under which the helper is found.  One that has ended is replaced by the next who asks. */
bool oriel_helper_ask_kept(_Atomic uint64_t *kept, const char *what, const void *request,
                           size_t len_bytes, void **answer, size_t *answer_bytes);

#endif
