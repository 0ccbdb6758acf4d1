#!/usr/bin/python3
"""Compares the window functions that a host's libraries export with those of liboriel.so: none may be missing.

Names are taken from the dynamic symbol tables, C and Fortran alike, with MPI_ and PMPI_, long counts included.
The host is the library that liboriel.so itself needs. Called by the test rows: symbols.py LIBORIEL"""

import re
import subprocess
import sys

OPERATIONS = "Put|Get|Accumulate|Get_accumulate|Fetch_and_op|Compare_and_swap|Rput|Rget|Raccumulate|Rget_accumulate"
MEMORY = "Alloc_mem|Free_mem"
WINDOW = re.compile(rf"^P?MPI_(Win_[A-Za-z_]+|{OPERATIONS}|{MEMORY})$|^P?MPI_({OPERATIONS})_c$")
# Objects that stay the host's: names, user attributes, error handlers, handle conversion.
HOSTS_OWN = re.compile(r"^P?MPI_Win_(set_name|get_name|create_keyval|free_keyval|delete_attr|set_attr|c2f|f2c"
                       r"|create_errhandler|set_errhandler|get_errhandler|call_errhandler)(_c)?$")
ALWAYS = ["MPI_Get_library_version", "MPI_Init", "MPI_Init_thread", "MPI_Comm_spawn", "MPI_Comm_spawn_multiple",
          "MPI_Comm_free", "MPI_Comm_disconnect",
          "MPI_Wait", "MPI_Test", "MPI_Waitany", "MPI_Testany", "MPI_Waitall", "MPI_Testall", "MPI_Waitsome", "MPI_Testsome",
          "MPI_Request_get_status"]


def exported(library):
    output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in output.splitlines() if line.split()[-2] in "TWV"}


def host_library(library):
    """The path of the MPI library that the loader finds for liboriel.so."""
    output = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return re.search(r"^\s*lib(?:mpi|mpich)\.so\S* => (\S+)", output, re.MULTILINE).group(1)


def wanted(names):
    found = {name for name in names if WINDOW.match(name) and not HOSTS_OWN.match(name)}
    found.discard("MPI_Win_get_attr_c")
    # Long counts are Oriel's on every host, also where the host has none.
    for name in [f"{prefix}MPI_{operation}_c" for operation in OPERATIONS.split("|")
                 for prefix in ("", "P") if operation not in ("Fetch_and_op", "Compare_and_swap")]:
        found.add(name)
    for name in ("Win_create_c", "Win_allocate_c", "Win_allocate_shared_c", "Win_shared_query_c"):
        found.update({f"MPI_{name}", f"PMPI_{name}"})
    return found | {name for base in ALWAYS for name in (base, "P" + base)}


def main():
    ours = exported(sys.argv[1])
    host = exported(host_library(sys.argv[1]))
    if not {"MPI_Win_fence", "PMPI_Win_fence"} <= host:
        print(f"{host_library(sys.argv[1])} exports no windows: not the host's library?")
        return 1
    names = wanted(host)
    missing = sorted(names - ours)
    for name in missing:
        print(f"not ok {name} is the host's")
    if not missing:
        print(f"ok all {len(names)} functions are interposed")
    return 1 if missing else 0


sys.exit(main())
