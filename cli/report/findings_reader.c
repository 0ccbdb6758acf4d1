/* Reads the output of `oriel check --json` and prints it with the checker's own wording
 * (cli/check/finding_text.c). A missing key, or one with another type than
 * docs/reference/file-formats.md describes, is omitted. Only a file that does not come from the
 * checker is refused. */
#include "cli/report/findings_reader.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/trace_text.h"

static const char *member_text(const json_t *object, const char *key)
{
    /* NULL for a value that is not a string */
    return json_string_value(json_object_get(object, key));
}

static bool member_number(const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    *out = json_integer_value(value);
    return json_is_integer(value);
}

/* The problem with the file, or NULL. */
static const char *format_error(const json_t *job)
{
    int64_t version;
    size_t i;
    json_t *finding;
    const char *format = member_text(job, "format");
    if (format == NULL || strcmp(format, "oriel-check") != 0)
        return "not a findings file of oriel check";
    if (!member_number(job, "version", &version) || version != 3)
        return "findings of another version of oriel check";
    if (!json_is_array(json_object_get(job, "findings")))
        return "it has no list of findings";
    json_array_foreach(json_object_get(job, "findings"), i,
                       finding) if (member_text(finding, "rule") == NULL ||
                                    member_text(finding, "title") ==
                                        NULL) return "a finding has no rule";
    return NULL;
}

/* Strings from the file must not control the terminal. */
static void strings_clean(json_t *value)
{
    size_t i;
    const char *key;
    json_t *inner;
    if (json_is_string(value))
        oriel_trace_text_clean((char *)(uintptr_t)json_string_value(value),
                               json_string_length(value) + 1);
    json_array_foreach(value, i, inner) strings_clean(inner);
    json_object_foreach(value, key, inner) strings_clean(inner);
}

static bool file_is_empty(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0;
}

bool oriel_findings_file_open(const char *path, FILE *complaints, struct oriel_findings_file *out)
{
    json_error_t error;
    if (file_is_empty(path)) {
        fprintf(complaints, "oriel: %s is empty: the job that writes it has not finished\n", path);
        return false;
    }
    out->job = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (out->job == NULL) {
        oriel_trace_text_clean(error.text, sizeof error.text); /* The message quotes the file. */
        if (error.line > 0)
            fprintf(complaints, "oriel: %s: line %d: %s\n", path, error.line, error.text);
        else
            fprintf(complaints, "oriel: %s\n", error.text); /* the message names the file */
        return false;
    }
    const char *problem = format_error(out->job);
    if (problem != NULL) {
        fprintf(complaints, "oriel: %s: %s\n", path, problem);
        oriel_findings_file_close(out);
        return false;
    }
    strings_clean(out->job);
    return true;
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
    if (!member_number(finding, first_key, &first))
        return;
    if (member_number(finding, count_key, &count) && count > 1 && first <= INT64_MAX - count)
        fprintf(out, ", %ss %" PRId64 " to %" PRId64, unit, first, first + count - 1);
    else
        fprintf(out, ", %s %" PRId64, unit, first);
}

static void window_print(const json_t *finding, FILE *out)
{
    const char *name = member_text(finding, "window"), *flavour = member_text(finding, "flavour");
    int64_t target;
    if (name == NULL && flavour == NULL)
        return;
    fprintf(out, name != NULL ? "    window \"%s\"" : "    window without a name", name);
    if (flavour != NULL)
        fprintf(out, " (%s)", flavour);
    if (member_number(finding, "target", &target))
        fprintf(out, ", target rank %" PRId64, target);
    range_print(finding, "offset", "bytes", "byte", out);
    range_print(finding, "element", "elements", "element", out);
    fputs("\n", out);
}

static void site_print(const json_t *site, const char *before, const char *after, FILE *out)
{
    const char *call = member_text(site, "call"), *file = member_text(site, "file"),
               *function = member_text(site, "function");
    const char *module = member_text(site, "module");
    int64_t rank, line, offset;
    if (call == NULL)
        return;
    fprintf(out, "    %s", before);
    if (member_number(site, "rank", &rank))
        fprintf(out, "rank %" PRId64 ": ", rank);
    fputs(call, out);
    if (file != NULL && member_number(site, "line", &line))
        fprintf(out, " at %s:%" PRId64, file, line);
    else if (file != NULL)
        fprintf(out, " at %s", file);
    else if (module != NULL && member_number(site, "offset", &offset))
        fprintf(out, " at offset 0x%" PRIx64 " of %s", (uint64_t)offset, module);
    if (function != NULL)
        fprintf(out, " in %s", function);
    fprintf(out, "%s\n", after);
}

static void line_print(const json_t *finding, const char *key, const char *before, FILE *out)
{
    if (member_text(finding, key) != NULL)
        fprintf(out, "    %s%s\n", before, member_text(finding, key));
}

static void count_print(const json_t *finding, FILE *out)
{
    int64_t count;
    size_t i;
    json_t *rank;
    if (!member_number(finding, "count", &count))
        return;
    fprintf(out, "    %" PRId64 " time%s", count, count == 1 ? "" : "s");
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
    const char *program = member_text(found->job, "program");
    fprintf(out, "%s: %zu finding%s\n", program != NULL ? program : "a program",
            json_array_size(findings), json_array_size(findings) == 1 ? "" : "s");
    json_array_foreach(findings, i, finding)
    {
        size_t depth;
        const char *headline = member_text(finding, "headline");
        fprintf(out, "\n%s: %s\n", member_text(finding, "rule"),
                headline != NULL ? headline : member_text(finding, "title"));
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
    if (member_number(found->job, "findings_lost", &lost) && lost > 0)
        fprintf(out, "\nThere was no room for %" PRId64 " more findings.\n", lost);
    json_array_foreach(json_object_get(found->job, "not_checked"), i, unseen)
    {
        int64_t count;
        if (member_text(unseen, "what") != NULL && member_number(unseen, "count", &count))
            fprintf(out, "%sNot checked: %s (%" PRId64 ")\n", i == 0 ? "\n" : "",
                    member_text(unseen, "what"), count);
    }
}
