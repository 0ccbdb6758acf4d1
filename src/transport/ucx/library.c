/* Loads libucp.so.0 and finds its functions. Oriel is not linked with it. */
#include "transport/ucx/library.h"

#include "transport/ucx/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct oriel_ucp_calls oriel_ucp_calls;
static const char *(*status_string)(ucs_status_t);
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char load_error[300]; /* the reason why UCX is unavailable; empty if it is available */

static void *ucp_symbol_find(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL && load_error[0] == '\0')
        snprintf(load_error, sizeof load_error, "libucp.so.0 has no %s", name);
    return symbol;
}

static bool has_rdma_device(void)
{
    DIR *folder = opendir("/sys/class/infiniband");
    bool has = false;
    if (folder == NULL)
        return false;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        has = has || entry->d_name[0] != '.';
    closedir(folder);
    return has;
}

/* Settings that UCX reads from the environment when it is loaded. By default it handles crash
 * signals. It prints many lines about each killed peer, which Oriel reports itself. It also patches
 * the entry code of libc's mmap, munmap, brk and others, to detect that registered memory is
 * unmapped. In a program that did not request UCX all that is disabled, except the last if there
 * are RDMA devices. */
static const char *const ucx_settings[] = {"UCX_HANDLE_ERRORS=none", "UCX_LOG_LEVEL=fatal",
                                           "UCX_MEM_EVENTS=n"};
enum { UCX_SETTINGS = sizeof ucx_settings / sizeof ucx_settings[0] };

static bool is_set_by_user(const char *setting)
{
    char name[32];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(setting, "="), setting);
    return getenv(name) != NULL;
}

/* The program's environment plus the settings that it lacks. NULL if there is no memory. Other
 * threads may read the environment at any time, so the program's own is not changed, and this one
 * is never freed. */
static char **environment_extend(char **before)
{
    size_t count = 0;
    while (before != NULL && before[count] != NULL)
        count++;
    char **after = malloc((count + UCX_SETTINGS + 1) * sizeof *after);
    if (after == NULL)
        return NULL;
    if (count != 0)
        memcpy(after, before, count * sizeof *after);
    for (size_t i = 0; i < UCX_SETTINGS - (has_rdma_device() ? 1 : 0); i++)
        if (!is_set_by_user(ucx_settings[i]))
            after[count++] = (char *)(uintptr_t)ucx_settings[i];
    after[count] = NULL;
    return after;
}

static void *ucp_library_load_with_settings(void)
{
    char **before = environ;
    char **after = environment_extend(before);
    if (after != NULL)
        environ = after;
    void *library = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (environ == after)
        environ = before;
    return library;
}

/* A host that uses UCX has already loaded it; then its settings stay unchanged. */
static void ucp_library_load(void)
{
    void *library = dlopen("libucp.so.0", RTLD_NOLOAD | RTLD_NOW);
    if (library == NULL)
        library = ucp_library_load_with_settings();
    if (library == NULL) {
        snprintf(load_error, sizeof load_error, "%s", dlerror());
        return;
    }
#define CALL(name)                                                                                 \
    oriel_ucp_calls.name = (__typeof__(oriel_ucp_calls.name))ucp_symbol_find(library, #name);
#include "transport/ucx/library.def"
#undef CALL
    status_string = (__typeof__(status_string))ucp_symbol_find(library, "ucs_status_string");
}

enum oriel_status oriel_ucp_load(void)
{
    pthread_once(&once, ucp_library_load);
    return load_error[0] == '\0' ? ORIEL_OK : oriel_fail(ORIEL_E_OTHER, "no UCX: %s", load_error);
}

const char *oriel_ucp_status_text(ucs_status_t status)
{
    return status_string(status);
}

static enum oriel_status ucp_error(const char *call, ucs_status_t status)
{
    return oriel_fail(ORIEL_E_OTHER, "no UCX: %s: %s", call, oriel_ucp_status_text(status));
}

/* Settings that the user has not made. By default, connecting to an unreachable node blocks the
 * whole process. The kernel closes an idle connection after a link failure of 16 s, regardless of
 * ORIEL_TIMEOUT, even if no thread waits for it. Messages are sent in pieces of 8 KiB, each with a
 * system call on both sides and a copy for reassembly in UCX. With 64 KiB Oriel's largest message
 * is one piece. The names of settings have their prefix from UCX 1.14 on. */
static void tcp_settings_apply(ucp_config_t *config)
{
    static const char *const settings[][2] = {{"UCX_TCP_CONN_NB", "y"},
                                              {"UCX_TCP_KEEPIDLE", "inf"},
                                              {"UCX_TCP_TX_SEG_SIZE", "64k"},
                                              {"UCX_TCP_RX_SEG_SIZE", "64k"}};
    /* the two sizes must match */
    bool has_sizes = getenv(settings[2][0]) != NULL || getenv(settings[3][0]) != NULL;
    unsigned minor = 0;
    bool is_old = sscanf(oriel_ucp()->ucp_get_version_string(), "1.%u", &minor) == 1 && minor < 14;
    size_t prefix_len = strlen(is_old ? "UCX_TCP_" : "UCX_");
    for (size_t i = 0; i < (has_sizes ? 2 : sizeof settings / sizeof settings[0]); i++)
        if (getenv(settings[i][0]) == NULL)
            oriel_ucp()->ucp_config_modify(config, settings[i][0] + prefix_len, settings[i][1]);
}

/* By default UD closes the connection to a process that does not answer for 30 s, such as a stopped
 * rank; ORIEL_TIMEOUT decides that instead. UCX also ends this process with an assertion if that
 * process had never answered. */
static void ud_settings_apply(ucp_config_t *config)
{
    if (getenv("UCX_UD_TIMEOUT") == NULL && getenv("UCX_UD_VERBS_TIMEOUT") == NULL &&
        getenv("UCX_UD_MLX5_TIMEOUT") == NULL)
        oriel_ucp()->ucp_config_modify(config, "UD_TIMEOUT", "1000000s");
}

static void *probe_thread_main(void *unused)
{
    return unused;
}

/* If UCX cannot create its thread, it ends the process. */
static enum oriel_status thread_probe(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, probe_thread_main, NULL);
    if (error != 0)
        return oriel_fail(ORIEL_E_OTHER, "no UCX: it cannot create a thread: %s", strerror(error));
    pthread_join(thread, NULL);
    return ORIEL_OK;
}

