/* Loads libucp.so.0 and finds its functions.  Nothing of Oriel is linked with it.  Called through library.h. */
#include "transport/ucx/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_SIGNAL = 31 };

struct oriel_ucp_calls oriel_ucp_calls;
static const char *(*status_string)(ucs_status_t);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char refusal[300]; /* why there is none; empty when there is */

static void *find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL && refusal[0] == '\0')
        snprintf(refusal, sizeof refusal, "libucp.so.0 has no %s", name);
    return symbol;
}

/* UCX complains in many lines of every peer that is killed, which Oriel reports by itself.  Who has asked for UCX's messages, or
 * uses it already (a host), gets them as before. */
static void hush(void *library)
{
    ucs_status_t (*set)(const char *name, const char *value) = NULL;
    void *symbol = dlsym(library, "ucs_global_opts_set_value");
    memcpy(&set, &symbol, sizeof set); /* ISO C has no cast from an object to a function pointer */
    if (set != NULL && getenv("UCX_LOG_LEVEL") == NULL)
        set("LOG_LEVEL", "fatal");
}

/* When it is loaded, UCX handles the signals of crashes by itself, to print where they came from.  In a program that did not ask
 * for UCX they stay the program's. */
static void *load_quietly(void)
{
    struct sigaction before[LAST_SIGNAL + 1];
    bool is_known[LAST_SIGNAL + 1];
    for (int i = 1; i <= LAST_SIGNAL; i++)
        is_known[i] = sigaction(i, NULL, &before[i]) == 0;
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    for (int i = 1; i <= LAST_SIGNAL; i++) {
        struct sigaction now;
        if (is_known[i] && sigaction(i, NULL, &now) == 0 && now.sa_handler != before[i].sa_handler)
            sigaction(i, &before[i], NULL);
    }
    return library;
}

static void load(void)
{
    bool is_ours = dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_LAZY) == NULL;
    void *library = is_ours ? load_quietly() : dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(refusal, sizeof refusal, "%s", dlerror());
        return;
    }
#define CALL(name) oriel_ucp_calls.name = (__typeof__(oriel_ucp_calls.name))find(library, #name);
#include "transport/ucx/library.def"
#undef CALL
    status_string = (__typeof__(status_string))find(library, "ucs_status_string");
    if (is_ours && refusal[0] == '\0')
        hush(library);
}

enum oriel_status oriel_ucp_load(void)
{
    pthread_once(&once, load);
    return refusal[0] == '\0' ? ORIEL_OK : oriel_fail(ORIEL_E_OTHER, "no UCX: %s", refusal);
}

const char *oriel_ucp_text(ucs_status_t status)
{
    return status_string(status);
}
