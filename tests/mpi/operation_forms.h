/* Every form of the four bulk operations through one call: plain, with a request, with large
 * counts, with both. The large-count functions are found at run time, since an older host's header
 * does not declare them. */
#ifndef ORIEL_TESTS_OPERATION_FORMS_H
#define ORIEL_TESTS_OPERATION_FORMS_H

#include "harness.h"

#include <dlfcn.h>
#include <stdio.h>

enum operation {
    OPERATION_PUT,
    OPERATION_GET,
    OPERATION_ACCUMULATE,
    OPERATION_GET_ACCUMULATE,
    OPERATIONS
};
enum { FORM_REQUEST = 1, FORM_LARGE = 2, FORMS = 4 }; /* bits of a form; 0 is the plain one */

/* The arguments of all four operations. A get writes to the origin; op and the result's side belong
 * to the accumulates. */
struct arguments {
    void *origin;
    MPI_Count origin_count;
    MPI_Datatype origin_type;
    void *result;
    MPI_Count result_count;
    MPI_Datatype result_type;
    int target;
    MPI_Aint disp;
    MPI_Count target_count;
    MPI_Datatype target_type;
    MPI_Op op;
};

/* Each pair's members have the named type; the form without a request omits the last argument. */
#define FORM_MOVE(buffer) buffer, MPI_Count, MPI_Datatype, int, MPI_Aint, MPI_Count, MPI_Datatype
#define FORM_FETCH        const void *, MPI_Count, MPI_Datatype, FORM_MOVE(void *)
static struct {
    int (*put)(FORM_MOVE(const void *), MPI_Win);
    int (*get)(FORM_MOVE(void *), MPI_Win);
    int (*accumulate)(FORM_MOVE(const void *), MPI_Op, MPI_Win);
    int (*get_accumulate)(FORM_FETCH, MPI_Op, MPI_Win);
    int (*rput)(FORM_MOVE(const void *), MPI_Win, MPI_Request *);
    int (*rget)(FORM_MOVE(void *), MPI_Win, MPI_Request *);
    int (*raccumulate)(FORM_MOVE(const void *), MPI_Op, MPI_Win, MPI_Request *);
    int (*rget_accumulate)(FORM_FETCH, MPI_Op, MPI_Win, MPI_Request *);
} large_form;

/* True if any library defines the function; its address is stored in the pointer. */
static inline bool large_find(const char *name, void *pointer)
{
    void **address = pointer;
    *address = dlsym(RTLD_DEFAULT, name);
    return *address != NULL;
}

static inline bool large_forms_exist(void)
{
    return large_find("MPI_Put_c", &large_form.put) && large_find("MPI_Get_c", &large_form.get) &&
           large_find("MPI_Accumulate_c", &large_form.accumulate) &&
           large_find("MPI_Get_accumulate_c", &large_form.get_accumulate) &&
           large_find("MPI_Rput_c", &large_form.rput) &&
           large_find("MPI_Rget_c", &large_form.rget) &&
           large_find("MPI_Raccumulate_c", &large_form.raccumulate) &&
           large_find("MPI_Rget_accumulate_c", &large_form.rget_accumulate);
}

/* The number of available forms: all, or those with int counts. */
static inline int forms_available(void)
{
    return large_forms_exist() ? FORMS : FORM_LARGE;
}

static inline const char *form_name(enum operation operation, int form)
{
    static const char *const names[OPERATIONS] = {"put", "get", "accumulate", "get_accumulate"};
    static char text[64];
    snprintf(text, sizeof text, "%s%s%s", form & FORM_REQUEST ? "r" : "", names[operation],
             form & FORM_LARGE ? "_c" : "");
    return text;
}

