/* Entry points of libtsan for threads, locks and function calls. The checker orders processes, not
 * threads, so they do nothing. They must exist, because this library replaces libtsan. */
#include "check/tsan/find_checker.h"

#define NOTHING(name, ...)                                                                         \
    ORIEL_TSAN_ENTRY void name(__VA_ARGS__);                                                       \
    ORIEL_TSAN_ENTRY void name(__VA_ARGS__)                                                        \
    {                                                                                              \
    }
/* Callers pass arguments in registers, which are ignored. */
NOTHING(__tsan_func_entry, void)
NOTHING(__tsan_func_exit, void)
NOTHING(__tsan_ignore_thread_begin, void)
NOTHING(__tsan_ignore_thread_end, void)
NOTHING(__tsan_flush_memory, void)
NOTHING(__tsan_acquire, void)
NOTHING(__tsan_release, void)
NOTHING(__tsan_mutex_create, void)
NOTHING(__tsan_mutex_destroy, void)
NOTHING(__tsan_mutex_pre_lock, void)
NOTHING(__tsan_mutex_post_lock, void)
NOTHING(__tsan_mutex_post_unlock, void)
NOTHING(__tsan_mutex_pre_signal, void)
NOTHING(__tsan_mutex_post_signal, void)
NOTHING(__tsan_mutex_pre_divert, void)
NOTHING(__tsan_mutex_post_divert, void)
NOTHING(__tsan_destroy_fiber, void)
NOTHING(__tsan_switch_to_fiber, void)
NOTHING(__tsan_set_fiber_name, void)
NOTHING(__tsan_external_register_header, void)
NOTHING(__tsan_external_assign_tag, void)
NOTHING(__tsan_external_read, void)
NOTHING(__tsan_external_write, void)
NOTHING(AnnotateHappensBefore, void)
NOTHING(AnnotateHappensAfter, void)
NOTHING(AnnotateIgnoreReadsBegin, void)
NOTHING(AnnotateIgnoreReadsEnd, void)
NOTHING(AnnotateIgnoreWritesBegin, void)
NOTHING(AnnotateIgnoreWritesEnd, void)
NOTHING(AnnotateIgnoreSyncBegin, void)
NOTHING(AnnotateIgnoreSyncEnd, void)
NOTHING(AnnotateBenignRace, void)
NOTHING(AnnotateBenignRaceSized, void)
NOTHING(AnnotateRWLockCreate, void)
NOTHING(AnnotateRWLockCreateStatic, void)
NOTHING(AnnotateRWLockDestroy, void)
NOTHING(AnnotateRWLockAcquired, void)
NOTHING(AnnotateRWLockReleased, void)
NOTHING(AnnotateNewMemory, void)
NOTHING(AnnotateThreadName, void)
NOTHING(AnnotateFlushState, void)

/* Return 0 or NULL, which is valid for all of these. */
#define NULL_OF(name)                                                                              \
    ORIEL_TSAN_ENTRY void *name(void);                                                             \
    ORIEL_TSAN_ENTRY void *name(void)                                                              \
    {                                                                                              \
        return NULL;                                                                               \
    }
NULL_OF(__tsan_mutex_pre_unlock)
NULL_OF(__tsan_get_current_fiber)
NULL_OF(__tsan_create_fiber)
NULL_OF(__tsan_external_register_tag)
NULL_OF(__tsan_get_current_report)
