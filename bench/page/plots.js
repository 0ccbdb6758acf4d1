"use strict";
/* What any plot of Oriel's pages needs (size, axes, the pointer's box) and two of them: lines over a logarithmic axis, and
 * grouped bars. Text enters by .text() alone, so that nothing in the data can become an element; colours are the style
 * sheet's. Called by the page's own script, with what the page's writer has put into its data. */
const oriel = {data: JSON.parse(document.getElementById("data").textContent), draw: {}};

oriel.columnTitle = name => (oriel.data.columns.find(column => column.name === name) || {title: name}).title;
oriel.columnClass = name => "c-" + (["mpich", "openmpi", "oriel-mpich", "oriel-openmpi", "raw"].includes(name) ? name : "other");
/* The host is the shape: circle or square; filled is Oriel, hollow the host alone (both in the style sheet too). */
oriel.symbol = name => name.endsWith("openmpi") ? d3.symbolSquare : name.endsWith("mpich") ? d3.symbolCircle : d3.symbolTriangle;

/* A drawing as wide as its container, emptied first. */
oriel.canvas = (container, width, height, title) => d3.select(container).html(null).append("svg")
    .attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height)
    .attr("role", "img").attr("aria-label", title + "; the figures are in the table below");

/* The box at the pointer: a heading, and rows of [class or null, name, value]. */
oriel.box = d3.select("body").append("div").attr("class", "box").attr("hidden", "");
oriel.tell = (event, heading, rows, note) => {
    oriel.box.html(null).attr("hidden", null);
    oriel.box.append("strong").text(heading);
    const table = oriel.box.append("table");
    rows.forEach(([kind, name, value]) => {
        const row = table.append("tr");
        row.append("td").append("i").attr("class", kind);
        row.append("td").text(name);
        row.append("td").text(value);
    });
    if (note)
        oriel.box.append("p").text(note);
    const size = oriel.box.node().getBoundingClientRect();
    const right = event.clientX + 16 + size.width < window.innerWidth;
    oriel.box.style("left", Math.max(4, right ? event.clientX + 16 : event.clientX - 16 - size.width) + "px")
        .style("top", Math.max(4, Math.min(event.clientY + 12, window.innerHeight - size.height - 4)) + "px");
};
oriel.hush = () => oriel.box.attr("hidden", "");

/* A label as far as there is room for it; bold letters of 12 pixels are some 7.3 wide. */
oriel.shorten = (text, room) => text.length * 7.3 <= room ? text : text.slice(0, Math.max(1, Math.floor(room / 7.3) - 1)) + "…";

/* Ticks [[value, label]] as far as their labels have room: those that come too close to one before them are left out. */
oriel.thin = (ticks, scale, room) => {
    const taken = [];
    return ticks.filter(([value]) => {
        const fits = taken.every(place => Math.abs(scale(value) - place) >= room);
        if (fits)
            taken.push(scale(value));
        return fits;
    });
};

oriel.axisBelow = (svg, ticks, scale, top, bottom, label) => {
    const axis = svg.append("g").attr("class", "axis");
    const width = Math.max(...ticks.map(([, text]) => text.length), 1) * 6 + 14;
    oriel.thin(ticks, scale, width).forEach(([value, text]) => {
        axis.append("line").attr("class", "grid").attr("x1", scale(value)).attr("x2", scale(value)).attr("y1", top)
            .attr("y2", bottom);
        axis.append("text").attr("x", scale(value)).attr("y", bottom + 15).attr("text-anchor", "middle").text(text);
    });
    axis.append("text").attr("class", "title").attr("x", d3.mean(scale.range())).attr("y", bottom + 31)
        .attr("text-anchor", "middle").text(label);
};

oriel.axisLeft = (svg, ticks, scale, left, right, label) => {
    const axis = svg.append("g").attr("class", "axis");
    oriel.thin(ticks, scale, 18).forEach(([value, text]) => {
        axis.append("line").attr("class", "grid").attr("y1", scale(value)).attr("y2", scale(value)).attr("x1", left)
            .attr("x2", right);
        axis.append("text").attr("x", left - 6).attr("y", scale(value)).attr("dy", "0.32em").attr("text-anchor", "end")
            .text(text);
    });
    axis.append("text").attr("class", "title").attr("x", 0).attr("y", 9).text("↑ " + label);
};

