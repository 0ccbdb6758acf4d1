! Windows from Fortran 2008 through the module mpi_f08: typed handles, C pointers, every kind of
! operation and epoch. Each rank works with its neighbours and with rank 0. A wrong value ends the
! job with status 1.
program typed
  use mpi_f08
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: output_unit
  implicit none
  integer :: rank, nranks, right, left, wrong, total

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  right = mod(rank + 1, nranks)
  left = mod(rank + nranks - 1, nranks)
  wrong = 0
  call allocated_window()
  call created_window()
  call shared_window()
  call refused_access()
  if (wrong /= 0) print *, 'rank', rank, 'wrong:', wrong
  call MPI_Allreduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0 .and. total == 0) print *, 'ok windows_from_the_module_mpi_f08'
  flush (output_unit)
  call leave_without_finalize(total)
  call MPI_Finalize()
  if (total /= 0) stop 1

contains

  subroutine expect(condition, digit)
    logical, intent(in) :: condition
    integer, intent(in) :: digit
    if (.not. condition) wrong = wrong + digit
  end subroutine expect

  subroutine allocated_window()
    type(c_ptr) :: base
    type(MPI_Win) :: win
    integer, pointer, asynchronous :: words(:)
    integer, asynchronous :: value, old, expected, seen
    integer(kind=MPI_ADDRESS_KIND) :: attribute
    logical :: found
    call MPI_Win_allocate(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, words, [10])
    words = 0
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, attribute, found)
    call expect(found .and. attribute == 40, 1)
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, attribute, found)
    call expect(found .and. attribute == 4, 2)
    call MPI_Win_get_attr(win, MPI_WIN_BASE, attribute, found)
    call expect(found .and. attribute == transfer(base, attribute), 4)
    call MPI_Win_fence(0, win)
    value = 1
    call MPI_Accumulate(value, 1, MPI_INTEGER, 0, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win)
    call MPI_Win_fence(0, win)
    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win)
    call MPI_Get_accumulate(value, 1, MPI_INTEGER, seen, 1, MPI_INTEGER, 0, 1_MPI_ADDRESS_KIND, 1, MPI_INTEGER, &
                            MPI_NO_OP, win)
    call MPI_Win_flush(0, win)
    call expect(seen == nranks, 8)
    call MPI_Win_unlock(0, win)
    call MPI_Win_lock_all(0, win)
    value = rank + 50
    expected = 0
    call MPI_Compare_and_swap(value, expected, old, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, win)
    call MPI_Win_flush(right, win)
    call expect(old == 0, 16)
    value = 3
    call MPI_Fetch_and_op(value, old, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, MPI_SUM, win)
    call MPI_Win_flush_all(win)
    call expect(old == rank + 50, 32)
    call MPI_Win_unlock_all(win)
    call MPI_Barrier(MPI_COMM_WORLD)
    call expect(words(3) == left + 53, 64)
    call MPI_Win_free(win)
    call expect(win == MPI_WIN_NULL, 128)
  end subroutine allocated_window

  subroutine created_window()
    type(MPI_Win) :: win
    type(MPI_Group) :: group
    real(kind=8), target, asynchronous :: words(20)
    real(kind=8), asynchronous :: piece(5)
    integer :: i
    words = 0
    call MPI_Win_create(words, 160_MPI_ADDRESS_KIND, 8, MPI_INFO_NULL, MPI_COMM_WORLD, win)
    call MPI_Win_get_group(win, group)
    piece = [(100.0d0 * rank + i, i = 1, 5)]
    call MPI_Win_post(group, 0, win)
    call MPI_Win_start(group, 0, win)
    call MPI_Put(piece, 5, MPI_REAL8, right, 10_MPI_ADDRESS_KIND, 5, MPI_REAL8, win)
    call MPI_Win_complete(win)
    call MPI_Win_wait(win)
    call MPI_Group_free(group)
    call expect(all(words(11:15) == [(100.0d0 * left + i, i = 1, 5)]), 512)
    call expect(all(words(1:10) == 0) .and. all(words(16:20) == 0), 1024)
    call MPI_Win_free(win)
  end subroutine created_window

  subroutine shared_window()
    type(c_ptr) :: base, theirs
    type(MPI_Win) :: win
    integer, pointer :: mine(:), others(:)
    type(MPI_Comm) :: machine
    integer :: unit, here, next
    integer(kind=MPI_ADDRESS_KIND) :: seen_bytes
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, machine)
    call MPI_Comm_rank(machine, here)
    call MPI_Comm_size(machine, next)
    next = mod(here + 1, next)
    call MPI_Win_allocate_shared(16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, machine, base, win)
    call MPI_Comm_free(machine)
    call c_f_pointer(base, mine, [4])
    mine = 10 * here
    call MPI_Win_fence(0, win)
    call MPI_Win_shared_query(win, next, seen_bytes, unit, theirs)
    call expect(seen_bytes == 16 .and. unit == 4, 2048)
    call c_f_pointer(theirs, others, [4])
    call expect(others(4) == 10 * next, 4096)
    call MPI_Win_fence(0, win)
    call MPI_Win_free(win)
  end subroutine shared_window

  subroutine refused_access()
    type(c_ptr) :: base
    type(MPI_Win) :: win
    integer, asynchronous :: value
    integer :: code, class
    call MPI_Win_allocate(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN)
    call MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win)
    value = 1
    call MPI_Put(value, 1, MPI_INTEGER, right, 10_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, code)
    call MPI_Error_class(code, class)
    call expect(class == MPI_ERR_RMA_RANGE, 8192)
    call MPI_Win_unlock(right, win)
    call MPI_Win_free(win)
  end subroutine refused_access
end program typed
