/* The words of guard.h: start.c sets whether the checker runs, local.c whether it watches, every wrapper counts its depth. */
#include "check/guard.h"

_Thread_local int oriel_check_depth;
_Atomic bool oriel_check_running;
bool oriel_check_several;
bool oriel_check_watches;
