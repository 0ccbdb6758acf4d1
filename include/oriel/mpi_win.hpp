/* MPI::Win, the C++ class of windows that MPI-2.2 had and MPI-3 removed, for C++11 and later. Its
 * members call the C functions of any MPI; those of MPI-3 are further members. It needs neither
 * liboriel nor a library of C++ bindings. Each member does what MPI-4.1, chapter 13 says of the C
 * function of the same name, with the same arguments and units.
 *
 * If the host's mpi.h has a namespace MPI, ORIEL_MPI_WIN is 0 and MPI::Win is the host's class of
 * MPI-2.2. To use this class there, define MPICH_SKIP_MPICXX and OMPI_SKIP_MPICXX in the whole
 * program, before mpi.h is included.
 *
 * Arguments that were objects of other classes in MPI-2.2 are C handles here: MPI_Comm,
 * MPI_Datatype, MPI_Info, MPI_Op, MPI_Group, MPI_Request. The caller frees returned handles (of
 * Get_group, Get_info, Rput and so on). A window converts to its MPI_Win and back, so C functions
 * without a member, such as those with large counts, accept it.
 *
 * Errors. First the error handler of the window runs; during creation, that of the communicator. If
 * it lets the C function return an error code, the member throws MPI::Exception with that code. So
 * a member that returns has succeeded. Error handlers are fatal until another one is set.
 * ERRORS_THROW_EXCEPTIONS is another name of ERRORS_RETURN. C calls error handlers and callbacks of
 * attributes: they must not throw. */
#ifndef ORIEL_MPI_WIN_HPP
#define ORIEL_MPI_WIN_HPP

#include <mpi.h>

/* Macros of the C++ bindings of Open MPI and of MPICH. */
#if defined(MPIPP_H) || defined(MPIX_CALLREF)
#define ORIEL_MPI_WIN 0
#else
#define ORIEL_MPI_WIN 1

#include <exception>
#include <map>
#include <mutex>
#include <string>

