/* Reads the output of `oriel check --json` and prints it with the checker's own wording
 * (cli/check/finding_text.c). A missing key, or one with another type than
 * docs/reference/file-formats.md describes, is omitted. Only a file that does not come from the
 * checker is refused. */
#include "cli/report/findings_reader.h"

#include <inttypes.h>
#include <string.h>

#include "cli/figures.h"
#include "cli/report/json_file.h"

/* The problem with the file, or NULL. */
static const char *format_error(const json_t *job)
{
    int64_t version;
    size_t i;
    json_t *finding;
    const char *format = oriel_json_member_text(job, "format");
    if (format == NULL || strcmp(format, "oriel-check") != 0)
        return "neither findings of oriel check nor statistics of oriel run";
    if (!oriel_json_member_number(job, "version", &version) || version != 3)
        return "findings of another version of oriel check";
    if (!json_is_array(json_object_get(job, "findings")))
        return "it has no list of findings";
    json_array_foreach(json_object_get(job, "findings"), i,
                       finding) if (oriel_json_member_text(finding, "rule") == NULL ||
                                    oriel_json_member_text(finding, "title") ==
                                        NULL) return "a finding has no rule";
    return NULL;
}

bool oriel_findings_file_open(const char *path, json_t *job, FILE *complaints,
                              struct oriel_findings_file *out)
{
    const char *problem = format_error(job);
    out->job = job;
    if (problem != NULL) {
        fprintf(complaints, "oriel: %s: %s\n", path, problem);
        oriel_findings_file_close(out);
    }
    return problem == NULL;
}

void oriel_findings_file_close(struct oriel_findings_file *found)
{
    json_decref(found->job);
    found->job = NULL;
}

/* Prints "bytes 16 to 23", from keys with the first item and the count. */
static void range_print(const json_t *finding, const char *first_key, const char *count_key,
                        const char *unit, FILE *out)
{
    int64_t first, count;
    if (!oriel_json_member_number(finding, first_key, &first))
        return;
    if (oriel_json_member_number(finding, count_key, &count) && count > 1 &&
        first <= INT64_MAX - count)
        fprintf(out, ", %ss %" PRId64 " to %" PRId64, unit, first, first + count - 1);
    else
        fprintf(out, ", %s %" PRId64, unit, first);
}

static void window_print(const json_t *finding, FILE *out)
{
    const char *name = oriel_json_member_text(finding, "window"),
               *flavour = oriel_json_member_text(finding, "flavour");
    int64_t target;
    if (name == NULL && flavour == NULL)
        return;
    fprintf(out, name != NULL ? "    window \"%s\"" : "    window without a name", name);
    if (flavour != NULL)
        fprintf(out, " (%s)", flavour);
    if (oriel_json_member_number(finding, "target", &target))
        fprintf(out, ", target rank %" PRId64, target);
    range_print(finding, "offset", "bytes", "byte", out);
    range_print(finding, "element", "elements", "element", out);
    fputs("\n", out);
}

static void site_print(const json_t *site, const char *before, const char *after, FILE *out)
{
    const char *call = oriel_json_member_text(site, "call"),
               *file = oriel_json_member_text(site, "file"),
               *function = oriel_json_member_text(site, "function");
    const char *module = oriel_json_member_text(site, "module");
    int64_t rank, line, offset;
    if (call == NULL)
        return;
    fprintf(out, "    %s", before);
    if (oriel_json_member_number(site, "rank", &rank))
        fprintf(out, "rank %" PRId64 ": ", rank);
    fputs(call, out);
    if (file != NULL && oriel_json_member_number(site, "line", &line))
        fprintf(out, " at %s:%" PRId64, file, line);
    else if (file != NULL)
        fprintf(out, " at %s", file);
    else if (module != NULL && oriel_json_member_number(site, "offset", &offset))
        fprintf(out, " at offset 0x%" PRIx64 " of %s", (uint64_t)offset, module);
    if (function != NULL)
        fprintf(out, " in %s", function);
    fprintf(out, "%s\n", after);
}

static void line_print(const json_t *finding, const char *key, const char *before, FILE *out)
{
    if (oriel_json_member_text(finding, key) != NULL)
        fprintf(out, "    %s%s\n", before, oriel_json_member_text(finding, key));
}

static void count_print(const json_t *finding, FILE *out)
{
    int64_t count;
    size_t i;
    json_t *rank;
    if (!oriel_json_member_number(finding, "count", &count))
        return;
    fprintf(out, "    %" PRId64 " time%s", count, oriel_plural(count));
    json_array_foreach(json_object_get(finding, "ranks"), i, rank)
        fprintf(out, "%s %" JSON_INTEGER_FORMAT, i == 0 ? ", rank" : ",", json_integer_value(rank));
    fputs("\n", out);
}

void oriel_findings_file_print(const struct oriel_findings_file *found, FILE *out)
{
    size_t i;
    int64_t lost;
    json_t *finding, *unseen, *frame;
    json_t *findings = json_object_get(found->job, "findings");
    const char *program = oriel_json_member_text(found->job, "program");
    fprintf(out, "%s: %zu finding%s\n", program != NULL ? program : "a program",
            json_array_size(findings), oriel_plural(json_array_size(findings)));
    json_array_foreach(findings, i, finding)
    {
        size_t depth;
        const char *headline = oriel_json_member_text(finding, "headline");
        fprintf(out, "\n%s: %s\n", oriel_json_member_text(finding, "rule"),
                headline != NULL ? headline : oriel_json_member_text(finding, "title"));
        window_print(finding, out);
        json_t *call = json_object_get(finding, "call");
        site_print(call, "", "", out);
        site_print(json_object_get(finding, "other"), "", json_is_object(call) ? ", before it" : "",
                   out);
        site_print(json_object_get(finding, "opening"), "epoch opened by ", "", out);
        line_print(finding, "detail", "", out);
        line_print(finding, "help", "help: ", out);
        count_print(finding, out);
        line_print(finding, "reason", "does not count: ", out);
        json_array_foreach(json_object_get(finding, "stack"), depth,
                           frame) if (json_is_string(frame))
            fprintf(out, "    %s %s\n", depth == 0 ? "stack:" : "      ", json_string_value(frame));
    }
    if (!json_is_true(json_object_get(found->job, "complete")))
        fputs("\nNot all ranks reached MPI_Finalize: these are the findings of one node.\n", out);
    if (!json_is_true(json_object_get(found->job, "local_accesses_watched")))
        fputs("\nThe program's own loads and stores were not watched (compile with "
              "-fsanitize=thread).\n",
              out);
    if (oriel_json_member_number(found->job, "findings_lost", &lost) && lost > 0)
        fprintf(out, "\nThere was no room for %" PRId64 " more finding%s.\n", lost,
                oriel_plural((uint64_t)lost));
    json_array_foreach(json_object_get(found->job, "not_checked"), i, unseen)
    {
        int64_t count;
        if (oriel_json_member_text(unseen, "what") != NULL &&
            oriel_json_member_number(unseen, "count", &count))
            fprintf(out, "%sNot checked: %s (%" PRId64 ")\n", i == 0 ? "\n" : "",
                    oriel_json_member_text(unseen, "what"), count);
    }
}
