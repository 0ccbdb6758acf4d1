/* The loops over rows and lists of steps, each separately: every word is stored at its offset and
 * nothing else is written. Nothing is read before the first word of the source or after its last.
 */
#include "transport/shared/copy_words.h"

#include <stdbool.h>
#include <string.h>

#include "random_numbers.h"
#include "cmocka_all.h"
#include "guarded_memory.h"

static struct guarded sinks, sources;

static char *random_bytes(char *at, size_t len_bytes)
{
    for (size_t i = 0; i < len_bytes; i++)
        at[i] = (char)below(256);
    return at;
}

/* The bytes that a step moves, one by one. */
static void step_by_model(enum oriel_step kind, unsigned word, char *sink, const char *source,
                          const struct oriel_step_at *at)
{
    const bool both_here = kind == ORIEL_STEP_BOTH || kind == ORIEL_STEP_GATHER;
    const bool both_mapped = kind == ORIEL_STEP_BOTH || kind == ORIEL_STEP_SCATTER;
    if (kind == ORIEL_STEP_NONE)
        return;
    memcpy(sink + at->to[0], source + at->from[0], word);
    if (kind != ORIEL_STEP_SINGLE)
        memcpy(sink + (both_here ? at->to[0] + word : at->to[1]),
               source + (both_mapped ? at->from[0] + word : at->from[1]), word);
}

enum { ITEMS = 5, STEP_TO = 112, STEP_FROM = 104 };
static const struct oriel_step_at step_offsets[ORIEL_ROW_STEPS] = {
    {{0, 24}, {0, 32}}, {{40, 64}, {-24, 48}}, {{80, -16}, {64, 16}}};

static void rows_of_all_kinds_move(void **state)
{
    (void)state;
    enum { KINDS = ORIEL_STEP_KINDS + 1 };
    for (unsigned word = 4; word <= 8; word += 4)
        for (unsigned row = 0; row < ORIEL_STEP_KINDS * KINDS * KINDS; row++) {
            const enum oriel_step kinds[] = {(enum oriel_step)(row / (KINDS * KINDS)),
                                             (enum oriel_step)(row / KINDS % KINDS),
                                             (enum oriel_step)(row % KINDS)};
            char sink[64 + ITEMS * STEP_TO + 64] = {0}, wanted[sizeof sink] = {0},
                                             source[64 + ITEMS * STEP_FROM + 64];
            if (kinds[1] == ORIEL_STEP_NONE && kinds[2] != ORIEL_STEP_NONE)
                continue;
            for (unsigned i = 0; i < sizeof source; i++)
                source[i] = (char)below(256);
            for (int item = 0; item < ITEMS; item++)
                for (int i = 0; i < ORIEL_ROW_STEPS; i++)
                    step_by_model(kinds[i], word, wanted + 64 + item * STEP_TO,
                                  source + 64 + item * STEP_FROM, &step_offsets[i]);
            oriel_row_loop_of(word, kinds)(sink + 64, STEP_TO, source + 64, STEP_FROM, step_offsets,
                                           ITEMS);
            assert_memory_equal(sink, wanted, sizeof sink);
        }
}

static void rows_of_words_of_all_lengths_move(void **state)
{
    (void)state;
    enum { LENGTHS = 6 };
    const unsigned lengths[LENGTHS] = {8, 4, 3, 2, 1, 0};
    for (unsigned row = 0; row < (LENGTHS - 1) * LENGTHS * LENGTHS; row++) {
        const unsigned bytes[] = {lengths[row / (LENGTHS * LENGTHS)],
                                  lengths[row / LENGTHS % LENGTHS], lengths[row % LENGTHS]};
        char sink[64 + ITEMS * STEP_TO + 64] = {0}, wanted[sizeof sink] = {0},
                                         source[64 + ITEMS * STEP_FROM + 64];
        if (bytes[1] == 0 && bytes[2] != 0)
            continue;
        for (unsigned i = 0; i < sizeof source; i++)
            source[i] = (char)below(256);
        for (int item = 0; item < ITEMS; item++)
            for (int i = 0; i < ORIEL_ROW_STEPS; i++)
                memcpy(wanted + 64 + item * STEP_TO + step_offsets[i].to[0],
                       source + 64 + item * STEP_FROM + step_offsets[i].from[0], bytes[i]);
        oriel_words_loop_of(bytes)(sink + 64, STEP_TO, source + 64, STEP_FROM, step_offsets, ITEMS);
        assert_memory_equal(sink, wanted, sizeof sink);
    }
}

