/* A function of two arguments, in front of the C library's, that passes most calls on with a jump:
 * the C library finds the caller by the return address. */
#ifndef ORIEL_BASE_PASS_ON_H
#define ORIEL_BASE_PASS_ON_H

#include <stdint.h>

/* The result for the caller. If next is not NULL, the call is passed on to that function. */
struct oriel_passed_on {
    void *result;
    void *next;
};

/* Defines the exported function `name`. It asks decide(first, second, caller), which is marked as
 * used and returns struct oriel_passed_on. */
#ifdef __x86_64__
/* The jump is the last instruction, with the caller's return address on top of the stack. */
#define ORIEL_PASS_ON(name, decide, First, Second)                                                 \
    __asm__(".text\n"                                                                              \
            ".globl " #name "\n"                                                                   \
            ".type " #name ", @function\n" #name ":\n"                                             \
            "    .cfi_startproc\n"                                                                 \
            "    endbr64\n"                                                                        \
            "    push %rdi\n"                                                                      \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    push %rsi\n"                                                                      \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    mov 16(%rsp), %rdx\n"                                                             \
            "    sub $8, %rsp\n"                                                                   \
            "    .cfi_adjust_cfa_offset 8\n"                                                       \
            "    call " #decide "\n"                                                               \
            "    add $8, %rsp\n"                                                                   \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    pop %rsi\n"                                                                       \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    pop %rdi\n"                                                                       \
            "    .cfi_adjust_cfa_offset -8\n"                                                      \
            "    test %rdx, %rdx\n"                                                                \
            "    jz 1f\n"                                                                          \
            "    jmp *%rdx\n"                                                                      \
            "1:  ret\n"                                                                            \
            "    .cfi_endproc\n"                                                                   \
            ".size " #name ", . - " #name "\n");
#else
/* With optimisation, compilers turn the call into a jump. */
#define ORIEL_PASS_ON(name, decide, First, Second)                                                 \
    __attribute__((visibility("default"))) void *name(First first, Second second)                  \
    {                                                                                              \
        const struct oriel_passed_on call = decide(first, second, __builtin_return_address(0));    \
        return call.next != NULL ? ((void *(*)(First, Second))(uintptr_t)call.next)(first, second) \
                                 : call.result;                                                    \
    }
#endif

#endif
