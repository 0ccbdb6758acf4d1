"""The HTML page of `oriel bench`: comparisons of the hosts with and without Oriel, from results in the documented schema.

Every plot also has a table, and every failure is shown in place of its figure; the scripts only draw and filter. The command
calls document(); skeleton has the parts common to all pages."""

from . import figures, plots, skeleton, tables, units
from .skeleton import element, join

SCRIPTS = ["plots.js", "overview.js", "bench.js"]
STYLES = ["page.css", "bench.css"]


def machine_facts(results, raw):
    machine = results.machine
    hosts = [f"{host.get('title') or host.get('name')} {host.get('version', '')}".strip()
             for host in figures.records(machine.get("hosts"))]
    cores = machine.get("cores")
    options = raw.get("options") if isinstance(raw.get("options"), dict) else {}
    facts = [("Command", raw.get("command")),
             ("Node", machine.get("node")),
             ("Processor", f"{machine.get('processor', 'unknown')}, {cores} cores" if cores else machine.get("processor")),
             ("System", machine.get("kernel")),
             ("Hosts", ", ".join(hosts)),
             ("Oriel", raw.get("oriel")),
             ("Date", str(machine.get("date", "")).replace("T", " ")),
             ("Run", ", ".join(f"{name}: {option_text(value)}" for name, value in options.items() if value not in (None, [])))]
    return element("dl", *(element("div", element("dt", name), element("dd", value)) for name, value in facts if value),
                   class_="facts")


