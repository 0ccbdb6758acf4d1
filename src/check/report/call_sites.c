/* Call sites by module and offset. The checker's shared memory has tables of modules and of
 * numbers, each entry once. An entry is complete before its number is published, and never changes.
 * With several nodes the first node's tables are authoritative. The other nodes fill their tables
 * from them, slot by slot as they reach one, so codes and numbers mean the same everywhere.
 *
 * A code has the module's number, counted from 1, in its upper 16 bits and the offset below.
 * Without a module it is a bare address. A function of Python is such a module, too: its path is
 * followed by its name, and the offset is the line. */
#include "check/report/call_sites.h"

#include "base/atomic.h"
#include "base/code_address.h"
#include "base/python_frames.h"
#include "check/report/finding.h"

#include <stdio.h>
#include <string.h>
#include <unwind.h>

enum {
    MODULES = 1024,
    NUMBERS = 4096,         /* a power of two */
    FUNCTIONS_CACHED = 128, /* of Python, by each thread; a power of two */
    CACHE_SETS = 128,       /* of a thread's cache of addresses */
    CACHE_WAYS = 4,         /* slots of a set */
    CODE_SHIFT = 48,
};

struct module {
    char path[ORIEL_RECORD_LONG];
    uint8_t build_id[20];
    uint32_t is_python; /* path is the file, and after it, in the same array, the function */
};
_Static_assert((int)ORIEL_PYTHON_FILE + (int)ORIEL_PYTHON_FUNCTION <= (int)ORIEL_RECORD_LONG,
               "a path has room for file and function");
_Static_assert(sizeof(struct module) <= ORIEL_SITE_SLOT_BYTES, "a slot has room for a module");

struct number {
    uint64_t code;
    _Atomic uint32_t call; /* 0: empty */
    uint32_t init;         /* number of the call that made the request of operations here; 0 */
};

struct sites {
    struct oriel_shm_lock lock;
    _Atomic uint8_t known[MODULES]; /* modules that are filled in */
    struct module modules[MODULES];
    struct number numbers[NUMBERS];
};

static const struct oriel_key sites_key = {
    .words = {UINT64_C(0x5349544553)}}; /* "SITES": above all kinds of order.h */
static struct sites *sites;
static oriel_site_ask_fn *ask; /* NULL: these tables are the first node's */

const char *oriel_call_name(uint16_t call)
{
    static const char *const names[] = {
        [ORIEL_CALL_NONE] = "",
#define CALL(name)        [ORIEL_CALL_##name] = "MPI_" #name,
#define LOCAL(name, text) [ORIEL_CALL_##name] = text,
#include "check/report/checked_calls.def"
#undef CALL
#undef LOCAL
    };
    return call < ORIEL_CALL_COUNT ? names[call] : "?";
}

static void sites_init(void *at)
{
    struct sites *fresh = at;
    oriel_shm_lock_init(&fresh->lock);
}

enum oriel_status oriel_call_sites_start(void)
{
    ask = NULL;
    sites = oriel_shm_at(oriel_shm_find(&sites_key, sizeof *sites, sites_init));
    return sites == NULL ? oriel_fail(ORIEL_E_NO_MEM, "the checker has no memory for call sites")
                         : ORIEL_OK;
}

/* --- slots, under the lock --- */

enum { TABLE_MODULES, TABLE_NUMBERS };

/* Fills an empty slot with wanted, or with the first node's entry. Returns whether the slot is
 * filled now. */
static bool module_claim(uint32_t at, const struct module *wanted)
{
    struct module entry = {.is_python = 0};
    if (sites->known[at])
        return true;
    if (wanted != NULL)
        entry = *wanted;
    if (ask != NULL ? !ask(TABLE_MODULES, at, &entry, sizeof entry, wanted != NULL)
                    : wanted == NULL)
        return false;
    sites->modules[at] = entry;
    sites->modules[at].path[sizeof entry.path - 1] = '\0'; /* it may come from another node */
    atomic_store_explicit(&sites->known[at], 1, memory_order_release);
    return true;
}

