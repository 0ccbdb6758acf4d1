/* `oriel info`: shows what this node offers and how Oriel uses it. All data is collected in one
 * JSON value first, and the text is printed from that value. Both forms have the same content. It
 * needs no launcher and no privileges. */
#include "cli/cli.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_version.h"
#include "base/options.h"
#include "cli/option_parser.h"
#include "cli/info/installed.h"
#include "cli/json.h"
#include "cli/program_host.h"
#include "cli/run/program.h"
#include "cli/trace_text.h"
#include "memory/agent_area.h"
#include "memory/net_probe.h"
#include "memory/probe.h"
#include "memory/promote/promote.h"
#include "oriel/oriel.h"

/* Paths and environment values may hold any bytes, and long details may be cut inside a
 * character. */
static json_t *json_clean_text(const char *bytes)
{
    char *clean = oriel_format("%s", bytes);
    oriel_trace_text_clean(clean, strlen(clean) + 1);
    json_t *value = oriel_json_checked(json_string(clean));
    free(clean);
    return value;
}

/* Returns null for an empty string. */
static json_t *json_clean_text_or_null(const char *bytes)
{
    return bytes[0] == '\0' ? oriel_json_checked(json_null()) : json_clean_text(bytes);
}

static json_t *hosts_gather(void)
{
    json_t *list = oriel_json_checked(json_array());
    for (size_t i = 0; i < oriel_hosts_count; i++) {
        struct oriel_installed installed;
        oriel_installed_find(&oriel_hosts[i], &installed);
        oriel_json_append(
            list, json_pack("{s:s, s:s, s:b, s:o, s:o, s:o, s:b, s:o}", "name", oriel_hosts[i].name,
                            "title", oriel_hosts[i].title, "found", installed.found, "version",
                            json_clean_text_or_null(installed.version), "library",
                            json_clean_text_or_null(installed.library), "reason",
                            json_clean_text_or_null(installed.refused), "served", installed.served,
                            "liboriel", json_clean_text(installed.liboriel)));
    }
    return list;
}

static void mechanism_gather(json_t *list, void (*try)(struct oriel_probe *out))
{
    struct oriel_probe probe;
    try(&probe);
    oriel_json_append(list, json_pack("{s:s, s:b, s:o}", "name", probe.name, "available",
                                      probe.available, "detail", json_clean_text(probe.detail)));
}

static json_t *mechanisms_gather(void)
{
    json_t *list = oriel_json_checked(json_array());
    setenv("UCX_LOG_LEVEL", "fatal", 0); /* UCX would print the probes' results to stdout */
    for (size_t i = 0; i < oriel_probes_count; i++)
        mechanism_gather(list, oriel_probes[i]);
    mechanism_gather(list, oriel_probe_promotion);
    mechanism_gather(list, oriel_probe_agent);
    mechanism_gather(list, oriel_probe_network);
    return list;
}

static json_t *settings_gather(void)
{
    static const char *const kinds[ORIEL_SETTINGS_KINDS] = {
        [ORIEL_SETTINGS_NAMED] = "ORIEL_CONFIG",
        [ORIEL_SETTINGS_FOLDER] = "folder",
        [ORIEL_SETTINGS_USER] = "user",
        [ORIEL_SETTINGS_SYSTEM] = "system",
    };
    json_t *list = oriel_json_checked(json_array());
    for (int kind = 0; kind < ORIEL_SETTINGS_KINDS; kind++) {
        const struct oriel_settings_file *file = &oriel_options_settings()->files[kind];
        if (file->path != NULL)
            oriel_json_append(list,
                              json_pack("{s:s, s:o, s:b, s:o}", "name", kinds[kind], "path",
                                        json_clean_text(file->path), "read", file->text != NULL,
                                        "detail", json_clean_text(file->state)));
    }
    return list;
}

