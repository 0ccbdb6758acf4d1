/* Draws the timeline into pixels.  When a bin of time is narrower than a few pixels, a column of a row shows the shares of
 * waiting (at the top, by cause), synchronisation and operations (at the bottom). When bins are wider, it shows the events
 * with their durations, with waiting above work.  The line above a row shows epochs, the one at its bottom regions. */
import {colour} from "./dom.js";
import {data, kindName} from "./model.js";
import {loadMarks, spansIn} from "./spans.js";
import * as units from "./units.js";

export const causeColour = cause => "cause-" + data.causes[cause].name.replaceAll(" ", "-");

/* A colour as a pixel of an image, without its alpha. */
const rgb = name => {
    const hex = colour(name);
    return parseInt(hex.slice(5, 7) + hex.slice(3, 5) + hex.slice(1, 3), 16);
};
const alpha = share => Math.round(Math.min(1, share) * 255) << 24;

/* Shares of pixel columns from the bins of a row, which begin at `first`; false when empty. */
const columnsOf = (bins, first, {from, to}, width, column) => {
    const bin = data.timeline.bin_ns,
        scale = width / (to - from),
        {operating, working, waiting, epoch, calls, cause} = bins;
    let any = false;
    for (const part of [column.operating, column.working, column.waiting, column.epoch]) part.fill(0);
    for (let i = Math.max(0, Math.floor(from / bin)); i < data.timeline.bins && i * bin < to; i++) {
        const at = first + i;
        if (!calls[at] && !operating[at] && !working[at] && !waiting[at] && !epoch[at]) continue;
        any = true;
        const left = Math.max(0, (i * bin - from) * scale),
            right = Math.min(width, ((i + 1) * bin - from) * scale);
        for (let x = Math.floor(left); x < right; x++) {
            const part = (Math.min(right, x + 1) - Math.max(left, x)) / 1000;
            column.operating[x] += operating[at] * part;
            column.working[x] += working[at] * part;
            column.waiting[x] += waiting[at] * part;
            column.epoch[x] += epoch[at] * part;
            if (waiting[at]) column.cause[x] = cause[at];
        }
    }
    return any;
};

/* Rows of shares: place(row) = [top, height] in pixels; faint when events are drawn over them; marks: with regions and
 * pauses. */
export const paintShares = (context, bins, view, width, left, rows, place, faint, marks = !faint) => {
    const op = rgb("op"),
        sync = rgb("sync"),
        epoch = rgb("epoch"),
        causes = data.causes.map((_, cause) => rgb(causeColour(cause)));
    const strength = faint ? 0.35 : 1,
        full = alpha(strength);
    const [start] = place(rows[0]),
        [last, high] = place(rows[rows.length - 1]);
    const image = new ImageData(width, last + high - start),
        pixels = new Uint32Array(image.data.buffer);
    const column = {cause: new Uint8Array(width)};
    for (const name of ["operating", "working", "waiting", "epoch"]) column[name] = new Float32Array(width);
    for (const row of rows) {
        if (!columnsOf(bins, row * data.timeline.bins, view, width, column)) continue;
        const [top, height] = place(row),
            strip = height >= 8 ? Math.max(2, Math.round(height / 9)) : 0,
            room = height - strip;
        for (let x = 0; x < width; x++) {
            for (let y = 0; column.epoch[x] > 0 && y < strip - 1; y++)
                pixels[(top - start + y) * width + x] = epoch | alpha((0.3 + 0.7 * Math.min(1, column.epoch[x])) * strength);
            const shrink = room / Math.max(1, column.operating[x] + column.working[x] + column.waiting[x]);
            let below = top - start + height;
            const stack = (share, paint) => {
                if (!share) return;
                const end = Math.max(top - start + strip, below - Math.max(1, Math.round(share * shrink))); /* non-zero shares stay visible */
                while (below > end) pixels[--below * width + x] = paint | full;
            };
            stack(column.operating[x], op);
            stack(column.working[x], sync);
            stack(column.waiting[x], causes[column.cause[x]]);
        }
    }
    const scratch = document.createElement("canvas");
    scratch.width = image.width;
    scratch.height = image.height;
    scratch.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false; /* the screen may have several pixels per page unit */
    context.drawImage(scratch, left, start);
    if (marks) paintMarks(context, view, width, left, rows, place);
};

