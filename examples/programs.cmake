# The example programs: plain MPI, independent of Oriel.
oriel_mpi_program(NAME wordcount SOURCES wordcount.c words.c)
foreach(name IN LISTS examples)
  oriel_mpi_program(NAME ${name} SOURCES ${name}.c)
endforeach()
foreach(name IN LISTS examples_also_in_other_languages)
  oriel_mpi_program(NAME ${name}_cxx LANGUAGE CXX SOURCES ${name}.cpp)
  oriel_mpi_program(NAME ${name}_fortran LANGUAGE Fortran SOURCES ${name}.f90)
endforeach()

file(GLOB files CONFIGURE_DEPENDS *.c *.h *.cpp *.f90 *.py *.md)
install(FILES ${files} CMakeLists.txt DESTINATION share/oriel/examples)