static json_t *options_gather(void)
{
    json_t *list = oriel_json_checked(json_array());
    struct oriel_option_description option;
    for (size_t i = 0; oriel_option_describe(i, oriel_options(), &option); i++) {
        const struct oriel_option_origin *origin = &option.origin;
        bool is_in_file = origin->is_set && origin->file != NULL;
        const char *source = is_in_file ? "file" : origin->is_set ? "environment" : "default";
        oriel_json_append(
            list,
            json_pack("{s:s, s:s, s:o, s:s, s:b, s:s, s:o, s:o, s:o, s:s}", "name", option.name,
                      "kind", option.kind, "value", json_clean_text(oriel_option_value(&option)),
                      "default", option.initial, "set", origin->is_set, "source", source, "file",
                      is_in_file ? json_clean_text(origin->file) : json_null(), "line",
                      is_in_file ? json_integer(origin->line) : json_null(), "words",
                      json_clean_text_or_null(option.words), "meaning", option.meaning));
    }
    return list;
}

static const char *member_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text == NULL ? "" : text;
}

static bool member_is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static void hosts_print(const json_t *hosts)
{
    size_t i;
    const json_t *host;
    printf("\nHosts\n");
    json_array_foreach(hosts, i, host)
    {
        if (member_is_true(host, "found"))
            printf("  %-12s %s (%s)\n", member_text(host, "name"), member_text(host, "version"),
                   member_text(host, "library"));
        else
            printf("  %-12s not found: %s\n", member_text(host, "name"),
                   member_text(host, "reason"));
        printf("  %-12s %s %s\n", "",
               member_is_true(host, "served") ? "served by" : "not served: cannot find",
               member_text(host, "liboriel"));
    }
}

static void mechanisms_print(const json_t *mechanisms)
{
    size_t i;
    const json_t *mechanism;
    printf("\nMechanisms\n");
    json_array_foreach(mechanisms, i, mechanism)
    {
        printf("  %-12s %-3s  %s\n", member_text(mechanism, "name"),
               member_is_true(mechanism, "available") ? "yes" : "no",
               member_text(mechanism, "detail"));
    }
}

static void settings_print(const json_t *settings)
{
    size_t i;
    const json_t *file;
    printf("\nSettings files\n");
    json_array_foreach(settings, i, file)
    {
        printf("  %-12s %s: %s\n", member_text(file, "name"), member_text(file, "path"),
               member_text(file, "detail"));
    }
}

/* Prints the source of a value that is no default. */
static void source_print(const json_t *option)
{
    const char *source = member_text(option, "source");
    if (strcmp(source, "file") == 0)
        printf("from %s:%d; ", member_text(option, "file"),
               (int)json_integer_value(json_object_get(option, "line")));
    else if (strcmp(source, "environment") == 0)
        printf("from the environment; ");
}

static void options_print(const json_t *options)
{
    size_t i;
    const json_t *option;
    printf("\nOptions\n");
    json_array_foreach(options, i, option)
    {
        printf("  %s=%s  (", member_text(option, "name"), member_text(option, "value"));
        source_print(option);
        printf("default %s%s%s)\n", member_text(option, "default"),
               member_text(option, "words")[0] == '\0' ? "" : "; one of ",
               member_text(option, "words"));
        printf("      %s\n", member_text(option, "meaning"));
    }
}

/* --- the program on the command line --- */

static json_t *program_gather(const char *name)
{
    struct oriel_program program;
    struct oriel_program_host found;
    char liboriel[PATH_MAX] = "";
    bool is_served = false;
    oriel_program_find(name, "ORIEL_BYPASS=1 runs the program without Oriel", &program);
    oriel_program_inspect(&program);
    oriel_program_host_find(&program, &found);
    if (found.host != NULL)
        is_served = oriel_host_library(found.host, "liboriel.so", liboriel);
    if (program.is_unlisted && found.problem == NULL)
        found.problem = oriel_format("the loader does not list the libraries of %s (ldd %s says "
                                     "why): its MPI is unknown",
                                     program.path, program.path);
    const char *soname = found.library == NULL ? "" : found.library->soname;
    const char *path =
        found.library == NULL || found.library->path == NULL ? "" : found.library->path;
    char text[256] = "", version[256], tested[40];
    if (path[0] != '\0')
        oriel_library_version_find(path, text);
    oriel_host_version_format(text, version, sizeof version);
    const bool is_tested = found.interface != NULL && found.interface->is_tested &&
                           oriel_host_version_is_tested(version, tested, sizeof tested);
    json_t *value = oriel_json_checked(json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o}", "path", json_clean_text(program.path),
        "host", json_clean_text_or_null(found.host == NULL ? "" : found.host->name), "title",
        json_clean_text_or_null(found.interface == NULL ? "" : found.interface->title), "version",
        json_clean_text_or_null(version), "soname", json_clean_text_or_null(soname), "library",
        json_clean_text_or_null(path), "tested", is_tested, "served",
        is_served && found.problem == NULL, "liboriel", json_clean_text_or_null(liboriel), "reason",
        json_clean_text_or_null(found.problem == NULL ? "" : found.problem)));
    free(found.problem);
    free(program.problem);
    return value;
}

