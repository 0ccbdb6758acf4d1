/* The end of a checked process. The library registers an exit handler when it is loaded, before any
 * handler of the program. So it runs after all of them and sees their status. After MPI_Finalize
 * the last process of the node to end sets the status, because launchers kill all other processes
 * when one ends with an error. Where MPI_Finalize was never called, for which launchers also kill
 * the others, the first process writes the summary. */
#include "check/report/finding_internal.h"

#include "base/identity.h"
#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* in shared memory; NULL before MPI_Init and when there are too many processes */
static _Atomic uint64_t *own_slot;
static pid_t own_pid;

void oriel_exit_status_enter(void)
{
    struct oriel_findings *findings = oriel_findings();
    struct oriel_identity identity;
    uint32_t at = atomic_fetch_add_explicit(&findings->processes_used, 1, memory_order_relaxed);
    if (at >= ORIEL_FINDING_PROCESSES || !oriel_identity_make(&identity))
        return;
    own_pid = getpid();
    own_slot = &findings->processes[at];
    *own_slot = oriel_identity_own_word();
}

/* Whether no other process of the node will still get here. Each process removes itself before it
 * looks, so the last one to do so finds none. A process that has died never gets here. */
static bool other_processes_ended(struct oriel_findings *findings)
{
    for (size_t at = 0; at < ORIEL_FINDING_PROCESSES; at++) {
        uint64_t word = findings->processes[at];
        if (word != 0 && oriel_identity_word_alive(word))
            return false;
    }
    return true;
}

static void exit_handler(int status, void *closure)
{
    (void)closure;
    struct oriel_findings *findings = oriel_findings();
    if (findings == NULL || own_slot == NULL || getpid() != own_pid)
        return;
    *own_slot = 0; /* seq_cst: before the look at the other slots */
    if (findings->met == 0)
        oriel_finding_end_alone();
    else if (!other_processes_ended(findings))
        return;
    if (status != 0 || !oriel_options()->check_fail || findings->total == 0)
        return;
    fflush(NULL); /* as exit() itself would have done */
    _exit(ORIEL_FINDINGS_STATUS);
}

__attribute__((constructor)) static void exit_handler_register(void)
{
    on_exit(exit_handler, NULL);
}
