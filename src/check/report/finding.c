/* Findings as they are made. Each is stored once in the checker's shared memory, reported by the
 * first process that finds it, and counted by all others. The helper writes its text (cli/check).
 * An entry is found by a hash of its rule, its window's name and its two sites. Sites are codes, so
 * equal findings of several ranks of a node are one. */
#include "check/report/finding_internal.h"

#include "base/atomic.h"
#include "base/code_address.h"
#include "base/helper_process.h"
#include "base/log.h"
#include "base/options.h"
#include "check/report/call_sites.h"

#include <execinfo.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 24, TEXT_BYTES = 8192 };

static const struct oriel_key findings_key = {
    .words = {UINT64_C(0x46494e44)}}; /* "FIND": above all kinds of order.h */
static struct oriel_findings *findings;
/* may be set before findings exist: programs report their accesses from their first line on */
static _Atomic bool watched;
static bool left_out[ORIEL_RULE_COUNT]; /* rules that --only or --ignore leave out */

struct oriel_findings *oriel_findings(void)
{
    return findings;
}

const struct oriel_rule_text *oriel_rule_text(uint32_t rule)
{
    static const struct oriel_rule_text texts[] = {
#define RULE(name, number_, severity_, title_, text, example, remedy)                              \
    {.number = number_, .severity = severity_, .title = title_},
#include "check/report/rules.def"
#undef RULE
    };
    static const struct oriel_rule_text unknown = {
        .number = "?", .severity = "error", .title = "unknown rule"};
    return rule < ORIEL_RULE_COUNT ? &texts[rule] : &unknown;
}

static void findings_init(void *at)
{
    struct oriel_findings *fresh = at;
    oriel_shm_lock_init(&fresh->lock);
}

/* Whether a list such as "C*,E13" has a pattern for the rule. */
static bool list_has_rule(const char *list, const char *number)
{
    char pattern[16];
    for (size_t len = strcspn(list, ","); *list != '\0'; len = strcspn(list, ",")) {
        snprintf(pattern, sizeof pattern, "%.*s", (int)len, list);
        if (fnmatch(pattern, number, FNM_CASEFOLD) == 0)
            return true;
        list += len + (list[len] == ',');
    }
    return false;
}

static void rules_choose(void)
{
    const struct oriel_options *options = oriel_options();
    for (uint32_t rule = 0; rule < ORIEL_RULE_COUNT; rule++) {
        const char *number = oriel_rule_text(rule)->number;
        left_out[rule] =
            rule != ORIEL_RULE_DEADLOCK &&
            ((options->check_only != NULL && !list_has_rule(options->check_only, number)) ||
             (options->check_ignore != NULL && list_has_rule(options->check_ignore, number)));
    }
}

enum oriel_status oriel_finding_start(void)
{
    rules_choose();
    findings = oriel_shm_at(oriel_shm_find(&findings_key, sizeof *findings, findings_init));
    if (findings == NULL)
        return oriel_fail(ORIEL_E_NO_MEM, "the checker has no memory for findings");
    oriel_exit_status_enter();
    if (watched)
        oriel_finding_local_watched();
    void *frame;
    if (oriel_options()->check_stacks)
        backtrace(&frame, 1); /* loads its libraries now, not in the middle of a finding */
    return ORIEL_OK;
}

void oriel_text_finding(struct oriel_text *text, const struct oriel_record_finding *record)
{
    const struct oriel_rule_text *rule = oriel_rule_text(record->rule);
    const struct oriel_record_site *sites[] = {&record->here, &record->other};
    oriel_text_add(text, "%s[%s]: %s\n", rule->severity, rule->number, rule->title);
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        if (sites[i]->call[0] == '\0')
            continue;
        oriel_text_add(text, "  --> ");
        oriel_text_place(text, &sites[i]->place);
        oriel_text_add(text, " (rank %" PRId32 "): %s\n", sites[i]->rank, sites[i]->call);
    }
    oriel_text_add(text, "   = note: the oriel command does not answer: no lines are known\n");
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t site_hash(const struct oriel_site *site)
{
    return site->call == ORIEL_CALL_NONE ? 0 : mix(mix(0, site->address), site->call);
}

