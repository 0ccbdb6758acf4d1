/* Findings: what a rule found, told once at once on stderr, counted when it is found again, written at the end.  Kept in the
 * board, so that equal findings of several ranks of a machine are one; those of other machines meet at MPI_Finalize.
 * windows*.c, messages*.c, local_accesses.c and deadlock.c tell; start.c starts and ends. */
#ifndef ORIEL_CHECK_REPORT_FINDING_H
#define ORIEL_CHECK_REPORT_FINDING_H

#include "check/access/history.h"

enum oriel_rule {
#define RULE(name, number, title, text, example, remedy) ORIEL_RULE_##name,
#include "check/rules/rules.def"
#undef RULE
    ORIEL_RULE_COUNT
};

/* What a finding is about; fields that do not apply are left 0, NULL or -1 (ORIEL_FINDING_NONE). */
struct oriel_finding {
    enum oriel_rule rule;
    const char *window;  /* its name, "" for none */
    const char *flavour; /* "create", "allocate", "shared", "dynamic" */
    int target;          /* rank in the window's group; -1 */
    int64_t offset;      /* bytes at the target, with len_bytes; -1 */
    uint64_t len_bytes;
    int64_t element; /* first element, in displacement units; -1 */
    uint64_t elements;
    struct oriel_site here;    /* the call that is at fault, or the later of two */
    struct oriel_site other;   /* the other one; call 0: none */
    struct oriel_site opening; /* the call that opened the epoch; call 0: none */
    const char *
        missing; /* the call that is missing, in the program's words: "MPI_Win_flush(3, win) between them"; NULL */
    char detail[256]; /* what else is to be said, a sentence; "" */
};
static const struct oriel_finding ORIEL_FINDING_NONE = {.target = -1, .offset = -1, .element = -1};

/* Tells it, unless an equal one (rule, window's name, sites, whichever came first) was told: then it is counted.  Another process
 * is asked for lines, which has to be started for the first one and to read debug information: no lock may be held.  Sites as
 * oriel_site_here makes them. */
void oriel_finding_tell(const struct oriel_finding *finding);

/* Something that the summary names as not looked at, or counts: "calls not modelled: MPI_File_write". */
void oriel_finding_count(const char *what);

/* A call of this rank was left by a jump: one line says so, and the summary counts it.  name: of its function, or NULL; site: of
 * any kind of call. */
void oriel_finding_left(const char *name, const struct oriel_site *site);

/* The program's own loads and stores are seen: the summary then does not say that they were not watched.  Also before
 * oriel_finding_start. */
void oriel_finding_local_watched(void);

/* Before the first finding, after oriel_sites_start, the board being there.  ORIEL_CHECK_* of the options say where to. */
enum oriel_status oriel_finding_start(void);

/* In MPI_Finalize, collective: all ranks' findings meet at rank 0, which writes summary and JSON; every process then knows how
 * many there were, and the last of each machine ends with status 86 if there were any (unless the options say no, or its own
 * status is not 0): launchers end all others when one ends so, which would disturb those that still have something to do. */
void oriel_finding_end(void);

/* Without the others: MPI_Abort, a deadlock.  Writes what this machine has found. */
void oriel_finding_end_alone(void);

#endif
