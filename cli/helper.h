/* The helper process, `oriel check --helper WHAT`, which the library and the checker start
 * (src/base/helper_process.h). It reads a request from standard input and answers on standard
 * output. It then exits, or serves further requests over a listening socket. */
#ifndef ORIEL_CLI_HELPER_H
#define ORIEL_CLI_HELPER_H

#include <stddef.h>

#include "check/report/finding_record.h"

int oriel_helper_serve(const char *what);

/* Fills in file, line and function of each code address from debug information. */
void oriel_dwarf_lookup(struct oriel_code_address *codes, size_t count);

/* The answers to requests about one finding and about all of a job (base/helper_process.h), to be
 * freed; NULL if the request is invalid. */
void *oriel_findings_answer_one(const void *request, size_t len_bytes, size_t *answer_bytes);
void *oriel_findings_answer_all(const void *request, size_t len_bytes, size_t *answer_bytes);

/* The line with the count, if the launcher will write after it, because the job fails by it; else
 * NULL. To be freed. The answer is one of oriel_findings_answer_all. */
char *oriel_findings_count_after(const void *request, const void *answer, size_t answer_bytes);

#endif