/* Items of four words, of which the source has every second one: 28 bytes each. */
static void every_second_word_is_gathered_and_nothing_after_the_last_is_read(void **state)
{
    (void)state;
    enum { WORDS = 4, WORD = 4, SPAN = 28, SINK = WORDS * WORD };
    for (uint64_t items = 1; items <= 9; items++)
        for (int64_t gap = 0; gap < 12; gap++)
            for (int at_end = 0; at_end < 2; at_end++) {
                const int64_t to_step = SINK + gap, from_step = SPAN + 5 * gap;
                const size_t to_bytes = (items - 1) * (size_t)to_step + SINK,
                             from_bytes = (items - 1) * (size_t)from_step + SPAN;
                char *sink = guarded_part(&sinks, to_bytes, at_end), wanted[1024];
                const char *source =
                    random_bytes(guarded_part(&sources, from_bytes, at_end), from_bytes);
                memset(sink, 0x5a, to_bytes);
                memset(wanted, 0x5a, to_bytes);
                for (uint64_t i = 0; i < items; i++)
                    for (uint64_t k = 0; k < WORDS; k++)
                        memcpy(wanted + i * (uint64_t)to_step + WORD * k,
                               source + i * (uint64_t)from_step + 2 * WORD * k, WORD);
                oriel_row_every_second(sink, to_step, source, from_step, NULL, items);
                assert_memory_equal(sink, wanted, to_bytes);
            }
}

/* Two words at each offset of one side, and two at equal distances of the other; forwards and
 * backwards. */
static void even_lists_gather_and_scatter(void **state)
{
    (void)state;
    enum { MOST = 7, ROOM = 64 * MOST };
    for (int64_t word = 4; word <= 8; word += 4)
        for (unsigned count = 0; count <= MOST; count++)
            for (int round = 0; round < 40; round++) {
                const int64_t second = word + 1 + (int64_t)below(6), length = second + word;
                const int64_t stride = (below(2) == 0 ? 1 : -1) * (length + (int64_t)below(9));
                const int64_t spread_bytes =
                    count == 0 ? 0 : (count - 1) * (stride < 0 ? -stride : stride) + length;
                const int64_t first = stride < 0 && count > 0 ? -stride * (count - 1) : 0;
                const bool gathers = below(2) == 0;
                int32_t offsets[MOST], end = 0;
                for (unsigned i = 0; i < count; i++) {
                    offsets[i] = end + (int32_t)below(9);
                    end = offsets[i] + 2 * (int32_t)word;
                }
                const size_t to_bytes = (size_t)(gathers ? end : spread_bytes);
                const size_t from_bytes = (size_t)(gathers ? spread_bytes : end);
                char *sink = guarded_part(&sinks, to_bytes, below(2) == 0), wanted[ROOM];
                const char *source =
                    random_bytes(guarded_part(&sources, from_bytes, below(2) == 0), from_bytes);
                memset(sink, 0x5a, to_bytes);
                memset(wanted, 0x5a, to_bytes);
                for (unsigned i = 0; i < count; i++)
                    for (int64_t k = 0; k < 2; k++) {
                        const int64_t listed = offsets[i] + k * word,
                                      spread = first + i * stride + k * second;
                        memcpy(wanted + (gathers ? listed : spread),
                               source + (gathers ? spread : listed), (size_t)word);
                    }
                oriel_even_loop_of((unsigned)word,
                                   gathers ? ORIEL_STEP_GATHER : ORIEL_STEP_SCATTER)(
                    sink + (gathers ? 0 : first), source + (gathers ? first : 0), stride, second,
                    offsets, count);
                assert_memory_equal(sink, wanted, to_bytes);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_all_kinds_move),
        cmocka_unit_test(rows_of_words_of_all_lengths_move),
        cmocka_unit_test(every_second_word_is_gathered_and_nothing_after_the_last_is_read),
        cmocka_unit_test(even_lists_gather_and_scatter),
    };
    sinks = guarded_map(4096);
    sources = guarded_map(4096);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
