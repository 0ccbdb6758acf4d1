/* The subset of PTX that the stand-in interprets, after parsing. What ptxas would refuse is
 * refused: types of operands must agree, and modifiers must be those of the manual. */
#ifndef ORIEL_TESTS_GPU_STANDIN_PTX_H
#define ORIEL_TESTS_GPU_STANDIN_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTX_NAME_BYTES = 64, PTX_OPERANDS = 4, PTX_VECTOR = 4, PTX_PARTS = 8 };

/* kind: 'p' predicate, 'b' bits, 'u' unsigned, 's' signed, 'f' floating point */
struct ptx_type {
    char kind;
    unsigned char bytes;
};

enum ptx_op {
    PTX_ABS,
    PTX_ADD,
    PTX_AND,
    PTX_ATOM_ADD,
    PTX_ATOM_AND,
    PTX_ATOM_CAS,
    PTX_ATOM_EXCH,
    PTX_ATOM_MAX,
    PTX_ATOM_MIN,
    PTX_ATOM_OR,
    PTX_ATOM_XOR,
    PTX_BRA,
    PTX_CVT,
    PTX_DIV,
    PTX_FENCE,
    PTX_LD,
    PTX_LD_PARAM,
    PTX_MAD, /* also fma; low half */
    PTX_MAD_WIDE,
    PTX_MAX,
    PTX_MIN,
    PTX_MOV,
    PTX_MUL, /* low half */
    PTX_MUL_HI,
    PTX_MUL_WIDE,
    PTX_NEG,
    PTX_NOT,
    PTX_OR,
    PTX_REM,
    PTX_RET,
    PTX_SELP,
    PTX_SETP,
    PTX_SHL,
    PTX_SHR,
    PTX_ST,
    PTX_SUB,
    PTX_XOR
};

enum ptx_compare {
    PTX_EQ,
    PTX_NE,
    PTX_LT,
    PTX_LE,
    PTX_GT,
    PTX_GE,
    /* true if an operand is not a number */
    PTX_EQU,
    PTX_NEU,
    PTX_LTU,
    PTX_LEU,
    PTX_GTU,
    PTX_GEU,
    PTX_NUM,
    PTX_NAN
};

/* 'n' nearest even, 'z' zero, 'm' down, 'p' up; 0 is none */
enum ptx_special { PTX_TID, PTX_NTID, PTX_CTAID, PTX_NCTAID };

enum ptx_operand_kind {
    PTX_NONE,
    PTX_REGISTERS, /* one, or a vector */
    PTX_IMMEDIATE,
    PTX_SPECIAL,   /* value: 4 * dimension + enum ptx_special */
    PTX_ADDRESS,   /* registers[0] or -1, and an offset */
    PTX_PARAMETER, /* value: its number */
    PTX_LABEL      /* value: number of an instruction */
};

struct ptx_operand {
    enum ptx_operand_kind kind;
    int registers[PTX_VECTOR];
    unsigned count;
    uint64_t value;
};

struct ptx_instruction {
    int line;
    enum ptx_op op;
    struct ptx_type type;
    struct ptx_type source_type; /* of cvt */
    enum ptx_compare compare;
    char rounding;
    bool is_reduction; /* an atomic operation without a result */
    int guard;         /* a register, or -1 */
    bool guard_negated;
    struct ptx_operand operands[PTX_OPERANDS];
};

struct ptx_register {
    char name[PTX_NAME_BYTES];
    struct ptx_type type;
};

struct ptx_parameter {
    char name[PTX_NAME_BYTES];
    struct ptx_type type;
};

struct ptx_kernel {
    struct ptx_kernel *next;
    char name[PTX_NAME_BYTES];
    struct ptx_parameter *parameters;
    unsigned parameter_count;
    struct ptx_register *registers;
    unsigned register_count;
    struct ptx_instruction *instructions;
    unsigned instruction_count;
};

/* ptx_lex.c: the next piece of the text. A name includes its dots, as in ld.global.u32. */
enum ptx_token { PTX_END, PTX_NAME, PTX_INTEGER, PTX_FLOAT, PTX_DOUBLE, PTX_SIGN, PTX_BAD };

struct ptx_lexer {
    const char *at;
    int line;
    enum ptx_token token;
    char name[PTX_NAME_BYTES]; /* NAME */
    char sign;                 /* SIGN */
    uint64_t value;            /* INTEGER; bits of a FLOAT (f32) or a DOUBLE */
};
void ptx_next(struct ptx_lexer *lexer);

/* ptx_forms.c: finds the instruction by its mnemonic. Returns a letter for each operand:
 *
 *     d    register for the result       D    the same of twice the size
 *     a    register or number            A    the same of twice the size
 *     s    register of the type or wider, that of a load or a conversion
 *     v    1, 2 or 4 registers           m    address       M    parameter
 *     P    predicate for the result      p    predicate     i    register or number of 32 bits
 *     x    a, or a special register      l    label
 *
 * Or NULL with the reason. */
const char *ptx_form(const char *mnemonic, int target, int version,
                     struct ptx_instruction *instruction, unsigned *vector, const char **reason);
bool ptx_type_read(const char *text, struct ptx_type *type);

/* ptx_parse.c: NULL, with the line and the reason in text, if it is invalid. */
struct ptx_kernel *ptx_parse(const char *source, char *text, size_t text_bytes);
void ptx_free(struct ptx_kernel *kernels);

/* ptx_value.c: results of instructions without access to memory. Operands have the bits of their
 * type, the rest is zero. */
uint64_t ptx_mask(unsigned bytes);
int64_t ptx_signed(uint64_t value, unsigned bytes);
uint64_t ptx_convert(const struct ptx_instruction *instruction, uint64_t value);
uint64_t ptx_evaluate(const struct ptx_instruction *instruction, const uint64_t *operands);

/* ptx_run.c: a launch. */
enum { PTX_PARAMETERS_MOST = 32, PTX_TOUCHED_MOST = 64 };

struct standin_allocation;
struct oriel_cu_context;

struct ptx_launch {
    const struct ptx_kernel *kernel;
    struct oriel_cu_context *context;
    uint64_t parameters[PTX_PARAMETERS_MOST];
    unsigned grid[3], block[3];
    uint64_t seed; /* of the order of threads */
    struct standin_allocation *touched[PTX_TOUCHED_MOST];
    unsigned touched_count;
};

/* Runs all threads, one at a time. Returns a result of the driver; an error is sticky. */
int ptx_run(struct ptx_launch *launch);

#endif
