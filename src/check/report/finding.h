/* Findings: reported at once on standard error, counted when they are found again, and summarised
 * at the end. They are in the checker's shared memory, so equal findings of several ranks of a node
 * are one. Findings of all nodes are merged in MPI_Finalize. */
#ifndef ORIEL_CHECK_REPORT_FINDING_H
#define ORIEL_CHECK_REPORT_FINDING_H

#include "check/common/access_types.h"
#include "check/report/finding_record.h"

enum oriel_rule {
#define RULE(name, number, severity, title, text, example, remedy) ORIEL_RULE_##name,
#include "check/report/rules.def"
#undef RULE
    ORIEL_RULE_COUNT
};

/* The contents of a finding; fields that do not apply stay 0, NULL or -1 (ORIEL_FINDING_NONE). */
struct oriel_finding {
    enum oriel_rule rule;
    const char *window;  /* its name, "" for none */
    const char *flavour; /* "create", "allocate", "shared", "dynamic" */
    int target;          /* rank in the window's group; -1 */
    int64_t offset;      /* bytes at the target, with len_bytes; -1 */
    uint64_t len_bytes;
    int64_t element; /* first element, in displacement units; -1 */
    uint64_t elements;
    int device;              /* number of the GPU in whose memory the bytes are; -1 */
    struct oriel_site here;  /* the wrong call, or the later one of two */
    struct oriel_site other; /* the other one; call 0: none */
    /* the calls that opened the epochs of the two; call 0: none, or unknown */
    struct oriel_site opening;
    struct oriel_site other_opening;
    struct oriel_site made; /* the call that made the window; call 0: none */
    /* the calls that made the persistent requests of the two; call 0: none */
    struct oriel_site init;
    struct oriel_site other_init;
    enum oriel_effect here_effect, other_effect;
    /* The fix for this case, as a sentence without a period: "call MPI_Win_flush(3, win) after
     * @other". @here, @other and @opening become lines. NULL: the rule's remedy. */
    const char *help;
    char detail[256]; /* a further sentence; "" */
    /* Asked before the first report only, because it takes long: whether this is no finding. NULL:
     * it is one. */
    bool (*is_none)(void);
};
static const struct oriel_finding ORIEL_FINDING_NONE = {
    .target = -1, .offset = -1, .element = -1, .device = -1};

/* Reports a finding, or counts it if an equal one was reported: same rule, window name and sites,
 * in either order. The caller may hold no lock: another process, started for the first finding, is
 * asked for lines and reads debug information. Sites are from oriel_site_here. */
void oriel_finding_report(const struct oriel_finding *finding);

/* Counts the finding if an equal one was reported. Returns whether nothing is left to do, so that
 * the caller need not find out more for oriel_finding_report. */
bool oriel_finding_repeats(const struct oriel_finding *finding);

/* Counts an event for the summary, such as "calls not modelled: MPI_File_write". */
void oriel_finding_count(const char *what);

/* A call of this rank was left by a jump: prints one line, and counts it for the summary. name: of
 * the function, or NULL; site: of any kind of call. */
void oriel_finding_left(const char *name, const struct oriel_site *site);

/* The program's own loads and stores are instrumented: the summary then reports them as watched.
 * May be called before oriel_finding_start. */
void oriel_finding_local_watched(void);

/* Starts findings after oriel_call_sites_start, with the shared memory mapped. The options
 * ORIEL_CHECK_* set the outputs. */
enum oriel_status oriel_finding_start(void);

/* Collective, in MPI_Finalize: merges all findings at rank 0, which writes the summary and the
 * files. Every process then knows the number of findings that count. If there are any, the last
 * process of each node exits with status 86. An option turns this off, and a nonzero status of its
 * own stays. Earlier processes keep their status, because launchers kill all others when a process
 * ends with an error. */
void oriel_finding_end(void);

/* Without the other ranks, for MPI_Abort or a deadlock: writes the findings of this node. */
void oriel_finding_end_alone(void);

#endif
