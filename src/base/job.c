/* Identifies a job without MPI. Variables pass through launchers and shells, so what only the
 * nearest launcher can have made comes first:
 *
 *   1. A PMI launcher holds the other end of each rank's socket, and the kernel knows its process:
 *      one per node, however many shells are between it and the rank.
 *   2. PMIx names the job in the environment.
 *   3. A task of Slurm without either has Slurm's daemon as its parent.
 *
 * Any other process is a job of its own. */
#include "base/job.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
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

bool oriel_job_parent_name(char *out, size_t room)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)getppid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len = read(fd, out, room - 1);
    close(fd);
    out[len < 0 ? 0 : len] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return true;
}

static bool is_child_of_slurm(void)
{
    char name[32];
    return oriel_job_parent_name(name, sizeof name) &&
           strncmp(name, "slurmstepd", strlen("slurmstepd")) == 0;
}

/* -1 if there is no such number. */
static int32_t variable_rank(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && text[0] >= '0' && text[0] <= '9' ? (int32_t)atoi(text) : -1;
}

int32_t oriel_job_rank(void)
{
    static const char *const names[] = {"PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"};
    int32_t rank = launcher_at_socket() != 0 ? variable_rank("PMI_RANK") : -1;
    for (size_t i = 0; rank < 0 && i < sizeof names / sizeof names[0]; i++)
        rank = variable_rank(names[i]);
    if (rank < 0 && (rank = variable_rank("SLURM_PROCID")) >= 0 && !is_child_of_slurm())
        rank = -1;
    return rank;
}

uint64_t oriel_job_find(void)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    struct stat numbers; /* of the PID namespace: containers have their own */
    pid_t launcher = launcher_at_socket();
    const char *name = launcher == 0 ? getenv("PMIX_NAMESPACE") : NULL;
    if (launcher == 0)
        launcher = oriel_job_rank() < 0 ? getpid() : getppid();
    if (stat("/proc/self/ns/pid", &numbers) == 0)
        hash = hash_bytes(hash, &numbers.st_ino, sizeof numbers.st_ino);
    return name != NULL ? hash_bytes(hash, name, strlen(name))
                        : hash_bytes(hash, &launcher, sizeof launcher);
}
