/* The kernel does not report to a signal handler which system call was interrupted. The stopping
 * thread therefore reads the blocked call from /proc first, and the handler compares. A call with
 * the same arguments, at the same instruction and stack pointer, is the same call.
 *
 * /proc does not show a thread that is just entering a call. In libc at least, the instructions
 * before the call identify it, or, from glibc 2.41 on, the stack.
 *
 * Restarting with the full time limit would keep a thread that is stopped repeatedly from ever
 * finishing its wait. Where the kernel does not track the remaining time, the call is given a
 * per-thread limit that does. That is done only in libc's wrappers, which do not use a call's
 * arguments after it. */
#include "memory/promote/syscall_restart.h"

#include "base/wait.h"
#include "memory/promote/thread_list.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnu/lib-names.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum { WRAPPER_BYTES = 512 }; /* maximum distance from the start of libc's function to its call */

static _Thread_local struct timespec remaining; /* remaining time of a restarted call */

/* The start addresses of libc's own wrappers. Functions of the same names may precede them (a
 * sanitiser's, a tool's), and call them. */
static struct {
    uintptr_t nanosleep;
    uintptr_t clock_nanosleep;
    uintptr_t poll;
    uintptr_t epoll_wait;
    uintptr_t epoll_pwait;
} libc;

static uintptr_t libc_symbol(void *library, const char *name, uintptr_t other)
{
    uintptr_t found = library != NULL ? (uintptr_t)dlsym(library, name) : 0;
    return found != 0 ? found : other;
}

static void libc_symbols_load(void)
{
    void *library = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD); /* never closed */
    libc.nanosleep = libc_symbol(library, "nanosleep", (uintptr_t)nanosleep);
    libc.clock_nanosleep = libc_symbol(library, "clock_nanosleep", (uintptr_t)clock_nanosleep);
    libc.poll = libc_symbol(library, "poll", (uintptr_t)poll);
    libc.epoll_wait = libc_symbol(library, "epoll_wait", (uintptr_t)epoll_wait);
    libc.epoll_pwait = libc_symbol(library, "epoll_pwait", (uintptr_t)epoll_pwait);
}

void oriel_syscall_restart_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, libc_symbols_load);
}

void oriel_syscall_restart_read_call(int32_t tid, struct oriel_syscall *out)
{
    char text[256];
    unsigned long long number, *arguments = (unsigned long long *)out->arguments;
    unsigned long long stack, next;
    out->number = -1;
    if (!oriel_thread_list_read(tid, "syscall", text, sizeof text) || text[0] > '9') /* "running" */
        return;
    if (sscanf(text, "%llu %llx %llx %llx %llx %llx %llx %llx %llx", &number, &arguments[0],
               &arguments[1], &arguments[2], &arguments[3], &arguments[4], &arguments[5], &stack,
               &next) != 9)
        return;
    out->number = (int64_t)number;
    out->stack = stack;
    out->next = next;
}

bool oriel_syscall_restart_waits_for_input(const struct oriel_syscall *call)
{
    switch (call->number) {
    case SYS_read:
    case SYS_readv:
#ifdef SYS_poll
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
#endif
    case SYS_ppoll:
    case SYS_pselect6:
    case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
    case SYS_epoll_pwait2:
#endif
        return true;
    default: return false;
    }
}

#if defined(__x86_64__)

enum { CALL_BYTES = 2 }; /* length of the instruction */

static bool is_preceded_by(const unsigned char *end, const char *code, size_t size)
{
    return __builtin_memcmp(end - size, code, size) == 0;
}

/* Whether an instruction that calls the kernel is in the code that libc's wrappers share from glibc
 * 2.41 on. It follows one of these there: mov %r11,0x8(%rsp) or mov N(%rsp),%rax. */
static bool is_in_shared_code(uint64_t next)
{
    const unsigned char *end = (const unsigned char *)(uintptr_t)next - CALL_BYTES;
    return end[0] == 0x0f && end[1] == 0x05 &&
           (is_preceded_by(end, "\x4c\x89\x5c\x24\x08", 5) ||
            is_preceded_by(end - 1, "\x48\x8b\x44\x24", 4));
}

#elif defined(__aarch64__)

/* Likewise, for threads whose cancellation is enabled: mov x4, x6; mov x5, x7; svc #0. */
static bool is_in_shared_code(uint64_t next)
{
    static const uint32_t code[] = {0xaa0603e4, 0xaa0703e5, 0xd4000001};
    return __builtin_memcmp((const void *)(uintptr_t)(next - sizeof code), code, sizeof code) == 0;
}

