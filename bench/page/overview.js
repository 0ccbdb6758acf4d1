"use strict";
/* The overview: one line for each operation, one mark for each measurement, at the better host's time divided by the slower Oriel's.
 * The shape is the memory, the side of the middle line is the outcome; cells without a ratio are at the edges. */
oriel.shapes = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolStar, d3.symbolCross];
oriel.memoryShape = memory => oriel.shapes[Object.keys(oriel.data.memories).indexOf(memory) % oriel.shapes.length];

oriel.draw.ratios = (container, spec, width, chosen) => {
    const rows = spec.rows.filter(row => chosen.pattern(row.pattern))
        .map(row => Object.assign({}, row, {items: row.items.filter(item => chosen.memory(item.memory))}))
        .filter(row => row.items.length);
    const any = test => rows.some(row => row.items.some(test));
    const wide = width > 760, step = wide ? 24 : 38, top = 46;
    const longest = Math.max(0, ...rows.map(row => row.label.length)) * 7.3 + 24;
    const left = wide ? Math.min(longest, width * 0.4) : 8;
    const fails = any(item => item.kind < 0), alone = any(item => item.kind > 0); /* each has a rail next to the plot */
    const rail = 74, first = left + (fails ? rail : 0), last = width - (alone ? rail : 0) - (wide ? 156 : 8);
    const memories = Object.keys(oriel.data.memories).filter(name => any(item => item.memory === name));
    const lane = item => memories.length > 1 ? (memories.indexOf(item.memory) / (memories.length - 1) - 0.5) * 10 : 0;
    const at = item => item.kind < 0 ? first - rail / 2 : item.kind > 0 ? last + rail / 2 : x(item.ratio);
    let height = top, group = null;
    rows.forEach(row => {
        row.heading = row.group !== group ? group = row.group : null;
        row.top = height + (row.heading ? 22 : 0);
        height = row.top + step;
    });
    const svg = oriel.canvas(container, width, height + 40, oriel.label(spec));
    const x = d3.scaleLog().domain(spec.x.domain).range([first + 6, last - 6]), middle = x(1);
    const halves = [["slower", first, middle, middle - first < 112 ? "◀ slower" : "◀ Oriel slower"],
                    ["faster", middle, last, last - middle < 112 ? "faster ▶" : "Oriel faster ▶"]];
    halves.forEach(([side, from, to, text], i) => {
        svg.append("rect").attr("class", "side " + side).attr("x", from).attr("width", Math.max(0, to - from)).attr("y", top - 22)
            .attr("height", height - top + 22);
        svg.append("text").attr("class", "side " + side).attr("x", i ? middle + 8 : middle - 8).attr("y", top - 30)
            .attr("text-anchor", i ? "start" : "end").text(text);
    });
    const ticks = wide ? spec.x.ticks : spec.x.ticks.map(([value, text]) => [value, text.replace(/ (faster|slower)/, "")]);
    oriel.axisBelow(svg, ticks, x, top - 22, height, spec.x.label);
    svg.append("line").attr("class", "middle").attr("x1", middle).attr("x2", middle).attr("y1", top - 26).attr("y2", height);
    if (alone)
        svg.append("text").attr("class", "axis").attr("x", last + rail / 2).attr("y", top - 8)
            .attr("text-anchor", "middle").text("only Oriel");
    if (fails)
        svg.append("text").attr("class", "axis failed").attr("x", first - rail / 2).attr("y", top - 8)
            .attr("text-anchor", "middle").text("Oriel fails");
    rows.forEach(row => {
        const place = svg.append("g").attr("transform", `translate(0,${row.top})`);
        const y = wide ? step / 2 : step - 11;
        if (row.heading)
            place.append("text").attr("class", "group").attr("y", -4).text(row.heading);
        place.append("text").attr("class", "name").attr("x", wide ? left - 12 : left).attr("y", wide ? y + 4 : 14)
            .attr("text-anchor", wide ? "end" : "start").text(oriel.shorten(row.label, wide ? left - 12 : width))
            .append("title").text(row.label);
        place.append("line").attr("class", "rule").attr("x1", first).attr("x2", last).attr("y1", y).attr("y2", y);
        const ratios = row.items.map(item => item.ratio).filter(ratio => ratio !== null);
        if (ratios.length > 1)
            place.append("line").attr("class", "range").attr("x1", x(d3.min(ratios))).attr("x2", x(d3.max(ratios)))
                .attr("y1", y).attr("y2", y);
        if (wide && ratios.length)
            place.append("text").attr("class", "extent").attr("x", width).attr("y", y + 4).attr("text-anchor", "end")
                .text(d3.extent(ratios).map(ratio => row.items.find(item => item.ratio === ratio).text.slice(2))
                    .filter((text, i, all) => all.indexOf(text) === i).join(" to "));
        place.selectAll("path.dot").data(row.items).enter().append("path").attr("class", item => "dot " + item.outcome)
            .attr("d", item => item.kind < 0 ? "M-4-4L4 4M4-4L-4 4"
                : d3.symbol().type(oriel.memoryShape(item.memory)).size(58)())
            .attr("transform", item => `translate(${at(item)},${y + lane(item)})`)
            .on("pointermove pointerdown", (event, item) => oriel.showTooltip(event, row.label + (item.where ? ", " + item.where : ""),
                item.figures.map(([name, text]) => [oriel.columnClass(name), oriel.columnTitle(name), text]),
                item.verdict + "; " + oriel.data.memories[item.memory]))
            .on("pointerleave", oriel.hideTooltip);
    });
    oriel.shapeLegend(container, memories);
};

oriel.shapeLegend = (container, memories) => {
    const list = d3.select(container).append("ul").attr("class", "legend");
    memories.forEach(memory => {
        const item = list.append("li");
        item.append("svg").attr("width", 14).attr("height", 14).attr("aria-hidden", true).append("path").attr("class", "dot")
            .attr("transform", "translate(7,7)").attr("d", d3.symbol().type(oriel.memoryShape(memory)).size(58)());
        item.append("span").text(oriel.data.memories[memory]);
    });
};
