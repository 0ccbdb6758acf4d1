/* A transport of its own finds the path of each piece. It divides pieces at the ends of regions. */
#include "rma/mixed_regions.h"

#include "rma/copy_remote.h"

struct mixed {
    struct oriel_remote remote; /* first member: what the transport's functions get */
    const struct oriel_window *window;
    int32_t target;
    uint64_t offset_bytes; /* of the remote address */
};

static enum oriel_status piece_move(const struct mixed *mixed, const struct oriel_piece *piece,
                                    bool to_target)
{
    const uint64_t offset_bytes = mixed->offset_bytes + (uint64_t)piece->offset_bytes;
    enum oriel_status status = ORIEL_OK;
    uint64_t now;
    for (uint64_t done = 0; done < piece->len_bytes && status == ORIEL_OK; done += now) {
        const uint64_t at = offset_bytes + done;
        const uint64_t alike = oriel_path_range_at(mixed->window, mixed->target, at).end - at;
        now = alike < piece->len_bytes - done ? alike : piece->len_bytes - done;
        const struct oriel_path path =
            oriel_path_find(mixed->window, mixed->target, at, 0, (int64_t)now);
        char *here = oriel_at(piece->here, (int64_t)done);
        status = to_target ? oriel_path_write(&path, here, now) : oriel_path_read(&path, here, now);
    }
    return status;
}

static enum oriel_status pieces_move(const struct oriel_remote *remote,
                                     const struct oriel_piece *pieces, unsigned count,
                                     bool to_target)
{
    enum oriel_status status = ORIEL_OK;
    for (unsigned i = 0; i < count && status == ORIEL_OK; i++)
        status = piece_move((const struct mixed *)(const void *)remote, &pieces[i], to_target);
    return status;
}

static enum oriel_status write_pieces_mixed(const struct oriel_remote *to,
                                            const struct oriel_piece *pieces, unsigned count)
{
    return pieces_move(to, pieces, count, true);
}

static enum oriel_status read_pieces_mixed(const struct oriel_remote *from,
                                           const struct oriel_piece *pieces, unsigned count)
{
    return pieces_move(from, pieces, count, false);
}

/* oriel_copy_by_pieces calls no other function. */
static const struct oriel_transport transport_mixed = {
    .name = "by region",
    .write_pieces = write_pieces_mixed,
    .read_pieces = read_pieces_mixed,
};

enum oriel_status oriel_mixed_transfer(const struct oriel_window *window,
                                       const struct oriel_span *target,
                                       const struct oriel_items *at_target, char *here,
                                       const struct oriel_items *at_origin, bool to_target)
{
    const struct mixed mixed = {
        .window = window, .target = target->rank, .offset_bytes = target->offset_bytes};
    return oriel_copy_by_pieces(&transport_mixed, &mixed.remote, at_target, here, at_origin,
                                to_target);
}

bool oriel_regions_are_crossed(const struct oriel_window *window, const struct oriel_span *target)
{
    int64_t low_bytes, high_bytes;
    const struct oriel_side *side = &target->side;
    oriel_layout_bounds(side->type->layout, side->count, side->type->extent_bytes, &low_bytes,
                        &high_bytes);
    return oriel_path_range_at(window, target->rank, target->offset_bytes + (uint64_t)low_bytes)
               .end < target->offset_bytes + (uint64_t)high_bytes;
}
