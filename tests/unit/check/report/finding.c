/* src/check/report/finding.c, report_text.c and call_sites.c: which findings count as one, their
 * text, their sharing between processes, and the cost of known call sites. There is no `oriel`
 * command next to this program, so lines stay unknown, as if the helper cannot be started. Run by
 * the test rows. */
#include "check/report/finding_internal.h"
#include "check/report/call_sites.h"

#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "cmocka_all.h"

/* summary.c's, which depends on MPI. */
void oriel_finding_end_alone(void)
{
}

enum {
    BOARD = 16 << 20
}; /* less than a quarter of the node's memory: valgrind searches all of it for leaks */

static int errors_fd = -1; /* the destination of standard error */

static void listen_begin(void)
{
    char path[] = "/tmp/oriel-finding.XXXXXX";
    if (errors_fd >= 0)
        close(errors_fd);
    errors_fd = mkstemp(path);
    assert_true(errors_fd >= 0);
    unlink(path);
}

/* The text of a finding, until the next call. */
static const char *printed(const struct oriel_finding *finding)
{
    static char text[16384];
    listen_begin();
    int before = dup(STDERR_FILENO);
    dup2(errors_fd, STDERR_FILENO);
    oriel_finding_report(finding);
    dup2(before, STDERR_FILENO);
    close(before);
    ssize_t len = pread(errors_fd, text, sizeof text - 1, 0);
    text[len < 0 ? 0 : len] = '\0';
    return text;
}

/* Two call sites of this program. */
static struct oriel_site site_of(int which, uint16_t call, uint32_t rank)
{
    return oriel_site_here((const char *)(uintptr_t)site_of + which, call, rank, 0);
}

static struct oriel_finding conflict(const char *window)
{
    struct oriel_finding finding = ORIEL_FINDING_NONE;
    finding.rule = ORIEL_RULE_CONFLICT;
    finding.window = window;
    finding.flavour = "allocate";
    finding.target = 2;
    finding.offset = 16;
    finding.len_bytes = 8;
    finding.element = 2;
    finding.elements = 1;
    finding.here = site_of(1, ORIEL_CALL_Put, 1);
    finding.other = site_of(2, ORIEL_CALL_Get, 0);
    finding.opening = site_of(3, ORIEL_CALL_Win_lock_all, 1);
    finding.help = "call MPI_Win_flush(2, win) after @other";
    return finding;
}

static int start(void **state)
{
    (void)state;
    char path[64];
    return oriel_shm_make_sized(4, BOARD, path, sizeof path) == ORIEL_OK &&
                   oriel_call_sites_start() == ORIEL_OK && oriel_finding_start() == ORIEL_OK
               ? 0
               : 1;
}

static const struct oriel_finding_entry *last(void)
{
    return &oriel_findings()->entries[oriel_findings()->used - 1];
}

static void finding_without_the_command_names_its_calls(void **state)
{
    (void)state;
    struct oriel_finding finding = conflict("said");
    const char *text = printed(&finding);
    assert_non_null(
        strstr(text, "error[C1]: conflicting operations without order\n  --> offset 0x"));
    assert_non_null(strstr(text, "of finding (rank 1): MPI_Put\n"));
    assert_non_null(strstr(text, "of finding (rank 0): MPI_Get\n"));
    assert_non_null(
        strstr(text, "= note: the oriel command does not answer: no lines are known\n"));
}

static void records_have_epochs_and_effects(void **state)
{
    (void)state;
    struct oriel_finding finding = conflict("epochs");
    finding.opening = site_of(3, ORIEL_CALL_lock_shared, 1);
    finding.other_opening = site_of(5, ORIEL_CALL_lock_exclusive, 0);
    finding.here_effect = ORIEL_EFFECT_WRITES;
    printed(&finding);
    struct oriel_record_finding record;
    oriel_record_read(last(), &record);
    assert_string_equal(record.opening.call, "MPI_Win_lock");
    assert_string_equal(record.opening.epoch, "a shared lock");
    assert_string_equal(record.other_opening.epoch, "an exclusive lock");
    assert_int_equal(record.here.effect, ORIEL_EFFECT_WRITES);
    assert_string_equal(record.help, "call MPI_Win_flush(2, win) after @other");
}

