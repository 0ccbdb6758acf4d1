/* SPEC is read again for each question: questions are asked once for each window and its names. */
#include "observe/trace/trace_filter.h"

#include "observe/stats/record.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUE = 128 };

enum key { KEY_WINDOW, KEY_CALL, KEY_RANK, KEYS };
static const char *const key_names[KEYS] = {"window", "call", "rank"};

/* One value of SPEC. */
struct value {
    enum key key;
    char text[VALUE];
};

/* --- values one by one --- */

struct filter_reading {
    const char *at;
    const char *problem; /* NULL: none */
    char wrong[VALUE];   /* the word with the problem */
    enum key key;
    bool is_in_term;
};

static bool filter_fail(struct filter_reading *reading, const char *problem, const char *word,
                        size_t len)
{
    reading->problem = problem;
    len = strnlen(word, len < VALUE ? len : VALUE - 1);
    memcpy(reading->wrong, word, len);
    reading->wrong[len] = '\0';
    return false;
}

static bool key_read(struct filter_reading *reading)
{
    size_t len = strcspn(reading->at, "=;");
    if (reading->at[len] != '=')
        return filter_fail(reading, "is no KEY=VALUE,...", reading->at, len);
    for (int key = 0; key < KEYS; key++)
        if (strlen(key_names[key]) == len && strncmp(reading->at, key_names[key], len) == 0) {
            reading->key = (enum key)key;
            reading->at += len + 1;
            reading->is_in_term = true;
            return true;
        }
    return filter_fail(reading, "is no key; the keys are window, call and rank", reading->at, len);
}

/* False at the end, or with a problem. */
static bool value_next(struct filter_reading *reading, struct value *out)
{
    if (!reading->is_in_term && reading->at[0] == '\0')
        return false;
    if (!reading->is_in_term && !key_read(reading))
        return false;
    size_t len = strcspn(reading->at, ",;");
    out->key = reading->key;
    if (len == 0)
        return filter_fail(reading, "has an empty value", key_names[reading->key], VALUE);
    if (len >= VALUE)
        return filter_fail(reading, "is too long", reading->at, len);
    memcpy(out->text, reading->at, len);
    out->text[len] = '\0';
    reading->is_in_term = reading->at[len] == ',';
    reading->at += len;
    if (reading->at[0] == ';' && reading->at[1] == '\0')
        return filter_fail(reading, "has nothing after it", ";", 1);
    reading->at += reading->at[0] != '\0';
    return true;
}

/* --- one value --- */

static bool is_whole_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* "3" or "0-7". */
static bool rank_range_read(const char *text, long *first, long *last)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    *first = *last = strtol(text, &end, 10);
    if (end[0] == '-' && isdigit((unsigned char)end[1]))
        *last = strtol(end + 1, &end, 10);
    return end[0] == '\0' && *first <= *last;
}

/* The kinds whose names the pattern matches. It may also begin as MPI's names do: MPI_Win_lock*
 * is lock*, MPI_Put is put. */
static uint64_t pattern_kinds(const char *pattern)
{
    static const struct {
        const char *name;
        int kind;
    } kinds[] = {
#define OPERATION(field, name, meaning) {name, ORIEL_TRACE_OPERATION + ORIEL_COUNTS_##field},
#define CALL(field, name, meaning)      {name, ORIEL_TRACE_CALL + ORIEL_CALL_OF_##field},
#include "observe/stats/counters.def"
    };
    static const char *const prefixes[] = {"MPI_", "Win_"};
    uint64_t found = 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncasecmp(pattern, prefixes[i], strlen(prefixes[i])) == 0)
            pattern += strlen(prefixes[i]);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (fnmatch(pattern, kinds[i].name, FNM_CASEFOLD) == 0)
            found |= ORIEL_TRACE_KIND_BIT(kinds[i].kind);
    return found;
}

/* --- the filter --- */

bool oriel_trace_filter_read(const char *spec, struct oriel_trace_filter *out,
                             char problem[ORIEL_TRACE_FILTER_PROBLEM])
{
    struct value value;
    struct filter_reading reading = {.at = spec};
    long first, last;
    uint64_t kinds = 0;
    *out = (struct oriel_trace_filter){.kinds = ~UINT64_C(0)};
    if (spec == NULL || spec[0] == '\0')
        return true;
    out->spec = spec;
    while (value_next(&reading, &value)) {
        out->has_windows |= value.key == KEY_WINDOW;
        out->has_ranks |= value.key == KEY_RANK;
        if (value.key == KEY_RANK && !rank_range_read(value.text, &first, &last))
            filter_fail(&reading, "is no rank, such as 3, and no range, such as 0-7", value.text,
                        VALUE);
        if (value.key == KEY_CALL) {
            uint64_t more = pattern_kinds(value.text);
            kinds |= more;
            if (more == 0)
                filter_fail(&reading, "matches no call; oriel run --counters lists them",
                            value.text, VALUE);
        }
        if (reading.problem != NULL)
            break;
    }
    if (reading.problem != NULL) {
        snprintf(problem, ORIEL_TRACE_FILTER_PROBLEM, "\"%s\" %s", reading.wrong, reading.problem);
        return false;
    }
    out->kinds = kinds != 0 ? kinds : out->kinds;
    return true;
}

bool oriel_trace_filter_has_rank(const struct oriel_trace_filter *filter, int32_t world_rank)
{
    struct value value;
    struct filter_reading reading = {.at = filter->spec};
    long first, last;
    bool has = !filter->has_ranks;
    while (!has && value_next(&reading, &value))
        has = value.key == KEY_RANK && rank_range_read(value.text, &first, &last) &&
              world_rank >= first && world_rank <= last;
    return has;
}

bool oriel_trace_filter_has_window(const struct oriel_trace_filter *filter, const char *name,
                                   uint32_t number)
{
    struct value value;
    struct filter_reading reading = {.at = filter->spec};
    bool has = !filter->has_windows;
    while (!has && value_next(&reading, &value))
        has = value.key == KEY_WINDOW &&
              (fnmatch(value.text, name, 0) == 0 ||
               (is_whole_number(value.text) && strtoul(value.text, NULL, 10) == number));
    return has;
}
