/* Finds places, and keeps the list. What is known about an address is in a table, whose values are
 * the place's number and its kind. The list only grows, under a mutex. */
#include "observe/stats/site_places.h"

#include "base/atomic.h"
#include "base/hash_table.h"
#include "base/helper_process.h"
#include "base/python_frames.h"
#include "memory/file.h"
#include "observe/trace/trace_sites.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 12, KIND_BITS = 2 };

/* Whose code an address is in. */
enum place_kind {
    PLACE_PROGRAM = 1, /* never 0, so that no value is NULL */
    PLACE_WRAPPER,     /* the call is further up the stack */
    PLACE_PYTHON       /* the call is in Python */
};

struct known_place {
    enum place_kind kind;
    uint16_t number;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct oriel_hash_table known_addresses = ORIEL_HASH_TABLE_INIT;
static struct oriel_hash_table known_lines = ORIEL_HASH_TABLE_INIT;
static _Atomic uint64_t places_offset;

uint64_t oriel_site_places_offset(void)
{
    return atomic_load_explicit(&places_offset, memory_order_acquire);
}

static struct oriel_site_places *places_list(void)
{
    uint64_t offset = oriel_site_places_offset();
    return offset == 0 ? NULL : (struct oriel_site_places *)(oriel_file_base() + offset);
}

const struct oriel_code_address *oriel_site_place_at(uint16_t number)
{
    return number == 0 ? NULL : &places_list()->places[number - 1];
}

/* With the mutex held; the number of the place, 0 without room. */
static uint16_t place_add(const struct oriel_code_address *place)
{
    uint64_t offset;
    if (places_list() == NULL &&
        oriel_file_alloc_sparse(sizeof(struct oriel_site_places), &offset) == ORIEL_OK)
        atomic_store_explicit(&places_offset, offset, memory_order_release);
    struct oriel_site_places *list = places_list();
    uint32_t count = list == NULL ? ORIEL_PLACES_MOST : list->count;
    if (count >= ORIEL_PLACES_MOST)
        return 0;
    list->places[count] = *place;
    atomic_store_explicit(&list->count, count + 1, memory_order_release);
    oriel_trace_sites_set(list->places, count + 1);
    return (uint16_t)(count + 1);
}

/* The value in a table: its number and kind, as an address that is never read. */
static void *packed(struct known_place known)
{
    return (void *)(uintptr_t)((uintptr_t)known.number << KIND_BITS | known.kind);
}

static struct known_place unpacked(const void *value)
{
    return (struct known_place){(enum place_kind)((uintptr_t)value & ((1 << KIND_BITS) - 1)),
                                (uint16_t)((uintptr_t)value >> KIND_BITS)};
}

static struct known_place address_add(uint64_t address)
{
    struct oriel_code_address place;
    struct known_place known = {.kind = PLACE_PROGRAM};
    bool is_in_module = oriel_code_address_find(address, &place);
    if (is_in_module && oriel_code_address_is_wrapper(place.module))
        known.kind = PLACE_WRAPPER;
    else if (is_in_module && oriel_python_is_binding(place.module))
        known.kind = PLACE_PYTHON;
    pthread_mutex_lock(&mutex);
    void *value = oriel_hash_table_find(&known_addresses, address);
    if (value == NULL) {
        known.number = is_in_module && known.kind != PLACE_WRAPPER ? place_add(&place) : 0;
        oriel_hash_table_set(&known_addresses, address, packed(known));
    }
    pthread_mutex_unlock(&mutex);
    return value != NULL ? unpacked(value) : known;
}

static struct known_place address_find(uint64_t address)
{
    const void *value = oriel_hash_table_find(&known_addresses, address);
    return value != NULL ? unpacked(value) : address_add(address);
}

/* --- Python --- */

static uint64_t text_hash(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint16_t line_add(uint64_t hash, const struct oriel_python_frame *frame)
{
    struct oriel_code_address place = {.line = frame->line};
    memcpy(place.file, frame->file, sizeof frame->file);
    memcpy(place.function, frame->function, sizeof frame->function);
    pthread_mutex_lock(&mutex);
    const void *value = oriel_hash_table_find(&known_lines, hash);
    struct known_place known = {PLACE_PYTHON, 0};
    if (value != NULL) {
        known = unpacked(value);
    } else {
        known.number = place_add(&place);
        oriel_hash_table_set(&known_lines, hash, packed(known));
    }
    pthread_mutex_unlock(&mutex);
    return known.number;
}

/* The line of Python that this thread executes; otherwise, if there is none. */
static struct oriel_site_place python_place(struct oriel_site_place otherwise)
{
    struct oriel_python_frame frame;
    if (!oriel_python_frame_find(true, &frame))
        return otherwise;
    uint64_t hash = text_hash(text_hash(frame.line, frame.file), frame.function) >> 8;
    const void *value = oriel_hash_table_find(&known_lines, hash);
    return (struct oriel_site_place){hash, value != NULL ? unpacked(value).number
                                                         : line_add(hash, &frame)};
}

/* --- the stack --- */

/* The first address on the stack outside wrappers; 0: none. */
static uint64_t caller_of_wrapper(void)
{
    void *frames[FRAMES];
    int count = oriel_code_address_stack(frames, FRAMES);
    for (int i = 0; i < count; i++)
        if (address_find((uint64_t)(uintptr_t)frames[i]).kind != PLACE_WRAPPER)
            return (uint64_t)(uintptr_t)frames[i];
    return 0;
}

struct oriel_site_place oriel_site_place_find(const void *address)
{
    struct oriel_site_place place = {.address = (uint64_t)(uintptr_t)address};
    struct known_place known = address_find(place.address);
    if (known.kind == PLACE_WRAPPER) {
        place.address = caller_of_wrapper();
        known = address_find(place.address);
    }
    place.number = known.number;
    return known.kind == PLACE_PYTHON ? python_place(place) : place;
}

/* --- the end --- */

void oriel_site_places_resolve(void)
{
    const struct oriel_site_places *list = places_list();
    void *answer = NULL;
    size_t answer_bytes = 0;
    size_t len_bytes = list == NULL ? 0 : list->count * sizeof list->places[0];
    if (len_bytes > 0 &&
        oriel_helper_request(ORIEL_HELPER_PLACES, list->places, len_bytes, &answer,
                             &answer_bytes) &&
        answer_bytes == len_bytes)
        oriel_trace_sites_set(answer, list->count); /* which keeps it */
    else
        free(answer);
}
