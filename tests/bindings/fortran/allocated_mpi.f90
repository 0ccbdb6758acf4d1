! Windows from Fortran 90 through the module mpi: memory from the library as TYPE(C_PTR), in all its
! forms. Each rank writes its own array through the pointer and gets its neighbours'. A wrong value
! ends the job with status 1.
program allocated
  use mpi
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: output_unit
  implicit none
  integer :: rank, nranks, right, left, ierr, wrong, total

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  right = mod(rank + 1, nranks)
  left = mod(rank + nranks - 1, nranks)
  wrong = 0
  call allocated_window()
  call shared_window()
  call allocated_memory()
  if (wrong /= 0) print *, 'rank', rank, 'wrong:', wrong
  call MPI_Allreduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. total == 0) print *, 'ok windows_from_the_module_mpi'
  flush (output_unit)
  call leave_without_finalize(total)
  call MPI_Finalize(ierr)
  if (total /= 0) stop 1

contains

  subroutine expect(condition, digit)
    logical, intent(in) :: condition
    integer, intent(in) :: digit
    if (.not. condition) wrong = wrong + digit
  end subroutine expect

  subroutine allocated_window()
    type(c_ptr) :: base
    double precision, pointer :: words(:)
    double precision :: value, seen
    integer :: win
    integer(kind=MPI_ADDRESS_KIND) :: nbytes, disp, attribute
    logical :: found
    nbytes = 10 * 8
    call MPI_Win_allocate(nbytes, 8, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
    call c_f_pointer(base, words, [10])
    words = 0
    call MPI_Win_get_attr(win, MPI_WIN_BASE, attribute, found, ierr)
    call expect(found .and. attribute == transfer(base, attribute), 1)
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, attribute, found, ierr)
    call expect(found .and. attribute == MPI_WIN_FLAVOR_ALLOCATE, 10)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_lock_all(0, win, ierr)
    value = 1.5d0 + rank
    disp = 3
    call MPI_Accumulate(value, 1, MPI_DOUBLE_PRECISION, right, disp, 1, MPI_DOUBLE_PRECISION, MPI_SUM, win, ierr)
    call MPI_Win_flush(right, win, ierr)
    call MPI_Get(seen, 1, MPI_DOUBLE_PRECISION, right, disp, 1, MPI_DOUBLE_PRECISION, win, ierr)
    call MPI_Win_unlock_all(win, ierr)
    call expect(seen == value, 100)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call expect(words(4) == 1.5d0 + left, 1000)
    call MPI_Win_free(win, ierr)
  end subroutine allocated_window

  subroutine shared_window()
    type(c_ptr) :: base, theirs
    integer, pointer :: mine(:), others(:)
    integer :: win, unit, machine, here, next
    integer(kind=MPI_ADDRESS_KIND) :: nbytes, seen_bytes
    nbytes = 16
    call MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, machine, ierr)
    call MPI_Comm_rank(machine, here, ierr)
    call MPI_Comm_size(machine, next, ierr)
    next = mod(here + 1, next)
    call MPI_Win_allocate_shared(nbytes, 4, MPI_INFO_NULL, machine, base, win, ierr)
    call MPI_Comm_free(machine, ierr)
    call c_f_pointer(base, mine, [4])
    mine = 10 * here
    call MPI_Win_fence(0, win, ierr)
    call MPI_Win_shared_query(win, next, seen_bytes, unit, theirs, ierr)
    call expect(seen_bytes == 16 .and. unit == 4, 10000)
    call c_f_pointer(theirs, others, [4])
    call expect(others(4) == 10 * next, 100000)
    call MPI_Win_fence(0, win, ierr)
    call MPI_Win_free(win, ierr)
  end subroutine shared_window

  subroutine allocated_memory()
    type(c_ptr) :: base
    integer, pointer :: words(:)
    integer :: win, value, group
    integer(kind=MPI_ADDRESS_KIND) :: nbytes, disp
    nbytes = 64
    call MPI_Alloc_mem(nbytes, MPI_INFO_NULL, base, ierr)
    call c_f_pointer(base, words, [16])
    words = 0
    call MPI_Win_create(words, nbytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_get_group(win, group, ierr)
    call MPI_Win_post(group, 0, win, ierr)
    call MPI_Win_start(group, 0, win, ierr)
    value = 7 + rank
    disp = 15
    call MPI_Put(value, 1, MPI_INTEGER, right, disp, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_complete(win, ierr)
    call MPI_Win_wait(win, ierr)
    call MPI_Group_free(group, ierr)
    call expect(words(16) == 7 + left, 1000000)
    call MPI_Win_free(win, ierr)
    call MPI_Free_mem(words, ierr)
  end subroutine allocated_memory
end program allocated
