/* What the files of the stand-in's own test share: the driver's functions, and children that run a
 * case each with settings in their environment. */
#ifndef ORIEL_TESTS_GPU_STANDIN_SELFTEST_H
#define ORIEL_TESTS_GPU_STANDIN_SELFTEST_H

#include "gpu/cuda/abi.h"
#include "unit/cmocka_all.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

struct driver {
#define CUDA_FUNCTION(field, symbol, parameters) oriel_cu_result(*field) parameters;
#include "gpu/cuda/cuda_functions.def"
#include "program_functions.def"
#undef CUDA_FUNCTION
};
extern struct driver cu;
extern struct oriel_cu_context *contexts[2];

/* In a child: ends it with the line. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define EXPECT_OK(call) EXPECT_CODE(call, ORIEL_CU_SUCCESS)

#define EXPECT_CODE(call, code)                                                                    \
    do {                                                                                           \
        oriel_cu_result result_ = (call);                                                          \
        if (result_ != (code)) {                                                                   \
            fprintf(stderr, "line %d: %s returned %d\n", __LINE__, #call, result_);                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* In a child: loads the driver; also initialises it, with the first device's context current. */
void load(void);
void start(void);
uint64_t device_memory(size_t size_bytes);
uint64_t of(const void *memory);

/* Runs body in a child with NAME=VALUE settings, separated by spaces. Returns its exit status, or
 * 256 + a signal, and what it wrote to stderr. */
int run(void (*body)(void), const char *settings, char *text, size_t text_bytes);

/* Asserts that a child passes, or ends by misuse with the sentence. */
void passes(void (*body)(void));
void passes_with(void (*body)(void), const char *settings);
void is_misuse(void (*body)(void), const char *settings, const char *sentence);

void device_memory_is_copied(void **state);
void cpu_faults_on_device_memory(void **state);
void small_allocations_are_neighbours_and_addresses_are_used_again(void **state);
void kinds_of_memory_are_known(void **state);
void device_memory_is_limited(void **state);
void devices_and_contexts(void **state);
void visible_devices_are_chosen(void **state);
void init_and_a_context_are_needed(void **state);
void misuse_ends_the_process_with_a_sentence(void **state);
void reported_misuse_ends_the_process_in_strict_mode(void **state);
void streams_are_asynchronous_and_ordered_by_events(void **state);
void the_default_stream_is_ordered_with_blocking_streams(void **state);
void a_pageable_source_is_staged(void **state);
void two_dimensional_copies(void **state);
void errors_are_injected_and_may_be_sticky(void **state);
void handles_open_memory_of_another_process(void **state);
void other_process_memory_has_limits(void **state);
void mapped_memory_is_exported_by_descriptors(void **state);
void kernels_run_in_a_shuffled_order(void **state);
void instructions_have_their_results(void **state);
void what_ptxas_refuses_is_invalid(void **state);
void kernels_and_the_cpu_share_pinned_memory(void **state);
void a_kernel_that_crashes_loses_its_context(void **state);

#endif
