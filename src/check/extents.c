/* Lists of extents from layouts: what a cursor yields at equal distances is one extent, a pair with padding two.  Knows no
 * accesses. */
#include "check/extents.h"

#include <stdlib.h>
#include <string.h>

static bool append(struct oriel_extents *extents, const struct oriel_extent *extent)
{
    if (extents->count == extents->room) {
        size_t room = 4 * extents->room;
        bool own = extents->list == extents->own;
        struct oriel_extent *list = realloc(own ? NULL : extents->list, room * sizeof *list);
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

/* One run of padded pairs: their values, and their indices. */
static bool append_pairs(struct oriel_extents *extents, enum oriel_kind which, int64_t offset, uint64_t len_bytes)
{
    const struct oriel_kind_properties *kind = &oriel_kinds[which];
    struct oriel_extent values = {offset, kind->value_bytes, len_bytes / kind->extent_bytes, kind->extent_bytes};
    struct oriel_extent indices = {offset + kind->index_offset, kind->index_bytes, values.count, kind->extent_bytes};
    extents->has_pairs = true;
    return append(extents, &values) && append(extents, &indices);
}

static bool append_batch(struct oriel_extents *extents, const struct oriel_batch *batch, int64_t offset)
{
    if (!oriel_kinds[batch->kind].padded) {
        struct oriel_extent runs = {offset + batch->start_bytes, batch->run_bytes, batch->further + 1, batch->stride_bytes};
        return append(extents, &runs);
    }
    for (uint64_t run = 0; run <= batch->further; run++)
        if (!append_pairs(extents, batch->kind, offset + batch->start_bytes + (int64_t)run * batch->stride_bytes,
                          batch->run_bytes))
            return false;
    return true;
}

enum oriel_status oriel_extents_open(struct oriel_extents *extents, const struct oriel_type *type, uint64_t count, int64_t offset)
{
    extents->count = 0;
    extents->room = ORIEL_EXTENTS_OWN;
    extents->has_pairs = false;
    extents->list = extents->own;
    if (count == 0 || type->size_bytes == 0)
        return ORIEL_OK;
    if (count <= (uint64_t)INT64_MAX && type->plain_bytes != INT64_MAX) {
        extents->own[0] = (struct oriel_extent){offset, count * type->size_bytes, 1, 0};
        extents->count = 1;
        return ORIEL_OK;
    }
    struct oriel_cursor cursor;
    if (!oriel_cursor_open(&cursor, type->layout, count, type->extent_bytes))
        return oriel_fail(ORIEL_E_NO_MEM, "no memory to walk a datatype");
    bool room = true;
    while (room && oriel_cursor_fill(&cursor)) {
        room = append_batch(extents, &cursor.batch, offset);
        oriel_batch_use_runs(&cursor.batch, cursor.batch.further + 1);
    }
    oriel_cursor_close(&cursor);
    return room ? ORIEL_OK : oriel_fail(ORIEL_E_NO_MEM, "no memory for the %zu parts of a datatype", extents->count);
}

enum oriel_status oriel_extents_open_of(struct oriel_extents *extents, MPI_Datatype datatype, uint64_t count, int64_t offset)
{
    const struct oriel_type *type;
    extents->list = extents->own;
    extents->count = 0;
    enum oriel_status status = oriel_type_find(datatype, &type);
    return status != ORIEL_OK ? status : oriel_extents_open(extents, type, count, offset);
}

void oriel_extents_shorten(struct oriel_extents *extents, uint64_t len_bytes)
{
    size_t i = 0;
    while (i < extents->count && len_bytes / extents->list[i].len_bytes >= extents->list[i].count) {
        len_bytes -= extents->list[i].count * extents->list[i].len_bytes;
        i++;
    }
    if (extents->has_pairs || i == extents->count)
        return;
    struct oriel_extent *runs = &extents->list[i];
    uint64_t whole = len_bytes / runs->len_bytes;
    struct oriel_extent rest = {runs->offset + (int64_t)whole * runs->stride_bytes, len_bytes % runs->len_bytes, 1, 0};
    runs->count = whole;
    extents->count = i + (whole > 0);
    if (rest.len_bytes > 0)
        append(extents, &rest); /* where memory is exhausted nobody is blamed for it */
}

void oriel_extents_close(struct oriel_extents *extents)
{
    if (extents->list != extents->own)
        free(extents->list);
}
