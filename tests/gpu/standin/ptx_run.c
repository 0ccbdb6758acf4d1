/* Runs the threads of a launch one at a time, in an order that the seed shuffles. Accesses to
 * global memory are atomic: other processes and the CPU may access the same memory. */
#include "ptx.h"
#include "standin.h"

#include <stdlib.h>
#include <time.h>

enum { STEPS_OF_A_CHECK = 1 << 16 }; /* between two looks at the clock */

struct thread {
    struct ptx_launch *launch;
    uint64_t *registers;
    unsigned index[3], block_index[3];
    unsigned next; /* instruction */
    oriel_cu_result result;
};

static oriel_cu_result fault(const struct ptx_launch *launch,
                             const struct ptx_instruction *instruction, oriel_cu_result code,
                             uint64_t address)
{
    return standin_fault(code, "kernel %s, line %d: error at address %#llx", launch->kernel->name,
                         instruction->line, (unsigned long long)address);
}

/* The allocation with the address, which stays until the launch is complete. */
static struct standin_allocation *touch(struct ptx_launch *launch, uint64_t address)
{
    for (unsigned i = launch->touched_count; i-- > 0;) {
        if (address - launch->touched[i]->base < launch->touched[i]->size_bytes) {
            return launch->touched[i];
        }
    }
    pthread_mutex_lock(&standin_mutex);
    struct standin_allocation *allocation = standin_find(address);
    if (allocation) {
        if (launch->touched_count == PTX_TOUCHED_MOST) {
            standin_misuse("a kernel accesses more than %d allocations", PTX_TOUCHED_MOST);
        }
        allocation->in_flight++;
        launch->touched[launch->touched_count++] = allocation;
    }
    pthread_mutex_unlock(&standin_mutex);
    return allocation;
}

/* The memory of an access. NULL ends the launch, with the error in the thread. */
static void *reach(struct thread *thread, const struct ptx_instruction *instruction,
                   const struct ptx_operand *operand, unsigned bytes, bool is_write)
{
    uint64_t address = thread->registers[operand->registers[0]] + operand->value;
    unsigned needed = is_write ? ORIEL_CU_ACCESS_READ_WRITE : ORIEL_CU_ACCESS_READ;
    if (address % bytes) {
        thread->result =
            fault(thread->launch, instruction, ORIEL_CU_ERROR_MISALIGNED_ADDRESS, address);
        return NULL;
    }
    struct standin_allocation *allocation = touch(thread->launch, address);
    if (!allocation || address - allocation->base > allocation->size_bytes - bytes ||
        (standin_access(allocation, thread->launch->context) & needed) != needed) {
        thread->result =
            fault(thread->launch, instruction, ORIEL_CU_ERROR_ILLEGAL_ADDRESS, address);
        return NULL;
    }
    return allocation->memory + (address - allocation->base);
}

static uint64_t load(const void *memory, unsigned bytes)
{
    switch (bytes) {
    case 1: return __atomic_load_n((const uint8_t *)memory, __ATOMIC_SEQ_CST);
    case 2: return __atomic_load_n((const uint16_t *)memory, __ATOMIC_SEQ_CST);
    case 4: return __atomic_load_n((const uint32_t *)memory, __ATOMIC_SEQ_CST);
    default: return __atomic_load_n((const uint64_t *)memory, __ATOMIC_SEQ_CST);
    }
}

static void store(void *memory, unsigned bytes, uint64_t value)
{
    switch (bytes) {
    case 1: __atomic_store_n((uint8_t *)memory, (uint8_t)value, __ATOMIC_SEQ_CST); break;
    case 2: __atomic_store_n((uint16_t *)memory, (uint16_t)value, __ATOMIC_SEQ_CST); break;
    case 4: __atomic_store_n((uint32_t *)memory, (uint32_t)value, __ATOMIC_SEQ_CST); break;
    default: __atomic_store_n((uint64_t *)memory, value, __ATOMIC_SEQ_CST); break;
    }
}

