/* Runs a program to which the kernel denies copies between processes, as containers do. A seccomp
 * filter refuses process_vm_readv and process_vm_writev with EPERM for the program and its
 * children. Started by tests/launch --deny: deny PROGRAM [ARGUMENT...]. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SKIP = 77 };

#define LOAD(field)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what)        BPF_STMT(BPF_RET | BPF_K, what)
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)

static int install(void)
{
    struct sock_filter rules[] = {
        LOAD(nr),
        UNLESS(SYS_process_vm_readv, 1),
        RETURN(SECCOMP_RET_ERRNO | EPERM),
        UNLESS(SYS_process_vm_writev, 1),
        RETURN(SECCOMP_RET_ERRNO | EPERM),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

/* The filter is active: even copies of the process's own memory fail. */
static int is_denied(void)
{
    char from = 1;
    char to = 0;
    struct iovec local = {&to, 1};
    struct iovec remote = {&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 && errno == EPERM;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: deny PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (install() != 0) {
        printf("skipped: no seccomp filter can be installed: %s\n", strerror(errno));
        return SKIP;
    }
    if (!is_denied()) {
        fprintf(stderr, "deny: the filter denies nothing\n");
        return 1;
    }
    execvp(argv[1], argv + 1);
    fprintf(stderr, "deny: %s: %s\n", argv[1], strerror(errno));
    return 1;
}
