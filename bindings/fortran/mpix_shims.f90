! What the modules of <oriel/ext.h> share: its constants and type, the functions of shims.c, and how
! arguments of Fortran become theirs.
module mpix_shims
  use mpi_f08, only: MPI_BOTTOM
  use, intrinsic :: iso_c_binding, only: c_associated, c_int, c_int8_t, c_int64_t, c_intptr_t, &
                                         c_loc, c_null_ptr, c_ptr
  implicit none
  private
  public :: MPIX_NOTIFICATIONS_MOST, MPIX_Memory_handle
  public :: MPIX_CMP_EQ, MPIX_CMP_NE, MPIX_CMP_LT, MPIX_CMP_LE, MPIX_CMP_GT, MPIX_CMP_GE
  public :: buffer_address, return_code
  public :: query_oriel_c
  public :: put_notify_c, get_notify_c, accumulate_notify_c
  public :: win_notify_wait_c, win_notify_test_c, win_notify_wait_any_c, win_notify_init_c
  public :: win_order_c, win_flush_list_c, win_flush_windows_c, win_iflush_c, win_iflush_all_c
  public :: rfetch_and_op_c, rcompare_and_swap_c, fetch_and_op_list_c, compare_and_swap_128_c
  public :: type_float16_c, type_float16_complex_c
  public :: win_wait_until_c, win_test_until_c
  public :: put_init_c, get_init_c, accumulate_init_c, get_accumulate_init_c
  public :: fetch_and_op_init_c, compare_and_swap_init_c
  public :: put_notify_init_c, get_notify_init_c, accumulate_notify_init_c
  public :: win_memory_handle_create_c, win_memory_handle_free_c, win_memory_open_c

  integer, parameter :: MPIX_NOTIFICATIONS_MOST = 65536
  integer, parameter :: MPIX_CMP_EQ = 1, MPIX_CMP_NE = 2, MPIX_CMP_LT = 3, MPIX_CMP_LE = 4, &
                        MPIX_CMP_GT = 5, MPIX_CMP_GE = 6

  type, bind(C) :: MPIX_Memory_handle
    private
    integer(c_int8_t) :: bytes(1280)
  end type MPIX_Memory_handle

  abstract interface
    integer(c_int) function notified_transfer(origin_addr, origin_count, origin_datatype, &
        target_rank, target_disp, target_count, target_datatype, number, win) bind(C)
      import
      type(c_ptr), value :: origin_addr
      integer(c_int64_t), value :: origin_count, target_count
      integer(c_int), value :: origin_datatype, target_rank, target_datatype, number, win
      integer(c_intptr_t), value :: target_disp
    end function notified_transfer

    integer(c_int) function transfer_init(origin_addr, origin_count, origin_datatype, &
        target_rank, target_disp, target_count, target_datatype, win, request) bind(C)
      import
      type(c_ptr), value :: origin_addr
      integer(c_int64_t), value :: origin_count, target_count
      integer(c_int), value :: origin_datatype, target_rank, target_datatype, win
      integer(c_intptr_t), value :: target_disp
      integer(c_int), intent(out) :: request
    end function transfer_init

    integer(c_int) function fetch_with_request(origin_addr, result_addr, datatype, target_rank, &
        target_disp, op, win, request) bind(C)
      import
      type(c_ptr), value :: origin_addr, result_addr
      integer(c_int), value :: datatype, target_rank, op, win
      integer(c_intptr_t), value :: target_disp
      integer(c_int), intent(out) :: request
    end function fetch_with_request

    integer(c_int) function swap_with_request(origin_addr, compare_addr, result_addr, datatype, &
        target_rank, target_disp, win, request) bind(C)
      import
      type(c_ptr), value :: origin_addr, compare_addr, result_addr
      integer(c_int), value :: datatype, target_rank, win
      integer(c_intptr_t), value :: target_disp
      integer(c_int), intent(out) :: request
    end function swap_with_request

    integer(c_int) function notified_transfer_init(origin_addr, origin_count, origin_datatype, &
        target_rank, target_disp, target_count, target_datatype, number, win, request) bind(C)
      import
      type(c_ptr), value :: origin_addr
      integer(c_int64_t), value :: origin_count, target_count
      integer(c_int), value :: origin_datatype, target_rank, target_datatype, number, win
      integer(c_intptr_t), value :: target_disp
      integer(c_int), intent(out) :: request
    end function notified_transfer_init
  end interface

  procedure(notified_transfer), bind(C, name='oriel_f08_put_notify') :: put_notify_c
  procedure(notified_transfer), bind(C, name='oriel_f08_get_notify') :: get_notify_c
  procedure(transfer_init), bind(C, name='oriel_f08_put_init') :: put_init_c
  procedure(transfer_init), bind(C, name='oriel_f08_get_init') :: get_init_c
  procedure(fetch_with_request), bind(C, name='oriel_f08_rfetch_and_op') :: rfetch_and_op_c
  procedure(fetch_with_request), bind(C, name='oriel_f08_fetch_and_op_init') :: fetch_and_op_init_c
  procedure(swap_with_request), bind(C, name='oriel_f08_rcompare_and_swap') :: rcompare_and_swap_c
  procedure(swap_with_request), bind(C, name='oriel_f08_compare_and_swap_init') :: &
      compare_and_swap_init_c
  procedure(notified_transfer_init), bind(C, name='oriel_f08_put_notify_init') :: put_notify_init_c
  procedure(notified_transfer_init), bind(C, name='oriel_f08_get_notify_init') :: get_notify_init_c

  interface
    integer(c_int) function query_oriel_c() bind(C, name='oriel_f08_query_oriel')
      import
    end function query_oriel_c

    integer(c_int) function accumulate_notify_c(origin_addr, origin_count, origin_datatype, &
        target_rank, target_disp, target_count, target_datatype, op, number, win) &
        bind(C, name='oriel_f08_accumulate_notify')
      import
      type(c_ptr), value :: origin_addr
      integer(c_int64_t), value :: origin_count, target_count
      integer(c_int), value :: origin_datatype, target_rank, target_datatype, op, number, win
      integer(c_intptr_t), value :: target_disp
    end function accumulate_notify_c

    integer(c_int) function win_notify_wait_c(win, number, count) &
        bind(C, name='oriel_f08_win_notify_wait')
      import
      integer(c_int), value :: win, number
      integer(c_int64_t), value :: count
    end function win_notify_wait_c

    integer(c_int) function win_notify_test_c(win, number, count, flag) &
        bind(C, name='oriel_f08_win_notify_test')
      import
      integer(c_int), value :: win, number
      integer(c_int64_t), value :: count
      integer(c_int), intent(out) :: flag
    end function win_notify_test_c

    integer(c_int) function win_notify_wait_any_c(win, n, numbers, index) &
        bind(C, name='oriel_f08_win_notify_wait_any')
      import
      integer(c_int), value :: win, n
      integer(c_int), intent(in) :: numbers(*)
      integer(c_int), intent(inout) :: index
    end function win_notify_wait_any_c

    integer(c_int) function win_notify_init_c(win, number, count, request) &
        bind(C, name='oriel_f08_win_notify_init')
      import
      integer(c_int), value :: win, number
      integer(c_int64_t), value :: count
      integer(c_int), intent(out) :: request
    end function win_notify_init_c

    integer(c_int) function win_order_c(rank, win) bind(C, name='oriel_f08_win_order')
      import
      integer(c_int), value :: rank, win
    end function win_order_c

    integer(c_int) function win_flush_list_c(n, ranks, win) &
        bind(C, name='oriel_f08_win_flush_list')
      import
      integer(c_int), value :: n, win
      integer(c_int), intent(in) :: ranks(*)
    end function win_flush_list_c

    integer(c_int) function win_flush_windows_c(n, wins) &
        bind(C, name='oriel_f08_win_flush_windows')
      import
      integer(c_int), value :: n
      integer(c_int), intent(in) :: wins(*)
    end function win_flush_windows_c

    integer(c_int) function win_iflush_c(rank, win, request) bind(C, name='oriel_f08_win_iflush')
      import
      integer(c_int), value :: rank, win
      integer(c_int), intent(out) :: request
    end function win_iflush_c

    integer(c_int) function win_iflush_all_c(win, request) &
        bind(C, name='oriel_f08_win_iflush_all')
      import
      integer(c_int), value :: win
      integer(c_int), intent(out) :: request
    end function win_iflush_all_c

    integer(c_int) function fetch_and_op_list_c(origin_addr, result_addr, count, datatype, &
        target_rank, target_disps, op, win) bind(C, name='oriel_f08_fetch_and_op_list')
      import
      type(c_ptr), value :: origin_addr, result_addr
      integer(c_int64_t), value :: count
      integer(c_int), value :: datatype, target_rank, op, win
      integer(c_intptr_t), intent(in) :: target_disps(*)
    end function fetch_and_op_list_c

    integer(c_int) function compare_and_swap_128_c(origin_addr, compare_addr, result_addr, &
        target_rank, target_disp, win) bind(C, name='oriel_f08_compare_and_swap_128')
      import
      type(c_ptr), value :: origin_addr, compare_addr, result_addr
      integer(c_int), value :: target_rank, win
      integer(c_intptr_t), value :: target_disp
    end function compare_and_swap_128_c

    integer(c_int) function type_float16_c(datatype) bind(C, name='oriel_f08_type_float16')
      import
      integer(c_int), intent(out) :: datatype
    end function type_float16_c

    integer(c_int) function type_float16_complex_c(datatype) &
        bind(C, name='oriel_f08_type_float16_complex')
      import
      integer(c_int), intent(out) :: datatype
    end function type_float16_complex_c

    integer(c_int) function win_wait_until_c(win, disp, datatype, comparison, val) &
        bind(C, name='oriel_f08_win_wait_until')
      import
      integer(c_int), value :: win, datatype, comparison
      integer(c_intptr_t), value :: disp
      type(c_ptr), value :: val
    end function win_wait_until_c

    integer(c_int) function win_test_until_c(win, disp, datatype, comparison, val, flag) &
        bind(C, name='oriel_f08_win_test_until')
      import
      integer(c_int), value :: win, datatype, comparison
      integer(c_intptr_t), value :: disp
      type(c_ptr), value :: val
      integer(c_int), intent(out) :: flag
    end function win_test_until_c

    integer(c_int) function accumulate_init_c(origin_addr, origin_count, origin_datatype, &
        target_rank, target_disp, target_count, target_datatype, op, win, request) &
        bind(C, name='oriel_f08_accumulate_init')
      import
      type(c_ptr), value :: origin_addr
      integer(c_int64_t), value :: origin_count, target_count
      integer(c_int), value :: origin_datatype, target_rank, target_datatype, op, win
      integer(c_intptr_t), value :: target_disp
      integer(c_int), intent(out) :: request
    end function accumulate_init_c

    integer(c_int) function get_accumulate_init_c(origin_addr, origin_count, origin_datatype, &
        result_addr, result_count, result_datatype, target_rank, target_disp, target_count, &
        target_datatype, op, win, request) bind(C, name='oriel_f08_get_accumulate_init')
      import
      type(c_ptr), value :: origin_addr, result_addr
      integer(c_int64_t), value :: origin_count, result_count, target_count
      integer(c_int), value :: origin_datatype, result_datatype, target_rank, target_datatype
      integer(c_int), value :: op, win
      integer(c_intptr_t), value :: target_disp
      integer(c_int), intent(out) :: request
    end function get_accumulate_init_c

    integer(c_int) function accumulate_notify_init_c(origin_addr, origin_count, origin_datatype, &
        target_rank, target_disp, target_count, target_datatype, op, number, win, request) &
        bind(C, name='oriel_f08_accumulate_notify_init')
      import
      type(c_ptr), value :: origin_addr
      integer(c_int64_t), value :: origin_count, target_count
      integer(c_int), value :: origin_datatype, target_rank, target_datatype, op, number, win
      integer(c_intptr_t), value :: target_disp
      integer(c_int), intent(out) :: request
    end function accumulate_notify_init_c

    integer(c_int) function win_memory_handle_create_c(win, disp, size, handle) &
        bind(C, name='oriel_f08_win_memory_handle_create')
      import
      integer(c_int), value :: win
      integer(c_intptr_t), value :: disp, size
      type(MPIX_Memory_handle), intent(out) :: handle
    end function win_memory_handle_create_c

    integer(c_int) function win_memory_handle_free_c(handle) &
        bind(C, name='oriel_f08_win_memory_handle_free')
      import
      type(MPIX_Memory_handle), intent(inout) :: handle
    end function win_memory_handle_free_c

    integer(c_int) function win_memory_open_c(handle, info, win) &
        bind(C, name='oriel_f08_win_memory_open')
      import
      type(MPIX_Memory_handle), intent(in) :: handle
      integer(c_int), value :: info
      integer(c_int), intent(out) :: win
    end function win_memory_open_c
  end interface

contains

  type(c_ptr) function first_byte(buffer)
    type(*), dimension(..), intent(in), asynchronous, target :: buffer
    first_byte = c_loc(buffer)
  end function first_byte

  ! The address of a choice buffer in C. It is null for MPI_BOTTOM, as in C, and for a section that
  ! is not contiguous: the compiler would pass a copy of it, which ends with the call. Oriel refuses
  ! both for datatypes without absolute addresses.
  type(c_ptr) function buffer_address(buffer)
    type(*), dimension(..), intent(in), asynchronous, target :: buffer
    buffer_address = first_byte(buffer)
    if (c_associated(buffer_address, first_byte(MPI_BOTTOM))) buffer_address = c_null_ptr
    if (rank(buffer) == 0) return
    if (.not. is_contiguous(buffer)) buffer_address = c_null_ptr
  end function buffer_address

  subroutine return_code(code, ierror)
    integer(c_int), intent(in) :: code
    integer, optional, intent(out) :: ierror
    if (present(ierror)) ierror = code
  end subroutine return_code
end module mpix_shims
