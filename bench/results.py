"""The benchmark's results as one JSON object, and its output files.
docs/results/benchmark.md has the schema; a cell that was not reached is absent."""

import errno
import json
import os
import platform
import stat
import tempfile
from datetime import datetime, timezone

import catalogue
import jobs
import overnet

SCHEMA = 2


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
    spread = column.spread(cell)
    status, reason = column.failed.get(cell, ("ok", ""))
    return {
        "pattern": cell.pattern, "title": pattern.title, "group": pattern.group, "memory": cell.memory, "ranks": cell.ranks,
        "bytes": cell.bytes, "in_flight": cell.in_flight, "column": column.name, "unit": "ns", "samples": samples,
        "best": best, "median": spread and spread.median, "maximum": spread and spread.most,
        "varies": bool(spread and spread.varies()), "bandwidth": round(cell.bytes / best * 1e9, 1) if best and cell.bytes else None,
        "status": status, "reason": reason, "path": column.paths.get(cell, ""),
        "path_reason": column.path_reasons.get(cell, ""), "limit": pattern.limit_of(cell),
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
    unsaid = ("json", "html", "list", "version", "limit", "enough_s", "compare")
    options = {name: value for name, value in vars(bench.options).items() if name not in unsaid}
    options["limit_s"] = bench.options.limit
    alone = [column for column in bench.columns if not column.oriel]
    return {
        "schema": SCHEMA, "oriel": version, "complete": complete, "elapsed_s": round(elapsed_s, 1), "command": bench.command,
        "machine": {
            "node": platform.node(),
            "processor": _processor(), "cores": jobs.cores(), "kernel": platform.system() + " " + platform.release(),
            "date": began,
            "hosts": [{"name": c.host, "title": c.title, "version": c.version(), "library": c.library} for c in alone],
        },
        "options": dict(options, form="quick" if bench.options.quick else "full", runs=bench.runs),
        "columns": [{"name": c.name, "title": c.title, "host": c.host, "oriel": c.oriel}
                    for c in displayed(bench) + [bench.raw]],
        "load": bench.load.record(), "warnings": bench.warnings(), "notes": bench.notes,
        "results": _results(bench),
        **({"figures": overnet.figures(bench)} if bench.options.net else {}),
    }


def _stream_of(path):
    """1 or 2 if the path is that stream (/dev/stdout): opening it again would overwrite a redirected file."""
    for fd in (1, 2):
        try:
            if os.path.samestat(os.stat(path), os.fstat(fd)):
                return fd
        except OSError:
            continue
    return None


def is_replaced(path):
    """True for an existing or new regular file; other files are written once, at the end."""
    return _stream_of(path) is None and (os.path.isfile(path) or not os.path.exists(path))


def are_same(path, other):
    """True when writing one would overwrite the other."""
    try:
        found = os.stat(path), os.stat(other)
        return os.path.samestat(*found) and not stat.S_ISCHR(found[0].st_mode)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def check_writable(path):
    """Raises OSError when the file is not writable; changes nothing."""
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not is_replaced(path):  # opening a FIFO would wait for its reader
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return
    existed, place = os.path.exists(path), os.path.realpath(path)  # a dangling link is kept, and its target written
    with open(place, "a"):
        pass
    if not existed:
        os.remove(place)


def _write_plainly(text, file):
    with open(file, "w", encoding="utf-8", newline="\n") as out:
        out.write(text)


def write_text(text, path):
    """Replaces a regular file atomically: readers see the old or the new text."""
    if not is_replaced(path):
        stream = _stream_of(path)
        _write_plainly(text, path if stream is None else os.dup(stream))
        return
    place = os.path.realpath(path)
    try:
        fd, temporary = tempfile.mkstemp(prefix=".oriel-bench.", dir=os.path.dirname(place))
    except OSError:  # a read-only folder may contain a writable file
        _write_plainly(text, place)
        return
    try:
        _write_plainly(text, fd)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, os.stat(place).st_mode & 0o777 if os.path.exists(place) else 0o666 & ~mask)
        os.replace(temporary, place)
    except BaseException:
        os.remove(temporary)
        raise


def write(results, path):
    write_text(json.dumps(results, indent=1) + "\n", path)


def keep(results):
    """Writes the results to a new temporary file. Returns a message with its path, or one that they are lost."""
    try:
        with tempfile.NamedTemporaryFile("w", prefix="oriel-bench.", suffix=".json", delete=False) as out:
            try:
                json.dump(results, out, indent=1)
                out.flush()
            except BaseException:
                os.remove(out.name)
                raise
    except OSError as error:
        return "the results are in no file: " + ": ".join(text for text in (error.filename, error.strerror) if text)
    return "the results are in " + out.name


def write_or_keep(results, path):
    """Writes the file, or another one if that fails. Returns None or a message."""
    try:
        write(results, path)
        return None
    except OSError as error:
        return "%s: %s; %s" % (path, error.strerror, keep(results))
