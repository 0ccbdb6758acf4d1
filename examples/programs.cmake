# The example programs: plain MPI, independent of Oriel.
oriel_mpi_program(NAME wordcount SOURCES wordcount.c words.c)
