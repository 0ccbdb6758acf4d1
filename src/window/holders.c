/* Whether holders of memory handles are alive, for processes that wait for them. A holder sets its
 * entry's state before it can block another process, and clears it after it can no longer do so, as
 * ranks do with their access words (sync/lock.c). */
#include "window/holders.h"

static enum oriel_status holder_died(uint64_t process)
{
    return oriel_fail(ORIEL_E_PEER,
                      "process %d, which has opened a memory handle of the window, has died [O18]",
                      (int)oriel_identity_word_pid(process));
}

/* The first area of target's process; NULL if it has none. */
static struct oriel_handle_area *first_area(const struct oriel_window *window, int32_t target)
{
    char *base = window->control_bases[target];
    if (base == NULL)
        return NULL;
    uint64_t list = atomic_load_explicit(&oriel_window_control(window, target)->handles_offset,
                                         memory_order_acquire);
    uint64_t first = list == 0
                         ? 0
                         : atomic_load_explicit(&((struct oriel_handle_list *)(base + list))->first,
                                                memory_order_acquire);
    return first == 0 ? NULL : (struct oriel_handle_area *)(base + first);
}

static struct oriel_handle_area *next_area(const struct oriel_window *window, int32_t target,
                                           const struct oriel_handle_area *area)
{
    return area->next == 0
               ? NULL
               : (struct oriel_handle_area *)(window->control_bases[target] + area->next);
}

enum oriel_status oriel_holders_check_name(const struct oriel_window *window, int32_t target,
                                           uint32_t name)
{
    struct oriel_handle_area *area = first_area(window, target);
    while (area != NULL && area->number != (name & ~ORIEL_HOLDER_NAME) >> 10)
        area = next_area(window, target, area);
    if (area == NULL)
        return ORIEL_OK;
    uint64_t process =
        atomic_load_explicit(&area->holders[name & 1023].process, memory_order_acquire);
    return process == 0 || oriel_identity_word_alive(process) ? ORIEL_OK : holder_died(process);
}

static bool entry_blocks(const struct oriel_holder *entry, bool no_readers)
{
    uint32_t state = oriel_load_acquire(&entry->state);
    return state != ORIEL_ACCESS_STATE_NONE && state != ORIEL_ACCESS_STATE_NOCHECK &&
           !(no_readers && state == ORIEL_ACCESS_STATE_SHARED);
}

enum oriel_status oriel_holders_check_queue(const struct oriel_window *window, int32_t target,
                                            bool no_readers)
{
    for (const struct oriel_handle_area *area = first_area(window, target); area != NULL;
         area = next_area(window, target, area)) {
        if (atomic_load_explicit(&area->control_offset, memory_order_acquire) !=
            window->targets[target].control_offset)
            continue;
        uint32_t used = oriel_load_acquire(&area->used);
        for (uint32_t i = 0; i < used; i++) {
            const struct oriel_holder *entry = &area->holders[i];
            uint64_t process = atomic_load_explicit(&entry->process, memory_order_acquire);
            if (oriel_load_acquire(&entry->state) == ORIEL_ACCESS_STATE_LOST)
                return oriel_fail(ORIEL_E_PEER, "a process on another node, which has opened a "
                                                "memory handle of the window, has died [O18]");
            if (entry_blocks(entry, no_readers) && process != 0 &&
                !oriel_identity_word_alive(process))
                return holder_died(process);
        }
    }
    return ORIEL_OK;
}

enum oriel_status oriel_holding_check_members(const struct oriel_holding *holding, int32_t rank)
{
    for (int32_t i = 0; i < holding->member_count; i++)
        if ((rank < 0 || rank == i) && holding->members[i] != NULL &&
            !oriel_peer_alive(holding->members[i]))
            return oriel_fail(ORIEL_E_PEER,
                              "rank %d of the owner's window (process %d) has died [O18]", (int)i,
                              (int)holding->members[i]->identity.pid);
    return ORIEL_OK;
}
