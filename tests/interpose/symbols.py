#!/usr/bin/python3
"""Compares the names that Oriel's libraries export with the host's and with the stored list.

liboriel.so must export all of the host's window functions: C and Fortran names, MPI_ and PMPI_,
large counts included, from the dynamic symbol tables. The host is the library that liboriel.so
itself needs. liboriel.so exports exactly the names in exports.HOST.txt, under the SONAME there, and
with the same SONAME has all names of the last release (released.HOST.txt). The other libraries in
its folder export only names of their own kind.

symbols.py HOST FOLDER; --write regenerates the list."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

OPERATIONS = "Put|Get|Accumulate|Get_accumulate|Fetch_and_op|Compare_and_swap|Rput|Rget|Raccumulate|Rget_accumulate"
MEMORY = "Alloc_mem|Free_mem"
WINDOW = re.compile(rf"^P?MPI_(Win_[A-Za-z_]+|{OPERATIONS}|{MEMORY})$|^P?MPI_({OPERATIONS})_c$")
# Functions that remain the host's: names, user attributes, error handlers, handle conversion.
HOSTS_OWN = re.compile(r"^P?MPI_Win_(set_name|get_name|create_keyval|free_keyval|delete_attr|set_attr|c2f|f2c"
                       r"|create_errhandler|set_errhandler|get_errhandler|call_errhandler|toint|fromint)(_c)?$")
ALWAYS = ["MPI_Get_library_version", "MPI_Init", "MPI_Init_thread", "MPI_Comm_spawn", "MPI_Comm_spawn_multiple",
          "MPI_Group_free", "MPI_Comm_free", "MPI_Comm_disconnect",
          "MPI_Wait", "MPI_Test", "MPI_Waitany", "MPI_Testany", "MPI_Waitall", "MPI_Testall", "MPI_Waitsome", "MPI_Testsome",
          "MPI_Request_get_status", "MPI_Start", "MPI_Startall", "MPI_Cancel", "MPI_Request_free"]

# The names that liboriel.so may export: MPI's, Oriel's, dlsym, dlopen, functions that a host's Fortran
# library calls in its own C library, the UCX function that MPICH calls while it waits, madvise and
# mremap.
NAMES = {"mpich": re.compile(r"P?MPIX?_[A-Z]|oriel_|dl(sym|open)$|MPII_Win_[gs]et_attr$|ucp_worker_progress$|madvise$|mremap$"),
         "openmpi": re.compile(r"P?MPIX?_[A-Z]|oriel_|dl(sym|open)$|p?mpi_win_[gs]et_attr_{0,2}$|mpi_win_get_name_f08_$|"
                               r"ompi_win_[gs]et_attr_f$|madvise$|mremap$"),
         "abi": re.compile(r"P?MPIX?_[A-Z]|oriel_|dl(sym|open)$|ucp_worker_progress$|madvise$|mremap$")}
RUNTIME = re.compile(r"__tsan_|Annotate[A-Z]|(__)?mem(cpy|move|set|cmp)(_chk)?$|"
                     r"GOMP_[a-z]|gomp_|omp_[a-z]|__cxa_guard_(acquire|release)$|call_once$|pthread_[a-z]|sem_[a-z]|"
                     r"(thrd|mtx|cnd)_[a-z]")
OTHERS = {"liboriel_check.so": re.compile(r"P?MPIX?_[A-Z]|dlsym$|oriel_check_watch$|"
                                             r"(free|realloc|munmap)$|(__)?(mem(p?cpy|move|set)|strn?cpy|f?read)(_chk)?$|"
                                             r"(pread|pwrite)(64)?$|(f?write|readv|writev)$|(send|recv)(msg|to|from)?$"),
          "libtsan.so.2": RUNTIME,
          f"libclang_rt.tsan-{os.uname().machine}.so": RUNTIME}


# Of hosts of some versions.
NEWER = {f"{prefix}MPI_{name}" for prefix in ("", "P")
         for name in ("Session_init", "Session_finalize", "Request_get_status_all", "Request_get_status_any",
                      "Request_get_status_some", "T_category_get_events", "T_category_get_num_events")}


def exported(library):
    output = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in output.splitlines()]
    return {row[-1].split("@")[0] for row in rows if row[-2] != "A"}  # without version names


def soname(library):
    output = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return re.search(r"\(SONAME\).*\[(.*)\]", output).group(1)


def host_library(library):
    """The path of the MPI library that the loader finds for liboriel.so."""
    output = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return re.search(r"^\s*lib(?:mpi|mpich|mpi_abi)\.so\S* => (\S+)", output, re.MULTILINE).group(1)


def wanted(names):
    found = {name for name in names if WINDOW.match(name) and not HOSTS_OWN.match(name)}
    found.discard("MPI_Win_get_attr_c")
    # Oriel defines large counts on every host, even if the host does not.
    for name in [f"{prefix}MPI_{operation}_c" for operation in OPERATIONS.split("|")
                 for prefix in ("", "P") if operation not in ("Fetch_and_op", "Compare_and_swap")]:
        found.add(name)
    for name in ("Win_create_c", "Win_allocate_c", "Win_allocate_shared_c", "Win_shared_query_c"):
        found.update({f"MPI_{name}", f"PMPI_{name}"})
    return found | {name for base in ALWAYS for name in (base, "P" + base)}


def interposed(library, ours):
    """Whether Oriel overrides all of the host's window functions."""
    host = exported(host_library(library))
    if not {"MPI_Win_fence", "PMPI_Win_fence"} <= host:
        print(f"{host_library(library)} exports no windows: not the host's library?")
        return False
    names = wanted(host)
    missing = sorted(names - ours)
    for name in missing:
        print(f"not ok {name} is the host's")
    if not missing:
        print(f"ok all {len(names)} functions are interposed")
    return not missing