#else

static bool is_in_shared_code(uint64_t next)
{
    (void)next;
    return false;
}

#endif

/* Wrappers pass the arguments to the shared code by value, and cannot use them after it. */
static bool is_in_wrapper(const struct oriel_syscall *call, uintptr_t function)
{
    return call->next - function < WRAPPER_BYTES || is_in_shared_code(call->next);
}

/* A sleep of *wanted, with the remaining time in *rest (which may be 0). Stores the remaining time
 * where the next interruption finds it. */
static bool restart_sleep(const struct oriel_syscall *call, uint64_t *wanted, uint64_t *rest)
{
    if (*rest != 0 && *rest == *wanted)
        return true; /* the kernel has written the remaining time */
    if (!is_in_wrapper(call, libc.nanosleep) && !is_in_wrapper(call, libc.clock_nanosleep))
        return false;
    remaining = *(const struct timespec *)(uintptr_t)(*rest != 0 ? *rest : *wanted);
    *wanted = *rest = (uint64_t)(uintptr_t)&remaining;
    return true;
}

#ifdef SYS_poll
/* ppoll writes the remaining time back. */
static bool restart_poll(struct oriel_syscall *call)
{
    int limit_ms = (int)call->arguments[2];
    /* the instructions name poll, but the last restart made it ppoll */
    bool again = call->arguments[2] == (uint64_t)(uintptr_t)&remaining;
    if (limit_ms < 0 && !again)
        return true;
    if (!is_in_wrapper(call, libc.poll))
        return false;
    if (!again)
        remaining = (struct timespec){limit_ms / 1000, limit_ms % 1000 * 1000000L};
    call->number = SYS_ppoll;
    call->arguments[2] = (uint64_t)(uintptr_t)&remaining;
    call->arguments[3] = 0;
    return true;
}
#endif

/* The limit is a number in the call itself. A smaller limit than before distinguishes a restarted
 * call from a new one. */
static bool restart_epoll(struct oriel_syscall *call)
{
    static _Thread_local uint64_t stack;
    static _Thread_local uint64_t since_ns;
    static _Thread_local int last_ms;
    int limit_ms = (int)call->arguments[3];
    uint64_t now_ns = oriel_now_ns();
    if (limit_ms < 0)
        return true;
    if (!is_in_wrapper(call, libc.epoll_wait) && !is_in_wrapper(call, libc.epoll_pwait))
        return false;
    int64_t passed_ms =
        stack == call->stack && limit_ms == last_ms ? (int64_t)((now_ns - since_ns) / 1000000) : 1;
    last_ms = limit_ms > passed_ms ? (int)(limit_ms - passed_ms) : 0;
    since_ns = now_ns;
    stack = call->stack;
    call->arguments[3] = (uint64_t)last_ms;
    return true;
}

/* Converts the call to one that continues it. Returns false for calls that are left to the program.
 * Among these are close, whose descriptor is gone, and connect, which continues without a restart.
 */
