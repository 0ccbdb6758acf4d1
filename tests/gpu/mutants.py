#!/usr/bin/python3
"""Removes one step of the support for memory of GPUs at a time, and expects a case of the tests here
to fail or to hang, on the stand-in for the driver: what is on a stream is held until a call waits
for it, and then delayed.

mutants.py --build FOLDER: a build folder. Rows take turns with its hosts. Each row has a file of src/, a piece that is
there once, its replacement, the program, its case, and the removed step. The unchanged library must
pass. The status is 0 if every mutant is noticed. --rows only checks that the rows follow the code."""

import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import mutation  # noqa: E402

TREE = os.path.dirname(os.path.dirname(HERE))
LIBRARY = "lib/oriel/%s/liboriel.so"
ATTEMPTS = 6  # each has other delays: a mutant may pass once
SETTINGS = ("STANDIN_STRICT=1", "STANDIN_HOLD=1", "STANDIN_DELAY_US=2000")
OPTIONS = {"device_pipeline": ["--node-size", "1"]}  # of tests/launch

MUTANTS = [
    ("gpu/gpu.c", "vendor_load()->stream_wait(&begun->streams[i])", "ORIEL_OK",
     "device_order", "puts_complete", "the calls that complete wait for the streams"),
    ("gpu/cuda/driver.c", "const oriel_cu_result ended = oriel_cu.stream_synchronize(stream);",
     "const oriel_cu_result ended = ORIEL_CU_SUCCESS;",
     "device_windows", "accumulates", "copies and kernels of an accumulate have ended before its next step"),
    ("api/flush.c", "const enum oriel_status ended = oriel_deferred_copies_end(window);", "const enum oriel_status ended = ORIEL_OK;",
     "device_order", "puts_complete", "a flush waits for the streams"),
    ("api/flush.c", "status = oriel_deferred_copies_end(window);", "",
     "device_order", "extensions_complete", "MPIX_Win_order waits for the streams"),
    ("api/passive.c", "const enum oriel_status done = oriel_deferred_complete(window, rank);", "const enum oriel_status done = ORIEL_OK;",
     "device_order", "puts_complete", "MPI_Win_unlock waits for the streams"),
    ("api/passive.c", "const enum oriel_status ended = oriel_deferred_copies_end(window);", "const enum oriel_status ended = ORIEL_OK;",
     "device_order", "puts_complete", "MPI_Win_unlock_all waits for the streams"),
    ("api/synchronise.c", "const enum oriel_status done = oriel_deferred_complete(window, -1);\n    status = oriel_fence(",
     "const enum oriel_status done = ORIEL_OK;\n    status = oriel_fence(",
     "device_order", "puts_complete", "a fence waits for the streams"),
    ("api/synchronise.c", "const enum oriel_status done = oriel_deferred_complete(window, -1);\n    const enum oriel_status status = oriel_complete(",
     "const enum oriel_status done = ORIEL_OK;\n    const enum oriel_status status = oriel_complete(",
     "device_order", "puts_complete", "MPI_Win_complete waits for the streams"),
    ("api/put_get_entry.c", "code = oriel_error_raise(window, form->call, oriel_deferred_copies_end(window));", ";",
     "device_order", "buffers_complete", "a request is complete when the streams are"),
    ("api/notify_entry.c", "oriel_deferred_complete(window, target->rank);", "ORIEL_OK;",
     "device_order", "extensions_complete", "a notification follows the copies"),
    ("api/persistent_put_get.c", "oriel_put(window, &operation->target, transfer->here, &transfer->origin);\n"
     "    return status == ORIEL_OK ? oriel_deferred_copies_end(window) : status;",
     "oriel_put(window, &operation->target, transfer->here, &transfer->origin);\n    return status;",
     "device_order", "extensions_complete", "a persistent request of a put is complete when the streams are"),
    ("gpu/gpu.c", "? vendor_load()->stream_wait(&stream)", "? ORIEL_OK",
     "device_order", "stream_named", "an operation that computes waits for the stream that the program has named"),
    ("rma/device_buffers.c", "is_copied_by_driver(window, target)\n               ? ORIEL_OK\n               : oriel_device_wait(window)",
     "is_copied_by_driver(window, target) ? ORIEL_OK : ORIEL_OK",
     "device_order", "stream_named_host_buffers", "a put or get of host memory waits for the stream that the program has named"),
    ("rma/copy_remote.c", "remote->begun != NULL && oriel_gpu_stream_wait(remote->begun) != ORIEL_OK", "false",
     "device_order", "stream_named_host_buffers", "a get of pieces with their gaps waits for the stream that the program has named"),
    ("rma/accumulate.c", "*status = oriel_update_lock(update);\n    if (*status != ORIEL_OK)\n        return true;\n    const bool is_done",
     "const bool is_done",
     "device_kernels", "mixed", "a kernel runs under the target's accumulate lock"),
    ("rma/accumulate.c", "enum oriel_status status = oriel_update_lock(update);\n    if (status != ORIEL_OK)\n        return status;\n"
     "    if (path.cpu_reaches)\n        oriel_update_begin_plain(update);",
     "enum oriel_status status = ORIEL_OK;\n    if (path.cpu_reaches)\n        oriel_update_begin_plain(update);",
     "device_kernels", "mixed", "so does an update that the processor computes"),
    ("gpu/cuda/pointer.c", "ORIEL_CU_SUCCESS &&\n        id == entry->id)", "ORIEL_CU_SUCCESS)",
     "device_forms", "regrown", "a cached range is valid for its buffer id only"),
    ("gpu/look.c", "oriel_tls_cache_invalidate();", "",
     "device_load", "dependency/allocate", "windows leave the threads' caches when the driver is loaded"),
    ("rma/accumulate.c", "*status = operand_check(origin);", "*status = ORIEL_OK;",
     "device_errors", "freed_buffer", "a kernel gets no freed buffer as origin"),
    ("rma/accumulate.c", "*status = operand_check(result);", ";",
     "device_errors", "freed_buffer", "a kernel gets no freed buffer as result"),
    ("rma/device_maps.c", "entry_find(NULL, map->pid, map->id, map->start) == NULL", "map->window == window",
     "device_windows", "one_allocation", "the last window of an allocation unmaps it"),
    ("rma/device_pipeline.c", "pthread_mutex_lock(&mutex);", "",
     "device_pipeline", "threads", "P1: one operation has the buffers"),
    ("rma/device_pipeline.c", "status = copies_end(line);\n    if (status == ORIEL_OK && line->left_bytes > 0)",
     ";\n    if (status == ORIEL_OK && line->left_bytes > 0)",
     "device_pipeline", "sizes", "P2: a part of a put is sent when its copy has ended"),
    ("rma/device_pipeline.c", "oriel_internode_flush_until(line->window, line->target, line->until[line->copied % BUFFERS])", "ORIEL_OK",
     "device_pipeline", "sizes", "P3: a part of a get is copied when it has arrived"),
    ("rma/device_pipeline.c", "status = copies_end(line);\n    return status == ORIEL_OK ? part_copy(line) : status;",
     ";\n    return status == ORIEL_OK ? part_copy(line) : status;",
     "device_pipeline", "sizes", "P3: a part of a get is requested when the copy from its buffer has ended"),
    ("rma/device_pipeline.c", "oriel_first_failure_record(&first, copies_end(line));\n    if (line->has_buffers)", "if (line->has_buffers)",
     "device_pipeline", "sizes", "P4: a get returns when the last copy has ended"),
]


