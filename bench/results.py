"""The benchmark's results as one JSON object, and where they are written.
Its schema is in docs/benchmark.md; a cell that was not reached is absent.
Imported by bench.py."""

import json
import os
import platform
import tempfile
from datetime import datetime, timezone

import catalogue
import jobs

SCHEMA = 1


def now():
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _processor():
    try:
        with open("/proc/cpuinfo") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine() or "unknown"


def _result(column, cell):
    pattern, samples, best = catalogue.pattern_of(cell), column.samples.get(cell, []), column.best(cell)
    status, reason = column.failed.get(cell, ("ok", ""))
    return {
        "pattern": cell.pattern, "title": pattern.title, "group": pattern.group, "memory": cell.memory, "ranks": cell.ranks,
        "bytes": cell.bytes, "in_flight": cell.in_flight, "column": column.name, "unit": "ns", "samples": samples,
        "best": best, "bandwidth": round(cell.bytes / best * 1e9, 1) if best and cell.bytes else None,
        "status": status, "reason": reason, "way": column.ways.get(cell, ""),
        "way_reason": column.whys.get(cell, ""), "limit": pattern.limit_of(cell),
    }


def _results(bench):
    listed = []
    for cell in bench.cells:
        listed += [_result(column, cell) for column in displayed(bench) if cell in column.samples or cell in column.failed]
    listed += [_result(bench.raw, cell) for cell in bench.raw_cells
               if cell in bench.raw.samples or cell in bench.raw.failed]
    return listed


def displayed(bench):
    """The hosts first, then Oriel."""
    return [c for c in bench.columns if not c.oriel] + [c for c in bench.columns if c.oriel]


def gather(bench, version, began, elapsed_s, complete):
    unsaid = ("json", "html", "list", "version", "limit", "enough_s")
    options = {name: value for name, value in vars(bench.options).items() if name not in unsaid}
    options["limit_s"] = bench.options.limit
    alone = [column for column in bench.columns if not column.oriel]
    return {
        "schema": SCHEMA, "oriel": version, "complete": complete, "elapsed_s": round(elapsed_s, 1),
        "machine": {
            "processor": _processor(), "cores": jobs.cores(), "kernel": platform.system() + " " + platform.release(),
            "date": began,
            "hosts": [{"name": c.host, "title": c.title, "version": c.version(), "library": c.library} for c in alone],
        },
        "options": dict(options, form="quick" if bench.options.quick else "full", runs=bench.runs),
        "columns": [{"name": c.name, "title": c.title, "host": c.host, "oriel": c.oriel}
                    for c in displayed(bench) + [bench.raw]],
        "notes": bench.notes,
        "results": _results(bench),
    }


def check_writable(path):
    """Raises OSError where the file could not be written at the end; leaves everything as it is."""
    existed = os.path.exists(path)
    with open(path, "a"):
        pass
    if not existed:
        os.remove(path)


def write(results, path):
    """Replaces a regular file at once, so that whoever reads it finds the old or the new results."""
    text = json.dumps(results, indent=1) + "\n"
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "w") as out:
            out.write(text)
        return
    folder = os.path.dirname(os.path.realpath(path))
    try:
        fd, beside = tempfile.mkstemp(prefix=".oriel-bench.", dir=folder)
    except OSError:  # a folder that takes no new file may hold one that can be written
        with open(path, "w") as out:
            out.write(text)
        return
    try:
        with os.fdopen(fd, "w") as out:
            out.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, os.stat(path).st_mode & 0o777 if os.path.exists(path) else 0o666 & ~mask)
        os.replace(beside, os.path.realpath(path))
    except OSError:
        os.remove(beside)
        raise


def keep(results):
    """Writes the results where there surely is room for a file of ours; returns its name."""
    with tempfile.NamedTemporaryFile("w", prefix="oriel-bench.", suffix=".json", delete=False) as out:
        json.dump(results, out, indent=1)
    return out.name


def write_or_keep(results, path):
    """Writes the file or, where that fails now, another one. Returns None or what to tell."""
    try:
        write(results, path)
        return None
    except OSError as error:
        return "%s: %s; the results are in %s" % (path, error.strerror, keep(results))
