/* Streams: a queue each, which a thread of its own executes in order. Events: a position in a
 * stream.
 *
 * An operation waits until other streams are complete as far as its list of waits demands. So the
 * legacy default stream is ordered with the blocking streams of its context, and an event with the
 * stream that waits for it. Nothing waits in a circle: all waits are for operations that were
 * queued before.
 *
 * With STANDIN_HOLD, an operation begins when a call waits for it, or asks whether it is complete.
 *
 * Structs of streams and events are never freed, so a handle that was destroyed is recognised. */
#include "standin.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

struct oriel_cu_stream {
    struct oriel_cu_stream *next;
    struct oriel_cu_context *context;
    bool is_blocking; /* ordered with the legacy stream */
    bool is_legacy, is_destroyed;
    struct standin_operation *first, **end; /* queued; the first may be executing */
    uint64_t queued, complete;              /* operations so far */
    uint64_t wanted;                        /* until this one, a call waited or asked */
    pthread_cond_t work;                    /* the first may begin, or the stream was destroyed */
    uint64_t random;
};

struct oriel_cu_event {
    struct oriel_cu_event *next;
    struct oriel_cu_context *context;
    bool is_destroyed;
    struct standin_wait recorded; /* stream NULL: never */
};

static struct oriel_cu_stream *streams;
static struct oriel_cu_event *events;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER; /* an operation is complete */
static _Thread_local struct oriel_cu_stream *per_thread;

static bool is_over(const struct standin_wait *wait)
{
    return !wait->stream || wait->stream->complete >= wait->sequence;
}

/* Lets the operations begin. */
static void want(const struct standin_wait *wait)
{
    if (wait->stream && wait->stream->wanted < wait->sequence) {
        wait->stream->wanted = wait->sequence;
        pthread_cond_signal(&wait->stream->work);
    }
}

static void wait_for(struct standin_wait wait)
{
    want(&wait);
    while (!is_over(&wait)) {
        pthread_cond_wait(&progress, &standin_mutex);
    }
}

static void execute_first(struct oriel_cu_stream *stream)
{
    struct standin_operation *operation = stream->first;
    for (unsigned i = 0; i < operation->wait_count; i++) {
        wait_for(operation->waits[i]);
    }
    bool is_lost = stream->context->lost != ORIEL_CU_SUCCESS;
    pthread_mutex_unlock(&standin_mutex);
    if (standin_settings.delay_us) {
        usleep((unsigned)(standin_random(&stream->random) % standin_settings.delay_us));
    }
    oriel_cu_result result = ORIEL_CU_SUCCESS;
    if (!is_lost && operation->execute) {
        result = operation->execute(operation);
    }
    pthread_mutex_lock(&standin_mutex);
    if (result != ORIEL_CU_SUCCESS) {
        standin_lose(stream->context, result);
    }
    stream->first = operation->next;
    if (!stream->first) {
        stream->end = &stream->first;
    }
    stream->complete = operation->sequence;
    if (operation->finish) {
        operation->finish(operation);
    }
    free(operation->waits);
    free(operation);
    pthread_cond_broadcast(&progress);
}

static bool first_may_begin(const struct oriel_cu_stream *stream)
{
    return stream->first && (!standin_settings.holds || stream->is_destroyed ||
                             stream->first->sequence <= stream->wanted);
}

static void *run_stream(void *argument)
{
    struct oriel_cu_stream *stream = argument;
    pthread_mutex_lock(&standin_mutex);
    while (stream->first || !stream->is_destroyed) {
        if (first_may_begin(stream)) {
            execute_first(stream);
        } else {
            pthread_cond_wait(&stream->work, &standin_mutex);
        }
    }
    pthread_mutex_unlock(&standin_mutex);
    return NULL;
}

static struct oriel_cu_stream *make_stream(bool is_blocking)
{
    struct oriel_cu_stream *stream = calloc(1, sizeof *stream);
    sigset_t all, before;
    pthread_t thread;
    if (!stream) {
        standin_misuse("no memory for the stand-in itself");
    }
    stream->context = standin_current;
    stream->is_blocking = is_blocking;
    stream->end = &stream->first;
    stream->random = standin_settings.seed;
    pthread_cond_init(&stream->work, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run_stream, stream) != 0) {
        standin_misuse("no thread for a stream");
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_detach(thread);
    for (struct oriel_cu_stream *other = streams; other; other = other->next) {
        standin_random(&stream->random); /* each has other delays */
    }
    stream->next = streams;
    streams = stream;
    return stream;
}

