! Windows from Fortran through mpif.h, which has addresses as integers only. The included files
! contain the cases, which are the same for every interface.
program windows_mpif
  use verdicts
  use callbacks
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer :: ierr, win, other, group, world_group, info, handler, got_handler, request, datatype

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
  call verdicts_end()

contains

  subroutine memory_at(base, nwords, words)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: base, nwords
    integer, pointer, intent(out) :: words(:)
    call c_f_pointer(transfer(base, c_null_ptr), words, [nwords])
  end subroutine memory_at

  subroutine allocate_window(nbytes, words)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: nbytes
    integer, pointer, intent(out) :: words(:)
    integer(kind=MPI_ADDRESS_KIND) :: base
    call MPI_Win_allocate(nbytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
    call memory_at(base, nbytes / 4, words)
  end subroutine allocate_window

  subroutine allocate_shared_window(nbytes, words)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: nbytes
    integer, pointer, intent(out) :: words(:)
    integer(kind=MPI_ADDRESS_KIND) :: base
    call MPI_Win_allocate_shared(nbytes, 4, MPI_INFO_NULL, machine, base, win, ierr)
    call memory_at(base, nbytes / 4, words)
  end subroutine allocate_shared_window

  subroutine query_shared_memory(whose, nbytes, unit, words)
    integer, intent(in) :: whose
    integer(kind=MPI_ADDRESS_KIND), intent(out) :: nbytes
    integer, intent(out) :: unit
    integer, pointer, intent(out) :: words(:)
    integer(kind=MPI_ADDRESS_KIND) :: base
    call MPI_Win_shared_query(win, whose, nbytes, unit, base, ierr)
    call memory_at(base, nbytes / 4, words)
  end subroutine query_shared_memory

  subroutine allocate_memory(nbytes, words)
    integer(kind=MPI_ADDRESS_KIND), intent(in) :: nbytes
    integer, pointer, intent(out) :: words(:)
    integer(kind=MPI_ADDRESS_KIND) :: base
    call MPI_Alloc_mem(nbytes, MPI_INFO_NULL, base, ierr)
    call memory_at(base, nbytes / 4, words)
  end subroutine allocate_memory

  integer function number_of(handle)
    integer, intent(in) :: handle
    number_of = handle
  end function number_of

  include 'objects.inc'
  include 'operations.inc'
  include 'types.inc'
end program windows_mpif
