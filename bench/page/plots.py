"""The content of the plots of the `oriel bench` page: values, texts, axes and tables, which the scripts only draw.

A plot's data are lists of equal length, with null for a missing figure; parallel lists have words for failures."""

import math

from . import figures, tables, units
from .skeleton import Markup, element

# The fields of each mark in a row of the overview.
KINDS = {"hosts-fail": 1, "oriel-fails": -1}


class Drawings:
    """The plots of a page, numbered; the scripts find each by its number."""

    def __init__(self):
        self.specs = []

    def figure(self, title, spec, table, memory=None, pattern=None):
        spec["title"] = title
        self.specs.append(spec)
        return element("figure", element("figcaption", title),
                       element("div", class_="plot " + spec["kind"], data_plot=str(len(self.specs) - 1)),
                       tables.details("As a table", table) if table is not None else None,
                       data_memory=memory, data_pattern=pattern)


class Card:
    """One plot of a section, with its table."""

    def __init__(self, title, spec, table, cell):
        self.title, self.spec, self.table = title, spec, table
        self.memory, self.pattern = cell.memory, cell.pattern


def legend(results, sort):
    """The legend of the columns' marks, drawn without script: every printed page needs it."""
    items = []
    for name, title in [(column.name, column.title) for column in results.columns] + [("raw", results.raw_title)]:
        if name == "raw" and not results.raw:
            continue
        marks = {"mpich": '<circle class="point" cx="16" cy="7" r="4"/>',
                 "openmpi": '<rect class="point" x="12" y="3" width="8" height="8"/>'}
        if sort == "bars" and name != "raw":
            drawn = '<rect class="bar" x="1" y="1" width="30" height="12"/>'
        elif name == "raw":
            drawn = '<path class="line" d="M16 0V14"/>' if sort == "bars" else '<path class="line" d="M0 7H32"/>'
        else:
            drawn = '<path class="line" d="M0 7H32"/>' + marks.get(name.replace("oriel-", ""), "")
        picture = Markup(f'<svg class="c-{column_class(name)}" width="32" height="14" aria-hidden="true">{drawn}</svg>')
        items.append(element("li", picture, title))
    return element("ul", *items, class_="legend")


def column_class(name):
    return name if name in figures.COLUMN_TITLES else "other"


def ratio_rows(results):
    rows = {}
    for cell in results.cells:
        if cell.outcome == "alone":
            continue
        key = (cell.pattern, cell.in_flight)
        row = rows.setdefault(key, {"label": results.name(cell), "pattern": cell.pattern,
                                    "group": group_title(cell.group), "items": []})
        parts = [units.size(cell.bytes) if cell.pattern in results.sized else "", f"{cell.ranks} ranks"]
        row["items"].append({
            "memory": cell.memory, "ratio": cell.ratio, "kind": KINDS.get(cell.outcome, 0), "outcome": cell.outcome,
            "text": tables.ratio_text(cell), "verdict": cell.verdict(), "where": ", ".join(part for part in parts if part),
            "figures": [[column.name, cell.figures[column.name].text()] for column in results.columns
                        if column.name in cell.figures]})
    return list(rows.values())


def ratio_tick(value):
    if value == 1:
        return "even"
    return f"{units.digits(value)}× faster" if value > 1 else f"{units.digits(1 / value)}× slower"


def ratios(rows):
    values = [item["ratio"] for row in rows for item in row["items"] if item["ratio"]]
    low, high = units.log_domain(values + [0.5, 2.0])
    steps = (1, 2, 5) if high / low < 2e4 else (1,)
    above = [step * 10.0 ** power for power in range(9) for step in steps]
    # In order of precedence for label space: the middle, then powers of ten, then values between.
    ticks = sorted((value for value in {*above, *(1 / value for value in above)} if low <= value <= high),
                   key=lambda value: (value != 1, round(math.log10(value), 9) % 1 != 0, value))
    return {"kind": "ratios", "rows": rows,
            "x": {"domain": [low, high], "ticks": [[tick, ratio_tick(tick)] for tick in ticks],
                  "label": "better host's time / slower Oriel's time"}}


def group_title(group):
    return figures.GROUPS.get(group, group) or "Other operations"


def bars(results, cells, peers):
    """The plot of some cells; peers are the cells that share its axis."""
    rows = []
    for cell in cells:
        rows.append({"label": results.label(cell), "pattern": cell.pattern,
                     "outcome": cell.outcome, "verdict": tables.ratio_text(cell) if cell.outcome != "alone" else "",
                     "bars": [[column.name, cell.figures[column.name].ns, cell.figures[column.name].text(),
                               spread(cell.figures[column.name]), most(cell.figures[column.name])]
                              for column in results.columns if column.name in cell.figures],
                     "limit": [cell.limit[0], units.duration(cell.limit[0]), cell.limit[1]] if cell.limit else None,
                     "limitRatio": f"Oriel takes {units.ratio(cell.limit_ratio)} the limit's time" if cell.limit_ratio else ""})
    values = [figure.ns for cell in peers for figure in cell.figures.values() if figure.ns]
    values += filter(None, (most(figure) for cell in peers for figure in cell.figures.values()))
    values += [cell.limit[0] for cell in peers if cell.limit]
    low, high = units.log_domain(values)
    domain = (low / 2, high)  # the shortest bar has a length too
    return {"kind": "bars", "rows": rows,
            "x": {"domain": domain, "ticks": units.log_ticks(domain, units.duration), "label": "time of one operation"}}