oriel_cu_result standin_stream_find(struct oriel_cu_stream *stream, struct oriel_cu_stream **out)
{
    if (!stream || stream == ORIEL_CU_STREAM_LEGACY) {
        if (!standin_current->legacy) {
            standin_current->legacy = make_stream(false);
            standin_current->legacy->is_legacy = true;
        }
        stream = standin_current->legacy;
    } else if (stream == ORIEL_CU_STREAM_PER_THREAD) {
        if (!per_thread || per_thread->context != standin_current) {
            per_thread = make_stream(true);
        }
        stream = per_thread;
    }
    struct oriel_cu_stream *known = streams;
    while (known && known != stream) {
        known = known->next;
    }
    if (!known || known->is_destroyed) {
        standin_misuse("%p is no stream%s", (void *)stream, known ? " any more" : "");
    }
    if (known->context != standin_current) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_HANDLE,
                             "a stream of device %d, but the current context is of device %d",
                             known->context->device, standin_current->device);
    }
    *out = known;
    return ORIEL_CU_SUCCESS;
}

struct oriel_cu_context *standin_stream_context(const struct oriel_cu_stream *stream)
{
    return stream->context;
}

static void add_wait(struct standin_operation *operation, struct standin_wait wait)
{
    if (is_over(&wait)) {
        return;
    }
    struct standin_wait *more =
        realloc(operation->waits, (operation->wait_count + 1) * sizeof *more);
    if (!more) {
        standin_misuse("no memory for the stand-in itself");
    }
    operation->waits = more;
    more[operation->wait_count++] = wait;
}

void standin_enqueue(struct oriel_cu_stream *stream, struct standin_operation *operation)
{
    for (struct oriel_cu_stream *other = streams; other; other = other->next) {
        if (other->context == stream->context && ((stream->is_legacy && other->is_blocking) ||
                                                  (stream->is_blocking && other->is_legacy))) {
            add_wait(operation, (struct standin_wait){other, other->queued});
        }
    }
    operation->sequence = ++stream->queued;
    operation->next = NULL;
    *stream->end = operation;
    stream->end = &operation->next;
    pthread_cond_signal(&stream->work);
}

/* Queues an operation that only waits, for at most one event. */
static void enqueue_nothing(struct oriel_cu_stream *stream, const struct standin_wait *wait)
{
    struct standin_operation *operation = calloc(1, sizeof *operation);
    if (!operation) {
        standin_misuse("no memory for the stand-in itself");
    }
    if (wait) {
        add_wait(operation, *wait);
    }
    standin_enqueue(stream, operation);
}

oriel_cu_result standin_drain_stream(struct oriel_cu_stream *stream)
{
    wait_for((struct standin_wait){stream, stream->queued});
    return stream->context->lost;
}