const STRIPE = 6; /* distance of a pause's stripes */

/* A pause is striped. A region is a line at the bottom of its rows; an inner one covers the outer. */
const paintMarks = (context, view, width, left, rows, place) => {
    const {regions, pauses} = loadMarks(),
        scale = width / (view.to - view.from);
    for (const row of rows) {
        const [top, height] = place(row),
            line = Math.max(2, Math.round(height / 9));
        const across = span => {
            const x = Math.max(0, (span.begin - view.from) * scale);
            return [left + x, Math.max(0.7, Math.min(width, (span.begin + span.duration - view.from) * scale) - x)];
        };
        const visit = (list, paint) => spansIn(list, view.from, view.to, span => paint(...across(span), span), false);
        visit(pauses[row], (x, wide) => {
            context.fillStyle = colour("grid");
            context.fillRect(x, top, wide, height);
            context.fillStyle = colour("soft");
            for (let at = x + STRIPE - (x % STRIPE); at < x + wide; at += STRIPE) context.fillRect(at, top, 1, height);
        });
        const found = [];
        visit(regions[row], (x, wide, span) => found.push([x, wide, span]));
        found
            .sort((a, b) => b[2].duration - a[2].duration)
            .forEach(([x, wide, span]) => {
                context.fillStyle = regionColour(span.window);
                context.fillRect(x, top + height - line, wide, line);
            });
    }
};

/* Neighbouring numbers have colours far apart. */
export const regionColour = number => `hsl(${(number * 137) % 360} 55% 50%)`;

export const eventWords = event => {
    const name = kindName(event.kind);
    return event.kind < 64 ? `${name} ${units.size(event.bytes)}${event.target >= 0 ? " → " + event.target : ""}` : name;
};

export const paintEvents = (context, lists, view, width, left, rows, place) => {
    const scale = width / (view.to - view.from),
        op = colour("op"),
        sync = colour("sync"),
        card = colour("card");
    const causes = data.causes.map((_, cause) => colour(causeColour(cause))),
        epochs = colour("epoch");
    for (const row of rows) {
        const [top, height] = place(row),
            strip = height >= 8 ? Math.max(2, Math.round(height / 9)) : 0,
            room = height - strip;
        const across = span => {
            const x = Math.max(0, (span.begin - view.from) * scale);
            return [x, Math.max(0.7, Math.min(width, (span.begin + span.duration - view.from) * scale) - x)];
        };
        if (strip)
            spansIn(lists.epochs[row], view.from, view.to, span => {
                const [x, wide] = across(span);
                context.fillStyle = epochs;
                context.fillRect(left + x, top, Math.max(0.7, wide - 1), strip - 1);
            });
        spansIn(lists.events[row], view.from, view.to, span => {
            const [x, wide] = across(span),
                gap = wide > 4 ? 0.5 : 0,
                share = span.duration ? span.waiting / span.duration : 0;
            context.fillStyle = span.kind < 64 ? op : sync;
            context.fillRect(left + x, top + strip, wide - gap, room);
            if (share) {
                context.fillStyle = causes[span.cause];
                context.fillRect(left + x, top + strip, wide - gap, room * share);
            }
            const words = wide > 40 && room >= 12 ? eventWords(span) : "";
            if (words && context.measureText(words).width < wide - 8) {
                context.fillStyle = card;
                context.fillText(words, left + x + 4, top + strip + room / 2 + 4);
            }
        });
    }
    paintMarks(context, view, width, left, rows, place);
};
