# Unmodified MPI programs: tests, examples and benchmarks as any user would write them.
#
#   oriel_mpi_program(NAME name SOURCES a.c ... [WITH b.c ...] [LANGUAGE C|CXX|Fortran] [LINKED]
#                     [EXTENSIONS] [LINES] [LIBRARIES ...])
#
# builds <build>/<this folder>/<host>/<name> once for every host, with the flags of the host's
# compiler wrapper and none of Oriel's. LINKED places liboriel ahead of the host's library, as
# pkg-config's flags do. EXTENSIONS finds Oriel's headers, or its Fortran module. WITH lists C
# sources that programs of this folder share: each is compiled once for a host. LINES: a test
# compares lines of the program, so the compiler must not merge or copy calls. A host without a
# compiler for the language, or without the module, gets no program. oriel_program_target() returns
# the name of the target.

# The name of the target that builds a program of this folder for a host. abi-mpich and abi-openmpi
# share the programs of abi.
function(oriel_program_target name host out)
  string(REGEX REPLACE "^abi-.*" abi host "${host}")
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" folder "${folder}")
  set(${out} "${folder}_${name}_${host}" PARENT_SCOPE)
endfunction()

function(oriel_mpi_program)
  cmake_parse_arguments(PARSE_ARGV 0 arg
      "LINKED;EXTENSIONS;LINES" "NAME;LANGUAGE" "SOURCES;WITH;LIBRARIES")
  if(NOT arg_NAME OR NOT arg_SOURCES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "oriel_mpi_program: NAME and SOURCES are needed, and nothing but "
                        "WITH, LANGUAGE, LINKED, EXTENSIONS, LINES and LIBRARIES is known: ${ARGN}")
  endif()
  # also where no host can compile it
  set_property(DIRECTORY APPEND PROPERTY ORIEL_PROGRAMS ${arg_NAME})
  set(flavour "")
  if(arg_LANGUAGE AND NOT arg_LANGUAGE STREQUAL "C")
    set(flavour "_${arg_LANGUAGE}")
  endif()
  foreach(host IN LISTS ORIEL_HOSTS)
    set(module "")
    if(arg_EXTENSIONS AND arg_LANGUAGE STREQUAL "Fortran")
      set(module oriel_fortran_${host})
    endif()
    if(NOT TARGET oriel_host_${host}${flavour} OR (module AND NOT TARGET ${module}))
      continue()
    endif()
    oriel_program_target(${arg_NAME} ${host} target)
    add_executable(${target} ${arg_SOURCES})
    foreach(source IN LISTS arg_WITH)
      get_filename_component(stem "${source}" NAME_WE)
      oriel_program_target(${stem}_shared ${host} shared)
      if(NOT TARGET ${shared})
        add_library(${shared} OBJECT ${source})
        set_target_properties(${shared} PROPERTIES C_EXTENSIONS ON)
        target_compile_options(${shared} PRIVATE ${ORIEL_WARNINGS})
        target_link_libraries(${shared} PRIVATE oriel_host_${host} Threads::Threads)
        foreach(library IN LISTS arg_LIBRARIES)
          if(TARGET ${library})
            target_link_libraries(${shared} PRIVATE ${library}) # for its headers
          endif()
        endforeach()
      endif()
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${shared}>)
    endforeach()
    set_target_properties(${target} PROPERTIES
      OUTPUT_NAME ${arg_NAME}
      C_EXTENSIONS ON # gnu17, the default of the compiler wrapper
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${host}"
      Fortran_MODULE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${host}/${arg_NAME}.modules")
    if(NOT arg_LANGUAGE STREQUAL "Fortran")
      target_compile_options(${target} PRIVATE ${ORIEL_WARNINGS})
    endif()
    if(arg_EXTENSIONS)
      target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include")
    endif()
    if(arg_LINES)
      target_compile_options(${target} PRIVATE -g -O0)
    endif()
    if(arg_LINKED)
      target_link_options(${target} PRIVATE -Wl,--no-as-needed)
      target_link_libraries(${target} PRIVATE oriel_${host})
    endif()
    target_link_libraries(${target} PRIVATE ${module} ${arg_LIBRARIES}
                                            oriel_host_${host}${flavour} Threads::Threads)
  endforeach()
endfunction()
