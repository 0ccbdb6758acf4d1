/* Kernels: the subset of PTX, and launches. */
#include "selftest.h"

#define HEAD                                                                                       \
    ".version 7.0\n"                                                                               \
    ".target sm_70\n"                                                                              \
    ".address_size 64\n"

/* y[i] = a * x[i] + y[i] for i < n */
static const char axpy[] = HEAD ".visible .entry axpy(\n"
                                "    .param .u64 y, .param .u64 x, .param .f64 a, .param .u32 n)\n"
                                "{\n"
                                "    .reg .pred %p<2>;\n"
                                "    .reg .b32 %r<6>;\n"
                                "    .reg .b64 %rd<6>;\n"
                                "    .reg .f64 %fd<4>;\n"
                                "    ld.param.u32 %r1, [n];\n"
                                "    mov.u32 %r2, %ctaid.x;\n"
                                "    mov.u32 %r3, %ntid.x;\n"
                                "    mov.u32 %r4, %tid.x;\n"
                                "    mad.lo.s32 %r5, %r2, %r3, %r4;\n"
                                "    setp.ge.u32 %p1, %r5, %r1; // beyond the end\n"
                                "    @%p1 bra DONE;\n"
                                "    ld.param.u64 %rd1, [y];\n"
                                "    ld.param.u64 %rd2, [x];\n"
                                "    ld.param.f64 %fd1, [a];\n"
                                "    cvta.to.global.u64 %rd1, %rd1;\n"
                                "    mul.wide.u32 %rd3, %r5, 8;\n"
                                "    add.s64 %rd4, %rd1, %rd3;\n"
                                "    add.s64 %rd5, %rd2, %rd3;\n"
                                "    ld.global.f64 %fd2, [%rd5];\n"
                                "    ld.global.f64 %fd3, [%rd4+0];\n"
                                "    fma.rn.f64 %fd3, %fd1, %fd2, %fd3;\n"
                                "    st.global.f64 [%rd4], %fd3;\n"
                                "DONE:\n"
                                "    ret;\n"
                                "}\n";

/* Each thread takes a place in the order by an atomic operation, and writes it to order[tid]. */
static const char order_text[] = HEAD ".visible .entry places(.param .u64 counter)\n"
                                      "{\n"
                                      "    .reg .b32 %r<4>; .reg .b64 %rd<4>;\n"
                                      "    ld.param.u64 %rd1, [counter];\n"
                                      "    atom.global.add.u32 %r1, [%rd1], 1;\n"
                                      "    red.relaxed.sys.global.max.u32 [%rd1+4], %r1;\n"
                                      "    mov.u32 %r2, %tid.x;\n"
                                      "    mul.wide.u32 %rd2, %r2, 4;\n"
                                      "    add.u64 %rd3, %rd1, %rd2;\n"
                                      "    st.global.u32 [%rd3+8], %r1;\n"
                                      "    ret;\n"
                                      "}\n";

static struct oriel_cu_function *kernel(const char *text, const char *name)
{
    struct oriel_cu_module *module;
    struct oriel_cu_function *function;
    EXPECT_OK(cu.module_load_data(&module, text));
    EXPECT_OK(cu.module_get_function(&function, module, name));
    return function;
}

