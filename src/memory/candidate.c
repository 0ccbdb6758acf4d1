/* Judges each mapping by its flags, an allow list: state that promotion does not carry over is a refusal that names it.
 * Stacks are recognised by what the kernel knows of each thread.  promote.c calls before anything is stopped or protected. */
#include "memory/candidate.h"

#include "memory/file.h"
#include "memory/freeze.h"
#include "memory/maps.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BELOW (UINT64_C(64) << 10) /* what the calls of a promotion may come to use of the caller's stack */
#define STACK_ABOVE (UINT64_C(16) << 10)

struct judgement {
    uintptr_t start;
    uintptr_t end;
    uintptr_t reached; /* all up to here is good */
    bool huge_allowed;
    struct oriel_candidate *out;
    enum oriel_status status;
};

static enum oriel_status refuse(const struct oriel_mapping *mapping, const char *why)
{
    return oriel_fail(ORIEL_E_OTHER, "the memory at %#lx%s%s is %s", (unsigned long)mapping->start,
                      mapping->name[0] != '\0' ? " " : "", mapping->name, why);
}

/* Whether new pages of a memory file may be huge without being asked for one by one. */
static bool shared_memory_is_huge(void)
{
    char line[128] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "re");
    if (file == NULL)
        return false;
    if (fgets(line, sizeof line, file) == NULL)
        line[0] = '\0';
    fclose(file);
    return strstr(line, "[always]") != NULL || strstr(line, "[within_size]") != NULL || strstr(line, "[force]") != NULL;
}

static bool has_flag(const struct oriel_mapping *mapping, const char *flag)
{
    return strstr(mapping->flags, flag) != NULL;
}

/* Flags that promotion either keeps or makes no difference to: access, accounting, advice on reading and on huge pages. */
static bool is_ordinary_flag(const char *flag)
{
    static const char ordinary[] = "rd wr mr mw me ac nr sr rr hg nh sd mg um";
    for (const char *known = ordinary; known < ordinary + sizeof ordinary - 1; known += 3)
        if (memcmp(known, flag, 2) == 0)
            return memcmp(flag, "um", 2) != 0;
    return false;
}

static enum oriel_status judge_flags(const struct oriel_mapping *mapping)
{
    static const struct {
        const char flag[3];
        const char *why;
    } reasons[] = {
        {"lo", "locked by mlock"},
        {"gd", "a stack that grows"},
        {"ht", "in huge pages of hugetlbfs"},
        {"dc", "not inherited by children (MADV_DONTFORK)"},
        {"wf", "wiped in children (MADV_WIPEONFORK)"},
        {"dd", "left out of core files (MADV_DONTDUMP)"},
        {"um", "watched by another userfaultfd"},
        {"uw", "watched by another userfaultfd"},
        {"ex", "executable"},
    };
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (has_flag(mapping, reasons[i].flag))
            return refuse(mapping, reasons[i].why);
    for (const char *flag = mapping->flags; *flag != '\0';) {
        flag += strspn(flag, " ");
        if (strlen(flag) >= 2 && !is_ordinary_flag(flag))
            return refuse(mapping, "of a sort that promotion does not know");
        flag += strcspn(flag, " ");
    }
    return ORIEL_OK;
}

static enum oriel_status judge_mapping(const struct oriel_mapping *mapping, bool huge_allowed)
{
    if (mapping->access[3] != 'p')
        return refuse(mapping, "shared already");
    if (mapping->access[0] != 'r' || mapping->access[1] != 'w')
        return refuse(mapping, "not writable");
    if (strncmp(mapping->name, "[stack", 6) == 0)
        return refuse(mapping, "a stack");
    if (mapping->name[0] == '[' && strcmp(mapping->name, "[heap]") != 0 && strncmp(mapping->name, "[anon:", 6) != 0)
        return refuse(mapping, "the kernel's");
    /* at a page that is dropped between the look at the page map and the copy this thread would wait for itself */
    if (mapping->lazy_bytes > 0)
        return refuse(mapping, "given up in part (MADV_FREE)");
    enum oriel_status status = judge_flags(mapping);
    if (status == ORIEL_OK && mapping->huge_bytes > 0 && !huge_allowed && !shared_memory_is_huge())
        return refuse(mapping, "in transparent huge pages, which shared memory does not get here");
    return status;
}

