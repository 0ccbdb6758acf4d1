/* The text of kernels, in PTX. There is one template for updates: types, operators and the width of
 * accesses are substituted. PTX 6.0 for sm_50 is the oldest that drivers of the oldest supported
 * version accept, and each later GPU runs it.
 *
 * Updates. Threads go through the elements in a loop with a stride of all threads, so neighbours
 * access neighbouring bytes, and one launch updates any number of elements. Memory is the limit,
 * not arithmetic. To use the bandwidth of a device, its latency times the bandwidth must be in
 * flight: on an H100 about 0.6 us * 3.35 TB/s = 2 MB. It has 132 multiprocessors with 2048 threads
 * each, and the kernels need at most 32 registers, so all of these run. Each thread has two loads
 * in flight, of the target's and of the origin's elements: 16 bytes each for elements of 4 and 8
 * bytes, that is 8.6 MB; 8 bytes for those of 2, and 4 bytes for those of 1, 2.1 MB. So a million
 * doubles, 24 MiB of traffic, take about 8 us at the whole bandwidth, and a launch and the wait for
 * it about 5 us more: 0.6 of the bandwidth. Accesses of one element at a time, where addresses are
 * aligned to no more, have half of this in flight for doubles, and less for shorter elements.
 *
 * Results are those of reduce/kernel.c: nothing is fused (.rn), subnormal numbers are kept, and the
 * greater of two numbers is chosen by a comparison, which is false for a NaN. A thread loads before
 * it stores, so result may be the buffer of origin. */
#include "gpu/cuda/kernels.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAD                                                                                       \
    ".version 6.0\n"                                                                               \
    ".target sm_50\n"                                                                              \
    ".address_size 64\n"

/* The signs of a template:
 *
 *     $m  type in memory      $t  type of computing, of at least 16 bits      $b  the same as bits
 *     $w  lanes               $l  lanes of an access, $w or 1                 $v  ".v$l", if not 1
 *     $z  bytes of an access  $k  the lane                                    $o  the operator
 *     $A  the registers %a of all lanes of an access; $B and $C likewise */
static const char update_head[] =
    HEAD ".visible .entry update(.param .u64 target, .param .u64 origin, .param .u64 result,\n"
         "    .param .u64 whole, .param .u64 count)\n"
         "{\n"
         ".reg .$b %a<$w>, %b<$w>, %c<$w>;\n"
         ".reg .pred %p, %q, %returns;\n"
         ".reg .b32 %x, %y;\n"
         ".reg .b64 %target, %origin, %result, %end1, %end$w;\n"
         ".reg .b64 %first, %at, %step, %bytes, %t, %o, %r;\n"
         "ld.param.u64 %target, [target];\n"
         "ld.param.u64 %origin, [origin];\n"
         "ld.param.u64 %result, [result];\n"
         "ld.param.u64 %end$w, [whole];\n"
         "ld.param.u64 %end1, [count];\n"
         "setp.ne.u64 %returns, %result, 0;\n"
         "cvta.to.global.u64 %target, %target;\n"
         "cvta.to.global.u64 %origin, %origin;\n"
         "cvta.to.global.u64 %result, %result;\n"
         "mov.u32 %x, %ctaid.x;\n"
         "mov.u32 %y, %ntid.x;\n"
         "mul.wide.u32 %first, %x, %y;\n"
         "mov.u32 %x, %tid.x;\n"
         "cvt.u64.u32 %at, %x;\n"
         "add.u64 %first, %first, %at;\n"
         "mov.u32 %x, %nctaid.x;\n"
         "mul.wide.u32 %step, %x, %y;\n"
         "mov.u64 %at, %first;\n";
static const char update_loop[] = "LOOP$l:\n"
                                  "setp.ge.u64 %p, %at, %end$l;\n"
                                  "@%p bra END$l;\n"
                                  "mul.lo.u64 %bytes, %at, $z;\n"
                                  "add.u64 %t, %target, %bytes;\n"
                                  "add.u64 %o, %origin, %bytes;\n"
                                  "add.u64 %r, %result, %bytes;\n"
                                  "ld.global$v.$m $A, [%t];\n"
                                  "ld.global$v.$m $B, [%o];\n"
                                  "$o"
                                  "@%returns st.global$v.$m [%r], $A;\n"
                                  "st.global$v.$m [%t], $C;\n"
                                  "add.u64 %at, %at, %step;\n"
                                  "bra LOOP$l;\n"
                                  "END$l:\n";
