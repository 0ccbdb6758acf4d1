/* Results of PTX instructions that access no memory. */
#include "ptx.h"

#include <math.h>
#include <string.h>

uint64_t ptx_mask(unsigned bytes)
{
    return bytes >= 8 ? UINT64_MAX : (UINT64_C(1) << 8 * bytes) - 1;
}

int64_t ptx_signed(uint64_t value, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(value << shift) >> shift;
}

static double half_value(uint64_t bits)
{
    int exponent = bits >> 10 & 31;
    double fraction = (double)(bits & 1023);
    double value = exponent == 31  ? (bits & 1023 ? NAN : INFINITY)
                   : exponent == 0 ? ldexp(fraction, -24)
                                   : ldexp(1024 + fraction, exponent - 25);
    return bits & 0x8000 ? -value : value;
}

/* Rounded to the nearest, ties to even. */
static uint64_t half_bits(double value)
{
    uint64_t sign = signbit(value) ? 0x8000 : 0;
    value = fabs(value);
    if (isnan(value)) {
        return 0x7fff;
    }
    if (value >= 65520) {
        return sign | 0x7c00;
    }
    int exponent = value < 0x1p-14 ? -14 : ilogb(value);
    /* a fraction that is rounded up to 2 carries into the exponent */
    uint64_t fraction = (uint64_t)nearbyint(ldexp(value, 10 - exponent));
    return sign | (((uint64_t)(exponent + 15) << 10) + fraction - 1024);
}

static double real(uint64_t bits, unsigned bytes)
{
    float narrow;
    double wide;
    if (bytes == 2) {
        return half_value(bits);
    }
    if (bytes == 4) {
        memcpy(&narrow, &bits, 4);
        return (double)narrow;
    }
    memcpy(&wide, &bits, 8);
    return wide;
}

static uint64_t real_bits(double value, unsigned bytes)
{
    float narrow = (float)value;
    uint64_t bits = 0;
    if (bytes == 2) {
        return half_bits(value);
    }
    memcpy(&bits, bytes == 4 ? (void *)&narrow : (void *)&value, bytes);
    return bits;
}

/* Rounds, and clamps to the type; 0 for what is not a number. */
static uint64_t integer_of(double value, struct ptx_type type, char rounding)
{
    double rounded = rounding == 'z'   ? trunc(value)
                     : rounding == 'm' ? floor(value)
                     : rounding == 'p' ? ceil(value)
                                       : nearbyint(value);
    bool is_signed = type.kind == 's';
    double limit = ldexp(1, 8 * type.bytes - is_signed);
    if (isnan(rounded)) {
        return 0;
    }
    if (rounded >= limit) {
        return is_signed ? ptx_mask(type.bytes) >> 1 : ptx_mask(type.bytes);
    }
    if (is_signed) {
        return rounded < -limit ? (ptx_mask(type.bytes) >> 1) + 1
                                : (uint64_t)(int64_t)rounded & ptx_mask(type.bytes);
    }
    return rounded < 0 ? 0 : (uint64_t)rounded;
}

uint64_t ptx_convert(const struct ptx_instruction *instruction, uint64_t value)
{
    struct ptx_type to = instruction->type, from = instruction->source_type;
    value &= ptx_mask(from.bytes);
    if (from.kind == 'f') {
        double number = real(value, from.bytes);
        return to.kind == 'f' ? real_bits(number, to.bytes)
                              : integer_of(number, to, instruction->rounding);
    }
    int64_t number = ptx_signed(value, from.bytes);
    if (to.kind != 'f') {
        return (from.kind == 's' ? (uint64_t)number : value) & ptx_mask(to.bytes);
    }
    if (to.bytes == 4) { /* rounded once */
        float narrow = from.kind == 's' ? (float)number : (float)value;
        uint64_t bits = 0;
        memcpy(&bits, &narrow, 4);
        return bits;
    }
    return real_bits(from.kind == 's' ? (double)number : (double)value, to.bytes);
}

static bool compare_real(enum ptx_compare compare, double a, double b)
{
    bool is_unordered = isnan(a) || isnan(b);
    switch (compare) {
    case PTX_NUM: return !is_unordered;
    case PTX_NAN: return is_unordered;
    case PTX_EQ: return a == b;
    case PTX_NE: return !is_unordered && a != b;
    case PTX_LT: return a < b;
    case PTX_LE: return a <= b;
    case PTX_GT: return a > b;
    case PTX_GE: return a >= b;
    default: return is_unordered || compare_real(compare - PTX_EQU + PTX_EQ, a, b);
    }
}

/* order: negative, 0 or positive, as a is less than, equal to or greater than b */
static bool compare_order(enum ptx_compare compare, int order)
{
    switch (compare) {
    case PTX_EQ: return order == 0;
    case PTX_NE: return order != 0;
    case PTX_LT: return order < 0;
    case PTX_LE: return order <= 0;
    case PTX_GT: return order > 0;
    default: return order >= 0;
    }
}

static int order_of(struct ptx_type type, uint64_t a, uint64_t b)
{
    if (type.kind == 's') {
        int64_t left = ptx_signed(a, type.bytes), right = ptx_signed(b, type.bytes);
        return (left > right) - (left < right);
    }
    return (a > b) - (a < b);
}

