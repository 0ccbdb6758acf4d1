/* Detects valgrind by its client request: instructions that change nothing, which valgrind
 * intercepts. On processors where the sequence is not known here, it looks for valgrind's library
 * in LD_PRELOAD. */
#include "base/valgrind.h"

#include <stdint.h>

#ifdef __x86_64__

/* The number of valgrinds under which this process runs. */
static uint64_t valgrind_depth(void)
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

static uint64_t valgrind_depth(void)
{
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded != NULL && strstr(preloaded, "vgpreload_") != NULL;
}

#endif

bool oriel_is_under_valgrind(void)
{
    return valgrind_depth() > 0;
}