def option_text(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def tile(count, text, kind):
    return element("div", element("b", f"{count:,}"), element("span", text), class_=f"tile {kind}")


def extremes(results):
    """The largest gains and losses as text: one cell for each pattern, so that one sweep does not fill the list."""
    compared = sorted((cell for cell in results.cells if cell.ratio is not None), key=lambda cell: cell.ratio)
    lists = []
    for title, cells in (("Slowest against the better host", [cell for cell in compared if cell.outcome == "slower"]),
                         ("Fastest", [cell for cell in reversed(compared) if cell.outcome == "faster"])):
        first = {}
        for cell in cells:
            first.setdefault((cell.pattern, cell.memory), cell)
        items = [element("li", element("b", tables.ratio_text(cell)), f" {results.label(cell)}, ",
                         tables.memory_name(cell.memory)) for cell in list(first.values())[:4]]
        if items:
            lists.append(element("div", element("h3", title), element("ul", *items)))
    return element("div", *lists, class_="extremes") if lists else ""


def summary(results):
    counts = {}
    for cell in results.cells:
        counts[cell.outcome] = counts.get(cell.outcome, 0) + 1
    tiles = [tile(counts.get("faster", 0), "faster than the better host", "faster"),
             tile(counts.get("even", 0), f"even, within {units.EVEN:.0%}", "even"),
             tile(counts.get("slower", 0), "slower than the better host", "slower")]
    for outcome, text in (("hosts-fail", "where only Oriel works"), ("oriel-fails", "where Oriel fails"),
                          ("alone", "with nothing to compare")):
        if counts.get(outcome):
            tiles.append(tile(counts[outcome], text, outcome))
    return join([element("div", *tiles, class_="tiles"), extremes(results)])


def filters(results):
    """The controls; they are hidden without script."""
    memories = [element("label", element("input", type="checkbox", value=name, checked=True, name="memory"),
                        figures.MEMORIES.get(name, (name, name))[1]) for name in results.distinct("memory")]
    by_group = {}
    for cell in results.cells:
        by_group.setdefault(cell.group, {})[cell.pattern] = True
    choices = [element("optgroup", *(element("option", pattern, value=pattern) for pattern in patterns),
                       label=plots.group_title(group)) for group, patterns in by_group.items()]
    return element("form", element("fieldset", element("legend", "Memory"), *memories),
                   element("label", "Operation ", element("select", element("option", "all", value="*"), *choices,
                                                          name="pattern")), id="filters", hidden=True)


def section(name, title, intro, *content, legend=None, plots=False):
    """plots: the section is empty when the filters hide its figures."""
    return element("section", element("header", element("h2", title), legend), element("p", intro), *content, id=name,
                   class_="plots" if plots else None)


def failures(results):
    rows = [tables.failure_row(results, cell, column) for cell in results.cells for column in results.columns
            if column.name in cell.figures and cell.figures[column.name].failed]
    if not rows:
        return ""
    return section("failures", "Failures", "No time is shown for these; they did not affect other patterns.",
                   skeleton.table(["Column", "Operation", "Memory", "Ranks", "Failure", "Reason"], rows))


def overview(results, drawings):
    rows = plots.ratio_rows(results)
    if not rows:
        return ""
    figure = drawings.figure("Each operation's ratios", plots.ratios(rows), None)
    usual = results.key_cells()
    return section("overview", "Oriel compared with the hosts",
                   "One mark for each measurement: the better host's time divided by the slower Oriel's. Right of the line, "
                   "Oriel is faster on every host; left of it, slower. The scale is logarithmic.", figure,
                   tables.details("Ratios as a table" if len(usual) == len(results.cells) else "Ratios of the usual sizes",
                                  tables.cells(results, usual, memory=True), is_open=True))


def singles(results, drawings):
    sheaves = []  # a row of cards for each group, one card for each memory
    for group in results.distinct("group"):
        cells = [cell for cell in results.single_cells() if cell.group == group]
        cards = [drawings.figure(f"{plots.group_title(group)}, {tables.memory_name(memory)}", plots.bars(results, chosen, cells),
                                 tables.cells(results, chosen), memory=memory)
                 for memory, chosen in tables.by_memory(cells)]
        sheaves.append(cards)
    memories = len(results.distinct("memory"))
    if memories == 1:
        sheaves = [[card for cards in sheaves for card in cards]]
    rows = [element("div", *cards, class_="cards halves" if memories == 2 else "cards wide") for cards in sheaves]
    return section("singles", "Single operations",
                   "Time of one operation, shorter is better, on a logarithmic scale. The dashed line across the bars is the "
                   "time of plain instructions for the same data, if there is such a loop.",
                   *rows, legend=plots.legend(results, "bars"), plots=True)


def sweeps(results, drawings, name, title, intro, make, empty):
    cards = [drawings.figure(card.title, card.spec, card.table, memory=card.memory, pattern=card.pattern)
             for card in make(results)]
    content = element("div", *cards, class_="cards") if cards else element("p", empty, class_="nothing")
    return section(name, title, intro, content, legend=plots.legend(results, "lines") if cards else None, plots=bool(cards))


NOTES = [
    "The minimum of all runs; “!” marks results that vary by more than half between runs, and lines at the ends of bars reach to "
    "the maximum. Runs with and without Oriel alternated, and data were verified: a wrong result has no time.",
    "“Oriel is” compares the better host alone with the slower of Oriel's columns: the minimum gain.",
    "Bandwidth is bytes of data divided by the time of one operation; 1 GB is 10⁹ bytes.",
    "The limit is a loop of plain instructions without MPI that moves or computes the same data in the same shape, or the "
    "minimum synchronisation of the same number of processes in shared memory. Some patterns have no limit.",
    "Figures of different machines, or of a busy one, are not comparable.",
]


def body(raw, results, drawings):
    parts = [element("header", element("h1", "One-sided MPI: each host with and without Oriel"), machine_facts(results, raw),
                     class_="top")]
    if raw.get("complete") is False:
        parts.append(element("p", "This run was interrupted: the page shows the results so far.", class_="banner"))
    warnings = raw.get("warnings") if isinstance(raw.get("warnings"), list) else []
    if warnings:
        parts.append(element("div", element("b", "Read the figures with care"),
                             element("ul", *(element("li", str(warning)) for warning in warnings)), class_="banner"))
    if not results.cells:
        parts.append(element("p", "Nothing was measured, so there is nothing to compare.", class_="banner"))
    else:
        parts += [element("noscript", element("p", "Without JavaScript there are no plots: every figure is in the tables.",
                                              class_="banner")),
                  summary(results), filters(results), overview(results, drawings), failures(results),
                  singles(results, drawings),
                  sweeps(results, drawings, "latency", "Latency over message size",
                         "Time of one operation when each waits for the previous one, lower is better; both axes are logarithmic.",
                         plots.latency, "No operation was measured with more than one size."),
                  sweeps(results, drawings, "bandwidth", "Bandwidth over message size",
                         "Data moved per second, higher is better, with the measured number of operations in flight for each size; "
                         "both axes are logarithmic.", plots.bandwidth,
                         "No operation was measured with more than one size."),
                  sweeps(results, drawings, "scaling", "Scaling over ranks",
                         "Time of one operation, lower is better. With more ranks than cores, ranks share cores.",
                         plots.scaling, "No operation was measured with more than one number of ranks.")]
    if results.raw:
        parts.append(section("raw", "This node without MPI", "The limits, and other raw operations.",
                             tables.details("Every raw operation", tables.raw(results))))
    if results.cells:
        parts.append(section("all", "Every figure", "The minimum of the runs, and below it median and maximum.",
                             tables.details(f"All {len(results.cells):,} measurements",
                                            tables.cells(results, results.cells, memory=True, samples=True))))
    parts.append(element("footer", element("h2", "How to read this"), element("ul", *(element("li", note) for note in NOTES))))
    return element("main", *parts)


def document(results):
    """The page's text for these results (a dict as in the file of --json).
    Raises RuntimeError if the drawing library is missing."""
    digested = figures.Results(results)
    drawings = plots.Drawings()
    content = body(results, digested, drawings)
    values = {"plots": drawings.specs,
              "columns": [{"name": column.name, "title": column.title} for column in digested.columns]
              + [{"name": "raw", "title": digested.raw_title}],
              "memories": {name: tables.memory_name(name) for name in digested.distinct("memory")}}
    return skeleton.document("Oriel: one-sided MPI measured", content, values, SCRIPTS, STYLES)


def write(results, path):
    """Writes the page to path. Raises OSError if that fails, and the errors of document()."""
    skeleton.write(path, document(results))
