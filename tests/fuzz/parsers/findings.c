/* The readers of findings and of statistics in `oriel report`, on arbitrary files. */
#include "fuzzer.h"

#include <sys/mman.h>
#include <unistd.h>

#include "cli/report/compare.h"
#include "cli/report/findings_reader.h"
#include "cli/report/json_file.h"

/* No output that a terminal would interpret as a command, neither in the findings nor in the
 * message about an unreadable file. */
static void look(const char *text, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++) {
        const unsigned char byte = (unsigned char)text[i];
        REQUIRE(byte == '\n' || (byte >= 0x20 && byte != 0x7f));
        REQUIRE(byte != 0xc2 || i + 1 == len_bytes || (unsigned char)text[i + 1] >= 0xa0);
    }
}

static void statistics_report(json_t *file, FILE *out)
{
    static struct oriel_reported_run run;
    struct oriel_comparison comparison;
    if (!oriel_reported_run_of_file("runs", file, out, &run))
        return;
    oriel_statistics_print(&run.sum, 80, out);
    oriel_comparison_make(&run, &run, &comparison);
    oriel_comparison_print(&comparison, out);
    oriel_comparison_csv(&comparison, out);
    json_decref(oriel_comparison_json(&comparison, 2, 1));
    json_decref(oriel_statistics_json(&run.sum));
    oriel_comparison_free(&comparison);
    oriel_reported_run_close(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
    static char path[64];
    static int fd = -1;
    char *text = NULL;
    size_t text_bytes = 0;
    struct oriel_findings_file found;
    if (fd < 0) {
        fd = memfd_create("findings", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    REQUIRE(ftruncate(fd, 0) == 0 && pwrite(fd, data, len_bytes, 0) == (ssize_t)len_bytes);
    FILE *out = open_memstream(&text, &text_bytes);
    REQUIRE(out != NULL);
    json_t *file = oriel_json_file_read(path, out);
    if (file != NULL && oriel_statistics_file_is(file)) {
        statistics_report(file, out);
    } else if (file != NULL && oriel_findings_file_open(path, file, out, &found)) {
        oriel_findings_file_print(&found, out);
        oriel_findings_file_close(&found);
    }
    fclose(out);
    look(text, text_bytes);
    free(text);
    return 0;
}
