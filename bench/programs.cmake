# The benchmark's programs: plain MPI, so that the same binary runs with and without Oriel.
oriel_mpi_program(NAME rma SOURCES rma.c timing.c window.c contiguous.c atomics.c datatypes.c elements.c epochs.c active.c requests.c
                                   shapes.c words.c data.c schedule.c short.c notified.c EXTENSIONS)
oriel_mpi_program(NAME steps SOURCES steps.c EXTENSIONS)
oriel_mpi_program(NAME contention SOURCES contention.c)
oriel_mpi_program(NAME checked SOURCES checked.c)
# The cost of windows; bench/scaling runs it with many rank counts.
oriel_mpi_program(NAME windows SOURCES windows.c)
oriel_mpi_program(NAME copies SOURCES copies.c copies_shapes.c)
set_source_files_properties(copies_shapes.c PROPERTIES COMPILE_OPTIONS -O3) # hand-written loops
# Device memory against the driver's own copies; `scripts/check-gpu` runs it on a GPU.
oriel_mpi_program(NAME gpu SOURCES gpu.c ../tests/gpu/device.c data.c schedule.c)
foreach(host IN LISTS ORIEL_HOSTS)
  oriel_program_target(gpu ${host} target)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/src")
endforeach()
