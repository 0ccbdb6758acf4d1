/* The stand-in's settings, injected errors, and reports of misuse. */
#include "standin.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An error from STANDIN_FAIL. */
struct injection {
    enum standin_call call;
    unsigned nth; /* from 1; 0 is every call */
    oriel_cu_result code;
};

enum { INJECTIONS_MOST = 32 };

struct standin_settings standin_settings;
pthread_mutex_t standin_mutex = PTHREAD_MUTEX_INITIALIZER;

static const char *const symbols[] = {
#define CUDA_FUNCTION(field, symbol, parameters) symbol,
#include "gpu/cuda/cuda_functions.def"
#include "program_functions.def"
#undef CUDA_FUNCTION
};

static struct injection injections[INJECTIONS_MOST];
static unsigned injection_count;
static unsigned calls[STANDIN_CALLS];
static pthread_once_t settings_once = PTHREAD_ONCE_INIT;
static bool is_exiting, is_forked;
static int descriptor; /* of the device, as it were: the driver's calls need it */

void standin_misuse(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "stand-in for the CUDA driver: misuse in process %d: %s\n", (int)getpid(),
            text);
    fflush(stderr);
    _exit(STANDIN_EXIT_MISUSE);
}

oriel_cu_result standin_fault(oriel_cu_result code, const char *format, ...)
{
    if (standin_settings.is_strict) {
        char text[400];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        standin_misuse("%s (error %d; STANDIN_STRICT is 1)", text, code);
    }
    return code;
}

uint64_t standin_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A number from the environment. A value that is none ends the process. */
static long long number(const char *name, long long otherwise)
{
    const char *text = getenv(name);
    if (!text || !*text) {
        return otherwise;
    }
    char *end;
    long long value = strtoll(text, &end, 0);
    if (*end || value < 0) {
        standin_misuse("%s=%s is no number", name, text);
    }
    return value;
}

