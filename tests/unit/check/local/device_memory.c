/* The checker asks the driver of a GPU about a buffer's memory only if one is loaded: each search
 * for a library reads folders, and a program may have a hundred thousand occurrences of a
 * finding. */
#include "check/local/device_memory.h"

#include "cmocka_all.h"

static unsigned searches;

void *__wrap_dlopen(const char *name, int flags);

void *__wrap_dlopen(const char *name, int flags)
{
    (void)name;
    (void)flags;
    searches++;
    return NULL;
}

static void a_program_without_a_driver_searches_for_none(void **state)
{
    int buffer = 0;
    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(oriel_local_device(&buffer), -1);
    assert_int_equal(searches, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_a_driver_searches_for_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
