"""The results of two runs of `oriel bench`, cell by cell: which times changed, and which differences lie within the noise.

A time changed if the ranges of both runs' samples do not overlap, and the medians differ by more than the noise of the machine. That is
at least 5 %, and more if its raw operations, which contain no MPI, changed more: then the machine is not as it was."""

import json
import statistics

from spread import EVEN, VARIES, Spread, faster_or_slower

CELL = ("pattern", "memory", "ranks", "bytes", "in_flight")
RAW_LEAST = 3  # raw operations that make the machine's change known
SCHEMA = 2


class Unusable(Exception):
    """A file that has no results; the text has the reason."""


def read(path):
    """The results in a file of --json."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not JSON"
        raise Unusable("%s: %s" % (path, reason)) from None
    if not isinstance(found, dict) or not isinstance(found.get("results"), list) or "schema" not in found:
        raise Unusable("%s has no results of oriel bench --json" % path)
    if found["schema"] != SCHEMA:
        raise Unusable("%s has results of another version of oriel bench" % path)
    return _harmless(found)


def _harmless(value):
    """The same value whose texts steer no terminal."""
    if isinstance(value, dict):
        return {key: _harmless(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_harmless(part) for part in value]
    return "".join(letter if letter.isprintable() else "?" for letter in value) if isinstance(value, str) else value


def arguments_of(found):
    """The options that select the same measurements."""
    options = found["options"] if isinstance(found.get("options"), dict) else {}
    listed = []
    for name in ("quick", "net", "alignment", "alone"):
        listed += ["--" + name] if options.get(name) is True else []
    for name in ("groups", "patterns", "memories", "sizes", "ranks", "hosts"):
        if isinstance(options.get(name), list) and options[name]:
            listed += ["--" + name, ",".join(map(str, options[name]))]
    if isinstance(options.get("runs"), int) and options["runs"] > 0:
        listed += ["--runs", str(options["runs"])]
    return listed


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e18


def _spreads(found):
    """By cell and column: the result and its Spread, or None for a failure."""
    spreads = {}
    for result in found["results"]:
        if not isinstance(result, dict) or [type(result.get(name)) for name in (*CELL, "column")] != [str, str, int, int, int, str]:
            continue
        samples = result.get("samples") if isinstance(result.get("samples"), list) else []
        usable = result.get("status") == "ok" and samples and all(map(_number, samples))
        key = tuple(result[name] for name in (*CELL, "column"))
        spreads[key] = result, Spread(samples) if usable else None
    return spreads


def machine_of(found):
    return found["machine"] if isinstance(found.get("machine"), dict) else {}


class Change:
    """One cell and column in both runs; before and after are None where it failed."""

    def __init__(self, result, before, after, noise):
        self.result, self.before, self.after = result, before, after
        self.ratio = before.median / after.median if before and after else None  # above 1 is faster
        self.verdict = self._verdict(noise)

    def _verdict(self, noise):
        if self.ratio is None:
            return "fails now" if self.before else "worked now" if self.after else "fails"
        factor = max(self.ratio, 1 / self.ratio)
        if 1 in (self.before.runs, self.after.runs):  # the spread is unknown
            within = factor <= max(VARIES, 1 + noise)
        else:
            overlap = self.before.least <= self.after.most and self.after.least <= self.before.most
            within = overlap or factor <= 1 + noise
        return "noise" if within else "faster" if self.ratio > 1 else "slower"

    def text(self):
        if self.verdict == "noise":
            return "within the noise (%+.0f %%)" % (100 * (1 / self.ratio - 1))
        return self.verdict if self.ratio is None else faster_or_slower(self.ratio)

    def record(self):
        def times(spread):
            return spread and {"minimum": spread.least, "median": spread.median, "maximum": spread.most, "runs": spread.runs}
        return dict({name: self.result[name] for name in (*CELL, "column")}, before=times(self.before), after=times(self.after),
                    verdict=self.verdict)


class Comparison:
    def __init__(self, before, after):
        self.before, self.after = before, after
        old, new = _spreads(before), _spreads(after)
        common = [key for key in new if key in old]
        ratios = [new[key][1].median / old[key][1].median for key in common if key[-1] == "raw" and old[key][1] and new[key][1]]
        self.machine = statistics.median(ratios) if len(ratios) >= RAW_LEAST else None  # its time now over that before
        self.noise = max(EVEN, max(self.machine, 1 / self.machine) - 1 if self.machine else 0)
        self.changes = [Change(new[key][0], old[key][1], new[key][1], self.noise) for key in common if old[key][1] or new[key][1]]
        self.missing, self.added = len(old) - len(common), len(new) - len(common)

    def slower(self):
        """Those of Oriel: the others show what the hosts and the machine did."""
        return [change for change in self.changes if change.verdict in ("slower", "fails now")
                and change.result["column"].startswith("oriel")]

    def notes(self):
        """What differs besides the times."""
        def hosts(found):
            listed = machine_of(found).get("hosts")
            return ", ".join("%s %s" % (host.get("title"), host.get("version")) for host in listed if isinstance(host, dict)) \
                if isinstance(listed, list) else ""
        for name, get in (("Oriel", lambda found: found.get("oriel")), ("processor", lambda found: machine_of(found).get("processor")),
                          ("cores", lambda found: machine_of(found).get("cores")), ("kernel", lambda found: machine_of(found).get("kernel")),
                          ("node", lambda found: machine_of(found).get("node")), ("hosts", hosts)):
            if get(self.before) and get(self.after) and get(self.before) != get(self.after):
                yield "%s: %s before, %s after" % (name, get(self.before), get(self.after))
        for when, found in (("before", self.before), ("after", self.after)):
            if found.get("complete") is False:
                yield "the run %s was interrupted" % when
            for warning in found["warnings"] if isinstance(found.get("warnings"), list) else []:
                yield "%s: %s" % (when, warning)
        if self.noise > EVEN:
            yield ("raw operations, without MPI, are %s now: the machine is not as it was, and differences up to that are noise"
                   % faster_or_slower(1 / self.machine))

    def ordered(self):
        """Slower ones first, the largest difference first, and noise at the end."""
        places = {"fails now": 0, "slower": 1, "worked now": 2, "faster": 3, "noise": 4, "fails": 5}
        return sorted(self.changes, key=lambda change: (places[change.verdict],
                                                        -max(change.ratio, 1 / change.ratio) if change.ratio else 0))

    def record(self):
        return {"date": machine_of(self.before).get("date"), "noise": round(self.noise, 4),
                "machine": self.machine and round(self.machine, 4), "results": [change.record() for change in self.changes]}
