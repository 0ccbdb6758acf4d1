/* Asks valgrind itself where the processor's way of asking is known: instructions that change nothing, which valgrind takes for a
 * question.  Elsewhere the library that valgrind preloads gives it away. */
#include "base/valgrind.h"

#include <stdint.h>

#ifdef __x86_64__

/* How many valgrinds this process runs under. */
static uint64_t ask(void)
{
    enum { RUNNING_ON_VALGRIND = 0x1001 };
    const volatile uint64_t question[6] = {RUNNING_ON_VALGRIND};
    uint64_t answer = 0;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, "
                     "%%rdi\n\txchgq %%rbx, %%rbx"
                     : "+d"(answer)
                     : "a"(question)
                     : "cc", "memory");
    return answer;
}

#else

#include <stdlib.h>
#include <string.h>

static uint64_t ask(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload_") != NULL;
}

#endif

bool oriel_valgrind(void)
{
    return ask() > 0;
}
