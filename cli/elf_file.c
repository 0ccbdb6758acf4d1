/* Reads ELF files with libelf. A damaged file reads as one that lacks the requested item. No file
 * can make the reader read beyond its end. */
#include "cli/elf_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool oriel_elf_open(const char *path, struct oriel_elf_file *out)
{
    elf_version(EV_CURRENT);
    out->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (out->fd < 0)
        return false;
    out->elf = elf_begin(out->fd, ELF_C_READ_MMAP, NULL);
    if (out->elf != NULL && elf_kind(out->elf) == ELF_K_ELF &&
        gelf_getehdr(out->elf, &out->header) != NULL)
        return true;
    oriel_elf_close(out);
    return false;
}

void oriel_elf_close(struct oriel_elf_file *file)
{
    elf_end(file->elf);
    close(file->fd);
}

bool oriel_elf_same_machine(const struct oriel_elf_file *file, const struct oriel_elf_file *other)
{
    return file->header.e_machine == other->header.e_machine &&
           file->header.e_ident[EI_CLASS] == other->header.e_ident[EI_CLASS] &&
           file->header.e_ident[EI_DATA] == other->header.e_ident[EI_DATA];
}

/* The file's bytes from offset on, and their number in *len_bytes; NULL beyond the end. */
static const char *bytes_at(const struct oriel_elf_file *file, uint64_t offset, size_t *len_bytes)
{
    size_t size = 0;
    const char *start = elf_rawfile(file->elf, &size);
    if (start == NULL || offset >= size)
        return NULL;
    *len_bytes = size - (size_t)offset;
    return start + offset;
}

static bool text_copy(const struct oriel_elf_file *file, uint64_t offset, char *out,
                      size_t out_bytes)
{
    size_t len = 0;
    const char *text = bytes_at(file, offset, &len);
    if (text == NULL)
        return false;
    size_t text_len = strnlen(text, len);
    if (text_len == len || text_len >= out_bytes)
        return false;
    memcpy(out, text, text_len + 1);
    return true;
}

bool oriel_elf_interpreter(const struct oriel_elf_file *file, char out[PATH_MAX])
{
    for (int i = 0; i < file->header.e_phnum; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(file->elf, i, &segment) != NULL && segment.p_type == PT_INTERP)
            return text_copy(file, segment.p_offset, out, PATH_MAX);
    }
    return false;
}

/* Calls visit for each symbol that sections of one type define, until visit returns false.
 * SHT_DYNSYM holds the symbols that the loader sees; SHT_SYMTAB holds all, unless the file is
 * stripped. */
static void symbols_visit(const struct oriel_elf_file *file, GElf_Word section_type,
                          bool (*visit)(const char *name, const GElf_Sym *symbol, void *context),
                          void *context)
{
    for (Elf_Scn *section = elf_nextscn(file->elf, NULL); section != NULL;
         section = elf_nextscn(file->elf, section)) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == NULL || header.sh_type != section_type)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t count =
            data == NULL || header.sh_entsize == 0 ? 0 : data->d_size / header.sh_entsize;
        for (size_t i = 0; i < count; i++) {
            GElf_Sym symbol;
            if (gelf_getsym(data, (int)i, &symbol) == NULL || symbol.st_shndx == SHN_UNDEF)
                continue;
            const char *name = elf_strptr(file->elf, header.sh_link, symbol.st_name);
            if (name != NULL && !visit(name, &symbol, context))
                return;
        }
    }
}

void oriel_elf_exports_visit(const struct oriel_elf_file *file,
                             bool (*visit)(const char *name, const GElf_Sym *symbol, void *context),
                             void *context)
{
    symbols_visit(file, SHT_DYNSYM, visit, context);
}

struct symbol_search {
    const char *name;
    bool found;
};

static bool symbol_match(const char *name, const GElf_Sym *symbol, void *context)
{
    struct symbol_search *search = context;
    (void)symbol;
    search->found = strcmp(name, search->name) == 0;
    return !search->found;
}

bool oriel_elf_defines(const struct oriel_elf_file *file, const char *symbol)
{
    struct symbol_search search = {.name = symbol};
    symbols_visit(file, SHT_SYMTAB, symbol_match, &search);
    if (!search.found)
        oriel_elf_exports_visit(file, symbol_match, &search);
    return search.found;
}
