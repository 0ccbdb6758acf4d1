/* The timeline: a row for each rank or group of ranks, coloured by activity.  Dragging moves it; Ctrl with the wheel, the
 * buttons and the keys zoom. The strip above shows the visible part and can be dragged too.  A tooltip describes the position
 * of the pointer or of the cursor moved with the arrow keys.
 *
 * Paper has the visible part on sheets: each has some rows with names and an axis, and is not divided between pages. */
import {brushX} from "d3-brush";
import {scaleLinear} from "d3-scale";
import {select as pick} from "d3-selection";
import {zoom, zoomIdentity} from "d3-zoom";
import {hideTooltip, showTooltip} from "../plot.js";
import {colour, fitted, legendKey, make, onPaper, PAPER, pixels, redrawn, section} from "./dom.js";
import {causeClass, data, kindName, placeName, rankWords, watch, windowName, windows} from "./model.js";
import {eventWords, paintEvents, paintShares} from "./paint.js";
import {bins as gather, load, loadMarks, spansIn} from "./spans.js";
import * as units from "./units.js";

const LEFT = 46,
    TOP = 22,
    STRIP = 44,
    RIGHT = 6;
const SHARP = 3,
    SEEN = 8; /* pixels per bin from which events are drawn: when all are present, and when only the longest are */
const FEW = 3000; /* up to this number of events is always drawn */
const SHEET = 360, /* the most height of a sheet's rows */
    FINE = 2; /* columns of shares per unit of paper */

