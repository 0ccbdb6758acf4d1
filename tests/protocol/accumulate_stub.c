/* Replaces, for rma/deferred.c, the part of rma/accumulate.c that updates one run of elements
 * reached by copies. Only the files of rma/ under test are linked. */
#include "make_window.h"
#include "rma/deferred.h"
#include "rma/path_select.h"
#include "sync/accumulate_mutex.h"

enum oriel_status oriel_accumulate_run(struct oriel_window *window, int32_t rank,
                                       uint64_t offset_bytes, enum oriel_kind kind,
                                       enum oriel_operator operator, const char * origin,
                                       uint64_t count)
{
    char elements[TEAM_MEMORY_BYTES] __attribute__((aligned(ORIEL_CACHE_LINE)));
    const uint64_t len_bytes = count * oriel_kinds[kind].extent_bytes;
    team_expect(len_bytes <= sizeof elements);
    const struct oriel_path path =
        oriel_path_find(window, rank, offset_bytes, 0, (int64_t)len_bytes);
    team_expect(oriel_accumulate_mutex_lock(window, rank) == ORIEL_OK);
    enum oriel_status status = oriel_path_read(&path, elements, len_bytes);
    oriel_delay();
    if (status == ORIEL_OK) {
        oriel_kinds[kind].plain[operator](elements, origin, NULL, count);
        status = oriel_path_write(&path, elements, len_bytes);
    }
    oriel_accumulate_mutex_unlock(window, rank);
    return oriel_path_status(status, window, rank);
}
