/* Sizes of operations and times of calls: a histogram for each kind, below each other on one logarithmic axis. */
import {scaleLog} from "d3-scale";
import {select} from "d3-selection";
import {axisBelow, canvas, hideTooltip, showTooltip} from "../plot.js";
import {fitted, make, PAPER, redrawn, section} from "./dom.js";
import {data, kindName, shown, watch} from "./model.js";
import * as units from "./units.js";

const ROW = 58,
    BARS = 34;

/* Histograms of the selected windows, one for each kind: counts by bin. */
const sums = key => {
    const kinds = [];
    for (const window of shown())
        window[key].forEach(({first, counts}, kind) => {
            const bins = (kinds[kind] = kinds[kind] || []);
            counts.forEach((count, i) => (bins[first + i] = (bins[first + i] || 0) + count));
        });
    return kinds;
};

/* The lower limit of a bin: sizes 0, 1, 2, 4 ... bytes; times have four bins for each power of two. */
const sizeEdge = bin => (bin === 0 ? 0.5 : 2 ** (bin - 1));
const timeEdge = bin => 2 ** Math.floor(bin / 4) * (1 + (bin % 4) / 4);

const quantile = (bins, share) => {
    const all = bins.reduce((sum, count) => sum + count, 0);
    let sum = 0;
    return bins.findIndex(count => (sum += count || 0) >= share * all);
};

const range = (bin, edge, text) =>
    bin === 0 && edge === sizeEdge
        ? text(0)
        : edge === sizeEdge
          ? `${text(edge(bin))} to ${text(edge(bin + 1) - 1)}`
          : `${text(edge(bin))} to ${text(edge(bin + 1))}`;

const draw = (part, rows, width, {edge, text, ticks, label, title}) => {
    const right = width > 560 ? 210 : 0,
        left = 14,
        high = right ? ROW : ROW + 18,
        bottom = 8 + rows.length * high;
    const svg = canvas(part, width, bottom + 40, `${title}; ${rows.map(row => `${row.name}: ${row.words}`).join("; ")}`);
    const used = rows.flatMap(({bins}) => [bins.findIndex(Boolean), bins.length]);
    const domain = [edge(Math.min(...used)), edge(Math.max(...used))];
    const x = scaleLog()
        .domain(domain)
        .range([left, width - right - 12]);
    axisBelow(svg, ticks(domain), x, 4, bottom, label);
    rows.forEach(({kind, name, bins, words, colour}, i) => {
        const most = bins.reduce((max, count) => Math.max(max, count || 0), 0),
            base = 8 + i * high + ROW - 6;
        const group = svg.append("g").attr("class", colour);
        group
            .append("line")
            .attr("class", "base")
            .attr("x1", left)
            .attr("x2", width - right - 12)
            .attr("y1", base)
            .attr("y2", base);
        group
            .append("text")
            .attr("class", "name")
            .attr("x", left)
            .attr("y", base - BARS - 6)
            .text(name);
        const reading = group.append("text").attr("class", "reading");
        if (right)
            reading.attr("x", width - right)
                .attr("y", base - 8)
                .text(words);
        else
            reading.attr("x", left)
                .attr("y", base + 14)
                .text(words);
        bins.forEach((count, bin) => {
            if (!count) return;
            const tall = Math.max(1.5, (count / most) * BARS);
            group
                .append("rect")
                .attr("class", "bin")
                .attr("x", x(edge(bin)) + 0.5)
                .attr("y", base - tall)
                .attr("height", tall)
                .attr("width", Math.max(1, x(edge(bin + 1)) - x(edge(bin)) - 1))
                .attr("data-kind", kind)
                .attr("data-bin", bin)
                .attr("data-count", count)
                .on("pointermove", event =>
                    showTooltip(event, `${name}, ${range(bin, edge, text)}`, [[colour, "calls", units.count(count)]]),
                )
                .on("pointerleave", hideTooltip);
        });
    });
};

/* Powers of the base, and then values between them: earlier ones have precedence for space. */
const powers = (domain, base, text, between) => {
    const ticks = [];
    for (const part of between)
        for (let power = Math.floor(Math.log(domain[0]) / Math.log(base)); part * base ** power <= domain[1]; power++)
            if (part * base ** power >= domain[0]) ticks.push([part * base ** power, text(part * base ** power)]);
    return ticks;
};

const SIZES = {
    key: "sizes",
    title: "Sizes of operations",
    edge: sizeEdge,
    text: units.size,
    label: "bytes of one operation",
    ticks: domain => [
        ...(domain[0] < 1 ? [[0.7, "0 B"]] : []),
        ...powers([Math.max(1, domain[0]), domain[1]], 2, units.size, [1]),
    ],
};
const TIMES = {
    key: "times",
    edge: timeEdge,
    text: units.duration,
    ticks: domain => powers(domain, 10, units.duration, [1, 2, 5, 3, 1.5]),
};

const rowsOf = (spec, from, to, colour) =>
    sums(spec.key)
        .slice(from, to)
        .map((bins, i) => ({kind: i, bins}))
        .filter(({bins}) => bins.length)
        .map(({kind, bins}) => {
            const at = share => spec.text(spec.edge(quantile(bins, share))),
                all = bins.reduce((sum, count) => sum + count, 0);
            const name = kindName((colour === "c-op" ? 0 : 64) + kind);
            return {kind, bins, name, colour, words: `${units.count(all)}, median ≥ ${at(0.5)}, 99 % ≥ ${at(0.99)}`};
        });

export const histogramsSection = () => {
    const operations = data.operations.length,
        room = make("div", {class: "cards"});
    const plots = [
        {...SIZES, id: "sizes", rows: () => rowsOf(SIZES, 0, operations, "c-op")},
        {
            ...TIMES,
            id: "times",
            title: "Times of operations",
            label: "time in the call",
            rows: () => rowsOf(TIMES, 0, operations, "c-op"),
        },
        {
            ...TIMES,
            id: "call-times",
            title: "Times of synchronisation calls",
            label: "time in the call, waiting included",
            rows: () => rowsOf(TIMES, operations, undefined, "c-sync"),
        },
    ];
    for (const plot of plots) {
        const part = make("div", {class: "plot", id: plot.id}),
            card = make("figure", {}, make("figcaption", {}, plot.title), part);
        const fit = fitted(
            part,
            width => {
                const rows = plot.rows();
                if (rows.length) draw(part, rows, width, plot);
                else select(part).html(null).append("p").attr("class", "nothing").text("There were none.");
            },
            PAPER / 2, /* two in a row */
        );
        watch(fit.draw);
        redrawn(fit.draw);
        room.append(card);
    }
    return section(
        "histograms",
        "Sizes and times",
        "Percentiles are rounded down to a histogram bin: one for each power of two bytes, four for each power of two nanoseconds.",
        room,
    );
};
