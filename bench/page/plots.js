"use strict";
/* Two plots of the page of `oriel bench`: lines over a logarithmic axis, and grouped bars, from
 * the data of the page's writer. */
const {d3} = library;
const oriel = {...library.plot, data: JSON.parse(document.getElementById("data").textContent), draw: {}};

oriel.columnTitle = name => (oriel.data.columns.find(column => column.name === name) || {title: name}).title;
oriel.columnClass = name => "c-" + (["mpich", "openmpi", "oriel-mpich", "oriel-openmpi", "raw"].includes(name) ? name : "other");
/* The shape is the host, circle or square; filled is Oriel, hollow the host alone (the style sheet matches). */
oriel.symbol = name => name.endsWith("openmpi") ? d3.symbolSquare : name.endsWith("mpich") ? d3.symbolCircle : d3.symbolTriangle;

oriel.label = spec => spec.title + "; the figures are in the table below";

oriel.draw.lines = (container, spec, width) => {
    const height = 260, left = 62, right = width - 14, top = 26, bottom = height - 42;
    const svg = oriel.canvas(container, width, height, oriel.label(spec));
    const x = d3.scaleLog().domain(spec.x.domain).range([left + 8, right - 6]);
    /* Failures have no height: a section with failures shows them in a band above the plots. */
    const band = spec.y.failing.length ? 12 * spec.y.failing.length + 4 : 0;
    const y = d3.scaleLog().domain(spec.y.domain).range([bottom, top + band]);
    oriel.axisLeft(svg, spec.y.ticks, y, left, right, spec.y.label);
    oriel.axisBelow(svg, spec.x.values.map((value, i) => [value, spec.x.text[i].replace(" ranks", "")]), x, bottom, bottom + 4,
                    spec.x.label);
    if (spec.x.mark && spec.x.mark[0] > spec.x.domain[0] && spec.x.mark[0] < spec.x.domain[1]) {
        const at = x(spec.x.mark[0]);
        svg.append("line").attr("class", "mark").attr("x1", at).attr("x2", at).attr("y1", top).attr("y2", bottom);
        svg.append("text").attr("class", "mark").attr("x", at + 4).attr("y", top + 10).text(spec.x.mark[1]);
    }
    const cursor = svg.append("line").attr("class", "cursor").attr("y1", top).attr("y2", bottom).attr("hidden", "");
    /* In ascending importance: the limit, the hosts, Oriel. */
    const order = line => line.column === "raw" ? 0 : line.column.startsWith("oriel") ? 2 : 1;
    spec.series.slice().sort((a, b) => order(a) - order(b)).forEach(line => {
        const group = svg.append("g").attr("class", oriel.columnClass(line.column));
        const points = spec.x.values.map((value, i) => ({x: value, y: line.y[i], failed: line.failed[i]}));
        group.append("path").attr("class", "line").attr("d",
            d3.line().defined(point => point.y !== null).x(point => x(point.x)).y(point => y(point.y))(points));
        if (line.column !== "raw")
            group.selectAll("path.point").data(points.filter(point => point.y !== null)).enter().append("path")
                .attr("class", "point").attr("d", d3.symbol().type(oriel.symbol(line.column))
                    .size(line.column === "oriel-mpich" ? 62 : 32)()) /* visible when the other Oriel covers it */
                .attr("transform", point => `translate(${x(point.x)},${y(point.y)})`);
        else if (points.filter(point => point.y !== null).length === 1) /* a single point has no line */
            group.selectAll("path.short").data(points.filter(point => point.y !== null)).enter().append("path")
                .attr("class", "line").attr("d", point => `M${x(point.x) - 9} ${y(point.y)}h18`);
        const place = top + 4 + 12 * spec.y.failing.indexOf(line.column);
        group.selectAll("path.cross").data(points.filter(point => point.failed)).enter().append("path")
            .attr("class", "cross").attr("d", "M-4-4L4 4M4-4L-4 4")
            .attr("transform", point => `translate(${x(point.x)},${place})`);
        line.failed.forEach((failed, i) => { /* the word next to the first of a sequence */
            if (failed && !line.failed[i - 1])
                group.append("text").attr("class", "failed").attr("text-anchor", "end")
                    .attr("x", x(spec.x.values[i]) - 8).attr("y", place + 4).text(line.text[i]);
        });
    });
    let at = -1;
    const show = (event, index) => {
        at = index;
        cursor.attr("hidden", null).attr("x1", x(spec.x.values[at])).attr("x2", x(spec.x.values[at]));
        oriel.showTooltip(event, spec.x.heads[at],
                   spec.series.filter(line => line.text[at]).map(line => [oriel.columnClass(line.column),
                       line.names ? line.names[at] : oriel.columnTitle(line.column),
                       (line.failed[at] ? "✕ " : "") + line.text[at]]), spec.x.notes[at]);
    };
    const hide = () => {
        cursor.attr("hidden", "");
        oriel.hideTooltip();
    };
    const nearest = event => {
        const here = d3.pointer(event, svg.node())[0];
        return d3.leastIndex(spec.x.values, (a, b) => Math.abs(x(a) - here) - Math.abs(x(b) - here));
    };
    svg.on("pointermove pointerdown", event => show(event, nearest(event))).on("pointerleave", hide).on("blur", hide)
        .attr("tabindex", 0).on("keydown", event => {
            const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
            if (!step)
                return;
            event.preventDefault();
            const corner = svg.node().getBoundingClientRect();
            const next = Math.max(0, Math.min(spec.x.values.length - 1, at + step));
            show({clientX: corner.left + x(spec.x.values[next]), clientY: corner.top + top}, next);
        });
};