static const char update_rest[] = "mul.lo.u64 %at, %end$w, $w;\n"
                                  "add.u64 %at, %at, %first;\n";
static const char update_tail[] = "ret;\n"
                                  "}\n";

#define CHOICE(comparison)                                                                         \
    "setp." comparison ".$t %p, %a$k, %b$k;\n"                                                     \
    "selp.$b %c$k, %a$k, %b$k, %p;\n"
#define LOGIC(operator)                                                                            \
    "setp.ne.$t %p, %a$k, 0;\n"                                                                    \
    "setp.ne.$t %q, %b$k, 0;\n"                                                                    \
    operator".pred %p, %p, %q;\n"                                                                  \
            "selp.$b %c$k, 1, 0, %p;\n"
#define BINARY(instruction) instruction " %c$k, %a$k, %b$k;\n"

/* NULL: no kernel has the operator. */
static const struct {
    const char *integer;
    const char *real;
} operators[ORIEL_OPERATOR_COUNT] = {
    [ORIEL_OPERATOR_MAX] = {CHOICE("gt"), CHOICE("gt")},
    [ORIEL_OPERATOR_MIN] = {CHOICE("lt"), CHOICE("lt")},
    [ORIEL_OPERATOR_SUM] = {BINARY("add.$t"), BINARY("add.rn.$t")},
    [ORIEL_OPERATOR_PROD] = {BINARY("mul.lo.$t"), BINARY("mul.rn.$t")},
    [ORIEL_OPERATOR_LAND] = {LOGIC("and"), NULL},
    [ORIEL_OPERATOR_LOR] = {LOGIC("or"), NULL},
    [ORIEL_OPERATOR_LXOR] = {LOGIC("xor"), NULL},
    [ORIEL_OPERATOR_BAND] = {BINARY("and.$b"), NULL},
    [ORIEL_OPERATOR_BOR] = {BINARY("or.$b"), NULL},
    [ORIEL_OPERATOR_BXOR] = {BINARY("xor.$b"), NULL},
    [ORIEL_OPERATOR_REPLACE] = {"mov.$b %c$k, %b$k;\n", NULL},
};

static const char *operator_text(struct oriel_cu_element element, enum oriel_operator op)
{
    return element.letter == 'f' ? operators[op].real : operators[op].integer;
}

unsigned oriel_cu_lanes(struct oriel_cu_element element)
{
    return element.bytes == 8 ? 2 : 4;
}

/* What a template is expanded for. */
struct kernel {
    FILE *out;
    struct oriel_cu_element element;
    enum oriel_operator op;
    unsigned lanes; /* of an access */
};

static void put_registers(const struct kernel *kernel, char name)
{
    fprintf(kernel->out, kernel->lanes > 1 ? "{%%%c0" : "%%%c0", name);
    for (unsigned lane = 1; lane < kernel->lanes; lane++)
        fprintf(kernel->out, ", %%%c%u", name, lane);
    fputs(kernel->lanes > 1 ? "}" : "", kernel->out);
}

static void expand(const struct kernel *kernel, const char *template, unsigned lane);

static void expand_sign(const struct kernel *kernel, char sign, unsigned lane)
{
    const unsigned bits = 8u * kernel->element.bytes;
    const unsigned register_bits = bits < 16 ? 16 : bits;
    switch (sign) {
    case 'm': fprintf(kernel->out, "%c%u", kernel->element.letter, bits); break;
    case 't': fprintf(kernel->out, "%c%u", kernel->element.letter, register_bits); break;
    case 'b': fprintf(kernel->out, "b%u", register_bits); break;
    case 'w': fprintf(kernel->out, "%u", oriel_cu_lanes(kernel->element)); break;
    case 'l': fprintf(kernel->out, "%u", kernel->lanes); break;
    case 'k': fprintf(kernel->out, "%u", lane); break;
    case 'z': fprintf(kernel->out, "%u", kernel->lanes * kernel->element.bytes); break;
    case 'v':
        if (kernel->lanes > 1)
            fprintf(kernel->out, ".v%u", kernel->lanes);
        break;
    case 'o':
        for (unsigned i = 0; i < kernel->lanes; i++)
            expand(kernel, operator_text(kernel->element, kernel->op), i);
        break;
    default: put_registers(kernel, (char)(sign - 'A' + 'a')); break;
    }
}

