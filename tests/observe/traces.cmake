# Traces: a program with known actions, on each host, and the contents of its files; and the command
# on trace files.

oriel_mpi_program(NAME traced SOURCES traced.c)

foreach(host IN LISTS ORIEL_TEST_HOSTS)
  oriel_script_test(NAME traces.${host} HOST ${host} QUICK_HOST mpich TIMEOUT 600 PROCESSORS 2
    COMMAND "${CMAKE_COMMAND}" -E env ${environment} "TESTS_HOSTS=${host}" "TESTS_HOST=${host}"
            /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/test_traces.py")
endforeach()
oriel_script_test(NAME exports TIMEOUT 300
  COMMAND "${CMAKE_COMMAND}" -E env ${environment} "TESTS_HOSTS="
          /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/test_exports.py")
oriel_script_test(NAME compare TIMEOUT 300
  COMMAND "${CMAKE_COMMAND}" -E env ${environment} "TESTS_HOSTS="
          /usr/bin/python3 -B "${CMAKE_CURRENT_SOURCE_DIR}/test_compare.py")