oriel.draw.lines = (container, spec, width) => {
    const height = 260, left = 62, right = width - 14, top = 26, bottom = height - 42;
    const svg = oriel.canvas(container, width, height, spec.title);
    const x = d3.scaleLog().domain(spec.x.domain).range([left + 8, right - 6]);
    /* Failures have no height: where there are any in the section they stand in a band of their own above the plots. */
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
    /* What counts most is drawn last: the limit, the hosts, Oriel. */
    const order = line => line.column === "raw" ? 0 : line.column.startsWith("oriel") ? 2 : 1;
    spec.series.slice().sort((a, b) => order(a) - order(b)).forEach(line => {
        const group = svg.append("g").attr("class", oriel.columnClass(line.column));
        const points = spec.x.values.map((value, i) => ({x: value, y: line.y[i], failed: line.failed[i]}));
        group.append("path").attr("class", "line").attr("d",
            d3.line().defined(point => point.y !== null).x(point => x(point.x)).y(point => y(point.y))(points));
        if (line.column !== "raw")
            group.selectAll("path.point").data(points.filter(point => point.y !== null)).enter().append("path")
                .attr("class", "point").attr("d", d3.symbol().type(oriel.symbol(line.column))
                    .size(line.column === "oriel-mpich" ? 62 : 32)()) /* still seen where the other Oriel lies upon it */
                .attr("transform", point => `translate(${x(point.x)},${y(point.y)})`);
        else if (points.filter(point => point.y !== null).length === 1) /* one point makes no line */
            group.selectAll("path.short").data(points.filter(point => point.y !== null)).enter().append("path")
                .attr("class", "line").attr("d", point => `M${x(point.x) - 9} ${y(point.y)}h18`);
        const place = top + 4 + 12 * spec.y.failing.indexOf(line.column);
        group.selectAll("path.cross").data(points.filter(point => point.failed)).enter().append("path")
            .attr("class", "cross").attr("d", "M-4-4L4 4M4-4L-4 4")
            .attr("transform", point => `translate(${x(point.x)},${place})`);
        line.failed.forEach((failed, i) => { /* the word beside the first of a run */
            if (failed && !line.failed[i - 1])
                group.append("text").attr("class", "failed").attr("text-anchor", "end")
                    .attr("x", x(spec.x.values[i]) - 8).attr("y", place + 4).text(line.text[i]);
        });
    });
    let at = -1;
    const show = (event, index) => {
        at = index;
        cursor.attr("hidden", null).attr("x1", x(spec.x.values[at])).attr("x2", x(spec.x.values[at]));
        oriel.tell(event, spec.x.heads[at],
                   spec.series.filter(line => line.text[at]).map(line => [oriel.columnClass(line.column),
                       line.names ? line.names[at] : oriel.columnTitle(line.column),
                       (line.failed[at] ? "✕ " : "") + line.text[at]]), spec.x.notes[at]);
    };
    const hide = () => {
        cursor.attr("hidden", "");
        oriel.hush();
    };
    const nearest = event => {
        const here = d3.clientPoint(svg.node(), event)[0];
        return d3.scan(spec.x.values, (a, b) => Math.abs(x(a) - here) - Math.abs(x(b) - here));
    };
    svg.on("pointermove pointerdown", () => show(d3.event, nearest(d3.event))).on("pointerleave", hide).on("blur", hide)
        .attr("tabindex", 0).on("keydown", () => {
            const step = {ArrowRight: 1, ArrowLeft: -1}[d3.event.key];
            if (!step)
                return;
            d3.event.preventDefault();
            const corner = svg.node().getBoundingClientRect();
            const next = Math.max(0, Math.min(spec.x.values.length - 1, at + step));
            show({clientX: corner.left + x(spec.x.values[next]), clientY: corner.top + top}, next);
        });
};

/* The hatching of the hosts' bars, which says without colour which bars are Oriel's: once, where no filter hides it. */
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
    const svg = oriel.canvas(container, width, bottom + 38, spec.title);
    const x = d3.scaleLog().domain(spec.x.domain).range([left, right]);
    oriel.axisBelow(svg, spec.x.ticks, x, top, bottom, spec.x.label + " →");
    rows.forEach(row => {
        const place = svg.append("g").attr("transform", `translate(0,${row.top})`);
        place.append("text").attr("class", "name").attr("y", 12)
            .text(oriel.shorten(row.label, width - row.verdict.length * 7.3 - 10)).append("title").text(row.label);
        place.append("text").attr("class", "verdict " + row.outcome).attr("x", width).attr("y", 12).attr("text-anchor", "end")
            .text(row.verdict);
        row.bars.forEach(([column, ns, text, more], i) => {
            const line = place.append("g").attr("class", "row " + oriel.columnClass(column))
                .attr("transform", `translate(0,${head + i * (bar + gap)})`);
            line.append("rect").attr("class", "back").attr("width", width).attr("height", bar + gap);
            line.append("text").attr("class", "column").attr("x", left - 6).attr("y", bar - 2).attr("text-anchor", "end")
                .text(oriel.columnTitle(column));
            if (ns !== null)
                line.append("rect").attr("class", "bar").attr("x", left).attr("width", x(ns) - left).attr("height", bar);
            const end = ns !== null ? x(ns) : left, limit = row.limit ? x(row.limit[0]) : 0;
            const beside = (limit > end - 2 && limit < end + 60 ? limit : end) + 5; /* not upon the limit's line */
            line.append("text").attr("class", ns === null ? "failed" : "value").attr("x", beside).attr("y", bar - 2)
                .text((ns === null ? "✕ " : "") + text);
            const entries = row.bars.map(entry => [oriel.columnClass(entry[0]), oriel.columnTitle(entry[0]), entry[2]]);
            if (row.limit)
                entries.push(["c-raw", "limit: " + row.limit[2], row.limit[1]]);
            const notes = [more && oriel.columnTitle(column) + ": " + more, row.limitRatio].filter(Boolean);
            line.on("pointermove pointerdown", () => oriel.tell(d3.event, row.label, entries, notes.join("; ")))
                .on("pointerleave", oriel.hush);
        });
        if (row.limit)
            place.append("path").attr("class", "limit")
                .attr("d", `M${x(row.limit[0])} ${head - 3}v${row.bars.length * (bar + gap) + 3}`);
    });
};
