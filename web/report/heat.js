/* Accesses and waits between ranks: a cell for each pair of ranks, the sums of rows and columns, and a table of the largest
 * pairs.  The cells are pixels of a canvas; a tooltip shows their values at the pointer or at a cursor moved with the arrow
 * keys.
 *
 * The darkest colour is always the largest value, and the scale has at least a factor of ten.  So equal values are all dark,
 * and similar ones look similar. */
import {scaleLog} from "d3-scale";
import {hideTooltip, showTooltip} from "../plot.js";
import {colour, figure, fitted, make, onPaper, pixels, redrawn, section, table} from "./dom.js";
import {data, rankWords, rowName, selection, shown, watch, windowName, windows} from "./model.js";
import * as units from "./units.js";

const MEASURES = {
    bytes: {
        title: "bytes",
        each: "bytes per pair",
        from: "origin",
        to: "target",
        key: "bytes",
        table: "pairs",
        ramp: "heat",
        text: units.size,
        verb: "→",
    },
    operations: {
        title: "operations",
        each: "operations per pair",
        from: "origin",
        to: "target",
        key: "operations",
        table: "pairs",
        ramp: "heat",
        text: units.count,
        verb: "→",
    },
    waiting: {
        title: "time waited",
        each: "time waited per pair",
        from: "waiting rank",
        to: "awaited rank",
        key: "ns",
        table: "waits",
        ramp: "wait",
        text: units.duration,
        verb: "waits for",
    },
};
const GUTTER = 46,
    TOP = 34,
    CELL = 64,
    SUMS = 44,
    GAP = 6,
    WORDS = 400, /* the most cells with their values */
    RANGE = 10; /* the least factor between the ends of the colour scale */

/* The cells of the selected windows: from * rows + to, and their values. */
const gather = (measure, each) => {
    const cells = new Map(),
        rows = Math.ceil(data.run.ranks / each);
    for (const window of shown()) {
        const list = window[measure.table];
        const from = list[measure.table === "pairs" ? "origin" : "rank"],
            to = list[measure.table === "pairs" ? "target" : "awaited"];
        from.forEach((row, i) => {
            const key = row * rows + to[i],
                cell = cells.get(key) || {from: row, to: to[i], value: 0, causes: {}};
            cell.value += list[measure.key][i];
            if (list.cause) cell.causes[list.cause[i]] = (cell.causes[list.cause[i]] || 0) + list.ns[i];
            cells.set(key, cell);
        });
    }
    return new Map([...cells].filter(([, cell]) => cell.value));
};

/* Rows to show: those of the selected window's ranks. */
const members = each => {
    const all = [...Array(Math.ceil(data.run.ranks / each)).keys()];
    const rows = selection() >= 0 && windows[selection()].rows;
    const factor = each / data.timeline.ranks_per_row;
    return rows ? all.filter(row => rows.some(part => Math.floor(part / factor) === row)) : all;
};

const cause = cell => {
    const [most] = Object.entries(cell.causes).sort((a, b) => b[1] - a[1]);
    return most ? data.causes[most[0]].name : "";
};

