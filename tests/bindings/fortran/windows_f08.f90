! Windows from Fortran 2008 through the module mpi_f08, with typed handles, addresses as TYPE(C_PTR)
! and array sections. The included files contain the cases, which are the same for every interface.
program windows_f08
  use mpi_f08
  use verdicts
  use callbacks_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: ierr
  type(MPI_Win) :: win, other
  type(MPI_Group) :: group, world_group
  type(MPI_Info) :: info
  type(MPI_Errhandler) :: handler, got_handler
  type(MPI_Request) :: request
  type(MPI_Datatype) :: datatype

  call verdicts_start()
  call predefined_attributes_of_every_flavour()
  call user_attributes_call_back()
  call error_handlers_are_called()
  call names_groups_and_hints()
  call c_converts_the_handle_to_the_same_window()
  call every_operation()
  call fences_with_assertions()
  call post_start_complete_wait_or_test()
  call locks_of_both_types()
  call shared_memory_is_queried()
  call allocated_memory_is_a_window()
  call attached_memory_is_reached_by_its_address()
  call elements_of_every_type_move()
  call numbers_are_added()
  call logicals_are_combined()
  call wide_numbers_are_added()
  call sections_of_arrays_move()
  call verdicts_end()

contains

  ! Every second element, where the host accepts array sections.
  subroutine sections_of_arrays_move()
    integer, pointer, asynchronous :: memory(:)
    integer, asynchronous :: words(10), seen(10)
    integer :: i
    call allocate_window(40_MPI_ADDRESS_KIND, memory)
    memory = 0
    words = [(100 * rank + i, i = 1, 10)]
    seen = 0
    call MPI_Barrier(MPI_COMM_WORLD)
    if (MPI_SUBARRAYS_SUPPORTED) then
      call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win)
      call MPI_Put(words(1:9:2), 5, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
      call MPI_Win_flush(right, win)
      call MPI_Get(seen(2:10:2), 5, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
      call MPI_Win_flush(right, win)
      call check(all(seen == [0, words(1), 0, words(3), 0, words(5), 0, words(7), 0, words(9)]), 'put and get')
      call MPI_Accumulate(words(9:1:-2), 5, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 5, MPI_INTEGER, MPI_SUM, win)
      call MPI_Win_flush(right, win)
      call MPI_Rget(seen(1:9:2), 5, MPI_INTEGER, right, 2_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win, request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(seen(1:9:2) == 200 * rank + 10), 'accumulate and rget')
      call MPI_Win_unlock(right, win)
    else if (rank == 0) then
      print '(a)', '# left out: the host takes no sections'
    end if
    call MPI_Win_free(win)
    call verdict('sections_of_arrays_move')
  end subroutine sections_of_arrays_move

  subroutine allocate_window(nbytes, words)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: nbytes
    integer, pointer, intent(out) :: words(:)
    type(c_ptr) :: base
    call MPI_Win_allocate(nbytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
    call c_f_pointer(base, words, [nbytes / 4])
  end subroutine allocate_window

  subroutine allocate_shared_window(nbytes, words)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: nbytes
    integer, pointer, intent(out) :: words(:)
    type(c_ptr) :: base
    call MPI_Win_allocate_shared(nbytes, 4, MPI_INFO_NULL, MPI_Comm(machine), base, win, ierr)
    call c_f_pointer(base, words, [nbytes / 4])
  end subroutine allocate_shared_window

  subroutine query_shared_memory(whose, nbytes, unit, words)
    integer, intent(in) :: whose
    integer(kind=MPI_ADDRESS_KIND), intent(out) :: nbytes
    integer, intent(out) :: unit
    integer, pointer, intent(out) :: words(:)
    type(c_ptr) :: base
    call MPI_Win_shared_query(win, whose, nbytes, unit, base, ierr)
    call c_f_pointer(base, words, [nbytes / 4])
  end subroutine query_shared_memory

  subroutine allocate_memory(nbytes, words)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: nbytes
    integer, pointer, intent(out) :: words(:)
    type(c_ptr) :: base
    call MPI_Alloc_mem(nbytes, MPI_INFO_NULL, base, ierr)
    call c_f_pointer(base, words, [nbytes / 4])
  end subroutine allocate_memory

  integer function number_of(handle)
    type(MPI_Win), intent(in) :: handle
    number_of = handle%MPI_VAL
  end function number_of

  include 'objects.inc'
  include 'operations.inc'
  include 'types.inc'
end program windows_f08
