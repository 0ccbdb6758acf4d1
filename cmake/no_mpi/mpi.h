/* For sources that did not reach the host's mpi.h when the build was configured: they are compiled once for all hosts. */
#error "this source reaches mpi.h now: configure the build again (cmake build/)"