def listed(path, lines, host):
    """Whether the stored list equals the exported names; newer ones where the host has them."""
    with open(path, encoding="utf-8") as file:
        expected = [name for name in file.read().splitlines() if name not in NEWER or name in host]
    for name in sorted(set(lines) - set(expected)):
        print(f"not ok {name} is not in {path}: meant for programs? then symbols.py --write, else hide it")
    for name in sorted(set(expected) - set(lines)):
        print(f"not ok {name} is in {path} only: programs may be linked to it")
    if expected == lines:
        print(f"ok {lines[0]} exports the {len(lines) - 1} names of {os.path.basename(path)}")
    return expected == lines


def of_kind(library, kind):
    """Whether all names that a library exports are of its kind."""
    names = exported(library)
    others = sorted(name for name in names if not kind.match(name))
    for name in others:
        print(f"not ok {os.path.basename(library)} exports {name}")
    if names and not others:
        print(f"ok {os.path.basename(library)} exports nothing but {kind.pattern}")
    return bool(names) and not others


def compatible(host, lines):
    """Whether programs that are linked to the last release still find all names, unless the SONAME has changed."""
    path = os.path.join(HERE, f"released.{host}.txt")
    if not os.path.exists(path):  # the standard ABI came after it
        return True
    with open(path, encoding="utf-8") as file:
        released = file.read().split()
    gone = sorted(set(released) - set(lines)) if released[0] == lines[0] else []
    for name in gone:
        print(f"not ok the last release exports {name}, under the same SONAME")
    if not gone:
        print("ok has all names of the last release, or another SONAME")
    return not gone


def main():
    write = "--write" in sys.argv
    host, folder = [word for word in sys.argv[1:] if word != "--write"]
    library = os.path.join(folder, "liboriel.so")
    path = os.path.join(HERE, f"exports.{host}.txt")
    ours = exported(library)
    lines = [soname(library)] + sorted(ours)
    if write:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    good = [interposed(library, ours), listed(path, lines, exported(host_library(library))),
            os.path.realpath(os.path.join(folder, lines[0])) == os.path.realpath(library),
            of_kind(library, NAMES[host]), compatible(host, lines)]
    good += [of_kind(os.path.join(folder, name), kind) for name, kind in OTHERS.items()]
    return 0 if all(good) else 1


sys.exit(main())
