/* cmocka with the headers that it expects to be included before it; and whether ThreadSanitizer is
 * active. */
#ifndef ORIEL_TESTS_UNIT_CMOCKA_ALL_H
#define ORIEL_TESTS_UNIT_CMOCKA_ALL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#define THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define THREAD_SANITIZER 0
#endif

#endif