static void expand(const struct kernel *kernel, const char *template, unsigned lane)
{
    for (; *template != '\0'; template ++) {
        if (*template == '$')
            expand_sign(kernel, *++template, lane);
        else
            fputc(*template, kernel->out);
    }
}

char *oriel_cu_update_text(struct oriel_cu_element element, enum oriel_operator op)
{
    char *text = NULL;
    size_t len_bytes;
    struct kernel kernel = {open_memstream(&text, &len_bytes), element, op,
                            oriel_cu_lanes(element)};
    if (kernel.out == NULL)
        return NULL;
    expand(&kernel, update_head, 0);
    expand(&kernel, update_loop, 0);
    expand(&kernel, update_rest, 0);
    kernel.lanes = 1;
    expand(&kernel, update_loop, 0);
    expand(&kernel, update_tail, 0);
    return fclose(kernel.out) == 0 ? text : NULL;
}

/* A block copies a piece by the widest accesses to which both addresses and the length are
 * aligned. The pieces of a launch are short, so the threads of all blocks are what is in flight. */
static const char copy_head[] = HEAD ".visible .entry copy(.param .u64 pieces)\n"
                                     "{\n"
                                     ".reg .pred %p;\n"
                                     ".reg .b32 %x;\n"
                                     ".reg .b64 %pieces, %to, %from, %length, %all, %odd;\n"
                                     ".reg .b64 %at, %step, %thread, %threads, %t, %f, %c<2>;\n"
                                     "ld.param.u64 %pieces, [pieces];\n"
                                     "cvta.to.global.u64 %pieces, %pieces;\n"
                                     "mov.u32 %x, %ctaid.x;\n"
                                     "mul.wide.u32 %at, %x, 24;\n"
                                     "add.u64 %pieces, %pieces, %at;\n"
                                     "ld.global.u64 %to, [%pieces];\n"
                                     "ld.global.u64 %from, [%pieces+8];\n"
                                     "ld.global.u64 %length, [%pieces+16];\n"
                                     "or.b64 %all, %to, %from;\n"
                                     "or.b64 %all, %all, %length;\n"
                                     "cvta.to.global.u64 %to, %to;\n"
                                     "cvta.to.global.u64 %from, %from;\n"
                                     "mov.u32 %x, %tid.x;\n"
                                     "cvt.u64.u32 %thread, %x;\n"
                                     "mov.u32 %x, %ntid.x;\n"
                                     "cvt.u64.u32 %threads, %x;\n";
static const char copy_loop[] = "rem.u64 %odd, %all, $z;\n"
                                "setp.ne.u64 %p, %odd, 0;\n"
                                "@%p bra END$z;\n"
                                "mul.lo.u64 %at, %thread, $z;\n"
                                "mul.lo.u64 %step, %threads, $z;\n"
                                "LOOP$z:\n"
                                "setp.ge.u64 %p, %at, %length;\n"
                                "@%p ret;\n"
                                "add.u64 %f, %from, %at;\n"
                                "add.u64 %t, %to, %at;\n"
                                "ld.global$v.$m $C, [%f];\n"
                                "st.global$v.$m [%t], $C;\n"
                                "add.u64 %at, %at, %step;\n"
                                "bra LOOP$z;\n"
                                "END$z:\n";
static const char copy_tail[] = "ret;\n"
                                "}\n";
_Static_assert(sizeof(struct oriel_gpu_piece) == 24, "as in copy_head");

char *oriel_cu_copy_text(void)
{
    static const struct {
        unsigned char bytes, lanes;
    } accesses[] = {{8, 2}, {8, 1}, {4, 1}, {2, 1}, {1, 1}};
    char *text = NULL;
    size_t len_bytes;
    struct kernel kernel = {.out = open_memstream(&text, &len_bytes), .element = {.letter = 'u'}};
    if (kernel.out == NULL)
        return NULL;
    expand(&kernel, copy_head, 0);
    for (unsigned i = 0; i < sizeof accesses / sizeof accesses[0]; i++) {
        kernel.element.bytes = accesses[i].bytes;
        kernel.lanes = accesses[i].lanes;
        expand(&kernel, copy_loop, 0);
    }
    expand(&kernel, copy_tail, 0);
    return fclose(kernel.out) == 0 ? text : NULL;
}

bool oriel_cu_update_exists(struct oriel_cu_element element, enum oriel_operator op)
{
    return operator_text(element, op) != NULL;
}
