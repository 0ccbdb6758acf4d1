/* Epochs: from the end of the call that opens one to the end of the call that closes it. A fence
 * epoch counts when it contains operations. The trace does not record whether MPI_Win_test closed
 * an epoch; the last one before the next post did. Events of one rank arrive in order. */
#include "cli/report/html_epochs.h"

#include <stdlib.h>

#include "cli/cli.h"

enum kind { FENCE, ACCESS, EXPOSURE, LOCK, LOCK_ALL, KINDS };

const char *const oriel_html_epoch_kinds[] = {
    [FENCE] = "fence", [ACCESS] = "start to complete", [EXPOSURE] = "post to wait",
    [LOCK] = "lock",   [LOCK_ALL] = "lock_all",        NULL,
};

struct epoch {
    bool open;
    int32_t target;
    uint64_t begin_ns, operations, bytes;
};

struct window {
    struct epoch of[KINDS]; /* LOCK epochs are in locks */
    struct epoch *locks;    /* one for each target that is or was locked */
    uint32_t locks_count, locks_room;
    uint64_t test_ns; /* end of the last MPI_Win_test */
    uint64_t end_ns;  /* end of the last event */
};

struct oriel_html_epochs {
    uint32_t windows;
    struct window of[];
};

struct oriel_html_epochs *oriel_html_epochs_new(uint32_t windows)
{
    struct oriel_html_epochs *epochs = oriel_alloc(sizeof *epochs + windows * sizeof epochs->of[0]);
    epochs->windows = windows;
    return epochs;
}

void oriel_html_epochs_free(struct oriel_html_epochs *epochs)
{
    for (uint32_t i = 0; i < epochs->windows; i++)
        free(epochs->of[i].locks);
    free(epochs);
}

/* The epoch of a lock on that target; a new, closed one when there is none. */
static struct epoch *lock_epoch_find(struct window *window, int32_t target)
{
    for (uint32_t i = 0; i < window->locks_count; i++)
        if (window->locks[i].target == target)
            return &window->locks[i];
    if (window->locks_count == window->locks_room) {
        uint32_t room = window->locks_room * 2 + 4;
        struct epoch *locks = oriel_alloc_checked(realloc(window->locks, room * sizeof *locks));
        window->locks = locks;
        window->locks_room = room;
    }
    window->locks[window->locks_count] = (struct epoch){.target = target};
    return &window->locks[window->locks_count++];
}

static void epoch_begin(struct epoch *epoch, uint64_t begin_ns)
{
    *epoch = (struct epoch){.open = true, .target = epoch->target, .begin_ns = begin_ns};
}

struct receiver {
    oriel_html_epoch_visit *take;
    void *context;
    uint32_t window;
    int32_t rank;
};

static void epoch_end(struct epoch *epoch, enum kind kind, uint64_t end_ns,
                      const struct receiver *receiver)
{
    bool counts =
        epoch->open && end_ns > epoch->begin_ns && (kind != FENCE || epoch->operations != 0);
    epoch->open = false;
    if (counts)
        receiver->take(receiver->context,
                       &(struct oriel_html_span){.begin_ns = epoch->begin_ns,
                                                 .duration_ns = end_ns - epoch->begin_ns,
                                                 .operations = epoch->operations,
                                                 .bytes = epoch->bytes,
                                                 .window = receiver->window,
                                                 .rank = receiver->rank,
                                                 .target = kind == LOCK ? epoch->target : -1,
                                                 .cause_rank = -1,
                                                 .kind = (uint8_t)kind});
}

static void epochs_end_all(struct window *window, uint64_t end_ns, const struct receiver *receiver)
{
    for (int kind = 0; kind < KINDS; kind++)
        epoch_end(&window->of[kind], (enum kind)kind, end_ns, receiver);
    for (uint32_t i = 0; i < window->locks_count; i++)
        epoch_end(&window->locks[i], LOCK, end_ns, receiver);
}

static void epoch_count_operation(struct epoch *epoch, const struct oriel_html_event *event)
{
    epoch->operations += event->weight;
    epoch->bytes += event->bytes * event->weight;
}

/* An operation counts in all open access epochs. A correct program has only one; an error stays
 * visible. */
static void operation_add(struct window *window, const struct oriel_html_event *event)
{
    epoch_count_operation(&window->of[FENCE], event);
    epoch_count_operation(&window->of[ACCESS], event);
    epoch_count_operation(&window->of[LOCK_ALL], event);
    for (uint32_t i = 0; i < window->locks_count; i++)
        if (window->locks[i].target == event->target)
            epoch_count_operation(&window->locks[i], event);
}

void oriel_html_epochs_add(struct oriel_html_epochs *epochs, const struct oriel_html_event *event,
                           oriel_html_epoch_visit *take, void *context)
{
    struct window *window = &epochs->of[event->window];
    const struct receiver receiver = {
        .take = take, .context = context, .window = event->window, .rank = event->rank};
    uint64_t end_ns = event->begin_ns + event->duration_ns;
    if (end_ns > window->end_ns)
        window->end_ns = end_ns;
    if (event->operation >= 0) {
        operation_add(window, event);
        return;
    }
    switch (event->call) {
    case ORIEL_CALL_OF_fence:
        epoch_end(&window->of[FENCE], FENCE, end_ns, &receiver);
        epoch_begin(&window->of[FENCE], end_ns);
        break;
    case ORIEL_CALL_OF_start: epoch_begin(&window->of[ACCESS], end_ns); break;
    case ORIEL_CALL_OF_complete: epoch_end(&window->of[ACCESS], ACCESS, end_ns, &receiver); break;
    case ORIEL_CALL_OF_post:
        epoch_end(&window->of[EXPOSURE], EXPOSURE, window->test_ns, &receiver);
        epoch_begin(&window->of[EXPOSURE], end_ns);
        break;
    case ORIEL_CALL_OF_test: window->test_ns = end_ns; break;
    case ORIEL_CALL_OF_wait: epoch_end(&window->of[EXPOSURE], EXPOSURE, end_ns, &receiver); break;
    case ORIEL_CALL_OF_lock: epoch_begin(lock_epoch_find(window, event->target), end_ns); break;
    case ORIEL_CALL_OF_unlock:
        epoch_end(lock_epoch_find(window, event->target), LOCK, end_ns, &receiver);
        break;
    case ORIEL_CALL_OF_lock_all: epoch_begin(&window->of[LOCK_ALL], end_ns); break;
    case ORIEL_CALL_OF_unlock_all:
        epoch_end(&window->of[LOCK_ALL], LOCK_ALL, end_ns, &receiver);
        break;
    case ORIEL_CALL_OF_free: epochs_end_all(window, end_ns, &receiver); break;
    default: break;
    }
}

void oriel_html_epochs_rank_end(struct oriel_html_epochs *epochs, int32_t rank,
                                oriel_html_epoch_visit *take, void *context)
{
    for (uint32_t i = 0; i < epochs->windows; i++) {
        struct window *window = &epochs->of[i];
        const struct receiver receiver = {
            .take = take, .context = context, .window = i, .rank = rank};
        epochs_end_all(window, window->end_ns, &receiver);
        window->locks_count = 0;
        window->test_ns = window->end_ns = 0;
    }
}
