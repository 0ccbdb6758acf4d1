/* Owns the options: their names, descriptions and values in this process. The ORIEL_* variables and
 * the settings files are read once, at the first use. Until MPI starts the program may change them
 * (oriel_options_set); afterwards the values never change. Thread-safe, except for that. */
#ifndef ORIEL_BASE_OPTIONS_H
#define ORIEL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/settings.h"

/* The options, in the order of the table. */
enum oriel_option {
#define OPTION(kind, field, name, initial, words, shown, meaning) ORIEL_OPTION_##field,
#include "base/options.def"
#undef OPTION
    ORIEL_OPTIONS
};

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

/* The source of a value. */
struct oriel_option_origin {
    bool is_set;      /* to an accepted value; false for a default */
    const char *file; /* the settings file; NULL for the environment */
    unsigned line;    /* in that file */
};

struct oriel_options {
#define OPTION(kind, field, name, initial, words, shown, meaning) ORIEL_OPTION_TYPE_##kind field;
#include "base/options.def"
#undef OPTION
    struct oriel_option_origin origins[ORIEL_OPTIONS];
};

/* The options of this process. The first rank of a job reports, once on stderr, malformed values,
 * unknown names and settings files that cannot be read. */
const struct oriel_options *oriel_options(void);

/* The settings files that oriel_options has read. */
const struct oriel_settings *oriel_options_settings(void);

/* Called as the checker is loaded: its copy of the options complains about nothing, because the
 * library's does. */
void oriel_options_leave_complaints(void);

/* Sets the shown option at index, in this process, to a value as in the environment. Returns false
 * if the option has no such value. */
bool oriel_options_set(size_t index, const char *text);

/* ORIEL_TIMEOUT in nanoseconds. */
uint64_t oriel_timeout_ns(void);

/* Reads the environment again, and then settings files, unless they are NULL. A malformed value is
 * ignored. It prints one line to complaints, unless that is NULL. Strings in *out are copies that
 * are never freed; the names of files are those of settings. */
void oriel_options_read(FILE *complaints, const struct oriel_settings *settings,
                        struct oriel_options *out);

/* Prints one line for each environment variable that begins with ORIEL_ and is not an option, with
 * the option whose name is similar. Returns the number of lines. */
int oriel_options_warn_unknown(FILE *out);

/* One option, for a listing. The texts are constant; oriel_option_value returns the value in
 * effect. */
struct oriel_option_description {
    const char *name;
    const char *kind; /* "bool", "int", "count", "size", "choice" or "string" */
    const char *initial;
    const char *words;
    const char *meaning;
    struct oriel_option_origin origin;
    const char *string; /* the value of a string option; NULL if short_value holds the value */
    char short_value[32];
    uint64_t number; /* the value; of a choice, the position of its word; 0 for a string */
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
