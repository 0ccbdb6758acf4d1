/* Reads frames through CPython's stable functions, with the interpreter's lock held: frames and
 * their line tables have another layout in each version.
 *
 * 1. Before the interpreter is initialised, and in its last part, when exit handlers call
 *    MPI_Finalize, no thread has a state, and nothing is found.
 * 2. While the interpreter ends, acquiring the lock would block other threads for ever. Only a
 *    thread that holds it looks then.
 * 3. Frames are objects, which are made on request from 3.11 on. Up to 3.11 that may collect
 *    garbage, and so run finalisers of the program inside a call of MPI. Collection is off for that
 *    time.
 * 4. A pending exception stays: nothing is looked up then.
 *
 * A thread that has released the lock around its call must not wait for it. Another thread may hold
 * it in a call of MPI that waits for this one: functions of ctypes.PyDLL and of some extensions
 * hold it. Without the checker such a program ends.
 *
 * 5. A thread that holds the lock reads at once.
 * 6. If no other thread has a state, none holds the lock, and acquiring it does not wait.
 * 7. Otherwise the reader does, a thread of this file which no other thread waits for. It reads the
 *    frames of the thread that asks, which waits for a limited time. When that is over, the request
 *    is withdrawn, and the asking thread continues with the address. Its state stays valid while
 *    the reader uses it: the reader takes a request with the lock held, and then a request is not
 *    withdrawn. The reader then needs no other lock, so it answers.
 * 8. A reader that still waits for the lock is not asked again. */
#include "base/python_frames.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_S = 1 };

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
    void *(*main_interpreter)(void);
    void *(*first_interpreter)(void);
    void *(*first_thread)(void *interpreter);
    void *(*next_thread)(void *state);
    void *(*frame_of_thread)(void *state); /* NULL before 3.9 */
    int (*collect_disable)(void);          /* NULL before 3.10 */
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
    function_find(&python.main_interpreter, "PyInterpreterState_Main", NULL);
    function_find(&python.first_interpreter, "PyInterpreterState_Head", NULL);
    function_find(&python.first_thread, "PyInterpreterState_ThreadHead", NULL);
    function_find(&python.next_thread, "PyThreadState_Next", NULL);
    function_find(&python.frame_of_thread, "PyThreadState_GetFrame", NULL);
    function_find(&python.collect_disable, "PyGC_Disable", NULL);
    function_find(&python.collect_enable, "PyGC_Enable", NULL);
    is_known = python.is_initialized != NULL && python.this_thread != NULL &&
               python.ensure != NULL && python.release != NULL && python.frame != NULL &&
               python.frame_line != NULL && python.attribute != NULL && python.text != NULL &&
               python.occurred != NULL && python.clear != NULL && python.drop != NULL &&
               python.unchecked_state != NULL && python.is_finalizing != NULL &&
               python.main_interpreter != NULL && python.first_interpreter != NULL &&
               python.first_thread != NULL && python.next_thread != NULL;
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

/* Whether the frame is of mpi4py's own files, of the module oriel, or of the import system, which
 * calls MPI_Init. */
