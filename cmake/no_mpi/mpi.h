/* For sources that did not include the host's mpi.h at configuration: they are compiled once for
 * all hosts. */
#error "this source reaches mpi.h now: configure the build again (cmake build/)"
