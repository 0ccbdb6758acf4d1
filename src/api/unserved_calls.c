/* Warns about MPI calls of this process that bypass Oriel. dlsym serves lookups by handle
 * (host/dlsym.c). Not served are libraries loaded with RTLD_DEEPBIND, other copies of MPI (from
 * another file, or in a namespace of dlmopen), and addresses that a program found in other ways.
 * Their calls do not affect Oriel's windows. So the loader's relocation slots for MPI functions are
 * checked before a window is created, if libraries were loaded, and at the end. The check at the
 * end also covers MPI libraries.
 *
 * Slots are read with the loader's list of objects locked, and so without the loader's functions,
 * which acquire more locks. Rank 0 prints the warning, once per job. */
#include "api/unserved_calls.h"
#include "api/spawn_env.h"
#include "base/job.h"
#include "base/log.h"
#include "base/options.h"
#include "host/host.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pid_t own_pid;
static atomic_flag written = ATOMIC_FLAG_INIT;

static const struct link_map *object_at(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    return address != NULL && dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 ? map
                                                                                           : NULL;
}

/* --- slots --- */

struct search {
    ElfW(Addr) host; /* its load address */
    ElfW(Addr) begin, end;
    char object[512]; /* the object that bypasses Oriel; "" for none */
    char function[64];
};

static bool is_served(const char *name)
{
    static const char *const names[] = {
#define FUNCTION(name, parameters, arguments) "MPI_" #name,
#define FORWARD(name, parameters, arguments)
#define LARGE FUNCTION
#include "host/functions.def"
#undef FUNCTION
#undef FORWARD
#undef LARGE
    };
    name += name[0] == 'P';
    for (size_t i = 0; i < sizeof names / sizeof names[0] && name[0] == 'M'; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The required parts of an object's dynamic section. */
struct relocations {
    const ElfW(Sym) * symbols;
    const char *strings;
    const ElfW(Rela) * tables[2];
    size_t lens_bytes[2];
};

static void relocations_find(const struct dl_phdr_info *object, struct relocations *out)
{
    const ElfW(Dyn) *entry = NULL;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB: out->symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: out->strings = (const void *)entry->d_un.d_ptr; break;
        case DT_RELA: out->tables[0] = (const void *)entry->d_un.d_ptr; break;
        case DT_RELASZ: out->lens_bytes[0] = entry->d_un.d_val; break;
        case DT_JMPREL: out->tables[1] = (const void *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: out->lens_bytes[1] = entry->d_un.d_val; break;
        default: break;
        }
    }
}

/* Whether a slot has the host's function instead of Oriel's. */
static bool slot_bypasses_oriel(const struct search *search, const void *slot, const char *name)
{
    ElfW(Addr) target;
    if (!is_served(name))
        return false;
    memcpy(&target, slot, sizeof target);
    return target >= search->begin && target < search->end;
}

static int find_host(struct dl_phdr_info *object, size_t len_bytes, void *context)
{
    (void)len_bytes;
    struct search *search = context;
    if (object->dlpi_addr != search->host)
        return 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && search->end < search->host + part->p_vaddr + part->p_memsz)
            search->end = search->host + part->p_vaddr + part->p_memsz;
    }
    search->begin = search->host;
    return 1;
}

static int find_caller(struct dl_phdr_info *object, size_t len_bytes, void *context)
{
    (void)len_bytes;
    struct search *search = context;
    struct relocations all;
    if (object->dlpi_addr == search->host)
        return 0;
    relocations_find(object, &all);
    if (all.symbols == NULL || all.strings == NULL)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        const ElfW(Rela) *end =
            all.tables[i] + (all.tables[i] == NULL ? 0 : all.lens_bytes[i] / sizeof *end);
        for (const ElfW(Rela) *at = all.tables[i]; at < end; at++) {
            size_t symbol = ELF64_R_SYM(at->r_info);
            const char *name = symbol == 0 ? "" : all.strings + all.symbols[symbol].st_name;
            if (!slot_bypasses_oriel(search, (const void *)(object->dlpi_addr + at->r_offset),
                                     name))
                continue;
            snprintf(search->object, sizeof search->object, "%s",
                     object->dlpi_name[0] == '\0' ? "the program" : object->dlpi_name);
            snprintf(search->function, sizeof search->function, "%s", name);
            return 1;
        }
    }
    return 0;
}

/* Warns about the first object that calls the host past Oriel; returns false if there is none. If
 * Oriel does not precede the host for the program itself, slots correctly have the host's
 * functions. */
