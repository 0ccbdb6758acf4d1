/* The environment and spawned programs. The `oriel` command and this library are installed below
 * the same prefix. */
#include "api/spawn_env.h"

#include "base/log.h"
#include "base/options.h"
#include "base/prefix.h"
#include "host/confirm.h"
#include "host/host.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool by_oriel_run;
static _Atomic bool entered;

static bool is_listed(const char *entry, const char *list)
{
    size_t len_bytes = strlen(entry);
    for (const char *at = list; at != NULL && *at != '\0';
         at = strchr(at, ':') != NULL ? strchr(at, ':') + 1 : NULL)
        if (strncmp(at, entry, len_bytes) == 0 && (at[len_bytes] == ':' || at[len_bytes] == '\0'))
            return true;
    return false;
}

static void clean_environment(void)
{
    const char *added = oriel_options()->preloaded;
    const char *preload = getenv("LD_PRELOAD");
    if (added == NULL || getenv("ORIEL_PRELOADED") == NULL)
        return;
    by_oriel_run = true;
    unsetenv("ORIEL_PRELOADED");
    char *copy = preload != NULL ? strdup(preload) : NULL;
    char *kept = preload != NULL ? calloc(1, strlen(preload) + 2) : NULL;
    if (copy != NULL && kept != NULL) {
        char *rest = NULL;
        for (char *entry = strtok_r(copy, ": ", &rest); entry != NULL;
             entry = strtok_r(NULL, ": ", &rest)) {
            if (is_listed(entry, added))
                continue;
            if (kept[0] != '\0')
                strcat(kept, ":");
            strcat(kept, entry);
        }
        if (kept[0] != '\0')
            setenv("LD_PRELOAD", kept, 1);
        else
            unsetenv("LD_PRELOAD");
    }
    free(copy);
    free(kept);
}

/* Prints the options that are set; oriel(5) has the defaults of the others. */
static void print_options(void)
{
    static atomic_flag printed = ATOMIC_FLAG_INIT;
    struct oriel_option_description option;
    if (atomic_flag_test_and_set(&printed))
        return;
    for (size_t i = 0; oriel_option_describe(i, oriel_options(), &option); i++)
        if (option.origin.file != NULL)
            oriel_note("%s=%s (%s:%u)", option.name, oriel_option_value(&option),
                       option.origin.file, option.origin.line);
        else if (option.origin.is_set)
            oriel_note("%s=%s", option.name, oriel_option_value(&option));
}

void oriel_spawn_env_enter(const void *caller)
{
    entered = true;
    oriel_options(); /* read before the environment changes */
    if (!oriel_options()->bypass)
        oriel_host_confirm(caller);
    clean_environment();
    print_options();
}

bool oriel_spawn_env_has_entered(void)
{
    return entered;
}

/* The path of the `oriel` command, to be freed; NULL if it does not exist. */
static char *find_command(void)
{
    char prefix[PATH_MAX];
    char *command = NULL;
    if (!oriel_prefix_find(prefix) || asprintf(&command, "%s/bin/oriel", prefix) < 0)
        return NULL;
    if (access(command, X_OK) == 0)
        return command;
    free(command);
    return NULL;
}

bool oriel_spawn_env_wrap(const char *command, char **argv, struct oriel_spawn *out)
{
    size_t count = 0;
    char *oriel = by_oriel_run && !oriel_options()->bypass ? find_command() : NULL;
    if (oriel == NULL)
        return false;
    while (argv != NULL && argv[count] != NULL)
        count++;
    char **arguments = calloc(count + 6, sizeof *arguments);
    if (arguments == NULL) {
        free(oriel);
        return false;
    }
    size_t used = 0;
    arguments[used++] = "run";
    arguments[used++] = "--host";
    arguments[used++] = (char *)(uintptr_t)oriel_host_name();
    arguments[used++] = "--";
    arguments[used++] = (char *)(uintptr_t)command;
    for (size_t i = 0; i < count; i++)
        arguments[used++] = argv[i];
    *out = (struct oriel_spawn){oriel, arguments};
    return true;
}

void oriel_spawn_env_unwrap(struct oriel_spawn *spawn)
{
    free(spawn->command);
    free(spawn->argv);
}
