# The example programs: plain MPI, they know nothing of Oriel.
oriel_mpi_program(NAME wordcount SOURCES wordcount.c words.c)