static bool report_slots(const struct link_map *host)
{
    struct search search = {.host = host->l_addr};
    if (dlsym(RTLD_DEFAULT, "PMPI_Win_fence") != oriel_host_symbol("PMPI_Win_fence") &&
        dl_iterate_phdr(find_host, &search) != 0)
        dl_iterate_phdr(find_caller, &search);
    if (search.object[0] != '\0' && !atomic_flag_test_and_set(&written))
        oriel_warn_job("%s calls %s of %s without Oriel (was it loaded with RTLD_DEEPBIND?): "
                       "such calls have no effect on Oriel's windows [O13]",
                       search.object, search.function, host->l_name);
    return search.object[0] != '\0';
}

static int read_loads(struct dl_phdr_info *object, size_t len_bytes, void *context)
{
    (void)len_bytes;
    *(unsigned long long *)context = object->dlpi_adds;
    return 1;
}

void oriel_unserved_calls_check(void)
{
    static _Atomic unsigned long long seen;
    unsigned long long loads = 0;
    dl_iterate_phdr(read_loads, &loads);
    if (atomic_exchange_explicit(&seen, loads, memory_order_relaxed) == loads ||
        oriel_job_rank() > 0)
        return;
    const struct link_map *host = object_at(oriel_host_symbol("PMPI_Init"));
    if (host != NULL)
        report_slots(host);
}

/* --- MPI libraries --- */

/* The function of that name that a library defines, or NULL, from its GNU hash table. dlsym needs a
 * handle, and dlopen would run the library's constructors again: at exit, glibc takes a library for
 * new once it has called its destructors. */
static const void *function_find(const struct link_map *object, const char *name)
{
    enum { WORDS_OF_HEADER = 4, LAST = 1 };
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const uint32_t *table = NULL;
    uint32_t hash = 5381;
    for (const ElfW(Dyn) *entry = object->l_ld; entry->d_tag != DT_NULL; entry++)
        switch (entry->d_tag) {
        case DT_SYMTAB: symbols = (const void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: strings = (const void *)entry->d_un.d_ptr; break;
        case DT_GNU_HASH: table = (const void *)entry->d_un.d_ptr; break;
        default: break;
        }
    if (table == NULL || table[0] == 0)
        return NULL;
    for (const char *at = name; *at != '\0'; at++)
        hash = hash * 33 + (unsigned char)*at;
    /* The numbers of buckets, of the first symbol and of the filter's words; then the filter, the
     * buckets, and the hashes of all symbols from the first on. */
    const uint32_t *buckets =
        table + WORDS_OF_HEADER + table[2] * (sizeof(ElfW(Addr)) / sizeof *table);
    const uint32_t *hashes = buckets + table[0];
    uint32_t i = buckets[hash % table[0]];
    if (i < table[1])
        return NULL;
    for (bool is_last = false; !is_last; i++) {
        const uint32_t found = hashes[i - table[1]];
        is_last = (found & LAST) != 0;
        if ((found | LAST) == (hash | LAST) && symbols[i].st_shndx != SHN_UNDEF &&
            strcmp(strings + symbols[i].st_name, name) == 0)
            return (const void *)(object->l_addr + symbols[i].st_value);
    }
    return NULL;
}

/* Whether this library is an MPI that has been started. */
static bool is_started(const struct link_map *object)
{
    int flag = 0;
    const void *function =
        strstr(object->l_name, "mpi") == NULL ? NULL : function_find(object, "PMPI_Initialized");
    if (function != NULL)
        ((__typeof__(PMPI_Initialized) *)(uintptr_t)function)(&flag);
    return flag != 0;
}

/* A started MPI other than the host, in any namespace; NULL for none. */
static const struct link_map *other_mpi(const struct link_map *host)
{
    for (const struct r_debug_extended *space = (const void *)&_r_debug; space != NULL;
         space = space->base.r_version >= 2 ? space->r_next : NULL)
        for (const struct link_map *object = space->base.r_map; object != NULL;
             object = object->l_next)
            if (object != host && is_started(object))
                return object;
    return NULL;
}

static void report_unserved_mpi(void)
{
    const struct link_map *host = object_at(oriel_host_symbol("PMPI_Init"));
    const struct link_map *other = host == NULL ? NULL : other_mpi(host);
    if (host == NULL || (other == NULL && !is_started(host)) || oriel_options()->bypass ||
        report_slots(host))
        return;
    if (other != NULL)
        oriel_warn_job("the program used the MPI in %s, and Oriel serves %s: Oriel did not serve "
                       "its windows [O13]",
                       other->l_name, host->l_name);
    else if (!oriel_spawn_env_has_entered())
        oriel_warn_job("the program started the MPI in %s without Oriel (linked ahead of it, or "
                       "found without dlsym): Oriel did not serve its windows [O13]",
                       host->l_name);
}

__attribute__((constructor)) static void record_own_pid(void)
{
    own_pid = getpid();
}

__attribute__((destructor)) static void report_at_exit(void)
{
    if (getpid() == own_pid && oriel_job_rank() <= 0)
        report_unserved_mpi();
}
