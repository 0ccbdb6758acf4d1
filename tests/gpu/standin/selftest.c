/* The stand-in for the CUDA driver does what tests rely on. Each case runs in a child process,
 * whose environment has its settings. */
#include "selftest.h"

#include "../../busy.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { EXIT_MISUSE = 86 };

struct driver cu;
struct oriel_cu_context *contexts[2];

void load(void)
{
    void *library = dlopen(STANDIN_LIBRARY, RTLD_NOW);
    EXPECT(library);
#define CUDA_FUNCTION(field, symbol, parameters)                                                   \
    *(void **)&cu.field = dlsym(library, symbol);                                                  \
    EXPECT(cu.field);
#include "gpu/cuda/cuda_functions.def"
#include "program_functions.def"
#undef CUDA_FUNCTION
}

void start(void)
{
    load();
    EXPECT_OK(cu.init(0));
    EXPECT_OK(cu.device_primary_ctx_retain(&contexts[0], 0));
    EXPECT_OK(cu.device_primary_ctx_retain(&contexts[1], 1));
    EXPECT_OK(cu.ctx_set_current(contexts[0]));
}

int run(void (*body)(void), const char *settings, char *text, size_t text_bytes)
{
    int ends[2], status;
    char list[256];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        char *rest;
        snprintf(list, sizeof list, "%s", settings);
        for (char *item = strtok_r(list, " ", &rest); item; item = strtok_r(NULL, " ", &rest)) {
            putenv(item);
        }
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(busy_limit_s(60));
        signal(SIGSEGV, SIG_DFL); /* cmocka handles it */
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        body();
        _exit(0);
    }
    close(ends[1]);
    FILE *errors = fdopen(ends[0], "r");
    size_t len = fread(text, 1, text_bytes - 1, errors);
    text[len] = '\0';
    fclose(errors);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

void passes_with(void (*body)(void), const char *settings)
{
    char text[1024];
    int status = run(body, settings, text, sizeof text);
    if (status) {
        print_error("status %d: %s\n", status, text);
    }
    assert_int_equal(status, 0);
}

void passes(void (*body)(void))
{
    passes_with(body, "");
}

void is_misuse(void (*body)(void), const char *settings, const char *sentence)
{
    char text[1024];
    int status = run(body, settings, text, sizeof text);
    if (status != EXIT_MISUSE || !strstr(text, sentence)) {
        print_error("status %d: %s\n", status, text);
    }
    assert_int_equal(status, EXIT_MISUSE);
    assert_non_null(strstr(text, sentence));
}

uint64_t device_memory(size_t size_bytes)
{
    oriel_cu_pointer pointer;
    EXPECT_OK(cu.mem_alloc(&pointer, size_bytes));
    return pointer;
}

uint64_t of(const void *memory)
{
    return (uintptr_t)memory;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(device_memory_is_copied),
        cmocka_unit_test(cpu_faults_on_device_memory),
        cmocka_unit_test(small_allocations_are_neighbours_and_addresses_are_used_again),
        cmocka_unit_test(kinds_of_memory_are_known),
        cmocka_unit_test(device_memory_is_limited),
        cmocka_unit_test(devices_and_contexts),
        cmocka_unit_test(visible_devices_are_chosen),
        cmocka_unit_test(init_and_a_context_are_needed),
        cmocka_unit_test(misuse_ends_the_process_with_a_sentence),
        cmocka_unit_test(reported_misuse_ends_the_process_in_strict_mode),
        cmocka_unit_test(streams_are_asynchronous_and_ordered_by_events),
        cmocka_unit_test(the_default_stream_is_ordered_with_blocking_streams),
        cmocka_unit_test(a_pageable_source_is_staged),
        cmocka_unit_test(two_dimensional_copies),
        cmocka_unit_test(errors_are_injected_and_may_be_sticky),
        cmocka_unit_test(handles_open_memory_of_another_process),
        cmocka_unit_test(other_process_memory_has_limits),
        cmocka_unit_test(mapped_memory_is_exported_by_descriptors),
        cmocka_unit_test(kernels_run_in_a_shuffled_order),
        cmocka_unit_test(instructions_have_their_results),
        cmocka_unit_test(what_ptxas_refuses_is_invalid),
        cmocka_unit_test(kernels_and_the_cpu_share_pinned_memory),
        cmocka_unit_test(a_kernel_that_crashes_loses_its_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
