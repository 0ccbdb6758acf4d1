/* Finds file, line and function of code addresses in the debug information of their modules, in the
 * module's file or in a separate one. A module whose build id differs from the one in the request
 * gives no result; nor does damaged data. Opened modules are cached for later requests. This runs
 * in the helper process. */
#include "cli/helper.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_build_id_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
};

static bool is_same_build(Dwfl_Module *module, const struct oriel_code_address *code)
{
    static const uint8_t unknown[sizeof code->build_id];
    const unsigned char *id;
    GElf_Addr at;
    int len = dwfl_module_build_id(module, &id, &at);
    size_t compared =
        len < (int)sizeof code->build_id ? (size_t)(len < 0 ? 0 : len) : sizeof code->build_id;
    return memcmp(code->build_id, unknown, sizeof unknown) == 0 ||
           (compared > 0 && memcmp(code->build_id, id, compared) == 0);
}

/* The cache of open modules. Each has its own Dwfl and is at the addresses that its file states. */
struct open_module {
    struct oriel_code_address of; /* module file and build id */
    Dwfl *dwfl;
    Dwfl_Module *module;
};
static struct open_module open_modules[16];
static size_t open_modules_count;

static bool module_matches(const struct open_module *open_module,
                           const struct oriel_code_address *code)
{
    return strcmp(open_module->of.module, code->module) == 0 &&
           memcmp(open_module->of.build_id, code->build_id, sizeof code->build_id) == 0;
}

/* NULL when the module cannot be read. */
static Dwfl_Module *module_open(const struct oriel_code_address *code)
{
    for (size_t i = 0; i < open_modules_count; i++)
        if (module_matches(&open_modules[i], code))
            return open_modules[i].module;
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL)
        return NULL;
    Dwfl_Module *module = dwfl_report_elf(dwfl, code->module, code->module, -1, 0, true);
    dwfl_report_end(dwfl, NULL, NULL);
    if (module == NULL || !is_same_build(module, code)) {
        dwfl_end(dwfl);
        return NULL;
    }
    if (open_modules_count == sizeof open_modules / sizeof open_modules[0])
        dwfl_end(open_modules[--open_modules_count].dwfl);
    open_modules[open_modules_count++] =
        (struct open_module){.of = *code, .dwfl = dwfl, .module = module};
    return module;
}

static const char *die_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attribute));
    return name == NULL ? "?" : name;
}

/* Appends the file and line where an inlined function was called. */
static void inlined_call_append(Dwarf_Die *inlined, const char *caller,
                                struct oriel_code_address *out)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file_number = 0;
    Dwarf_Word line = 0;
    Dwarf_Die unit;
    Dwarf_Files *files;
    size_t files_count;
    const char *file = NULL;
    if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file_number) == 0 &&
        dwarf_diecu(inlined, &unit, NULL, NULL) != NULL &&
        dwarf_getsrcfiles(&unit, &files, &files_count) == 0)
        file = dwarf_filesrc(files, file_number, NULL, NULL);
    dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line);
    size_t used = strlen(out->inlined);
    snprintf(out->inlined + used, sizeof out->inlined - used, "%sin %s at %s:%u",
             used == 0 ? "" : ", ", caller, file == NULL ? "?" : file, (unsigned)line);
}

static bool is_function(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
}

/* The compilation unit that contains the address, without the bias, or NULL.  Clang writes no table
 * of address ranges; then each unit is searched. */
static Dwarf_Die *compilation_unit_find(Dwfl_Module *module, Dwarf_Addr address, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(module, address, bias);
    if (unit != NULL)
        return unit;
    do
        unit = dwfl_module_nextcu(module, unit, bias);
    while (unit != NULL && dwarf_haspc(unit, address - *bias) <= 0);
    return unit;
}

struct function_search {
    Dwarf_Addr address;
    Dwarf_Die function;
};

static int function_match(Dwarf_Die *function, void *closure)
{
    struct function_search *search = closure;
    if (dwarf_haspc(function, search->address) <= 0)
        return DWARF_CB_OK;
    search->function = *function;
    return DWARF_CB_ABORT;
}

/* The scopes that contain the address, innermost first, as dwarf_getscopes. That function does not
 * look into Fortran's modules, which have no addresses themselves. */
