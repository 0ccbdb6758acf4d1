/* This process's mappings as the kernel reports them (/proc/self/maps and smaps). The result may be
 * out of date when it is used. Callers therefore ask only about memory that the program keeps
 * mapped meanwhile. */
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
    uint64_t page_bytes; /* larger than usual for hugetlbfs; 0 when unknown */
    char name[128];
    uint64_t huge_bytes; /* bytes in transparent huge pages; only with details */
    char flags[128];     /* two letters each; only with details */
};

/* Calls visit for every mapping that contains a byte of [start, end), in order of address, until it
 * returns false. Details cost a walk over all page tables up to end: milliseconds per GiB. Without
 * them the kernel is asked only for these mappings (Linux 6.11), or its list is read up to end.
 * Returns false when the kernel's file cannot be read. */
bool oriel_proc_maps_visit(uintptr_t start, uintptr_t end, bool details,
                           bool (*visit)(const struct oriel_mapping *, void *), void *context);

/* For tests: emulates a kernel that does not support queries for single mappings. */
extern bool oriel_proc_maps_by_text;

#endif
