/* Owns the ORIEL_* variables: what they are called, what they mean and their values in this process.
 * The environment is read once, at the first question; the answer never changes afterwards.
 * Any part of the library and of the command line may ask, from any thread. */
#ifndef ORIEL_BASE_OPTIONS_H
#define ORIEL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The words of ORIEL_CMA, in the order of its row in options.def. */
enum oriel_cma_choice { ORIEL_CMA_AUTO, ORIEL_CMA_NEVER };
enum oriel_promote_choice { ORIEL_PROMOTE_AUTO, ORIEL_PROMOTE_ALWAYS, ORIEL_PROMOTE_NEVER };
/* The same of ORIEL_AGENT. */
enum oriel_agent_choice { ORIEL_AGENT_AUTO, ORIEL_AGENT_NEVER };
/* The same of ORIEL_NET. */
enum oriel_lock_choice { ORIEL_LOCKS_LATER, ORIEL_LOCKS_AWAITED };
enum oriel_net_choice { ORIEL_NET_UCX, ORIEL_NET_MESSAGES, ORIEL_NET_OFF };

/* The type of the field that a row of each kind makes. A string that is not set is NULL. */
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

/* The options of this process. Malformed values and unknown variables have been reported on stderr once. */
const struct oriel_options *oriel_options(void);

/* ORIEL_TIMEOUT in nanoseconds. */
uint64_t oriel_timeout_ns(void);

/* Reads the environment as it is now. A malformed value leaves the option at its default, with one
 * line that says so on complaints; NULL keeps quiet. Strings in *out are copies that stay. */
void oriel_options_read(FILE *complaints, struct oriel_options *out);

/* Prints one line for each variable of the environment that begins with ORIEL_ and is no option.
 * Returns how many there were. */
int oriel_options_warn_unknown(FILE *out);

/* One option, for a listing.  The texts are constant; oriel_option_value tells the value in effect. */
struct oriel_option_description {
    const char *name;
    const char *kind; /* "bool", "int", "count", "size", "choice" or "string" */
    const char *initial;
    const char *words;
    const char *meaning;
    bool is_set;        /* the environment names it, with a value that was accepted */
    const char *string; /* of the options described; NULL where short_value has the value */
    char short_value[32];
};

static inline const char *oriel_option_value(const struct oriel_option_description *option)
{
    return option->string != NULL ? option->string : option->short_value;
}

/* Describes the option at index, counting those that are shown from 0; false after the last. */
bool oriel_option_describe(size_t index, const struct oriel_options *options,
                           struct oriel_option_description *out);

#endif