export const heatSection = () => {
    const each = data.pairs_ranks_per_row;
    const canvas = make("canvas", {tabindex: 0, id: "heat", role: "img"});
    const plot = make("div", {class: "plot"}, canvas),
        legend = make("div", {class: "ramp"}),
        pairs = make("div", {class: "pairs"});
    const most = GUTTER + CELL * Math.ceil(data.run.ranks / each) + GAP + SUMS + 2; /* the largest useful width */
    const form = make(
        "form",
        {class: "choice", onsubmit: event => event.preventDefault()},
        make(
            "fieldset",
            {},
            make("legend", {}, "Show"),
            Object.keys(MEASURES).map(name =>
                make(
                    "label",
                    {},
                    make("input", {
                        type: "radio",
                        name: "measure",
                        value: name,
                        checked: name === "bytes",
                        onchange: () => change(),
                    }),
                    MEASURES[name].title,
                ),
            ),
        ),
    );
    let at = null,
        view;

    const measure = () => MEASURES[new FormData(form).get("measure")];
    const ramp = (extent, name) =>
        scaleLog()
            .domain([0, 1, 2, 3, 4].map(i => extent[0] * (extent[1] / extent[0]) ** (i / 4)))
            .range([0, 1, 2, 3, 4].map(i => colour(`${name}-${i}`)))
            .clamp(true);

    const prepare = () => {
        const what = measure(),
            cells = gather(what, each),
            rows = members(each),
            place = new Map(rows.map((row, i) => [row, i]));
        const values = [...cells.values()].map(cell => cell.value),
            sums = {from: new Map(), to: new Map()};
        let least = Infinity,
            most = 0;
        for (const value of values) {
            least = Math.min(least, value);
            most = Math.max(most, value);
        }
        for (const cell of cells.values())
            for (const side of ["from", "to"]) sums[side].set(cell[side], (sums[side].get(cell[side]) || 0) + cell.value);
        view = {
            what,
            cells,
            rows,
            place,
            sums,
            least,
            extent: values.length ? [Math.min(least, most / RANGE), most] : [1, RANGE],
            total: Math.ceil(data.run.ranks / each),
        };
        at = null;
        listPairs();
        canvas.setAttribute(
            "aria-label",
            `${what.title} by ${what.from} and ${what.to}, ${units.plural(cells.size, "pair")}; ` +
                "the arrow keys move between cells, the largest are in the table",
        );
    };

    const draw = width => {
        const {cells, rows, place, sums, what, extent} = view,
            count = rows.length;
        const room = Math.max(60, Math.min(width - GUTTER - SUMS - GAP - 2, onPaper() ? 480 : 720));
        const step = Math.max(room / count < 2 ? room / count : Math.floor(Math.min(room / count, CELL)), 0.5),
            side = step * count;
        const height = TOP + side + GAP + SUMS + 2,
            context = pixels(canvas, GUTTER + side + GAP + SUMS + 2, height);
        view.step = step;
        const paint = ramp(extent, what.ramp),
            gap = step >= 6 ? 1 : 0;
        const soft = colour("soft"); /* all cells have their values, or none has */
        const widest = Math.max(...[...cells.values()].slice(0, WORDS).map(cell => context.measureText(what.text(cell.value)).width));
        const hasWords = step >= 40 && cells.size <= WORDS && widest < step - 4;
        context.fillStyle = colour("grid");
        context.fillRect(GUTTER - 1, TOP - 1, side + 2, side + 2);
        context.fillStyle = colour("card");
        context.fillRect(GUTTER, TOP, side, side);
        for (const cell of cells.values()) {
            const x = GUTTER + place.get(cell.to) * step,
                y = TOP + place.get(cell.from) * step;
            context.fillStyle = paint(cell.value);
            context.fillRect(x, y, Math.max(step - gap, 0.5), Math.max(step - gap, 0.5));
            if (hasWords) {
                const strength = Math.log(cell.value / extent[0]) / Math.log(extent[1] / extent[0]);
                context.fillStyle = colour(strength > 0.45 ? "heat-strong" : "heat-weak");
                context.textAlign = "center";
                context.fillText(what.text(cell.value), x + step / 2, y + step / 2 + 4);
            }
        }
        drawSums(context, sums, side, step, what);
        drawAxes(context, soft, step, side);
        if (at) {
            context.strokeStyle = colour("text");
            context.lineWidth = 2;
            context.strokeRect(GUTTER + at[1] * step - 1, TOP + at[0] * step - 1, step + 1, step + 1);
        }
    };

    /* The sums of rows at the right, and of columns below. */
    const drawSums = (context, sums, side, step, what) => {
        context.fillStyle = colour(what.ramp + "-2");
        for (const [name, across] of [
            ["from", true],
            ["to", false],
        ]) {
            const most = Math.max(...sums[name].values(), 0);
            for (const [row, value] of sums[name]) {
                const place = view.place.get(row) * step,
                    length = most ? Math.max(1, (value / most) * SUMS) : 0;
                const breadth = Math.max(step - 1, 0.5);
                if (across) context.fillRect(GUTTER + side + GAP, TOP + place, length, breadth);
                else context.fillRect(GUTTER + place, TOP + side + GAP, breadth, length);
            }
        }
    };

    const drawAxes = (context, soft, step, side) => {
        context.fillStyle = soft;
        const name = row => String(row * each); /* its first rank */
        const wide = Math.max(...view.rows.map(row => context.measureText(name(row)).width));
        const every = [1, 2, 4, 8, 16, 32, 64, 128].find(n => n * step >= Math.max(14, wide + 6)) || 256;
        view.rows.forEach((row, i) => {
            if (i % every) return;
            context.textAlign = "right";
            context.fillText(name(row), GUTTER - 6, TOP + (i + 0.5) * step + 4);
            context.textAlign = "center";
            context.fillText(name(row), GUTTER + (i + 0.5) * step, TOP - 6);
        });
        context.textAlign = "left";
        context.fillText(view.what.to + " →", GUTTER, 11);
        context.save();
        context.translate(10, TOP + side);
        context.rotate(-Math.PI / 2);
        context.fillText("← " + view.what.from, 0, 0);
        context.restore();
        context.textAlign = "left";
    };

    const drawLegend = () => {
        const {what, least} = view,
            paint = ramp(view.extent, what.ramp),
            most = view.extent[1];
        legend.replaceChildren();
        if (!view.cells.size) {
            legend.append(make("span", {class: "nothing"}, "No data of this kind were traced."));
            return;
        }
        const strip = make("canvas", {width: least < most ? 160 : 20, height: 10, "aria-hidden": "true"}),
            context = strip.getContext("2d");
        for (let x = 0; x < strip.width; x++) {
            context.fillStyle = paint(least * (most / least) ** (x / (strip.width - 1)));
            context.fillRect(x, 0, 1, 10);
        }
        legend.append(
            ...(least < most ? [make("span", {}, what.text(least)), strip] : [strip]),
            make("span", {}, what.text(most)),
            make("span", {}, what.each + (least < most ? ", logarithmic" : view.cells.size > 1 ? ": all pairs are equal" : "")),
        );
    };

    const listPairs = () => {
        const {what, cells} = view,
            all = [...cells.values()].reduce((sum, cell) => sum + cell.value, 0);
        const first = [...cells.values()].sort((a, b) => b.value - a.value).slice(0, 12);
        pairs.replaceChildren(
            make(
                "h3",
                {},
                first.length < cells.size
                    ? `The ${first.length} largest of ${units.count(cells.size)}`
                    : "All pairs, largest first",
            ),
            table(
                "Largest pairs",
                [" " + what.from, " " + what.to, " " + what.title, " share", ...(what.table === "waits" ? ["mostly for"] : [])],
                first.map(cell =>
                    make(
                        "tr",
                        {},
                        figure(rowName(cell.from, each)),
                        figure(rowName(cell.to, each)),
                        figure(what.text(cell.value)),
                        figure(units.percent(cell.value / all)),
                        what.table === "waits" ? make("td", {}, cause(cell)) : null,
                    ),
                ),
            ),
        );
    };

    const say = (event, [i, j]) => {
        const {what, cells, rows, sums} = view,
            cell = cells.get(rows[i] * view.total + rows[j]);
        showTooltip(
            event,
            `${rankWords(rows[i], each)} ${what.verb} ${rankWords(rows[j], each)}`,
            [
                ["none", what.title, cell ? what.text(cell.value) : "nothing"],
                ["none", "of " + rankWords(rows[i], each), what.text(sums.from.get(rows[i]) || 0)],
                ["none", "of all for " + rankWords(rows[j], each), what.text(sums.to.get(rows[j]) || 0)],
            ],
            cell && what.table === "waits" ? "mostly for a " + cause(cell) : "",
        );
    };
    const under = event => {
        const box = canvas.getBoundingClientRect(),
            scale = canvas.clientWidth / parseFloat(canvas.style.width);
        const j = Math.floor(((event.clientX - box.left) / scale - GUTTER) / view.step);
        const i = Math.floor(((event.clientY - box.top) / scale - TOP) / view.step);
        return i >= 0 && j >= 0 && i < view.rows.length && j < view.rows.length ? [i, j] : null;
    };
    canvas.addEventListener("pointermove", event => {
        const cell = under(event);
        if (cell) say(event, cell);
        else hideTooltip();
    });
    canvas.addEventListener("pointerleave", hideTooltip);
    canvas.addEventListener("blur", () => {
        at = null;
        hideTooltip();
        fit.draw();
    });
    canvas.addEventListener("keydown", event => {
        const step = {ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0]}[event.key];
        if (!step) return;
        event.preventDefault();
        const within = value => Math.max(0, Math.min(view.rows.length - 1, value));
        at = at ? [within(at[0] + step[0]), within(at[1] + step[1])] : [0, 0];
        fit.draw();
        const box = canvas.getBoundingClientRect();
        say({clientX: box.left + GUTTER + (at[1] + 1) * view.step, clientY: box.top + TOP + (at[0] + 1) * view.step}, at);
    });

    const fit = fitted(plot, draw);
    const change = () => {
        prepare();
        fit.draw();
        drawLegend();
    };
    watch(change);
    redrawn(() => {
        fit.draw();
        drawLegend();
    });
    plot.style.setProperty("max-width", `${most}px`);
    prepare();
    setTimeout(drawLegend, 0); /* colours are available once the style is applied */
    return section(
        "pairs",
        "Accesses between ranks",
        each > 1 ? `Each row is ${each} ranks.` : null,
        make("div", {class: "card two"}, make("div", {class: most < 500 ? "narrow" : null}, form, plot, legend), pairs),
    );
};
