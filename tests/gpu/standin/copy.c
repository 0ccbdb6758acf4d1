/* Copies and fills. Which copies are complete at their return is what the driver documents ("API
 * synchronization behavior"), in the reading that helps a program least:
 *
 *     source      target      cuMemcpy              cuMemcpyAsync
 *     pageable    device      source is staged      source is staged
 *     pinned      device      complete              in flight
 *     device      host        complete              in flight
 *     device      device      in flight             in flight
 *     host        host        complete              complete
 *
 * Device includes managed memory here, and host is pageable or pinned. */
#include "standin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* How a caller declares its pointer. */
enum declared { AS_HOST, AS_DEVICE, AS_ANY };

struct side {
    uint64_t address;
    enum declared declared;
    size_t pitch_bytes;
};

struct copy {
    struct standin_operation operation; /* the first member */
    struct standin_place target, source;
    size_t target_pitch_bytes, source_pitch_bytes;
    size_t width_bytes, height;
    char *staged; /* a copy of a pageable source, or NULL */
    bool is_fill;
    unsigned char value; /* of a fill */
};

static uint64_t copies;

uint64_t standinCopies(void)
{
    pthread_mutex_lock(&standin_mutex);
    uint64_t count = copies;
    pthread_mutex_unlock(&standin_mutex);
    return count;
}

/* Copies memory that may not be there. */
static void copy_pageable(char *target, const char *source, size_t len_bytes)
{
    while (len_bytes) {
        struct iovec local = {target, len_bytes};
        struct iovec remote = {(char *)(uintptr_t)source, len_bytes};
        ssize_t done = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
        if (done < 0 && errno == EPERM) { /* the kernel refuses it, as in containers */
            memcpy(target, source, len_bytes);
            return;
        }
        if (done <= 0) {
            standin_misuse("neither the driver nor the CPU can copy %zu bytes from %p to %p: %s",
                           len_bytes, (const void *)source, (void *)target, strerror(errno));
        }
        target += done;
        source += done;
        len_bytes -= (size_t)done;
    }
}

static void copy_row(const struct copy *copy, char *target, const char *source)
{
    if (copy->target.is_pageable || copy->source.is_pageable) {
        copy_pageable(target, source, copy->width_bytes);
    } else {
        memmove(target, source, copy->width_bytes);
    }
}

static oriel_cu_result execute_copy(struct standin_operation *operation)
{
    const struct copy *copy = (const struct copy *)operation;
    for (size_t row = 0; row < copy->height; row++) {
        char *target = copy->target.memory + row * copy->target_pitch_bytes;
        if (copy->is_fill) {
            memset(target, copy->value, copy->width_bytes);
        } else {
            copy_row(copy, target, copy->source.memory + row * copy->source_pitch_bytes);
        }
    }
    return ORIEL_CU_SUCCESS;
}

static void finish_copy(struct standin_operation *operation)
{
    struct copy *copy = (struct copy *)operation;
    if (copy->target.allocation) {
        copy->target.allocation->in_flight--;
    }
    if (copy->source.allocation) {
        copy->source.allocation->in_flight--;
    }
    free(copy->staged);
}

static bool is_device(const struct standin_place *place)
{
    return place->allocation && place->allocation->kind <= STANDIN_MANAGED;
}

static oriel_cu_result find_side(const char *what, const struct side *side, size_t width_bytes,
                                 size_t height, struct standin_place *place)
{
    size_t len_bytes = (height - 1) * side->pitch_bytes + width_bytes;
    oriel_cu_result result = standin_resolve(what, side->address, len_bytes, place);
    if (result == ORIEL_CU_SUCCESS && side->declared == AS_DEVICE && place->is_pageable) {
        result = standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "%s: %#llx is no device pointer", what,
                               (unsigned long long)side->address);
    } else if (result == ORIEL_CU_SUCCESS && side->declared == AS_HOST && is_device(place) &&
               place->allocation->kind != STANDIN_MANAGED) {
        result = standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "%s: %#llx is no host pointer", what,
                               (unsigned long long)side->address);
    }
    return result;
}

