/* The functions of <oriel/ext.h> as the module mpix_oriel reaches them: handles are Fortran's, and
 * all arguments but arrays and results are passed by value. They return what the functions of
 * <oriel/ext.h> return. The references to those are weak, as in programs in C. */
#include <oriel/ext.h>
#include <stdint.h>
#include <stdlib.h>

/* What mpix_shims.f90 has in their place. */
_Static_assert(sizeof(MPI_Count) == sizeof(int64_t), "counts are c_int64_t");
_Static_assert(sizeof(MPI_Aint) == sizeof(intptr_t), "displacements are c_intptr_t");
_Static_assert(sizeof(MPI_Fint) == 4, "handles are c_int");
_Static_assert(sizeof(MPIX_Memory_handle) == 1280, "memory handles have 1280 bytes");

/* Where this library's code is in the program: all in one section (bindings/CMakeLists.txt), whose
 * ends the linker knows. Oriel finds the note, and names the line that calls this code
 * (src/base/code_address.c). */
__asm__(".pushsection oriel_fortran, \"ax\", %progbits\n"
        ".byte 0\n" /* not empty, so both ends exist */
        ".popsection\n"
        ".hidden __start_oriel_fortran\n"
        ".hidden __stop_oriel_fortran\n"
        ".pushsection .note.oriel, \"a\", %note\n"
        ".balign 4\n"
        ".long 6, 8, 1\n" /* the lengths of name and contents, and the type */
        ".asciz \"Oriel\"\n"
        ".balign 4\n"
        ".long __start_oriel_fortran - .\n"
        ".long __stop_oriel_fortran - .\n"
        ".popsection\n");

/* Parameters of one side of an operation, and the arguments that follow from them. */
#define ORIGIN_SIDE(qualifier)                                                                     \
    qualifier void *origin_addr, MPI_Count origin_count, MPI_Fint origin_datatype
#define RESULT_SIDE void *result_addr, MPI_Count result_count, MPI_Fint result_datatype
#define TARGET_SIDE                                                                                \
    int target_rank, MPI_Aint target_disp, MPI_Count target_count, MPI_Fint target_datatype
#define ORIGIN origin_addr, origin_count, MPI_Type_f2c(origin_datatype)
#define RESULT result_addr, result_count, MPI_Type_f2c(result_datatype)
#define TARGET target_rank, target_disp, target_count, MPI_Type_f2c(target_datatype)

static int return_request(int code, MPI_Request made, MPI_Fint *request)
{
    *request = MPI_Request_c2f(made);
    return code;
}

int oriel_f08_query_oriel(void)
{
    return MPIX_Query_oriel();
}

/* --- notified access --- */

int oriel_f08_put_notify(ORIGIN_SIDE(const), TARGET_SIDE, int number, MPI_Fint win)
{
    return MPIX_Put_notify(ORIGIN, TARGET, number, MPI_Win_f2c(win));
}

int oriel_f08_get_notify(ORIGIN_SIDE(), TARGET_SIDE, int number, MPI_Fint win)
{
    return MPIX_Get_notify(ORIGIN, TARGET, number, MPI_Win_f2c(win));
}

int oriel_f08_accumulate_notify(ORIGIN_SIDE(const), TARGET_SIDE, MPI_Fint op, int number,
                                MPI_Fint win)
{
    return MPIX_Accumulate_notify(ORIGIN, TARGET, MPI_Op_f2c(op), number, MPI_Win_f2c(win));
}

int oriel_f08_win_notify_wait(MPI_Fint win, int number, MPI_Count count)
{
    return MPIX_Win_notify_wait(MPI_Win_f2c(win), number, count);
}

int oriel_f08_win_notify_test(MPI_Fint win, int number, MPI_Count count, int *flag)
{
    return MPIX_Win_notify_test(MPI_Win_f2c(win), number, count, flag);
}

int oriel_f08_win_notify_wait_any(MPI_Fint win, int n, const int numbers[], int *index)
{
    return MPIX_Win_notify_wait_any(MPI_Win_f2c(win), n, numbers, index);
}

int oriel_f08_win_notify_init(MPI_Fint win, int number, MPI_Count count, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Win_notify_init(MPI_Win_f2c(win), number, count, &made);
    return return_request(code, made, request);
}

/* --- order and flushes --- */

int oriel_f08_win_order(int rank, MPI_Fint win)
{
    return MPIX_Win_order(rank, MPI_Win_f2c(win));
}

int oriel_f08_win_flush_list(int n, const int ranks[], MPI_Fint win)
{
    return MPIX_Win_flush_list(n, ranks, MPI_Win_f2c(win));
}

int oriel_f08_win_flush_windows(int n, const MPI_Fint handles[])
{
    MPI_Win *wins = n > 0 ? malloc((size_t)n * sizeof *wins) : NULL;
    if (n > 0 && wins == NULL) {
        MPI_Win_call_errhandler(MPI_Win_f2c(handles[0]), MPI_ERR_NO_MEM);
        return MPI_ERR_NO_MEM;
    }
    for (int i = 0; i < n; i++)
        wins[i] = MPI_Win_f2c(handles[i]);
    int code = MPIX_Win_flush_windows(n, wins);
    free(wins);
    return code;
}

