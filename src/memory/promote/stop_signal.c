/* A pending signal is discarded by ignoring it briefly. */
#include "memory/promote/stop_signal.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

bool oriel_stop_signal_is_free(int signal, oriel_stop_handler *handler)
{
    struct sigaction action;
    if (signal == 0 || sigaction(signal, NULL, &action) != 0)
        return false;
    return (action.sa_flags & SA_SIGINFO) != 0 ? action.sa_sigaction == handler
                                               : action.sa_handler == SIG_DFL;
}

uint64_t oriel_stop_signal_free_set(oriel_stop_handler *handler)
{
    uint64_t signals = 0;
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
        if (oriel_stop_signal_is_free(signal, handler))
            signals |= UINT64_C(1) << (signal - 1);
    return signals;
}

void oriel_stop_signal_install(int signal, oriel_stop_handler *handler)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

int oriel_stop_signal_send(int signal, int32_t tid, uint64_t number)
{
    siginfo_t info = {.si_signo = signal, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = (void *)(uintptr_t)number;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), tid, signal, &info) == 0 ? 0 : errno;
}

uint64_t oriel_stop_signal_read(const siginfo_t *info)
{
    return info->si_code == SI_QUEUE && info->si_pid == getpid()
               ? (uint64_t)(uintptr_t)info->si_value.sival_ptr
               : 0;
}

void oriel_stop_signal_return(int signal, oriel_stop_handler *handler, bool late, bool blocked)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    if (blocked)
        sigaction(signal, &action, NULL);
    action.sa_handler = SIG_DFL;
    if (late)
        oriel_stop_signal_install(signal, handler);
    else
        sigaction(signal, &action, NULL);
}
