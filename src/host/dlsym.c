/* Handles programs that look up MPI functions through a library's handle. `dlsym` on such a handle
 * finds the host's function. Calls through it would bypass this library, and the host does not know
 * Oriel's windows. So this library interposes the C library's `dlsym`.
 *
 * 1. A lookup by handle is executed as requested. A result in the host's libraries is replaced by
 *    this library's function of the same name, if there is one. Other results are returned
 *    unchanged: functions of the program, of a tool, or of the host.
 * 2. Lookups with RTLD_DEFAULT or RTLD_NEXT, and of names outside MPI, are passed on with a jump,
 *    because the C library identifies the caller by the return address. So are lookups that fail,
 *    so dlerror has the right text.
 * 3. RTLD_NEXT from a library that was loaded after the start searches the dependencies of that
 *    library. It does not search the program's list, in which Oriel precedes the host. Such a
 *    lookup is executed with the handles of those dependencies, as in 1.
 * 4. The checker has its own copy, which precedes Oriel's. For the checker Oriel is a host: lookups
 *    pass through both copies, and end at the first of the two libraries that has the function.
 *
 * `dlvsym` is not interposed: hosts have no symbol versions. The compiler's sanitisers look up the
 * functions they replace before they have started. So this file is not instrumented, and calls no
 * replaced function until it knows that the name is MPI's. */
#include "base/code_address.h"
#include "base/pass_on.h"
#include "host/host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>

typedef void *lookup_fn(void *handle, const char *name);

struct oriel_passed_on oriel_dlsym_decide(void *handle, const char *name, const void *caller);

void (*oriel_dlsym_watch)(void);

static size_t objects_at_start; /* 0 while this library is still being loaded */

/* The next dlsym after this library's: another library's, or the C library's. */
static lookup_fn *next_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"};
    static _Atomic(lookup_fn *) known;
    lookup_fn *next = atomic_load_explicit(&known, memory_order_relaxed);
    for (size_t i = 0; i < sizeof versions / sizeof versions[0] && next == NULL; i++)
        next = (lookup_fn *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    if (next != NULL && atomic_load_explicit(&known, memory_order_relaxed) == NULL) {
        lookup_fn *other = (lookup_fn *)(uintptr_t)next(RTLD_NEXT, "dlsym");
        next = other != NULL ? other : next;
        atomic_store_explicit(&known, next, memory_order_relaxed);
    }
    return next;
}

/* Names of MPI, of its Fortran bindings and of the hosts' functions in api/: they have "mpi" after
 * at most one letter. */
static bool is_mpi_name(const char *name)
{
    if (name[0] == 'P' || name[0] == 'p' || name[0] == 'o')
        name++;
    return (name[0] | 32) == 'm' && (name[1] | 32) == 'p' && (name[2] | 32) == 'i';
}

static const struct link_map *object_at(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    return address != NULL && dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map
                                                                                           : NULL;
}

static const struct link_map *this_object(void)
{
    return object_at((const void *)(uintptr_t)oriel_dlsym_decide);
}

/* For the checker, Oriel is the host of some functions. */
static bool is_host(const struct link_map *object)
{
    return object != NULL && (object == object_at(oriel_host_symbol("PMPI_Init")) ||
                              object == object_at(oriel_host_symbol("PMPI_Comm_rank")) ||
                              oriel_code_address_is_binding(object->l_name));
}

/* This library's function of that name, or NULL. */
static void *own_function_find(const char *name)
{
    static _Atomic(void *) self; /* never closed */
    const struct link_map *object = this_object();
    void *handle = atomic_load_explicit(&self, memory_order_relaxed);
    if (handle == NULL && object != NULL) {
        handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
        atomic_store_explicit(&self, handle, memory_order_relaxed);
    }
    void *found = handle == NULL ? NULL : next_dlsym()(handle, name);
    return found != NULL && object_at(found) == object ? found : NULL;
}

/* --- RTLD_NEXT (3) --- */

struct position {
    const struct link_map *object; /* NULL counts all objects */
    size_t before;
};

/* Objects are visited in load order. */
static int count_object(struct dl_phdr_info *info, size_t len_bytes, void *context)
{
    (void)len_bytes;
    struct position *position = context;
    if (position->object != NULL && info->dlpi_addr == position->object->l_addr)
        return 1;
    position->before++;
    return 0;
}

static bool is_loaded_late(const struct link_map *object)
{
    struct position position = {.object = object};
    return objects_at_start > 0 && dl_iterate_phdr(count_object, &position) != 0 &&
           position.before >= objects_at_start;
}

__attribute__((constructor)) static void objects_count(void)
{
    struct position position = {.object = NULL};
    dl_iterate_phdr(count_object, &position);
    objects_at_start = position.before;
}

/* Looks the name up in the dependencies of a library that was loaded late. Returns NULL for other
 * callers. */
static void *next_function_find(const void *caller, const char *name)
{
    const struct link_map *object = object_at(caller);
    const char *strings = NULL;
    void *found = NULL;
    if (object == NULL || !is_loaded_late(object))
        return NULL;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            strings = (const char *)entry->d_un.d_ptr;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL && found == NULL; entry++) {
        void *needed = entry->d_tag == DT_NEEDED
                           ? dlopen(strings + entry->d_un.d_val, RTLD_LAZY | RTLD_NOLOAD)
                           : NULL;
        if (needed == NULL)
            continue;
        found = next_dlsym()(needed, name);
        dlclose(needed);
    }
    return found;
}

/* --- the lookup --- */

__attribute__((used)) struct oriel_passed_on oriel_dlsym_decide(void *handle, const char *name,
                                                                const void *caller)
{
    lookup_fn *next = next_dlsym();
    const struct oriel_passed_on as_asked = {.next = (void *)(uintptr_t)next};
    if (handle != RTLD_DEFAULT && handle != RTLD_NEXT && oriel_dlsym_watch != NULL)
        oriel_dlsym_watch();
    if (handle == RTLD_DEFAULT || name == NULL || !is_mpi_name(name))
        return as_asked;
    void *found = handle == RTLD_NEXT ? next_function_find(caller, name) : next(handle, name);
    void *own = found != NULL && is_host(object_at(found)) ? own_function_find(name) : NULL;
    if (own != NULL)
        found = own;
    return found == NULL ? as_asked : (struct oriel_passed_on){.result = found};
}

ORIEL_PASS_ON(dlsym, oriel_dlsym_decide, void *, const char *)
