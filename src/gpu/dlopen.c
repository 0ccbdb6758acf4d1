/* Notices when the program loads a GPU's driver. Runtimes load it at their first call, by name, at
 * any time. From then on a buffer may be device memory, also of a window that exists already. So
 * this library interposes the C library's `dlopen`.
 *
 * 1. If the program asks for a driver, it is loaded once more ahead of the program's own call, and
 *    Oriel looks it up. So no thread can have a pointer to device memory before Oriel knows the
 *    driver. The reference is kept: drivers do not support being unloaded.
 * 2. Every call is passed on with a jump, because the C library finds the caller's search path and
 *    namespace by the return address.
 *
 * A driver that comes as a dependency of another library is noticed when the next window is
 * created. The compiler's sanitisers call dlopen before they have started, so this file is not
 * instrumented. */
#include "gpu/gpu.h"

#include <dlfcn.h>
#include <string.h>

typedef void *load_fn(const char *name, int flags);

load_fn *oriel_dlopen_next(const char *name, int flags);

static const char *const drivers[] = {"libcuda.so"};

static bool is_driver(const char *name)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strstr(name, drivers[i]) != NULL)
            return true;
    return false;
}

static load_fn *next_dlopen(void)
{
    static _Atomic(load_fn *) known;
    load_fn *next = atomic_load_explicit(&known, memory_order_relaxed);
    if (next == NULL) {
        next = (load_fn *)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
        atomic_store_explicit(&known, next, memory_order_relaxed);
    }
    return next;
}

/* The function to jump to. */
__attribute__((used)) load_fn *oriel_dlopen_next(const char *name, int flags)
{
    load_fn *next = next_dlopen();
    if (name != NULL && is_driver(name) && !(flags & RTLD_NOLOAD) &&
        next(name, RTLD_LAZY | RTLD_LOCAL) != NULL)
        oriel_gpu_look();
    return next;
}

#ifdef __x86_64__
/* The jump is the last instruction, with the caller's return address on top of the stack (2). */
__asm__(".text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        "dlopen:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    push %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    push %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    sub $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call oriel_dlopen_next\n"
        "    add $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    pop %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp *%rax\n"
        "    .cfi_endproc\n"
        ".size dlopen, . - dlopen\n");
#else
/* With optimisation, compilers turn the call into a jump. */
__attribute__((visibility("default"))) void *dlopen(const char *name, int flags)
{
    return oriel_dlopen_next(name, flags)(name, flags);
}
#endif