static double evaluate_double(enum ptx_op op, double a, double b, double c)
{
    switch (op) {
    case PTX_ABS: return fabs(a);
    case PTX_NEG: return -a;
    case PTX_ADD: return a + b;
    case PTX_SUB: return a - b;
    case PTX_MUL: return a * b;
    case PTX_DIV: return a / b;
    case PTX_MAD: return fma(a, b, c);
    case PTX_MIN: return fmin(a, b);
    default: return fmax(a, b);
    }
}

/* Apart from fma, a result of doubles that is rounded to float is the result of floats. */
static double evaluate_float(enum ptx_op op, float a, float b, float c)
{
    return op == PTX_MAD ? (double)fmaf(a, b, c)
                         : evaluate_double(op, (double)a, (double)b, (double)c);
}

static uint64_t evaluate_real(const struct ptx_instruction *instruction, const uint64_t *operands)
{
    unsigned bytes = instruction->type.bytes;
    double a = real(operands[0], bytes), b = real(operands[1], bytes), c = real(operands[2], bytes);
    return real_bits(bytes == 4 ? evaluate_float(instruction->op, (float)a, (float)b, (float)c)
                                : evaluate_double(instruction->op, a, b, c),
                     bytes);
}

static uint64_t multiply_high(struct ptx_type type, uint64_t a, uint64_t b)
{
    if (type.kind == 's') {
        return (uint64_t)((__int128)ptx_signed(a, type.bytes) * ptx_signed(b, type.bytes) >>
                          8 * type.bytes);
    }
    return (uint64_t)((unsigned __int128)a * b >> 8 * type.bytes);
}

/* The driver defines no result for a division by 0; all bits is what GPUs give. */
static uint64_t divide(const struct ptx_instruction *instruction, uint64_t a, uint64_t b)
{
    bool is_remainder = instruction->op == PTX_REM;
    unsigned bytes = instruction->type.bytes;
    if (!b) {
        return is_remainder ? a : UINT64_MAX;
    }
    if (instruction->type.kind == 's') {
        int64_t left = ptx_signed(a, bytes), right = ptx_signed(b, bytes);
        if (right == -1) {
            return is_remainder ? 0 : -(uint64_t)left;
        }
        return (uint64_t)(is_remainder ? left % right : left / right);
    }
    return is_remainder ? a % b : a / b;
}

static uint64_t shift(const struct ptx_instruction *instruction, uint64_t a, uint64_t count)
{
    unsigned bits = 8u * instruction->type.bytes;
    bool is_signed = instruction->type.kind == 's';
    int64_t number = ptx_signed(a, instruction->type.bytes);
    if (instruction->op == PTX_SHL) {
        return count < bits ? a << count : 0;
    }
    if (is_signed) {
        return (uint64_t)(number >> (count < 63 ? count : 63));
    }
    return count < bits ? a >> count : 0;
}

static uint64_t evaluate_integer(const struct ptx_instruction *instruction,
                                 const uint64_t *operands)
{
    struct ptx_type type = instruction->type;
    uint64_t a = operands[0], b = operands[1];
    bool is_signed = type.kind == 's';
    uint64_t product =
        is_signed ? (uint64_t)ptx_signed(a, type.bytes) * (uint64_t)ptx_signed(b, type.bytes)
                  : a * b;
    switch (instruction->op) {
    case PTX_ABS: return is_signed && ptx_signed(a, type.bytes) < 0 ? -a : a;
    case PTX_NEG: return -a;
    case PTX_ADD: return a + b;
    case PTX_SUB: return a - b;
    case PTX_MUL:
    case PTX_MUL_WIDE: return product;
    case PTX_MUL_HI: return multiply_high(type, a, b);
    case PTX_MAD:
    case PTX_MAD_WIDE: return product + operands[2];
    case PTX_DIV:
    case PTX_REM: return divide(instruction, a, b);
    case PTX_MIN: return order_of(type, a, b) < 0 ? a : b;
    case PTX_MAX: return order_of(type, a, b) > 0 ? a : b;
    case PTX_AND: return a & b;
    case PTX_OR: return a | b;
    case PTX_XOR: return a ^ b;
    case PTX_NOT: return type.kind == 'p' ? !a : ~a;
    default: return shift(instruction, a, b);
    }
}

uint64_t ptx_evaluate(const struct ptx_instruction *instruction, const uint64_t *operands)
{
    struct ptx_type type = instruction->type;
    bool is_wide = instruction->op == PTX_MUL_WIDE || instruction->op == PTX_MAD_WIDE;
    if (instruction->op == PTX_SETP) {
        return type.kind == 'f'
                   ? compare_real(instruction->compare, real(operands[0], type.bytes),
                                  real(operands[1], type.bytes))
                   : compare_order(instruction->compare, order_of(type, operands[0], operands[1]));
    }
    if (instruction->op == PTX_SELP) {
        return operands[2] ? operands[0] : operands[1];
    }
    if (instruction->op == PTX_MOV) {
        return operands[0];
    }
    if (type.kind == 'f') {
        return evaluate_real(instruction, operands);
    }
    return evaluate_integer(instruction, operands) & ptx_mask(type.bytes << is_wide);
}
