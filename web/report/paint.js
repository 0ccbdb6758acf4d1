/* Draws the timeline into pixels.  Where a bin of time is narrower than a few pixels, a column of a row shows what share of
 * its time went into waiting (at the top, by its cause), synchronisation and operations (at the bottom); where bins are wider,
 * the events themselves: each as long as it took, with its waiting above its work.  The line above a row tells of epochs. */
import {colour} from "./dom.js";
import {data, kindName} from "./model.js";
import {spansIn} from "./spans.js";
import * as units from "./units.js";

const rgb = name => {
    const hex = colour(name);
    return [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16));
};
export const causeColour = cause => "cause-" + data.causes[cause].name.replaceAll(" ", "-");

/* Shares of the columns of pixels from the bins that lie in them. */
const columnsOf = (bins, first, count, {from, to}, width) => {
    const bin = data.timeline.bin_ns,
        scale = width / (to - from),
        column = {};
    for (const key of ["operating", "working", "waiting", "epoch"]) column[key] = new Float32Array(width);
    column.cause = new Uint8Array(width);
    column.any = false;
    for (let i = Math.max(0, Math.floor(from / bin)); i < count && i * bin < to; i++) {
        const at = first + i;
        if (!bins.calls[at] && !bins.operating[at] && !bins.working[at] && !bins.waiting[at] && !bins.epoch[at]) continue;
        column.any = true;
        const left = Math.max(0, (i * bin - from) * scale),
            right = Math.min(width, ((i + 1) * bin - from) * scale);
        for (let x = Math.floor(left); x < right; x++) {
            const part = Math.min(right, x + 1) - Math.max(left, x);
            for (const key of ["operating", "working", "waiting", "epoch"]) column[key][x] += (bins[key][at] * part) / 1000;
            if (bins.waiting[at]) column.cause[x] = bins.cause[at];
        }
    }
    return column;
};

/* Rows of shares: place(row) = [top, height] in pixels; faint where events are drawn upon them. */
export const paintShares = (context, bins, view, width, left, rows, place, faint) => {
    const card = rgb("card"),
        colours = {op: rgb("op"), sync: rgb("sync"), epoch: rgb("epoch")};
    const causes = data.causes.map((_, cause) => rgb(causeColour(cause)));
    const strength = faint ? 0.35 : 1;
    for (const row of rows) {
        const column = columnsOf(bins, row * data.timeline.bins, data.timeline.bins, view, width);
        const [top, height] = place(row),
            strip = height >= 8 ? Math.max(2, Math.round(height / 9)) : 0,
            room = height - strip;
        if (!column.any) continue;
        for (let x = 0; x < width; x++) {
            const parts = [
                ["waiting", causes[column.cause[x]]],
                ["working", colours.sync],
                ["operating", colours.op],
            ];
            const all = parts.reduce((sum, [key]) => sum + column[key][x], 0);
            if (strip && column.epoch[x] > 0) {
                context.fillStyle = mixed(colours.epoch, card, (0.3 + 0.7 * Math.min(1, column.epoch[x])) * strength);
                context.fillRect(left + x, top, 1, strip - 1);
            }
            if (!all) continue;
            /* What is there at all is seen: a pixel at the least. */
            let below = top + height;
            const shrink = room / Math.max(1, all);
            for (const [key, paint] of parts.reverse()) {
                if (!column[key][x]) continue;
                const tall = Math.max(1, column[key][x] * shrink);
                below -= tall;
                context.fillStyle = mixed(paint, card, strength);
                context.fillRect(left + x, Math.max(top + strip, below), 1, tall);
            }
        }
    }
};

const mixed = (paint, ground, strength) =>
    `rgb(${paint.map((part, i) => Math.round(part * strength + ground[i] * (1 - strength))).join(" ")})`;

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
};