def spread(figure):
    """The tooltip of a figure, in addition to its value."""
    if figure.failed:
        return figure.reason
    return f"{len(figure.samples)} runs: minimum {figure.spread()}" if figure.spread() else ""


def most(figure):
    """The maximum of several runs, for the whisker of a bar; otherwise None."""
    return max(figure.samples) if figure.spread() else None


def heading(results, cell, x_text):
    return x_text(cell) + (f", {cell.in_flight} in flight" if cell.pattern in results.flown else "")


def lines(results, cells, x_of, x_text, y_of, y_text):
    """The plot of one pattern's cells in the order of x; y_of(ns, cell) is a figure's height."""
    series = []
    for column in results.columns:
        found = [cell.figures.get(column.name) for cell in cells]
        if any(found):
            series.append({"column": column.name,
                           "y": [y_of(figure.ns, cell) if figure and figure.ns else None for figure, cell in zip(found, cells)],
                           "text": [y_text(y_of(figure.ns, cell)) if figure and figure.ns else figure.failed if figure else ""
                                    for figure, cell in zip(found, cells)],
                           "failed": [bool(figure and figure.failed) for figure in found]})
    if any(cell.limit for cell in cells):
        series.append({"column": "raw", "y": [y_of(cell.limit[0], cell) if cell.limit else None for cell in cells],
                       "text": [y_text(y_of(cell.limit[0], cell)) if cell.limit else "" for cell in cells],
                       "names": ["limit: " + cell.limit[1] if cell.limit else "" for cell in cells],
                       "failed": [False] * len(cells)})
    return {"kind": "lines", "series": series,
            "x": {"values": [x_of(cell) for cell in cells], "text": [x_text(cell) for cell in cells],
                  "heads": [heading(results, cell, x_text) for cell in cells],
                  "notes": [cell.verdict() if cell.outcome != "alone" else "" for cell in cells]}}


def sweep(results, patterns, flight, x_of, x_text, x_title, y_of, y_text, y_title):
    """A card for each pattern and memory, with one common vertical axis."""
    chosen = {}
    for cell in results.cells:
        if cell.pattern in patterns and x_of(cell) > 0:
            chosen.setdefault((cell.memory, cell.pattern), []).append(cell)
    cards = []
    for cells in chosen.values():
        flights = {}  # for each position on the axis: long messages may have fewer in flight
        for cell in cells:
            flights[x_of(cell)] = flight(flights.get(x_of(cell), cell.in_flight), cell.in_flight)
        cells = [cell for cell in cells if cell.in_flight == flights[x_of(cell)]]
        least = min(cells, key=lambda cell: (cell.ranks, cell.bytes))
        other = "ranks" if x_title == "message size" else "bytes"  # what does not vary within one plot
        cells = sorted((cell for cell in cells if getattr(cell, other) == getattr(least, other)), key=x_of)
        if len(cells) < 2:
            continue  # a single point is shown among the single operations
        table = tables.sweep(results, cells, x_title, lambda cell: heading(results, cell, x_text),
                             lambda ns, cell: y_text(y_of(ns, cell)))
        cards.append(Card(f"{least.title}, {tables.memory_name(least.memory)}",
                          lines(results, cells, x_of, x_text, y_of, y_text), table, least))
    values = [y for card in cards for line in card.spec["series"] for y in line["y"] if y is not None]
    places = sorted({x for card in cards for x in card.spec["x"]["values"]})
    domain = units.log_domain(values)
    failing = {line["column"] for card in cards for line in card.spec["series"] if any(line["failed"])}
    for card in cards:
        card.spec["y"] = {"domain": domain, "ticks": units.log_ticks(domain, y_text), "label": y_title,
                          "failing": [column.name for column in results.columns if column.name in failing]}
        span = [places[0], places[-1]] if places[-1] > places[0] else [places[0] / 2, places[0] * 2]
        card.spec["x"].update(label=x_title, domain=span)
    return cards


def latency(results):
    return sweep(results, results.swept, min, lambda cell: cell.bytes, lambda cell: units.size(cell.bytes), "message size",
                 lambda ns, cell: ns, units.duration, "time of one operation")


def bandwidth(results):
    return sweep(results, results.swept, max, lambda cell: cell.bytes, lambda cell: units.size(cell.bytes), "message size",
                 lambda ns, cell: cell.bytes / ns, units.rate, "bandwidth")


def scaling(results):
    cards = sweep(results, results.scaled, min, lambda cell: cell.ranks, lambda cell: f"{cell.ranks} ranks", "ranks",
                  lambda ns, cell: ns, units.duration, "time of one operation")
    cores = units.number(results.machine.get("cores"))
    for card in cards:
        card.spec["x"]["mark"] = [cores, f"{units.digits(cores)} cores"] if cores else None
    return cards
