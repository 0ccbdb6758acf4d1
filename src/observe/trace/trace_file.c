/* Appends blocks, each whole: a block that the disk accepts only in part is cut off again, so the
 * file is always readable to its end. Its size is bounded by ORIEL_TRACE_LIMIT; below that there is
 * always room for the end, and for the lines of the call sites that have been described. */
#include "observe/trace/trace_file.h"

#include "base/crc32.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    END_BYTES = 2 * sizeof(struct oriel_trace_block) + sizeof(struct oriel_trace_clock) +
                sizeof(struct oriel_trace_end),
    SITE_BYTES = sizeof(struct oriel_trace_block) + sizeof(struct oriel_trace_site)
};

static struct {
    int fd;
    const char *path;
    uint64_t limit_bytes;
    uint64_t position; /* offset of the next block */
    /* offset of the last block of events, if it is the last in the file; else 0 */
    uint64_t last_events;
    uint64_t last_count; /* of its events */
    uint64_t written;    /* events in the file */
    uint64_t dropped;    /* for lack of room in the file */
    uint64_t sites;      /* described call sites */
    uint64_t sites_kept; /* for which there is room for another description */
    bool is_full;        /* there was no room for a description that events need */
    int refusal;         /* 0, or why the disk refused a write; nothing is written after it */
    bool warned;         /* of it */
} file = {.fd = -1};

bool oriel_trace_file_is_trace(const char *path)
{
    uint64_t magic = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, &magic, sizeof magic);
    close(fd);
    return got == 0 || (got == sizeof magic && magic == ORIEL_TRACE_MAGIC);
}

/* An existing trace is removed, not truncated: a program may be reading it. */
const char *oriel_trace_file_open(const char *path, uint64_t limit_bytes)
{
    static const int how = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
    file.path = path;
    file.limit_bytes = limit_bytes;
    file.fd = open(path, how, 0666);
    if (file.fd < 0 && errno == EEXIST) {
        if (!oriel_trace_file_is_trace(path))
            return "the file exists and is not a trace: it is not overwritten";
        if (unlink(path) == 0)
            file.fd = open(path, how, 0666);
    }
    return file.fd < 0 ? strerrordesc_np(errno) : NULL;
}

/* Writes all of it, or fails. */
static bool write_whole(struct iovec *parts, int count, uint64_t position)
{
    while (count > 0) {
        ssize_t got = pwritev(file.fd, parts, count, (off_t)position);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        position += (uint64_t)got;
        for (size_t left = (size_t)got; count > 0 && left >= parts->iov_len; count--, parts++)
            left -= parts->iov_len, got = (ssize_t)left;
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + got;
            parts->iov_len -= (size_t)got;
        }
    }
    return true;
}

static void disk_error(int error)
{
    (void)!ftruncate(file.fd, (off_t)file.position);
    if (file.refusal == 0)
        file.refusal = error;
}

void oriel_trace_file_warn(void)
{
    if (file.refusal == 0 || file.warned)
        return;
    const char *slash = strrchr(file.path, '/'); /* the folder is the same on all ranks */
    oriel_warn("%.*s: %s; the program continues, and later events are not traced [O22]",
               slash == NULL ? 0 : (int)(slash - file.path), file.path,
               strerrordesc_np(file.refusal));
    file.warned = true;
}

/* Appends a block, unless the file would grow above most_bytes. */
static bool block_append(enum oriel_block_type type, const struct iovec pieces[2], uint64_t dropped,
                         uint64_t most_bytes)
{
    size_t len_bytes = pieces[0].iov_len + pieces[1].iov_len;
    uint32_t checksum = oriel_crc32(0, pieces[0].iov_base, pieces[0].iov_len);
    if (len_bytes > ORIEL_BLOCK_BYTES_MOST ||
        file.position + sizeof(struct oriel_trace_block) + len_bytes > most_bytes)
        return false;
    struct oriel_trace_block block = {
        .magic = ORIEL_BLOCK_MAGIC,
        .type = type,
        .len_bytes = (uint32_t)len_bytes,
        .checksum = oriel_crc32(checksum, pieces[1].iov_base, pieces[1].iov_len),
        .dropped = dropped + file.dropped};
    struct iovec parts[3] = {{&block, sizeof block}, pieces[0], pieces[1]};
    if (!write_whole(parts, 3, file.position)) {
        disk_error(errno);
        return false;
    }
    file.position += sizeof block + len_bytes;
    file.last_events = 0;
    return true;
}

