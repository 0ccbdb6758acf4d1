/* Finds the module of an address with dl_iterate_phdr, and the callers with backtrace. A program
 * has the code of Oriel's Fortran module in itself. A note names its range
 * (bindings/fortran/shims.c). The module of the addresses there is the static library that they
 * come from. */
#include "base/code_address.h"

#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct address_search {
    uint64_t address;
    struct oriel_code_address *out;
};

static const char fortran_library[] = "liboriel_fortran.a";

/* The note has the distances of both ends of the range from the words that have them. */
static bool range_has(const char *note, uint64_t address)
{
    const int32_t *ends = (const int32_t *)note;
    const uint64_t at = (uint64_t)(uintptr_t)note;
    const uint64_t begin = at + (uint64_t)(int64_t)ends[0];
    const uint64_t end = at + sizeof ends[0] + (uint64_t)(int64_t)ends[1];
    return address - begin < end - begin;
}

static void notes_read(const struct dl_phdr_info *info, const ElfW(Phdr) * header, uint64_t address,
                       struct oriel_code_address *out)
{
    /* NOLINTNEXTLINE: the loader gives the address as an integer */
    const char *at = (const char *)(info->dlpi_addr + header->p_vaddr);
    const char *end = at + header->p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *name = at + sizeof *note;
        const char *bytes = name + ((note->n_namesz + 3U) & ~3U);
        at = bytes + ((note->n_descsz + 3U) & ~3U);
        if (at > end)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && memcmp(name, "GNU", 4) == 0)
            memcpy(out->build_id, bytes, note->n_descsz < 20 ? note->n_descsz : 20);
        if (note->n_namesz == 6 && memcmp(name, "Oriel", 6) == 0 && note->n_descsz == 8 &&
            range_has(bytes, address))
            memcpy(out->module, fortran_library, sizeof fortran_library);
    }
}

/* The path of the program itself, which has no name in the loader's list. It is read once. Called
 * through dl_iterate_phdr, which lets one thread in at a time. */
static const char *program_path(void)
{
    static char path[ORIEL_CODE_ADDRESS_LONG];
    static _Atomic bool is_read;
    if (!atomic_load_explicit(&is_read, memory_order_acquire)) {
        ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
        path[len < 0 ? 0 : len] = '\0';
        atomic_store_explicit(&is_read, len > 0, memory_order_release);
    }
    return path;
}

/* The kernel marks the path of a program whose file was removed or replaced. Where the build id
 * shows whether a file there is the same, the mark would only make two modules of one. */
static void deleted_mark_remove(struct oriel_code_address *place)
{
    static const char mark[] = " (deleted)";
    static const uint8_t unknown[sizeof place->build_id];
    size_t len = strlen(place->module), mark_len = sizeof mark - 1;
    if (len > mark_len && strcmp(place->module + len - mark_len, mark) == 0 &&
        memcmp(place->build_id, unknown, sizeof unknown) != 0)
        place->module[len - mark_len] = '\0';
}

static int module_match(struct dl_phdr_info *info, size_t size, void *closure)
{
    (void)size;
    struct address_search *search = closure;
    struct oriel_code_address *out = search->out;
    bool inside = false;
    for (int i = 0; i < info->dlpi_phnum && !inside; i++)
        inside = info->dlpi_phdr[i].p_type == PT_LOAD &&
                 search->address - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) <
                     info->dlpi_phdr[i].p_memsz;
    if (!inside)
        return 0;
    out->offset = search->address - info->dlpi_addr;
    snprintf(out->module, sizeof out->module, "%s",
             info->dlpi_name[0] == '\0' ? program_path() : info->dlpi_name);
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            notes_read(info, &info->dlpi_phdr[i], search->address, out);
    deleted_mark_remove(out);
    return 1;
}

bool oriel_code_address_find(uint64_t address, struct oriel_code_address *out)
{
    struct address_search search = {address, out};
    memset(out, 0, sizeof *out);
    return dl_iterate_phdr(module_match, &search) != 0;
}

static const char *path_basename(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool module_has_prefix(const char *module, const char *const *stems, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(path_basename(module), stems[i], strlen(stems[i])) == 0)
            return true;
    return false;
}

bool oriel_code_address_is_binding(const char *module)
{
    static const char *const stems[] = {"libmpichfort", "libmpifort", "libmpi_mpifh",
                                        "libmpi_usempi", fortran_library};
    return module_has_prefix(module, stems, sizeof stems / sizeof stems[0]);
}

bool oriel_code_address_is_wrapper(const char *module)
{
    return oriel_code_address_is_binding(module) ||
           strncmp(path_basename(module), "liboriel", strlen("liboriel")) == 0;
}

bool oriel_code_address_is_runtime(const char *module)
{
    static const char *const stems[] = {"libc.so",      "libstdc++.", "libc++",
                                        "libgfortran.", "libasan.",   "libclang_rt.asan"};
    return oriel_code_address_is_binding(module) ||
           module_has_prefix(module, stems, sizeof stems / sizeof stems[0]);
}

bool oriel_code_address_is_cxx_binding(const char *module)
{
    static const char *const stems[] = {"libmpichcxx", "libmpicxx"};
    return module_has_prefix(module, stems, sizeof stems / sizeof stems[0]);
}

__attribute__((noinline)) int oriel_code_address_stack(void **out, int room)
{
    const void *caller = __builtin_return_address(0);
    int count = backtrace(out, room);
    int own = 0;
    while (own < count && out[own] != caller)
        own++;
    memmove(out, out + own, (size_t)(count - own) * sizeof *out);
    return count - own;
}

bool oriel_code_address_caller(struct oriel_code_address *out)
{
    enum { FRAMES = 32 };
    void *frames[FRAMES];
    int count = oriel_code_address_stack(frames, FRAMES);
    for (int i = 0; i < count; i++)
        if (oriel_code_address_find((uint64_t)(uintptr_t)frames[i], out) &&
            !oriel_code_address_is_wrapper(out->module))
            return true;
    return false;
}

void oriel_code_address_text(const struct oriel_code_address *place,
                             char out[ORIEL_CODE_ADDRESS_TEXT])
{
    enum { PART = 40 };
    const char *function = place->function[0] == '\0' ? "?" : place->function;
    if (place->file[0] != '\0')
        snprintf(out, ORIEL_CODE_ADDRESS_TEXT, "%.*s at %.*s:%u", PART, function, PART,
                 path_basename(place->file), (unsigned)place->line);
    else if (place->function[0] != '\0')
        snprintf(out, ORIEL_CODE_ADDRESS_TEXT, "%.*s in %.*s", PART, function, PART,
                 path_basename(place->module));
    else if (place->module[0] != '\0')
        snprintf(out, ORIEL_CODE_ADDRESS_TEXT, "%.*s+0x%lx", PART, path_basename(place->module),
                 (unsigned long)place->offset);
    else
        out[0] = '\0';
}
