/* Creates the record when it is first needed, since few programs need it before their first
 * window. */
#include "observe/stats/process_record.h"

#include "memory/file.h"

#include <pthread.h>
#include <stddef.h>

static uint64_t record_offset;

static void record_create_once(void)
{
    uint64_t offset;
    if (oriel_file_start() == ORIEL_OK &&
        oriel_file_alloc_sparse(sizeof(struct oriel_process_record), &offset) == ORIEL_OK)
        record_offset = offset;
}

uint64_t oriel_process_record_offset(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, record_create_once);
    return record_offset;
}

struct oriel_process_record *oriel_process_record(void)
{
    uint64_t offset = oriel_process_record_offset();
    return offset == 0 ? NULL : (struct oriel_process_record *)(oriel_file_base() + offset);
}
