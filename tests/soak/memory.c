/* Memory of the program for windows: from the heap, the main stack, static variables, MPI_Alloc_mem
 * and mmap. The stack and the static variables have slots of one size; if none is free or large
 * enough, the heap serves. One thread uses this file. */
#include "soak.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 8, SLOT_BYTES = 32 << 10 };

static unsigned char variables[SLOTS][SLOT_BYTES];
static struct {
    unsigned char *stack;
    bool taken[2][SLOTS]; /* of the stack, of the variables */
} slots;

void memory_start(unsigned char *stack, size_t stack_bytes)
{
    slots.stack = stack;
    if (stack_bytes < sizeof variables)
        fail("%zu bytes of stack are too few", stack_bytes);
}

static unsigned char *slot_allocate(bool variable, size_t len_bytes)
{
    for (int i = 0; i < SLOTS && len_bytes <= SLOT_BYTES; i++) {
        if (slots.taken[variable][i])
            continue;
        slots.taken[variable][i] = true;
        return variable ? variables[i] : slots.stack + (size_t)i * SLOT_BYTES;
    }
    return NULL;
}

static void slot_free(bool variable, const unsigned char *slot)
{
    slots.taken[variable][(size_t)(slot - (variable ? variables[0] : slots.stack)) / SLOT_BYTES] =
        false;
}

/* Often at an offset inside the allocation. */
void memory_allocate(struct memory *memory, size_t len_bytes, struct random *random)
{
    size_t shift = one_in(random, 2) ? 0 : (size_t)below(random, 9) * (one_in(random, 4) ? 1 : 8);
    *memory = (struct memory){.source = (enum source)below(random, SOURCES),
                              .len_bytes = len_bytes,
                              .whole_bytes = len_bytes + shift};
    if (memory->source == SOURCE_STACK || memory->source == SOURCE_STATIC)
        memory->whole = slot_allocate(memory->source == SOURCE_STATIC, memory->whole_bytes);
    else if (memory->source == SOURCE_ALLOC_MEM)
        MPI_Alloc_mem((MPI_Aint)memory->whole_bytes + 1, MPI_INFO_NULL, &memory->whole);
    else if (memory->source == SOURCE_MMAP)
        memory->whole = mmap(NULL, memory->whole_bytes + 1, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory->whole == NULL) {
        memory->source = SOURCE_HEAP;
        memory->whole = malloc(memory->whole_bytes + 1);
    }
    if (memory->whole == NULL || memory->whole == MAP_FAILED)
        fail("no memory");
    memory->at = (unsigned char *)memory->whole + shift;
    count_one(COUNT_SOURCE_HEAP + (enum count)memory->source);
}

void memory_free(struct memory *memory)
{
    switch (memory->source) {
    case SOURCE_HEAP: free(memory->whole); break;
    case SOURCE_STACK: slot_free(false, memory->whole); break;
    case SOURCE_STATIC: slot_free(true, memory->whole); break;
    case SOURCE_ALLOC_MEM: MPI_Free_mem(memory->whole); break;
    default: munmap(memory->whole, memory->whole_bytes + 1);
    }
    *memory = (struct memory){0};
}