static void equal_findings_are_printed_once_and_counted(void **state)
{
    (void)state;
    struct oriel_finding finding = conflict("often");
    assert_string_not_equal(printed(&finding), "");
    finding.target = 3; /* the call site in the program counts */
    finding.offset = 800;
    for (int i = 0; i < 9; i++)
        assert_string_equal(printed(&finding), "");
    struct oriel_record_finding record;
    oriel_record_read(last(), &record);
    assert_string_equal(record.window, "often");
    assert_int_equal(record.count, 10);
    assert_int_equal(record.target, 2);
    assert_int_equal(record.ranks[0], 2);
}

static void the_order_of_two_accesses_makes_no_other_finding(void **state)
{
    (void)state;
    struct oriel_finding finding = conflict("pair");
    assert_string_not_equal(printed(&finding), "");
    struct oriel_site here = finding.here;
    finding.here = finding.other;
    finding.other = here;
    assert_string_equal(printed(&finding), "");
    assert_int_equal(last()->count, 2);
    assert_int_equal(last()->ranks[0], 3);
}

static void other_windows_rules_places_and_calls_are_other_findings(void **state)
{
    (void)state;
    struct oriel_finding finding = conflict("one");
    assert_string_not_equal(printed(&finding), "");
    finding.window = "another";
    assert_string_not_equal(printed(&finding), "");
    finding.rule = ORIEL_RULE_OUTSIDE_EPOCH;
    assert_string_not_equal(printed(&finding), "");
    finding.here = site_of(4, ORIEL_CALL_Put, 1);
    assert_string_not_equal(printed(&finding), "");
    finding.other = site_of(2, ORIEL_CALL_Rget, 0);
    assert_string_not_equal(printed(&finding), "");
    assert_string_equal(printed(&finding), "");
}

static void another_process_counts_findings_of_this_one(void **state)
{
    (void)state;
    struct oriel_finding finding = conflict("shared");
    assert_string_not_equal(printed(&finding), "");
    pid_t child = fork();
    if (child == 0) {
        finding.here.world_rank = 3;
        _exit(printed(&finding)[0] == '\0' ? 0 : 1);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(last()->count, 2);
    assert_int_equal(last()->ranks[0], 2 | 8);
}

static void ranks_are_named_in_ranges(void **state)
{
    (void)state;
    static struct oriel_record_finding record = {.ranks = {0x8f, 1}};
    char bytes[1024] = "";
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    oriel_text_ranks(&text, &record);
    assert_string_equal(bytes, "ranks 0-3, 7, 64");
    record.ranks[0] = 4;
    record.ranks[1] = 0;
    text.used = 0;
    oriel_text_ranks(&text, &record);
    assert_string_equal(bytes, "rank 2");
}

static void text_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    char bytes[8];
    struct oriel_text text = {.bytes = bytes, .room = sizeof bytes};
    oriel_text_add(&text, "%s", "123");
    oriel_text_add(&text, "%s", "45678");
    oriel_text_add(&text, "%s", "9");
    assert_string_equal(bytes, "1234567");
    assert_int_equal(text.used, 7);
}

static void unchecked_accesses_are_counted_by_their_text(void **state)
{
    (void)state;
    oriel_finding_count("calls not modelled: MPI_File_write");
    oriel_finding_count("something else");
    for (int i = 0; i < 4; i++)
        oriel_finding_count("calls not modelled: MPI_File_write");
    assert_int_equal(oriel_findings()->counted, 2);
    assert_string_equal(oriel_findings()->counts[0].what, "calls not modelled: MPI_File_write");
    assert_int_equal(oriel_findings()->counts[0].count, 5);
    assert_int_equal(oriel_findings()->counts[1].count, 1);
}

