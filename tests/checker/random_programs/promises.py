"""Assertions of fences and posts in a generated program. The generator adds them last, when all
steps up to the next synchronisation are known, and adds only true ones."""

import collections

import program as p


def draw(random, ranks, steps):
    """Adds some true assertions to the program's fences and posts."""
    put = puts(steps)
    stored = stores(steps)
    fences, counts, used = collections.Counter(), collections.Counter(), set()
    together = {}
    for step in steps:
        if step.what not in ("fence", "post"):
            continue
        window, rank = step.window, step.rank
        key = (window, step.what, rank)
        counts[key] += 1
        may = 0
        if step.what == "fence":
            # Odd fences begin a phase and even fences end it: no access is outstanding before a
            # phase or after it.
            alike = p.NOPRECEDE if counts[key] % 2 == 1 else p.NOSUCCEED
            if (window, counts[key]) not in together:
                together[window, counts[key]] = alike if random.random() < 0.5 else 0
            may |= together[window, counts[key]]
        if (window, step.what, rank, counts[key]) not in put and random.random() < 0.5:
            may |= p.NOPUT
        # The initialisation of the window's memory is a store.
        if (window, rank) in used and (window, rank) not in stored and random.random() < 0.5:
            may |= p.NOSTORE
        used.add((window, rank))
        step.fields = (*step.fields[:-1], may)


def puts(steps):
    """The fences and posts, by target and number, whose epochs contain a put."""
    found, counts = set(), collections.Counter()
    for step in steps:
        if step.what in ("fence", "post"):
            counts[step.window, step.what, step.rank] += 1
        elif step.what == "op" and p.KINDS[step.fields[0]] not in p.GETS:
            for what in ("fence", "post"):
                # A fence applies to all ranks. A post precedes the accesses that it permits.
                found.add((step.window, what, step.fields[3], counts[step.window, what, step.fields[3]]))
    return found


def stores(steps):
    """The (window, rank) pairs whose memory some operation writes as a local buffer, at any
    time."""
    windows = {step.window for step in steps if step.what == "window"}
    found = set()
    for step in steps:
        written = []
        if step.what == "op":
            kind, count, origin, result, origin_count = (step.fields[i] for i in (0, 5, 8, 9, 12))
            if p.KINDS[kind] in p.GETS:
                written = step.origin.runs(origin, origin_count)
            elif result >= 0:
                written = step.type.runs(result, count)
        elif step.what == "recv":
            written = [(step.fields[1], step.fields[1] + 4)]
        found.update((window, step.rank) for window in windows if window.is_in_arena()
                     for low, high in written if low < window.at + window.size and window.at < high)
    return found
