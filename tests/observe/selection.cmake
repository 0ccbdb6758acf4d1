# What is observed: MPI_Pcontrol, regions, and the options that select what is traced.
oriel_mpi_program(NAME selected SOURCES selected.c)
oriel_mpi_program(NAME regions_fortran LANGUAGE Fortran
    SOURCES "${PROJECT_SOURCE_DIR}/include/oriel/oriel_regions.f90" regions_fortran.f90)
foreach(host IN LISTS ORIEL_TEST_HOSTS)
  oriel_program_target(selected ${host} target)
  target_compile_options(${target} PRIVATE -g -O0) # the test compares its lines
  target_link_libraries(${target} PRIVATE Threads::Threads)
  set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON) # of its clock
  oriel_script_test(NAME selection.${host} HOST ${host} QUICK_HOST openmpi TIMEOUT 300 PROCESSORS 2
    COMMAND "${CMAKE_COMMAND}" -E env ${environment} "TESTS_HOSTS=${host}" "TESTS_HOST=${host}"
            /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/test_selection.py")
endforeach()