static void codes_name_the_module_and_never_change(void **state)
{
    (void)state;
    uint64_t here = oriel_site_code((const void *)(uintptr_t)site_of);
    uint64_t libc = oriel_site_code((const void *)(uintptr_t)gnu_get_libc_version);
    assert_int_equal(here, oriel_site_code((const void *)(uintptr_t)site_of));
    assert_int_not_equal(here >> 48, 0);
    assert_int_not_equal(here >> 48, libc >> 48);
    struct oriel_site site = {.address = libc, .call = ORIEL_CALL_load, .world_rank = 3};
    struct oriel_record_site described;
    oriel_site_describe(&site, &described);
    assert_string_equal(described.call, "load");
    assert_int_equal(described.rank, 3);
    assert_non_null(strstr(described.place.module, "libc"));
    int variable = 0;
    assert_int_equal(oriel_site_code(&variable) >> 48, 0); /* of no module */
}

static void numbers_lead_back_to_sites(void **state)
{
    (void)state;
    assert_int_equal(oriel_site_numbered(0, 1).call, ORIEL_CALL_NONE);
    uint16_t numbers[64];
    for (int i = 0; i < 64; i++) {
        struct oriel_site site =
            site_of(i, i % 2 == 0 ? ORIEL_CALL_Win_lock : ORIEL_CALL_Win_fence, 1);
        numbers[i] = oriel_site_number(&site);
        assert_int_not_equal(numbers[i], 0);
        assert_int_equal(oriel_site_number(&site), numbers[i]);
    }
    for (int i = 0; i < 64; i++) {
        struct oriel_site site = oriel_site_numbered(numbers[i], 2);
        assert_int_equal(site.address, site_of(i, 0, 0).address);
        assert_int_equal(site.call, i % 2 == 0 ? ORIEL_CALL_Win_lock : ORIEL_CALL_Win_fence);
        assert_int_equal(site.world_rank, 2);
    }
}

static void calls_have_their_names(void **state)
{
    (void)state;
    assert_string_equal(oriel_call_name(ORIEL_CALL_NONE), "");
    assert_string_equal(oriel_call_name(ORIEL_CALL_Win_lock_all), "MPI_Win_lock_all");
    assert_string_equal(oriel_call_name(ORIEL_CALL_store), "store");
}

/* --- what a known call site costs --- */

typedef int visit_fn(struct dl_phdr_info *info, size_t size, void *closure);
static unsigned searches; /* of all modules */
static unsigned links_read;
static unsigned frames_visited;

int __real_dl_iterate_phdr(visit_fn *visit, void *closure);
int __wrap_dl_iterate_phdr(visit_fn *visit, void *closure);
ssize_t __real_readlink(const char *path, char *out, size_t room);
ssize_t __wrap_readlink(const char *path, char *out, size_t room);
_Unwind_Word __real__Unwind_GetIP(struct _Unwind_Context *frame);
_Unwind_Word __wrap__Unwind_GetIP(struct _Unwind_Context *frame);

int __wrap_dl_iterate_phdr(visit_fn *visit, void *closure)
{
    searches++;
    return __real_dl_iterate_phdr(visit, closure);
}

ssize_t __wrap_readlink(const char *path, char *out, size_t room)
{
    links_read++;
    return __real_readlink(path, out, room);
}

_Unwind_Word __wrap__Unwind_GetIP(struct _Unwind_Context *frame)
{
    frames_visited++;
    return __real__Unwind_GetIP(frame);
}