namespace MPI {

typedef MPI_Aint Aint;

static const int LOCK_EXCLUSIVE = MPI_LOCK_EXCLUSIVE, LOCK_SHARED = MPI_LOCK_SHARED;
static const int MODE_NOCHECK = MPI_MODE_NOCHECK, MODE_NOSTORE = MPI_MODE_NOSTORE,
                 MODE_NOPUT = MPI_MODE_NOPUT, MODE_NOPRECEDE = MPI_MODE_NOPRECEDE,
                 MODE_NOSUCCEED = MPI_MODE_NOSUCCEED;
static const int WIN_BASE = MPI_WIN_BASE, WIN_SIZE = MPI_WIN_SIZE,
                 WIN_DISP_UNIT = MPI_WIN_DISP_UNIT, WIN_CREATE_FLAVOR = MPI_WIN_CREATE_FLAVOR,
                 WIN_MODEL = MPI_WIN_MODEL;
static const int WIN_FLAVOR_CREATE = MPI_WIN_FLAVOR_CREATE,
                 WIN_FLAVOR_ALLOCATE = MPI_WIN_FLAVOR_ALLOCATE,
                 WIN_FLAVOR_DYNAMIC = MPI_WIN_FLAVOR_DYNAMIC,
                 WIN_FLAVOR_SHARED = MPI_WIN_FLAVOR_SHARED, WIN_SEPARATE = MPI_WIN_SEPARATE,
                 WIN_UNIFIED = MPI_WIN_UNIFIED;
static const int KEYVAL_INVALID = MPI_KEYVAL_INVALID, MAX_OBJECT_NAME = MPI_MAX_OBJECT_NAME;
static const int ERR_WIN = MPI_ERR_WIN, ERR_BASE = MPI_ERR_BASE, ERR_SIZE = MPI_ERR_SIZE,
                 ERR_DISP = MPI_ERR_DISP, ERR_LOCKTYPE = MPI_ERR_LOCKTYPE,
                 ERR_ASSERT = MPI_ERR_ASSERT, ERR_RMA_CONFLICT = MPI_ERR_RMA_CONFLICT,
                 ERR_RMA_SYNC = MPI_ERR_RMA_SYNC, ERR_RMA_RANGE = MPI_ERR_RMA_RANGE,
                 ERR_RMA_ATTACH = MPI_ERR_RMA_ATTACH, ERR_RMA_SHARED = MPI_ERR_RMA_SHARED,
                 ERR_RMA_FLAVOR = MPI_ERR_RMA_FLAVOR, ERR_NO_MEM = MPI_ERR_NO_MEM;

/* An error code that a C function returned, with its class and the host's text for it. */
class Exception : public std::exception {
public:
    explicit Exception(int error_code) : code(error_code), error_class(MPI_ERR_UNKNOWN)
    {
        char words[MPI_MAX_ERROR_STRING] = "";
        int length = 0;
        MPI_Error_class(code, &error_class);
        MPI_Error_string(code, words, &length);
        text = words;
    }
    int Get_error_code() const { return code; }
    int Get_error_class() const { return error_class; }
    const char *Get_error_string() const { return text.c_str(); }
    const char *what() const noexcept override { return text.c_str(); }

private:
    int code, error_class;
    std::string text;
};

namespace oriel {
inline void check(int code)
{
    if (code != MPI_SUCCESS)
        throw Exception(code);
}
}

class Errhandler {
public:
    Errhandler(MPI_Errhandler from = MPI_ERRHANDLER_NULL) : handle(from) {}
    operator MPI_Errhandler() const { return handle; }
    void Free() { oriel::check(MPI_Errhandler_free(&handle)); }

private:
    MPI_Errhandler handle;
};

static const Errhandler ERRORS_ARE_FATAL(MPI_ERRORS_ARE_FATAL), ERRORS_RETURN(MPI_ERRORS_RETURN),
    ERRORS_THROW_EXCEPTIONS(MPI_ERRORS_RETURN);

/* Memory for windows (MPI-4.1, 10.2): size in bytes. */
inline void *Alloc_mem(Aint size, MPI_Info info)
{
    void *base = nullptr;
    oriel::check(MPI_Alloc_mem(size, info, &base));
    return base;
}

inline void Free_mem(void *base)
{
    oriel::check(MPI_Free_mem(base));
}

/* A window handle: copies denote the same window. Free frees the window, the destructor does not.
 * Windows compare as their handles do. */
class Win {
public:
    typedef void Errhandler_function(Win &win, int *code, ...);
    typedef int Copy_attr_function(const Win &old, int keyval, void *extra_state, void *value_in,
                                   void *value_out, bool &flag);
    typedef int Delete_attr_function(Win &win, int keyval, void *value, void *extra_state);

    Win(MPI_Win from = MPI_WIN_NULL) : handle(from) {}
    operator MPI_Win() const { return handle; }

    /* Creation (13.2): sizes and displacement units in bytes. baseptr is the address of a pointer
     * of any type, as in C. */
    static Win Create(const void *base, Aint size, int disp_unit, MPI_Info info, MPI_Comm comm)
    {
        Win win;
        oriel::check(
            MPI_Win_create(const_cast<void *>(base), size, disp_unit, info, comm, &win.handle));
        return win;
    }
    static Win Allocate(Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *baseptr)
    {
        Win win;
        oriel::check(MPI_Win_allocate(size, disp_unit, info, comm, baseptr, &win.handle));
        return win;
    }
    static Win Allocate_shared(Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                               void *baseptr)
    {
        Win win;
        oriel::check(MPI_Win_allocate_shared(size, disp_unit, info, comm, baseptr, &win.handle));
        return win;
    }
    static Win Create_dynamic(MPI_Info info, MPI_Comm comm)
    {
        Win win;
        oriel::check(MPI_Win_create_dynamic(info, comm, &win.handle));
        return win;
    }
    void Attach(void *base, Aint size) const { oriel::check(MPI_Win_attach(handle, base, size)); }
    void Detach(const void *base) const { oriel::check(MPI_Win_detach(handle, base)); }
    void Shared_query(int rank, Aint &size, int &disp_unit, void *baseptr) const
    {
        oriel::check(MPI_Win_shared_query(handle, rank, &size, &disp_unit, baseptr));
    }
    void Free() { oriel::check(MPI_Win_free(&handle)); }