/* Copies a pageable source now. */
static void stage(struct copy *copy)
{
    copy->staged = malloc(copy->width_bytes * copy->height);
    if (!copy->staged) {
        standin_misuse("no memory for the stand-in itself");
    }
    for (size_t row = 0; row < copy->height; row++) {
        copy_pageable(copy->staged + row * copy->width_bytes,
                      copy->source.memory + row * copy->source_pitch_bytes, copy->width_bytes);
    }
    copy->source = (struct standin_place){.memory = copy->staged};
    copy->source_pitch_bytes = copy->width_bytes;
}

static void submit(struct copy *copy, struct oriel_cu_stream *stream)
{
    copy->operation.execute = execute_copy;
    copy->operation.finish = finish_copy;
    copies++;
    if (copy->target.allocation) {
        copy->target.allocation->in_flight++;
    }
    if (copy->source.allocation) {
        copy->source.allocation->in_flight++;
    }
    standin_enqueue(stream, &copy->operation);
}

static struct copy *make_copy(size_t width_bytes, size_t height)
{
    struct copy *copy = calloc(1, sizeof *copy);
    if (!copy) {
        standin_misuse("no memory for the stand-in itself");
    }
    copy->width_bytes = width_bytes;
    copy->height = height;
    return copy;
}

static oriel_cu_result copy_sides(const char *what, struct side target, struct side source,
                                  size_t width_bytes, size_t height, bool is_async,
                                  struct oriel_cu_stream *stream)
{
    struct standin_place to, from;
    oriel_cu_result result = standin_stream_find(stream, &stream);
    if (result != ORIEL_CU_SUCCESS || !width_bytes || !height) {
        return result;
    }
    result = find_side(what, &target, width_bytes, height, &to);
    if (result == ORIEL_CU_SUCCESS) {
        result = find_side(what, &source, width_bytes, height, &from);
    }
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct copy *copy = make_copy(width_bytes, height);
    copy->target = to;
    copy->source = from;
    copy->target_pitch_bytes = target.pitch_bytes;
    copy->source_pitch_bytes = source.pitch_bytes;
    if (from.is_pageable && is_device(&to)) {
        stage(copy);
        submit(copy, stream);
        return ORIEL_CU_SUCCESS;
    }
    submit(copy, stream);
    bool is_complete =
        is_async ? !is_device(&from) && !is_device(&to) : !is_device(&from) || !is_device(&to);
    return is_complete ? standin_drain_stream(stream) : ORIEL_CU_SUCCESS;
}

static oriel_cu_result copy_line(const char *what, struct side target, struct side source,
                                 size_t len_bytes, bool is_async, struct oriel_cu_stream *stream)
{
    return copy_sides(what, target, source, len_bytes, 1, is_async, stream);
}

static struct side host(const void *memory)
{
    return (struct side){(uintptr_t)memory, AS_HOST, 0};
}

static struct side device(oriel_cu_pointer pointer)
{
    return (struct side){pointer, AS_DEVICE, 0};
}

static struct side any(oriel_cu_pointer pointer)
{
    return (struct side){pointer, AS_ANY, 0};
}

oriel_cu_result standin_memcpy_sync(oriel_cu_pointer target, oriel_cu_pointer source,
                                    size_t len_bytes)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_sync, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(copy_line("cuMemcpy", any(target), any(source), len_bytes, false, NULL));
}

oriel_cu_result standin_memcpy_async(oriel_cu_pointer target, oriel_cu_pointer source,
                                     size_t len_bytes, struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_async, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(
        copy_line("cuMemcpyAsync", any(target), any(source), len_bytes, true, stream));
}

oriel_cu_result standin_memcpy_htod_async(oriel_cu_pointer target, const void *source,
                                          size_t len_bytes, struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_htod_async, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(
        copy_line("cuMemcpyHtoDAsync", device(target), host(source), len_bytes, true, stream));
}

oriel_cu_result standin_memcpy_dtoh_async(void *target, oriel_cu_pointer source, size_t len_bytes,
                                          struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_dtoh_async, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(
        copy_line("cuMemcpyDtoHAsync", host(target), device(source), len_bytes, true, stream));
}

oriel_cu_result standin_memcpy_dtod_async(oriel_cu_pointer target, oriel_cu_pointer source,
                                          size_t len_bytes, struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_dtod_async, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(
        copy_line("cuMemcpyDtoDAsync", device(target), device(source), len_bytes, true, stream));
}

