/* Distinguishes hosts by a symbol that each host's libraries, and those with its ABI, must define
 * for programs compiled with its mpi.h. Two hosts may be loaded, because this library loads its
 * own. The symbol is therefore looked up in the object that the program's calls reach, or in the
 * calling object. If both symbols or neither are found, the program continues.
 *
 * A library of MPI's standard ABI has no such symbol; it returns the version of the ABI. Where a
 * native library has that function, it returns a negative version (MPI-5.0, 20.2). */
#include "host/confirm.h"

#include "base/code_address.h"
#include "base/log.h"
#include "host/host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STATUS_REFUSED = 2, /* the same as `oriel run` */
    ABI_VERSION = 1     /* with which this library was written */
};

/* MPI_COMM_WORLD of Open MPI, and MPI_DUP_FN of MPICH. */
static const struct interface {
    const char *name, *title, *mark;
} interfaces[] =
    {
        {"mpich", "MPICH", "MPIR_Dup_fn"},
        {"openmpi", "Open MPI", "ompi_mpi_comm_world"},
        {"abi", "MPI's standard ABI", NULL},
},
  unknown_abi = {"", "", NULL};

/* The library that defines an interface. */
struct place {
    Dl_info library;
    int abi_major, abi_minor; /* of the standard ABI */
};

typedef int abi_version_fn(int *major, int *minor);

/* The interface of an object that reports a version of the standard ABI; NULL if it does not. */
static const struct interface *abi_of_object(void *object, struct place *where)
{
    abi_version_fn *version = (abi_version_fn *)dlsym(object, "PMPI_Abi_get_version");
    if (version == NULL || dladdr((void *)version, &where->library) == 0 ||
        version(&where->abi_major, &where->abi_minor) != 0 || where->abi_major < 0)
        return NULL;
    return where->abi_major == ABI_VERSION ? &interfaces[2] : &unknown_abi;
}

static bool is_own_interface(const struct interface *interface)
{
    return strcmp(interface->name, oriel_host_name()) == 0;
}

/* The single interface that the object or its dependencies define, and where. NULL for none or
 * several. */
static const struct interface *interface_in_object(void *object, struct place *where)
{
    const struct interface *found = abi_of_object(object, where);
    int count = 0;
    if (found != NULL)
        return found;
    for (size_t i = 0; i < sizeof interfaces / sizeof interfaces[0]; i++) {
        void *mark = interfaces[i].mark != NULL ? dlsym(object, interfaces[i].mark) : NULL;
        if (mark != NULL && dladdr(mark, &where->library) != 0) {
            found = &interfaces[i];
            count++;
        }
    }
    return count == 1 ? found : NULL;
}

/* The same for the object at an address. The executable itself is skipped: its lookup scope
 * contains everything that it was started with. */
static const struct interface *interface_at(const void *address, struct place *where)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (address == NULL || dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 ||
        map == NULL || map->l_name[0] == '\0')
        return NULL;
    void *object = dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (object == NULL)
        return NULL;
    const struct interface *found = interface_in_object(object, where);
    dlclose(object);
    return found;
}

static bool is_in_object(const void *address, const Dl_info *object)
{
    Dl_info info;
    return dladdr(address, &info) != 0 && info.dli_fbase == object->dli_fbase;
}

/* If exported names call their entries instead of jumping to them, the caller is in this library.
 * That happens without optimisation and with coverage counters. Returns the first caller outside.
 */
static const void *caller_outside(const void *caller, const Dl_info *self)
{
    enum { FRAMES = 16 };
    void *frames[FRAMES];
    int count = is_in_object(caller, self) ? oriel_code_address_stack(frames, FRAMES) : 0;
    for (int i = 0; i < count; i++)
        if (!is_in_object(frames[i], self))
            return frames[i];
    return caller;
}

/* What the user can do. Without Oriel a process may use several MPIs. */
static void advice_format(const struct interface *interface, char *out, size_t room)
{
    int is_started = 0;
    oriel_host()->Initialized(&is_started);
    if (is_started)
        snprintf(out, room, "it uses two MPIs; ORIEL_BYPASS=1 runs it without Oriel");
    else if (interface == &unknown_abi)
        snprintf(out, room, "ORIEL_BYPASS=1 runs the program without Oriel");
    else
        snprintf(out, room, "start it with oriel run --host %s, or link it to oriel-%s",
                 interface->name, interface->name);
}

void oriel_host_confirm(const void *caller)
{
    struct place where = {.abi_major = 0};
    Dl_info self;
    const struct interface *interface = interface_at(oriel_host_symbol("PMPI_Init"), &where);
    bool is_known = dladdr((void *)(uintptr_t)oriel_host_confirm, &self) != 0;
    if (is_known && (interface == NULL || is_own_interface(interface)))
        interface = interface_at(caller_outside(caller, &self), &where);
    if (interface == NULL || is_own_interface(interface))
        return;
    char reason[ORIEL_LOG_REFUSAL_BYTES] = "", advice[80], title[60];
    snprintf(title, sizeof title, "%s", interface->title);
    if (interface == &unknown_abi)
        snprintf(title, sizeof title, "version %d.%d of MPI's standard ABI", where.abi_major,
                 where.abi_minor);
    advice_format(interface, advice, sizeof advice);
    for (size_t i = 0; i < sizeof interfaces / sizeof interfaces[0]; i++)
        if (is_own_interface(&interfaces[i]) && is_known)
            snprintf(reason, sizeof reason,
                     "this is Oriel for %s (%s), but the program uses %s (%s): %s [O6]",
                     interfaces[i].title, self.dli_fname, title, where.library.dli_fname, advice);
    oriel_log_refusal(reason);
    exit(STATUS_REFUSED);
}

void oriel_host_confirm_once(void)
{
    static _Atomic bool confirmed;
    if (atomic_load_explicit(&confirmed, memory_order_relaxed))
        return;
    oriel_host_confirm(NULL);
    atomic_store_explicit(&confirmed, true, memory_order_relaxed);
}
