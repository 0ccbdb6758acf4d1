/* The initialisation of this replacement of libtsan. It finds the checker among the preloaded
 * libraries, and, in each call of __tsan_init, the modules that use it. (Compilers jump to
 * __tsan_init, so its return address does not show the module.) It runs from the program's first
 * instructions on, before any constructor. */
#include "check/tsan/find_checker.h"

#include "check/tsan/thread_calls.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { MODULES = 256 };

struct module {
    uintptr_t low;
    uintptr_t high;
};

static bool module_contains(const struct module *module, const void *address)
{
    return (uintptr_t)address >= module->low && (uintptr_t)address < module->high;
}

const struct oriel_watched_pages *oriel_tsan_watch;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct module modules[MODULES];
static _Atomic int modules_count;
/* modules loaded and unloaded up to the last search */
static unsigned long long modules_seen;

bool oriel_tsan_is_instrumented(const void *address)
{
    int count = atomic_load_explicit(&modules_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (module_contains(&modules[i], address))
            return true;
    return false;
}

/* This library, from the first __tsan_init on. */
static struct module own_module;

static bool is_watcher(const void *address)
{
    return module_contains(&own_module, address);
}

static struct module oriel_modules[3]; /* the checker, the library, and this one */
static _Atomic int oriel_modules_count;

bool oriel_tsan_is_oriel(const void *address)
{
    int count = atomic_load_explicit(&oriel_modules_count, memory_order_acquire);
    for (int i = 0; i < count; i++)
        if (module_contains(&oriel_modules[i], address))
            return true;
    return false;
}

static bool module_is_oriel(const struct dl_phdr_info *info, const struct module *module)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash != NULL ? slash + 1 : info->dlpi_name;
    return strncmp(name, "liboriel", strlen("liboriel")) == 0 ||
           module_contains(module, &oriel_modules);
}

static void oriel_module_add(const struct module *module)
{
    int count = atomic_load_explicit(&oriel_modules_count, memory_order_relaxed);
    if (count == sizeof oriel_modules / sizeof oriel_modules[0] ||
        oriel_tsan_is_oriel((const void *)module->low))
        return;
    oriel_modules[count] = *module;
    atomic_store_explicit(&oriel_modules_count, count + 1, memory_order_release);
}

/* A module's relocations, from its dynamic section. */
struct dynamic {
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * relocations[2];
    size_t counts[2];
};

static struct dynamic module_dynamic(const struct dl_phdr_info *info)
{
    struct dynamic dynamic = {0};
    const ElfW(Dyn) *entry = NULL;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        switch (entry->d_tag) {
        case DT_SYMTAB: dynamic.symbols = (const ElfW(Sym) *)entry->d_un.d_ptr; break;
        case DT_STRTAB: dynamic.names = (const char *)entry->d_un.d_ptr; break;
        case DT_RELA: dynamic.relocations[0] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_RELASZ: dynamic.counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        case DT_JMPREL: dynamic.relocations[1] = (const ElfW(Rela) *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: dynamic.counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
        default: break;
        }
    }
    return dynamic;
}

/* Whether the module calls __tsan_init. The vdso, whose pointers are not relocated, does not. */
static bool module_calls_init(const struct dl_phdr_info *info)
{
    struct dynamic dynamic = module_dynamic(info);
    if (dynamic.symbols == NULL || (uintptr_t)dynamic.symbols < info->dlpi_addr ||
        dynamic.names == NULL)
        return false;
    for (int table = 0; table < 2; table++)
        for (size_t i = 0; dynamic.relocations[table] != NULL && i < dynamic.counts[table]; i++) {
            const ElfW(Sym) *symbol =
                &dynamic.symbols[ELF64_R_SYM(dynamic.relocations[table][i].r_info)];
            if (symbol->st_shndx == SHN_UNDEF &&
                strcmp(dynamic.names + symbol->st_name, "__tsan_init") == 0)
                return true;
        }
    return false;
}

static int instrumented_module_add(struct dl_phdr_info *info, size_t size, void *closure)
{
    struct module module = {UINTPTR_MAX, 0};
    int count = atomic_load_explicit(&modules_count, memory_order_relaxed);
    (void)size, (void)closure;
    if (info->dlpi_adds + info->dlpi_subs == modules_seen)
        return 1;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t high = low + info->dlpi_phdr[i].p_memsz;
        module.low = low < module.low ? low : module.low;
        module.high = high > module.high ? high : module.high;
    }
    if (module.high != 0 && module_is_oriel(info, &module))
        oriel_module_add(&module);
    if (module_contains(&module, &own_module))
        own_module = module;
    if (module.high == 0 || count == MODULES ||
        oriel_tsan_is_instrumented((const void *)module.low) || !module_calls_init(info))
        return 0;
    modules[count] = module;
    atomic_store_explicit(&modules_count, count + 1, memory_order_release);
    return 0;
}

static int modules_seen_update(struct dl_phdr_info *info, size_t size, void *closure)
{
    (void)size, (void)closure;
    modules_seen = info->dlpi_adds + info->dlpi_subs;
    return 1;
}

ORIEL_TSAN_ENTRY void __tsan_init(void);
ORIEL_TSAN_ENTRY void __tsan_init(void)
{
    pthread_mutex_lock(&mutex);
    if (oriel_tsan_watch == NULL) {
        oriel_check_watch_fn *watch =
            (oriel_check_watch_fn *)(uintptr_t)dlsym(RTLD_DEFAULT, "oriel_check_watch");
        oriel_tsan_watch = watch != NULL ? watch(oriel_tsan_is_instrumented, is_watcher) : NULL;
    }
    dl_iterate_phdr(instrumented_module_add, NULL);
    dl_iterate_phdr(modules_seen_update, NULL);
    pthread_mutex_unlock(&mutex);
}
