/* Reads /proc/self/maps, or smaps whose entries begin with the same line.  A mapping is complete when the next one begins.
 * candidate.c and promote.c call, with every thread running. */
#include "memory/maps.h"

#include <stdio.h>
#include <string.h>

static bool read_header(const char *line, struct oriel_mapping *out)
{
    unsigned long start, end, file_offset, inode;
    int name_at = 0;
    *out = (struct oriel_mapping){.start = 0};
    if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, out->access, &file_offset, &out->device_major,
               &out->device_minor, &inode, &name_at) < 7)
        return false;
    out->start = start;
    out->end = end;
    out->file_offset = file_offset;
    out->inode = inode;
    snprintf(out->name, sizeof out->name, "%.*s", (int)strcspn(line + name_at, "\n"), line + name_at);
    return true;
}

static void read_detail(const char *line, struct oriel_mapping *mapping)
{
    unsigned long kib;
    if (sscanf(line, "AnonHugePages: %lu kB", &kib) == 1)
        mapping->huge_bytes = kib * 1024;
    else if (sscanf(line, "LazyFree: %lu kB", &kib) == 1)
        mapping->lazy_bytes = kib * 1024;
    else if (strncmp(line, "VmFlags:", 8) == 0)
        snprintf(mapping->flags, sizeof mapping->flags, "%.*s", (int)strcspn(line + 8, "\n"), line + 8);
}

bool oriel_maps_visit(uintptr_t start, uintptr_t end, bool details, bool (*visit)(const struct oriel_mapping *, void *),
                      void *context)
{
    char line[4400]; /* a path may have 4,096 */
    struct oriel_mapping mapping = {.start = 0};
    struct oriel_mapping next;
    FILE *file = fopen(details ? "/proc/self/smaps" : "/proc/self/maps", "re");
    if (file == NULL)
        return false;
    bool wanted = true;
    while (wanted && mapping.start < end && fgets(line, sizeof line, file) != NULL) {
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
    fclose(file);
    return true;
}
