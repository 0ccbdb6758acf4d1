/* Queries /proc/self/maps for single mappings, or parses the text of maps or smaps, whose entries
 * start with the same line. In smaps a mapping is complete when the next one starts. Nothing here
 * allocates, because allocators call it from their own calls (discard.c). */
#include "memory/proc_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool oriel_proc_maps_by_text;

/* The kernel's struct procmap_query, which older headers lack. */
struct query {
    uint64_t size_bytes;
    uint64_t flags;
    uint64_t address;
    uint64_t start;
    uint64_t end;
    uint64_t access;
    uint64_t page_bytes;
    uint64_t file_offset;
    uint64_t inode;
    uint32_t device_major;
    uint32_t device_minor;
    uint32_t name_bytes;
    uint32_t build_id_bytes;
    uint64_t name_address;
    uint64_t build_id_address;
};
_Static_assert(sizeof(struct query) == 104, "owned by the kernel");

#define QUERY _IOWR('f', 17, struct query)
enum { QUERY_READ = 1, QUERY_WRITE = 2, QUERY_EXECUTE = 4, QUERY_SHARED = 8, QUERY_OR_NEXT = 16 };

static bool read_header(const char *line, struct oriel_mapping *out)
{
    unsigned long start, end, file_offset, inode;
    int name_at = 0;
    *out = (struct oriel_mapping){.start = 0};
    if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, out->access, &file_offset,
               &out->device_major, &out->device_minor, &inode, &name_at) < 7)
        return false;
    out->start = start;
    out->end = end;
    out->file_offset = file_offset;
    out->inode = inode;
    snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(line + name_at, "\n"),
             line + name_at);
    return true;
}

static void read_detail(const char *line, struct oriel_mapping *mapping)
{
    unsigned long kib;
    if (sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
        mapping->huge_bytes = kib * 1024;
    else if (strncmp(line, "VmFlags:", 8) == 0)
        snprintf(mapping->flags, sizeof mapping->flags, "%.*s", (int)strcspn(line + 8, "\n"),
                 line + 8);
}

/* The kernel's text, line by line. */
struct text {
    int fd;
    size_t at;
    size_t end;
    char bytes[4096];
};

static bool text_refill(struct text *text)
{
    ssize_t got = read(text->fd, text->bytes, sizeof text->bytes);
    text->at = 0;
    text->end = got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* Reads the next line with its newline, truncated to room. Returns false at the end of the text. */
static bool text_read_line(struct text *text, char *line, size_t room)
{
    size_t len = 0;
    char last = '\0';
    while (last != '\n' && (text->at < text->end || text_refill(text))) {
        last = text->bytes[text->at++];
        if (len < room - 1)
            line[len++] = last;
    }
    line[len] = '\0';
    return len > 0;
}

/* Finds the mapping at address or the next one after it. Returns false with errno; ENOENT means
 * after the last mapping. */
static bool mapping_query(int fd, uintptr_t address, struct oriel_mapping *out)
{
    char name[4400]; /* a path may have 4,096 bytes */
    struct query query = {.size_bytes = sizeof query, .flags = QUERY_OR_NEXT, .address = address};
    query.name_bytes = sizeof name;
    query.name_address = (uintptr_t)name;
    if (ioctl(fd, QUERY, &query) != 0)
        return false;
    *out = (struct oriel_mapping){.start = query.start,
                                  .end = query.end,
                                  .file_offset = query.file_offset,
                                  .device_major = query.device_major,
                                  .device_minor = query.device_minor,
                                  .inode = query.inode,
                                  .page_bytes = query.page_bytes};
    out->access[0] = query.access & QUERY_READ ? 'r' : '-';
    out->access[1] = query.access & QUERY_WRITE ? 'w' : '-';
    out->access[2] = query.access & QUERY_EXECUTE ? 'x' : '-';
    out->access[3] = query.access & QUERY_SHARED ? 's' : 'p';
    if (query.name_bytes > 0)
        /* cppcheck-suppress uninitvar; the kernel has written it */
        snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, name);
    return true;
}

/* Returns false, before any visit, when this kernel does not support queries. */
static bool visit_by_query(uintptr_t start, uintptr_t end,
                           bool (*visit)(const struct oriel_mapping *, void *), void *context)
{
    struct oriel_mapping mapping;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is_known = mapping_query(fd, start, &mapping);
    bool can_ask = is_known || errno == ENOENT;
    while (is_known && mapping.start < end && visit(&mapping, context))
        is_known = mapping.end < end && mapping_query(fd, mapping.end, &mapping);
    close(fd);
    return can_ask;
}

bool oriel_proc_maps_visit(uintptr_t start, uintptr_t end, bool details,
                           bool (*visit)(const struct oriel_mapping *, void *), void *context)
{
    char line[4400]; /* a path may have 4,096 bytes */
    struct oriel_mapping mapping = {.start = 0};
    struct oriel_mapping next;
    if (!details && !oriel_proc_maps_by_text && visit_by_query(start, end, visit, context))
        return true;
    struct text text = {
        .fd = open(details ? "/proc/self/smaps" : "/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    if (text.fd < 0)
        return false;
    bool wanted = true;
    while (wanted && mapping.start < end && text_read_line(&text, line, sizeof line)) {
        if (!read_header(line, &next)) {
            read_detail(line, &mapping);
            continue;
        }
        if (mapping.end > start)
            wanted = visit(&mapping, context);
        mapping = next;
    }
    if (wanted && mapping.end > start && mapping.start < end)
        visit(&mapping, context);
    close(text.fd);
    return true;
}
