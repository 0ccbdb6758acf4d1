/* Shared by the fuzzers: how they draw numbers from libFuzzer's bytes, and their assertions. Each
 * fuzzer is a file with LLVMFuzzerTestOneInput and a line in CMakeLists.txt. */
#ifndef ORIEL_TESTS_FUZZERS_FUZZER_H
#define ORIEL_TESTS_FUZZERS_FUZZER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

/* The rest of an input; once it is used up, all numbers are 0. */
struct input {
    const uint8_t *at;
    size_t left_bytes;
};

static inline void input_take(struct input *input, void *out, size_t len_bytes)
{
    const size_t input_bytes = len_bytes < input->left_bytes ? len_bytes : input->left_bytes;
    memset(out, 0, len_bytes);
    if (input_bytes > 0)
        memcpy(out, input->at, input_bytes);
    input->at += input_bytes;
    input->left_bytes -= input_bytes;
}

static inline uint8_t input_byte(struct input *input)
{
    uint8_t byte;
    input_take(input, &byte, sizeof byte);
    return byte;
}

static inline uint32_t input_below(struct input *input, uint32_t limit)
{
    uint32_t word = 0;
    input_take(input, &word, limit <= 256 ? 1 : sizeof word);
    return word % limit;
}

static inline uint64_t input_word(struct input *input)
{
    uint64_t word;
    input_take(input, &word, sizeof word);
    return word;
}

/* A text of less than room bytes, up to the first 0. */
static inline void input_text(struct input *input, char *out, size_t room)
{
    size_t len_bytes = 0;
    while (len_bytes + 1 < room && input->left_bytes > 0 &&
           (out[len_bytes] = (char)input_byte(input)) != '\0')
        len_bytes++;
    out[len_bytes] = '\0';
}

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif
