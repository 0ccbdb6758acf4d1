/* The page of two runs: their totals, and for each call site and window the amounts before and after
 * as pairs of bars. The command has ordered windows and rows, the largest change first. */
import {make, section, table, figure} from "./dom.js";
import {data} from "./model.js";
import {hostText} from "./summary.js";
import * as units from "./units.js";

const comparison = data.comparison;
const SAME_TIME = 0.05; /* as in cli/report/compare.h */
const OPEN_WINDOWS = 3;
const amount = value => (Number.isInteger(value) || value >= 100 ? units.count(value) : value.toFixed(1));
const QUANTITIES = [
    ["count", "count", amount],
    ["bytes", "bytes", units.size],
    ["time_ns", "time", units.duration],
    ["waiting_ns", "waiting", units.duration],
    ["calls_ns", "in calls", units.duration],
    ["operations", "operations", amount],
];
const TITLES = {operations: "Operations", paths: "Paths", calls: "Calls", causes: "Causes of waiting", ranks: "Ranks that others waited for"};

const isChanged = (key, [before, after]) => {
    const noise = comparison.per_rank || key.endsWith("_ns") ? SAME_TIME : 0;
    return Math.abs(after - before) > noise * Math.max(before, after);
};

const factor = value => (value < 9.95 ? value.toFixed(1) : units.count(value));
const percent = value => `${value < 9.5 ? value.toFixed(1) : units.count(value)} %`;

/* "2.4 times", "+30 %": the words of the terminal's text. */
const change = (key, [before, after]) => {
    if (!isChanged(key, [before, after])) return before === after ? "the same" : "the same, within 5 %";
    if (before === 0) return "new";
    if (after === 0) return "gone";
    if (after >= 2 * before) return `${factor(after / before)} times`;
    if (before >= 2 * after) return `${factor(before / after)} times less`;
    return after > before ? `+${percent(100 * (after / before - 1))}` : `−${percent(100 * (1 - after / before))}`;
};

/* More time is worse; more operations or bytes are neither. */
const verdict = (key, pair) => (!key.endsWith("_ns") || !isChanged(key, pair) ? "" : pair[1] > pair[0] ? "slower" : "faster");

const bars = (pair, most) =>
    make(
        "td",
        {class: "pair", "aria-hidden": "true"},
        ["before", "after"].map((when, i) => {
            const bar = make("i", {class: when, hidden: pair[i] === 0});
            bar.style.setProperty("width", most > 0 ? `${(pair[i] / most) * 100}%` : "0");
            return make("div", {}, bar);
        }),
    );

const row = (name, [key, title, text], pair, most) =>
    make(
        "tr",
        {class: isChanged(key, pair) ? null : "same"},
        make("th", {scope: "row"}, name),
        make("td", {}, title),
        figure(text(pair[0])),
        figure(text(pair[1])),
        bars(pair, most),
        make("td", {class: "change " + verdict(key, pair)}, change(key, pair)),
    );

const changesTable = (label, rows) => {
    const lines = [];
    for (const quantity of QUANTITIES) {
        const [key] = quantity;
        const having = rows.filter(entry => entry[key]);
        const most = Math.max(...having.map(entry => Math.max(...entry[key])));
        lines.push(...having.map(entry => ({entry, quantity, most})));
    }
    lines.sort((a, b) => rows.indexOf(a.entry) - rows.indexOf(b.entry));
    let last = null;
    return table(
        label,
        ["", "", " Before", " After", "", "Change"],
        lines.map(({entry, quantity, most}) => {
            const name = entry === last ? "" : entry.name;
            last = entry;
            return row(name, quantity, entry[quantity[0]], most);
        }),
    );
};

const windowTitle = window => (window.name ? `“${window.name}”` : "unnamed window");