def source(name):
    with open(os.path.join(TREE, "src", name), encoding="utf-8") as file:
        return file.read()


def stale_rows():
    for name, piece, instead, _, _, step in MUTANTS:
        try:
            mutation.replace(source(name), piece, instead)
        except mutation.Stale as stale:
            yield f"{name}: {step}: {stale}"


def passes(library, host, program, case, seed):
    settings = [f"STANDIN_SEED={seed}", f"LD_LIBRARY_PATH={library.build}/tests/gpu/standin", f"TEST_PLUGIN={library.build}/tests/gpu/device_plugin.so", *SETTINGS]
    command = [os.path.join(TREE, "tests", "launch"), "--build", library.folder, "--host", host, "-n", "2", "--timeout", "60",
               *OPTIONS.get(program, []), *(word for setting in settings for word in ("--env", setting)),
               "--", f"{library.build}/tests/gpu/{host}/{program}", "--only", case]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build")
    parser.add_argument("--only", default="", help="only the rows with this in their file or step")
    parser.add_argument("--rows", action="store_true")
    args = parser.parse_args()
    complaints = list(stale_rows())
    if complaints or args.rows:
        print(*complaints, f"{len(MUTANTS)} rows, {len(complaints)} do not follow the code", sep="\n")
        return 1 if complaints else 0
    build = os.path.abspath(args.build)
    hosts = [host for host in ("mpich", "openmpi") if os.path.exists(os.path.join(build, LIBRARY % host))]
    rows = [(hosts[i % len(hosts)], row) for i, row in enumerate(MUTANTS) if args.only in row[0] or args.only in row[5]]
    with tempfile.TemporaryDirectory() as folder:
        libraries = {host: mutation.Library(TREE, build, os.path.join(folder, host), LIBRARY % host) for host in hosts}
        for host, program, case in sorted({(host, *row[3:5]) for host, row in rows}):
            if not passes(libraries[host], host, program, case, 1):
                complaints.append(f"{host} {program} {case}: the unchanged library fails")
        for host, (name, piece, instead, program, case, step) in rows:
            library = libraries[host]
            library.make(name, mutation.replace(source(name), piece, instead))
            noticed = next((i for i in range(1, ATTEMPTS + 1) if not passes(library, host, program, case, i)), None)
            print(f"{host}: noticed by attempt {noticed}:" if noticed else f"{host}: not noticed:", step, flush=True)
            complaints += [] if noticed else [f"{name}: {step}: {program} {case} does not notice"]
    print(*complaints, f"{len(rows)} mutants, {len(complaints)} complaints", sep="\n")
    return 1 if complaints or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