/* Never 0. The hash covers the unordered pair of sites, because the order of the two operations is
 * chance. */
static uint64_t finding_hash(const struct oriel_finding *finding)
{
    uint64_t here = site_hash(&finding->here);
    uint64_t other = site_hash(&finding->other);
    uint64_t hash =
        mix(mix(mix(1, finding->rule), here < other ? here : other), here < other ? other : here);
    for (const char *at = finding->window; at != NULL && *at != '\0'; at++)
        hash = mix(hash, (unsigned char)*at);
    return hash | 1;
}

/* Returns the entry; NULL: there is none. */
static struct oriel_finding_entry *entry_known(uint64_t hash)
{
    uint32_t used = oriel_load_acquire(&findings->used);
    for (uint32_t at = 0; at < used; at++)
        if (findings->hashes[at] == hash)
            return &findings->entries[at];
    return NULL;
}

/* Returns the entry; a fresh one is for the caller to fill in. NULL: there is no room. */
static struct oriel_finding_entry *entry_find(uint64_t hash, bool *fresh)
{
    uint32_t at = 0;
    *fresh = false;
    oriel_shm_lock(&findings->lock);
    uint32_t used = findings->used;
    while (at < used && findings->hashes[at] != hash)
        at++;
    if (at == used && used < ORIEL_FINDINGS) {
        findings->hashes[at] = hash;
        oriel_store_release(&findings->used, used + 1);
        *fresh = true;
    }
    oriel_shm_unlock(&findings->lock);
    return at < ORIEL_FINDINGS ? &findings->entries[at] : NULL;
}

static void entry_count(struct oriel_finding_entry *entry, uint32_t rank)
{
    atomic_fetch_add_explicit(&entry->count, 1, memory_order_relaxed);
    uint64_t bit = UINT64_C(1) << (rank % 64);
    if (rank < ORIEL_RECORD_RANKS &&
        (atomic_load_explicit(&entry->ranks[rank / 64], memory_order_relaxed) & bit) == 0)
        atomic_fetch_or_explicit(&entry->ranks[rank / 64], bit, memory_order_relaxed);
}

void oriel_record_read(const struct oriel_finding_entry *entry, struct oriel_record_finding *out)
{
    *out = entry->record;
    out->count = entry->count;
    for (size_t i = 0; i < sizeof out->ranks / sizeof out->ranks[0]; i++)
        out->ranks[i] = entry->ranks[i];
}

/* Replaces control characters in the program's names, which a terminal would execute. */
static void copy_text(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text == NULL ? "" : text);
    for (unsigned char *at = (unsigned char *)out; *at != '\0'; at++)
        if (*at < ' ' || *at == 0x7f)
            *at = '?';
        else if (*at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0) /* of two bytes */
            at[0] = at[1] = '?';
}

/* Turns a bare address of this process into a code first. */
static void site_describe(struct oriel_site site, uint32_t here_rank, struct oriel_record_site *out)
{
    if (site.call != ORIEL_CALL_NONE && site.world_rank == here_rank)
        site = oriel_site_coded(&site);
    oriel_site_describe(&site, out);
}

/* The kind of epoch that a call opens, in words. */
static const char *epoch_name(uint16_t call)
{
    switch (call) {
    case ORIEL_CALL_lock_shared: return "a shared lock";
    case ORIEL_CALL_lock_exclusive: return "an exclusive lock";
    case ORIEL_CALL_Win_lock_all: return "MPI_Win_lock_all";
    case ORIEL_CALL_Win_fence: return "MPI_Win_fence";
    case ORIEL_CALL_Win_start: return "MPI_Win_start";
    case ORIEL_CALL_Win_post: return "MPI_Win_post";
    default: return "";
    }
}

static void opening_describe(struct oriel_site site, uint32_t here_rank,
                             struct oriel_record_site *out)
{
    site_describe(site, here_rank, out);
    snprintf(out->epoch, sizeof out->epoch, "%s", epoch_name(site.call));
}

