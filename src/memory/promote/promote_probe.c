/* Probes promotion: moves one page into the memory file and back, with the method that windows
 * would use. Unlike the probes of probe.c, this one needs all of memory/. */
#include "memory/promote/promote.h"

#include "memory/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void probe_set_result(struct oriel_probe *out, bool available, const char *what,
                             const char *why)
{
    out->available = available;
    snprintf(out->detail, sizeof out->detail, "%s%s", what, why);
}

/* Compares the page's contents while it is promoted and afterwards. */
static void try_page(struct oriel_probe *out, char *page,
                     const struct oriel_promote_options *options)
{
    static const char text[] = "oriel";
    struct oriel_promoted promoted;
    uint64_t offset;
    uint64_t extent_bytes = 0;
    memcpy(page, text, sizeof text);
    if (oriel_promote((uintptr_t)page, ORIEL_PAGE_BYTES, options, &promoted) != ORIEL_OK) {
        probe_set_result(out, false, oriel_fail_message(), "");
        return;
    }
    bool is_shared =
        oriel_promote_find((uintptr_t)page, ORIEL_PAGE_BYTES, &offset, &extent_bytes) &&
        memcmp(oriel_file_base() + offset, text, sizeof text) == 0;
    oriel_promote_release(&promoted);
    bool is_private =
        !oriel_promote_find((uintptr_t)page, ORIEL_PAGE_BYTES, &offset, &extent_bytes) &&
        memcmp(page, text, sizeof text) == 0;
    const char *by = options->method == ORIEL_BARRIER_UFFD ? "write protection (userfaultfd)"
                                                           : "stopping all other threads";
    if (is_shared && is_private)
        probe_set_result(out, true, "one page shared in place and made private again by ", by);
    else
        probe_set_result(out, false,
                         is_shared ? "the page did not become private again by "
                                   : "the page is not in the memory file by ",
                         by);
}

void oriel_probe_promotion(struct oriel_probe *out)
{
    out->name = "promotion";
    if (oriel_file_start() != ORIEL_OK) {
        probe_set_result(out, false, oriel_fail_message(), "");
        return;
    }
    char *page =
        mmap(NULL, ORIEL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        probe_set_result(out, false, "cannot map a page: ", strerror(errno));
        return;
    }
    char refusal[100];
    try_page(out, page, &(struct oriel_promote_options){.method = ORIEL_BARRIER_UFFD});
    if (!out->available) {
        snprintf(refusal, sizeof refusal, "%.90s", out->detail);
        try_page(out, page, &(struct oriel_promote_options){.method = ORIEL_BARRIER_STOP_THREADS});
        size_t used = strlen(out->detail);
        snprintf(out->detail + used, sizeof out->detail - used, "; %s", refusal);
    }
    munmap(page, ORIEL_PAGE_BYTES);
}
