/* What the kernel says about this process's mappings (/proc/self/maps and smaps).  What was read may be old by the time it is
 * judged: callers ask about memory that the program keeps in place meanwhile.  Promotion alone calls. */
#ifndef ORIEL_MEMORY_PROC_MAPS_H
#define ORIEL_MEMORY_PROC_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct oriel_mapping {
    uintptr_t start;
    uintptr_t end;
    char access[5]; /* as in "rw-p" */
    uint64_t file_offset;
    unsigned device_major;
    unsigned device_minor;
    uint64_t inode;      /* 0: no file */
    uint64_t page_bytes; /* of hugetlbfs's pages more than usual; 0 when that was not told */
    char name[128];
    uint64_t huge_bytes; /* in transparent huge pages; with details only */
    char flags[128];     /* two letters each; with details only */
};

/* Calls visit for every mapping that has a byte in [start, end), in order of address, until it returns false.  Details cost a
 * walk over all page tables up to end: milliseconds for each GiB.  Without them the kernel is asked for these mappings alone
 * (Linux 6.11), or its list is read as far as end.  False when the kernel's file cannot be read. */
bool oriel_maps_visit(uintptr_t start, uintptr_t end, bool details,
                      bool (*visit)(const struct oriel_mapping *, void *), void *context);

/* For tests: as on a kernel that cannot be asked for single mappings. */
extern bool oriel_maps_by_text;

#endif
