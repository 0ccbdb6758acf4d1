# Call sites: programs with a shared library, and in Fortran.
oriel_mpi_program(NAME late_fortran SOURCES late_fortran.f90 LANGUAGE Fortran)
foreach(host IN LISTS ORIEL_MPIS)
  oriel_program_target(layer ${host} layer)
  add_library(${layer} SHARED layer.c)
  set_target_properties(${layer} PROPERTIES OUTPUT_NAME layer
                        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${host}")
  oriel_program_target(layered ${host} layered)
  add_executable(${layered} layered.c)
  set_target_properties(${layered} PROPERTIES OUTPUT_NAME layered
                        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${host}")
  target_link_libraries(${layered} PRIVATE ${layer})
  foreach(target ${layer} ${layered})
    target_compile_definitions(${target} PRIVATE _GNU_SOURCE)
    target_compile_options(${target} PRIVATE ${ORIEL_WARNINGS} -g) # the test compares its lines
    target_link_libraries(${target} PRIVATE oriel_host_${host})
  endforeach()
  oriel_script_test(NAME sites.${host} HOST ${host} QUICK_HOST openmpi TIMEOUT 300 PROCESSORS 2
    COMMAND "${CMAKE_COMMAND}" -E env ${environment} "TESTS_HOSTS=${host}" "TESTS_HOST=${host}"
            /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/test_sites.py")
endforeach()
