/* Makes the words from the table.  trace_names.h says who may call. */
#include "cli/trace_names.h"

#include <stddef.h>

#define NAME(field, name, meaning) name,
#define NOTHING(field, name, meaning)

#define OPERATION NAME
#define PATH NOTHING
#define CALL NOTHING
#define CAUSE NOTHING
const char *const oriel_operation_names[] = {
#include "observe/counters.def"
};
#undef OPERATION
#undef PATH
#define OPERATION NOTHING
#define PATH NAME
const char *const oriel_path_names[] = {
#include "observe/counters.def"
};
#undef PATH
#undef CALL
#define PATH NOTHING
#define CALL NAME
const char *const oriel_call_names[] = {
#include "observe/counters.def"
};
#undef CALL
#undef CAUSE
#define CALL NOTHING
#define CAUSE NAME
const char *const oriel_cause_names[] = {
#include "observe/counters.def"
};
#undef OPERATION
#undef PATH
#undef CALL
#undef CAUSE

const char *oriel_kind_name(uint8_t kind)
{
    return kind < ORIEL_TRACE_CALL ? oriel_operation_names[kind] : oriel_call_names[kind - ORIEL_TRACE_CALL];
}

const char *oriel_flavour_name(uint32_t flavour)
{
    static const char *const names[] = {"create", "allocate", "shared", "dynamic"};
    return flavour < sizeof names / sizeof names[0] ? names[flavour] : "window";
}