int oriel_f08_win_iflush(int rank, MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Win_iflush(rank, MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_win_iflush_all(MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Win_iflush_all(MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

/* --- atomic operations --- */

int oriel_f08_rfetch_and_op(const void *origin_addr, void *result_addr, MPI_Fint datatype,
                            int target_rank, MPI_Aint target_disp, MPI_Fint op, MPI_Fint win,
                            MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Rfetch_and_op(origin_addr, result_addr, MPI_Type_f2c(datatype), target_rank,
                                  target_disp, MPI_Op_f2c(op), MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_rcompare_and_swap(const void *origin_addr, const void *compare_addr,
                                void *result_addr, MPI_Fint datatype, int target_rank,
                                MPI_Aint target_disp, MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code =
        MPIX_Rcompare_and_swap(origin_addr, compare_addr, result_addr, MPI_Type_f2c(datatype),
                               target_rank, target_disp, MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_fetch_and_op_list(const void *origin_addr, void *result_addr, MPI_Count count,
                                MPI_Fint datatype, int target_rank, const MPI_Aint target_disps[],
                                MPI_Fint op, MPI_Fint win)
{
    return MPIX_Fetch_and_op_list(origin_addr, result_addr, count, MPI_Type_f2c(datatype),
                                  target_rank, target_disps, MPI_Op_f2c(op), MPI_Win_f2c(win));
}

int oriel_f08_compare_and_swap_128(const void *origin_addr, const void *compare_addr,
                                   void *result_addr, int target_rank, MPI_Aint target_disp,
                                   MPI_Fint win)
{
    return MPIX_Compare_and_swap_128(origin_addr, compare_addr, result_addr, target_rank,
                                     target_disp, MPI_Win_f2c(win));
}

int oriel_f08_type_float16(MPI_Fint *datatype)
{
    MPI_Datatype found = MPI_DATATYPE_NULL;
    int code = MPIX_Type_float16(&found);
    *datatype = MPI_Type_c2f(found);
    return code;
}

int oriel_f08_type_float16_complex(MPI_Fint *datatype)
{
    MPI_Datatype found = MPI_DATATYPE_NULL;
    int code = MPIX_Type_float16_complex(&found);
    *datatype = MPI_Type_c2f(found);
    return code;
}

/* --- waiting on memory --- */

int oriel_f08_win_wait_until(MPI_Fint win, MPI_Aint disp, MPI_Fint datatype, int comparison,
                             const void *value)
{
    return MPIX_Win_wait_until(MPI_Win_f2c(win), disp, MPI_Type_f2c(datatype), comparison, value);
}

int oriel_f08_win_test_until(MPI_Fint win, MPI_Aint disp, MPI_Fint datatype, int comparison,
                             const void *value, int *flag)
{
    return MPIX_Win_test_until(MPI_Win_f2c(win), disp, MPI_Type_f2c(datatype), comparison, value,
                               flag);
}

/* --- persistent operations --- */

int oriel_f08_put_init(ORIGIN_SIDE(const), TARGET_SIDE, MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Put_init(ORIGIN, TARGET, MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_get_init(ORIGIN_SIDE(), TARGET_SIDE, MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Get_init(ORIGIN, TARGET, MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_accumulate_init(ORIGIN_SIDE(const), TARGET_SIDE, MPI_Fint op, MPI_Fint win,
                              MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Accumulate_init(ORIGIN, TARGET, MPI_Op_f2c(op), MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_get_accumulate_init(ORIGIN_SIDE(const), RESULT_SIDE, TARGET_SIDE, MPI_Fint op,
                                  MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code =
        MPIX_Get_accumulate_init(ORIGIN, RESULT, TARGET, MPI_Op_f2c(op), MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_fetch_and_op_init(const void *origin_addr, void *result_addr, MPI_Fint datatype,
                                int target_rank, MPI_Aint target_disp, MPI_Fint op, MPI_Fint win,
                                MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Fetch_and_op_init(origin_addr, result_addr, MPI_Type_f2c(datatype), target_rank,
                                      target_disp, MPI_Op_f2c(op), MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_put_notify_init(ORIGIN_SIDE(const), TARGET_SIDE, int number, MPI_Fint win,
                              MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Put_notify_init(ORIGIN, TARGET, number, MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_get_notify_init(ORIGIN_SIDE(), TARGET_SIDE, int number, MPI_Fint win,
                              MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Get_notify_init(ORIGIN, TARGET, number, MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

int oriel_f08_accumulate_notify_init(ORIGIN_SIDE(const), TARGET_SIDE, MPI_Fint op, int number,
                                     MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code = MPIX_Accumulate_notify_init(ORIGIN, TARGET, MPI_Op_f2c(op), number, MPI_Win_f2c(win),
                                           &made);
    return return_request(code, made, request);
}

int oriel_f08_compare_and_swap_init(const void *origin_addr, const void *compare_addr,
                                    void *result_addr, MPI_Fint datatype, int target_rank,
                                    MPI_Aint target_disp, MPI_Fint win, MPI_Fint *request)
{
    MPI_Request made = MPI_REQUEST_NULL;
    int code =
        MPIX_Compare_and_swap_init(origin_addr, compare_addr, result_addr, MPI_Type_f2c(datatype),
                                   target_rank, target_disp, MPI_Win_f2c(win), &made);
    return return_request(code, made, request);
}

/* --- memory handles --- */

int oriel_f08_win_memory_handle_create(MPI_Fint win, MPI_Aint disp, MPI_Aint size,
                                       MPIX_Memory_handle *handle)
{
    return MPIX_Win_memory_handle_create(MPI_Win_f2c(win), disp, size, handle);
}

int oriel_f08_win_memory_handle_free(MPIX_Memory_handle *handle)
{
    return MPIX_Win_memory_handle_free(handle);
}

int oriel_f08_win_memory_open(const MPIX_Memory_handle *handle, MPI_Fint info, MPI_Fint *win)
{
    MPI_Win made = MPI_WIN_NULL;
    int code = MPIX_Win_memory_open(handle, MPI_Info_f2c(info), &made);
    *win = MPI_Win_c2f(made);
    return code;
}