static void record_fill(const struct oriel_finding *finding, struct oriel_record_finding *out)
{
    memset(out, 0, sizeof *out);
    out->rule = finding->rule;
    out->target = finding->target;
    out->offset = finding->offset;
    out->len_bytes = finding->len_bytes;
    out->element = finding->element;
    out->elements = finding->elements;
    out->device = finding->device;
    copy_text(out->window, sizeof out->window, finding->window);
    copy_text(out->flavour, sizeof out->flavour, finding->flavour);
    copy_text(out->help, sizeof out->help, finding->help);
    copy_text(out->detail, sizeof out->detail, finding->detail);
    site_describe(finding->here, finding->here.world_rank, &out->here);
    site_describe(finding->other, finding->here.world_rank, &out->other);
    opening_describe(finding->opening, finding->here.world_rank, &out->opening);
    opening_describe(finding->other_opening, finding->here.world_rank, &out->other_opening);
    site_describe(finding->made, finding->here.world_rank, &out->made);
    site_describe(finding->init, finding->here.world_rank, &out->init);
    site_describe(finding->other_init, finding->here.world_rank, &out->other_init);
    out->here.effect = finding->here_effect;
    out->other.effect = finding->other_effect;
}

/* The frames above this library. Returns their number. */
static int frames_find(struct oriel_code_address *places)
{
    void *addresses[FRAMES];
    struct oriel_record_site described;
    struct oriel_code_address own;
    struct oriel_site site = {
        .address = oriel_site_frame_code((const void *)(uintptr_t)oriel_finding_report),
        .call = ORIEL_CALL_store};
    oriel_site_describe(&site, &described);
    own = described.place;
    int count = oriel_code_address_stack(addresses, FRAMES);
    int used = 0;
    for (int i = 0; i < count; i++) {
        site.address = oriel_site_frame_code(addresses[i]);
        oriel_site_describe(&site, &described);
        if (described.place.offset != 0 && strcmp(described.place.module, own.module) != 0)
            places[used++] = described.place;
    }
    return used;
}

