/* The transport for memory that both processes have mapped. Aligned transfers of 1, 2, 4 and 8
 * bytes are one load or store, so a concurrent reader sees all of the datum or none. Everything
 * else is memcpy. */
#include "transport/shared/copy.h"
#include "transport/transport.h"

static enum oriel_status write_shared(const struct oriel_remote *to, const void *from,
                                      uint64_t len_bytes)
{
    oriel_copy_premap(to->direct, len_bytes);
    oriel_copy(to->direct, from, len_bytes);
    return ORIEL_OK;
}

static enum oriel_status read_shared(const struct oriel_remote *from, void *to, uint64_t len_bytes)
{
    oriel_copy(to, from->direct, len_bytes);
    return ORIEL_OK;
}

static enum oriel_status write_pieces_shared(const struct oriel_remote *to,
                                             const struct oriel_piece *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        oriel_copy(oriel_at(to->direct, pieces[i].offset_bytes), pieces[i].here,
                   pieces[i].len_bytes);
    return ORIEL_OK;
}

static enum oriel_status read_pieces_shared(const struct oriel_remote *from,
                                            const struct oriel_piece *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        oriel_copy(pieces[i].here, oriel_at(from->direct, pieces[i].offset_bytes),
                   pieces[i].len_bytes);
    return ORIEL_OK;
}

const struct oriel_transport oriel_transport_shared = {
    .name = "shared memory",
    .write = write_shared,
    .read = read_shared,
    .write_pieces = write_pieces_shared,
    .read_pieces = read_pieces_shared,
};
