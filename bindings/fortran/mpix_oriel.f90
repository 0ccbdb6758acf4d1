! The module mpix_oriel: the extensions of <oriel/ext.h> for programs with the module mpi_f08. Their
! names, arguments and effects are those of the functions in C, with these differences: flags are
! logical, the place that MPIX_Win_notify_wait_any returns counts from 1, and ierror is the last
! argument.
module mpix_oriel
  use mpi_f08
  use mpix_shims
  use mpix_small_counts
  use mpix_large_counts
  use, intrinsic :: iso_c_binding, only: c_int
  implicit none
  private
  public :: MPIX_Query_oriel
  public :: MPIX_NOTIFICATIONS_MOST
  public :: MPIX_Put_notify, MPIX_Get_notify, MPIX_Accumulate_notify
  public :: MPIX_Win_notify_wait, MPIX_Win_notify_test, MPIX_Win_notify_wait_any
  public :: MPIX_Win_notify_init
  public :: MPIX_Win_order, MPIX_Win_flush_list, MPIX_Win_flush_windows
  public :: MPIX_Win_iflush, MPIX_Win_iflush_all
  public :: MPIX_Rfetch_and_op, MPIX_Rcompare_and_swap
  public :: MPIX_Fetch_and_op_list, MPIX_Compare_and_swap_128
  public :: MPIX_Type_float16, MPIX_Type_float16_complex
  public :: MPIX_CMP_EQ, MPIX_CMP_NE, MPIX_CMP_LT, MPIX_CMP_LE, MPIX_CMP_GT, MPIX_CMP_GE
  public :: MPIX_Win_wait_until, MPIX_Win_test_until
  public :: MPIX_Put_init, MPIX_Get_init, MPIX_Accumulate_init, MPIX_Get_accumulate_init
  public :: MPIX_Fetch_and_op_init, MPIX_Compare_and_swap_init
  public :: MPIX_Put_notify_init, MPIX_Get_notify_init, MPIX_Accumulate_notify_init
  public :: MPIX_Memory_handle
  public :: MPIX_Win_memory_handle_create, MPIX_Win_memory_handle_free, MPIX_Win_memory_open

