/* The variables of reentrancy.h and clock.h. */
#include "check/common/reentrancy.h"

#include "check/common/clock.h"

_Thread_local union oriel_check_where oriel_check_where;
_Thread_local struct oriel_check_call oriel_check_call;
_Atomic bool oriel_check_running;
_Atomic bool oriel_check_left;
void (*oriel_check_pending)(void);
_Atomic uint64_t oriel_check_changes = 1; /* 0: nothing cached yet */
bool oriel_check_many_threads;
bool oriel_check_one_thread;
bool oriel_check_watches;
unsigned oriel_clock_shift;