void oriel_finding_options(struct oriel_helper_check *out)
{
    const struct oriel_options *options = oriel_options();
    const struct {
        const char *value;
        char *field;
    } files[] = {{options->check_json, out->json},
                 {options->check_sarif, out->sarif},
                 {options->check_junit, out->junit},
                 {options->check_suppress, out->suppress},
                 {options->check_baseline, out->baseline}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        snprintf(files[i].field, sizeof out->json, "%s",
                 files[i].value == NULL ? "" : files[i].value);
    out->color = (uint32_t)options->check_color;
    out->width = (uint32_t)options->check_width;
    out->only = options->check_only != NULL || options->check_ignore != NULL;
    out->fails = options->check_fail;
}

/* Has the helper complete the record. Returns its text, to be freed, or NULL without an answer. */
static char *finding_complete(struct oriel_record_finding *record)
{
    struct {
        struct oriel_helper_check check;
        struct oriel_record_finding record;
        struct oriel_code_address frames[FRAMES];
    } *request = calloc(1, sizeof *request);
    void *answer = NULL;
    size_t answer_bytes = 0;
    if (request == NULL)
        return NULL;
    oriel_finding_options(&request->check);
    request->record = *record;
    int frames = oriel_options()->check_stacks ? frames_find(request->frames) : 0;
    size_t len_bytes = sizeof *request - (FRAMES - (size_t)frames) * sizeof request->frames[0];
    bool done = oriel_helper_request_persistent(&findings->helper, ORIEL_HELPER_FINDING, request,
                                                len_bytes, &answer, &answer_bytes) &&
                answer_bytes >= sizeof *record;
    free(request);
    if (!done) {
        free(answer);
        return NULL;
    }
    memcpy(record, answer, sizeof *record);
    size_t text_bytes = answer_bytes - sizeof *record;
    memmove(answer, (char *)answer + sizeof *record, text_bytes);
    ((char *)answer)[text_bytes] = '\0';
    return answer;
}

/* Prints the text, or one line in its place when there are too many. */
static _Atomic bool has_printed;

bool oriel_finding_has_printed(void)
{
    return has_printed;
}

static void finding_print(const char *text)
{
    uint32_t before;
    if (text[0] == '\0')
        return;
    before = atomic_fetch_add_explicit(&findings->printed, 1, memory_order_relaxed);
    has_printed = true;
    if (before < ORIEL_FINDINGS_PRINTED)
        oriel_log_write(text, strlen(text));
    else if (before == ORIEL_FINDINGS_PRINTED) {
        char line[160];
        int len = snprintf(line, sizeof line,
                           "oriel check: more than %d problems on this node: the others are in the "
                           "files of --json, --sarif and --junit only\n",
                           ORIEL_FINDINGS_PRINTED);
        oriel_log_write(line, (size_t)len);
    }
}

bool oriel_finding_repeats(const struct oriel_finding *finding)
{
    if (findings == NULL || left_out[finding->rule])
        return true;
    struct oriel_finding_entry *entry = entry_known(finding_hash(finding));
    if (entry != NULL)
        entry_count(entry, finding->here.world_rank);
    return entry != NULL;
}

void oriel_finding_report(const struct oriel_finding *finding)
{
    bool fresh;
    if (oriel_finding_repeats(finding) || (finding->is_none != NULL && finding->is_none()))
        return;
    struct oriel_finding_entry *entry = entry_find(finding_hash(finding), &fresh);
    if (entry == NULL) {
        atomic_fetch_add_explicit(&findings->lost, 1, memory_order_relaxed);
        return;
    }
    entry_count(entry, finding->here.world_rank);
    if (!fresh)
        return;
    record_fill(finding, &entry->record);
    char *answer = finding_complete(&entry->record);
    if (answer == NULL) {
        char bytes[TEXT_BYTES];
        struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
        oriel_text_finding(&text, &entry->record);
        finding_print(bytes);
    } else
        finding_print(answer);
    free(answer);
}

/* Finds the line of one location. Without an answer, module and offset remain. */
static void place_find(struct oriel_code_address *place)
{
    void *answer = NULL;
    size_t answer_bytes = 0;
    if (oriel_helper_request(ORIEL_HELPER_PLACES, place, sizeof *place, &answer, &answer_bytes) &&
        answer_bytes == sizeof *place)
        memcpy(place, answer, sizeof *place);
    free(answer);
}

void oriel_finding_left(const char *name, const struct oriel_site *site)
{
    char bytes[TEXT_BYTES];
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    struct oriel_record_site where;
    site_describe(*site, site->world_rank, &where);
    place_find(&where.place);
    oriel_text_add(&text, "oriel: rank %" PRIu32 ": %s at ", site->world_rank,
                   name == NULL ? "a call" : name);
    oriel_text_place(&text, &where.place);
    oriel_text_add(&text, " was left by a jump; this rank is no longer checked, and no conflicts "
                          "are reported from now on [O27]\n");
    oriel_text_write(&text);
    oriel_finding_count(
        "a call was left by a jump: its rank is no longer checked, and no conflicts "
        "are reported");
}

void oriel_finding_count(const char *what)
{
    if (findings == NULL)
        return;
    uint32_t at = 0;
    uint32_t used = oriel_load_acquire(&findings->counted);
    while (at < used && strncmp(findings->counts[at].what, what, ORIEL_RECORD_SHORT - 1) != 0)
        at++;
    if (at == used) {
        oriel_shm_lock(&findings->lock);
        used = findings->counted;
        while (at < used && strncmp(findings->counts[at].what, what, ORIEL_RECORD_SHORT - 1) != 0)
            at++;
        if (at == used && used < ORIEL_FINDING_COUNTS) {
            copy_text(findings->counts[at].what, ORIEL_RECORD_SHORT, what);
            oriel_store_release(&findings->counted, used + 1);
        }
        oriel_shm_unlock(&findings->lock);
    }
    if (at < ORIEL_FINDING_COUNTS)
        atomic_fetch_add_explicit(&findings->counts[at].count, 1, memory_order_relaxed);
}

void oriel_finding_local_watched(void)
{
    watched = true;
    if (findings != NULL && oriel_load_relaxed(&findings->local_watched) == 0)
        oriel_store_relaxed(&findings->local_watched, 1);
}