static bool restart_prepare(struct oriel_syscall *call)
{
    switch (call->number) {
#ifdef SYS_poll
    case SYS_poll: return restart_poll(call);
    case SYS_epoll_wait: return restart_epoll(call);
    case SYS_select: /* the kernel tracks the time */
    case SYS_pause:
#endif
    case SYS_ppoll: /* likewise */
    case SYS_pselect6:
    case SYS_rt_sigsuspend:
    case SYS_semop:
    case SYS_msgsnd:
    case SYS_msgrcv: return true;
    case SYS_epoll_pwait: return restart_epoll(call);
    case SYS_futex: /* its limit is an absolute time; sem_timedwait would return EINTR */
        return (call->arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
    case SYS_nanosleep: return restart_sleep(call, &call->arguments[0], &call->arguments[1]);
    case SYS_clock_nanosleep:
        return (call->arguments[1] & TIMER_ABSTIME) != 0 ||
               restart_sleep(call, &call->arguments[2], &call->arguments[3]);
    default: return false;
    }
}

#if defined(__x86_64__)

static const int registers[6] = {REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9};

/* Length of a load from the stack to a register other than %rax that ends there. */
static size_t load_length_before(const unsigned char *end)
{
    enum { LOAD_BYTES = 4, ONE_BYTE_AWAY = 0x44, OF_STACK = 0x24, WIDE = 0x48 };
    if (end[-4] != 0x8b || (end[-3] & 0xc7) != ONE_BYTE_AWAY || (end[-3] & 0x38) == 0 ||
        end[-2] != OF_STACK)
        return 0;
    return end[-5] == WIDE ? LOAD_BYTES + 1 : LOAD_BYTES; /* no call number ends in this byte */
}

/* Decodes the call number from the preceding instructions, as libc arranges them: mov $number,
 * %eax; syscall. An argument may be loaded in between, as in epoll_pwait. */
static int64_t number_before(uint64_t next)
{
    enum { MOV_BYTES = 5 };
    const unsigned char *end = (const unsigned char *)(uintptr_t)next - CALL_BYTES;
    int32_t number;
    if (end[0] != 0x0f || end[1] != 0x05)
        return -1;
    const unsigned char *code = end - load_length_before(end) - MOV_BYTES;
    if (code[0] != 0xb8)
        return -1;
    __builtin_memcpy(&number, code + 1, sizeof number);
    return number;
}

/* The call number from the stack of the shared code: the seventh argument of the wrapper's call,
 * directly above a return address in libc. */
static int64_t number_on_stack(const struct oriel_syscall *call)
{
    enum { FRAME_WORDS = 12, NUMBERS = 1024, LIBC_BYTES = 4 << 20 };
    const uint64_t *words = (const uint64_t *)(uintptr_t)call->stack;
    for (int i = 0; i + 1 < FRAME_WORDS; i++)
        if (words[i] - call->next + LIBC_BYTES < 2 * LIBC_BYTES && words[i + 1] < NUMBERS)
            return (int64_t)words[i + 1];
    return -1;
}

/* The interrupted call that the context shows; number -1 if there is none. */
static struct oriel_syscall interrupted_call(const struct oriel_syscall *seen,
                                             const ucontext_t *context)
{
    const greg_t *now = context->uc_mcontext.gregs;
    struct oriel_syscall call = {
        .number = -1, .stack = (uint64_t)now[REG_RSP], .next = (uint64_t)now[REG_RIP]};
    bool same = seen->number >= 0 && seen->next == call.next && seen->stack == call.stack;
    for (int i = 0; i < 6; i++) {
        call.arguments[i] = (uint64_t)now[registers[i]];
        same = same && call.arguments[i] == seen->arguments[i];
    }
    if (now[REG_RAX] == -EINTR)
        call.number = same                           ? seen->number
                      : is_in_shared_code(call.next) ? number_on_stack(&call)
                                                     : number_before(call.next);
    return call;
}

static void call_restart(const struct oriel_syscall *call, ucontext_t *context)
{
    greg_t *now = context->uc_mcontext.gregs;
    for (int i = 0; i < 6; i++)
        now[registers[i]] = (greg_t)call->arguments[i];
    now[REG_RAX] = (greg_t)call->number;
    now[REG_RIP] -= CALL_BYTES;
}

#elif defined(__aarch64__)

/* The number is still in its register. The first argument has been replaced by the result. */
static struct oriel_syscall interrupted_call(const struct oriel_syscall *seen,
                                             const ucontext_t *context)
{
    const mcontext_t *now = &context->uc_mcontext;
    struct oriel_syscall call = {
        .number = -1, .arguments = {seen->arguments[0]}, .stack = now->sp, .next = now->pc};
    bool same = seen->number == (int64_t)now->regs[8] && seen->next == call.next &&
                seen->stack == call.stack;
    for (int i = 1; i < 6; i++) {
        call.arguments[i] = now->regs[i];
        same = same && call.arguments[i] == seen->arguments[i];
    }
    if (same && (int64_t)now->regs[0] == -EINTR)
        call.number = seen->number;
    return call;
}

static void call_restart(const struct oriel_syscall *call, ucontext_t *context)
{
    mcontext_t *now = &context->uc_mcontext;
    for (int i = 0; i < 6; i++)
        now->regs[i] = call->arguments[i];
    now->regs[8] = (uint64_t)call->number;
    now->pc -= 4;
}

#else

/* Calls are left to the program. */
static struct oriel_syscall interrupted_call(const struct oriel_syscall *seen,
                                             const ucontext_t *context)
{
    (void)seen;
    (void)context;
    return (struct oriel_syscall){.number = -1};
}

static void call_restart(const struct oriel_syscall *call, ucontext_t *context)
{
    (void)call;
    (void)context;
}

#endif

void oriel_syscall_restart_resume(const struct oriel_syscall *call, void *context)
{
    struct oriel_syscall again = interrupted_call(call, context);
    if (again.number >= 0 && restart_prepare(&again))
        call_restart(&again, context);
}