/* Reads FUNCTION:NTH:CODE, several separated by commas. */
static void read_injections(char *text)
{
    char *rest;
    for (char *item = strtok_r(text, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char name[64], nth[16];
        int code;
        unsigned call = 0;
        if (sscanf(item, "%63[^:]:%15[^:]:%d", name, nth, &code) != 3) {
            standin_misuse("STANDIN_FAIL: %s is not FUNCTION:NTH:CODE", item);
        }
        /* with or without the suffix of its version */
        while (call < STANDIN_CALLS && (strncmp(symbols[call], name, strlen(name)) != 0 ||
                                        (symbols[call][strlen(name)] &&
                                         strcmp(symbols[call] + strlen(name), "_v2") != 0))) {
            call++;
        }
        if (call == STANDIN_CALLS || injection_count == INJECTIONS_MOST) {
            standin_misuse("STANDIN_FAIL: unknown function in %s, or too many", item);
        }
        injections[injection_count++] = (struct injection){
            .call = call, .nth = nth[0] == '*' ? 0 : (unsigned)atoi(nth), .code = code};
    }
}

/* Ordinals like CUDA_VISIBLE_DEVICES: numbers of devices, separated by commas. */
static void read_devices(const char *visible, int count)
{
    if (count > STANDIN_DEVICES_MOST) {
        standin_misuse("STANDIN_DEVICES: at most %d", STANDIN_DEVICES_MOST);
    }
    if (!visible) {
        for (int device = 0; device < count; device++) {
            standin_settings.devices[standin_settings.device_count++] = device;
        }
        return;
    }
    for (char *end; *visible && standin_settings.device_count < count; visible = end) {
        int device = (int)strtol(visible, &end, 10);
        if (end == visible || device < 0 || device >= count) {
            return; /* as the driver: the list ends at the first that is none */
        }
        standin_settings.devices[standin_settings.device_count++] = device;
        end += *end == ',';
    }
}

static void note_fork(void)
{
    is_forked = standin_initialised;
}

__attribute__((destructor)) static void note_exit(void)
{
    is_exiting = true;
}

static void read_settings(void)
{
    read_devices(getenv("CUDA_VISIBLE_DEVICES"), (int)number("STANDIN_DEVICES", 2));
    standin_settings.version = (int)number("STANDIN_VERSION", 12040);
    standin_settings.has_peer_access = number("STANDIN_PEER", 1);
    standin_settings.is_strict = number("STANDIN_STRICT", 0);
    standin_settings.memory_bytes = (size_t)number("STANDIN_MEMORY", 1LL << 32);
    standin_settings.delay_us = (unsigned)number("STANDIN_DELAY_US", 0);
    standin_settings.holds = number("STANDIN_HOLD", 0);
    standin_settings.seed = (uint64_t)number("STANDIN_SEED", 1) * 2 + 1;
    standin_settings.thread_ms = (uint64_t)number("STANDIN_THREAD_MS", 10000);
    char *fail = getenv("STANDIN_FAIL");
    if (fail && (fail = strdup(fail))) {
        read_injections(fail);
        free(fail);
    }
    descriptor = memfd_create("stand-in for a device", MFD_CLOEXEC);
    pthread_atfork(NULL, NULL, note_fork);
}

void standinFail(const char *text)
{
    char *copy = strdup(text);
    pthread_once(&settings_once, read_settings);
    pthread_mutex_lock(&standin_mutex);
    injection_count = 0;
    memset(calls, 0, sizeof calls);
    if (copy) {
        read_injections(copy);
    }
    pthread_mutex_unlock(&standin_mutex);
    free(copy);
}

bool standin_is_sticky(oriel_cu_result code)
{
    return code == ORIEL_CU_ERROR_ILLEGAL_ADDRESS || code == ORIEL_CU_ERROR_LAUNCH_TIMEOUT ||
           code == ORIEL_CU_ERROR_ASSERT || code == ORIEL_CU_ERROR_ECC_UNCORRECTABLE ||
           code == ORIEL_CU_ERROR_NVLINK_UNCORRECTABLE ||
           (code >= ORIEL_CU_ERROR_HARDWARE_STACK_ERROR && code <= ORIEL_CU_ERROR_LAUNCH_FAILED);
}

static oriel_cu_result injected(enum standin_call call)
{
    unsigned nth = ++calls[call];
    for (unsigned i = 0; i < injection_count; i++) {
        if (injections[i].call == call && (!injections[i].nth || injections[i].nth == nth)) {
            if (standin_is_sticky(injections[i].code) && standin_current) {
                standin_lose(standin_current, injections[i].code);
            }
            return injections[i].code;
        }
    }
    return ORIEL_CU_SUCCESS;
}

static oriel_cu_result refused(enum standin_call call, enum standin_need need)
{
    if (is_exiting) {
        return ORIEL_CU_ERROR_DEINITIALIZED;
    }
    if (fcntl(descriptor, F_GETFD) < 0) {
        standin_misuse("%s in a thread without the process's descriptors", symbols[call]);
    }
    if (need != NEEDS_NOTHING && !standin_initialised) {
        /* a library asks what a pointer is, whatever its program has done so far */
        if (call == CALL_pointer_get_attributes || call == CALL_pointer_get_attribute) {
            return ORIEL_CU_ERROR_NOT_INITIALIZED;
        }
        return standin_fault(ORIEL_CU_ERROR_NOT_INITIALIZED, "%s before cuInit", symbols[call]);
    }
    oriel_cu_result result = injected(call);
    if (result == ORIEL_CU_SUCCESS && need == NEEDS_CONTEXT) {
        if (!standin_current) {
            return standin_fault(ORIEL_CU_ERROR_INVALID_CONTEXT, "%s without a current context",
                                 symbols[call]);
        }
        if (!standin_current->is_alive) {
            return standin_fault(ORIEL_CU_ERROR_CONTEXT_IS_DESTROYED,
                                 "%s with a context that was released", symbols[call]);
        }
        result = standin_current->lost;
    }
    return result;
}

oriel_cu_result standin_begin(enum standin_call call, enum standin_need need)
{
    pthread_once(&settings_once, read_settings);
    if (is_forked) { /* a thread of the parent may have held the mutex */
        return standin_fault(ORIEL_CU_ERROR_NOT_INITIALIZED,
                             "%s in the child of a process that called cuInit", symbols[call]);
    }
    pthread_mutex_lock(&standin_mutex);
    oriel_cu_result result = refused(call, need);
    return result == ORIEL_CU_SUCCESS ? result : standin_end(result);
}

oriel_cu_result standin_end(oriel_cu_result result)
{
    pthread_mutex_unlock(&standin_mutex);
    return result;
}
