/* Reads ELF files without running any of their code. Files are opened for reading. Each returned
 * string is a copy or lives until the file is closed. */
#ifndef ORIEL_CLI_ELF_FILE_H
#define ORIEL_CLI_ELF_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <gelf.h>

struct oriel_elf_file {
    int fd;
    Elf *elf;
    GElf_Ehdr header;
};

/* Returns false when path cannot be read or is not an ELF file; nothing is open then. */
bool oriel_elf_open(const char *path, struct oriel_elf_file *out);
void oriel_elf_close(struct oriel_elf_file *file);

/* True when both files have the same architecture, word size and byte order. */
bool oriel_elf_same_machine(const struct oriel_elf_file *file, const struct oriel_elf_file *other);

/* Copies the path of the program's loader; false for a static program. */
bool oriel_elf_interpreter(const struct oriel_elf_file *file, char out[PATH_MAX]);

/* Calls visit for each dynamic symbol that the file defines, until visit returns false. */
void oriel_elf_exports_visit(const struct oriel_elf_file *file,
                             bool (*visit)(const char *name, const GElf_Sym *symbol, void *context),
                             void *context);

/* True when the file defines the symbol, exported or not. A stripped file has only exported
 * symbols. */
bool oriel_elf_defines(const struct oriel_elf_file *file, const char *symbol);

#endif
