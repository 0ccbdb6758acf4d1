/* Converts the columns of events, epochs and marks, sorted by rank and time, to lists for each row of ranks; and the bins of the
 * selected windows. */
import {data, selection, shown} from "./model.js";

const byRow = columns => {
    const rows = Array.from({length: data.timeline.rows}, () => ({list: [], longest: 0}));
    columns.rank.forEach((rank, i) => {
        const span = {rank};
        for (const key of [
            "window",
            "kind",
            "begin",
            "duration",
            "waiting",
            "target",
            "cause_rank",
            "path",
            "cause",
            "operations",
            "bytes",
            "place",
        ])
            span[key] = columns[key][i];
        const row = rows[Math.floor(rank / data.timeline.ranks_per_row)];
        row.list.push(span);
        row.longest = Math.max(row.longest, span.duration);
    });
    if (data.timeline.ranks_per_row > 1) rows.forEach(row => row.list.sort((a, b) => a.begin - b.begin));
    return rows;
};

/* Calls visit for each span (of the selected windows, if spans are of windows) that begins before `to` and ends after `from`. */
export const spansIn = ({list, longest}, from, to, visit, isOfWindow = true) => {
    let low = 0,
        high = list.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (list[middle].begin < from - longest) low = middle + 1;
        else high = middle;
    }
    for (; low < list.length && list[low].begin < to; low++)
        if (list[low].begin + list[low].duration >= from && (!isOfWindow || selection() < 0 || list[low].window === selection()))
            visit(list[low]);
};

export const load = () => ({events: byRow(data.events), epochs: byRow(data.epochs)});

/* Regions, whose window is the index of their name, and pauses: they are of no window. */
let marks = null;
export const loadMarks = () => (marks = marks || {regions: byRow(data.regions), pauses: byRow(data.pauses)});

/* Thousandths of each bin, and counts: one array for each row and quantity, summed over the selected windows. */
export const bins = () => {
    const {rows, bins: count} = data.timeline;
    const sum = {
        operating: new Float32Array(rows * count),
        working: new Float32Array(rows * count),
        waiting: new Float32Array(rows * count),
        epoch: new Float32Array(rows * count),
        operations: new Float32Array(rows * count),
        calls: new Float32Array(rows * count),
        cause: new Uint8Array(rows * count),
        most: new Float32Array(rows * count),
    };
    for (const {bins: part} of shown())
        part.bin.forEach((bin, i) => {
            const at = part.row[i] * count + bin;
            for (const key of ["operating", "working", "waiting", "epoch", "operations", "calls"]) sum[key][at] += part[key][i];
            if (part.waiting[i] > sum.most[at]) {
                sum.most[at] = part.waiting[i];
                sum.cause[at] = part.cause[i];
            }
        });
    return sum;
};
