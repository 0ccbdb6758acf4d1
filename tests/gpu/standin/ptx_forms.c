/* The instructions of the subset: modifiers, types and operands, as the PTX manual has them. */
#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* T in a mnemonic is one of the types, C a comparison. */
struct form {
    const char *mnemonic;
    enum ptx_op op;
    const char *types;
    const char *operands;
};

#define INTEGERS "u16 u32 u64 s16 s32 s64 "
#define BITS     "b16 b32 b64 "
#define FLOATS   "f32 f64 "
#define ALL      BITS INTEGERS FLOATS
#define MEMORY   "b8 u8 s8 " ALL

static const struct form forms[] = {
    {"abs.T", PTX_ABS, "s16 s32 s64 " FLOATS, "da"},
    {"add.T", PTX_ADD, INTEGERS FLOATS, "daa"},
    {"add.rn.T", PTX_ADD, FLOATS, "daa"},
    {"and.T", PTX_AND, BITS "pred", "daa"},
    {"atom.add.T", PTX_ATOM_ADD, "u32 s32 u64 " FLOATS, "dma"},
    {"atom.and.T", PTX_ATOM_AND, "b32 b64", "dma"},
    {"atom.cas.T", PTX_ATOM_CAS, BITS, "dmaa"},
    {"atom.exch.T", PTX_ATOM_EXCH, "b32 b64", "dma"},
    {"atom.max.T", PTX_ATOM_MAX, "u32 s32 u64 s64", "dma"},
    {"atom.min.T", PTX_ATOM_MIN, "u32 s32 u64 s64", "dma"},
    {"atom.or.T", PTX_ATOM_OR, "b32 b64", "dma"},
    {"atom.xor.T", PTX_ATOM_XOR, "b32 b64", "dma"},
    {"bra", PTX_BRA, NULL, "l"},
    {"bra.uni", PTX_BRA, NULL, "l"},
    {"cvta.to.global.T", PTX_MOV, "u64", "da"},
    {"cvta.global.T", PTX_MOV, "u64", "da"},
    {"div.T", PTX_DIV, INTEGERS, "daa"},
    {"div.rn.T", PTX_DIV, FLOATS, "daa"},
    {"exit", PTX_RET, NULL, ""},
    {"fence.acq_rel.sys", PTX_FENCE, NULL, ""},
    {"fence.sc.sys", PTX_FENCE, NULL, ""},
    {"fma.rn.T", PTX_MAD, FLOATS, "daaa"},
    {"ld.T", PTX_LD, MEMORY, "vm"},
    {"ld.param.T", PTX_LD_PARAM, MEMORY, "sM"},
    {"mad.lo.T", PTX_MAD, INTEGERS, "daaa"},
    {"mad.wide.T", PTX_MAD_WIDE, "u16 u32 s16 s32", "DaaA"},
    {"max.T", PTX_MAX, INTEGERS FLOATS, "daa"},
    {"membar.gl", PTX_FENCE, NULL, ""},
    {"membar.sys", PTX_FENCE, NULL, ""},
    {"min.T", PTX_MIN, INTEGERS FLOATS, "daa"},
    {"mov.T", PTX_MOV, ALL "pred", "dx"},
    {"mul.hi.T", PTX_MUL_HI, INTEGERS, "daa"},
    {"mul.lo.T", PTX_MUL, INTEGERS, "daa"},
    {"mul.rn.T", PTX_MUL, FLOATS, "daa"},
    {"mul.T", PTX_MUL, FLOATS, "daa"},
    {"mul.wide.T", PTX_MUL_WIDE, "u16 u32 s16 s32", "Daa"},
    {"neg.T", PTX_NEG, "s16 s32 s64 " FLOATS, "da"},
    {"not.T", PTX_NOT, BITS "pred", "da"},
    {"or.T", PTX_OR, BITS "pred", "daa"},
    {"rem.T", PTX_REM, INTEGERS, "daa"},
    {"ret", PTX_RET, NULL, ""},
    {"ret.uni", PTX_RET, NULL, ""},
    {"selp.T", PTX_SELP, ALL, "daap"},
    {"setp.C.T", PTX_SETP, ALL, "Paa"},
    {"shl.T", PTX_SHL, BITS, "dai"},
    {"shr.T", PTX_SHR, BITS INTEGERS, "dai"},
    {"st.T", PTX_ST, MEMORY, "mv"},
    {"sub.T", PTX_SUB, INTEGERS FLOATS, "daa"},
    {"sub.rn.T", PTX_SUB, FLOATS, "daa"},
    {"xor.T", PTX_XOR, BITS "pred", "daa"},
};

