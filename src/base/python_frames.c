/* Reads frames through CPython's stable functions, with the interpreter's lock held: frames and
 * their line tables have another layout in each version. PyGILState_Ensure acquires the lock for a
 * thread that has released it around a call, as a callback into Python does, and is a counter
 * where the thread holds it already.
 *
 * 1. Before the interpreter is initialised, and in its last part, when exit handlers call
 *    MPI_Finalize, no thread has a state, and nothing is found.
 * 2. While the interpreter ends, acquiring the lock would block other threads for ever. Only a
 *    thread that holds it looks then.
 * 3. Frames are objects, which are made on request from 3.11 on. Up to 3.11 that may collect
 *    garbage, and so run finalisers of the program inside a call of MPI. Collection is off for that
 *    time.
 * 4. A pending exception stays: nothing is looked up then. */
#include "base/python_frames.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* PyObject, PyThreadState and PyFrameObject are only passed on. */
struct interpreter {
    int (*is_initialized)(void);
    void *(*this_thread)(void);
    int (*ensure)(void);
    void (*release)(int);
    void *(*frame)(void);
    int (*frame_line)(void *frame);
    void *(*attribute)(void *object, const char *name);
    const char *(*text)(void *object);
    void *(*occurred)(void);
    void (*clear)(void);
    void (*drop)(void *object);
    void *(*unchecked_state)(void);
    int (*is_finalizing)(void);
    int (*collect_disable)(void); /* NULL before 3.10 */
    int (*collect_enable)(void);
};

static struct interpreter python;
static bool is_known;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The function of either name; NULL: none. */
static void function_find(void *out, const char *name, const char *older)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found == NULL && older != NULL)
        found = dlsym(RTLD_DEFAULT, older);
    memcpy(out, &found, sizeof found);
}

static void interpreter_find(void)
{
    function_find(&python.is_initialized, "Py_IsInitialized", NULL);
    function_find(&python.this_thread, "PyGILState_GetThisThreadState", NULL);
    function_find(&python.ensure, "PyGILState_Ensure", NULL);
    function_find(&python.release, "PyGILState_Release", NULL);
    function_find(&python.frame, "PyEval_GetFrame", NULL);
    function_find(&python.frame_line, "PyFrame_GetLineNumber", NULL);
    function_find(&python.attribute, "PyObject_GetAttrString", NULL);
    function_find(&python.text, "PyUnicode_AsUTF8", NULL);
    function_find(&python.occurred, "PyErr_Occurred", NULL);
    function_find(&python.clear, "PyErr_Clear", NULL);
    function_find(&python.drop, "Py_DecRef", NULL);
    function_find(&python.unchecked_state, "PyThreadState_GetUnchecked",
                  "_PyThreadState_UncheckedGet");
    function_find(&python.is_finalizing, "Py_IsFinalizing", "_Py_IsFinalizing");
    function_find(&python.collect_disable, "PyGC_Disable", NULL);
    function_find(&python.collect_enable, "PyGC_Enable", NULL);
    is_known = python.is_initialized != NULL && python.this_thread != NULL &&
               python.ensure != NULL && python.release != NULL && python.frame != NULL &&
               python.frame_line != NULL && python.attribute != NULL && python.text != NULL &&
               python.occurred != NULL && python.clear != NULL && python.drop != NULL &&
               python.unchecked_state != NULL && python.is_finalizing != NULL;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

bool oriel_python_is_binding(const char *module)
{
    return strstr(module, "/mpi4py/") != NULL ||
           strncmp(file_name(module), "libffi.so", strlen("libffi.so")) == 0;
}

bool oriel_python_is_part(const char *module)
{
    const char *name = file_name(module);
    return oriel_python_is_binding(module) || strncmp(name, "libpython", 9) == 0 ||
           strncmp(name, "python", 6) == 0 || strstr(name, ".cpython-") != NULL ||
           strstr(name, ".abi3.") != NULL;
}

/* Copies an attribute that is a text. from_end: keeps the end of one that does not fit. */
static bool text_read(void *object, const char *name, char *out, size_t len_bytes, bool from_end)
{
    void *attribute = python.attribute(object, name);
    const char *text = attribute == NULL ? NULL : python.text(attribute);
    if (text != NULL) {
        size_t has = strlen(text);
        if (from_end && has >= len_bytes)
            snprintf(out, len_bytes, "...%s", text + (has - (len_bytes - 4)));
        else
            snprintf(out, len_bytes, "%.*s", (int)len_bytes - 1, text);
    }
    if (attribute != NULL)
        python.drop(attribute);
    return text != NULL;
}

/* Whether the frame is of mpi4py's own files, or of the import system, which calls MPI_Init. */
static bool is_of_binding(const char *file)
{
    return strstr(file, "/mpi4py/") != NULL || strncmp(file, "<frozen ", 8) == 0;
}

static bool frame_read(void *frame, struct oriel_python_frame *out)
{
    void *code = python.attribute(frame, "f_code");
    bool is_read = code != NULL &&
                   text_read(code, "co_filename", out->file, sizeof out->file, true) &&
                   text_read(code, "co_name", out->function, sizeof out->function, false);
    if (code != NULL)
        python.drop(code);
    int line = is_read ? python.frame_line(frame) : 0;
    out->line = line < 0 ? 0 : (unsigned)line;
    return is_read;
}

/* With the interpreter's lock. */
static bool innermost_read(struct oriel_python_frame *out)
{
    void *frame = python.frame(); /* borrowed */
    void *owned = NULL;
    bool is_found = false;
    while (frame != NULL && frame_read(frame, out)) {
        is_found = !is_of_binding(out->file);
        if (is_found)
            break;
        void *outer = python.attribute(frame, "f_back"); /* None at the end has no f_code */
        if (owned != NULL)
            python.drop(owned);
        frame = owned = outer;
    }
    if (owned != NULL)
        python.drop(owned);
    if (python.occurred() != NULL)
        python.clear();
    return is_found;
}

bool oriel_python_frame_find(bool waits, struct oriel_python_frame *out)
{
    pthread_once(&once, interpreter_find);
    if (!is_known || !python.is_initialized())
        return false; /* 1 */
    void *state = python.this_thread();
    bool holds = state != NULL && python.unchecked_state() == state;
    if (state == NULL || (!holds && (!waits || python.is_finalizing()))) /* 2 */
        return false;
    int before = python.ensure();
    bool is_found = false;
    if (python.occurred() == NULL) {                                                      /* 4 */
        bool collected = python.collect_disable != NULL && python.collect_disable() != 0; /* 3 */
        is_found = innermost_read(out);
        if (collected)
            python.collect_enable();
    }
    python.release(before);
    return is_found;
}
