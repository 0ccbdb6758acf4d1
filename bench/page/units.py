"""Numbers with units for the pages: times, sizes, rates, ratios, and the ticks of logarithmic axes.

Numbers have at most three significant digits and always a unit. This module does not depend on HTML."""

import math

TIMES = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]
RATES = [(1.0, "GB/s"), (1e-3, "MB/s"), (1e-6, "kB/s"), (1e-9, "B/s")]
SIZES = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")]
# A ratio this close to 1 is noise: runs of one program differ as much.
EVEN = 0.05
VARIES = 1.5  # the maximum of a result's runs over the minimum: above, one of them is an outlier


def number(value):
    """A finite number above zero, which a logarithmic axis and a ratio need; otherwise None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) and value > 0 else None


def digits(value):
    """Three significant digits, without trailing zeros after the point."""
    if value >= 100:
        return f"{value:,.0f}"
    text = f"{value:.{1 if value >= 10 else 2 if value >= 1 else 3}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def scaled(value, units):
    for scale, unit in units:
        if value >= scale * 0.9995:
            break
    return f"{digits(value / scale)} {unit}"


def duration(ns):
    return scaled(ns, TIMES)


def size(count):
    return scaled(count, SIZES)


def rate(gigabytes_s):
    """A bandwidth; 1 GB is 1e9 bytes."""
    return scaled(gigabytes_s, RATES)


def ratio(value):
    if value >= 9.95:
        return f"{value:,.0f}×"
    if value >= 0.995:
        return f"{value:.1f}×"
    return f"{value:.2f}×" if value >= 0.0995 else f"{value:.2g}×"


def factor(value):
    """The words for one time divided by another."""
    if abs(value - 1) <= EVEN:
        return "about even"
    return f"{ratio(value)} faster" if value > 1 else f"{ratio(1 / value)} slower"


def verdict(value):
    return "faster" if value > 1 + EVEN else "slower" if value < 1 - EVEN else "even"


def log_domain(values):
    """Limits of a logarithmic axis around the values: the next of 1, 2, 5 at both ends, and never an empty range."""
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    power = 10.0 ** math.floor(math.log10(low))
    low = max(step * power for step in (1, 2, 5) if step * power <= low * 1.0001)
    power = 10.0 ** math.floor(math.log10(high))
    high = min(step * power for step in (1, 2, 5, 10) if step * power >= high * 0.9999)
    return (low, high) if high > low * 1.5 else (low / 2, high * 2)


def log_ticks(domain, text):
    """[[value, label]] at powers of ten, and at 2 and 5 times these in a short range."""
    low, high = domain
    decades = math.log10(high / low)
    steps = (1,) if decades > 2.5 else (1, 2, 5) if decades < 1.8 else (1, 3)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    values = [step * 10.0 ** power for power in powers for step in steps]
    return [[value, text(value)] for value in values if low * 0.9999 <= value <= high * 1.0001]
