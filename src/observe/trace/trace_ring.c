/* A ring has one producer thread and one consumer. It is never freed, and is reused by another
 * thread when its producer has ended.
 *
 *     A1  the producer writes the event           T1  the consumer reads head (acquire)
 *     A2  and adds one to head (release)          T2  reads events, writes tail (release)
 *     A3  before A1, if the ring looks full, it reads tail (acquire)
 *
 * P1: A2 -> T1: a consumer that reads head sees the events before it.
 * P2: T2 -> A3: no event is overwritten before it is read; T2 frees its slot.
 *
 * The memory is from mmap, not from malloc. Promotion moves pages of the program
 * (memory/promote/promote.c) without stopping the consumer, so these pages must have nothing that
 * it reads. */
#include "observe/trace/trace_ring.h"

#include "base/atomic.h"
#include "observe/trace/trace.h"

#include <pthread.h>
#include <stdalign.h>
#include <sys/mman.h>

enum { EVENTS = 1 << 16, RINGS_MOST = 1024, THREAD_LAST = 255 };

struct ring {
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t head;     /* producer: events ever added */
    uint64_t seen_tail;                                  /* producer: tail when it was last read */
    _Atomic uint64_t dropped;                            /* producer */
    uint8_t thread;                                      /* of its events */
    alignas(ORIEL_CACHE_LINE) _Atomic uint64_t tail;     /* consumer: events ever consumed */
    uint64_t seen_head;                                  /* consumer: head when it was last read */
    alignas(ORIEL_CACHE_LINE) _Atomic uint32_t is_taken; /* by a thread */
    struct oriel_trace_event events[EVENTS];
};

static _Atomic(struct ring *) rings[RINGS_MOST];
/* grows only; slots below it are set, or about to be */
static _Atomic uint32_t rings_count;
static _Atomic uint64_t dropped_elsewhere; /* by threads without a ring */
static void (*ring_bell)(void);
static pthread_key_t leaving;
static _Thread_local struct ring *own;

static void ring_release(void *ring)
{
    own = NULL;
    oriel_store_release(&((struct ring *)ring)->is_taken, 0);
}

void oriel_trace_rings_open(void (*rung)(void))
{
    ring_bell = rung;
    /* if this fails, rings of ended threads are not reused */
    (void)pthread_key_create(&leaving, ring_release);
}

static struct ring *ring_reuse(void)
{
    uint32_t count = oriel_load_acquire(&rings_count);
    for (uint32_t i = 0; i < count && i < RINGS_MOST; i++) {
        struct ring *ring = atomic_load_explicit(&rings[i], memory_order_acquire);
        uint32_t no = 0;
        if (ring != NULL &&
            atomic_compare_exchange_strong_explicit(&ring->is_taken, &no, 1, memory_order_acquire,
                                                    memory_order_relaxed))
            return ring;
    }
    return NULL;
}

static struct ring *ring_create(void)
{
    if (oriel_load_relaxed(&rings_count) >= RINGS_MOST)
        return NULL;
    struct ring *ring =
        mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ring == MAP_FAILED)
        return NULL;
    uint32_t number = atomic_fetch_add_explicit(&rings_count, 1, memory_order_acq_rel);
    if (number >= RINGS_MOST) {
        atomic_fetch_sub_explicit(&rings_count, 1, memory_order_acq_rel);
        munmap(ring, sizeof *ring);
        return NULL;
    }
    oriel_store_relaxed(&ring->is_taken, 1);
    ring->thread = (uint8_t)(number < THREAD_LAST ? number : THREAD_LAST);
    atomic_store_explicit(&rings[number], ring, memory_order_release);
    return ring;
}

static struct ring *ring_find_own(void)
{
    struct ring *ring = ring_reuse();
    if (ring == NULL)
        ring = ring_create();
    if (ring != NULL)
        (void)pthread_setspecific(leaving, ring);
    return own = ring;
}

static bool is_full(struct ring *ring, uint64_t head)
{
    if (oriel_likely(head - ring->seen_tail < EVENTS))
        return false;
    ring->seen_tail = atomic_load_explicit(&ring->tail, memory_order_acquire); /* A3, P2 */
    return head - ring->seen_tail >= EVENTS;
}

void oriel_trace_add(const struct oriel_trace_event *event)
{
    struct ring *ring = own;
    if (oriel_unlikely(!oriel_tracing))
        return;
    if (oriel_unlikely(ring == NULL) && (ring = ring_find_own()) == NULL) {
        atomic_fetch_add_explicit(&dropped_elsewhere, 1, memory_order_relaxed);
        return;
    }
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (oriel_unlikely(is_full(ring, head))) {
        uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);
        atomic_store_explicit(&ring->dropped, dropped + 1, memory_order_relaxed);
        return;
    }
    struct oriel_trace_event *place = &ring->events[head % EVENTS];
    *place = *event; /* A1 */
    place->thread = ring->thread;
    atomic_store_explicit(&ring->head, head + 1, memory_order_release); /* A2 */
    if (oriel_unlikely((head + 1) % (EVENTS / 2) == 0))
        ring_bell();
}

static struct ring *ring_at(uint32_t number)
{
    return number < RINGS_MOST ? atomic_load_explicit(&rings[number], memory_order_acquire) : NULL;
}

struct oriel_trace_snapshot oriel_trace_rings_snapshot(void)
{
    struct oriel_trace_snapshot look = {
        .dropped = atomic_load_explicit(&dropped_elsewhere, memory_order_relaxed),
        .rings = oriel_load_acquire(&rings_count)};
    for (uint32_t i = 0; i < look.rings; i++) {
        struct ring *ring = ring_at(i);
        if (ring == NULL)
            continue;
        ring->seen_head = atomic_load_explicit(&ring->head, memory_order_acquire); /* T1 */
        look.dropped += atomic_load_explicit(&ring->dropped, memory_order_relaxed);
    }
    return look;
}

void oriel_trace_rings_empty(bool (*take)(const struct oriel_trace_event *events, size_t count))
{
    uint32_t count = oriel_load_acquire(&rings_count);
    for (uint32_t i = 0; i < count; i++) {
        struct ring *ring = ring_at(i);
        uint64_t tail = ring != NULL ? atomic_load_explicit(&ring->tail, memory_order_relaxed) : 0;
        while (ring != NULL && tail < ring->seen_head) {
            uint64_t most = EVENTS - tail % EVENTS;
            uint64_t some = ring->seen_head - tail < most ? ring->seen_head - tail : most;
            if (some > EVENTS / 8)
                some = EVENTS / 8; /* so their slots are free soon */
            if (!take(&ring->events[tail % EVENTS], (size_t)some))
                return;
            tail += some;
            atomic_store_explicit(&ring->tail, tail, memory_order_release); /* T2 */
        }
    }
}