static void launch_axpy(void)
{
    enum { COUNT = 300 };
    double x[COUNT], y[COUNT], a = 0.5;
    unsigned count = COUNT;
    start();
    for (int i = 0; i < COUNT; i++) {
        x[i] = i;
        y[i] = 2 * i;
    }
    uint64_t device_x = device_memory(sizeof x), device_y = device_memory(sizeof y);
    EXPECT_OK(cu.memcpy_sync(device_x, of(x), sizeof x));
    EXPECT_OK(cu.memcpy_sync(device_y, of(y), sizeof y));
    void *parameters[] = {&device_y, &device_x, &a, &count};
    EXPECT_OK(cu.launch_kernel(kernel(axpy, "axpy"), 5, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
    a = 1000; /* parameters are copied by the call */
    EXPECT_OK(cu.memcpy_sync(of(y), device_y, sizeof y));
    for (int i = 0; i < COUNT; i++) {
        EXPECT(y[i] == 2.5 * i);
    }
}

static void launch_in_order(void)
{
    enum { COUNT = 64 };
    uint32_t first[COUNT + 2], second[COUNT + 2], *results[] = {first, second};
    bool is_seen[COUNT] = {false}, has_order = true;
    start();
    struct oriel_cu_function *function = kernel(order_text, "places");
    uint64_t pointer = device_memory(sizeof first);
    void *parameters[] = {&pointer};
    for (int round = 0; round < 2; round++) {
        EXPECT_OK(cu.memset_d8_async(pointer, 0, sizeof first, NULL));
        EXPECT_OK(cu.launch_kernel(function, 1, 1, 1, COUNT, 1, 1, 0, NULL, parameters, NULL));
        EXPECT_OK(cu.memcpy_sync(of(results[round]), pointer, sizeof first));
        EXPECT(results[round][0] == COUNT && results[round][1] == COUNT - 1);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        EXPECT(first[i + 2] < COUNT && !is_seen[first[i + 2]]);
        is_seen[first[i + 2]] = true;
        has_order &= first[i + 2] == i;
    }
    EXPECT(!has_order);
    EXPECT(memcmp(first, second, sizeof first) != 0);
}

void kernels_run_in_a_shuffled_order(void **state)
{
    (void)state;
    passes(launch_axpy);
    passes(launch_in_order);
}

/* Runs one thread of instructions that read %rd1 (a device address with the operands) and write the
 * result to it. */
static uint64_t compute(const char *instructions, uint64_t a, uint64_t b)
{
    char text[2048];
    uint64_t values[] = {a, b};
    snprintf(text, sizeof text,
             HEAD ".entry f(.param .u64 p) {\n"
                  ".reg .b16 %%h<3>; .reg .b32 %%r<4>; .reg .f32 %%f<4>; .reg .f64 %%fd<4>;\n"
                  ".reg .b64 %%rd<5>; .reg .pred %%p<3>;\n"
                  "ld.param.u64 %%rd1, [p];\n"
                  "ld.global.u64 %%rd2, [%%rd1];\n"
                  "ld.global.u64 %%rd3, [%%rd1+8];\n"
                  "%s\n"
                  "st.global.u64 [%%rd1], %%rd4;\n"
                  "ret; }\n",
             instructions);
    uint64_t pointer = device_memory(16);
    void *parameters[] = {&pointer};
    EXPECT_OK(cu.memcpy_sync(pointer, of(values), 16));
    EXPECT_OK(cu.launch_kernel(kernel(text, "f"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    EXPECT_OK(cu.memcpy_sync(of(values), pointer, 16));
    EXPECT_OK(cu.mem_free(pointer));
    return values[0];
}

static void instructions(void)
{
    const uint64_t minus = (uint64_t)-7;
    start();
    EXPECT(compute("sub.s64 %rd4, %rd2, %rd3;", 5, 7) == (uint64_t)-2);
    EXPECT(compute("mul.hi.u64 %rd4, %rd2, %rd3;", UINT64_MAX, 3) == 2);
    EXPECT(compute("max.s64 %rd4, %rd2, %rd3;", minus, 3) == 3);
    EXPECT(compute("max.u64 %rd4, %rd2, %rd3;", minus, 3) == minus);
    EXPECT(compute("div.s64 %rd4, %rd2, %rd3;", minus, 2) == (uint64_t)-3);
    EXPECT(compute("shl.b64 %rd4, %rd2, 64;", minus, 0) == 0);
    EXPECT(compute("shr.s64 %rd4, %rd2, 60;", minus, 0) == UINT64_MAX);
    EXPECT(compute("setp.lt.s64 %p1, %rd2, %rd3; setp.lt.u64 %p2, %rd2, %rd3;\n"
                   "xor.pred %p1, %p1, %p2; selp.b64 %rd4, 1, 2, %p1;",
                   minus, 3) == 1);
    EXPECT(compute("mov.u64 %rd4, 1; setp.eq.u64 %p1, %rd2, 0; @!%p1 mov.u64 %rd4, 9;", 3, 0) == 9);
    EXPECT(compute("cvt.u32.u64 %r1, %rd2; cvt.s64.s32 %rd4, %r1;", 0xFFFFFFF9, 0) == minus);
    EXPECT(compute("ld.global.s8 %r1, [%rd1]; cvt.s64.s32 %rd4, %r1;", 0xF9, 0) == minus);
    EXPECT(compute("ld.global.u8 %r1, [%rd1]; cvt.u64.u32 %rd4, %r1;", minus, 0) == 0xF9);
    /* 1/3 as float; 65519 and the least positive half; and back */
    EXPECT(compute("cvt.rn.f32.s64 %f1, %rd2; cvt.rn.f32.s64 %f2, %rd3; div.rn.f32 %f1, %f1, %f2;\n"
                   "mov.b32 %r1, %f1; cvt.u64.u32 %rd4, %r1;",
                   1, 3) == 0x3EAAAAAB);
    EXPECT(compute("cvt.rn.f32.u64 %f1, %rd2; cvt.rn.f16.f32 %h1, %f1; cvt.u64.u16 %rd4, %h1;",
                   65519, 0) == 0x7BFF);
    EXPECT(compute("cvt.rn.f32.u64 %f1, %rd2; cvt.rn.f16.f32 %h1, %f1; cvt.u64.u16 %rd4, %h1;",
                   2049, 0) == 0x6800);
    EXPECT(compute("cvt.u16.u64 %h1, %rd2; cvt.f32.f16 %f1, %h1; mov.b32 %r1, %f1;\n"
                   "cvt.u64.u32 %rd4, %r1;",
                   1, 0) == 0x33800000);
    EXPECT(compute("mov.f64 %fd1, 0d4004000000000000; mov.f64 %fd2, 1.5; add.rn.f64 %fd1, %fd1,\n"
                   "%fd2; cvt.rzi.s64.f64 %rd4, %fd1;",
                   0, 0) == 4);
    EXPECT(compute("atom.global.cas.b64 %rd4, [%rd1+8], 5, %rd2; ld.global.u64 %rd4, [%rd1+8];", 8,
                   5) == 8);
    EXPECT(compute("ld.global.v2.u64 {%rd2, %rd3}, [%rd1]; st.global.v2.b64 [%rd1], {%rd3, %rd2};\n"
                   "ld.global.u64 %rd4, [%rd1];",
                   1, 2) == 2);
}

void instructions_have_their_results(void **state)
{
    (void)state;
    passes(instructions);
}

static void refuse(const char *instruction, const char *sentence)
{
    char text[1024], log[128] = "";
    struct oriel_cu_module *module;
    snprintf(text, sizeof text,
             HEAD ".visible .entry f(.param .u64 p) {\n"
                  ".reg .b32 %%r<2>; .reg .f32 %%f<2>; .reg .b64 %%rd<2>; .reg .pred %%p<2>;\n"
                  "%s\n ret; }",
             instruction);
    int options[] = {ORIEL_CU_JIT_ERROR_LOG_BUFFER, ORIEL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    EXPECT_CODE(cu.module_load_data_ex(&module, text, 2, options, values),
                ORIEL_CU_ERROR_INVALID_PTX);
    if (!strstr(log, sentence) || !strstr(log, "line 6")) {
        fprintf(stderr, "%s: %s\n", instruction, log);
        _exit(1);
    }
}

static void invalid(void)
{
    start();
    refuse("bar.sync 0;", "bar.sync: unknown");
    refuse("add.u32 %r0, %r1, %f1;", "%f1 does not have");
    refuse("add.u64 %rd0, %rd1, %r1;", "%r1 does not have");
    refuse("add.u32 %r0, %r2, 1;", "%r2 is no register");
    refuse("add.u32 %r0, %r1;", "',' is missing");
    refuse("add.f32 %f0, %f1, 1;", "a number of the instruction's type");
    refuse("atom.global.add.s64 %rd0, [%rd1], 1;", "unknown");
    refuse("ld.global.u32 %r0, [%r1];", "%r1 does not have");
    refuse("ld.param.u32 %r0, [p];", "no parameter of that size");
    refuse("cvt.f32.u32 %f0, %r0;", "needs a rounding");
    refuse("cvt.rn.u64.u32 %rd0, %r0;", "has no rounding");
    refuse("ld.relaxed.global.u32 %r0, [%rd1];", "needs a scope");
    refuse("bra NOWHERE;", "NOWHERE is not defined");
}

void what_ptxas_refuses_is_invalid(void **state)
{
    (void)state;
    passes(invalid);
}

static const char poke[] = HEAD ".visible .entry poke(.param .u64 p) {\n"
                                ".reg .b64 %rd1;\n"
                                "ld.param.u64 %rd1, [p];\n"
                                "st.global.u32 [%rd1], 1;\n"
                                "}\n";

static oriel_cu_result poke_at(uint64_t pointer)
{
    void *parameters[] = {&pointer};
    EXPECT_OK(cu.launch_kernel(kernel(poke, "poke"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    return cu.ctx_synchronize();
}

static void crash(void)
{
    start();
    uint64_t pointer = device_memory(8);
    EXPECT_OK(poke_at(pointer));
    EXPECT_CODE(poke_at(pointer + 8), ORIEL_CU_ERROR_ILLEGAL_ADDRESS);
    EXPECT_CODE(cu.mem_alloc(&pointer, 8), ORIEL_CU_ERROR_ILLEGAL_ADDRESS);
}

static void crash_misaligned(void)
{
    start();
    EXPECT_CODE(poke_at(device_memory(8) + 2), ORIEL_CU_ERROR_MISALIGNED_ADDRESS);
}

static void peer_kernel(void)
{
    start();
    uint64_t pointer = device_memory(8);
    EXPECT_OK(cu.ctx_set_current(contexts[1]));
    EXPECT_OK(cu.ctx_enable_peer_access(contexts[0], 0));
    EXPECT_OK(poke_at(pointer));
    EXPECT_OK(cu.ctx_set_current(contexts[0]));
    EXPECT_OK(cu.mem_free(pointer));
    EXPECT_OK(cu.ctx_set_current(contexts[1]));
    pointer = device_memory(8);
    EXPECT_OK(cu.ctx_set_current(contexts[0]));
    EXPECT_CODE(poke_at(pointer), ORIEL_CU_ERROR_ILLEGAL_ADDRESS);
}

/* Writes 1, and waits for a second word. */
static const char spin[] = HEAD ".visible .entry spin(.param .u64 p) {\n"
                                ".reg .b64 %rd1; .reg .b32 %r1; .reg .pred %p1;\n"
                                "ld.param.u64 %rd1, [p];\n"
                                "st.global.u32 [%rd1], 1;\n"
                                "AGAIN: ld.volatile.global.u32 %r1, [%rd1+4];\n"
                                "setp.eq.u32 %p1, %r1, 0;\n"
                                "@%p1 bra AGAIN;\n"
                                "}\n";

static void unregister_under_a_kernel(void)
{
    start();
    _Atomic unsigned *page = aligned_alloc(4096, 4096);
    page[0] = page[1] = 0;
    EXPECT_OK(cu.mem_host_register(page, 4096, 0));
    void *parameters[] = {&page};
    EXPECT_OK(cu.launch_kernel(kernel(spin, "spin"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    while (!page[0]) {
        usleep(1000);
    }
    cu.mem_host_unregister(page);
}

static void wait_for_the_cpu(void)
{
    start();
    _Atomic unsigned *words;
    EXPECT_OK(cu.mem_host_alloc((void **)&words, 8, 0));
    void *parameters[] = {&words};
    EXPECT_OK(cu.launch_kernel(kernel(spin, "spin"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    words[1] = 1;
    EXPECT_OK(cu.ctx_synchronize());
}

static void wait_too_long(void)
{
    start();
    uint64_t pointer = device_memory(8);
    void *parameters[] = {&pointer};
    EXPECT_OK(cu.launch_kernel(kernel(spin, "spin"), 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    EXPECT_CODE(cu.ctx_synchronize(), ORIEL_CU_ERROR_LAUNCH_TIMEOUT);
}

void kernels_and_the_cpu_share_pinned_memory(void **state)
{
    (void)state;
    passes(wait_for_the_cpu);
    passes_with(wait_too_long, "STANDIN_THREAD_MS=20");
    is_misuse(unregister_under_a_kernel, "", "1 operations of streams still use");
}

void a_kernel_that_crashes_loses_its_context(void **state)
{
    (void)state;
    passes(crash);
    passes(crash_misaligned);
    passes(peer_kernel);
    is_misuse(crash, "STANDIN_STRICT=1", "kernel poke, line 7");
}
