/* Places in the program: an address of this process by the file of its module and the offset there, which mean the same to other
 * processes, and what debug information says of it, which the helper finds out (base/helper_process.h).  Any layer may call. */
#ifndef ORIEL_BASE_CODE_ADDRESS_H
#define ORIEL_BASE_CODE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

enum { ORIEL_CODE_ADDRESS_SHORT = 128, ORIEL_CODE_ADDRESS_LONG = 256 };

/* The first three say which; the others what is there, "" and 0 where that is not known. */
struct oriel_code_address {
    char module[ORIEL_CODE_ADDRESS_LONG]; /* file */
    uint8_t build_id[20];                 /* all 0: unknown */
    uint32_t reserved;
    uint64_t offset; /* in the file's own addresses; 0: no place */
    char function[ORIEL_CODE_ADDRESS_SHORT];
    char file[ORIEL_CODE_ADDRESS_LONG];
    char inlined
        [ORIEL_CODE_ADDRESS_LONG]; /* "in main at app.c:40": into what the function was inlined there */
    uint32_t line;
    uint32_t has_debug; /* the module has debug information, whether it knows this place or not */
};

/* Fills in module, build id and offset; false when the address is in no module. */
bool oriel_code_address_find(uint64_t address, struct oriel_code_address *out);

/* Whether a module is a host's own functions for Fortran: then the place in the program is who called that. */
bool oriel_code_address_is_binding(const char *module);

/* Whether it has a host's classes for C++, where a library has them. */
bool oriel_code_address_is_cxx_binding(const char *module);

/* The return addresses of the stack from the caller's own on, as backtrace has them, and how many; without what a sanitiser of
 * the program puts in front, whose backtrace is a function of its own. */
int oriel_code_address_stack(void **out, int room);

/* The place of the first caller that is neither in the modules of this library nor in a host's functions for Fortran, nor in
 * another library of Oriel's; false when there is none.  Takes microseconds. */
bool oriel_code_address_caller(struct oriel_code_address *out);

#endif
