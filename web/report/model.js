/* The data of the page, and the selected window: one, or all together. */
export const data = JSON.parse(document.getElementById("data").textContent);
export const windows = data.windows || [];

let chosen = -1; /* all */
const watchers = [];
export const selection = () => chosen;
export const select = window => {
    chosen = window;
    watchers.forEach(watcher => watcher(window));
};
export const watch = watcher => watchers.push(watcher);

/* The selected windows. */
export const shown = () => (chosen < 0 ? windows : [windows[chosen]]);

export const windowName = place => {
    const window = windows[place];
    if (window.others) return `${window.others.toLocaleString("en")} other windows`;
    return window.name || `window ${place + 1}, unnamed`;
};

/* Sums of lists of figures over the selected windows. */
export const added = (key, pick = window => window[key]) => {
    const add = (a, b) => (Array.isArray(b) ? b.map((part, i) => add(a && a[i], part)) : (a || 0) + b);
    return shown().reduce((sum, window) => add(sum, pick(window)), undefined);
};

/* For calls, the longest wait is a maximum, not a sum. */
export const calls = () => added("calls").map((call, i) => [...call.slice(0, 4), Math.max(...shown().map(w => w.calls[i][4]))]);

export const kindName = kind => (kind < 64 ? data.operations[kind].name : data.calls[kind - 64].name);
export const callClass = kind => (kind < 64 ? "c-op" : "c-sync");
/* "main at halo.c:42" */
export const placeName = place => (data.places[place] ? data.places[place].text || "?" : "other call sites");
export const causeClass = cause => "cause-" + data.causes[cause].name.replaceAll(" ", "-");

/* The ranks of a row, with several ranks per row. */
export const rowName = (row, each = data.timeline.ranks_per_row) => {
    const last = Math.min((row + 1) * each, data.run.ranks) - 1;
    return each === 1 || row * each === last ? `${row * each}` : `${row * each}–${last}`;
};
export const rankWords = (row, each) => (each > 1 ? "ranks " : "rank ") + rowName(row, each);
