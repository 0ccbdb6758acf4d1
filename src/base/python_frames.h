/* Call sites in Python. A call through mpi4py or ctypes has a return address in their library. The
 * line that a Python programmer knows is in the interpreter's innermost frame of this thread.
 *
 * The interpreter is CPython from 3.8 on; with several threads from 3.9 on. Its public C functions
 * are looked up in the process, whether they are in a libpython or in the program. Where they are
 * missing (another interpreter), or the thread has no frames, nothing is found, and callers use the
 * address. */
#ifndef ORIEL_BASE_PYTHON_FRAMES_H
#define ORIEL_BASE_PYTHON_FRAMES_H

#include <stdbool.h>

enum { ORIEL_PYTHON_FILE = 176, ORIEL_PYTHON_FUNCTION = 72 };

/* Texts that do not fit are shortened: files at their beginning, functions at their end. */
struct oriel_python_frame {
    unsigned line;
    char file[ORIEL_PYTHON_FILE]; /* as Python knows it: it may be relative */
    char function[ORIEL_PYTHON_FUNCTION];
};

/* Whether the module, a path, calls on behalf of a Python line: mpi4py's and ctypes' libraries. */
bool oriel_python_is_binding(const char *module);

/* The same for any part of the interpreter or its extensions. They may also have lines of their
 * own. */
bool oriel_python_is_part(const char *module);

/* Finds the innermost frame of this thread that is not mpi4py's or the module oriel's. Needs the
 * interpreter's lock. Bindings release it around calls of MPI. `waits`: it is acquired then, so the
 * caller holds no lock of its own; otherwise nothing is found. Takes about a microsecond, or two
 * changes of threads if other threads use the interpreter. While one of them keeps the
 * interpreter's lock for longer than a second, nothing is found. */
bool oriel_python_frame_find(bool waits, struct oriel_python_frame *out);

#endif
