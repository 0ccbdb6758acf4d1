/* Writes the findings as JUnit test cases, which most systems for continuous integration show: one
 * case for each finding, failed if it counts, else skipped. A job without findings is one case that
 * has passed. */
#include "cli/check/findings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/report/report_text.h"
#include "cli/check/check_rules.h"
#include "cli/check/finding_text.h"
#include "cli/cli.h"
#include "cli/trace_text.h"

/* XML allows no control characters, and this file is UTF-8: a source or a name in another encoding
 * has '?' there. */
static void xml_print(FILE *out, const char *text)
{
    size_t left = strlen(text);
    for (size_t len; left > 0; text += len, left -= len) {
        len = oriel_utf8_len((const unsigned char *)text, left);
        if (len != 1) {
            fprintf(out, "%.*s", len == 0 ? 1 : (int)len, len == 0 ? "?" : text);
            len = len == 0 ? 1 : len;
            continue;
        }
        switch (*text) {
        case '&': fputs("&amp;", out); break;
        case '<': fputs("&lt;", out); break;
        case '>': fputs("&gt;", out); break;
        case '"': fputs("&quot;", out); break;
        case '\n': fputs("\n", out); break;
        default: fputc(*text < ' ' ? ' ' : *text, out);
        }
    }
}

static void attribute_print(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    xml_print(out, value);
    fputs("\"", out);
}

static void case_print(FILE *out, const struct oriel_record_finding *record)
{
    const struct oriel_check_rule *rule = oriel_check_rule(record->rule);
    const struct oriel_code_address *place =
        record->here.place.line != 0 ? &record->here.place : &record->other.place;
    char *headline = oriel_finding_headline(record);
    char *where = oriel_finding_place(place);
    char *name = oriel_format("%s at %s", headline, where);
    char *line = oriel_format("%" PRIu32, place->line);
    char *text = NULL;
    size_t text_bytes;
    FILE *lines = oriel_alloc_checked(open_memstream(&text, &text_bytes));
    oriel_finding_print(lines, record, &(struct oriel_text_style){.width = 100});
    fclose(lines);
    fputs("    <testcase", out);
    attribute_print(out, "classname", rule->number);
    attribute_print(out, "name", name);
    if (place->line != 0) {
        attribute_print(out, "file", oriel_text_path(place->file));
        attribute_print(out, "line", line);
    }
    fputs(" time=\"0\">\n", out);
    if (record->standing == ORIEL_STANDING_COUNTS) {
        fputs("      <failure", out);
        attribute_print(out, "type", rule->severity);
        attribute_print(out, "message", headline);
        fputs(">", out);
        xml_print(out, text);
        fputs("</failure>\n", out);
    } else {
        fputs("      <skipped", out);
        attribute_print(out, "message", record->reason);
        fputs("/>\n", out);
    }
    fputs("    </testcase>\n", out);
    free(headline);
    free(where);
    free(name);
    free(line);
    free(text);
}

static void suite_print(FILE *out, const struct oriel_checked_job *job)
{
    uint32_t failures = 0;
    uint32_t tests = job->head->findings > 0 ? job->head->findings : 1;
    for (uint32_t i = 0; i < job->head->findings; i++)
        failures += job->records[i].standing == ORIEL_STANDING_COUNTS;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"oriel check\" tests=\"%" PRIu32 "\" failures=\"%" PRIu32
            "\" errors=\"0\" skipped=\"%" PRIu32 "\" time=\"0\">\n",
            tests, failures, job->head->findings - failures);
    if (job->head->findings == 0)
        fputs("    <testcase classname=\"oriel check\" name=\"no findings\" time=\"0\"/>\n", out);
    for (uint32_t i = 0; i < job->head->findings; i++)
        case_print(out, &job->records[i]);
    fputs("  </testsuite>\n</testsuites>\n", out);
}

char *oriel_findings_write_junit(const struct oriel_checked_job *job, const char *path)
{
    errno = 0;
    FILE *out = fopen(path, "we");
    if (out != NULL)
        suite_print(out, job);
    return oriel_file_finish(out, out != NULL && !ferror(out), path);
}
