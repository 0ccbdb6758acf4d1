# Statistics: a program with known figures, and the reports about it.
oriel_mpi_program(NAME counted SOURCES counted.c)
set(counted /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/test_statistics.py"
    --build "${CMAKE_BINARY_DIR}")
foreach(host IN LISTS ORIEL_TEST_HOSTS)
  oriel_program_target(counted ${host} target)
  target_compile_options(${target} PRIVATE -g -O0) # the test compares its lines
  target_link_libraries(${target} PRIVATE Threads::Threads)
  oriel_script_test(NAME statistics.${host} HOST ${host} QUICK_HOST mpich TIMEOUT 300
                    COMMAND ${counted} --host ${host} --program $<TARGET_FILE:${target}> --ranks 2)
  oriel_script_test(NAME statistics_of_many.${host} FULL TIMEOUT 600 PROCESSORS 16
      COMMAND ${counted} --host ${host} --program $<TARGET_FILE:${target}> --ranks 1,3,4,8,16 --net)
endforeach()

# The verdict: programs that are slow for one reason each.
oriel_mpi_program(NAME planted SOURCES planted.c)
foreach(host IN LISTS ORIEL_TEST_HOSTS)
  oriel_program_target(planted ${host} target)
  target_compile_options(${target} PRIVATE -g -O0) # the test compares its lines
  oriel_script_test(NAME verdict.${host} HOST ${host} QUICK_HOST mpich TIMEOUT 300 PROCESSORS 2
    COMMAND "${CMAKE_COMMAND}" -E env ${environment} "TESTS_HOSTS=${host}" "TESTS_HOST=${host}"
            /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/test_verdict.py")
endforeach()