static bool number_claim(uint32_t at, const struct number *wanted)
{
    struct number *number = &sites->numbers[at];
    struct number entry = {.call = 0};
    if (number->call != 0)
        return true;
    if (wanted != NULL)
        entry = *wanted;
    if (ask != NULL ? !ask(TABLE_NUMBERS, at, &entry, sizeof entry, wanted != NULL)
                    : wanted == NULL)
        return false;
    number->code = entry.code;
    number->init = entry.init;
    atomic_store_explicit(&number->call, entry.call, memory_order_release);
    return true;
}

size_t oriel_site_slot(uint32_t table, uint32_t slot, void *entry, size_t entry_bytes,
                       uint64_t *filled)
{
    size_t len_bytes = table == TABLE_MODULES ? sizeof(struct module) : sizeof(struct number);
    const void *wanted = entry_bytes == len_bytes ? entry : NULL;
    *filled = 0;
    /* other nodes may ask before this node starts */
    if (sites == NULL || slot >= (table == TABLE_MODULES ? MODULES : NUMBERS))
        return 0;
    oriel_shm_lock(&sites->lock);
    *filled = table == TABLE_MODULES ? module_claim(slot, wanted) : number_claim(slot, wanted);
    memcpy(entry,
           table == TABLE_MODULES ? (const void *)&sites->modules[slot]
                                  : (const void *)&sites->numbers[slot],
           len_bytes);
    oriel_shm_unlock(&sites->lock);
    return len_bytes;
}

void oriel_sites_remote_set(oriel_site_ask_fn *first_node)
{
    ask = first_node;
}

/* --- codes --- */

/* Returns the number of the module, and adds it if it is new; 0 when there are too many. */
static uint64_t module_number(const struct module *module)
{
    uint32_t at = 0;
    oriel_shm_lock(&sites->lock);
    while (at < MODULES && module_claim(at, module) &&
           memcmp(&sites->modules[at], module, sizeof *module) != 0)
        at++;
    bool found = at < MODULES && sites->known[at];
    oriel_shm_unlock(&sites->lock);
    return found ? at + 1 : 0;
}

static uint64_t code_find(uint64_t address)
{
    struct oriel_code_address place = {.offset = 0};
    struct module module = {.is_python = 0};
    uint64_t number = 0;
    if (oriel_code_address_find(address, &place)) {
        memcpy(module.path, place.module, sizeof module.path);
        memcpy(module.build_id, place.build_id, sizeof module.build_id);
        number = module_number(&module);
    }
    return number == 0 ? address
                       : number << CODE_SHIFT | (place.offset & ((UINT64_C(1) << CODE_SHIFT) - 1));
}

/* --- code of Python --- */

/* A thread's cache of the numbers of functions. */
struct known_function {
    uint64_t hash;
    uint64_t number;
};