contains

  ! True if the other procedures may be called.
  logical function MPIX_Query_oriel()
    MPIX_Query_oriel = query_oriel_c() /= 0
  end function MPIX_Query_oriel

  subroutine MPIX_Win_notify_wait_any(win, n, numbers, index, ierror)
    type(MPI_Win), intent(in) :: win
    integer, intent(in) :: n
    integer, intent(in) :: numbers(*)
    integer, intent(out) :: index
    integer, optional, intent(out) :: ierror
    integer(c_int) :: place
    place = -1
    call return_code(win_notify_wait_any_c(win%MPI_VAL, n, numbers, place), ierror)
    index = place + 1
  end subroutine MPIX_Win_notify_wait_any

  subroutine MPIX_Win_order(rank, win, ierror)
    integer, intent(in) :: rank
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    call return_code(win_order_c(rank, win%MPI_VAL), ierror)
  end subroutine MPIX_Win_order

  subroutine MPIX_Win_flush_list(n, ranks, win, ierror)
    integer, intent(in) :: n
    integer, intent(in) :: ranks(*)
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    call return_code(win_flush_list_c(n, ranks, win%MPI_VAL), ierror)
  end subroutine MPIX_Win_flush_list

  subroutine MPIX_Win_flush_windows(n, wins, ierror)
    integer, intent(in) :: n
    type(MPI_Win), intent(in) :: wins(*)
    integer, optional, intent(out) :: ierror
    call return_code(win_flush_windows_c(n, wins(:n)%MPI_VAL), ierror)
  end subroutine MPIX_Win_flush_windows

  subroutine MPIX_Win_iflush(rank, win, request, ierror)
    integer, intent(in) :: rank
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    call return_code(win_iflush_c(rank, win%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine MPIX_Win_iflush

  subroutine MPIX_Win_iflush_all(win, request, ierror)
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    call return_code(win_iflush_all_c(win%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine MPIX_Win_iflush_all

  subroutine MPIX_Rfetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, &
                                win, request, ierror)
    type(*), dimension(..), intent(in), asynchronous :: origin_addr
    type(*), dimension(..), asynchronous :: result_addr
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: target_rank
    integer(MPI_ADDRESS_KIND), intent(in) :: target_disp
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    call return_code(rfetch_and_op_c(buffer_address(origin_addr), buffer_address(result_addr), &
                                     datatype%MPI_VAL, target_rank, target_disp, op%MPI_VAL, &
                                     win%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine MPIX_Rfetch_and_op

  subroutine MPIX_Rcompare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank, &
                                    target_disp, win, request, ierror)
    type(*), dimension(..), intent(in), asynchronous :: origin_addr, compare_addr
    type(*), dimension(..), asynchronous :: result_addr
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: target_rank
    integer(MPI_ADDRESS_KIND), intent(in) :: target_disp
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    call return_code(rcompare_and_swap_c(buffer_address(origin_addr), &
                                         buffer_address(compare_addr), &
                                         buffer_address(result_addr), datatype%MPI_VAL, &
                                         target_rank, target_disp, win%MPI_VAL, &
                                         request%MPI_VAL), ierror)
  end subroutine MPIX_Rcompare_and_swap

  subroutine MPIX_Compare_and_swap_128(origin_addr, compare_addr, result_addr, target_rank, &
                                       target_disp, win, ierror)
    type(*), dimension(..), intent(in), asynchronous :: origin_addr, compare_addr
    type(*), dimension(..), asynchronous :: result_addr
    integer, intent(in) :: target_rank
    integer(MPI_ADDRESS_KIND), intent(in) :: target_disp
    type(MPI_Win), intent(in) :: win
    integer, optional, intent(out) :: ierror
    call return_code(compare_and_swap_128_c(buffer_address(origin_addr), &
                                            buffer_address(compare_addr), &
                                            buffer_address(result_addr), target_rank, target_disp, &
                                            win%MPI_VAL), ierror)
  end subroutine MPIX_Compare_and_swap_128

  subroutine MPIX_Type_float16(type, ierror)
    type(MPI_Datatype), intent(out) :: type
    integer, optional, intent(out) :: ierror
    call return_code(type_float16_c(type%MPI_VAL), ierror)
  end subroutine MPIX_Type_float16

  subroutine MPIX_Type_float16_complex(type, ierror)
    type(MPI_Datatype), intent(out) :: type
    integer, optional, intent(out) :: ierror
    call return_code(type_float16_complex_c(type%MPI_VAL), ierror)
  end subroutine MPIX_Type_float16_complex

  subroutine MPIX_Win_wait_until(win, disp, datatype, comparison, value, ierror)
    type(MPI_Win), intent(in) :: win
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: comparison
    type(*), dimension(..), intent(in) :: value
    integer, optional, intent(out) :: ierror
    call return_code(win_wait_until_c(win%MPI_VAL, disp, datatype%MPI_VAL, comparison, &
                                      buffer_address(value)), ierror)
  end subroutine MPIX_Win_wait_until

  subroutine MPIX_Win_test_until(win, disp, datatype, comparison, value, flag, ierror)
    type(MPI_Win), intent(in) :: win
    integer(MPI_ADDRESS_KIND), intent(in) :: disp
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: comparison
    type(*), dimension(..), intent(in) :: value
    logical, intent(out) :: flag
    integer, optional, intent(out) :: ierror
    integer(c_int) :: holds
    holds = 0
    call return_code(win_test_until_c(win%MPI_VAL, disp, datatype%MPI_VAL, comparison, &
                                      buffer_address(value), holds), ierror)
    flag = holds /= 0
  end subroutine MPIX_Win_test_until

  subroutine MPIX_Fetch_and_op_init(origin_addr, result_addr, datatype, target_rank, target_disp, &
                                    op, win, request, ierror)
    type(*), dimension(..), intent(in), asynchronous :: origin_addr
    type(*), dimension(..), asynchronous :: result_addr
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: target_rank
    integer(MPI_ADDRESS_KIND), intent(in) :: target_disp
    type(MPI_Op), intent(in) :: op
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    call return_code(fetch_and_op_init_c(buffer_address(origin_addr), buffer_address(result_addr), &
                                         datatype%MPI_VAL, target_rank, target_disp, op%MPI_VAL, &
                                         win%MPI_VAL, request%MPI_VAL), ierror)
  end subroutine MPIX_Fetch_and_op_init

  subroutine MPIX_Compare_and_swap_init(origin_addr, compare_addr, result_addr, datatype, &
                                        target_rank, target_disp, win, request, ierror)
    type(*), dimension(..), intent(in), asynchronous :: origin_addr, compare_addr
    type(*), dimension(..), asynchronous :: result_addr
    type(MPI_Datatype), intent(in) :: datatype
    integer, intent(in) :: target_rank
    integer(MPI_ADDRESS_KIND), intent(in) :: target_disp
    type(MPI_Win), intent(in) :: win
    type(MPI_Request), intent(out) :: request
    integer, optional, intent(out) :: ierror
    call return_code(compare_and_swap_init_c(buffer_address(origin_addr), &
                                             buffer_address(compare_addr), &
                                             buffer_address(result_addr), datatype%MPI_VAL, &
                                             target_rank, target_disp, win%MPI_VAL, &
                                             request%MPI_VAL), ierror)
  end subroutine MPIX_Compare_and_swap_init

  subroutine MPIX_Win_memory_handle_create(win, disp, size, handle, ierror)
    type(MPI_Win), intent(in) :: win
    integer(MPI_ADDRESS_KIND), intent(in) :: disp, size
    type(MPIX_Memory_handle), intent(out) :: handle
    integer, optional, intent(out) :: ierror
    call return_code(win_memory_handle_create_c(win%MPI_VAL, disp, size, handle), ierror)
  end subroutine MPIX_Win_memory_handle_create

  subroutine MPIX_Win_memory_handle_free(handle, ierror)
    type(MPIX_Memory_handle), intent(inout) :: handle
    integer, optional, intent(out) :: ierror
    call return_code(win_memory_handle_free_c(handle), ierror)
  end subroutine MPIX_Win_memory_handle_free

  subroutine MPIX_Win_memory_open(handle, info, win, ierror)
    type(MPIX_Memory_handle), intent(in) :: handle
    type(MPI_Info), intent(in) :: info
    type(MPI_Win), intent(out) :: win
    integer, optional, intent(out) :: ierror
    call return_code(win_memory_open_c(handle, info%MPI_VAL, win%MPI_VAL), ierror)
  end subroutine MPIX_Win_memory_open
end module mpix_oriel
