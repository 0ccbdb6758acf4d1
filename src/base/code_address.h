/* Code addresses: an address of this process as module file and offset, which have the same meaning
 * in other processes. The helper process adds what debug information knows about the address
 * (base/helper_process.h). */
#ifndef ORIEL_BASE_CODE_ADDRESS_H
#define ORIEL_BASE_CODE_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIEL_CODE_ADDRESS_SHORT = 128,
    ORIEL_CODE_ADDRESS_LONG = 256,
    ORIEL_CODE_ADDRESS_TEXT = 128
};

/* module, build_id and offset identify the address. The other fields describe it; they are "" and 0
 * if unknown. */
struct oriel_code_address {
    char module[ORIEL_CODE_ADDRESS_LONG]; /* path of the file */
    uint8_t build_id[20];                 /* all 0 if unknown */
    uint32_t reserved;
    uint64_t offset; /* in the file's own addresses; 0 if there is no address */
    char function[ORIEL_CODE_ADDRESS_SHORT];
    char file[ORIEL_CODE_ADDRESS_LONG];
    /* "in main at app.c:40": the function into which this code was inlined */
    char inlined[ORIEL_CODE_ADDRESS_LONG];
    uint32_t line;
    /* the module has debug information, even if it does not cover this address */
    uint32_t has_debug;
};

/* Fills in module, build id and offset. Returns false if the address is in no module. */
bool oriel_code_address_find(uint64_t address, struct oriel_code_address *out);

/* True if the module contains the host's Fortran bindings or Oriel's. The call site is then in the
 * caller of that module. */
bool oriel_code_address_is_binding(const char *module);

/* True for these bindings, and for Oriel's own libraries: the call site is in their caller. */
bool oriel_code_address_is_wrapper(const char *module);

/* True for these bindings, and for libraries of languages and AddressSanitizer that call on behalf
 * of the program: operator delete calls free. */
bool oriel_code_address_is_runtime(const char *module);

/* True if the module contains the host's C++ bindings, for libraries that have them. */
bool oriel_code_address_is_cxx_binding(const char *module);

/* Writes the return addresses of the stack, starting with the caller's own, as backtrace does.
 * Returns their number. Frames that a sanitiser's interceptor of backtrace puts in front are
 * removed. */
int oriel_code_address_stack(void **out, int room);

/* Finds the call site in the first caller outside this library, the host's Fortran bindings and
 * other Oriel libraries. Returns false if there is none. Takes microseconds. */
bool oriel_code_address_caller(struct oriel_code_address *out);

/* "main at app.c:40", "main in app" without a line, or "app+0x1234", which addr2line resolves; ""
 * if nothing is known. Shortens long names. */
void oriel_code_address_text(const struct oriel_code_address *place,
                             char out[ORIEL_CODE_ADDRESS_TEXT]);

#endif