static uint64_t text_hash(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Once in each process. */
static void python_note(void)
{
    static _Atomic bool is_noted;
    if (!atomic_exchange_explicit(&is_noted, true, memory_order_relaxed))
        oriel_finding_count(ORIEL_COUNT_PYTHON);
}

/* 0: the table is full. */
static uint64_t python_function_number(const struct oriel_python_frame *frame)
{
    static _Thread_local struct known_function cache[FUNCTIONS_CACHED];
    uint64_t hash = text_hash(text_hash(1, frame->file), frame->function) | 1;
    struct known_function *known = &cache[(hash >> 32) & (FUNCTIONS_CACHED - 1)];
    if (oriel_likely(known->hash == hash))
        return known->number;
    struct module module = {.is_python = 1};
    size_t file_bytes = strlen(frame->file) + 1;
    memcpy(module.path, frame->file, file_bytes);
    memcpy(module.path + file_bytes, frame->function, strlen(frame->function) + 1);
    python_note();
    *known = (struct known_function){hash, module_number(&module)};
    return known->number;
}

/* The code of the line in Python that this thread executes; otherwise, if there is none. */
static uint64_t python_code(bool waits, uint64_t otherwise)
{
    struct oriel_python_frame frame;
    uint64_t number = oriel_python_frame_find(waits, &frame) ? python_function_number(&frame) : 0;
    return number == 0 ? otherwise : number << CODE_SHIFT | frame.line;
}

/* --- addresses --- */

/* Whose code an address is in. */
enum known_kind {
    KNOWN_PROGRAM,
    KNOWN_RUNTIME,        /* the call is further up the stack */
    KNOWN_PYTHON_BINDING, /* the call is in Python */
    KNOWN_PYTHON_PART,    /* so is an end of memory there */
};

static enum known_kind kind_of(uint64_t code)
{
    const char *path = code >> CODE_SHIFT == 0 ? "" : sites->modules[(code >> CODE_SHIFT) - 1].path;
    return oriel_code_address_is_runtime(path) ? KNOWN_RUNTIME
           : oriel_python_is_binding(path)     ? KNOWN_PYTHON_BINDING
           : oriel_python_is_part(path)        ? KNOWN_PYTHON_PART
                                               : KNOWN_PROGRAM;
}

/* A thread's cache of the codes of addresses. An address may be in any slot of its set, so the call
 * sites of one loop do not evict each other. */
struct known {
    uint64_t address, code;
    enum known_kind kind;
};

/* Searches all modules, and replaces the slots of a set in turn. */
static __attribute__((noinline)) struct known *code_cache_fill(struct known *set, uint64_t address)
{
    static _Thread_local unsigned fills;
    if (sites == NULL)
        return NULL;
    struct known *known = &set[fills++ % CACHE_WAYS];
    known->code = code_find(address);
    known->kind = kind_of(known->code);
    known->address = address;
    return known;
}

/* The result is valid until the next call. */
static inline const struct known *code_cache_find(uint64_t address)
{
    static _Thread_local struct known cache[CACHE_SETS][CACHE_WAYS];
    struct known *set = cache[(address ^ address >> 7) % CACHE_SETS];
    for (int i = 0; i < CACHE_WAYS; i++)
        if (oriel_likely(set[i].address == address))
            return &set[i];
    return code_cache_fill(set, address);
}

struct caller_search {
    uint64_t own; /* number of this library */
    struct known *place;
};

/* Visits frames from the innermost; address 0 is behind the last one. */
static _Unwind_Reason_Code frame_look(struct _Unwind_Context *frame, void *closure)
{
    const struct caller_search *search = closure;
    const struct known *known = code_cache_find((uint64_t)_Unwind_GetIP(frame));
    if (known->address == 0 || known->kind == KNOWN_RUNTIME ||
        known->code >> CODE_SHIFT == search->own)
        return _URC_NO_REASON;
    *search->place = *known;
    return _URC_NORMAL_STOP;
}

/* Replaces a place in a runtime library by the first one on the stack outside this library and
 * runtime libraries, if there is one. Each frame up to that one takes about 0.2 us. */
static void caller_of_runtime(struct known *place)
{
    struct caller_search search = {
        code_cache_find((uint64_t)(uintptr_t)oriel_site_code)->code >> CODE_SHIFT, place};
    if (place->kind == KNOWN_RUNTIME)
        (void)_Unwind_Backtrace(frame_look, &search);
}

uint64_t oriel_site_frame_code(const void *address)
{
    const struct known *known = code_cache_find((uint64_t)(uintptr_t)address);
    return known == NULL ? (uint64_t)(uintptr_t)address : known->code;
}

/* The call's code, where it is not at the known address itself. */
static __attribute__((noinline)) uint64_t code_elsewhere(const struct known *known)
{
    struct known place = *known;
    caller_of_runtime(&place);
    return place.kind == KNOWN_PYTHON_BINDING ? python_code(true, place.code) : place.code;
}

uint64_t oriel_site_code(const void *address)
{
    const struct known *known = code_cache_find((uint64_t)(uintptr_t)address);
    if (oriel_unlikely(known == NULL))
        return (uint64_t)(uintptr_t)address;
    return oriel_likely(known->kind == KNOWN_PROGRAM) ? known->code : code_elsewhere(known);
}

bool oriel_site_is_bound(const void *address)
{
    const struct known *known = code_cache_find((uint64_t)(uintptr_t)address);
    return known == NULL || known->kind == KNOWN_RUNTIME || known->kind == KNOWN_PYTHON_BINDING;
}

struct oriel_site oriel_site_here(const void *address, uint16_t call, uint32_t world_rank,
                                  uint16_t opening)
{
    return (struct oriel_site){.address = oriel_site_code(address),
                               .world_rank = world_rank,
                               .call = call,
                               .epoch = opening};
}

struct oriel_site oriel_site_coded(const struct oriel_site *site)
{
    struct oriel_site coded = *site;
    const struct known *known =
        coded.address >> CODE_SHIFT == 0 ? code_cache_find(coded.address) : NULL;
    if (known == NULL)
        return coded;
    struct known place = *known;
    caller_of_runtime(&place);
    coded.address = place.kind < KNOWN_PYTHON_BINDING ? place.code : python_code(false, place.code);
    return coded;
}

static uint16_t number_find(const struct oriel_site *site, uint16_t init)
{
    if (sites == NULL || site->call == ORIEL_CALL_NONE)
        return 0;
    uint64_t hash = (site->address ^ (uint64_t)site->call << 40 ^ (uint64_t)init << 24) *
                        UINT64_C(0x9e3779b97f4a7c15) >>
                    40;
    for (uint32_t step = 0; step < NUMBERS; step++) {
        uint32_t at = (uint32_t)(hash + step) & (NUMBERS - 1);
        struct number *number = &sites->numbers[at];
        if (atomic_load_explicit(&number->call, memory_order_acquire) == 0) {
            oriel_shm_lock(&sites->lock);
            bool filled = number_claim(
                at, &(struct number){.code = site->address, .call = site->call, .init = init});
            oriel_shm_unlock(&sites->lock);
            if (!filled)
                return 0;
        }
        if (number->code == site->address && number->call == site->call && number->init == init)
            return (uint16_t)(at + 1);
    }
    return 0;
}

uint16_t oriel_site_number(const struct oriel_site *site)
{
    return number_find(site, 0);
}

uint16_t oriel_site_number_started(uint16_t opening, uint16_t init)
{
    const struct oriel_site site = oriel_site_numbered(opening, 0);
    return number_find(&site, init);
}

struct oriel_site oriel_site_numbered(uint16_t number, uint32_t world_rank)
{
    struct oriel_site site = {.world_rank = world_rank};
    if (sites == NULL || number == 0 || number > NUMBERS)
        return site;
    if (oriel_unlikely(sites->numbers[number - 1].call == 0)) {
        oriel_shm_lock(&sites->lock);
        number_claim(number - 1U, NULL);
        oriel_shm_unlock(&sites->lock);
    }
    site.call =
        (uint16_t)atomic_load_explicit(&sites->numbers[number - 1].call, memory_order_acquire);
    site.address = sites->numbers[number - 1].code;
    site.epoch = (uint16_t)sites->numbers[number - 1].init;
    return site;
}

static bool module_is_known(uint64_t number)
{
    if (sites == NULL || number == 0 || number > MODULES)
        return false;
    oriel_shm_lock(&sites->lock);
    bool known = module_claim((uint32_t)number - 1, NULL);
    oriel_shm_unlock(&sites->lock);
    return known;
}

void oriel_site_describe(const struct oriel_site *site, struct oriel_record_site *out)
{
    memset(out, 0, sizeof *out);
    if (site->call == ORIEL_CALL_NONE)
        return;
    uint64_t number = site->address >> CODE_SHIFT;
    snprintf(out->call, sizeof out->call, "%s", oriel_call_name(site->call));
    out->rank = (int32_t)site->world_rank;
    if (!module_is_known(number))
        return;
    const struct module *module = &sites->modules[number - 1];
    uint64_t offset = site->address & ((UINT64_C(1) << CODE_SHIFT) - 1);
    if (module->is_python) {
        size_t file_bytes = strnlen(module->path, sizeof module->path - 1) + 1;
        snprintf(out->place.file, sizeof out->place.file, "%s", module->path);
        snprintf(out->place.function, sizeof out->place.function, "%.*s",
                 (int)(sizeof module->path - file_bytes), module->path + file_bytes);
        out->place.line = (uint32_t)offset;
        return;
    }
    memcpy(out->place.module, module->path, sizeof out->place.module);
    memcpy(out->place.build_id, module->build_id, sizeof out->place.build_id);
    out->place.offset = offset;
}