    /* Operations (13.3): counts in items of their datatype, target_disp in the target's
     * displacement units. */
    void Put(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
             int target_rank, Aint target_disp, int target_count,
             MPI_Datatype target_datatype) const
    {
        oriel::check(MPI_Put(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                             target_count, target_datatype, handle));
    }
    void Get(void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
             Aint target_disp, int target_count, MPI_Datatype target_datatype) const
    {
        oriel::check(MPI_Get(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                             target_count, target_datatype, handle));
    }
    void Accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                    int target_rank, Aint target_disp, int target_count,
                    MPI_Datatype target_datatype, MPI_Op op) const
    {
        oriel::check(MPI_Accumulate(origin_addr, origin_count, origin_datatype, target_rank,
                                    target_disp, target_count, target_datatype, op, handle));
    }
    void Get_accumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                        void *result_addr, int result_count, MPI_Datatype result_datatype,
                        int target_rank, Aint target_disp, int target_count,
                        MPI_Datatype target_datatype, MPI_Op op) const
    {
        oriel::check(MPI_Get_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
                                        result_count, result_datatype, target_rank, target_disp,
                                        target_count, target_datatype, op, handle));
    }
    void Fetch_and_op(const void *origin_addr, void *result_addr, MPI_Datatype datatype,
                      int target_rank, Aint target_disp, MPI_Op op) const
    {
        oriel::check(MPI_Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp,
                                      op, handle));
    }
    void Compare_and_swap(const void *origin_addr, const void *compare_addr, void *result_addr,
                          MPI_Datatype datatype, int target_rank, Aint target_disp) const
    {
        oriel::check(MPI_Compare_and_swap(origin_addr, compare_addr, result_addr, datatype,
                                          target_rank, target_disp, handle));
    }
    MPI_Request Rput(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                     int target_rank, Aint target_disp, int target_count,
                     MPI_Datatype target_datatype) const
    {
        MPI_Request request = MPI_REQUEST_NULL;
        oriel::check(MPI_Rput(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                              target_count, target_datatype, handle, &request));
        return request;
    }
    MPI_Request Rget(void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                     int target_rank, Aint target_disp, int target_count,
                     MPI_Datatype target_datatype) const
    {
        MPI_Request request = MPI_REQUEST_NULL;
        oriel::check(MPI_Rget(origin_addr, origin_count, origin_datatype, target_rank, target_disp,
                              target_count, target_datatype, handle, &request));
        return request;
    }
    MPI_Request Raccumulate(const void *origin_addr, int origin_count, MPI_Datatype origin_datatype,
                            int target_rank, Aint target_disp, int target_count,
                            MPI_Datatype target_datatype, MPI_Op op) const
    {
        MPI_Request request = MPI_REQUEST_NULL;
        oriel::check(MPI_Raccumulate(origin_addr, origin_count, origin_datatype, target_rank,
                                     target_disp, target_count, target_datatype, op, handle,
                                     &request));
        return request;
    }
    MPI_Request Rget_accumulate(const void *origin_addr, int origin_count,
                                MPI_Datatype origin_datatype, void *result_addr, int result_count,
                                MPI_Datatype result_datatype, int target_rank, Aint target_disp,
                                int target_count, MPI_Datatype target_datatype, MPI_Op op) const
    {
        MPI_Request request = MPI_REQUEST_NULL;
        oriel::check(MPI_Rget_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
                                         result_count, result_datatype, target_rank, target_disp,
                                         target_count, target_datatype, op, handle, &request));
        return request;
    }

    /* Active target synchronisation (13.5.1, 13.5.2). */
    void Fence(int assert) const { oriel::check(MPI_Win_fence(assert, handle)); }
    void Start(MPI_Group group, int assert) const
    {
        oriel::check(MPI_Win_start(group, assert, handle));
    }
    void Complete() const { oriel::check(MPI_Win_complete(handle)); }
    void Post(MPI_Group group, int assert) const
    {
        oriel::check(MPI_Win_post(group, assert, handle));
    }
    void Wait() const { oriel::check(MPI_Win_wait(handle)); }
    bool Test() const
    {
        int flag = 0;
        oriel::check(MPI_Win_test(handle, &flag));
        return flag != 0;
    }

    /* Passive target synchronisation (13.5.3, 13.5.4). */
    void Lock(int lock_type, int rank, int assert) const
    {
        oriel::check(MPI_Win_lock(lock_type, rank, assert, handle));
    }
    void Unlock(int rank) const { oriel::check(MPI_Win_unlock(rank, handle)); }
    void Lock_all(int assert) const { oriel::check(MPI_Win_lock_all(assert, handle)); }
    void Unlock_all() const { oriel::check(MPI_Win_unlock_all(handle)); }
    void Flush(int rank) const { oriel::check(MPI_Win_flush(rank, handle)); }
    void Flush_all() const { oriel::check(MPI_Win_flush_all(handle)); }
    void Flush_local(int rank) const { oriel::check(MPI_Win_flush_local(rank, handle)); }
    void Flush_local_all() const { oriel::check(MPI_Win_flush_local_all(handle)); }
    void Sync() const { oriel::check(MPI_Win_sync(handle)); }

    /* Group, info and name (13.2, chapter 7). name needs room for MAX_OBJECT_NAME characters. */
    MPI_Group Get_group() const
    {
        MPI_Group group = MPI_GROUP_NULL;
        oriel::check(MPI_Win_get_group(handle, &group));
        return group;
    }
    void Set_info(MPI_Info info) const { oriel::check(MPI_Win_set_info(handle, info)); }
    MPI_Info Get_info() const
    {
        MPI_Info info = MPI_INFO_NULL;
        oriel::check(MPI_Win_get_info(handle, &info));
        return info;
    }
    void Set_name(const char *name) const { oriel::check(MPI_Win_set_name(handle, name)); }
    void Get_name(char *name, int &length) const
    {
        oriel::check(MPI_Win_get_name(handle, name, &length));
    }

    /* Attributes (chapter 7). Get_attr returns false if the attribute is not set. value is the
     * address of a pointer. For predefined attributes this pointer is the window's base (WIN_BASE),
     * or points to an Aint (WIN_SIZE) or an int (all others). Callbacks are either both C++
     * functions or both C functions. */
    bool Get_attr(int keyval, void *value) const
    {
        int flag = 0;
        oriel::check(MPI_Win_get_attr(handle, keyval, value, &flag));
        return flag != 0;
    }
    void Set_attr(int keyval, const void *value) const
    {
        oriel::check(MPI_Win_set_attr(handle, keyval, const_cast<void *>(value)));
    }
    void Delete_attr(int keyval) const { oriel::check(MPI_Win_delete_attr(handle, keyval)); }
    static int Create_keyval(Copy_attr_function *copy, Delete_attr_function *remove,
                             void *extra_state);
    static int Create_keyval(MPI_Win_copy_attr_function *copy, MPI_Win_delete_attr_function *remove,
                             void *extra_state)
    {
        int keyval = MPI_KEYVAL_INVALID;
        oriel::check(MPI_Win_create_keyval(copy, remove, &keyval, extra_state));
        return keyval;
    }
    static void Free_keyval(int &keyval) { oriel::check(MPI_Win_free_keyval(&keyval)); }
    static int NULL_COPY_FN(const Win &, int, void *, void *, void *, bool &flag)
    {
        flag = false;
        return MPI_SUCCESS;
    }
    static int DUP_FN(const Win &, int, void *, void *value_in, void *value_out, bool &flag)
    {
        *static_cast<void **>(value_out) = value_in;
        flag = true;
        return MPI_SUCCESS;
    }
    static int NULL_DELETE_FN(Win &, int, void *, void *) { return MPI_SUCCESS; }

    /* Error handlers (9.3). The caller frees what Get_errhandler returns, unless it is
     * predefined. */
    static Errhandler Create_errhandler(Errhandler_function *function);
    static Errhandler Create_errhandler(MPI_Win_errhandler_function *function)
    {
        MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
        oriel::check(MPI_Win_create_errhandler(function, &errhandler));
        return errhandler;
    }
    void Set_errhandler(const Errhandler &errhandler) const
    {
        oriel::check(MPI_Win_set_errhandler(handle, errhandler));
    }
    Errhandler Get_errhandler() const
    {
        MPI_Errhandler errhandler = MPI_ERRHANDLER_NULL;
        oriel::check(MPI_Win_get_errhandler(handle, &errhandler));
        return errhandler;
    }
    /* Throws an exception with the code if the window's handler is ERRORS_THROW_EXCEPTIONS. */
    void Call_errhandler(int code) const
    {
        Errhandler errhandler = Get_errhandler();
        if (errhandler == MPI_ERRORS_RETURN)
            oriel::check(code);
        if (errhandler != MPI_ERRORS_ARE_FATAL && errhandler != MPI_ERRORS_RETURN)
            errhandler.Free();
        oriel::check(MPI_Win_call_errhandler(handle, code));
    }