static int scopes_find(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **out)
{
    struct function_search search = {.address = address};
    int count = dwarf_getscopes(unit, address, out);
    if (count > 0 || dwarf_getfuncs(unit, function_match, &search, 0) <= 0)
        return count;
    return dwarf_getscopes(&search.function, address, out);
}

/* The functions that contain the address, innermost first. The innermost is the address's function;
 * it was inlined into the others. gfortran's main program is in a function MAIN__, which it may
 * inline into its main. */
static void functions_find(Dwfl_Module *module, Dwarf_Addr address, struct oriel_code_address *out)
{
    Dwarf_Addr bias;
    Dwarf_Die *unit = compilation_unit_find(module, address, &bias);
    Dwarf_Die *found = NULL;
    Dwarf_Die *scopes = NULL;
    Dwarf_Die innermost;
    if (unit == NULL || scopes_find(unit, address - bias, &found) <= 0)
        return;
    /* The second lookup starts at the entry itself: the scopes of an inlined function are then
     * those of its call. */
    Dwarf_Off entry = dwarf_dieoffset(&found[0]);
    free(found);
    if (dwarf_offdie(dwfl_module_getdwarf(module, &bias), entry, &innermost) == NULL)
        return;
    int count = dwarf_getscopes_die(&innermost, &scopes);
    Dwarf_Die *inlined = NULL;
    for (int i = 0; i < count; i++) {
        if (!is_function(&scopes[i]))
            continue;
        const char *name = die_name(&scopes[i]);
        bool is_main = strcmp(name, "MAIN__") == 0;
        name = is_main ? "main" : name;
        if (inlined == NULL)
            snprintf(out->function, sizeof out->function, "%s", name);
        else
            inlined_call_append(inlined, name, out);
        inlined = &scopes[i];
        if (is_main || dwarf_tag(&scopes[i]) == DW_TAG_subprogram)
            break;
    }
    free(scopes);
}

/* A call that clang merged from several lines has line 0. Returns the line of the code before it,
 * in the order of addresses; 0: there is none. */
static int line_before(Dwarf_Die *unit, Dwarf_Line *line)
{
    Dwarf_Lines *lines;
    size_t count;
    int number = 0, last = 0;
    if (dwarf_getsrclines(unit, &lines, &count) != 0)
        return 0;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *row = dwarf_onesrcline(lines, i);
        if (row == line)
            return last;
        if (dwarf_lineno(row, &number) == 0 && number != 0)
            last = number;
    }
    return 0;
}

static void line_find(Dwfl_Module *module, Dwarf_Addr address, struct oriel_code_address *out)
{
    int number = 0;
    Dwarf_Addr bias;
    Dwarf_Attribute attribute;
    Dwarf_Die *unit = compilation_unit_find(module, address, &bias);
    Dwarf_Line *line = unit == NULL ? NULL : dwarf_getsrc_die(unit, address - bias);
    const char *file =
        line == NULL || dwarf_lineno(line, &number) != 0 ? NULL : dwarf_linesrc(line, NULL, NULL);
    if (file == NULL)
        return;
    const char *folder =
        file[0] == '/' ? NULL : dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    snprintf(out->file, sizeof out->file, "%s%s%s", folder == NULL ? "" : folder,
             folder == NULL ? "" : "/", file);
    out->line = (uint32_t)(number != 0 ? number : line_before(unit, line));
}

static void address_resolve(Dwfl_Module *module, struct oriel_code_address *out)
{
    Dwarf_Addr bias;
    Dwarf_Addr address = out->offset - 1; /* the call instruction is before its return address */
    out->has_debug = dwfl_module_getdwarf(module, &bias) != NULL;
    line_find(module, address, out);
    functions_find(module, address, out);
    if (out->function[0] == '\0') {
        GElf_Off offset = 0;
        GElf_Sym symbol;
        const char *name =
            dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
        if (name != NULL && out->line != 0)
            snprintf(out->function, sizeof out->function, "%s", name);
        else if (name != NULL)
            snprintf(out->function, sizeof out->function, "%s+0x%llx", name,
                     (unsigned long long)offset + 1);
    }
}

void oriel_dwarf_lookup(struct oriel_code_address *codes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct oriel_code_address *code = &codes[i];
        code->module[sizeof code->module - 1] = '\0';
        Dwfl_Module *module =
            code->offset == 0 || code->module[0] == '\0' ? NULL : module_open(code);
        if (module != NULL)
            address_resolve(module, code);
    }
}
