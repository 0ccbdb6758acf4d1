"""The tables of the page of `oriel bench`: one row for each cell, one column for each column of the results.

A failure is a word in place of a time; rows have attributes for memory and pattern, which the page's filters use."""

from . import figures, units
from .skeleton import element, table

MARKS = {"faster": "▲", "slower": "▼", "even": "="}


def memory_title(memory):
    return figures.MEMORIES.get(memory, (memory,))[0]


def memory_name(memory):
    return figures.MEMORIES.get(memory, (memory, memory))[1]


def by_memory(cells):
    """[(memory, its cells)] in the order measured."""
    memories = dict.fromkeys(cell.memory for cell in cells)
    return [(memory, [cell for cell in cells if cell.memory == memory]) for memory in memories]


def details(title, content, is_open=False):
    return element("details", element("summary", title), content, open=is_open)


def ratio_text(cell):
    if cell.ratio is None:
        return {"oriel-fails": "Oriel fails", "hosts-fail": "only Oriel works"}.get(cell.outcome, "–")
    return f"{MARKS[cell.outcome]} {units.factor(cell.ratio)}"


def ratio_cell(cell):
    return element("td", ratio_text(cell), class_="ratio " + cell.outcome, title=cell.verdict())


def figure_cell(figure, samples=False):
    if figure is None:
        return element("td", "–", class_="none")
    if figure.failed:
        return element("td", "✕ " + figure.failed, class_="failed", title=figure.reason or None)
    spread = figure.spread()
    small = element("small", spread.partition(", ")[2]) if samples and spread else None
    titles = [f"minimum {spread}" if spread else None, f"path: {figure.path}" if figure.path else None]
    return element("td", units.duration(figure.ns) + (" !" if figure.varies() else ""), small,
                   title="; ".join(filter(None, titles)) or None)


def limit_cell(cell):
    if not cell.limit:
        return element("td", "–", class_="none")
    return element("td", units.duration(cell.limit[0]), title=cell.limit[1])


def cells(results, chosen, memory=False, samples=False):
    """A table of cells: by memory with a heading for each, or of one memory."""
    heads = ["Operation"] + [column.title for column in results.columns] + ["Limit", "Oriel is"]
    heads[1:] = [element("th", head, scope="col", class_="n") for head in heads[1:]]
    rows = []
    for name, members in by_memory(chosen):
        if memory:
            rows.append(element("tr", element("th", memory_title(name), colspan=str(len(heads)), scope="rowgroup"),
                                class_="group", data_memory=name))
        rows += [element("tr", element("th", results.label(cell), scope="row"),
                         *(figure_cell(cell.figures.get(column.name), samples) for column in results.columns),
                         limit_cell(cell), ratio_cell(cell), data_memory=cell.memory, data_pattern=cell.pattern)
                 for cell in members]
    return table(heads, rows, classes="figures")


def sweep(results, chosen, x_title, x_text, show):
    """The table of a plot over sizes or ranks. show(figure or None, cell) is the text of a figure."""
    heads = [x_title] + [column.title for column in results.columns] + [results.raw_title, "Oriel is"]
    heads[1:] = [element("th", head, scope="col", class_="n") for head in heads[1:]]
    rows = []
    for cell in chosen:
        columns = []
        for column in results.columns:
            figure = cell.figures.get(column.name)
            columns.append(figure_cell(figure) if figure is None or figure.failed else element("td", show(figure.ns, cell)))
        columns.append(element("td", show(cell.limit[0], cell) if cell.limit else "–"))
        rows.append(element("tr", element("th", x_text(cell), scope="row"), *columns, ratio_cell(cell)))
    return table(heads, rows, classes="figures")


def raw(results):
    rows = []
    for cell in results.raw:
        figure = cell.figures["raw"]
        rate = units.rate(cell.bytes / figure.ns) if cell.bytes and figure.ns else "–"
        size = units.size(cell.bytes) if cell.bytes else "–"
        name = cell.title + (f", {cell.ranks} processes" if cell.ranks > 1 else "")
        rows.append(element("tr", element("th", name, scope="row"), element("td", size), figure_cell(figure, samples=True),
                            element("td", rate)))
    heads = [element("th", head, scope="col", class_="n") for head in ("Size", "Time", "Rate")]
    return table(["Operation"] + heads, rows, classes="figures")


def failure_row(results, cell, column):
    figure = cell.figures[column.name]
    return element("tr", element("th", column.title, scope="row"), element("td", results.label(cell)),
                   element("td", memory_name(cell.memory)), element("td", str(cell.ranks)),
                   element("td", "✕ " + figure.failed, class_="failed"), element("td", figure.reason or "–", class_="reason"),
                   data_memory=cell.memory, data_pattern=cell.pattern)