/* The hatching of the hosts' bars, which distinguishes them from Oriel's without colour: defined once, outside the filters. */
(() => {
    const shapes = {"mpich": "M-2 2L2-2M0 8L8 0M6 10L10 6", "openmpi": "M-2 6L2 10M0 0L8 8M6-2L10 2"};
    const svg = d3.select("body").append("svg").attr("class", "hatches").attr("aria-hidden", "true");
    Object.keys(shapes).forEach(name => svg.append("pattern").attr("id", "hatch-" + name).attr("width", 8).attr("height", 8)
        .attr("patternUnits", "userSpaceOnUse").attr("class", "c-" + name).append("path").attr("d", shapes[name]));
})();

oriel.draw.bars = (container, spec, width, chosen) => {
    const rows = spec.rows.filter(row => chosen.pattern(row.pattern));
    const bar = 11, gap = 3, head = 20, foot = 12, left = 118, right = width - 66, top = 8;
    let bottom = top;
    rows.forEach(row => {
        row.top = bottom;
        bottom += head + row.bars.length * (bar + gap) + foot;
    });
    const svg = oriel.canvas(container, width, bottom + 38, oriel.label(spec));
    const x = d3.scaleLog().domain(spec.x.domain).range([left, right]);
    oriel.axisBelow(svg, spec.x.ticks, x, top, bottom, spec.x.label + " →");
    rows.forEach(row => {
        const place = svg.append("g").attr("transform", `translate(0,${row.top})`);
        place.append("text").attr("class", "name").attr("y", 12)
            .text(oriel.shorten(row.label, width - row.verdict.length * 7.3 - 10)).append("title").text(row.label);
        place.append("text").attr("class", "verdict " + row.outcome).attr("x", width).attr("y", 12).attr("text-anchor", "end")
            .text(row.verdict);
        row.bars.forEach(([column, ns, text, more, most], i) => {
            const line = place.append("g").attr("class", "row " + oriel.columnClass(column))
                .attr("transform", `translate(0,${head + i * (bar + gap)})`);
            line.append("rect").attr("class", "back").attr("width", width).attr("height", bar + gap);
            line.append("text").attr("class", "column").attr("x", left - 6).attr("y", bar - 2).attr("text-anchor", "end")
                .text(oriel.columnTitle(column));
            if (ns !== null)
                line.append("rect").attr("class", "bar").attr("x", left).attr("width", x(ns) - left).attr("height", bar);
            if (most) /* from the minimum to the maximum of the runs */
                line.append("path").attr("class", "whisker").attr("d", `M${x(ns)} ${bar / 2}H${x(most)}m0-3v6`);
            const end = ns !== null ? x(most || ns) : left, limit = row.limit ? x(row.limit[0]) : 0;
            const beside = (limit > end - 2 && limit < end + 60 ? limit : end) + 5; /* not on the limit's line */
            line.append("text").attr("class", ns === null ? "failed" : "value").attr("x", beside).attr("y", bar - 2)
                .text((ns === null ? "✕ " : "") + text);
            const entries = row.bars.map(entry => [oriel.columnClass(entry[0]), oriel.columnTitle(entry[0]), entry[2]]);
            if (row.limit)
                entries.push(["c-raw", "limit: " + row.limit[2], row.limit[1]]);
            const notes = [more && oriel.columnTitle(column) + ": " + more, row.limitRatio].filter(Boolean);
            line.on("pointermove pointerdown", event => oriel.showTooltip(event, row.label, entries, notes.join("; ")))
                .on("pointerleave", oriel.hideTooltip);
        });
        if (row.limit)
            place.append("path").attr("class", "limit")
                .attr("d", `M${x(row.limit[0])} ${head - 3}v${row.bars.length * (bar + gap) + 3}`);
    });
};
