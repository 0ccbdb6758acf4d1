! Regions of a Fortran program: oriel_region_begin(3). Compile this file with the program:
!
!     mpifort -c PREFIX/include/oriel/oriel_regions.f90
!
!     use oriel_regions
!     call oriel_region_begin("exchange")
!     call oriel_region_end("exchange")   ! without a name: the innermost region
!
! Trailing blanks are not part of a name. The program runs without Oriel, too: regions then have no
! effect. The functions are looked up in the process, so nothing has to be linked.
module oriel_regions
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funptr, c_loc, &
                                         c_null_char, c_null_ptr, c_ptr
  implicit none
  private
  public :: oriel_region_begin, oriel_region_end

  abstract interface
    subroutine region_function(name) bind(c)
      import :: c_ptr
      type(c_ptr), value :: name
    end subroutine region_function
  end interface

  interface
    function dlsym(handle, symbol) bind(c, name="dlsym")
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: symbol(*)
      type(c_funptr) :: dlsym
    end function dlsym
  end interface

  ! Null before the first call. Threads may look up a function at the same time: they find the same.
  procedure(region_function), pointer, save :: begin_function => null(), end_function => null()

contains

  subroutine oriel_region_begin(name)
    character(*), intent(in) :: name
    if (.not. associated(begin_function)) call find("oriel_region_begin", begin_function)
    call call_with_name(begin_function, name)
  end subroutine oriel_region_begin

  subroutine oriel_region_end(name)
    character(*), intent(in), optional :: name
    if (.not. associated(end_function)) call find("oriel_region_end", end_function)
    if (present(name)) then
      call call_with_name(end_function, name)
    else
      call end_function(c_null_ptr)
    end if
  end subroutine oriel_region_end

  subroutine find(symbol, function)
    character(*), intent(in) :: symbol
    procedure(region_function), pointer, intent(inout) :: function
    type(c_funptr) :: address
    address = dlsym(c_null_ptr, symbol // c_null_char) ! RTLD_DEFAULT
    if (c_associated(address)) then
      call c_f_procpointer(address, function)
    else
      function => without_oriel
    end if
  end subroutine find

  subroutine without_oriel(name) bind(c, name="")
    type(c_ptr), value :: name
    if (c_associated(name)) return
  end subroutine without_oriel

  subroutine call_with_name(function, name)
    procedure(region_function) :: function
    character(*), intent(in) :: name
    character(kind=c_char), target :: text(len_trim(name) + 1)
    integer :: i
    do i = 1, len_trim(name)
      text(i) = name(i:i)
    end do
    text(len_trim(name) + 1) = c_null_char
    call function(c_loc(text))
  end subroutine call_with_name

end module oriel_regions