oriel_cu_result standin_drain(struct oriel_cu_context *context)
{
    for (struct oriel_cu_stream *stream = streams; stream; stream = stream->next) {
        if (!context || stream->context == context) {
            standin_drain_stream(stream);
        }
    }
    return context ? context->lost : ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_stream_create(struct oriel_cu_stream **stream, unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_stream_create, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (flags > ORIEL_CU_STREAM_NON_BLOCKING) {
        return standin_end(
            standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "cuStreamCreate with flags %u", flags));
    }
    *stream = make_stream(flags == ORIEL_CU_STREAM_DEFAULT);
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_stream_destroy(struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_stream_destroy, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if ((uintptr_t)stream <= (uintptr_t)ORIEL_CU_STREAM_PER_THREAD) {
        return standin_end(
            standin_fault(ORIEL_CU_ERROR_INVALID_HANDLE, "cuStreamDestroy of a default stream"));
    }
    result = standin_stream_find(stream, &stream);
    if (result == ORIEL_CU_SUCCESS) {
        stream->is_destroyed = true;
        pthread_cond_signal(&stream->work);
    }
    return standin_end(result);
}

oriel_cu_result standin_stream_synchronize(struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_stream_synchronize, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    result = standin_stream_find(stream, &stream);
    return standin_end(result == ORIEL_CU_SUCCESS ? standin_drain_stream(stream) : result);
}

oriel_cu_result standin_stream_query(struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_stream_query, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    result = standin_stream_find(stream, &stream);
    if (result == ORIEL_CU_SUCCESS && stream->complete < stream->queued) {
        want(&(struct standin_wait){stream, stream->queued});
        result = ORIEL_CU_ERROR_NOT_READY;
    }
    return standin_end(result);
}

oriel_cu_result standin_stream_get_ctx(struct oriel_cu_stream *stream,
                                       struct oriel_cu_context **context)
{
    oriel_cu_result result = standin_begin(CALL_stream_get_ctx, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    bool is_default =
        !stream || stream == ORIEL_CU_STREAM_LEGACY || stream == ORIEL_CU_STREAM_PER_THREAD;
    const struct oriel_cu_stream *known = streams;
    while (known && known != stream) {
        known = known->next;
    }
    if (!is_default && (!known || known->is_destroyed)) {
        standin_misuse("%p is no stream%s", (void *)stream, known ? " any more" : "");
    }
    *context = is_default ? standin_current : known->context;
    return standin_end(*context ? ORIEL_CU_SUCCESS : ORIEL_CU_ERROR_INVALID_CONTEXT);
}

/* Ends the process if it is no event, or not any more. */
static void check_event(const struct oriel_cu_event *event)
{
    const struct oriel_cu_event *known = events;
    while (known && known != event) {
        known = known->next;
    }
    if (!known || known->is_destroyed) {
        standin_misuse("%p is no event%s", (const void *)event, known ? " any more" : "");
    }
}

oriel_cu_result standin_stream_wait_event(struct oriel_cu_stream *stream,
                                          struct oriel_cu_event *event, unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_stream_wait_event, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    check_event(event);
    result = flags ? ORIEL_CU_ERROR_INVALID_VALUE : standin_stream_find(stream, &stream);
    if (result == ORIEL_CU_SUCCESS) {
        enqueue_nothing(stream, &event->recorded);
    }
    return standin_end(result);
}

oriel_cu_result standin_event_create(struct oriel_cu_event **event, unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_event_create, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (flags > (ORIEL_CU_EVENT_BLOCKING_SYNC | ORIEL_CU_EVENT_DISABLE_TIMING)) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_VALUE,
                                         "cuEventCreate with flags %u (the stand-in has no events "
                                         "of other processes)",
                                         flags));
    }
    *event = calloc(1, sizeof **event);
    if (!*event) {
        standin_misuse("no memory for the stand-in itself");
    }
    (*event)->context = standin_current;
    (*event)->next = events;
    events = *event;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_event_record(struct oriel_cu_event *event, struct oriel_cu_stream *stream)
{
    oriel_cu_result result = standin_begin(CALL_event_record, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    check_event(event);
    result = standin_stream_find(stream, &stream);
    if (result == ORIEL_CU_SUCCESS && event->context != stream->context) {
        result = standin_fault(ORIEL_CU_ERROR_INVALID_HANDLE,
                               "cuEventRecord of an event and a stream of different contexts");
    } else if (result == ORIEL_CU_SUCCESS) {
        enqueue_nothing(stream, NULL);
        event->recorded = (struct standin_wait){stream, stream->queued};
    }
    return standin_end(result);
}

oriel_cu_result standin_event_query(struct oriel_cu_event *event)
{
    oriel_cu_result result = standin_begin(CALL_event_query, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    check_event(event);
    want(&event->recorded);
    return standin_end(is_over(&event->recorded) ? event->context->lost : ORIEL_CU_ERROR_NOT_READY);
}

oriel_cu_result standin_event_synchronize(struct oriel_cu_event *event)
{
    oriel_cu_result result = standin_begin(CALL_event_synchronize, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    check_event(event);
    wait_for(event->recorded);
    return standin_end(event->context->lost);
}

oriel_cu_result standin_event_destroy(struct oriel_cu_event *event)
{
    oriel_cu_result result = standin_begin(CALL_event_destroy, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    check_event(event);
    event->is_destroyed = true;
    return standin_end(ORIEL_CU_SUCCESS);
}