static void program_print(const json_t *program)
{
    printf("\nProgram %s\n", member_text(program, "path"));
    const char *title = member_text(program, "title"), *version = member_text(program, "version");
    /* The version has the MPI's own name. The ABI is no MPI. */
    const bool is_titled = version[0] != '\0' && strcmp(member_text(program, "host"), "abi") != 0;
    if (member_text(program, "soname")[0] != '\0')
        printf("  %-12s %s (%s): %s%s%s%s\n", "uses", member_text(program, "soname"),
               member_text(program, "library")[0] == '\0' ? "not found by the loader"
                                                          : member_text(program, "library"),
               is_titled ? "" : title, is_titled || version[0] == '\0' ? "" : ", ", version,
               member_is_true(program, "tested") ? "" : "; expected to work, not tested");
    if (member_text(program, "reason")[0] != '\0')
        printf("  %-12s %s\n", "not served:", member_text(program, "reason"));
    else if (member_is_true(program, "served"))
        printf("  %-12s %s\n", "served by", member_text(program, "liboriel"));
    else if (member_text(program, "soname")[0] != '\0')
        printf("  %-12s Oriel is not built for it: cannot find %s\n",
               "not served:", member_text(program, "liboriel"));
    else
        printf("  %-12s its libraries name no MPI; oriel run then takes the launcher's\n",
               "unknown:");
}

enum { OPTION_JSON = 256 };

struct request {
    bool as_json;
    const char *program; /* NULL: none */
};

static error_t info_option_parse(int key, char *argument, struct argp_state *state)
{
    struct request *request = state->input;
    if (key == OPTION_JSON) {
        request->as_json = true;
        return 0;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    if (request->program != NULL)
        argp_usage(state);
    request->program = argument;
    return 0;
}

int oriel_command_info(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", OPTION_JSON, NULL, 0, "Print one JSON object", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = info_option_parse,
        .args_doc = "[PROGRAM]",
        .doc = "Show Oriel's version, the hosts found, the result of each mechanism's probe, and "
               "all options. With a program, show which MPI it uses and which library of Oriel "
               "serves it, or why none does.",
    };
    struct request request = {.as_json = false};
    oriel_arguments_parse(&argp, argc, argv, false, &request);

    json_t *info =
        oriel_json_checked(json_pack("{s:s, s:o, s:o, s:o, s:o}", "version", ORIEL_VERSION, "hosts",
                                     hosts_gather(), "mechanisms", mechanisms_gather(), "settings",
                                     settings_gather(), "options", options_gather()));
    if (request.program != NULL)
        oriel_json_set(info, "program", program_gather(request.program));
    if (request.as_json) {
        json_dumpf(info, stdout, JSON_INDENT(2));
        printf("\n");
    } else {
        printf("Oriel %s\n", ORIEL_VERSION);
        if (request.program != NULL)
            program_print(json_object_get(info, "program"));
        hosts_print(json_object_get(info, "hosts"));
        mechanisms_print(json_object_get(info, "mechanisms"));
        settings_print(json_object_get(info, "settings"));
        options_print(json_object_get(info, "options"));
    }
    json_decref(info);
    return 0;
}
