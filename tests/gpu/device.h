/* The driver of a GPU as a program uses it: loaded when the first function here is called, as
 * runtimes do. With a real GPU or with the stand-in (standin/README.md). */
#ifndef ORIEL_TESTS_GPU_DEVICE_H
#define ORIEL_TESTS_GPU_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Ends the process if a call of the driver fails that has no reason to. */
/* Loads the driver, and makes a context of a device current for the calling thread. */
void device_open(void);
bool device_exists(void); /* not thread-safe */

void *device_alloc(size_t size_bytes);
void *device_alloc_on_next(size_t size_bytes); /* on another device, if there is one */
void device_free(void *memory);
/* Memory that the program maps itself: a virtual address with memory of cuMemCreate. */
void *device_map(size_t size_bytes, bool can_be_shared);
void device_unmap(void *memory, size_t size_bytes);
/* Two memories next to each other, of *first_bytes each; never freed. */
void *device_map_two(size_t size_bytes, size_t *first_bytes);
void *device_alloc_managed(size_t size_bytes);
void *device_alloc_pinned(size_t size_bytes);
void device_free_pinned(void *memory);

/* Between host memory and device memory; complete on return. */
void device_write(void *device, const void *host, size_t len_bytes);
void device_read(void *host, const void *device, size_t len_bytes);
void device_fill(void *device, int byte, size_t len_bytes);
/* Between device memory of this process, by a stream; complete on return. */
void device_copy(void *to, const void *from, size_t len_bytes);

/* A stream of the program's own. What is enqueued there takes its time. */
void *device_stream_make(void);
void device_stream_free(void *stream);
void device_stream_fill(void *stream, void *device, int byte, size_t len_bytes);
void device_stream_copy(void *stream, void *to, const void *from, size_t len_bytes);
void device_stream_wait(void *stream);

/* A number that the stand-in counts, by its function's name. False with a real driver. */
bool device_counted(const char *function, uint64_t *count);

/* Errors of the stand-in from now on, as in its STANDIN_FAIL. False with a real driver. */
bool device_fail(const char *text);

/* Collects what the process writes to stderr; returns the old descriptor. */
int stderr_collect(FILE **file);
/* How many lines have the word, and the end of the collecting. */
int stderr_count(FILE *file, int old, const char *word);

#endif
