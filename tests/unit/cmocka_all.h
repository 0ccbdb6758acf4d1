/* cmocka with the headers that it expects to find included before it. */
#ifndef ORIEL_TESTS_UNIT_CMOCKA_ALL_H
#define ORIEL_TESTS_UNIT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
