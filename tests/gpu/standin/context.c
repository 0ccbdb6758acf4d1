/* Devices and their primary contexts. A thread has a stack of contexts, of which the last is the
 * current one. */
#include "standin.h"

#include <stdio.h>
#include <string.h>

enum { STACK_MOST = 16 };

bool standin_initialised;
_Thread_local struct oriel_cu_context *standin_current;

static struct oriel_cu_context contexts[STANDIN_DEVICES_MOST];
static _Thread_local struct oriel_cu_context *stack[STACK_MOST]; /* below the current one */
static _Thread_local unsigned depth;

static bool is_device(oriel_cu_device device)
{
    return device >= 0 && device < standin_settings.device_count;
}

int standin_ordinal(int64_t device)
{
    int ordinal = standin_settings.device_count - 1;
    while (ordinal >= 0 && standin_settings.devices[ordinal] != device) {
        ordinal--;
    }
    return ordinal;
}

void standin_lose(struct oriel_cu_context *context, oriel_cu_result code)
{
    if (!context->lost) {
        context->lost = code;
    }
}

oriel_cu_result standin_init(unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_init, NEEDS_NOTHING);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (flags) {
        return standin_end(ORIEL_CU_ERROR_INVALID_VALUE);
    }
    if (!standin_settings.device_count) {
        return standin_end(ORIEL_CU_ERROR_NO_DEVICE);
    }
    standin_initialised = true;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_driver_get_version(int *version)
{
    oriel_cu_result result = standin_begin(CALL_driver_get_version, NEEDS_NOTHING);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    *version = standin_settings.version;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_device_get(oriel_cu_device *device, int ordinal)
{
    oriel_cu_result result = standin_begin(CALL_device_get, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    *device = ordinal;
    return standin_end(is_device(ordinal) ? ORIEL_CU_SUCCESS : ORIEL_CU_ERROR_INVALID_DEVICE);
}

oriel_cu_result standin_device_get_count(int *count)
{
    oriel_cu_result result = standin_begin(CALL_device_get_count, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    *count = standin_settings.device_count;
    return standin_end(ORIEL_CU_SUCCESS);
}

static oriel_cu_result attribute_of(oriel_cu_device device, int attribute, int *value)
{
    switch (attribute) {
    case ORIEL_CU_DEVICE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case ORIEL_CU_DEVICE_MAX_PITCH: *value = INT32_MAX; break;
    case ORIEL_CU_DEVICE_MULTIPROCESSOR_COUNT: *value = 4; break;
    case ORIEL_CU_DEVICE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case ORIEL_CU_DEVICE_PCI_BUS_ID: *value = standin_settings.devices[device] + 1; break;
    case ORIEL_CU_DEVICE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case ORIEL_CU_DEVICE_INTEGRATED:
    case ORIEL_CU_DEVICE_COMPUTE_MODE:
    case ORIEL_CU_DEVICE_PCI_DEVICE_ID:
    case ORIEL_CU_DEVICE_PCI_DOMAIN_ID:
    case ORIEL_CU_DEVICE_COMPUTE_CAPABILITY_MINOR:
    case ORIEL_CU_DEVICE_HOST_NATIVE_ATOMIC_SUPPORTED:
    case ORIEL_CU_DEVICE_PAGEABLE_MEMORY_ACCESS:
    case ORIEL_CU_DEVICE_READ_ONLY_HOST_REGISTER_SUPPORTED: *value = 0; break;
    case ORIEL_CU_DEVICE_CAN_MAP_HOST_MEMORY:
    case ORIEL_CU_DEVICE_UNIFIED_ADDRESSING:
    case ORIEL_CU_DEVICE_MANAGED_MEMORY:
    case ORIEL_CU_DEVICE_CONCURRENT_MANAGED_ACCESS:
    case ORIEL_CU_DEVICE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
    case ORIEL_CU_DEVICE_HOST_REGISTER_SUPPORTED:
    case ORIEL_CU_DEVICE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case ORIEL_CU_DEVICE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: *value = 1; break;
    default: return standin_fault(ORIEL_CU_ERROR_INVALID_VALUE, "device attribute %d", attribute);
    }
    return ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_device_get_attribute(int *value, int attribute, oriel_cu_device device)
{
    oriel_cu_result result = standin_begin(CALL_device_get_attribute, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(is_device(device) ? attribute_of(device, attribute, value)
                                         : ORIEL_CU_ERROR_INVALID_DEVICE);
}

oriel_cu_result standin_device_get_uuid(struct oriel_cu_uuid *uuid, oriel_cu_device device)
{
    oriel_cu_result result = standin_begin(CALL_device_get_uuid, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!is_device(device)) {
        return standin_end(ORIEL_CU_ERROR_INVALID_DEVICE);
    }
    memcpy(uuid->bytes, "Oriel's standin", 16);
    uuid->bytes[15] = (unsigned char)(standin_settings.devices[device] + 1);
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_device_get_pci_bus_id(char *text, int text_bytes, oriel_cu_device device)
{
    oriel_cu_result result = standin_begin(CALL_device_get_pci_bus_id, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!is_device(device)) {
        return standin_end(ORIEL_CU_ERROR_INVALID_DEVICE);
    }
    int len = snprintf(text, (size_t)text_bytes, "0000:%02X:00.0",
                       (unsigned)standin_settings.devices[device] + 1);
    return standin_end(len < text_bytes ? ORIEL_CU_SUCCESS : ORIEL_CU_ERROR_INVALID_VALUE);
}

oriel_cu_result standin_device_can_access_peer(int *can, oriel_cu_device device,
                                               oriel_cu_device peer)
{
    oriel_cu_result result = standin_begin(CALL_device_can_access_peer, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!is_device(device) || !is_device(peer)) {
        return standin_end(ORIEL_CU_ERROR_INVALID_DEVICE);
    }
    *can = device != peer && standin_settings.has_peer_access;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_device_primary_ctx_retain(struct oriel_cu_context **context,
                                                  oriel_cu_device device)
{
    oriel_cu_result result = standin_begin(CALL_device_primary_ctx_retain, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!is_device(device)) {
        return standin_end(ORIEL_CU_ERROR_INVALID_DEVICE);
    }
    struct oriel_cu_context *primary = &contexts[device];
    if (!primary->retained++) {
        primary->is_alive = true;
        primary->device = device;
        primary->peers = 0;
        primary->lost = ORIEL_CU_SUCCESS;
    }
    *context = primary;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_device_primary_ctx_release(oriel_cu_device device)
{
    oriel_cu_result result = standin_begin(CALL_device_primary_ctx_release, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!is_device(device)) {
        return standin_end(ORIEL_CU_ERROR_INVALID_DEVICE);
    }
    struct oriel_cu_context *primary = &contexts[device];
    if (!primary->retained) {
        return standin_end(standin_fault(ORIEL_CU_ERROR_INVALID_CONTEXT,
                                         "the primary context is released too often"));
    }
    if (!--primary->retained) {
        standin_drain(primary);
        standin_free_context(primary);
        primary->is_alive = false;
    }
    return standin_end(ORIEL_CU_SUCCESS);
}

static oriel_cu_result check_context(const struct oriel_cu_context *context)
{
    if (context && (context < contexts || context >= contexts + STANDIN_DEVICES_MOST)) {
        standin_misuse("%p is no context", (const void *)context);
    }
    if (context && !context->is_alive) {
        return standin_fault(ORIEL_CU_ERROR_INVALID_CONTEXT, "a context that was released");
    }
    return ORIEL_CU_SUCCESS;
}

oriel_cu_result standin_ctx_get_current(struct oriel_cu_context **context)
{
    oriel_cu_result result = standin_begin(CALL_ctx_get_current, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    *context = standin_current;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_ctx_set_current(struct oriel_cu_context *context)
{
    oriel_cu_result result = standin_begin(CALL_ctx_set_current, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    result = check_context(context);
    if (result == ORIEL_CU_SUCCESS) {
        standin_current = context ? context : depth ? stack[--depth] : NULL;
    }
    return standin_end(result);
}

oriel_cu_result standin_ctx_push_current(struct oriel_cu_context *context)
{
    oriel_cu_result result = standin_begin(CALL_ctx_push_current, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    result = context ? check_context(context) : ORIEL_CU_ERROR_INVALID_CONTEXT;
    if (result == ORIEL_CU_SUCCESS) {
        if (depth == STACK_MOST) {
            standin_misuse("cuCtxPushCurrent without cuCtxPopCurrent, %d times", STACK_MOST);
        }
        if (standin_current) {
            stack[depth++] = standin_current;
        }
        standin_current = context;
    }
    return standin_end(result);
}

oriel_cu_result standin_ctx_pop_current(struct oriel_cu_context **context)
{
    oriel_cu_result result = standin_begin(CALL_ctx_pop_current, NEEDS_INIT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    if (!standin_current) {
        return standin_end(
            standin_fault(ORIEL_CU_ERROR_INVALID_CONTEXT, "cuCtxPopCurrent without a context"));
    }
    if (context) {
        *context = standin_current;
    }
    standin_current = depth ? stack[--depth] : NULL;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_ctx_get_device(oriel_cu_device *device)
{
    oriel_cu_result result = standin_begin(CALL_ctx_get_device, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    *device = standin_current->device;
    return standin_end(ORIEL_CU_SUCCESS);
}

oriel_cu_result standin_ctx_synchronize(void)
{
    oriel_cu_result result = standin_begin(CALL_ctx_synchronize, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    return standin_end(standin_drain(standin_current));
}

oriel_cu_result standin_ctx_enable_peer_access(struct oriel_cu_context *peer, unsigned flags)
{
    oriel_cu_result result = standin_begin(CALL_ctx_enable_peer_access, NEEDS_CONTEXT);
    if (result != ORIEL_CU_SUCCESS) {
        return result;
    }
    result = check_context(peer);
    if (result == ORIEL_CU_SUCCESS && (flags || !peer)) {
        result = ORIEL_CU_ERROR_INVALID_VALUE;
    } else if (result == ORIEL_CU_SUCCESS) {
        unsigned bit = 1u << peer->device;
        if (peer == standin_current) {
            result = standin_fault(ORIEL_CU_ERROR_INVALID_DEVICE, "a context as its own peer");
        } else if (!standin_settings.has_peer_access) {
            result = ORIEL_CU_ERROR_PEER_ACCESS_UNSUPPORTED;
        } else if (standin_current->peers & bit) {
            result = ORIEL_CU_ERROR_PEER_ACCESS_ALREADY_ENABLED;
        } else {
            standin_current->peers |= bit;
        }
    }
    return standin_end(result);
}