private:
    MPI_Win handle;
};

static const Win WIN_NULL(MPI_WIN_NULL);

namespace oriel {
/* C cannot call the program's C++ callbacks directly. The extra state of a keyval names them. It is
 * never freed, because attributes outlive their keyval. */
struct Attribute_functions {
    Win::Copy_attr_function *copy;
    Win::Delete_attr_function *remove;
    void *extra_state;
};

extern "C" inline int oriel_mpi_win_copy_attribute(MPI_Win old, int keyval, void *state,
                                                   void *value_in, void *value_out, int *flag)
{
    const Attribute_functions *functions = static_cast<const Attribute_functions *>(state);
    bool copied = false;
    int code =
        functions->copy(Win(old), keyval, functions->extra_state, value_in, value_out, copied);
    *flag = copied;
    return code;
}

extern "C" inline int oriel_mpi_win_delete_attribute(MPI_Win handle, int keyval, void *value,
                                                     void *state)
{
    const Attribute_functions *functions = static_cast<const Attribute_functions *>(state);
    Win win(handle);
    return functions->remove(win, keyval, value, functions->extra_state);
}

/* An error handler has no extra state, so its function is found by its handle, which the window
 * returns. A handle that the host uses again replaces the previous entry. */
struct Error_functions {
    std::mutex mutex;
    std::map<MPI_Errhandler, Win::Errhandler_function *> by_handle;

