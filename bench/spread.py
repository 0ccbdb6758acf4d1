"""The spread of a result over its runs, and numbers with units that people read.

The minimum is the figure that counts: other load only adds to a time. Median and maximum show how far to trust it.
This module does not depend on hosts or jobs."""

import statistics

VARIES = 1.5  # the maximum over the minimum: above, one of the runs is an outlier
FAR = 100
EVEN = 0.05  # two times this close are about the same: runs of one program differ as much
TIMES = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))


class Spread:
    """Minimum, median and maximum of a result's samples in ns."""

    def __init__(self, samples):
        self.runs = len(samples)
        self.least, self.median, self.most = min(samples), statistics.median(samples), max(samples)

    def varies(self):
        return self.most > VARIES * self.least

    def text(self):
        """"3.1/3.3/4 ns", or "3.1 ns" of one run; "!" marks an outlier. Values far from each other have units of their own."""
        if self.runs == 1:
            return human(self.least)
        values = [self.least, self.median, self.most]
        unit, scale = _unit(self.median)
        if self.most > FAR * self.least:
            return "/".join(map(human, values)).replace(" ", "") + " !"
        return "/".join(digits(value / scale) for value in values) + " " + unit + (" !" if self.varies() else "")


def _unit(ns):
    return next(((unit, scale) for unit, scale in reversed(TIMES) if ns >= scale * 0.9995), TIMES[0])


def digits(value):
    """Three significant digits, without trailing zeros after the point."""
    if value >= 99.95:
        return format(value, ",.0f")
    return ("%.1f" % value if value >= 9.995 else "%.2f" % value).rstrip("0").rstrip(".")


def human(ns):
    unit, scale = _unit(ns)
    return digits(ns / scale) + " " + unit


def human_bytes(count):
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return "%d %s" % (count // scale, unit)
    return "%s B" % format(count, ",")


def factor(value):
    """A factor of at least 1."""
    return "%.0f %%" % (100 * (value - 1)) if value < 1.945 else "%.1f times" % value if value < 9.95 else format(value, ",.0f") + " times"


def faster_or_slower(ratio):
    """The words for one time divided by another: "3.1 times faster", "20 % slower", "about even"."""
    if abs(ratio - 1) <= EVEN:
        return "about even"
    return factor(ratio) + " faster" if ratio > 1 else factor(1 / ratio) + " slower"