#define FORM_TARGET_WIDE a->target, a->disp, a->target_count, a->target_type
#define FORM_TARGET_INT  a->target, a->disp, (int)a->target_count, a->target_type
#define FORM_ORIGIN_WIDE a->origin, a->origin_count, a->origin_type
#define FORM_ORIGIN_INT  a->origin, (int)a->origin_count, a->origin_type
#define FORM_RESULT_WIDE a->result, a->result_count, a->result_type
#define FORM_RESULT_INT  a->result, (int)a->result_count, a->result_type

static inline int form_call_wide(enum operation operation, const struct arguments *a, MPI_Win win)
{
    switch (operation) {
    case OPERATION_PUT: return large_form.put(FORM_ORIGIN_WIDE, FORM_TARGET_WIDE, win);
    case OPERATION_GET: return large_form.get(FORM_ORIGIN_WIDE, FORM_TARGET_WIDE, win);
    case OPERATION_ACCUMULATE:
        return large_form.accumulate(FORM_ORIGIN_WIDE, FORM_TARGET_WIDE, a->op, win);
    default:
        return large_form.get_accumulate(FORM_ORIGIN_WIDE, FORM_RESULT_WIDE, FORM_TARGET_WIDE,
                                         a->op, win);
    }
}

static inline int form_call_int(enum operation operation, const struct arguments *a, MPI_Win win)
{
    switch (operation) {
    case OPERATION_PUT: return MPI_Put(FORM_ORIGIN_INT, FORM_TARGET_INT, win);
    case OPERATION_GET: return MPI_Get(FORM_ORIGIN_INT, FORM_TARGET_INT, win);
    case OPERATION_ACCUMULATE: return MPI_Accumulate(FORM_ORIGIN_INT, FORM_TARGET_INT, a->op, win);
    default:
        return MPI_Get_accumulate(FORM_ORIGIN_INT, FORM_RESULT_INT, FORM_TARGET_INT, a->op, win);
    }
}

static inline int form_request_wide(enum operation operation, const struct arguments *a,
                                    MPI_Win win, MPI_Request *request)
{
    switch (operation) {
    case OPERATION_PUT: return large_form.rput(FORM_ORIGIN_WIDE, FORM_TARGET_WIDE, win, request);
    case OPERATION_GET: return large_form.rget(FORM_ORIGIN_WIDE, FORM_TARGET_WIDE, win, request);
    case OPERATION_ACCUMULATE:
        return large_form.raccumulate(FORM_ORIGIN_WIDE, FORM_TARGET_WIDE, a->op, win, request);
    default:
        return large_form.rget_accumulate(FORM_ORIGIN_WIDE, FORM_RESULT_WIDE, FORM_TARGET_WIDE,
                                          a->op, win, request);
    }
}

static inline int form_request_int(enum operation operation, const struct arguments *a, MPI_Win win,
                                   MPI_Request *request)
{
    switch (operation) {
    case OPERATION_PUT: return MPI_Rput(FORM_ORIGIN_INT, FORM_TARGET_INT, win, request);
    case OPERATION_GET: return MPI_Rget(FORM_ORIGIN_INT, FORM_TARGET_INT, win, request);
    case OPERATION_ACCUMULATE:
        return MPI_Raccumulate(FORM_ORIGIN_INT, FORM_TARGET_INT, a->op, win, request);
    default:
        return MPI_Rget_accumulate(FORM_ORIGIN_INT, FORM_RESULT_INT, FORM_TARGET_INT, a->op, win,
                                   request);
    }
}

/* Only forms with FORM_REQUEST touch the request; large forms require a previous forms_available
 * that found them. */
static inline int form_call(enum operation operation, int form, const struct arguments *arguments,
                            MPI_Win win, MPI_Request *request)
{
    if (form & FORM_REQUEST)
        return form & FORM_LARGE ? form_request_wide(operation, arguments, win, request)
                                 : form_request_int(operation, arguments, win, request);
    return form & FORM_LARGE ? form_call_wide(operation, arguments, win)
                             : form_call_int(operation, arguments, win);
}

#endif