static const char *const comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

struct parts {
    char text[PTX_NAME_BYTES];
    char *part[PTX_PARTS];
    unsigned count;
};

static bool is_in(const char *word, const char *list)
{
    size_t len = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += len) {
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len])) {
            return true;
        }
    }
    return false;
}

bool ptx_type_read(const char *text, struct ptx_type *type)
{
    if (strcmp(text, "pred") == 0) {
        *type = (struct ptx_type){'p', 1};
        return true;
    }
    if (!is_in(text, MEMORY "f16")) {
        return false;
    }
    *type = (struct ptx_type){text[0], (unsigned char)(atoi(text + 1) / 8)};
    return true;
}

static bool split(const char *mnemonic, struct parts *parts)
{
    snprintf(parts->text, sizeof parts->text, "%s", mnemonic);
    parts->count = 0;
    char *rest;
    for (char *part = strtok_r(parts->text, ".", &rest); part; part = strtok_r(NULL, ".", &rest)) {
        if (parts->count == PTX_PARTS) {
            return false;
        }
        parts->part[parts->count++] = part;
    }
    return parts->count > 0;
}

static void remove_second(struct parts *parts)
{
    parts->count--;
    memmove(&parts->part[1], &parts->part[2], (parts->count - 1) * sizeof parts->part[0]);
}

static bool second_is(const struct parts *parts, const char *list)
{
    return parts->count > 1 && is_in(parts->part[1], list);
}

/* Removes the order, the scope and the space of an access, and the size of a vector. */
static const char *reduce_access(struct parts *parts, int target, int version, unsigned *vector)
{
    bool is_atomic = is_in(parts->part[0], "atom red");
    const char *orders = is_atomic                           ? "relaxed acquire release acq_rel"
                         : strcmp(parts->part[0], "ld") == 0 ? "relaxed acquire"
                                                             : "relaxed release";
    bool has_order = second_is(parts, orders);
    if (has_order) {
        remove_second(parts);
        if (target < 70 || version < 60) {
            return "an order of memory needs sm_70 and PTX 6.0";
        }
    } else if (!is_atomic && second_is(parts, "weak volatile")) {
        remove_second(parts);
    }
    if ((has_order || is_atomic) && second_is(parts, "cta gpu sys")) {
        remove_second(parts);
        if (target < 60 || version < 50) {
            return "a scope needs sm_60 and PTX 5.0";
        }
    } else if (has_order && !is_atomic) {
        return "an order of memory needs a scope";
    }
    if (second_is(parts, "global")) {
        remove_second(parts);
        if (parts->part[0][0] == 'l' && second_is(parts, "nc")) {
            remove_second(parts);
        }
    }
    if (!is_atomic && second_is(parts, "v2 v4")) {
        *vector = (unsigned)(parts->part[1][1] - '0');
        remove_second(parts);
    }
    return NULL;
}

static bool read_comparison(const char *word, struct ptx_instruction *instruction)
{
    static const char *const unsigned_words[] = {"lo", "ls", "hi", "hs"};
    for (unsigned i = 0; i < 4; i++) {
        if (instruction->type.kind == 'u' && strcmp(word, unsigned_words[i]) == 0) {
            instruction->compare = PTX_LT + i;
            return true;
        }
    }
    unsigned count = instruction->type.kind == 'f' ? 14 : instruction->type.kind == 'b' ? 2 : 6;
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(word, comparisons[i]) == 0) {
            instruction->compare = i;
            return true;
        }
    }
    return false;
}