export const timelineSection = () => {
    const {rows, bin_ns: bin, bins: count} = data.timeline,
        lists = load(),
        end = Math.max(1, data.run.last_ns);
    const all = [...Array(rows).keys()],
        whole = data.events.left_out === 0,
        few = whole && data.events.kind.length <= FEW;
    const high = rows <= 16 ? 26 : rows <= 32 ? 18 : rows <= 64 ? 12 : rows <= 128 ? 7 : 4,
        gap = high >= 12 ? 3 : high >= 7 ? 1 : 0;
    const height = TOP + rows * (high + gap) + 4;
    const canvas = make("canvas", {tabindex: 0, id: "timeline-rows", role: "img"}),
        strip = make("canvas", {"aria-hidden": "true"});
    const over = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const overview = make("div", {class: "overview"}, strip, over),
        plot = make("div", {class: "plot"}, overview, canvas),
        sheets = make("div", {class: "sheets"});
    const output = make("output", {id: "range"});
    let sums = gather(),
        width = 0,
        view = {from: 0, to: end},
        cursor = null,
        own = false;

    const place = row => [TOP + row * (high + gap), high];
    const inner = () => width - LEFT - RIGHT;
    const detail = () => inner() / ((view.to - view.from) / bin);

    /* The axis at the top of a drawing, and the lines of its ticks. */
    const drawAxis = (context, wide, tall) => {
        const room = wide - LEFT - RIGHT;
        const x = scaleLinear()
            .domain([view.from, view.to])
            .range([LEFT, LEFT + room]);
        context.fillStyle = colour("card");
        context.fillRect(0, 0, wide, tall);
        x.ticks(Math.max(2, Math.floor(room / 110))).forEach(tick => {
            context.fillStyle = colour("grid");
            context.fillRect(x(tick), TOP - 4, 1, tall);
            context.fillStyle = colour("soft");
            const words = units.moment(tick, view.to - view.from);
            if (x(tick) + 3 + context.measureText(words).width <= wide)
                context.fillText(words, x(tick) + 3, 12);
        });
        context.save();
        context.beginPath();
        context.rect(LEFT, 0, room, tall);
        context.clip();
        return x;
    };

    const draw = () => {
        const context = pixels(canvas, width, height),
            room = inner(),
            x = drawAxis(context, width, height);
        const events = few || detail() >= (whole ? SHARP : SEEN);
        if (!events || !whole) paintShares(context, sums, view, room, LEFT, all, place, events);
        if (events) paintEvents(context, lists, view, room, LEFT, all, place);
        if (cursor) {
            context.strokeStyle = colour("text");
            context.strokeRect(x(cursor.at), place(cursor.row)[0] - 1, 1, high + 2);
        }
        context.restore();
        drawNames(context, all, place, high + gap);
        canvas.dataset.detail = events ? "events" : "bins";
        output.textContent =
            view.to - view.from >= end
                ? `the whole run, ${units.duration(end)}`
                : `${units.moment(view.from, view.to - view.from)} to ${units.moment(view.to, view.to - view.from)} of ${units.duration(end)}`;
    };

    const drawNames = (context, shown, placed, step) => {
        const every = [1, 2, 4, 8, 16, 32, 64].find(n => n * step >= 13) || 128;
        context.textAlign = "right";
        context.fillStyle = colour("soft");
        shown.filter(row => row % every === 0).forEach(row => {
            const [top, tall] = placed(row);
            context.fillText(String(row * data.timeline.ranks_per_row), LEFT - 6, top + Math.min(tall, 13 * every) / 2 + 4);
        });
        context.textAlign = "left";
        context.fillText("rank", 4, 12);
    };

    const drawSheet = (shown, tall, step) => {
        const sheet = make("canvas", {"data-rows": shown.length}),
            context = pixels(sheet, PAPER, TOP + shown.length * step + 4),
            room = PAPER - LEFT - RIGHT;
        const placed = row => [TOP + (row - shown[0]) * step, tall];
        drawAxis(context, PAPER, TOP + shown.length * step + 4);
        if (few) paintEvents(context, lists, view, room, LEFT, shown, placed);
        else {
            context.scale(1 / FINE, 1 / FINE);
            paintShares(context, sums, view, room * FINE, LEFT * FINE, shown, row => placed(row).map(y => y * FINE), false);
        }
        context.restore();
        drawNames(context, shown, placed, step);
        return sheet;
    };
    const drawSheets = () => {
        const step = rows <= 16 ? 22 : rows <= 64 ? 16 : 9,
            count = Math.ceil(rows / Math.floor(SHEET / step)),
            each = Math.ceil(rows / count);
        sheets.replaceChildren();
        for (let first = 0; onPaper() && first < rows; first += each)
            sheets.append(drawSheet(all.slice(first, first + each), step - (step > 9 ? 3 : 1), step));
    };

    /* All rows combined, over the whole run. */
    const drawStrip = () => {
        const context = pixels(strip, width, STRIP),
            one = {};
        for (const name of ["operating", "working", "waiting", "epoch", "calls"]) {
            one[name] = new Float32Array(rows * count);
            for (let i = 0; i < rows * count; i++)
                one[name][i % count] += name === "calls" ? sums[name][i] : sums[name][i] / rows;
        }
        one.cause = new Uint8Array(rows * count);
        const weight = new Float32Array(count);
        for (let i = 0; i < rows * count; i++)
            if (sums.waiting[i] > weight[i % count]) {
                weight[i % count] = sums.waiting[i];
                one.cause[i % count] = sums.cause[i];
            }
        context.fillStyle = colour("card");
        context.fillRect(0, 0, width, STRIP);
        paintShares(context, one, {from: 0, to: end}, inner(), LEFT, [0], () => [2, STRIP - 4], false, false);
        context.fillStyle = colour("soft");
        context.fillText("all", 4, STRIP / 2 + 4);
    };

    /* --- the visible part of the run: d3-zoom holds it, the brush shows it --- */
    const brush = brushX().on("brush end", event => {
        if (!event.sourceEvent || own) return;
        const [from, to] = event.selection ? event.selection.map(px => ((px - LEFT) / inner()) * end) : [0, end];
        look(from, to);
    });
    const zooming = zoom()
        .wheelDelta(event => -event.deltaY * (event.deltaMode ? 0.05 : Math.abs(event.deltaY) < 50 ? 0.01 : 0.003)) /* pinches are small */
        .filter(event => (event.type === "wheel" ? event.ctrlKey || event.metaKey : !event.button))
        .on("zoom", event => {
            const span = end / event.transform.k,
                from = ((event.transform.invertX(LEFT) - LEFT) / inner()) * end;
            view = {from: Math.max(0, from), to: Math.min(end, from + span)};
            hideTooltip();
            draw();
            own = true;
            pick(over).call(
                brush.move,
                span >= end * 0.9999 ? null : [view.from, view.to].map(at => LEFT + (at / end) * inner()),
            );
            own = false;
        });
    const look = (from, to) => {
        const k = Math.min(end / (to - from), zooming.scaleExtent()[1]),
            span = end / k;
        const at = Math.max(0, Math.min(end - span, (from + to - span) / 2));
        pick(canvas).call(zooming.transform, zoomIdentity.translate(LEFT - k * (LEFT + (at / end) * inner()), 0).scale(k));
    };
    const near = (factor, at = (view.from + view.to) / 2) => {
        const span = Math.min(end, (view.to - view.from) * factor),
            share = (at - view.from) / (view.to - view.from);
        look(at - span * share, at + span * (1 - share));
    };

    /* --- the content --- */
    const eventRows = (event, row) => [
        [event.kind < 64 ? "c-op" : "c-sync", "took", units.duration(event.duration)],
        ...(event.waiting
            ? [[causeClass(event.cause), `waited, ${data.causes[event.cause].name}`, units.duration(event.waiting)]]
            : []),
        ...(event.cause_rank >= 0 ? [["none", "for", `rank ${event.cause_rank}`]] : []),
        ...(event.kind < 64 ? [["none", "path", data.paths[event.path].name]] : []),
        ...(event.place ? [["none", "called in", placeName(event.place)]] : []),
        ["none", "window", windowName(event.window)],
        ["none", "began", units.moment(event.begin, event.duration)],
        ...epochRows(row, event.begin),
        ...markRows(row, event.begin),
    ];
    const epochRows = (row, at) => {
        const found = [];
        spansIn(lists.epochs[row], at, at + 1, epoch => found.push(epoch));
        return found
            .slice(0, 3)
            .map(epoch => [
                "c-epoch",
                `in an epoch: ${data.epoch_kinds[epoch.kind]}` + (epoch.target >= 0 ? ` of rank ${epoch.target}` : ""),
                `${units.duration(epoch.duration)}, ${units.plural(epoch.operations, "operation")}`,
            ]);
    };
    const markRows = (row, at) => {
        const {regions, pauses} = loadMarks(),
            found = [];
        spansIn(
            regions[row],
            at,
            at + 1,
            region => found.push(["c-region", "in region " + data.region_names[region.window], units.duration(region.duration)]),
            false,
        );
        spansIn(pauses[row], at, at + 1, pause => found.push(["c-pause", "paused", units.duration(pause.duration)]), false);
        return found.slice(0, 5);
    };
    const share = thousandths => units.percent(thousandths / 1000);

    const say = (pointer, row, at) => {
        const slack = ((view.to - view.from) / inner()) * 2;
        let best = null;
        if (canvas.dataset.detail === "events")
            spansIn(lists.events[row], at - slack, at + slack, event => {
                const far = Math.max(0, event.begin - at, at - event.begin - event.duration);
                if (!best || far < best.far || (far === best.far && event.duration < best.event.duration)) best = {event, far};
            });
        if (best) {
            showTooltip(pointer, `rank ${best.event.rank}: ${eventWords(best.event)}`, eventRows(best.event, row));
            return;
        }
        const cell = row * count + Math.min(count - 1, Math.floor(at / bin));
        const figures = [
            ["c-op", "in operations", sums.operating],
            ["c-sync", "in synchronisation", sums.working],
            [causeClass(sums.cause[cell]), `waiting, mostly ${data.causes[sums.cause[cell]].name}`, sums.waiting],
            ["c-epoch", "in epochs", sums.epoch],
        ].filter(([, , of]) => of[cell] > 0);
        showTooltip(
            pointer,
            `${rankWords(row, data.timeline.ranks_per_row)}, ${units.moment(Math.floor(at / bin) * bin, bin)} and ${units.duration(bin)} more`,
            [
                ...(figures.length
                    ? figures.map(([kind, name, of]) => [kind, name, share(of[cell])])
                    : [["none", "no window calls", ""]]),
                ...markRows(row, at),
            ],
            sums.calls[cell]
                ? `${units.plural(sums.calls[cell], "call")} begin here, of them ${units.plural(sums.operations[cell], "operation")}`
                : "",
        );
    };
    const under = event => {
        const box = canvas.getBoundingClientRect(),
            x = event.clientX - box.left - LEFT;
        const row = Math.floor((event.clientY - box.top - TOP) / (high + gap));
        return x >= 0 && x <= inner() && row >= 0 && row < rows
            ? {row, at: view.from + (x / inner()) * (view.to - view.from)}
            : null;
    };
    canvas.addEventListener("pointermove", event => {
        const found = event.buttons ? null : under(event);
        if (found) say(event, found.row, found.at);
        else hideTooltip();
    });
    canvas.addEventListener("pointerleave", hideTooltip);
    canvas.addEventListener("blur", () => {
        cursor = null;
        hideTooltip();
        draw();
    });

    /* The cursor moves by a fiftieth of the visible part; the view follows it. */
    const go = ([down, right]) => {
        const span = view.to - view.from;
        cursor = cursor
            ? {
                  row: Math.max(0, Math.min(rows - 1, cursor.row + down)),
                  at: Math.max(0, Math.min(end, cursor.at + right * span)),
              }
            : {row: 0, at: (view.from + view.to) / 2};
        if (cursor.at < view.from || cursor.at > view.to) look(cursor.at - span / 2, cursor.at + span / 2);
        draw();
        const box = canvas.getBoundingClientRect();
        say(
            {
                clientX: box.left + LEFT + ((cursor.at - view.from) / span) * inner(),
                clientY: box.top + place(cursor.row)[0] + high,
            },
            cursor.row,
            cursor.at,
        );
    };
    const keys = {
        "+": () => near(0.5, cursor ? cursor.at : undefined),
        "=": () => near(0.5, cursor ? cursor.at : undefined),
        "-": () => near(2, cursor ? cursor.at : undefined),
        0: () => look(0, end),
        Home: () => look(0, end),
        ArrowRight: () => go([0, 0.02]),
        ArrowLeft: () => go([0, -0.02]),
        ArrowDown: () => go([1, 0]),
        ArrowUp: () => go([-1, 0]),
    };
    canvas.addEventListener("keydown", event => {
        if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        keys[event.key]();
    });

    const resize = now => {
        const before = {...view};
        width = now;
        pick(over)
            .attr("width", width)
            .attr("height", STRIP)
            .call(
                brush.extent([
                    [LEFT, 0],
                    [LEFT + inner(), STRIP],
                ]),
            );
        zooming
            .extent([
                [LEFT, 0],
                [LEFT + inner(), height],
            ])
            .translateExtent([
                [LEFT, 0],
                [LEFT + inner(), height],
            ])
            .scaleExtent([1, Math.max(1, end / 100)]);
        look(before.from, before.to);
        drawStrip();
    };
    fitted(plot, resize);
    const change = () => {
        sums = gather();
        hideTooltip();
        if (width) {
            draw();
            drawStrip();
        }
    };
    watch(change);
    redrawn(() => {
        change();
        drawSheets();
    });
    pick(canvas)
        .call(zooming)
        .on("dblclick.zoom", event => {
            const found = under(event);
            near(event.shiftKey ? 2 : 0.25, found ? found.at : undefined);
        });

    const button = (words, name, act) => make("button", {type: "button", title: name, "aria-label": name, onclick: act}, words);
    canvas.setAttribute(
        "aria-label",
        `Activity of ${units.plural(data.run.ranks, "rank")} in ${units.duration(end)}; plus and minus zoom, ` +
            "the arrow keys move a cursor, 0 shows the whole run",
    );
    const causes = data.causes.map((cause, i) => ({cause, i})).filter(({i}) => windows.some(window => window.causes[i]));
    const left = data.events.left_out
        ? `${units.count(data.events.kind.length)} events are shown with their own times: all that took longer than ` +
          `${units.duration(data.events.longest_left_out)}. The other ${units.count(data.events.left_out)} are included in the shares, by bins of ` +
          `${units.duration(bin)}.`
        : null;
    return section(
        "timeline",
        "Timeline",
        left,
        make(
            "div",
            {class: "card"},
            make(
                "div",
                {class: "tools"},
                make(
                    "ul",
                    {class: "legend"},
                    legendKey("c-op", "operations"),
                    legendKey("c-sync", "synchronisation"),
                    causes.map(({cause, i}) => legendKey(causeClass(i), "waiting: " + cause.name)),
                    legendKey("c-epoch", "in an epoch"),
                    data.regions.rank.length ? legendKey("c-region", "regions") : null,
                    data.pauses.rank.length ? legendKey("c-pause", "paused") : null,
                ),
                make(
                    "div",
                    {class: "buttons", role: "group", "aria-label": "Zoom"},
                    output,
                    button("−", "Zoom out", () => near(2)),
                    button("+", "Zoom in", () => near(0.5)),
                    button("Whole run", "Show the whole run", () => look(0, end)),
                ),
            ),
            plot,
            sheets,
            make(
                "p",
                {class: "hint"},
                "Drag to move, Ctrl and the wheel or a double click to zoom, or drag in the strip above. With the keyboard: +, −, 0 and the arrow keys.",
            ),
        ),
    );
};
