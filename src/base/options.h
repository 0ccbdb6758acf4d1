/* Owns the ORIEL_* variables: their names, descriptions and values in this process. The environment
 * is read once, at the first use; the values never change afterwards. Thread-safe. */
#ifndef ORIEL_BASE_OPTIONS_H
#define ORIEL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The words of each choice, in the order of its row in options.def. */
enum oriel_cma_choice { ORIEL_CMA_AUTO, ORIEL_CMA_NEVER };
enum oriel_promote_choice { ORIEL_PROMOTE_AUTO, ORIEL_PROMOTE_ALWAYS, ORIEL_PROMOTE_NEVER };
enum oriel_agent_choice { ORIEL_AGENT_AUTO, ORIEL_AGENT_NEVER };
enum oriel_lock_choice { ORIEL_LOCKS_LAZY, ORIEL_LOCKS_EAGER };
enum oriel_net_choice { ORIEL_NET_UCX, ORIEL_NET_MESSAGES, ORIEL_NET_OFF };

/* The type of the field that a row of each kind declares. A string that is not set is NULL. */
#define ORIEL_OPTION_TYPE_bool   bool
#define ORIEL_OPTION_TYPE_int    int
#define ORIEL_OPTION_TYPE_count  int
#define ORIEL_OPTION_TYPE_size   uint64_t
#define ORIEL_OPTION_TYPE_choice int
#define ORIEL_OPTION_TYPE_string const char *

struct oriel_options {
#define OPTION(kind, field, name, initial, words, shown, meaning) ORIEL_OPTION_TYPE_##kind field;
#include "base/options.def"
#undef OPTION
};

/* The options of this process. Malformed values and unknown variables are reported once on
 * stderr. */
const struct oriel_options *oriel_options(void);

/* ORIEL_TIMEOUT in nanoseconds. */
uint64_t oriel_timeout_ns(void);

/* Reads the environment again. A malformed value leaves the option at its default and prints one
 * line to complaints, unless that is NULL. Strings in *out are copies that are never freed. */
void oriel_options_read(FILE *complaints, struct oriel_options *out);

/* Prints one line for each environment variable that begins with ORIEL_ and is not an option.
 * Returns the number of lines. */
int oriel_options_warn_unknown(FILE *out);

/* One option, for a listing. The texts are constant; oriel_option_value returns the value in
 * effect. */
struct oriel_option_description {
    const char *name;
    const char *kind; /* "bool", "int", "count", "size", "choice" or "string" */
    const char *initial;
    const char *words;
    const char *meaning;
    bool is_set;        /* the environment sets it to an accepted value */
    const char *string; /* the value of a string option; NULL if short_value holds the value */
    char short_value[32];
};

static inline const char *oriel_option_value(const struct oriel_option_description *option)
{
    return option->string != NULL ? option->string : option->short_value;
}

/* Describes the option at index, counted from 0 over the shown options. Returns false after the
 * last. */
bool oriel_option_describe(size_t index, const struct oriel_options *options,
                           struct oriel_option_description *out);

#endif