/* Whatever their distance: four sites fit a set of the cache. */
static void call_sites_of_one_loop_do_not_evict_each_other(void **state)
{
    enum { SITES = 4, DISTANCES = 2048 };
    (void)state;
    for (int distance = 1; distance < DISTANCES; distance++) {
        for (int round = 0; round < 2 * SITES; round++) {
            if (round == SITES)
                searches = 0;
            for (int i = 0; i < SITES; i++)
                (void)site_of(i * distance, ORIEL_CALL_Put, 0);
        }
        assert_int_equal(searches, 0);
    }
    assert_true(links_read <= 1); /* /proc/self/exe */
}

/* The frames outside are many: main sees to that. */
static void a_search_for_the_caller_ends_at_the_first_frame_outside(void **state)
{
    const void *runtime = (const void *)(uintptr_t)gnu_get_libc_version;
    (void)state;
    frames_visited = 0;
    assert_int_not_equal(oriel_site_code(runtime), oriel_site_frame_code(runtime));
    assert_in_range(frames_visited, 1, 12);
}

static unsigned asked;
static bool is_none;

static bool is_none_ask(void)
{
    asked++;
    return is_none;
}

static void doubt_about_a_finding_is_settled_once(void **state)
{
    (void)state;
    struct oriel_finding finding = conflict("doubtful");
    finding.is_none = is_none_ask;
    is_none = true;
    uint32_t used = oriel_findings()->used;
    assert_false(oriel_finding_repeats(&finding));
    assert_string_equal(printed(&finding), "");
    assert_int_equal(oriel_findings()->used, used);
    is_none = false;
    assert_string_not_equal(printed(&finding), "");
    assert_int_equal(asked, 2);
    for (int i = 0; i < 4; i++)
        assert_string_equal(printed(&finding), "");
    assert_true(oriel_finding_repeats(&finding));
    assert_int_equal(asked, 2);
    assert_int_equal(last()->count, 6);
}

/* The last test: it fills the shared memory. */
static void findings_without_room_are_counted(void **state)
{
    (void)state;
    char name[32];
    int given = 0;
    while (oriel_findings()->used < ORIEL_FINDINGS) {
        snprintf(name, sizeof name, "window %d", given++);
        struct oriel_finding finding = conflict(name);
        printed(&finding);
    }
    assert_int_equal(oriel_findings()->lost, 0);
    struct oriel_finding finding = conflict("one more");
    assert_string_equal(printed(&finding), "");
    assert_int_equal(oriel_findings()->lost, 1);
    finding = conflict(name);
    assert_string_equal(printed(&finding), "");
    assert_int_equal(oriel_findings()->lost, 1);
}

static int run_below(int frames)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(finding_without_the_command_names_its_calls),
        cmocka_unit_test(equal_findings_are_printed_once_and_counted),
        cmocka_unit_test(the_order_of_two_accesses_makes_no_other_finding),
        cmocka_unit_test(other_windows_rules_places_and_calls_are_other_findings),
        cmocka_unit_test(another_process_counts_findings_of_this_one),
        cmocka_unit_test(records_have_epochs_and_effects),
        cmocka_unit_test(ranks_are_named_in_ranges),
        cmocka_unit_test(text_that_does_not_fit_is_cut),
        cmocka_unit_test(unchecked_accesses_are_counted_by_their_text),
        cmocka_unit_test(codes_name_the_module_and_never_change),
        cmocka_unit_test(numbers_lead_back_to_sites),
        cmocka_unit_test(calls_have_their_names),
        cmocka_unit_test(call_sites_of_one_loop_do_not_evict_each_other),
        cmocka_unit_test(a_search_for_the_caller_ends_at_the_first_frame_outside),
        cmocka_unit_test(doubt_about_a_finding_is_settled_once),
        cmocka_unit_test(findings_without_room_are_counted),
    };
    int status = frames > 0 ? run_below(frames - 1) : cmocka_run_group_tests(tests, start, NULL);
    __asm__ volatile("" ::: "memory"); /* otherwise the call becomes a jump */
    return status;
}

int main(void)
{
    enum { FRAMES = 40 };
    return run_below(FRAMES);
}
