/* Only for builds with ThreadSanitizer. The order between plain and native updates of one target
 * (sync/atomic_mode.h) may go through another process, which the sanitizer does not see. That
 * process may have waited at this one's slots (B2) before it released the accumulate lock to a
 * thread of this one. Or it may have set the singles free again (C2) after a thread of this one had
 * released the lock. This file reports both orders to the sanitizer where another process can have
 * caused them. A thread that waits at the slots itself, and the order by the lock, are checked as
 * usual. That C2 releases is not checked here, but in tests/protocol/races.py. */
#include "sync/accumulate_mutex.h"
#include "sync/atomic_mode.h"

#include <sanitizer/tsan_interface.h>

__typeof__(oriel_bulk_begin) __real_oriel_bulk_begin, __wrap_oriel_bulk_begin;
__typeof__(oriel_accumulate_mutex_unlock) __real_oriel_accumulate_mutex_unlock,
    __wrap_oriel_accumulate_mutex_unlock;

void __wrap_oriel_bulk_begin(const struct oriel_window *window, int32_t target)
{
    const bool was_bulk = oriel_load_relaxed(&oriel_window_control(window, target)->bulk) != 0;
    __real_oriel_bulk_begin(window, target);
    for (int i = 0; was_bulk && i < ORIEL_ATOMIC_MODE_SLOTS; i++)
        __tsan_acquire(&oriel_file_atomic_modes(oriel_file_base())[i].inside);
}

void __wrap_oriel_accumulate_mutex_unlock(struct oriel_window *window, int32_t target)
{
    struct oriel_control *control = oriel_window_control(window, target);
    if (oriel_load_relaxed(&control->bulk) != 0) {
        __tsan_release(&window->common->bulk_targets);
        __tsan_release(&control->bulk);
    }
    __real_oriel_accumulate_mutex_unlock(window, target);
}