/* Returns the value before. */
static uint64_t compare_and_swap(void *memory, unsigned bytes, uint64_t expected, uint64_t value)
{
    uint16_t short_word = (uint16_t)expected;
    uint32_t word = (uint32_t)expected;
    switch (bytes) {
    case 2:
        __atomic_compare_exchange_n((uint16_t *)memory, &short_word, (uint16_t)value, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return short_word;
    case 4:
        __atomic_compare_exchange_n((uint32_t *)memory, &word, (uint32_t)value, false,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return word;
    default:
        __atomic_compare_exchange_n((uint64_t *)memory, &expected, value, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        return expected;
    }
}

static uint64_t value_of(const struct thread *thread, const struct ptx_operand *operand)
{
    const struct ptx_launch *launch = thread->launch;
    if (operand->kind == PTX_REGISTERS) {
        return thread->registers[operand->registers[0]];
    }
    if (operand->kind == PTX_SPECIAL) {
        unsigned dimension = (unsigned)operand->value / 4;
        const unsigned *const values[] = {thread->index, launch->block, thread->block_index,
                                          launch->grid};
        return values[operand->value % 4][dimension];
    }
    return operand->value;
}

static void set_register(struct thread *thread, int number, uint64_t value)
{
    unsigned bytes = thread->launch->kernel->registers[number].type.bytes;
    thread->registers[number] = value & ptx_mask(bytes);
}

/* A loaded value fills its register: with the sign of a signed type. */
static void set_loaded(struct thread *thread, int number, struct ptx_type type, uint64_t value)
{
    set_register(thread, number,
                 type.kind == 's' ? (uint64_t)ptx_signed(value, type.bytes) : value);
}

static void run_load(struct thread *thread, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *target = &instruction->operands[0];
    unsigned bytes = instruction->type.bytes;
    const char *memory =
        reach(thread, instruction, &instruction->operands[1], bytes * target->count, false);
    for (unsigned i = 0; memory && i < target->count; i++) {
        set_loaded(thread, target->registers[i], instruction->type,
                   load(memory + i * bytes, bytes));
    }
}

static void run_store(struct thread *thread, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *source = &instruction->operands[1];
    unsigned bytes = instruction->type.bytes;
    unsigned count = source->kind == PTX_REGISTERS ? source->count : 1;
    char *memory = reach(thread, instruction, &instruction->operands[0], bytes * count, true);
    for (unsigned i = 0; memory && i < count; i++) {
        store(memory + i * bytes, bytes,
              source->kind == PTX_REGISTERS ? thread->registers[source->registers[i]]
                                            : source->value);
    }
}

/* The new value of an atomic operation. */
static uint64_t combine(const struct ptx_instruction *instruction, uint64_t before, uint64_t value)
{
    static const enum ptx_op ops[] = {
        [PTX_ATOM_ADD] = PTX_ADD, [PTX_ATOM_AND] = PTX_AND, [PTX_ATOM_MAX] = PTX_MAX,
        [PTX_ATOM_MIN] = PTX_MIN, [PTX_ATOM_OR] = PTX_OR,   [PTX_ATOM_XOR] = PTX_XOR};
    if (instruction->op == PTX_ATOM_EXCH) {
        return value;
    }
    struct ptx_instruction plain = {.op = ops[instruction->op], .type = instruction->type};
    return ptx_evaluate(&plain, (const uint64_t[PTX_OPERANDS]){before, value});
}

static void run_atomic(struct thread *thread, const struct ptx_instruction *instruction)
{
    const struct ptx_operand *operand = instruction->operands + (instruction->is_reduction ? 0 : 1);
    unsigned bytes = instruction->type.bytes;
    void *memory = reach(thread, instruction, operand, bytes, true);
    if (!memory) {
        return;
    }
    uint64_t value = value_of(thread, &operand[1]), before;
    if (instruction->op == PTX_ATOM_CAS) {
        before = compare_and_swap(memory, bytes, value, value_of(thread, &operand[2]));
    } else {
        uint64_t found = load(memory, bytes);
        do {
            before = found;
            found = compare_and_swap(memory, bytes, before, combine(instruction, before, value));
        } while (found != before);
    }
    if (!instruction->is_reduction) {
        set_register(thread, instruction->operands[0].registers[0], before);
    }
}

static void run_conversion(struct thread *thread, const struct ptx_instruction *instruction)
{
    uint64_t value = ptx_convert(instruction, value_of(thread, &instruction->operands[1]));
    set_loaded(thread, instruction->operands[0].registers[0], instruction->type, value);
}

static void run_plain(struct thread *thread, const struct ptx_instruction *instruction)
{
    uint64_t values[PTX_OPERANDS] = {0};
    for (unsigned i = 1; i < PTX_OPERANDS; i++) {
        values[i - 1] = value_of(thread, &instruction->operands[i]);
    }
    set_register(thread, instruction->operands[0].registers[0], ptx_evaluate(instruction, values));
}

static void run_instruction(struct thread *thread, const struct ptx_instruction *instruction)
{
    switch (instruction->op) {
    case PTX_BRA: thread->next = (unsigned)instruction->operands[0].value; break;
    case PTX_RET: thread->next = thread->launch->kernel->instruction_count; break;
    case PTX_FENCE: __atomic_thread_fence(__ATOMIC_SEQ_CST); break;
    case PTX_LD: run_load(thread, instruction); break;
    case PTX_ST: run_store(thread, instruction); break;
    case PTX_LD_PARAM:
        set_loaded(thread, instruction->operands[0].registers[0], instruction->type,
                   thread->launch->parameters[instruction->operands[1].value]);
        break;
    case PTX_CVT: run_conversion(thread, instruction); break;
    case PTX_ATOM_ADD:
    case PTX_ATOM_AND:
    case PTX_ATOM_CAS:
    case PTX_ATOM_EXCH:
    case PTX_ATOM_MAX:
    case PTX_ATOM_MIN:
    case PTX_ATOM_OR:
    case PTX_ATOM_XOR: run_atomic(thread, instruction); break;
    default: run_plain(thread, instruction); break;
    }
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void run_thread(struct thread *thread)
{
    const struct ptx_kernel *kernel = thread->launch->kernel;
    uint64_t steps = 0, begin_ms = 0;
    while (thread->next < kernel->instruction_count && thread->result == ORIEL_CU_SUCCESS) {
        const struct ptx_instruction *instruction = &kernel->instructions[thread->next++];
        if (instruction->guard < 0 ||
            (thread->registers[instruction->guard] != 0) != instruction->guard_negated) {
            run_instruction(thread, instruction);
        }
        if (++steps % STEPS_OF_A_CHECK == 0) {
            begin_ms = begin_ms ? begin_ms : now_ms();
            if (now_ms() - begin_ms > standin_settings.thread_ms) {
                thread->result =
                    fault(thread->launch, instruction, ORIEL_CU_ERROR_LAUNCH_TIMEOUT, 0);
            }
        }
    }
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    return b ? greatest_divisor(b, a % b) : a;
}

/* Registers begin with bits that are no useful value. */
static void prepare(struct thread *thread, uint64_t number)
{
    const struct ptx_launch *launch = thread->launch;
    const struct ptx_kernel *kernel = launch->kernel;
    for (unsigned i = 0; i < 3; i++) {
        thread->index[i] = (unsigned)(number % launch->block[i]);
        number /= launch->block[i];
    }
    for (unsigned i = 0; i < 3; i++) {
        thread->block_index[i] = (unsigned)(number % launch->grid[i]);
        number /= launch->grid[i];
    }
    for (unsigned i = 0; i < kernel->register_count; i++) {
        struct ptx_type type = kernel->registers[i].type;
        thread->registers[i] =
            type.kind == 'p' ? 1 : UINT64_C(0xDEADBEEFDEADBEEF) & ptx_mask(type.bytes);
    }
    thread->next = 0;
}

int ptx_run(struct ptx_launch *launch)
{
    uint64_t count = 1, random = launch->seed;
    for (unsigned i = 0; i < 3; i++) {
        count *= (uint64_t)launch->grid[i] * launch->block[i];
    }
    uint64_t number = standin_random(&random) % count;
    uint64_t stride = standin_random(&random) % count + 1;
    while (greatest_divisor(stride, count) != 1) {
        stride = stride % count + 1;
    }
    struct thread thread = {.launch = launch};
    thread.registers = calloc(launch->kernel->register_count + 1, sizeof *thread.registers);
    if (!thread.registers) {
        standin_misuse("no memory for the stand-in itself");
    }
    for (uint64_t i = 0; i < count && thread.result == ORIEL_CU_SUCCESS; i++) {
        prepare(&thread, number);
        run_thread(&thread);
        number = (number + stride) % count;
    }
    free(thread.registers);
    return thread.result;
}