static bool is_of_binding(const char *file)
{
    return strstr(file, "/mpi4py/") != NULL || strstr(file, "/oriel/python/oriel.py") != NULL ||
           strncmp(file, "<frozen ", 8) == 0;
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

/* With the interpreter's lock. frame: the innermost one; owned: it, if its reference is ours. */
static bool innermost_read(void *frame, void *owned, struct oriel_python_frame *out)
{
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

/* The same without garbage collection. other: the state of another thread; NULL: this one. */
static bool thread_read(void *other, struct oriel_python_frame *out)
{
    if (python.occurred() != NULL) /* 4 */
        return false;
    bool collected = python.collect_disable != NULL && python.collect_disable() != 0; /* 3 */
    void *owned = other != NULL ? python.frame_of_thread(other) : NULL;
    bool is_found = innermost_read(other != NULL ? owned : python.frame(), owned, out);
    if (collected)
        python.collect_enable();
    return is_found;
}

/* --- the reader --- */

/* On the stack of the thread that asks. */
struct request {
    struct request *next;
    void *state;
    struct oriel_python_frame *out;
    bool is_taken, is_done, is_found;
};

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t asked, answered; /* answered: with the monotonic clock */
    pthread_once_t once;
    bool runs, is_late; /* late: it has not acquired the lock in time */
    struct request *requests;
} reader = {.mutex = PTHREAD_MUTEX_INITIALIZER,
            .asked = PTHREAD_COND_INITIALIZER,
            .once = PTHREAD_ONCE_INIT};

/* With the mutex and the interpreter's lock. */
static void requests_answer(void)
{
    struct request *request;
    reader.is_late = false;
    while ((request = reader.requests) != NULL) {
        reader.requests = request->next;
        request->is_taken = true;
        pthread_mutex_unlock(&reader.mutex);
        bool is_found = thread_read(request->state, request->out);
        pthread_mutex_lock(&reader.mutex);
        request->is_found = is_found;
        request->is_done = true;
        pthread_cond_broadcast(&reader.answered);
    }
}

/* The interpreter may end this thread in `ensure`, where it has no lock. */
static void *reader_run(void *unused)
{
    for (;;) {
        pthread_mutex_lock(&reader.mutex);
        while (reader.requests == NULL)
            pthread_cond_wait(&reader.asked, &reader.mutex);
        pthread_mutex_unlock(&reader.mutex);
        int before = python.ensure();
        pthread_mutex_lock(&reader.mutex);
        requests_answer();
        pthread_mutex_unlock(&reader.mutex);
        python.release(before);
    }
    return unused;
}

static void reader_start(void)
{
    pthread_condattr_t clock;
    pthread_t thread;
    sigset_t all, before;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&reader.answered, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    reader.runs = pthread_create(&thread, NULL, reader_run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!reader.runs)
        return;
    pthread_setname_np(thread, "oriel-python");
    pthread_detach(thread);
}

static void request_withdraw(struct request *request)
{
    struct request **link = &reader.requests;
    while (*link != request)
        link = &(*link)->next;
    *link = request->next;
    reader.is_late = true;
}

/* Asks the reader for the frame of this thread, which has that state. */
static bool reader_ask(void *state, struct oriel_python_frame *out)
{
    struct request request = {.state = state, .out = out};
    struct timespec until;
    pthread_once(&reader.once, reader_start);
    if (!reader.runs || python.frame_of_thread == NULL)
        return false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&reader.mutex);
    if (reader.is_late) { /* 8 */
        pthread_mutex_unlock(&reader.mutex);
        return false;
    }
    request.next = reader.requests;
    reader.requests = &request;
    pthread_cond_signal(&reader.asked);
    bool in_time = true;
    while (!request.is_done && (in_time || request.is_taken))
        if (request.is_taken)
            pthread_cond_wait(&reader.answered, &reader.mutex);
        else
            in_time = pthread_cond_timedwait(&reader.answered, &reader.mutex, &until) == 0;
    if (!request.is_done) /* 7 */
        request_withdraw(&request);
    pthread_mutex_unlock(&reader.mutex);
    return request.is_found;
}

/* --- looking --- */

/* Whether no other thread has a state. It reads the state of no other thread, which may end. */
static bool is_only_thread(void *state)
{
    void *interpreter = python.main_interpreter();
    return python.first_interpreter() == interpreter && python.first_thread(interpreter) == state &&
           python.next_thread(state) == NULL;
}

bool oriel_python_frame_find(bool waits, struct oriel_python_frame *out)
{
    pthread_once(&once, interpreter_find);
    if (!is_known || !python.is_initialized())
        return false; /* 1 */
    void *state = python.this_thread();
    bool holds = state != NULL && python.unchecked_state() == state;
    if (holds) /* 5 */
        return thread_read(NULL, out);
    if (state == NULL || !waits || python.is_finalizing()) /* 2 */
        return false;
    if (!is_only_thread(state))
        return reader_ask(state, out);
    int before = python.ensure(); /* 6 */
    bool is_found = thread_read(NULL, out);
    python.release(before);
    return is_found;
}