static struct iovec iovec_of(const void *bytes, size_t len_bytes)
{
    return (struct iovec){(void *)(uintptr_t)bytes, len_bytes};
}

bool oriel_trace_file_head(struct oriel_trace_header *header)
{
    header->checksum = oriel_crc32(0, header, offsetof(struct oriel_trace_header, checksum));
    struct iovec part = iovec_of(header, sizeof *header);
    if (!write_whole(&part, 1, 0)) {
        disk_error(errno);
        return false;
    }
    file.position = sizeof *header;
    return true;
}

bool oriel_trace_file_append(enum oriel_block_type type, const void *first, size_t first_bytes,
                             const void *second, size_t second_bytes, uint64_t dropped)
{
    const struct iovec pieces[2] = {iovec_of(first, first_bytes), iovec_of(second, second_bytes)};
    uint64_t kept_bytes = END_BYTES + file.sites_kept * SITE_BYTES;
    bool is_written = file.refusal == 0 && !file.is_full && file.limit_bytes > kept_bytes &&
                      block_append(type, pieces, dropped, file.limit_bytes - kept_bytes);
    file.is_full |= !is_written;
    return is_written;
}

void oriel_trace_file_site(const struct oriel_trace_site *site, bool is_again, uint64_t dropped)
{
    const struct iovec pieces[2] = {iovec_of(site, sizeof *site), iovec_of(NULL, 0)};
    uint64_t kept_bytes = END_BYTES + file.sites_kept * SITE_BYTES;
    if (file.refusal != 0)
        return;
    if (is_again && site->number <= file.sites) {
        file.sites_kept--;
        (void)block_append(ORIEL_BLOCK_SITE, pieces, dropped, file.limit_bytes - END_BYTES);
    } else if (2 * SITE_BYTES * (file.sites + 1) <= file.limit_bytes / 2 &&
               file.position + 2 * SITE_BYTES + kept_bytes <= file.limit_bytes &&
               block_append(ORIEL_BLOCK_SITE, pieces, dropped, file.limit_bytes - END_BYTES)) {
        file.sites++;
        file.sites_kept += !is_again;
    }
}

/* The number of these events that fit below the limit. */
static size_t events_that_fit(size_t count)
{
    uint64_t needed =
        file.position + sizeof(struct oriel_trace_block) + END_BYTES + file.sites_kept * SITE_BYTES;
    uint64_t most = file.limit_bytes > needed && !file.is_full
                        ? (file.limit_bytes - needed) / sizeof(struct oriel_trace_event)
                        : 0;
    return count < most ? count : (size_t)most;
}

void oriel_trace_file_events(const struct oriel_trace_event *events, size_t count, uint64_t dropped)
{
    uint64_t begin = file.position;
    size_t fitting = events_that_fit(count);
    file.dropped += count - fitting;
    if (fitting == 0)
        return;
    if (!oriel_trace_file_append(ORIEL_BLOCK_EVENTS, events, fitting * sizeof *events, NULL, 0,
                                 dropped)) {
        file.dropped += fitting;
        return;
    }
    file.written += fitting;
    file.last_events = begin;
    file.last_count = fitting;
}

static bool append_end(const struct oriel_trace_clock *clock, uint64_t end_ns, uint64_t dropped)
{
    struct oriel_trace_end end = {
        .end_ns = end_ns, .events = file.written, .dropped = dropped + file.dropped};
    const struct iovec clocks[2] = {iovec_of(clock, sizeof *clock), iovec_of(NULL, 0)};
    const struct iovec ends[2] = {iovec_of(&end, sizeof end), iovec_of(NULL, 0)};
    return (clock == NULL || block_append(ORIEL_BLOCK_CLOCK, clocks, dropped, UINT64_MAX)) &&
           block_append(ORIEL_BLOCK_END, ends, dropped, UINT64_MAX);
}

void oriel_trace_file_end(const struct oriel_trace_clock *clock, uint64_t end_ns, uint64_t dropped)
{
    uint64_t last_events = file.last_events;
    if (!append_end(clock, end_ns, dropped) && last_events != 0) {
        file.position = last_events;
        file.written -= file.last_count;
        file.dropped += file.last_count;
        (void)append_end(clock, end_ns, dropped);
        (void)!ftruncate(file.fd, (off_t)file.position);
    }
    oriel_trace_file_close();
}

void oriel_trace_file_close(void)
{
    if (file.fd < 0)
        return;
    if (file.position == 0)
        (void)unlink(file.path);
    close(file.fd);
    file.fd = -1;
}
