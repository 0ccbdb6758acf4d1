/* The conflict table (MPI-4.1, 13.7): which accesses to the same bytes are an error when nothing
 * orders them. Where the standard permits two readings, the table follows the one in the program's
 * favour. */
#include "check/access/history.h"

/* MPI_NO_OP changes nothing: it is a load that is atomic with respect to accumulates. */
static bool reads_only(const struct oriel_access *access)
{
    return access->kind == ORIEL_ACCESS_LOAD || access->kind == ORIEL_ACCESS_GET ||
           (access->kind == ORIEL_ACCESS_ACCUMULATE && access->op == ORIEL_OPERATOR_NO_OP);
}

enum element_class { CLASS_WORD, CLASS_REAL, CLASS_COMPLEX, CLASS_PAIR };

static enum element_class element_class_of(uint8_t element)
{
    switch (element) {
/* The formatter joins macros that end in a statement. */
/* clang-format off */
#define INTEGER(name, type, unsigned_type)
#define WIDE(name, type, unsigned_type)
#define REAL(name, type) case ORIEL_KIND_##name: return CLASS_REAL;
#define COMPLEX(name, type, real) case ORIEL_KIND_##name: return CLASS_COMPLEX;
#define HALF(name, parts) case ORIEL_KIND_##name: return parts == 1 ? CLASS_REAL : CLASS_COMPLEX;
#define PAIR(name, type, index_type) case ORIEL_KIND_##name: return CLASS_PAIR;
#define COMPOSED PAIR
#define LOGICAL(name, type)
#define BITS(name, type, like)
#define LETTERS(name, type, like)
#define OPAQUE(name, type)
#include "reduce/kinds.def"
        /* clang-format on */
    default: return CLASS_WORD;
    }
}

/* Whether accumulates of the two kinds see each other's elements whole. Signed and unsigned,
 * logical and integer numbers of one size are updated in the same way, although MPI defines them as
 * different basic types. */
static bool is_same_element(uint8_t a, uint8_t b)
{
    if (a == b || a >= ORIEL_KIND_COUNT || b >= ORIEL_KIND_COUNT)
        return true;
    return element_class_of(a) == CLASS_WORD && element_class_of(b) == CLASS_WORD &&
           oriel_kinds[a].extent_bytes == oriel_kinds[b].extent_bytes;
}

/* Whether the elements of both start at distances of whole elements. Elements of one type that
 * overlap in part are different locations with common bytes, and nothing orders them (13.7.2). */
static bool is_same_phase(uint8_t a, uint8_t b)
{
    return a == b || a == ORIEL_PHASE_MIXED || b == ORIEL_PHASE_MIXED;
}

/* Accumulates of one origin to one basic type are ordered, whatever their operators (13.7.2).
 * Between origins, the default of accumulate_ops, same_op_no_op, permits one operator concurrent
 * with MPI_NO_OP. same_op does not permit even that. */
static bool accumulates_conflict(const struct oriel_access *a, const struct oriel_access *b)
{
    bool no_op_a = a->op == ORIEL_OPERATOR_NO_OP;
    bool no_op_b = b->op == ORIEL_OPERATOR_NO_OP;
    if (no_op_a && no_op_b)
        return false;
    if (!is_same_element(a->element, b->element) || !is_same_phase(a->phase, b->phase))
        return true;
    if (a->origin == b->origin || a->op == b->op ||
        ((a->flags | b->flags) & ORIEL_ACCESS_ANY_OP) != 0)
        return false;
    return (!no_op_a && !no_op_b) || ((a->flags | b->flags) & ORIEL_ACCESS_SAME_OP) != 0;
}

/* Plain loads and stores of two threads of one process (thread_order.c, T6). */
static bool are_of_one_process(const struct oriel_access *a, const struct oriel_access *b)
{
    return (a->flags & b->flags & ORIEL_ACCESS_SANITIZER) != 0 && a->origin == b->origin;
}

bool oriel_access_conflicts(const struct oriel_access *a, const struct oriel_access *b)
{
    if (a->kind == ORIEL_ACCESS_ACCUMULATE && b->kind == ORIEL_ACCESS_ACCUMULATE)
        return accumulates_conflict(a, b);
    return (!reads_only(a) || !reads_only(b)) && !are_of_one_process(a, b);
}

bool oriel_access_supersedes(const struct oriel_access *later, const struct oriel_access *earlier)
{
    const uint8_t ops = ORIEL_ACCESS_SAME_OP | ORIEL_ACCESS_ANY_OP;
    if (later->kind == ORIEL_ACCESS_PUT || later->kind == ORIEL_ACCESS_STORE)
        return true;
    if (later->kind != ORIEL_ACCESS_ACCUMULATE)
        return reads_only(earlier) && (earlier->flags & ORIEL_ACCESS_SAME_OP) == 0;
    return earlier->kind == ORIEL_ACCESS_ACCUMULATE && later->element == earlier->element &&
           later->phase == earlier->phase && (later->flags & ops) == (earlier->flags & ops) &&
           (later->op == earlier->op ||
            (earlier->op == ORIEL_OPERATOR_NO_OP && (earlier->flags & ORIEL_ACCESS_SAME_OP) == 0));
}
