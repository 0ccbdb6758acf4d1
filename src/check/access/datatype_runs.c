/* Lists of extents from layouts. Runs that a cursor yields at equal distances become one extent;
 * padded pairs become two. */
#include "check/access/datatype_runs.h"

#include <stdlib.h>
#include <string.h>

static bool extents_append(struct oriel_extents *extents, const struct oriel_access_extent *extent)
{
    if (extents->count == extents->room) {
        size_t room = 4 * extents->room;
        bool own = extents->list == extents->own;
        struct oriel_access_extent *list = realloc(own ? NULL : extents->list, room * sizeof *list);
        if (list == NULL)
            return false;
        if (own)
            memcpy(list, extents->own, sizeof extents->own);
        extents->list = list;
        extents->room = room;
    }
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): a list that has been opened has room */
    extents->list[extents->count++] = *extent;
    return true;
}

/* Appends the first bytes that move of one run of padded pairs: values, indices, and the part of
 * the last pair. */
static bool extents_append_pairs(struct oriel_extents *extents, enum oriel_kind which,
                                 int64_t offset, uint64_t len_bytes)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[which];
    uint64_t count = len_bytes / oriel_kind_moving_bytes(which);
    uint64_t rest_bytes = len_bytes % oriel_kind_moving_bytes(which);
    uint64_t value_bytes = rest_bytes < kind->value_bytes ? rest_bytes : kind->value_bytes;
    int64_t last = offset + (int64_t)(count * kind->extent_bytes);
    const struct oriel_access_extent parts[] = {
        {offset, kind->value_bytes, count, kind->extent_bytes},
        {offset + kind->index_offset, kind->index_bytes, count, kind->extent_bytes},
        {last, value_bytes, value_bytes > 0, 0},
        {last + kind->index_offset, rest_bytes - value_bytes, rest_bytes > value_bytes, 0}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i].count > 0 && !extents_append(extents, &parts[i]))
            return false;
    return true;
}

/* Appends the bytes of the batch that move, at most *most_bytes, and subtracts their number from
 * it. */
static bool extents_append_batch(struct oriel_extents *extents, const struct oriel_batch *batch,
                                 int64_t offset, uint64_t *most_bytes)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[batch->kind];
    uint64_t each_bytes =
        kind->padded ? batch->run_bytes / kind->extent_bytes * oriel_kind_moving_bytes(batch->kind)
                     : batch->run_bytes;
    uint64_t runs =
        *most_bytes / each_bytes <= batch->further ? *most_bytes / each_bytes : batch->further + 1;
    uint64_t rest_bytes = runs <= batch->further ? *most_bytes - runs * each_bytes : 0;
    *most_bytes -= runs * each_bytes + rest_bytes;
    offset += batch->start_bytes;
    if (!kind->padded) {
        struct oriel_access_extent whole = {offset, each_bytes, runs, batch->stride_bytes};
        struct oriel_access_extent begun = {offset + (int64_t)runs * batch->stride_bytes,
                                            rest_bytes, 1, 0};
        return (runs == 0 || extents_append(extents, &whole)) &&
               (rest_bytes == 0 || extents_append(extents, &begun));
    }
    bool room = true;
    for (uint64_t run = 0; run <= runs && room; run++)
        room =
            extents_append_pairs(extents, batch->kind, offset + (int64_t)run * batch->stride_bytes,
                                 run < runs ? each_bytes : rest_bytes);
    return room;
}

enum oriel_status oriel_extents_open(struct oriel_extents *extents, const struct oriel_type *type,
                                     uint64_t count, int64_t offset, uint64_t most_bytes)
{
    extents->count = 0;
    extents->room = ORIEL_EXTENTS_OWN;
    extents->list = extents->own;
    if (count == 0 || type->size_bytes == 0 || most_bytes == 0)
        return ORIEL_OK;
    if (count <= (uint64_t)INT64_MAX && type->plain_bytes != INT64_MAX) {
        uint64_t len_bytes = count * type->size_bytes;
        extents->own[0] = (struct oriel_access_extent){
            offset, len_bytes < most_bytes ? len_bytes : most_bytes, 1, 0};
        extents->count = 1;
        return ORIEL_OK;
    }
    struct oriel_cursor cursor;
    if (!oriel_cursor_open(&cursor, type->layout, count, type->extent_bytes))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    bool room = true;
    while (room && most_bytes > 0 && oriel_cursor_fill(&cursor)) {
        room = extents_append_batch(extents, &cursor.batch, offset, &most_bytes);
        oriel_batch_use_runs(&cursor.batch, cursor.batch.further + 1);
    }
    oriel_cursor_close(&cursor);
    return room ? ORIEL_OK
                : oriel_fail(ORIEL_E_NO_MEM, "no memory for the %zu parts of a datatype",
                             extents->count);
}

enum oriel_status oriel_extents_open_of(struct oriel_extents *extents, MPI_Datatype datatype,
                                        uint64_t count, int64_t offset)
{
    const struct oriel_type *type;
    extents->list = extents->own;
    extents->count = 0;
    enum oriel_status status = oriel_type_find(datatype, &type);
    return status != ORIEL_OK ? status
                              : oriel_extents_open(extents, type, count, offset, UINT64_MAX);
}

void oriel_extents_close(struct oriel_extents *extents)
{
    if (extents->list != extents->own)
        free(extents->list);
}