oriel_cu_result standin_memcpy_dtod(oriel_cu_pointer target, oriel_cu_pointer source,
                                    size_t len_bytes)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_dtod, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(
        copy_line("cuMemcpyDtoD", device(target), device(source), len_bytes, false, NULL));
}

oriel_cu_result standin_memcpy_peer_async(oriel_cu_pointer target,
                                          struct oriel_cu_context *target_context,
                                          oriel_cu_pointer source,
                                          struct oriel_cu_context *source_context, size_t len_bytes,
                                          struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_peer_async, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    const struct standin_allocation *to = standin_find(target), *from = standin_find(source);
    if ((to && to->device != target_context->device) ||
        (from && from->device != source_context->device)) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuMemcpyPeerAsync with contexts of other devices"));
    }
    return standin_end(
        copy_line("cuMemcpyPeerAsync", device(target), device(source), len_bytes, true, stream));
}

/* One side of a two-dimensional copy. */
static oriel_cu_result side_2d(const struct oriel_cu_copy_2d *copy, bool is_target,
                               struct side *side)
{
    unsigned type = is_target ? copy->target_type : copy->source_type;
    const void *memory = is_target ? copy->target_host : copy->source_host;
    uint64_t pointer = is_target ? copy->target_device : copy->source_device;
    size_t x_bytes = is_target ? copy->target_x_bytes : copy->source_x_bytes;
    size_t y = is_target ? copy->target_y : copy->source_y;
    size_t pitch_bytes = is_target ? copy->target_pitch_bytes : copy->source_pitch_bytes;
    if (pitch_bytes < x_bytes + copy->width_bytes || pitch_bytes > INT32_MAX) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                             "a copy of rows of %zu bytes with a pitch of %zu bytes",
                             copy->width_bytes, pitch_bytes);
    }
    switch (type) {
    case ORIEL_CU_MEMORY_TYPE_HOST: *side = host(memory); break;
    case ORIEL_CU_MEMORY_TYPE_DEVICE: *side = device(pointer); break;
    case ORIEL_CU_MEMORY_TYPE_UNIFIED: *side = any(pointer); break;
    default:
        return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "a copy of memory of type %u", type);
    }
    side->address += y * pitch_bytes + x_bytes;
    side->pitch_bytes = pitch_bytes;
    return ORIEL_CU_SUCCESS;
}

static oriel_cu_result copy_2d(const char *what, const struct oriel_cu_copy_2d *copy, bool is_async,
                               struct oriel_cu_stream *stream)
{
    struct side target, source;
    oriel_cu_result result = side_2d(copy, true, &target);
    if (result == ORIEL_CU_SUCCESS) {
        result = side_2d(copy, false, &source);
    }
    return result != ORIEL_CU_SUCCESS ? result
                                      : copy_sides(what, target, source, copy->width_bytes,
                                                   copy->height, is_async, stream);
}

oriel_cu_result standin_memcpy_2d_async(const struct oriel_cu_copy_2d *copy,
                                        struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_2d_async, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(copy_2d("cuMemcpy2DAsync", copy, true, stream));
}

oriel_cu_result standin_memcpy_2d_unaligned(const struct oriel_cu_copy_2d *copy)
{
    oriel_cu_result result = standin_begin(CALL_memcpy_2d_unaligned, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(copy_2d("cuMemcpy2DUnaligned", copy, false, NULL));
}

oriel_cu_result standin_memset_d8_async(oriel_cu_pointer target, unsigned char value,
                                        size_t len_bytes, struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_memset_d8_async, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    struct side side = device(target);
    struct standin_place place;
    result = standin_stream_find(stream, &stream);
    if (result != ORIEL_CU_SUCCESS || !len_bytes) {
        return standin_end(result);
    }
    result = find_side("cuMemsetD8Async", &side, len_bytes, 1, &place);
    if (result != ORIEL_CU_SUCCESS) {
        return standin_end(result);
    }
    struct copy *fill = make_copy(len_bytes, 1);
    fill->is_fill = true;
    fill->value = value;
    fill->target = place;
    submit(fill, stream);
    return standin_end(result);
}
