/* Reads what the command line wants to know of an ELF file, without running any of it.
 * An open file is only read; every text handed out is a copy or lives until the file is closed.
 * Only files in cli/ include this. */
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

/* False when path cannot be read or is no ELF file; then nothing is open. */
bool oriel_elf_open(const char *path, struct oriel_elf_file *out);
void oriel_elf_close(struct oriel_elf_file *file);

/* Whether both are for one machine: the same architecture, word size and byte order. */
bool oriel_elf_same_machine(const struct oriel_elf_file *file, const struct oriel_elf_file *other);

/* The program's loader; false for a static program. */
bool oriel_elf_interpreter(const struct oriel_elf_file *file, char out[PATH_MAX]);

/* Calls visit for each dynamic symbol that the file defines, until it returns false. */
void oriel_elf_exports_visit(const struct oriel_elf_file *file,
                             bool (*visit)(const char *name, const GElf_Sym *symbol, void *context),
                             void *context);

/* Whether the file defines the symbol, exported or not; of a stripped file only what it exports is known. */
bool oriel_elf_defines(const struct oriel_elf_file *file, const char *symbol);

/* The text that an exported character array holds; false when there is no such symbol. */
bool oriel_elf_text_read(const struct oriel_elf_file *file, const char *symbol, char *out,
                         size_t out_bytes);

#endif
