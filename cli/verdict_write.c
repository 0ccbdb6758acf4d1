/* Writes the verdict for terminals and as JSON. */
#include "cli/verdict.h"

#include <string.h>

#include "cli/figures.h"
#include "cli/json.h"
#include "cli/text_style.h"

enum { DIAGNOSES_SHOWN = 3, INDENT = 8 };

static void print_time(const struct oriel_verdict *verdict, FILE *out)
{
    char ran[ORIEL_FIGURE], calls[ORIEL_FIGURE], waiting[ORIEL_FIGURE];
    if (verdict->all_ns > 0)
        fprintf(out, "%s of %s in window calls, %s waiting",
                oriel_share_text(calls, verdict->calls_ns, verdict->all_ns),
                oriel_time_text(ran, verdict->ran_ns),
                oriel_share_text(waiting, verdict->waiting_ns, verdict->all_ns));
    else
        fprintf(out, "%s in window calls, %s waiting", oriel_time_text(calls, verdict->calls_ns),
                oriel_time_text(waiting, verdict->waiting_ns));
    bool is_known = verdict->all_ns > 0 || verdict->calls_ns > 0;
    fputs(verdict->count == 0 && is_known ? "; nothing stands out\n" : "\n", out);
}

static void print_sentence(const char *sentence, int width, FILE *out)
{
    char line[ORIEL_VERDICT_TEXT + 2];
    snprintf(line, sizeof line, "%s.", sentence);
    oriel_text_wrap(out, line, INDENT, INDENT, width);
}

void oriel_verdict_print(const struct oriel_job_sum *job, int width, FILE *out)
{
    char share[ORIEL_FIGURE];
    struct oriel_verdict verdict;
    oriel_verdict_make(job, &verdict);
    print_time(&verdict, out);
    for (size_t i = 0; i < verdict.notes_count; i++) {
        fprintf(out, "%*s", INDENT, "");
        print_sentence(verdict.notes[i], width, out);
    }
    for (size_t i = 0; i < verdict.count && i < DIAGNOSES_SHOWN; i++) {
        const struct oriel_diagnosis *diagnosis = &verdict.diagnoses[i];
        fprintf(out, "%6s  ", oriel_share_text(share, diagnosis->cost_ns, verdict.all_ns));
        print_sentence(diagnosis->problem, width, out);
        fprintf(out, "%*s", INDENT, "");
        print_sentence(diagnosis->remedy, width, out);
    }
    if (verdict.count > DIAGNOSES_SHOWN)
        fprintf(out, "%*s%zu more, which cost less\n", INDENT, "", verdict.count - DIAGNOSES_SHOWN);
    oriel_verdict_free(&verdict);
}

static json_t *verdict_number(uint64_t number)
{
    return oriel_json_checked(json_integer((json_int_t)number));
}

static json_t *diagnosis_json(const struct oriel_diagnosis *diagnosis)
{
    return oriel_json_checked(json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "diagnosis", diagnosis->name, "cost_ns",
        verdict_number(diagnosis->cost_ns), "problem",
        oriel_json_text(diagnosis->problem, strlen(diagnosis->problem)), "remedy",
        oriel_json_text(diagnosis->remedy, strlen(diagnosis->remedy)), "window",
        verdict_number(diagnosis->window), "windows", verdict_number(diagnosis->windows), "rank",
        oriel_json_checked(diagnosis->rank < 0 ? json_null() : json_integer(diagnosis->rank)),
        "site", oriel_json_text(diagnosis->site, strlen(diagnosis->site))));
}

json_t *oriel_verdict_json(const struct oriel_job_sum *job)
{
    struct oriel_verdict verdict;
    json_t *list = oriel_json_checked(json_array());
    json_t *notes = oriel_json_checked(json_array());
    oriel_verdict_make(job, &verdict);
    for (size_t i = 0; i < verdict.notes_count; i++)
        oriel_json_append(notes, oriel_json_text(verdict.notes[i], strlen(verdict.notes[i])));
    for (size_t i = 0; i < verdict.count; i++)
        oriel_json_append(list, diagnosis_json(&verdict.diagnoses[i]));
    json_t *object = oriel_json_checked(
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "ranks_ns", verdict_number(verdict.all_ns),
                  "calls_ns", verdict_number(verdict.calls_ns), "waiting_ns",
                  verdict_number(verdict.waiting_ns), "notes", notes, "diagnoses", list));
    oriel_verdict_free(&verdict);
    return object;
}