    static Error_functions &all()
    {
        static Error_functions *functions =
            new Error_functions; // never destroyed: handlers may run late
        return *functions;
    }
    void enter(MPI_Errhandler errhandler, Win::Errhandler_function *function)
    {
        std::lock_guard<std::mutex> guard(mutex);
        by_handle[errhandler] = function;
    }
    Win::Errhandler_function *find(MPI_Errhandler errhandler)
    {
        std::lock_guard<std::mutex> guard(mutex);
        return by_handle[errhandler];
    }
};

extern "C" inline void oriel_mpi_win_handle_error(MPI_Win *handle, int *code, ...)
{
    MPI_Errhandler errhandler;
    if (MPI_Win_get_errhandler(*handle, &errhandler) != MPI_SUCCESS)
        return;
    Win::Errhandler_function *function = Error_functions::all().find(errhandler);
    MPI_Errhandler_free(&errhandler);
    Win win(*handle);
    function(win, code);
}
}

inline int Win::Create_keyval(Copy_attr_function *copy, Delete_attr_function *remove,
                              void *extra_state)
{
    return Create_keyval(oriel::oriel_mpi_win_copy_attribute, oriel::oriel_mpi_win_delete_attribute,
                         new oriel::Attribute_functions{copy, remove, extra_state});
}

inline Errhandler Win::Create_errhandler(Errhandler_function *function)
{
    const Errhandler errhandler = Create_errhandler(oriel::oriel_mpi_win_handle_error);
    oriel::Error_functions::all().enter(errhandler, function);
    return errhandler;
}

} // namespace MPI

#endif
#endif
