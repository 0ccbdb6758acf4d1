/* Identifies a job without MPI. PMIx names it in the environment. A PMI launcher holds the other
 * end of each rank's socket, and the kernel knows its process: one per node, however many shells
 * are between it and the rank. If a launcher provides a rank but neither of these, the ranks have
 * the same parent. A process started without a launcher is a job of its own. */
#include "base/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len_bytes)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len_bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The process that created the socket in PMI_FD; 0 if it is none. */
static pid_t launcher_at_socket(void)
{
    const char *text = getenv("PMI_FD");
    struct ucred other;
    socklen_t len_bytes = sizeof other;
    if (text == NULL || getsockopt(atoi(text), SOL_SOCKET, SO_PEERCRED, &other, &len_bytes) != 0)
        return 0;
    return other.pid;
}

int32_t oriel_job_rank(void)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = getenv(names[i]);
        if (text != NULL && text[0] >= '0' && text[0] <= '9')
            return (int32_t)atoi(text);
    }
    return -1;
}

uint64_t oriel_job_find(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    struct stat numbers; /* of the PID namespace: containers have their own */
    const char *name = getenv("PMIX_NAMESPACE");
    pid_t launcher = launcher_at_socket();
    if (launcher == 0)
        launcher = oriel_job_rank() < 0 ? getpid() : getppid();
    if (stat("/proc/self/ns/pid", &numbers) == 0)
        hash = hash_bytes(hash, &numbers.st_ino, sizeof numbers.st_ino);
    return name != NULL ? hash_bytes(hash, name, strlen(name))
                        : hash_bytes(hash, &launcher, sizeof launcher);
}
