/* Findings as they are made. Each is stored once in the checker's shared memory, reported by the
 * first process that finds it, and counted by all others. An entry is found by a hash of its rule,
 * its window's name and its two sites. Sites are codes, so equal findings of several ranks of a
 * node are one. */
#include "check/report/finding_internal.h"

#include "base/atomic.h"
#include "base/code_address.h"
#include "base/helper_process.h"
#include "base/options.h"
#include "check/report/call_sites.h"

#include <execinfo.h>
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

struct oriel_findings *oriel_findings(void)
{
    return findings;
}

const struct oriel_rule_text *oriel_rule_text(uint32_t rule)
{
    static const struct oriel_rule_text texts[] = {
#define RULE(name, number_, title_, text, example, remedy_)                                        \
    {.number = number_, .title = title_, .remedy = remedy_},
#include "check/report/rules.def"
#undef RULE
    };
    static const struct oriel_rule_text unknown = {
        .number = "?", .title = "unknown rule", .remedy = ""};
    return rule < ORIEL_RULE_COUNT ? &texts[rule] : &unknown;
}

static void findings_init(void *at)
{
    struct oriel_findings *fresh = at;
    oriel_shm_lock_init(&fresh->lock);
}

enum oriel_status oriel_finding_start(void)
{
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

/* Returns the entry; a fresh one is for the caller to fill in. NULL: there is no room. */
static struct oriel_finding_entry *entry_find(uint64_t hash, bool *fresh)
{
    uint32_t at = 0;
    uint32_t used = oriel_load_acquire(&findings->used);
    *fresh = false;
    while (at < used && findings->hashes[at] != hash)
        at++;
    if (at < used)
        return &findings->entries[at];
    oriel_shm_lock(&findings->lock);
    used = findings->used;
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

static void record_fill(const struct oriel_finding *finding, struct oriel_record_finding *out)
{
    memset(out, 0, sizeof *out);
    out->rule = finding->rule;
    out->target = finding->target;
    out->offset = finding->offset;
    out->len_bytes = finding->len_bytes;
    out->element = finding->element;
    out->elements = finding->elements;
    copy_text(out->window, sizeof out->window, finding->window);
    copy_text(out->flavour, sizeof out->flavour, finding->flavour);
    copy_text(out->missing, sizeof out->missing, finding->missing);
    copy_text(out->detail, sizeof out->detail, finding->detail);
    site_describe(finding->here, finding->here.world_rank, &out->here);
    site_describe(finding->other, finding->here.world_rank, &out->other);
    site_describe(finding->opening, finding->here.world_rank, &out->opening);
}

/* Whether it is the C library's caller of main, or a frame before it. */
static bool is_start_frame(const struct oriel_code_address *place)
{
    return strncmp(place->function, "__libc_start", 12) == 0 ||
           strncmp(place->function, "_start", 6) == 0;
}

/* Formats the frames above this library, from main on. */
static void stack_fill(const struct oriel_code_address *frames, int count, const char *own,
                       char *out, size_t room)
{
    struct oriel_text text = {.bytes = out, .room = room};
    for (int i = 0; i < count; i++) {
        if (frames[i].offset == 0 || strcmp(frames[i].module, own) == 0 ||
            is_start_frame(&frames[i]))
            continue;
        oriel_text_place(&text, &frames[i]);
        oriel_text_add(&text, "\n");
    }
}

static int frames_find(struct oriel_code_address *places, char own[ORIEL_RECORD_LONG])
{
    void *addresses[FRAMES];
    struct oriel_record_site described;
    struct oriel_site site = {
        .address = oriel_site_frame_code((const void *)(uintptr_t)oriel_finding_report),
        .call = ORIEL_CALL_store};
    oriel_site_describe(&site, &described);
    memcpy(own, described.place.module, ORIEL_RECORD_LONG);
    int count = oriel_code_address_stack(addresses, FRAMES);
    for (int i = 0; i < count; i++) {
        site.address = oriel_site_frame_code(addresses[i]);
        oriel_site_describe(&site, &described);
        places[i] = described.place;
    }
    return count;
}

/* Finds lines for the sites, and the stack if requested. Without a helper, module and offset
 * remain. */
static void places_find(struct oriel_record_finding *record)
{
    enum { SITES = 3 };
    struct oriel_code_address *sites[SITES] = {&record->here.place, &record->other.place,
                                               &record->opening.place};
    struct oriel_code_address *places = calloc(SITES + FRAMES, sizeof *places);
    char own[ORIEL_RECORD_LONG];
    void *answer = NULL;
    size_t answer_bytes = 0;
    if (places == NULL)
        return;
    int frames = oriel_options()->check_stacks ? frames_find(places + SITES, own) : 0;
    size_t len_bytes = (size_t)(SITES + frames) * sizeof *places;
    for (int i = 0; i < SITES; i++)
        places[i] = *sites[i];
    if (oriel_helper_request_persistent(&findings->helper, ORIEL_HELPER_PLACES, places, len_bytes,
                                        &answer, &answer_bytes) &&
        answer_bytes == len_bytes)
        memcpy(places, answer, len_bytes);
    for (int i = 0; i < SITES; i++)
        *sites[i] = places[i];
    if (frames > 0)
        stack_fill(places + SITES, frames, own, record->stack, sizeof record->stack);
    free(answer);
    free(places);
}

void oriel_finding_report(const struct oriel_finding *finding)
{
    bool fresh;
    if (findings == NULL)
        return;
    struct oriel_finding_entry *entry = entry_find(finding_hash(finding), &fresh);
    if (entry == NULL) {
        atomic_fetch_add_explicit(&findings->lost, 1, memory_order_relaxed);
        return;
    }
    entry_count(entry, finding->here.world_rank);
    if (!fresh)
        return;
    char bytes[TEXT_BYTES];
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    record_fill(finding, &entry->record);
    places_find(&entry->record);
    oriel_text_finding(&text, &entry->record);
    oriel_text_write(&text);
}

void oriel_finding_left(const char *name, const struct oriel_site *site)
{
    char bytes[TEXT_BYTES];
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    struct oriel_record_finding *record = calloc(1, sizeof *record);
    oriel_text_add(&text, "oriel: rank %" PRIu32 ": %s ", site->world_rank,
                   name == NULL ? "a call" : name);
    if (record != NULL) {
        site_describe(*site, site->world_rank, &record->here);
        places_find(record);
        oriel_text_place(&text, &record->here.place);
    }
    oriel_text_add(&text, " was left by a jump; this rank is no longer checked, and no conflicts "
                          "are reported from now on [O27]\n");
    oriel_text_write(&text);
    free(record);
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
