/* Expectations of a forked child: it prints a failed one and exits with status 1. */
#ifndef ORIEL_TESTS_UNIT_EXPECT_H
#define ORIEL_TESTS_UNIT_EXPECT_H

#include <stdio.h>
#include <unistd.h>

#define EXPECT(condition)                                                                          \
    ((condition)                                                                                   \
         ? (void)0                                                                                 \
         : (void)(fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition), _exit(1)))

#endif