/* The policy of memory placement at address: mode and the first nodes; the process's own where the mapping has none. */
static bool placement(uintptr_t address, unsigned flags, int *mode, unsigned long nodes[16])
{
    memset(nodes, 0, 16 * sizeof *nodes);
    return syscall(SYS_get_mempolicy, mode, nodes, 16 * 8 * sizeof *nodes, address, flags) == 0;
}

static bool is_bound(uintptr_t address)
{
    enum { AT_ADDRESS = 2 }; /* MPOL_F_ADDR */
    int mode, usual_mode;
    unsigned long nodes[16], usual_nodes[16];
    return placement(address, AT_ADDRESS, &mode, nodes) && placement(0, 0, &usual_mode, usual_nodes) &&
           (mode != usual_mode || memcmp(nodes, usual_nodes, sizeof nodes) != 0);
}

/* A thread's control block lies at the top of its stack, above its thread-local variables; the kernel keeps an address in it, the
 * list of robust mutexes.  What lies below it in the same mapping is the stack, what lies above is not.  The initial
 * thread's block is elsewhere, and its stack has a name. */
static enum oriel_status judge_stacks(const struct oriel_mapping *mapping, uintptr_t start)
{
    enum oriel_status status = ORIEL_OK;
    DIR *tasks = opendir("/proc/self/task");
    if (tasks == NULL)
        return oriel_fail(ORIEL_E_OTHER, "cannot list the threads: %s", strerror(errno));
    for (struct dirent *entry = readdir(tasks); entry != NULL && status == ORIEL_OK; entry = readdir(tasks)) {
        long tid = strtol(entry->d_name, NULL, 10);
        void *block = NULL;
        size_t len_bytes = 0;
        if (tid <= 0 || tid == getpid() || syscall(SYS_get_robust_list, tid, &block, &len_bytes) != 0)
            continue;
        uintptr_t at = (uintptr_t)block;
        if (at >= mapping->start && at < mapping->end && start <= at)
            status = oriel_fail(ORIEL_E_OTHER, "the memory at %#lx may be the stack of thread %ld",
                                (unsigned long)start, tid);
    }
    closedir(tasks);
    return status;
}

static bool judge(const struct oriel_mapping *mapping, void *context)
{
    struct judgement *judgement = context;
    uintptr_t start = mapping->start > judgement->start ? mapping->start : judgement->start;
    if (start > judgement->reached)
        return false;
    judgement->status = judge_mapping(mapping, judgement->huge_allowed);
    if (judgement->status == ORIEL_OK && is_bound(start))
        judgement->status = refuse(mapping, "bound to memory nodes (mbind)");
    if (judgement->status == ORIEL_OK)
        judgement->status = judge_stacks(mapping, start);
    judgement->reached = mapping->end;
    judgement->out->file_backed |= mapping->inode != 0;
    judgement->out->unreserved |= has_flag(mapping, " nr");
    return judgement->status == ORIEL_OK;
}

/* Memory that promotion itself writes while it is protected or copied, through this thread. */
static enum oriel_status judge_own(uintptr_t start, uintptr_t end)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t error = (uintptr_t)&errno;
    if (start < here + STACK_ABOVE && end > here - STACK_BELOW)
        return oriel_fail(ORIEL_E_OTHER, "the calling thread's stack is in the range");
    if (start <= error && end > error)
        return oriel_fail(ORIEL_E_OTHER, "the calling thread's own variables are in the range");
    if (oriel_freeze_uses(start, end))
        return oriel_fail(ORIEL_E_OTHER, "Oriel's own variables are in the range");
    return ORIEL_OK;
}

enum oriel_status oriel_candidate_check(uintptr_t start, uintptr_t end, bool huge_allowed, struct oriel_candidate *out)
{
    *out = (struct oriel_candidate){.file_backed = false};
    struct judgement judgement = {start, end, start, huge_allowed, out, judge_own(start, end)};
    if (judgement.status != ORIEL_OK)
        return judgement.status;
    if (!oriel_maps_visit(start, end, true, judge, &judgement))
        return oriel_fail(ORIEL_E_OTHER, "cannot read /proc/self/smaps: %s", strerror(errno));
    if (judgement.status == ORIEL_OK && judgement.reached < end)
        return oriel_fail(ORIEL_E_OTHER, "nothing is mapped at %#lx", (unsigned long)judgement.reached);
    return judgement.status;
}