static bool matches(const struct form *form, const struct parts *parts,
                    struct ptx_instruction *instruction)
{
    struct parts wanted;
    split(form->mnemonic, &wanted);
    if (wanted.count != parts->count) {
        return false;
    }
    for (unsigned i = wanted.count; i-- > 0;) { /* the type precedes the comparison */
        if (strcmp(wanted.part[i], "T") == 0) {
            if (!is_in(parts->part[i], form->types) ||
                !ptx_type_read(parts->part[i], &instruction->type)) {
                return false;
            }
        } else if (strcmp(wanted.part[i], "C") == 0 ? !read_comparison(parts->part[i], instruction)
                                                    : strcmp(wanted.part[i], parts->part[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* cvt{.rounding}.type.type: which conversions need a rounding. */
static const char *read_conversion(const struct parts *parts, struct ptx_instruction *instruction)
{
    bool has_rounding = parts->count == 4;
    if (parts->count < 3 || parts->count > 4 ||
        !ptx_type_read(parts->part[parts->count - 2], &instruction->type) ||
        !ptx_type_read(parts->part[parts->count - 1], &instruction->source_type)) {
        return "unknown conversion";
    }
    struct ptx_type to = instruction->type, from = instruction->source_type;
    bool to_integer = is_in((char[]){to.kind, 0}, "u s");
    bool from_integer = is_in((char[]){from.kind, 0}, "u s");
    if ((!to_integer && to.kind != 'f') || (!from_integer && from.kind != 'f')) {
        return "a conversion needs types u, s or f";
    }
    bool is_rounded_integer = to_integer && from.kind == 'f';
    bool is_rounded_float = to.kind == 'f' && (from_integer || to.bytes < from.bytes);
    if (has_rounding != (is_rounded_integer || is_rounded_float)) {
        return has_rounding ? "the conversion has no rounding" : "the conversion needs a rounding";
    }
    if (has_rounding) {
        const char *word = parts->part[1];
        if (!is_in(word, is_rounded_integer ? "rni rzi rmi rpi" : "rn")) {
            return "unknown rounding";
        }
        instruction->rounding = word[1];
    }
    instruction->op = PTX_CVT;
    return NULL;
}

/* The architecture from which on an atomic operation has the type. */
static int least_target(const struct ptx_instruction *instruction)
{
    if (instruction->op == PTX_ATOM_ADD && instruction->type.kind == 'f') {
        return instruction->type.bytes == 8 ? 60 : 20;
    }
    return instruction->op == PTX_ATOM_CAS && instruction->type.bytes == 2 ? 70 : 0;
}

const char *ptx_form(const char *mnemonic, int target, int version,
                     struct ptx_instruction *instruction, unsigned *vector, const char **reason)
{
    struct parts parts;
    *vector = 1;
    *reason = "unknown instruction, modifier or type";
    if (!split(mnemonic, &parts)) {
        return NULL;
    }
    if (strcmp(parts.part[0], "cvt") == 0) {
        *reason = read_conversion(&parts, instruction);
        return *reason ? NULL : "ss";
    }
    if (strcmp(parts.part[0], "fence") == 0 && (target < 70 || version < 60)) {
        *reason = "fence needs sm_70 and PTX 6.0";
        return NULL;
    }
    if (is_in(parts.part[0], "ld st atom red")) {
        const char *fault = reduce_access(&parts, target, version, vector);
        if (fault) {
            *reason = fault;
            return NULL;
        }
    }
    static char atom[] = "atom";
    instruction->is_reduction = strcmp(parts.part[0], "red") == 0;
    if (instruction->is_reduction) {
        parts.part[0] = atom;
    }
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (matches(&forms[i], &parts, instruction)) {
            instruction->op = forms[i].op;
            bool has_result = instruction->op == PTX_ATOM_CAS || instruction->op == PTX_ATOM_EXCH;
            if (instruction->is_reduction && has_result) {
                return NULL;
            }
            if (target < least_target(instruction)) {
                *reason = "the instruction needs a later target";
                return NULL;
            }
            return forms[i].operands + instruction->is_reduction;
        }
    }
    return NULL;
}