/* If UCX gets only some of the descriptors that it needs, it may end the process too. It needs 16
 * for one device, and 4 more for the first peer. */
static enum oriel_status descriptors_probe(void)
{
    int tried[24];
    int count = 0;
    int wanted = (int)(sizeof tried / sizeof tried[0]);
    while (count < wanted && (tried[count] = eventfd(0, EFD_CLOEXEC)) >= 0)
        count++;
    int error = errno;
    for (int i = 0; i < count; i++)
        close(tried[i]);
    return count == wanted ? ORIEL_OK
                           : oriel_fail(ORIEL_E_OTHER,
                                        "no UCX: it needs %d descriptors, but only %d are free: %s",
                                        wanted, count, strerror(error));
}

static ucs_status_t ucp_context_init(uint64_t features, const ucp_config_t *config,
                                     ucp_context_h *out)
{
    const ucp_params_t wanted = {.field_mask =
                                     UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                                 .features = features | UCP_FEATURE_WAKEUP,
                                 .mt_workers_shared = 1};
    return oriel_ucp()->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &wanted, config, out);
}

/* Opens a context for messages only. With UCX's put and get enabled, any process that can connect
 * could access any address with its own messages. */
static enum oriel_status ucp_context_open(bool for_tcp, bool for_ud, ucp_context_h *out)
{
    ucp_config_t *config = NULL;
    ucs_status_t status = oriel_ucp()->ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return ucp_error("ucp_config_read", status);
    /* else the user's choice; transports within one node would only take time to open */
    if (getenv("UCX_TLS") == NULL)
        oriel_ucp()->ucp_config_modify(config, "TLS", "^sm,self");
    if (for_tcp)
        tcp_settings_apply(config);
    if (for_ud)
        ud_settings_apply(config);
    status = ucp_context_init(UCP_FEATURE_AM, config, out);
    oriel_ucp()->ucp_config_release(config);
    return status == UCS_OK ? ORIEL_OK : ucp_error("ucp_init", status);
}

bool oriel_ucp_has_verbs(const char *found)
{
    return strstr(found, "rc_") != NULL || strstr(found, "dc_") != NULL ||
           strstr(found, "ud_") != NULL;
}

bool oriel_ucp_open_devices(const char *found, ucp_context_h *out)
{
    ucp_config_t *config = NULL;
    const bool has_rc = strstr(found, "rc_") != NULL;
    const bool has_dc = strstr(found, "dc_") != NULL;
    if ((!has_rc && !has_dc) || oriel_ucp()->ucp_config_read(NULL, NULL, &config) != UCS_OK)
        return false;
    /* for others UCX would use messages */
    const char *transports = has_rc && has_dc ? "rc,dc" : has_rc ? "rc" : "dc";
    oriel_ucp()->ucp_config_modify(config, "TLS", transports);
    ucs_status_t status = ucp_context_init(UCP_FEATURE_RMA, config, out);
    oriel_ucp()->ucp_config_release(config);
    if (status != UCS_OK)
        *out = NULL;
    return status == UCS_OK;
}

enum oriel_status oriel_ucp_open(ucp_context_h *out, char *found, size_t found_bytes)
{
    enum oriel_status status = descriptors_probe();
    if (status == ORIEL_OK)
        status = thread_probe();
    if (status == ORIEL_OK)
        status = ucp_context_open(true, false, out);
    if (status != ORIEL_OK)
        return status;
    status = oriel_net_list_devices(*out, found, found_bytes);
    const bool has_tcp = strstr(found, "tcp on ") != NULL;
    const bool has_ud = strstr(found, "ud_") != NULL;
    if (status == ORIEL_OK && has_tcp && !has_ud)
        return ORIEL_OK;
    oriel_ucp()->ucp_cleanup(*out); /* each worker warns about unused settings */
    return status == ORIEL_OK ? ucp_context_open(has_tcp, has_ud, out) : status;
}
