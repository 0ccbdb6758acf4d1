/* The transport for device memory: the GPU's driver copies between two addresses of this process.
 * One of them is in device memory; the other may be anywhere. */
#include "gpu/gpu.h"
#include "transport/transport.h"

enum { PIECES = 256 };

static enum oriel_status write_gpu(const struct oriel_remote *to, const void *from,
                                   uint64_t len_bytes)
{
    const struct oriel_gpu_piece piece = {to->direct, from, len_bytes};
    return oriel_gpu_copy(&piece, 1, to->begun);
}

static enum oriel_status read_gpu(const struct oriel_remote *from, void *to, uint64_t len_bytes)
{
    const struct oriel_gpu_piece piece = {to, from->direct, len_bytes};
    return oriel_gpu_copy(&piece, 1, from->begun);
}

static enum oriel_status copy_pieces(const struct oriel_remote *remote,
                                     const struct oriel_piece *pieces, unsigned count,
                                     bool to_remote)
{
    struct oriel_gpu_piece copies[PIECES];
    enum oriel_status status = ORIEL_OK;
    for (unsigned done = 0; done < count && status == ORIEL_OK;) {
        const unsigned now = count - done < PIECES ? count - done : PIECES;
        for (unsigned i = 0; i < now; i++) {
            const struct oriel_piece *piece = &pieces[done + i];
            char *there = oriel_at(remote->direct, piece->offset_bytes);
            copies[i] = (struct oriel_gpu_piece){to_remote ? there : piece->here,
                                                 to_remote ? piece->here : there, piece->len_bytes};
        }
        status = oriel_gpu_copy(copies, now, remote->begun);
        done += now;
    }
    return status;
}

static enum oriel_status write_pieces_gpu(const struct oriel_remote *to,
                                          const struct oriel_piece *pieces, unsigned count)
{
    return copy_pieces(to, pieces, count, true);
}

static enum oriel_status read_pieces_gpu(const struct oriel_remote *from,
                                         const struct oriel_piece *pieces, unsigned count)
{
    return copy_pieces(from, pieces, count, false);
}

const struct oriel_transport oriel_transport_gpu = {
    .name = "the GPU's driver",
    .write = write_gpu,
    .read = read_gpu,
    .write_pieces = write_pieces_gpu,
    .read_pieces = read_pieces_gpu,
};
