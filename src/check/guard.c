/* The words of guard.h: start.c sets whether the checker runs, every wrapper counts its depth. */
#include "check/guard.h"

_Thread_local int oriel_check_depth;
_Atomic bool oriel_check_running;
bool oriel_check_several;