const windowPart = (window, place) => {
    const side = window.windows.indexOf(0); /* the run without it */
    const time = window.total.time_ns || [0, 0];
    const state = side < 0 ? `time: ${change("time_ns", time)}` : side === 0 ? "new" : "gone";
    const cards = Object.keys(TITLES).map(name => {
        const rows = window.rows
            .filter(entry => entry.table === name)
            .map(entry => ({...entry, name: name === "ranks" ? `rank ${entry.row}` : entry.row}));
        if (!rows.length) return null;
        const more = name === "ranks" && window.ranks_left_out;
        return make(
            "figure",
            {},
            make("figcaption", {}, TITLES[name]),
            changesTable(`${TITLES[name]} of ${windowTitle(window)}`, rows),
            more ? make("p", {class: "hint"}, `and ${units.plural(more, "rank")} more`) : null,
        );
    });
    const times = window.windows.some(count => count > 1) ? `, ${window.windows.map(units.count).join(" and ")} times` : "";
    return make(
        "details",
        {class: "compared", open: place < OPEN_WINDOWS && side < 0},
        make(
            "summary",
            {},
            make("b", {}, windowTitle(window)),
            ` ${window.flavour}${window.site ? `, created in ${window.site}` : ""}${times}: `,
            make("span", {class: "change " + (side < 0 ? verdict("time_ns", time) : "")}, state),
        ),
        make("div", {class: "cards halves"}, cards),
    );
};

const siteName = ({call, site, site_before: before}) => `${call} in ${site}${before && before !== site ? `, before in ${before}` : ""}`;

const leftOut = (key, noun) => {
    const left = comparison[`${key}_left_out`];
    return left ? make("p", {class: "hint"}, `and ${units.plural(left, noun)} with smaller changes`) : null;
};

const placesSection = (key, noun, places, words) => {
    const title = `${noun[0].toUpperCase()}${noun.slice(1)}s`;
    return places.length
        ? section(
              `changed-${key}`,
              title,
              `${words}, the largest change of time first. Pale rows did not change.`,
              make("div", {class: "card"}, changesTable(title, places)),
              leftOut(key, noun),
          )
        : null;
};

const runFacts = (run, when) =>
    make(
        "div",
        {},
        make("dt", {}, make("i", {class: "key " + when}), when),
        make(
            "dd",
            {},
            `${run.path}: ${run.program || "unknown program"}, ${units.plural(run.ranks, "rank")} on ${hostText(run)}, ` +
                `Oriel ${run.oriel}, ${run.traced ? "traced" : "counted"}`,
        ),
    );

export const comparisonParts = () => {
    const total = comparison.total,
        windows = comparison.windows,
        sites = comparison.sites.map(site => ({...site, name: siteName(site)})),
        regions = comparison.regions.map(region => ({...region, name: region.name === null ? "other regions" : region.name}));
    const program = (comparison.runs[1].program || "a program").split(" ")[0].split("/").pop();
    const tile = (value, words, kind) => make("div", {class: "tile " + kind}, make("b", {}, value), make("span", {}, words));
    document.title = `${program}: what changed`;
    return [
        make("h1", {}, `${program}: what changed between two runs`),
        make("dl", {class: "facts runs"}, comparison.runs.map((run, i) => runFacts(run, ["before", "after"][i]))),
        comparison.notes.length
            ? make("div", {class: "banner", role: "note"}, make("ul", {}, comparison.notes.map(note => make("li", {}, note))))
            : null,
        make(
            "div",
            {class: "tiles"},
            [
                ["time_ns", "time in window calls"],
                ["waiting_ns", "waiting"],
                ["count", "operations"],
                ["bytes", "data"],
            ]
                .filter(([key]) => total[key])
                .map(([key, words]) => {
                    const [, , text] = QUANTITIES.find(([name]) => name === key);
                    return tile(
                        change(key, total[key]),
                        `${words}: ${text(total[key][0])} before, ${text(total[key][1])} after`,
                        verdict(key, total[key]),
                    );
                }),
        ),
        placesSection("sites", "call site", sites, "The lines of the program that called"),
        placesSection("regions", "region", regions, "The parts that the program named"),
        section(
            "changes",
            "Windows",
            "The largest change first. Pale rows did not change: the same amounts, or times within 5 %. " +
                (comparison.per_rank ? "All amounts are means over the ranks." : "All amounts are sums over the ranks."),
            windows.length ? windows.map(windowPart) : make("p", {class: "nothing"}, "The runs created no windows."),
            leftOut("windows", "window"),
        ),
    ];
};
